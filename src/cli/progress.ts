/** Progress of long tasks on stderr. */

import { stripVTControlCharacters } from 'node:util';
import type { Progress, ProgressDisplay, Steps } from '../base/progress-display.js';
import { printable } from '../base/text/escape.js';
import { formatBytes, formatDuration, formatShare } from '../base/text/units.js';
import type { PlotBlock } from '../report/kit/pictures.js';
import { render } from '../report/render/render.js';
import { renderOptions, writeInterruption } from './output.js';

interface Surroundings {
  readonly stream: Pick<NodeJS.WriteStream, 'isTTY' | 'columns' | 'write'>;
  /** Clock in milliseconds. */
  readonly now: () => number;
}

/** Milliseconds before anything is shown. The periods are those of updates on a terminal and in a log. */
const FIRST_UPDATE = 1000;
const TERMINAL_PERIOD = 100;
const LOG_PERIOD = 10_000;

/**
 * Shows the progress of a task that takes over a second. A terminal gets one updated line that disappears at the end, a
 * log a line every ten seconds, and `--quiet` nothing.
 * @param label `hashing`.
 * @param total Units of the whole task.
 * @param format Format of a number of units; bytes by default.
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
  let next = start + (stream.isTTY ? FIRST_UPDATE : LOG_PERIOD);
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
    // Runs also when Ctrl-C ends the process.
    process.removeListener('exit', end);
    stream.write(CLEAR_LINE);
  };
  return { add, end };
}

/** Progress of a task in several steps, each of which replaces the line of the previous one. */
export function stepProgress(flags: { readonly quiet: boolean }) {
  let current: Progress | undefined;
  /** Ends the last step. Can be repeated. */
  const end = () => current?.end();
  return {
    /** Begins a step, and returns a function to call with each further number of finished units. */
    step: (label: string, total: number) => {
      end();
      current = progress(flags, label, total);
      return current.add;
    },
    end,
    /** Shows a message when the process ends in the middle of the task. */
    stopped: writeInterruption,
  };
}

const CLEAR_TO_THE_END = '\x1b[K';
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
  /** Calls back repeatedly, until the returned function is called. */
  readonly every: (milliseconds: number, call: () => void) => () => void;
  /** Clock in milliseconds. */
  readonly now: () => number;
}

function every(milliseconds: number, call: () => void): () => void {
  const timer = setInterval(call, milliseconds);
  // The timer must not keep the process alive.
  timer.unref();
  return () => clearInterval(timer);
}

/**
 * Shows the current step of a task that takes over a second, and its time: `[2/7] causality … 12 s`. A terminal gets
 * one updated line that disappears at the end, a log a line every ten seconds, and `--quiet` nothing.
 */
export function steps(
  { quiet }: { readonly quiet: boolean },
  { stream, every: repeat, now }: StepSurroundings = {
    stream: process.stderr,
    every,
    now: () => performance.now(),
  },
): Steps {
  if (quiet) return { doing: () => {}, say: () => {}, end: () => {} };
  const start = now();
  let current = '';
  let isShown = false;
  const show = () => {
    if (current === '') return;
    const time = Math.floor((now() - start) / 1000);
    const text = `${current} …${time > 0 ? ` ${formatDuration(time)}` : ''}`;
    if (!stream.isTTY) {
      stream.write(`${text}\n`);
      return;
    }
    if (!isShown) process.once('exit', end);
    isShown = true;
    stream.write(`\r${text.slice(0, (stream.columns || 80) - 1)}${CLEAR_TO_THE_END}`);
  };
  const stop = repeat(stream.isTTY ? FIRST_UPDATE : LOG_PERIOD, show);
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
  /** @param plot Null when there is nothing to draw yet. @param status Progress in one line. */
  readonly show: (plot: PlotBlock | null, status: string) => Promise<void>;
  /** Prints a permanent line. */
  readonly say: (text: string) => void;
  /** Removes the display. Can be repeated. */
  readonly end: () => void;
}

type Stream = Pick<NodeJS.WriteStream, 'isTTY' | 'columns' | 'rows' | 'write' | 'getColorDepth'>;

/** Minimum rows of a useful plot. */
const FEWEST_PLOT_ROWS = 3;
/** Minimum rows of a terminal for a plot: lines that scrolled out of view cannot be redrawn. */
const FEWEST_ROWS = 16;
/** Minimum milliseconds between two drawings. */
const PERIOD = 100;

/**
 * A plot that is redrawn on a terminal with each call and disappears at the end. Without a terminal or enough rows,
 * only the status, as in `steps`.
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
  // Also moves to the first column: a terminal prints `^C` at the cursor.
  const back = () => (height > 0 ? `\r\x1b[${height}A` : '');
  const end = () => {
    if (height === 0) return;
    // Runs also when Ctrl-C ends the process.
    process.removeListener('exit', end);
    stream.write(`${back()}\x1b[J`);
    height = 0;
  };
  const rendered = (plots: readonly PlotBlock[], status: string) => {
    const blocks = [...plots, { kind: 'note', text: status } as const];
    return render({ blocks }, 'table', renderOptions(stream, noColor));
  };
  /** The highest plot that fits with its title, its legend and the status. */
  const fitting = async (plot: PlotBlock | null, status: string) => {
    // The cursor is below the plot, and the shell's last line must stay visible.
    const room = (stream.rows ?? 0) - 2;
    if (plot === null) return rendered([], status);
    const least = await rendered([{ ...plot, mostRows: FEWEST_PLOT_ROWS }], status);
    const free = room - terminalRows(least, stream.columns);
    if (free < 0) return rendered([], status);
    return rendered([{ ...plot, mostRows: FEWEST_PLOT_ROWS + free }], status);
  };
  return {
    async show(plot, status) {
      if (performance.now() < next) return;
      next = performance.now() + PERIOD;
      const text = await fitting(plot, status);
      if (height === 0) process.once('exit', end);
      // Overwrites line by line: some terminals keep cleared screens in the scroll-back.
      stream.write(`${back()}${text.replaceAll('\n', '\x1b[K\n')}\x1b[J`);
      height = terminalRows(text, stream.columns);
    },
    say(line) {
      end();
      stream.write(`${printable(line)}\n`);
    },
    end,
  };
}

/** Rows of the lines on the terminal, where wider lines wrap. */
const terminalRows = (text: string, columns = 80): number =>
  text
    .split('\n')
    .slice(0, -1)
    .reduce((rows, line) => {
      const { length } = stripVTControlCharacters(line);
      return rows + Math.max(1, Math.ceil(length / columns));
    }, 0);
