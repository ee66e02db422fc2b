/** Inventory of the model for `profile`: block by block and tensor by tensor. */

import { formatInteger } from '../../base/text/units.js';
import type { BlockBudget, TensorEntry } from '../../model/budget/profile-model.js';
import type { Block, Field } from '../kit/report.js';
import {
  bytesCell,
  flopsCell,
  headingBlock,
  integerCell,
  leftColumn,
  listBlocks,
  MAX_ROWS,
  moreNote,
  right,
  shapeText,
  tableOf,
  wrapColumn,
} from '../kit/report.js';

const spanText = ({ heads, window, rule }: BlockBudget['spans'][number]) =>
  window === undefined ? `${heads} global` : `${heads} ${rule} (${formatInteger(window)})`;

/** Rows for people, or all for a program. */
const mostRows = (flat: boolean): number => (flat ? Number.POSITIVE_INFINITY : MAX_ROWS);

export const layersBlocks = (layers: readonly BlockBudget[], flat: boolean): Block[] =>
  listBlocks(
    'Layers',
    layers,
    [
      leftColumn('layer', 'layer', ({ name }) => name),
      right('parameters', 'parameters', ({ parameters }) => integerCell(parameters.value)),
      right('state', 'state_bytes', ({ state }) => bytesCell(state.value)),
      right('forward', 'forward_flops', ({ forwardFlops }) => flopsCell(forwardFlops.value)),
      wrapColumn('heads', 'heads', ({ spans }) => spans.map(spanText).join(', ')),
    ],
    mostRows(flat),
  );

/** A tensor under its name or the last part of it, or a common part of the names below. */
interface TreeRow extends Partial<TensorEntry> {
  readonly text: string;
}

const TREE_FIELDS: readonly Field<TreeRow>[] = [
  leftColumn('tensor', 'tensor', ({ text, name = '', elements }) => ({
    text,
    value: name,
    ...(elements === undefined && { tone: 'dim' }),
  })),
  right('shape', 'shape', ({ shape }) => (shape ? shapeText(shape) : '')),
  right('values', 'values', ({ elements }) =>
    elements === undefined ? '' : integerCell(elements),
  ),
  wrapColumn('also named', 'aliases', ({ aliases = [] }) => ({
    text: aliasText(aliases),
    value: aliases.join(' '),
  })),
];

const plainRow = (tensor: TensorEntry): TreeRow => ({ ...tensor, text: tensor.name });

/** Parameters as a tree of their names; buffers in a separate list. */
export function inventoryBlocks(tensors: readonly TensorEntry[], flat: boolean): Block[] {
  const parameters = tensors.filter(({ role }) => role === 'parameter');
  const buffers = tensors.filter(({ role }) => role === 'buffer');
  const shown = parameters.slice(0, mostRows(flat));
  return [
    headingBlock('Tensors'),
    tableOf(flat ? shown.map(plainRow) : treeRows(shown), TREE_FIELDS),
    ...moreNote(parameters.length - shown.length, 'json'),
    ...listBlocks('Buffers', buffers.map(plainRow), TREE_FIELDS, mostRows(flat)),
  ];
}

/** The rows of a tree: each name below the parts that it shares with the previous name. */
function treeRows(tensors: readonly TensorEntry[]): TreeRow[] {
  const rows: TreeRow[] = [];
  let above: string[] = [];
  for (const tensor of tensors) {
    const parts = tensor.name.split('.');
    const folders = parts.slice(0, -1);
    const shared = folders.findIndex((part, depth) => part !== above[depth]);
    const from = shared < 0 ? folders.length : shared;
    for (const [offset, part] of folders.slice(from).entries()) {
      rows.push({ text: `${'  '.repeat(from + offset)}${part}` });
    }
    rows.push({ ...tensor, text: `${'  '.repeat(folders.length)}${parts.at(-1) ?? ''}` });
    above = folders;
  }
  return rows;
}

function aliasText(aliases: readonly string[]): string {
  const [first, ...others] = aliases;
  if (first === undefined) return '';
  return others.length === 0 ? first : `${first} … (${aliases.length} names)`;
}
