import { stripVTControlCharacters } from 'node:util';
import type { PlotBlock } from '../report/kit/report.js';
import { render } from '../report/render/render.js';
import { printable } from '../text/escape.js';
import { steps } from './progress.js';
import { renderOptions } from './terminal.js';

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
