/**
 * A diagram in the language of Mermaid (mermaid.js.org, flowchart). Names out of files are texts in double quotes, in
 * which every character that Mermaid or HTML could read is written by its number: `#96;`.
 */
import { printable } from '../../base/text/escape.js';
import type { DiagramNode } from '../../model/diagram/diagram.js';
import type { DiagramBlock } from '../kit/pictures.js';
import {
  CHANGE_MARKS,
  edgeText,
  flopsText,
  groupFigures,
  groupTitle,
  INPUT_TEXT,
  outputText,
  parametersText,
  repeatedGroups,
} from './diagram-words.js';

/** Maximum characters of a label. */
const LONGEST = 160;

/** The flowchart, without a final newline. */
export function mermaidDiagram({ diagram, title, isPart = false }: DiagramBlock): string {
  const flow = new Flow(repeatedGroups({ diagram }));
  const { root, shared, links } = diagram;
  const first = isPart ? undefined : flow.node('ids', 'stadium', [INPUT_TEXT]);
  const last = flow.part(root, first === undefined ? undefined : { id: first, width: undefined });
  if (!isPart && last) flow.edge(last, flow.node('logits', 'stadium', [outputText(root.width)]));
  for (const each of shared) flow.part(each, undefined);
  for (const { from, to, kind } of links) flow.link(from, to, kind);
  return [`%% ${comment(title)}`, 'flowchart TD', ...flow.lines].join('\n');
}

/** End of a line, and the values that it carries. */
interface End {
  readonly id: string;
  readonly width: number | undefined;
}

class Flow {
  readonly lines: string[] = [];
  #depth = 1;

  constructor(private readonly repeated: ReadonlyMap<string, string>) {}

  #add(text: string): void {
    this.lines.push('  '.repeat(this.#depth) + text);
  }

  node(
    id: string,
    shape: 'box' | 'round' | 'stadium' | 'circle',
    texts: readonly string[],
  ): string {
    const label = `"${texts.map(escaped).join('<br/>')}"`;
    const [open, close] = {
      box: ['[', ']'],
      round: ['(', ')'],
      stadium: ['([', '])'],
      circle: ['((', '))'],
    }[shape] as [string, string];
    this.#add(`${id}${open}${label}${close}`);
    return id;
  }

  edge(from: End, to: string): void {
    const label = from.width === undefined || from.width === 0 ? '' : `|"${edgeText(from.width)}"|`;
    this.#add(`${from.id} -->${label} ${to}`);
  }

  link(from: string, to: string, kind: string): void {
    this.#add(`${from} -.->|"${kind}"| ${to}`);
  }

  /** Adds a node and all below it. @returns Its end; undefined for nothing. */
  part(node: DiagramNode, before: End | undefined): End | undefined {
    switch (node.kind) {
      case 'box':
      case 'operation':
        return this.#box(node, before);
      case 'series':
        return this.#series(node.children, before);
      case 'group':
        return this.#group(node, before);
      case 'parallel':
      case 'residual':
        return this.#branches(node, before);
    }
  }

  #box(node: DiagramNode, before: End | undefined): End {
    const { id, label, notes, kind, width, change, before: was } = node;
    const figures = [parametersText(node), flopsText(node)].filter(Boolean).join(' · ');
    const facts = [notes.join(' · '), figures, was.length > 0 ? `was ${was.join(', ')}` : ''];
    this.node(id, kind === 'box' ? 'box' : 'round', [
      CHANGE_MARKS[change] + label,
      ...facts.filter(Boolean),
    ]);
    if (before) this.edge(before, id);
    return { id, width };
  }

  #series(children: readonly DiagramNode[], before: End | undefined): End | undefined {
    return children.reduce<End | undefined>((end, child) => this.part(child, end) ?? end, before);
  }

  #group(node: DiagramNode, before: End | undefined): End | undefined {
    const repeated = this.repeated.get(node.id);
    if (repeated !== undefined) {
      return this.#box(
        { ...node, kind: 'box', label: groupTitle(node), notes: [repeated] },
        before,
      );
    }
    const title = [groupTitle(node), groupFigures(node)].filter(Boolean).join(' · ');
    this.#add(`subgraph ${node.id}["${escaped(CHANGE_MARKS[node.change] + title)}"]`);
    this.#depth += 1;
    const end = this.#series(node.children, before);
    this.#depth -= 1;
    this.#add('end');
    return end;
  }

  #branches(node: DiagramNode, before: End | undefined): End {
    const ends = node.children.map((child) => this.part(child, before));
    const isPlus = node.label === '+';
    const id = this.node(node.id, isPlus ? 'circle' : 'stadium', [isPlus ? '+' : node.label]);
    for (const end of ends) if (end) this.edge(end, id);
    if (node.kind === 'residual' && before) this.edge(before, id);
    return { id, width: node.width };
  }
}

/** Letters, digits and the few signs that are text everywhere stay; other characters become their number. */
function escaped(text: string): string {
  const shown = printable(text);
  const characters = [...shown];
  const cut = characters.length > LONGEST ? [...characters.slice(0, LONGEST - 1), '…'] : characters;
  return cut
    .map((character) =>
      /[\p{L}\p{N} ,.()+·×→−–…±/_]/u.test(character) ? character : `#${character.codePointAt(0)};`,
    )
    .join('');
}

/** A comment ends with its line, and `{` would begin a directive. */
const comment = (text: string) => escaped(text).slice(0, 4 * LONGEST);
