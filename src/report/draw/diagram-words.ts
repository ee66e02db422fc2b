/** Words of diagrams, the same in every format. */
import { printable } from '../../base/text/escape.js';
import { formatFlops, formatInteger, shortCount } from '../../base/text/units.js';
import { runsText } from '../../base/text/words.js';
import type { DiagramNode } from '../../model/diagram/diagram.js';
import { cutMiddle } from '../kit/layout.js';
import type { DiagramBlock } from '../kit/pictures.js';
import { hueOf, type Tone } from '../kit/tones.js';

/** `(B, T, 512)` */
export const edgeText = (width: number): string => `(B, T, ${formatInteger(width)})`;

/** Whether the line after a box shows its shape; sums show it themselves. */
export function hasNewShape(node: DiagramNode, before: DiagramNode | undefined): boolean {
  if (node.kind !== 'box' && node.kind !== 'operation') return false;
  return before === undefined ? node.component === 'embedding' : node.width !== before.width;
}

/** Groups of blocks that are equal to an earlier one, with the text that refers to it: `as block 0`. */
export function repeatedGroups({
  diagram,
}: Pick<DiagramBlock, 'diagram'>): ReadonlyMap<string, string> {
  const [first, repeated] = [new Map<string, string>(), new Map<string, string>()];
  const visit = (node: DiagramNode): void => {
    if (node.label === 'block' && node.change === 'same') {
      const key = JSON.stringify(node.children.map((child) => nodeContent(child, diagram)));
      const earlier = first.get(key);
      if (earlier !== undefined) return void repeated.set(node.id, `as block ${earlier}`);
      first.set(key, String(node.blocks[0]));
    }
    node.children.forEach(visit);
  };
  visit(diagram.root);
  return repeated;
}

const nodeContent = (node: DiagramNode, diagram: DiagramBlock['diagram']): unknown => [
  node.kind,
  node.label,
  node.notes,
  node.count,
  node.parameters,
  String(node.flops),
  node.change,
  diagram.links.filter(({ to }) => to === node.id).map(({ from }) => from),
  node.children.map((child) => nodeContent(child, diagram)),
];

export const INPUT_TEXT = 'token ids (B, T)';

export const outputText = (width: number): string => `logits ${edgeText(width)}`;

/** `8 × block 0–7`; of groups without blocks, the label. */
export function groupTitle({ count, label, blocks, notes }: DiagramNode): string {
  const times = count > 1 ? `${count} × ` : '';
  const numbers = blocks.length > 0 ? ` ${runsText(blocks)}` : '';
  return [`${times}${label}${numbers}`, ...notes].join(', ');
}

/** `2.81M each, 22.5M`; empty without parameters. */
export function groupFigures({ count, parameters }: DiagramNode): string {
  if (parameters === 0) return '';
  const each = shortCount(parameters);
  return count > 1 ? `${each} each, ${shortCount(parameters * count)}` : each;
}

/** `3.28M`; empty for a box without parameters of its own. */
export const parametersText = ({ parameters }: DiagramNode): string =>
  parameters === 0 ? '' : shortCount(parameters);

/** `1.2 GFLOP`; empty for nothing. */
export const flopsText = ({ flops }: DiagramNode): string =>
  BigInt(flops) === 0n ? '' : formatFlops(flops);

/** `3.28M · 1.2 GFLOPs` */
export const figuresText = (node: DiagramNode): string =>
  [parametersText(node), flopsText(node)].filter(Boolean).join(' · ');

/** Columns of the types of equal blocks that differ. */
const LONGEST_TYPE = 20;

/** Name of each tensor of a box, and its shape and type: `(512, 512) × 8, bf16`. */
export function tensorTexts({
  tensors,
}: DiagramNode): { readonly name: string; readonly shape: string }[] {
  return tensors.map(({ name, shape, count, role, dtype }) => ({
    name,
    shape:
      `(${shape.map(formatInteger).join(', ')})${count > 1 ? ` × ${formatInteger(count)}` : ''}` +
      (dtype === null ? '' : `, ${cutMiddle(printable(dtype), LONGEST_TYPE)}`) +
      (role === 'buffer' ? ', buffer' : ''),
  }));
}

/** Numbers of boxes whose tensors other boxes use, and of the boxes that each box uses. */
export interface LinkNumbers {
  readonly owners: ReadonlyMap<string, number>;
  readonly users: ReadonlyMap<string, readonly number[]>;
}

export function linkNumbers({ diagram }: Pick<DiagramBlock, 'diagram'>): LinkNumbers {
  const owners = new Map<string, number>();
  const users = new Map<string, number[]>();
  for (const { from, to } of diagram.links) {
    if (!owners.has(from)) owners.set(from, owners.size + 1);
    const number = owners.get(from) ?? 0;
    const list = users.get(to);
    if (list === undefined) users.set(to, [number]);
    else if (!list.includes(number)) list.push(number);
  }
  return { owners, users };
}

/** Mark of a changed node. */
export const CHANGE_MARKS = {
  same: '',
  added: '+ ',
  removed: '− ',
  changed: '~ ',
} as const satisfies Record<DiagramNode['change'], string>;

const CHANGE_TONES = { added: 'good', removed: 'bad', changed: 'warning' } as const;

/** Components of one kind have one colour. */
export function toneOf({ component, change, kind }: DiagramNode): Tone {
  if (change !== 'same') return CHANGE_TONES[change];
  if (kind === 'operation') return 'dim';
  const hue = HUES.findIndex((components) => components.includes(component));
  return hue < 0 ? 'plain' : hueOf(hue);
}

const HUES: readonly (readonly string[])[] = [
  ['attention', 'indexer'],
  ['feedForward', 'mlp', 'experts', 'sharedExperts', 'router'],
  ['mamba', 'deltaNet', 'linearAttention', 'recurrence', 'shortConvolution'],
  ['embedding', 'positions', 'head', 'perLayerInputs'],
  ['srte', 'alignment', 'gate', 'fusion', 'altUp'],
];
