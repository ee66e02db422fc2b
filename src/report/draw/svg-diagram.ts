/** A diagram as a picture: from the top down, with branches side by side and links at the right. */
import type { DiagramNode } from '../../model/diagram/diagram.js';
import type { DiagramBlock } from '../kit/pictures.js';
import type { Tone } from '../kit/tones.js';
import { type Child, element, fragment } from '../render/markup.js';
import {
  colour,
  DIM,
  type Drawing,
  estimatedWidth,
  FONT_SIZE,
  label,
  round,
  WIDTH,
} from '../render/picture/svg.js';
import {
  CHANGE_MARKS,
  edgeText,
  figuresText,
  groupFigures,
  groupTitle,
  hasNewShape,
  INPUT_TEXT,
  outputText,
  repeatedGroups,
  tensorTexts,
  toneOf,
} from './diagram-words.js';

/** Height of the line between two nodes. */
const GAP = 14;
/** The same where the line has a text. */
const TEXT_GAP = 24;
/** Room for the outer half of a stroke at the edge of the picture. */
const EDGE = 1;
const PADDING = 12;
const LINE = 15;
const JOIN = 8;
/** Room beside a branch for the value that passes it. */
const PASSAGE = 26;
const WIDEST_BOX = 400;
const NARROWEST_OPERATION = 140;
/** Tensors of a box that its tooltip lists. */
const MOST_TENSORS = 24;

/** A node with its size, drawn with its stream in the middle of its width. */
interface Placed {
  readonly height: number;
  readonly draw: (x: number, y: number) => Child;
}

/** Edges of a drawn box, for links. */
interface Edges {
  readonly right: number;
  readonly middle: number;
}

/** The diagram, as wide as all pictures. */
export function drawSvgDiagram({
  diagram,
  isPart = false,
  hasTensors = false,
}: DiagramBlock): Drawing {
  const lanes = new Map(
    [...new Set(diagram.links.map(({ from }) => from))].map((id, at) => [id, at]),
  );
  const width = WIDTH - 2 * EDGE - (lanes.size > 0 ? 16 + 8 * Math.min(lanes.size, 8) : 0);
  const layout = new Layout(repeatedGroups({ diagram }), hasTensors);
  const main = layout.node(diagram.root, width);
  const middle = EDGE + width / 2;
  const top = isPart ? 0 : LINE + GAP;
  let height = top + main.height + (isPart ? 0 : GAP + LINE + 2);
  const content: Child[] = [
    !isPart && streamText(INPUT_TEXT, middle, FONT_SIZE),
    !isPart && layout.entry(diagram.root, middle, LINE + 2, top),
    main.draw(EDGE, top),
    !isPart && arrow(middle, top + main.height, top + main.height + GAP),
    !isPart && streamText(outputText(diagram.root.width), middle, height - 4),
  ];
  if (diagram.shared.length > 0) {
    height += 30;
    content.push(label('Used by several blocks, stored once', { ...DIM, x: 0, y: height }));
    height += 8;
    for (const each of diagram.shared) {
      const placed = layout.node(each, width);
      content.push(placed.draw(EDGE, height));
      height += placed.height + GAP;
    }
  }
  const drawn = diagram.links.map(({ from, to, kind }) => {
    const [start, end] = [layout.edges.get(from), layout.edges.get(to)];
    const lane = width + 8 + 8 * ((lanes.get(from) ?? 0) % 8);
    return start && end && link(start, end, lane, kind);
  });
  return { height: Math.ceil(height), content: [...content, ...drawn] };
}

class Layout {
  readonly edges = new Map<string, Edges>();

  constructor(
    private readonly repeated: ReadonlyMap<string, string>,
    private readonly hasTensors: boolean,
  ) {}

  node(node: DiagramNode, width: number): Placed {
    switch (node.kind) {
      case 'box':
      case 'operation':
        return this.#box(node, width);
      case 'series':
        return this.#series(node.children, width);
      case 'group':
        return this.#group(node, width);
      case 'parallel':
        return this.#branches(node, width, 0);
      case 'residual':
        return this.#branches(node, width, PASSAGE);
    }
  }

  #box(node: DiagramNode, width: number): Placed {
    const isBox = node.kind === 'box';
    const notes = [
      ...node.notes,
      ...(node.before.length > 0 ? [`was ${node.before.join(', ')}`] : []),
    ];
    const figures = isBox ? figuresText(node) : '';
    const title = CHANGE_MARKS[node.change] + node.label;
    // An operation is one line.
    const name = isBox ? title : [title, ...notes].join(' ');
    const usual = isBox
      ? WIDEST_BOX
      : Math.max(NARROWEST_OPERATION, estimatedWidth(name) + 2 * PADDING);
    const own = Math.min(width, usual);
    const isTogether = estimatedWidth(name) + estimatedWidth(figures) + 3 * PADDING <= own;
    const lines = [
      ...(isTogether || figures === '' ? [] : [figures]),
      ...(isBox ? packed(notes, own - 2 * PADDING) : []),
      ...(this.hasTensors ? tensorLines(node).slice(0, MOST_TENSORS) : []),
    ];
    const height = LINE * (1 + lines.length) + (isBox ? 12 : 6);
    return {
      height,
      draw: (x, y) => {
        const left = x + (width - own) / 2;
        this.edges.set(node.id, { right: left + own, middle: y + height / 2 });
        const inside = own - 2 * PADDING;
        return element(
          'g',
          { ...colour(toneOf(node)), tabindex: 0 },
          element('title', {}, tooltip(node)),
          rectangle(left, y, own, height, isBox ? 6 : height / 2, isBox ? 0.12 : 0.04),
          label(
            name,
            {
              class: 'ink',
              x: isBox ? left + PADDING : left + own / 2,
              y: y + LINE + (isBox ? 3 : 0),
              ...(isBox ? { 'font-weight': 600 } : { 'text-anchor': 'middle' as const }),
            },
            inside,
          ),
          isTogether &&
            figures !== '' &&
            label(figures, {
              class: 'ink',
              x: left + own - PADDING,
              y: y + LINE + 3,
              'text-anchor': 'end',
            }),
          lines.map((line, index) =>
            label(line, { ...DIM, x: left + PADDING, y: y + LINE * (index + 2) + 3 }, inside),
          ),
        );
      },
    };
  }

  #series(children: readonly DiagramNode[], width: number): Placed {
    const parts = children.map((child) => this.node(child, width));
    const isEdge = children.map(
      (child, index) =>
        index < children.length - 1 && child.width > 0 && hasNewShape(child, children[index - 1]),
    );
    const gaps = isEdge.map((hasText, index) =>
      index === children.length - 1 ? 0 : hasText ? TEXT_GAP : GAP,
    );
    const height = parts.reduce((sum, part, index) => sum + part.height + (gaps[index] ?? 0), 0);
    return {
      height,
      draw: (x, y) => {
        const middle = x + width / 2;
        let at = y;
        return parts.map((part, index) => {
          const drawn = part.draw(x, at);
          const end = at + part.height;
          at = end + (gaps[index] ?? 0);
          const [child, next] = [children[index] as DiagramNode, children[index + 1]];
          return fragment(
            drawn,
            next && this.entry(next, middle, end, at),
            isEdge[index] &&
              label(edgeText(child.width), { ...DIM, x: middle + 8, y: end + FONT_SIZE + 3 }),
          );
        });
      },
    };
  }

  /** A line to a node. It has a head where it ends: into a group, and to several branches, it goes on. */
  entry(node: DiagramNode | undefined, x: number, from: number, to: number): Child {
    return (node !== undefined && this.#startsWithBox(node) ? arrow : line)(x, from, to);
  }

  #startsWithBox(node: DiagramNode): boolean {
    const { kind, children } = node;
    if (kind === 'series') return children[0] !== undefined && this.#startsWithBox(children[0]);
    return kind === 'box' || kind === 'operation' || this.#repeatedText(node) !== undefined;
  }

  /** Text for a group that repeats another one, whose content is drawn elsewhere. */
  #repeatedText(node: DiagramNode): string | undefined {
    return this.hasTensors ? undefined : this.repeated.get(node.id);
  }

  #group(node: DiagramNode, width: number): Placed {
    const repeated = this.#repeatedText(node);
    if (repeated !== undefined) {
      return this.#box({ ...node, kind: 'box', label: groupTitle(node), notes: [repeated] }, width);
    }
    const inside = this.#series(node.children, width - 2 * PADDING);
    const head = 34;
    const height = head + inside.height + PADDING;
    const tone: Tone = node.change === 'same' ? 'dim' : toneOf(node);
    const was = node.before.length > 0 ? `, was ${node.before.join(', ')}` : '';
    const figures = groupFigures(node);
    return {
      height,
      draw: (x, y) => {
        this.edges.set(node.id, { right: x + width, middle: y + 12 });
        return element(
          'g',
          {},
          element(
            'g',
            colour(tone),
            node.count > 1 && rectangle(x + 4, y + 4, width - 4, height - 2, 10, 0.05),
            rectangle(x, y, width - (node.count > 1 ? 4 : 0), height, 10, 0.03),
          ),
          label(
            `${CHANGE_MARKS[node.change]}${groupTitle(node)}${was}`,
            { class: 'ink', x: x + PADDING, y: y + 17, 'font-weight': 600 },
            width / 2 - 2 * PADDING,
          ),
          label(figures, { ...DIM, x: x + width - PADDING, y: y + 17, 'text-anchor': 'end' }),
          this.entry(node.children[0], x + width / 2, y, y + head),
          inside.draw(x + PADDING, y + head),
          line(x + width / 2, y + height - PADDING, y + height),
        );
      },
    };
  }

  /** Branches side by side, and for a residual sum the value that passes them at the left. */
  #branches(
    { children, label: name, width: values }: DiagramNode,
    width: number,
    passage: number,
  ): Placed {
    const each = (width - 2 * passage) / Math.max(1, children.length);
    const parts = children.map((child) => this.node(child, each - (children.length > 1 ? 8 : 0)));
    const inner = Math.max(0, ...parts.map((part) => part.height));
    const head = GAP;
    const foot = GAP + 2 * JOIN;
    const height = head + inner + foot;
    return {
      height,
      draw: (x, y) => {
        const middle = x + width / 2;
        const [start, end, join] = [y + head, y + head + inner, y + height - JOIN];
        const isPlus = name === '+';
        const branches = parts.map((part, index) => {
          const left = x + passage + index * each + (children.length > 1 ? 4 : 0);
          const at = x + passage + (index + 0.5) * each;
          return fragment(
            segment(middle, y + 4, at, y + 4),
            this.entry(children[index], at, y + 4, start),
            part.draw(left, start),
            line(at, start + part.height, end + 4),
            segment(at, end + 4, middle, end + 4),
          );
        });
        return fragment(
          line(middle, y, y + 4),
          branches,
          passage > 0 &&
            path(
              `M${round(middle)} ${round(y + 4)}H${round(x + 8)}V${round(join)}H${round(middle - JOIN)}`,
            ),
          arrow(middle, end + 4, join - JOIN),
          isPlus
            ? plus(middle, join)
            : label(name, { class: 'ink', x: middle, y: join + 4, 'text-anchor': 'middle' }),
          label(edgeText(values), {
            ...DIM,
            x: middle + (isPlus ? 14 : 14 + estimatedWidth(name) / 2),
            y: join + 4,
          }),
        );
      },
    };
  }
}

/** Notes in as few lines as they take. */
function packed(notes: readonly string[], width: number): string[] {
  const lines: string[] = [];
  for (const note of notes) {
    const last = lines.at(-1);
    const joined = last === undefined ? note : `${last} · ${note}`;
    if (last !== undefined && estimatedWidth(joined) <= width) lines[lines.length - 1] = joined;
    else lines.push(note);
  }
  return lines;
}

const tensorLines = (node: DiagramNode) =>
  tensorTexts(node).map(({ name, shape }) => `${name} ${shape}`);

function tooltip(node: DiagramNode): string {
  const tensors = tensorLines(node);
  const more = tensors.length - MOST_TENSORS;
  return [
    [node.label, ...node.notes].join(' · '),
    ...tensors.slice(0, MOST_TENSORS),
    ...(more > 0 ? [`and ${more} more`] : []),
  ].join('\n');
}

const STROKE = { stroke: 'currentColor', fill: 'none', 'stroke-width': 1.2 } as const;

const segment = (x1: number, y1: number, x2: number, y2: number) =>
  element('line', { ...STROKE, x1: round(x1), y1: round(y1), x2: round(x2), y2: round(y2) });

/** A line downwards. */
const line = (x: number, from: number, to: number) => segment(x, from, x, to);

const path = (d: string) => element('path', { ...STROKE, d });

const arrow = (x: number, from: number, to: number) =>
  fragment(
    line(x, from, to),
    element('path', {
      d: `M${round(x - 3.5)} ${round(to - 5)}L${round(x)} ${round(to)}L${round(x + 3.5)} ${round(to - 5)}Z`,
      fill: 'currentColor',
    }),
  );

const plus = (x: number, y: number) =>
  fragment(
    element('circle', { ...STROKE, cx: round(x), cy: round(y), r: JOIN }),
    segment(x - JOIN, y, x + JOIN, y),
    line(x, y - JOIN, y + JOIN),
  );

const rectangle = (
  x: number,
  y: number,
  width: number,
  height: number,
  r: number,
  opacity: number,
) =>
  element('rect', {
    x: round(x),
    y: round(y),
    width: round(width),
    height: round(height),
    rx: r,
    fill: 'currentColor',
    'fill-opacity': opacity,
    stroke: 'currentColor',
    'stroke-opacity': 0.7,
  });

const streamText = (text: string, x: number, y: number) =>
  label(text, { ...DIM, x, y, 'text-anchor': 'middle' });

/** A dashed line at the right, from the box that has the tensors to one that uses them. */
const link = (from: Edges, to: Edges, lane: number, kind: string) =>
  element(
    'g',
    colour('warning'),
    element('title', {}, kind),
    element('path', {
      ...STROKE,
      'stroke-dasharray': '5 3',
      d: `M${round(from.right)} ${round(from.middle)}H${lane}V${round(to.middle)}H${round(to.right)}`,
    }),
    element('path', {
      d: `M${round(to.right + 5)} ${round(to.middle - 3.5)}L${round(to.right)} ${round(to.middle)}L${round(to.right + 5)} ${round(to.middle + 3.5)}Z`,
      fill: 'currentColor',
    }),
  );
