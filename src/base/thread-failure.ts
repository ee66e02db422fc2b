/** Errors of threads, which reach the program as messages: an error keeps neither its class nor its code on the way. */
import { type ErrorCode, UserError } from './errors.js';

export interface ThreadFailure {
  /** Undefined for an error that is not the user's. */
  readonly code: ErrorCode | undefined;
  readonly message: string;
  readonly suggestion: string | undefined;
}

/** An error as a message of a thread. */
export function failureOf(error: unknown): ThreadFailure {
  const known = error instanceof UserError;
  return {
    code: known ? error.code : undefined,
    message: error instanceof Error ? error.message : String(error),
    suggestion: known ? error.suggestion : undefined,
  };
}

/** The error of a message of a thread. */
export function errorOf(failure: ThreadFailure | undefined): Error {
  if (failure?.code === undefined) return new Error(failure?.message ?? 'no answer');
  const { code, message, suggestion } = failure;
  return new UserError(code, message, { suggestion });
}
