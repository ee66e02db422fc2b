/**
 * A diagram in terminal columns. The stream of values is a line at the left, boxes are marks on it, and branches
 * leave it and join it again: `├─╮` … `⊕─╯`.
 */
import { printable } from '../../base/text/escape.js';
import type { DiagramNode } from '../../model/diagram/diagram.js';
import { cutMiddle, textWidth, wrap } from '../kit/layout.js';
import type { DiagramBlock } from '../kit/pictures.js';
import type { Tone } from '../kit/tones.js';
import {
  CHANGE_MARKS,
  edgeText,
  flopsText,
  groupFigures,
  groupTitle,
  hasNewShape,
  INPUT_TEXT,
  type LinkNumbers,
  linkNumbers,
  outputText,
  parametersText,
  repeatedGroups,
  tensorTexts,
  toneOf,
} from './diagram-words.js';

export interface Span {
  readonly text: string;
  readonly tone: Tone;
}

type Line = readonly Span[];

/** Columns of a diagram on a wide terminal, and without one. */
const WIDEST = 110;

/** Columns of a branch below which branches are drawn below each other. */
const NARROWEST_BRANCH = 16;

const COLUMNS = { parameters: 8, flops: 14 } as const;

/** ASCII for each character of the drawing. */
const ASCII: Readonly<Record<string, string>> = {
  '│': '|',
  '─': '-',
  '├': '+',
  '┬': '+',
  '┴': '+',
  '╮': '+',
  '╯': '+',
  '╭': '+',
  '╰': '+',
  '■': '#',
  '▼': 'v',
  '○': 'o',
  '⊕': '(+)',
  '●': '*',
  '←': '<-',
  '→': '->',
  '×': 'x',
  '·': '.',
  '–': '-',
  '−': '-',
  σ: 'sigmoid',
  '²': '^2',
  '±': '+-',
};

/** Lines of a diagram within `width` columns. */
export function drawDiagram(block: DiagramBlock, width: number, isAscii = false): Line[] {
  const columns = Math.min(width, WIDEST);
  const { root, shared } = block.diagram;
  const drawing = new Drawing(linkNumbers(block), repeatedGroups(block), block.hasTensors ?? false);
  const lines = block.isPart
    ? drawing.node(root, columns)
    : [
        [{ text: '▼ ', tone: 'plain' as const }, dim(INPUT_TEXT)],
        ...drawing.node(root, columns),
        [{ text: '▼ ', tone: 'plain' as const }, dim(outputText(root.width))],
      ];
  if (shared.length > 0) {
    lines.push([], [dim('Used by several blocks, stored once:')]);
    for (const each of shared) lines.push(...drawing.node(each, columns));
  }
  const ended = lines.map(withoutTrailing);
  return isAscii
    ? ended.map((line) => line.map(({ text, tone }) => ({ text: inAscii(text), tone })))
    : ended;
}

const inAscii = (text: string) =>
  text.replace(/[^\n -~]/gu, (character) => ASCII[character] ?? '?');

const dim = (text: string): Span => ({ text, tone: 'dim' });
const plainSpan = (text: string): Span => ({ text, tone: 'plain' });

const lineWidth = (line: Line) => line.reduce((sum, { text }) => sum + textWidth(text), 0);

const padded = (line: Line, width: number): Line => {
  const missing = width - lineWidth(line);
  return missing > 0 ? [...line, plainSpan(' '.repeat(missing))] : line;
};

function withoutTrailing(line: Line): Line {
  const spans = [...line];
  while (spans.length > 0) {
    const last = spans.pop() as Span;
    const text = last.text.trimEnd();
    if (text !== '') return [...spans, { ...last, text }];
  }
  return spans;
}

class Drawing {
  constructor(
    private readonly links: LinkNumbers,
    private readonly repeated: ReadonlyMap<string, string>,
    private readonly hasTensors: boolean,
  ) {}

  /** Lines of a node and all below it, at most `width` columns each. */
  node(node: DiagramNode, width: number): Line[] {
    switch (node.kind) {
      case 'box':
      case 'operation':
        return this.#box(node, width);
      case 'series':
        return this.#series(node.children, width);
      case 'group':
        return this.#group(node, width);
      case 'parallel':
        return this.#branches(node, width, false);
      case 'residual':
        return this.#branches(node, width, true);
    }
  }

  /** Boxes in turn, with the shape where it changes. */
  #series(children: readonly DiagramNode[], width: number): Line[] {
    return children.flatMap((child, index) => {
      const isEdge = index < children.length - 1 && hasNewShape(child, children[index - 1]);
      const lines = this.node(child, width);
      return isEdge ? [...lines, [plainSpan('│ '), dim(edgeText(child.width))]] : lines;
    });
  }

  #box(node: DiagramNode, width: number): Line[] {
    const { label, notes, kind, change, before } = node;
    const mark = kind === 'box' ? '■ ' : '○ ';
    const tone = toneOf(node);
    const own = this.links.owners.get(node.id);
    const used = this.links.users.get(node.id) ?? [];
    const marks = [
      ...(own === undefined ? [] : [`[${own}]`]),
      ...used.map((each) => `← [${each}]`),
    ].join(' ');
    const nameRoom = Math.max(4, width - 3 - textWidth(marks));
    const name: Line = [
      { text: mark, tone },
      {
        text: cutMiddle(printable(CHANGE_MARKS[change] + label), nameRoom),
        tone: kind === 'box' ? 'strong' : 'plain',
      },
      ...(marks === '' ? [] : [{ text: ` ${marks}`, tone: 'warning' as const }]),
    ];
    const facts = [...notes, ...(before.length > 0 ? [`was ${before.join(', ')}`] : [])];
    const notesText = printable(facts.join(' · '));
    const figures = figuresOf(node, width);
    const room = width - lineWidth(name) - figures.length - 2;
    const lines: Line[] = [];
    if (textWidth(notesText) <= room) {
      lines.push([
        ...padded([...name, plainSpan('  '), dim(notesText)], width - figures.length),
        plainSpan(figures),
      ]);
    } else if (lineWidth(name) + figures.length <= width) {
      lines.push([...padded(name, width - figures.length), plainSpan(figures)]);
      lines.push(...this.#below(notesText, width));
    } else {
      const [first, ...others] = name;
      lines.push(...(first ? [[first, ...others]] : []));
      lines.push(...this.#below([notesText, figures.trim()].filter(Boolean).join(' · '), width));
    }
    if (this.hasTensors) {
      lines.push(
        ...tensorTexts(node).map(({ name, shape }): Line => {
          const room = Math.max(8, width - 5 - textWidth(shape));
          return [plainSpan('│   '), dim(`${cutMiddle(printable(name), room)} ${shape}`)];
        }),
      );
    }
    return lines.map((line) => padded(line, width));
  }

  #below(text: string, width: number): Line[] {
    return wrap(text, Math.max(8, width - 4)).map((line): Line => [plainSpan('│   '), dim(line)]);
  }

  #group(node: DiagramNode, width: number): Line[] {
    const figures = groupFigures(node);
    const repeated = this.repeated.get(node.id);
    if (repeated !== undefined && !this.hasTensors) {
      const text = `■ ${groupTitle(node)}, ${repeated}`;
      return [[...padded([{ text, tone: 'strong' }], width - figures.length), plainSpan(figures)]];
    }
    const tone = node.change === 'same' ? 'plain' : toneOf(node);
    const title = cutMiddle(
      printable(
        `${CHANGE_MARKS[node.change]}${groupTitle(node)}${node.before.length > 0 ? `, was ${node.before.join(', ')}` : ''}`,
      ),
      Math.max(4, width - figures.length - 8),
    );
    const rest = width - textWidth(title) - (figures === '' ? 0 : figures.length + 2) - 6;
    const top: Line = [
      { text: '╭─ ', tone },
      { text: title, tone: 'strong' },
      { text: ` ${'─'.repeat(Math.max(0, rest))}`, tone },
      ...(figures === '' ? [] : [plainSpan(` ${figures} `)]),
      { text: '─╮', tone },
    ];
    const bottom: Line = [{ text: `╰${'─'.repeat(width - 2)}╯`, tone }];
    const inside = this.#series(node.children, width - 4).map(
      (line): Line => [{ text: '│ ', tone }, ...padded(line, width - 4), { text: ' │', tone }],
    );
    return [top, ...inside, bottom];
  }

  /** Branches side by side; beside the value itself for a residual sum. */
  #branches(node: DiagramNode, width: number, isResidual: boolean): Line[] {
    const { children } = node;
    const first = isResidual ? 2 : 0;
    const each = Math.floor((width - first) / Math.max(1, children.length));
    if (children.length > 1 && each < NARROWEST_BRANCH) {
      return children.flatMap((child) => this.node(child, width));
    }
    const starts = [
      ...(isResidual ? [0] : []),
      ...children.map((_, index) => first + index * each),
    ];
    const room = (index: number) =>
      index === children.length - 1 ? width - first - index * each : each - 1;
    const columns = children.map((child, index) => this.node(child, room(index)));
    const height = Math.max(0, ...columns.map((lines) => lines.length));
    const lines: Line[] = Array.from({ length: height }, (_, row) => [
      ...(isResidual ? [plainSpan('│ ')] : []),
      ...columns.flatMap((column, index) => [
        ...padded(column[row] ?? [plainSpan('│')], room(index)),
        ...(index < columns.length - 1 ? [plainSpan(' ')] : []),
      ]),
    ]);
    if (starts.length === 1) return lines;
    const shape = ` ${node.label === '+' ? '' : `${printable(node.label)} `}${edgeText(node.width)}`;
    return [
      [plainSpan(rule(starts, '├', '┬', '╮'))],
      ...lines,
      [plainSpan(rule(starts, node.label === '+' ? '⊕' : '●', '┴', '╯')), dim(shape)],
    ];
  }
}

/** `├─┬─╮` with corners at the starts of branches. */
function rule(starts: readonly number[], left: string, middle: string, right: string): string {
  let text = left;
  starts.slice(1).forEach((start, index) => {
    text += '─'.repeat(Math.max(0, start - text.length));
    text += index === starts.length - 2 ? right : middle;
  });
  return text;
}

/** Parameters and FLOPs in columns, where there is room for both. */
function figuresOf(node: DiagramNode, width: number): string {
  if (node.kind === 'operation' && flopsText(node) === '') return '';
  if (width < 44) {
    const both = [parametersText(node), flopsText(node)].filter(Boolean).join(' · ');
    return both === '' ? '' : ` ${both}`;
  }
  return (
    parametersText(node).padStart(COLUMNS.parameters) + flopsText(node).padStart(COLUMNS.flops)
  );
}
