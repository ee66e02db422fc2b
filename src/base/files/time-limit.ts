/** Calls with a time limit: patterns out of files can take any time, and only a `vm` context can stop a match. */
import vm from 'node:vm';

/** Thrown by a call that took longer than its limit. */
export class TimeLimitExceeded extends Error {
  override name = 'TimeLimitExceeded';
}

const TIMEOUT = 'ERR_SCRIPT_EXECUTION_TIMEOUT';

/** Largest ratio of elapsed time to processor time, on a busy machine. */
const MOST_WAITING = 10;

/** Limit on the processor time from now on. On a busy machine, the elapsed time does not measure the computation. */
export class ProcessorLimit {
  readonly #milliseconds: number;
  readonly #start = performance.now();
  readonly #before = process.cpuUsage();

  constructor(milliseconds: number) {
    this.#milliseconds = milliseconds;
  }

  /** Milliseconds of processor time that are left, at least 1. */
  get left(): number {
    return Math.max(1, Math.ceil(this.#milliseconds - Math.min(this.#used(), this.passed)));
  }

  /** Milliseconds since the beginning. */
  get passed(): number {
    return performance.now() - this.#start;
  }

  isExceeded(): boolean {
    // Other threads run at the same time, so the processor time alone can exceed the elapsed time.
    if (this.passed < this.#milliseconds) return false;
    return this.passed >= MOST_WAITING * this.#milliseconds || this.#used() >= this.#milliseconds;
  }

  #used(): number {
    const { user, system } = process.cpuUsage(this.#before);
    return (user + system) / 1000;
  }
}

const script = new vm.Script('work()');

/** A `vm` context for calls with a limit, made once because making one takes a millisecond. */
export class TimeLimit {
  readonly #context = vm.createContext({ work: undefined });

  /**
   * Result of a call. If the machine was too busy to give the call its processor time, it is repeated with more time.
   * @param milliseconds Limit on the processor time, above 0. It may take ten times as long.
   * @param work Call without effects: it may be stopped, and repeated from the beginning.
   * @throws TimeLimitExceeded, and errors of the call.
   */
  run<Result>(milliseconds: number, work: () => Result): Result {
    const whole = new ProcessorLimit(milliseconds);
    this.#context.work = work;
    try {
      for (let timeout = milliseconds; ; ) {
        const once = new ProcessorLimit(milliseconds);
        try {
          return script.runInContext(this.#context, { timeout });
        } catch (cause) {
          if ((cause as { code?: unknown } | null)?.code !== TIMEOUT) throw cause;
          const left = Math.ceil(MOST_WAITING * milliseconds - whole.passed);
          if (once.isExceeded() || left <= 0) {
            throw new TimeLimitExceeded(`took longer than ${milliseconds} ms`, { cause });
          }
          timeout = Math.min(2 * timeout, left);
        }
      }
    } finally {
      this.#context.work = undefined;
    }
  }
}
