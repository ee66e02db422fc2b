/** Calls with a time limit: patterns out of files can take any time, and only a `vm` context can stop a match. */
import vm from 'node:vm';

/** Thrown by a call that took longer than its limit. */
export class TimeLimitExceeded extends Error {
  override name = 'TimeLimitExceeded';
}

const TIMEOUT = 'ERR_SCRIPT_EXECUTION_TIMEOUT';

const script = new vm.Script('work()');

/** A context of its own, which is made once: making one takes a millisecond. */
export class TimeLimit {
  readonly #context = vm.createContext({ work: undefined });

  /**
   * Result of a call.
   * @param milliseconds Limit, above 0.
   * @throws TimeLimitExceeded, and errors of the call.
   */
  run<Result>(milliseconds: number, work: () => Result): Result {
    this.#context.work = work;
    try {
      return script.runInContext(this.#context, { timeout: milliseconds });
    } catch (cause) {
      if ((cause as { code?: unknown } | null)?.code !== TIMEOUT) throw cause;
      throw new TimeLimitExceeded(`took longer than ${milliseconds} ms`, { cause });
    } finally {
      this.#context.work = undefined;
    }
  }
}
