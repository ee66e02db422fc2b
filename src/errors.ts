/**
 * What can go wrong, and how it is said. A `UserError` is the user's to fix and shows no stack;
 * anything else that is thrown is a bug of ours and keeps its stack.
 */

/** Every reason for which a command ends without its answer, with its exit code. */
export const ERROR_CODES = {
  /** Flags or arguments that make no sense. */
  usage: { exitCode: 2 },
  /** A config that is not valid: see its problems. */
  'invalid-config': { exitCode: 2 },
  /** A file that is refused: too large, of the wrong kind, broken. */
  'refused-file': { exitCode: 2 },
  /** The operating system said no: cannot read, cannot write, disk full. */
  system: { exitCode: 3 },
  /** Ctrl-C. */
  interrupted: { exitCode: 130 },
  /** A bug of ours. */
  bug: { exitCode: 70 },
} as const satisfies Record<string, { exitCode: number }>;

export type ErrorCode = keyof typeof ERROR_CODES;

/** Where in a document a value stands: `['model', 'num_layers']`. */
export type PropertyPath = readonly (string | number)[];

export type Severity = 'error' | 'warning';

/** Something wrong with, or odd about, one place of a user's input. */
export interface Problem {
  readonly severity: Severity;
  /** The file as the user wrote it, `<stdin>`, or `--set` for an override. */
  readonly file: string;
  /** 1-based; absent when the place is no line of a file. */
  readonly line?: number;
  /** 1-based, in characters. */
  readonly column?: number;
  /** `model.num_layers`, or the place in a binary file; absent when the whole is meant. */
  readonly path?: string;
  readonly message: string;
  /** What to do about it. */
  readonly suggestion?: string;
  /** The line of input that is meant, for people to see. */
  readonly excerpt?: string;
  /** The rule of a file format that is broken, by name. */
  readonly rule?: string;
}

/** What is wrong and what to do: the part of a problem that does not depend on where it stands. */
export interface Finding {
  readonly message: string;
  readonly suggestion?: string;
}

/** A check that a schema cannot state, because it relates several values of a document of type `T`. */
export interface Rule<T> {
  readonly severity: Severity;
  /**
   * The dotted paths that it reads. Its problem is shown at the first. It runs only when the document
   * is right at all of them, so it never judges a value that is itself a mistake.
   */
  readonly reads: readonly [string, ...string[]];
  check(document: T): Finding | undefined;
}

/** A key, or a value of a key, that people write by mistake, and what they should write. */
export interface Confusion extends Finding {
  /** Dotted path of the key. */
  readonly path: string;
  /** When given, only this value of the key is the mistake; otherwise the key itself is. */
  readonly value?: string;
}

/** A mistake that the user can mend. Shown without a stack. */
export class UserError extends Error {
  readonly code: ErrorCode;
  readonly problems: readonly Problem[];
  /** What to do, in a sentence. */
  readonly suggestion: string | undefined;

  constructor(
    code: ErrorCode,
    message: string,
    details: { problems?: readonly Problem[]; suggestion?: string; cause?: unknown } = {},
  ) {
    super(message, { cause: details.cause });
    this.name = 'UserError';
    this.code = code;
    this.problems = details.problems ?? [];
    this.suggestion = details.suggestion;
  }
}

/** The problems of an error; one without any (a file that cannot be read) is a problem itself, of `file`. */
export function problemsOf(error: UserError, file: string): readonly Problem[] {
  if (error.problems.length > 0) return error.problems;
  const { message, suggestion } = error;
  return [{ severity: 'error', file, message, ...(suggestion && { suggestion }) }];
}
