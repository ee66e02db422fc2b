import { markdownTable } from 'markdown-table';
import { printable } from '../../base/text/escape.js';
import { mermaidDiagram } from '../draw/mermaid-diagram.js';
import { drawHeatMapText } from '../kit/heat-map-text.js';
import { textWidth } from '../kit/layout.js';
import type { HeatMapPicture, LinePlotBlock, PlotBlock } from '../kit/pictures.js';
import { drawLinePlot, drawPlot } from '../kit/plots.js';
import type {
  Block,
  FactsBlock,
  RenderOptions,
  Report,
  TableBlock,
  TextBlock,
} from '../kit/report.js';
import { shownBlocks } from '../kit/report.js';

/** GitHub's Markdown, without a final newline. */
export function renderMarkdown(
  report: Report,
  options: Pick<RenderOptions, 'details'> = {},
): string {
  const { verdict, next } = report;
  return [
    verdict ? `## ${inline(verdict.text)}`.trimEnd() : '',
    ...shownBlocks(report, options).map(markdownBlock),
    next === undefined ? '' : `Next: ${codeSpan(next)}`,
  ]
    .filter(Boolean)
    .join('\n\n');
}

/** A command as code, which shows it literally. */
function codeSpan(text: string): string {
  const shown = printable(text);
  const runs = shown.match(/`+/g)?.map((run) => run.length) ?? [];
  const fence = '`'.repeat(Math.max(0, ...runs) + 1);
  return runs.length === 0 ? fence + shown + fence : `${fence} ${shown} ${fence}`;
}

const BLOCKS = {
  heading: (block) => `## ${inline(block.text)}`.trimEnd(),
  note: (block) => paragraph(block.text),
} as const satisfies Record<string, (block: TextBlock) => string>;

function markdownBlock(block: Block): string {
  if (block.kind === 'plot' || block.kind === 'line plot' || block.kind === 'heat map') {
    return plot(block);
  }
  if (block.kind === 'diagram') return `\`\`\`mermaid\n${mermaidDiagram(block)}\n\`\`\``;
  if (block.kind === 'facts') return facts(block);
  return block.kind === 'table' ? table(block) : BLOCKS[block.kind](block);
}

const facts = ({ facts: all }: FactsBlock) =>
  all.map(({ name, text }) => `- **${inline(name)}**: ${inline(text)}`).join('\n');

/** A plot as a code block. */
function plot(block: PlotBlock | LinePlotBlock | HeatMapPicture): string {
  const drawn =
    block.kind === 'plot'
      ? drawPlot(block)
      : block.kind === 'heat map'
        ? drawHeatMapText(block)
        : drawLinePlot(block);
  const lines = drawn.map((line) => line.map(({ text }) => text).join(''));
  return ['```text', ...lines, '```'].join('\n');
}

function table({ columns, rows }: TableBlock): string {
  const head = columns.map(({ title }) => inline(title));
  const body = rows.map((row) => columns.map((_, index) => inline(row[index]?.text ?? '')));
  return markdownTable([head, ...body], {
    align: columns.map(({ align }) => (align === 'right' ? 'r' : null)),
    stringLength: textWidth,
  });
}

/** Text of a paragraph, whose beginning cannot be read as a list, a quote or a rule. */
function paragraph(text: string): string {
  return inline(text)
    .replace(/^[-+=:]/, '\\$&')
    .replace(/^(\d+)([.)])(?=\s|$)/, '$1\\$2');
}

/** Text that Markdown shows literally: without markup, HTML, links, images, formulas or cell boundaries. */
function inline(text: string): string {
  return printable(text)
    .trim()
    .replace(/[\\`*[\]|~#$]/g, '\\$&')
    .replace(/[&<>]/g, (character) => ENTITIES[character as keyof typeof ENTITIES])
    .replace(/_+/g, escapeUnderscores)
    .replace(/[.:@]/g, breakLink);
}

const ENTITIES = { '&': '&amp;', '<': '&lt;', '>': '&gt;' } as const;

/** Escapes underscores, except within a word such as `srte_parameters`, where they are not emphasis. */
function escapeUnderscores(run: string, offset: number, text: string): string {
  const isWithinWord =
    /[\p{L}\p{N}]$/u.test(text.slice(Math.max(0, offset - 2), offset)) &&
    /^[\p{L}\p{N}]/u.test(text.slice(offset + run.length, offset + run.length + 2));
  return isWithinWord ? run : run.replaceAll('_', '\\_');
}

/** Escapes bare addresses, which GitHub links: `https://…`, `www.…`, `someone@…`. */
function breakLink(character: string, offset: number, text: string): string {
  const isLink =
    character === '@' ||
    (character === ':' && text[offset + 1] === '/') ||
    (character === '.' && /www$/i.test(text.slice(Math.max(0, offset - 3), offset)));
  return isLink ? `\\${character}` : character;
}
