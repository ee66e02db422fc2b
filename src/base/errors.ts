/**
 * Errors and problems. The user can fix the cause of a `UserError`, so it is shown without a stack; any other
 * error is a bug in minimind and keeps its stack.
 */

/** All reasons for a command to fail, with exit codes. */
export const ERROR_CODES = {
  /** Flags or arguments that are not valid. */
  usage: { exitCode: 2 },
  /** A config that is not valid; `problems` has the details. */
  'invalid-config': { exitCode: 2 },
  /** A file that is too large, of the wrong kind, or broken. */
  'refused-file': { exitCode: 2 },
  /** An error of the operating system: cannot read, cannot write, disk full. */
  system: { exitCode: 3 },
  /** Ctrl-C. */
  interrupted: { exitCode: 130 },
  /** A bug in minimind. */
  bug: { exitCode: 70 },
} as const satisfies Record<string, { exitCode: number }>;

export type ErrorCode = keyof typeof ERROR_CODES;

/** Path of a value in a document: `['model', 'num_layers']`. */
export type PropertyPath = readonly (string | number)[];

export type Severity = 'error' | 'warning';

/** An error or warning at one place of the user's input. */
export interface Problem {
  /** Whether it is an error or a warning. */
  readonly severity: Severity;
  /** The path as the user wrote it, `<stdin>`, or `--set` for an override. */
  readonly file: string;
  /** Line, 1-based; absent if the place is not a line of a file. @integer @minimum 1 */
  readonly line?: number;
  /** Column, 1-based, in characters. @integer @minimum 1 */
  readonly column?: number;
  /** `model.num_layers`, or the place in a binary file; absent for the whole file. */
  readonly path?: string;
  /** Description of the problem. */
  readonly message: string;
  /** How to fix it. */
  readonly suggestion?: string;
  /** The line of input, for display. */
  readonly excerpt?: string;
  /** Name of the file format rule that is violated. */
  readonly rule?: string;
}

/** Message and suggestion: the part of a problem that does not depend on its place. */
export interface ProblemText {
  /** Description of the problem. */
  readonly message: string;
  /** How to fix it. */
  readonly suggestion?: string;
}

/** A check that a schema cannot express, because it relates several values of a document of type `T`. */
export interface DocumentRule<T> {
  readonly severity: Severity;
  /**
   * Dotted paths that it reads. Its problem is shown at the first one. It runs only if the document is valid at
   * all of them, so it never checks a wrong value.
   */
  readonly reads: readonly [string, ...string[]];
  check(document: T): ProblemText | undefined;
}

/** A frequent mistake in a key or its value, and its correction. */
export interface Confusion extends ProblemText {
  readonly path: string;
  /** Wrong value of the key; if absent, the key itself is the mistake. */
  readonly value?: string;
}

/** An error that the user can fix. Shown without a stack. */
export class UserError extends Error {
  readonly code: ErrorCode;
  readonly problems: readonly Problem[];
  /** Suggestion for a fix, as a sentence. */
  readonly suggestion: string | undefined;
  /** Exit code that replaces the one of `code`, in a command that checks. */
  exitCode: 1 | undefined;

  constructor(
    code: ErrorCode,
    message: string,
    details: {
      problems?: readonly Problem[];
      suggestion?: string | undefined;
      cause?: unknown;
    } = {},
  ) {
    super(message, { cause: details.cause });
    this.name = 'UserError';
    this.code = code;
    this.problems = details.problems ?? [];
    this.suggestion = details.suggestion;
  }
}

/** Error for flags or arguments that are not valid. */
export const usageError = (message: string, suggestion?: string, cause?: unknown): UserError =>
  new UserError('usage', message, { suggestion, cause });

/** Problems of an error. An error without any (a file that cannot be read) becomes one problem of `file`. */
export function problemsOf(error: UserError, file: string): readonly Problem[] {
  if (error.problems.length > 0) return error.problems;
  const { message, suggestion } = error;
  return [{ severity: 'error', file, message, ...(suggestion && { suggestion }) }];
}
