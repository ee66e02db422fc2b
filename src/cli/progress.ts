/** Progress of long tasks on stderr. */

import { stripVTControlCharacters } from 'node:util';
import type { Progress, ProgressDisplay, Steps } from '../progress-display.js';
import type { PlotBlock } from '../report/kit/report.js';
import { render } from '../report/render/render.js';
import { printable } from '../text/escape.js';
import { formatBytes, formatDuration, formatShare } from '../text/units.js';
import { renderOptions } from './output.js';

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
 * @param label `hashing`.
 * @param total Units of the whole task.
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
/** Clears the line of a terminal. */
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

interface StepSurroundings {
  readonly stream: Pick<NodeJS.WriteStream, 'isTTY' | 'columns' | 'write'>;
  /** Calls back time and again, until what it returns is called. */
  readonly every: (milliseconds: number, call: () => void) => () => void;
}

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
  { stream, every: repeat }: StepSurroundings = { stream: process.stderr, every },
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

/** The display for use cases, on stderr. */
export const progressDisplay = (flags: { readonly quiet: boolean }): ProgressDisplay => ({
  bytes: (label, total) => progress(flags, label, total),
  steps: () => steps(flags),
});

/** Progress of a long computation on stderr. */
export interface LivePlot {
  /** @param plot Null where there is nothing to draw yet. @param status How far it is, in one line. */
  readonly show: (plot: PlotBlock | null, status: string) => Promise<void>;
  /** A line that stays to be read. */
  readonly say: (text: string) => void;
  /** Takes it away. Safe to call again. */
  readonly end: () => void;
}

type Stream = Pick<NodeJS.WriteStream, 'isTTY' | 'columns' | 'rows' | 'write' | 'getColorDepth'>;

/** A plot of fewer rows shows nothing. */
const FEWEST_PLOT_ROWS = 3;
/** A lower terminal has no place for a plot, and what is scrolled away cannot be drawn again. */
const FEWEST_ROWS = 16;
/** Milliseconds between two drawings at least. */
const PERIOD = 100;

/**
 * On a terminal a plot that is drawn again with each call and goes away at the end; where that has no room for one,
 * or is none, the status alone, as `steps` shows it.
 */
export function livePlot(
  { quiet, noColor }: { readonly quiet: boolean; readonly noColor: boolean },
  stream: Stream = process.stderr,
): LivePlot {
  if (quiet || !stream.isTTY || (stream.rows ?? 0) < FEWEST_ROWS) {
    const line = steps({ quiet });
    return { show: async (_, status) => line.doing(status), say: line.say, end: line.end };
  }
  let height = 0;
  let next = 0;
  // To the first column as well: a terminal shows Ctrl-C as `^C` where the cursor stands.
  const back = () => (height > 0 ? `\r\x1b[${height}A` : '');
  const end = () => {
    if (height === 0) return;
    // Also when Ctrl-C ends the process.
    process.removeListener('exit', end);
    stream.write(`${back()}\x1b[J`);
    height = 0;
  };
  const rendered = (plots: readonly PlotBlock[], status: string) => {
    const blocks = [...plots, { kind: 'note', text: status } as const];
    return render({ blocks }, 'table', renderOptions(stream, noColor));
  };
  /** As high a plot as there is room for, which its title, its legend and the status take in as many rows as they need. */
  const fitting = async (plot: PlotBlock | null, status: string) => {
    // The cursor stands below, and what a shell has written above stays.
    const room = (stream.rows ?? 0) - 2;
    if (plot === null) return rendered([], status);
    const least = await rendered([{ ...plot, mostRows: FEWEST_PLOT_ROWS }], status);
    const free = room - rowsOf(least, stream.columns);
    if (free < 0) return rendered([], status);
    return rendered([{ ...plot, mostRows: FEWEST_PLOT_ROWS + free }], status);
  };
  return {
    async show(plot, status) {
      if (performance.now() < next) return;
      next = performance.now() + PERIOD;
      const text = await fitting(plot, status);
      if (height === 0) process.once('exit', end);
      // Line by line over what was there: some terminals keep what is cleared as a whole among what was scrolled away.
      stream.write(`${back()}${text.replaceAll('\n', '\x1b[K\n')}\x1b[J`);
      height = rowsOf(text, stream.columns);
    },
    say(line) {
      end();
      stream.write(`${printable(line)}\n`);
    },
    end,
  };
}

/** Rows that lines take: one that is wider than the terminal goes on in the next. */
const rowsOf = (text: string, columns = 80): number =>
  text
    .split('\n')
    .slice(0, -1)
    .reduce((rows, line) => {
      const { length } = stripVTControlCharacters(line);
      return rows + Math.max(1, Math.ceil(length / columns));
    }, 0);
