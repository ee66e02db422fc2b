import { formatBytes, formatDuration, formatShare } from '../report/kit/units.js';

/** What takes its time, told on stderr. */
export interface Progress {
  /** So many more are done. */
  readonly add: (more: number) => void;
  /** Takes the line away. Safe to call again. */
  readonly end: () => void;
}

interface Surroundings {
  readonly stream: Pick<NodeJS.WriteStream, 'isTTY' | 'columns' | 'write'>;
  /** Milliseconds that pass. */
  readonly now: () => number;
}

/** Milliseconds: what is done sooner shows nothing; a terminal's line and a log's lines come so often. */
const PATIENCE = 1000;
const TERMINAL_PERIOD = 100;
const LOG_PERIOD = 10_000;

/**
 * Shows how far a task is that takes over a second: on a terminal as one line that changes and goes away
 * at the end, else as a line every ten seconds, with `--quiet` not at all.
 * @param label What is being done: `hashing`.
 * @param total When so many are done the task is.
 * @param format How to say how many: bytes, unless something else is counted.
 */
export function progress(
  { quiet }: { readonly quiet: boolean },
  label: string,
  total: number,
  { stream, now }: Surroundings = { stream: process.stderr, now: () => performance.now() },
  format: (number: number) => string = formatBytes,
): Progress {
  if (quiet) return { add: () => {}, end: () => {} };
  const start = now();
  let done = 0;
  let next = start + (stream.isTTY ? PATIENCE : LOG_PERIOD);
  let isShown = false;

  const add = (more: number) => {
    done += more;
    const time = now();
    if (time < next) return;
    const text = progressText(label, { done, total, format }, (time - start) / 1000);
    if (stream.isTTY) {
      if (!isShown) process.once('exit', end);
      stream.write(`\r${text.slice(0, (stream.columns || 80) - 1)}${CLEAR_TO_THE_END}`);
      isShown = true;
      next = time + TERMINAL_PERIOD;
    } else {
      stream.write(`${text}\n`);
      next = time + LOG_PERIOD;
    }
  };
  const end = () => {
    if (!isShown) return;
    isShown = false;
    // Also when Ctrl-C ends the process.
    process.removeListener('exit', end);
    stream.write(CLEAR_LINE);
  };
  return { add, end };
}

/** Progress of a task in several steps, each of which takes the line of the one before. */
export function stepProgress(flags: { readonly quiet: boolean }) {
  let current: Progress | undefined;
  /** Ends the last step. Safe to call again. */
  const end = () => current?.end();
  return {
    /** Begins a step, and returns what is called with each further number that is done. */
    step: (label: string, total: number) => {
      end();
      current = progress(flags, label, total);
      return current.add;
    },
    end,
    /** Shows a message when the process ends in the middle of the task. */
    stopped: (message: string) => {
      const line = process.stderr.isTTY ? CLEAR_LINE : '';
      process.stderr.write(`${line}stopped: ${message}\n`);
    },
  };
}

const CLEAR_TO_THE_END = '\x1b[K';
/** Takes away what stands in a terminal's line. */
const CLEAR_LINE = `\r${CLEAR_TO_THE_END}`;

interface Count {
  readonly done: number;
  readonly total: number;
  readonly format: (number: number) => string;
}

function progressText(label: string, { done, total, format }: Count, seconds: number): string {
  const rate = done / seconds;
  return [
    `${label}: ${format(done)} of ${format(total)} (${formatShare(done, total)})`,
    `${format(Math.round(rate))}/s`,
    ...(rate > 0 ? [`${formatDuration(Math.max(0, total - done) / rate)} left`] : []),
  ].join(', ');
}
