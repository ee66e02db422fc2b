import type { ChalkInstance } from 'chalk';
import Table from 'cli-table3';
import { printable } from '../../base/text/escape.js';
import { drawDiagram } from '../draw/text-diagram.js';
import { drawHeatMapText } from '../kit/heat-map-text.js';
import { cutMiddle, textWidth, usableWidth, wrap } from '../kit/layout.js';
import type { DiagramBlock, HeatMapPicture, LinePlotBlock, PlotBlock } from '../kit/pictures.js';
import { drawLinePlot, drawPlot } from '../kit/plots.js';
import type {
  Block,
  FactsBlock,
  RenderOptions,
  Report,
  TableBlock,
  Tone,
  Verdict,
} from '../kit/report.js';
import { moreText, shownBlocks } from '../kit/report.js';
import { colours } from './colours.js';

const GAP = '  ';

/** Minimum width of a column with wrapped text. */
const NARROWEST_COLUMN = 10;

/**
 * The report for people at a terminal, within its width, without a final newline: the verdict, the blocks, how to get
 * more, and the next step.
 */
export function renderTable(report: Report, options: RenderOptions): string {
  const width = usableWidth(options.width);
  const chalk = colours(options.colourLevel);
  const verdict = report.verdict && verdictLines(report.verdict, width, chalk, options);
  let text = verdict?.join('\n') ?? '';
  let before: Block['kind'] | 'verdict' | undefined = verdict && 'verdict';
  for (const block of shownBlocks(report, options)) {
    const rendered = renderBlock(block, width, chalk, options).join('\n');
    if (rendered === '') continue;
    text += (before === undefined ? '' : separatorBetween(before, block.kind)) + rendered;
    before = block.kind;
  }
  // The last row of a table may be empty.
  text = [text.trimEnd(), ...footer(report, options, width, chalk)].join('\n');
  const isLong = verdict && text.split('\n').length > (options.height ?? Number.POSITIVE_INFINITY);
  return isLong ? [text, '', ...verdict].join('\n') : text;
}

/** Maximum characters of a line of text on a wide terminal; tables and the verdict take what they need. */
const LONGEST_LINE = 100;

/** Columns for text. Without a terminal it is never wrapped. */
const textColumns = (width: number): number =>
  width === Number.POSITIVE_INFINITY ? width : Math.min(width, LONGEST_LINE);

/** Marks of a verdict, on a terminal with colours and on one that shows only ASCII. */
const MARKS: Readonly<Partial<Record<Tone, readonly [mark: string, ascii: string]>>> = {
  good: ['✓', '+'],
  warning: ['!', '!'],
  bad: ['✗', 'x'],
};

/** The verdict in bold. Only its mark has a colour: no colour of a whole line is legible on every background. */
function verdictLines(
  { text, tone = 'strong' }: Verdict,
  width: number,
  chalk: ChalkInstance,
  { isAscii = false }: Pick<RenderOptions, 'isAscii'>,
): string[] {
  const mark = chalk.level === 0 ? undefined : MARKS[tone]?.[isAscii ? 1 : 0];
  if (mark === undefined) {
    const plain = tone === 'dim' ? tone : 'strong';
    return wrap(printable(text), width, GAP).map((line) => withTone(chalk, plain, line));
  }
  const lines = wrap(printable(text), Math.max(1, width - GAP.length));
  const first = `${withTone(chalk, tone, mark)} `;
  return lines.map((line, index) => (index === 0 ? first : GAP) + chalk.bold(line));
}

/** The next step and how to show more, on one line if both fit. */
function footer(
  report: Report,
  options: RenderOptions,
  width: number,
  chalk: ChalkInstance,
): string[] {
  const more = moreText(report, options);
  const next = report.next === undefined ? '' : printable(`Next: ${report.next}`);
  if (more === '' && next === '') return [];
  const together = [next, more].filter(Boolean).join('    ');
  const most = textColumns(width);
  const lines =
    textWidth(together) <= most ? [together] : [...commandLines(next, most), ...wrap(more, most)];
  return ['', ...lines.filter(Boolean).map((line) => withTone(chalk, 'dim', line))];
}

/**
 * A command that can be pasted: lines end in a backslash, which shells other than those of Windows take as a
 * continuation. A flag stays with its value, and a quoted word in one piece.
 */
function commandLines(command: string, width: number): string[] {
  const isOneLine = textWidth(command) <= width || /['"]/.test(command);
  if (isOneLine || process.platform === 'win32') return [command];
  const lines: string[] = [];
  for (const part of command.split(/ (?=--)/)) {
    const line = lines.at(-1);
    const joined = line === undefined ? part : `${line} ${part}`;
    // Leaves room for the backslash.
    if (line !== undefined && textWidth(joined) + GAP.length > width)
      lines.push(`${GAP}${GAP}${part}`);
    else lines.splice(-1, 1, joined);
  }
  return lines.map((line, index) => (index < lines.length - 1 ? `${line} \\` : line));
}

/** No blank line between notes, between facts, or after a heading or the verdict. */
function separatorBetween(before: Block['kind'] | 'verdict', kind: Block['kind']): string {
  const isTogether =
    before === 'heading' ||
    (before === kind && !['table', 'plot', 'line plot', 'heat map'].includes(kind)) ||
    (before === 'verdict' && (kind === 'note' || kind === 'facts')) ||
    (before === 'facts' && kind === 'note');
  return isTogether ? '\n' : '\n\n';
}

function renderBlock(
  block: Block,
  width: number,
  chalk: ChalkInstance,
  { isAscii }: Pick<RenderOptions, 'isAscii'>,
): string[] {
  if (block.kind === 'table') return renderGrid(block, width, chalk);
  if (block.kind === 'facts') return factLines(block, textColumns(width), chalk);
  if (isDrawn(block)) {
    const lines = drawnLines(block, width, isAscii);
    return lines.map((line) => line.map(({ text, tone }) => withTone(chalk, tone, text)).join(''));
  }
  const tone = block.tone ?? (block.kind === 'heading' ? 'strong' : 'plain');
  return wrap(printable(block.text), textColumns(width)).map((line) => withTone(chalk, tone, line));
}

type DrawnBlock = PlotBlock | LinePlotBlock | HeatMapPicture | DiagramBlock;

const isDrawn = (block: Block): block is DrawnBlock =>
  ['plot', 'line plot', 'heat map', 'diagram'].includes(block.kind);

/** Lines of a picture that a terminal can show. */
function drawnLines(block: DrawnBlock, width: number, isAscii: boolean | undefined) {
  switch (block.kind) {
    case 'plot':
      return drawPlot(block, width);
    case 'line plot':
      return drawLinePlot(block, width, isAscii);
    case 'heat map':
      return drawHeatMapText(block, width, isAscii);
    case 'diagram':
      return drawDiagram(block, width, isAscii);
  }
}

/** Names in a column of their own; texts wrap within theirs. */
function factLines({ facts }: FactsBlock, width: number, chalk: ChalkInstance): string[] {
  const widest = Math.max(...facts.map(({ name }) => textWidth(printable(name))));
  return facts.flatMap(({ name, text, tone = 'plain' }) => {
    const label = `${GAP}${printable(name)}`;
    const indent = ' '.repeat(GAP.length + widest + GAP.length);
    const [first = '', ...others] = wrap(
      label + ' '.repeat(indent.length - textWidth(label)) + printable(text),
      width,
      indent,
    );
    const own = Math.min(first.length, indent.length);
    const drawn = chalk.dim(first.slice(0, own)) + withTone(chalk, tone, first.slice(own));
    return [drawn, ...others.map((line) => withTone(chalk, tone, line))];
  });
}

/** A text with its colour, in a row of a table. */
interface Item {
  readonly text: string;
  readonly tone: Tone;
}

function renderGrid(block: TableBlock, width: number, chalk: ChalkInstance): string[] {
  const head = block.columns.map(({ title }) => item(title, 'strong'));
  const rows = block.rows.map((row) =>
    block.columns.map((_, index) => item(row[index]?.text ?? '', row[index]?.tone)),
  );
  const widths = columnWidths(block, [head, ...rows], width);
  if (widths === undefined && block.narrower) return renderGrid(block.narrower, width, chalk);
  if (widths === undefined) return records(head, rows, width, chalk);
  const lines = gridLines(block, head, rows, widths, chalk);
  // The layout library underestimates the width of some new emoji.
  const fits = lines.every((line) => textWidth(line) <= width);
  return fits ? lines : records(head, rows, width, chalk);
}

function item(text: string, tone: Tone = 'plain'): Item {
  return { text: printable(text).trimEnd(), tone };
}

/** The columns' widths that limit the table to `width`; undefined when impossible. */
function columnWidths(
  { columns }: TableBlock,
  rows: readonly (readonly Item[])[],
  width: number,
): number[] | undefined {
  const widths = columns.map((_, index) =>
    rows.reduce((widest, row) => Math.max(widest, textWidth(row[index]?.text ?? '')), 1),
  );
  const room = width - GAP.length * (columns.length - 1);
  for (;;) {
    if (widths.reduce((sum, each) => sum + each, 0) <= room) return widths;
    const widest = columns.reduce<number | undefined>((best, { wrap, cut }, index) => {
      const size = wrap || cut ? (widths[index] ?? 0) : 0;
      return size > (best === undefined ? NARROWEST_COLUMN : (widths[best] ?? 0)) ? index : best;
    }, undefined);
    if (widest === undefined) return undefined;
    widths[widest] = Math.max(NARROWEST_COLUMN, Math.min(room, (widths[widest] ?? 0) - 1));
  }
}

/** Maximum rows for the layout library, which takes seconds for the number of tensors that a file can have. */
const MOST_LAID_OUT = 256;

function gridLines(
  { columns }: TableBlock,
  head: readonly Item[],
  rows: readonly (readonly Item[])[],
  widths: readonly number[],
  chalk: ChalkInstance,
): string[] {
  const rule = widths.map((width) => chalk.dim('─'.repeat(width)));
  const linesOf = (row: readonly Item[]): string[][] => {
    const cells = row.map(({ text, tone }, index) => {
      const width = widths[index] ?? 0;
      const shown = columns[index]?.cut ? [cutMiddle(text, width)] : wrap(text, width);
      return shown.map((line) => {
        const padding = ' '.repeat(Math.max(0, width - textWidth(line)));
        const drawn = withTone(chalk, tone, line);
        return columns[index]?.align === 'right' ? padding + drawn : drawn + padding;
      });
    });
    // One row per line: the library processes all text of a cell for each of its lines.
    const height = Math.max(...cells.map((lines) => lines.length));
    return Array.from({ length: height }, (_, line) =>
      cells.map((lines, index) => lines[line] ?? ' '.repeat(widths[index] ?? 0)),
    );
  };
  const grid = new Table({
    chars: BORDERLESS,
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0, compact: true },
  });
  grid.push(...linesOf(head), rule, ...rows.slice(0, MOST_LAID_OUT).flatMap(linesOf));
  const others = rows.slice(MOST_LAID_OUT).flatMap(linesOf);
  const lines = [...grid.toString().split('\n'), ...others.map((row) => row.join(GAP))];
  return lines.map((line) => line.trimEnd());
}

const BORDERLESS = {
  top: '',
  'top-mid': '',
  'top-left': '',
  'top-right': '',
  bottom: '',
  'bottom-mid': '',
  'bottom-left': '',
  'bottom-right': '',
  left: '',
  'left-mid': '',
  mid: '',
  'mid-mid': '',
  right: '',
  'right-mid': '',
  middle: GAP,
} as const;

/** Replacement for a table that does not fit: each row as lines of `title: value`, a blank line between rows. */
function records(
  head: readonly Item[],
  rows: readonly (readonly Item[])[],
  width: number,
  chalk: ChalkInstance,
): string[] {
  return rows.flatMap((row, number) => [
    ...(number === 0 ? [] : ['']),
    ...row.flatMap(({ text, tone }, index) =>
      wrap(`${head[index]?.text.trim()}: ${text.trim()}`, width, GAP).map((line) =>
        withTone(chalk, tone, line),
      ),
    ),
  ]);
}

const TONES = {
  plain: (_, text) => text,
  dim: (chalk, text) => chalk.dim(text),
  strong: (chalk, text) => chalk.bold(text),
  good: (chalk, text) => chalk.green(text),
  bad: (chalk, text) => chalk.red(text),
  // Yellow is illegible on white; compilers show warnings in magenta too.
  warning: (chalk, text) => chalk.magenta(text),
  hue1: (chalk, text) => chalk.cyan(text),
  hue2: (chalk, text) => chalk.magenta(text),
  hue3: (chalk, text) => chalk.red(text),
  hue4: (chalk, text) => chalk.blueBright(text),
  hue5: (chalk, text) => chalk.green(text),
} as const satisfies Record<Tone, (chalk: ChalkInstance, text: string) => string>;

export function withTone(chalk: ChalkInstance, tone: Tone, text: string): string {
  return TONES[tone](chalk, text);
}
