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

/** A terminal with fewer rows has no place for a plot, and what is scrolled away cannot be drawn again. */
const FEWEST_ROWS = 34;
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
  const erase = () => (height > 0 ? `\x1b[${height}A\x1b[J` : '');
  const end = () => {
    if (height === 0) return;
    // Also when Ctrl-C ends the process.
    process.removeListener('exit', end);
    stream.write(erase());
    height = 0;
  };
  return {
    async show(plot, status) {
      if (performance.now() < next) return;
      next = performance.now() + PERIOD;
      const blocks = [...(plot ? [plot] : []), { kind: 'note', text: status } as const];
      const text = await render({ blocks }, 'table', renderOptions(stream, noColor));
      if (height === 0) process.once('exit', end);
      stream.write(erase() + text);
      height = text.split('\n').length - 1;
    },
    end,
  };
}
