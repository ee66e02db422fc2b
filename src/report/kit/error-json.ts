/** Errors for programs: what a command prints with its JSON format when it fails. */
import type { ErrorCode, Problem, UserError } from '../../base/errors.js';
import { shortened } from '../../base/text/words.js';

/** Maximum characters of a message, which can quote a name from a file. */
export const MOST_MESSAGE = 2000;

/**
 * An error with all its problems.
 * @title What a command prints with --json when it fails
 */
export interface ErrorJson {
  readonly schema: 'minimind/error@1';
  /** Kind of the error. */
  readonly code: ErrorCode;
  /** Description of the error. */
  readonly message: string;
  /** How to fix it. */
  readonly suggestion?: string;
  /** Problems in the user's input; empty when the message says all. */
  readonly problems: readonly Problem[];
}

export function errorJson({ code, message, suggestion, problems }: UserError): ErrorJson {
  return {
    schema: 'minimind/error@1',
    code,
    message: shortened(message, MOST_MESSAGE),
    ...(suggestion !== undefined && { suggestion }),
    problems: problems.map((problem) => ({
      ...problem,
      message: shortened(problem.message, MOST_MESSAGE),
    })),
  };
}
