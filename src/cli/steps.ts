import { printable } from '../report/kit/cells.js';

/** Steps of a task whose length nobody knows beforehand, told on stderr. */
export interface Steps {
  /** What is being done now. */
  readonly doing: (text: string) => void;
  /** What stays to be read. */
  readonly say: (text: string) => void;
  /** Takes the line away. Safe to call again. */
  readonly end: () => void;
}

interface Surroundings {
  readonly stream: Pick<NodeJS.WriteStream, 'isTTY' | 'columns' | 'write'>;
  /** Calls back time and again, until what it returns is called. */
  readonly every: (milliseconds: number, call: () => void) => () => void;
}

/** Milliseconds: a terminal's line comes after the first of them, lines of a log with every second. */
const PATIENCE = 1000;
const LOG_PERIOD = 10_000;

const CLEAR_TO_THE_END = '\x1b[K';

function every(milliseconds: number, call: () => void): () => void {
  const timer = setInterval(call, milliseconds);
  // It must not keep the process from ending.
  timer.unref();
  return () => clearInterval(timer);
}

/**
 * Shows the step in hand of a task that takes over a second: on a terminal as one line that changes and goes
 * away at the end, else as a line every ten seconds, with `--quiet` not at all.
 */
export function steps(
  { quiet }: { readonly quiet: boolean },
  { stream, every: repeat }: Surroundings = { stream: process.stderr, every },
): Steps {
  if (quiet) return { doing: () => {}, say: () => {}, end: () => {} };
  let current = '';
  let isShown = false;
  const show = () => {
    if (!stream.isTTY) {
      stream.write(`${current} …\n`);
      return;
    }
    if (!isShown) process.once('exit', end);
    isShown = true;
    stream.write(`\r${`${current} …`.slice(0, (stream.columns || 80) - 1)}${CLEAR_TO_THE_END}`);
  };
  const stop = repeat(stream.isTTY ? PATIENCE : LOG_PERIOD, show);
  const end = () => {
    stop();
    process.removeListener('exit', end);
    if (isShown) stream.write(`\r${CLEAR_TO_THE_END}`);
    isShown = false;
  };
  const doing = (text: string) => {
    current = text;
    if (isShown) show();
  };
  const say = (text: string) => {
    const line = `${printable(text)}\n`;
    stream.write(isShown ? `\r${CLEAR_TO_THE_END}${line}` : line);
    if (isShown) show();
  };
  return { doing, say, end };
}
