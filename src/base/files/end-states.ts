/** State shared by the main thread and the thread that watches the end of the program. */

/** An output that is built in a staging folder. */
interface StagedOutput {
  /** The path as the user wrote it. */
  readonly target: string;
  readonly kind: 'file' | 'folder';
  /** Absolute path. */
  readonly file: string;
}

/** Files to remove, as data, so that either thread can do it. */
export type Leftover =
  | { readonly kind: 'file' | 'folder'; readonly path: string }
  /** A lock, removed while it has this text. */
  | { readonly kind: 'lock'; readonly path: string; readonly text: string }
  /** The staging folder of an output. */
  | { readonly kind: 'staging'; readonly place: StagedOutput }
  /** A child process. */
  | { readonly kind: 'process'; readonly pid: number };

/** Effect of Ctrl-C. */
export const CTRL_C = {
  /** Ends the program, also where a task is asked to end before. */
  ends: 0,
  /** Asks a task to end, and only the next Ctrl-C ends the program. */
  asks: 1,
} as const;

/** Positions in the memory that the threads share. */
export const SHARED = {
  /** A value of `CTRL_C`. */
  ctrlC: 0,
  /** Number of signals that the main thread has handled. */
  handled: 1,
  /** 1 while the main thread has no listeners of its own. */
  isPassedOn: 2,
} as const;

/** A message to the thread: the number of a leftover, and the leftover, or null when it is gone. */
export type LeftoverMessage = readonly [number, Leftover | null];

/** A message from the thread: first whether it receives signals, then each that it passes on. */
export type EndThreadMessage = boolean | EndSignal;

export interface EndThreadOptions {
  readonly leftovers: readonly (readonly [number, Leftover])[];
  readonly shared: Int32Array;
}

/** Signals that end the program, with their numbers. */
export const SIGNALS = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 } as const;

export type EndSignal = keyof typeof SIGNALS;
