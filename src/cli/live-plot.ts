import { render } from '../report/render.js';
import type { PlotBlock } from '../report/report.js';
import { steps } from './steps.js';
import { renderOptions } from './terminal.js';

/** How a long computation goes, told on stderr. */
export interface LivePlot {
  /** @param plot Null where there is nothing to draw yet. @param status How far it is, in one line. */
  readonly show: (plot: PlotBlock | null, status: string) => Promise<void>;
  /** Takes it away. Safe to call again. */
  readonly end: () => void;
}

type Stream = Pick<NodeJS.WriteStream, 'isTTY' | 'columns' | 'rows' | 'write' | 'getColorDepth'>;

/** Rows of a terminal that are not the plot's: title, axis, legend, status, and where the cursor stands. */
const OTHER_ROWS = 9;
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
    return { show: async (_, status) => line.doing(status), end: line.end };
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
  return {
    async show(plot, status) {
      if (performance.now() < next) return;
      next = performance.now() + PERIOD;
      const fitting = plot ? [{ ...plot, mostRows: (stream.rows ?? 0) - OTHER_ROWS }] : [];
      const blocks = [...fitting, { kind: 'note', text: status } as const];
      const text = await render({ blocks }, 'table', renderOptions(stream, noColor));
      if (height === 0) process.once('exit', end);
      // Line by line over what was there: some terminals keep what is cleared as a whole among what was scrolled away.
      stream.write(`${back()}${text.replaceAll('\n', '\x1b[K\n')}\x1b[J`);
      height = text.split('\n').length - 1;
    },
    end,
  };
}
