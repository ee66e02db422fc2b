/** A report as a page: the answer, its pictures, its tables, and folded what `--details` and `--explain` add. */
import { setting } from '../../base/text/setting.js';
import type { Picture } from '../kit/pictures.js';
import type {
  Block,
  FactsBlock,
  RenderOptions,
  Report,
  ReportSource,
  TextBlock,
  Tone,
  Verdict,
} from '../kit/report.js';
import { mainPictures } from '../kit/report.js';
import { htmlTable } from './html-table.js';
import { type Child, element, fragment, LINE_BREAK, type Markup } from './markup.js';
import { pageText } from './page/page.js';
import { figure } from './picture/figure.js';

const UNKNOWN: ReportSource = { command: 'minimind', version: '', json: ['null'] };

/** The page, without a final newline. */
export async function renderHtml(report: Report, options: RenderOptions): Promise<string> {
  const source = options.source ?? UNKNOWN;
  return pageText({
    title: report.verdict?.text ?? source.command,
    content: reportContent(report, source, options.details ?? false),
    source,
  });
}

function reportContent(report: Report, source: ReportSource, isOpen: boolean): Child {
  const { verdict, derivations, next } = report;
  const pictures = mainPictures(report);
  const [main, ...others] = pictures;
  // A plot among the blocks that is the main picture is shown once.
  const isElsewhere = (block: Block) => (pictures as readonly unknown[]).includes(block);
  const [blocks, details] = [report.blocks, report.details ?? []].map((each) =>
    each.filter((block) => !isElsewhere(block)),
  ) as [Block[], Block[]];
  const isIntroduction = ({ kind }: Block) => kind === 'facts' || kind === 'note';
  const first = blocks.findIndex((block) => !isIntroduction(block));
  const end = first < 0 ? blocks.length : first;
  return fragment(
    heading(verdict ?? { text: source.command }),
    introduction(blocks.slice(0, end), main),
    partsMarkup(blocks.slice(end), 2),
    others.length > 0 && [
      element('h2', {}, others.length === 1 ? 'Another picture' : 'More pictures'),
      element('div', { class: 'pictures' }, others.map(figure)),
    ],
    folded('Details', details, isOpen),
    folded('Derivations', derivations?.() ?? [], false),
    next !== undefined &&
      element(
        'section',
        {},
        element('h2', {}, 'Next'),
        element('pre', {}, element('code', {}, next)),
      ),
    moreParagraph(report),
  );
}

/** The facts, and on a wide screen the main picture at their side. */
function introduction(facts: readonly Block[], main: Picture | undefined): Child {
  const markup = blocksMarkup(facts, 2);
  if (main === undefined || facts.length === 0) return [markup, main && figure(main)];
  return element('div', { class: 'introduction' }, element('div', {}, markup), figure(main));
}

/** Marks of a verdict. */
const MARKS: Readonly<Partial<Record<Tone, string>>> = { good: '✓', warning: '!', bad: '✗' };

function heading({ text, tone = 'plain' }: Verdict): Markup {
  const mark = MARKS[tone];
  return element(
    'h1',
    {},
    mark !== undefined && [element('span', { class: tone, 'aria-hidden': 'true' }, mark), ' '],
    text,
  );
}

function folded(title: string, blocks: readonly Block[], isOpen: boolean): Child {
  if (blocks.length === 0) return null;
  return element(
    'details',
    { open: isOpen },
    element('summary', {}, element('h2', {}, title)),
    partsMarkup(blocks, 3),
  );
}

/** Settings whose additions are not in the page. */
function moreParagraph({ more = [], derivations }: Report): Child {
  const others = more.filter((name) => name !== 'explain' || derivations === undefined);
  if (others.length === 0) return null;
  const names = others.map((name, index) => [
    index > 0 && ', ',
    element('code', {}, setting(name)),
  ]);
  return element('p', { class: 'dim' }, 'More with ', names);
}

/**
 * A part for each heading, and one for the blocks before the first. On a wide screen, narrow parts are side by side.
 * @param level Level of the headings.
 */
function partsMarkup(blocks: readonly Block[], level: 2 | 3): Child {
  const starts = blocks.flatMap(({ kind }, index) =>
    index === 0 || kind === 'heading' ? [index] : [],
  );
  const parts = starts.map((start, index) => blocks.slice(start, starts[index + 1]));
  return element(
    'div',
    { class: 'parts' },
    parts.map((part) => element('div', {}, blocksMarkup(part, level))),
  );
}

/** @param level Level of the headings. */
function blocksMarkup(blocks: readonly Block[], level: 2 | 3): Child {
  let label = 'Answer';
  return blocks.map((block, index) => {
    if (block.kind === 'heading') label = block.text;
    if (!isCode(block)) return blockMarkup(block, level, label);
    // Lines of code in a row are one piece of code.
    return isCode(blocks[index - 1]) ? null : codeMarkup(blocks.slice(index));
  });
}

const isCode = (block: Block | undefined): block is TextBlock =>
  block?.kind === 'note' && block.isCode === true;

function codeMarkup(blocks: readonly Block[]): Markup {
  const end = blocks.findIndex((block) => !isCode(block));
  const lines = blocks.slice(0, end < 0 ? blocks.length : end).filter(isCode);
  return element(
    'pre',
    { tabindex: 0 },
    element(
      'code',
      {},
      lines.map(({ text }) => [text, LINE_BREAK]),
    ),
  );
}

function blockMarkup(block: Block, level: 2 | 3, label: string): Child {
  switch (block.kind) {
    case 'heading':
      return element(`h${level}`, {}, block.text);
    case 'note':
      return element('p', toneClass(block.tone), block.text);
    case 'facts':
      return factList(block);
    case 'table':
      return htmlTable(block, label);
    case 'plot':
    case 'line plot':
    case 'heat map':
    case 'diagram':
      return figure(block);
  }
}

const factList = ({ facts }: FactsBlock) =>
  element(
    'dl',
    {},
    facts.map(({ name, text, tone }) => [
      element('dt', {}, name),
      element('dd', toneClass(tone), text),
    ]),
  );

export const toneClass = (tone: Tone | undefined) => ({
  class: tone === undefined || tone === 'plain' ? undefined : tone,
});
