import { z } from 'zod';
import { checkDocument } from '../../src/config/check-document.js';
import type { ConfigDocument } from '../../src/config/document.js';
import { type Problem, UserError } from '../../src/errors.js';

/** One problem on one line, as the tests of this folder write it down. */
export function line(problem: Problem): string {
  const place = [problem.file, problem.line, problem.column].filter((part) => part !== undefined);
  const subject = problem.path === undefined ? '' : ` ${problem.path}`;
  const advice = problem.suggestion === undefined ? '' : ` → ${problem.suggestion}`;
  return `${place.join(':')} ${problem.severity}${subject}: ${problem.message}${advice}`;
}

/** The error that `action` ends with, which must be one of the user's. */
export function userError(action: () => unknown): UserError {
  try {
    action();
  } catch (error) {
    if (error instanceof UserError) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}

/** What is wrong with a document itself, whether that leaves a document or not. */
export function problemsOfReading(read: () => ConfigDocument): readonly Problem[] {
  try {
    return checkDocument(read(), { schema: z.unknown() }).problems;
  } catch (error) {
    if (error instanceof UserError) return error.problems;
    throw error;
  }
}

/** As `userError`, for what is asynchronous. */
export async function rejection(promise: Promise<unknown>): Promise<UserError> {
  const error: unknown = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error instanceof UserError) return error;
  throw error ?? new Error('nothing was thrown');
}
