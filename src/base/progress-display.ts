/**
 * Progress of long tasks. A function reports to a display; the CLI shows it on stderr, and library callers may
 * ignore it.
 */

/** A task of known length. */
export interface Progress {
  /** @param more Units done since the last call. */
  readonly add: (more: number) => void;
  /** Removes the line. Safe to call again. */
  readonly end: () => void;
}

/** A task of unknown length, step by step. */
export interface Steps {
  readonly doing: (text: string) => void;
  /** Prints a permanent line. */
  readonly say: (text: string) => void;
  /** Removes the line. Safe to call again. */
  readonly end: () => void;
}

export interface ProgressDisplay {
  /** @param label `hashing`. @param total Bytes. */
  readonly bytes: (label: string, total: number) => Progress;
  readonly steps: () => Steps;
}

const nothing = () => {};

/** Shows nothing. */
export const NO_PROGRESS: ProgressDisplay = {
  bytes: () => ({ add: nothing, end: nothing }),
  steps: () => ({ doing: nothing, say: nothing, end: nothing }),
};
