/**
 * A sweep: values of units, folded in their order. A single run computes each unit when the fold asks for it; in parts the
 * fold reads them from results, so that it is the same code and gives the same answer.
 */
export interface Sweep<Value, Result, Backend = null> {
  readonly units: {
    /** Plural noun: `models`. */
    readonly name: string;
    readonly count: number;
    /** Cost of each unit, in seconds of a slow machine. */
    readonly costs: () => Iterable<number> | Promise<Iterable<number>>;
    /** Influences on the values beyond the files: the list of units. */
    readonly identity: () => unknown;
  };
  /**
   * Predicted peak of the process.
   * @param costs Those of the units.
   */
  readonly memoryBytes: (backend: Backend, costs: readonly number[]) => number;
  /** The engine, where it decides the last bits of the values: it is the same in all parts. */
  readonly backend: {
    readonly here: () => Promise<Backend>;
    /** Flags that choose it, with the number of threads. A plan keeps them. */
    readonly flags: (backend: Backend) => Readonly<Record<string, string | number>>;
    /** Whether a value of a plan is a backend. */
    readonly isBackend: (value: unknown) => value is Backend;
  };
  /**
   * Gives the event loop a turn, so that Ctrl-C ends the process and its lock is rewritten.
   * @throws UserError for a unit that ends a single run.
   */
  readonly compute: (unit: number) => Promise<Value>;
  /** @param value Value of a unit. */
  readonly fold: (value: (unit: number) => Promise<Value>, backend: Backend) => Promise<Result>;
}

/** The backend of values that are the same on every machine. */
export const ANY_BACKEND = {
  here: async () => null,
  flags: () => ({}),
  isBackend: (value: unknown): value is null => value === null,
};

/** The result of a sweep in one process. */
export const solveSweep = async <Value, Result, Backend>({
  backend,
  compute,
  fold,
}: Pick<Sweep<Value, Result, Backend>, 'backend' | 'compute' | 'fold'>): Promise<Result> =>
  fold(compute, await backend.here());
