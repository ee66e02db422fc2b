/**
 * Progress of long tasks. A use case gets a display and reports to it; the command line shows it on stderr, and a
 * library may ignore it.
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
  /** The current step. */
  readonly doing: (text: string) => void;
  /** A line that stays. */
  readonly say: (text: string) => void;
  /** Removes the line. Safe to call again. */
  readonly end: () => void;
}

export interface ProgressDisplay {
  /** @param label `hashing`. @param total Bytes. */
  readonly bytes: (label: string, total: number) => Progress;
  readonly steps: () => Steps;
}
