import { z } from 'zod';
import { type Problem, UserError } from '../../src/base/errors.js';
import { checkDocument } from '../../src/config/check-document.js';
import type { ConfigDocument } from '../../src/config/document.js';

/** One problem as one line, in the form used by the tests of this folder. */
export function line(problem: Problem): string {
  const place = [problem.file, problem.line, problem.column].filter((part) => part !== undefined);
  const subject = problem.path === undefined ? '' : ` ${problem.path}`;
  const advice = problem.suggestion === undefined ? '' : ` → ${problem.suggestion}`;
  return `${place.join(':')} ${problem.severity}${subject}: ${problem.message}${advice}`;
}

/** User error thrown by `action`. Throws any other error. */
export function userError(action: () => unknown): UserError {
  try {
    action();
  } catch (error) {
    if (error instanceof UserError) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}

/** Problems of a document without a schema, even if it cannot be read. */
export function problemsOfReading(read: () => ConfigDocument): readonly Problem[] {
  try {
    return checkDocument(read(), { schema: z.unknown() }).problems;
  } catch (error) {
    if (error instanceof UserError) return error.problems;
    throw error;
  }
}

/** User error of a rejected promise. Throws any other error. */
export async function rejection(promise: Promise<unknown>): Promise<UserError> {
  const error: unknown = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error instanceof UserError) return error;
  throw error ?? new Error('nothing was thrown');
}
