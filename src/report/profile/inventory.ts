/** The model block by block and tensor by tensor, as `profile` prints it. */
import type { BlockBudget, TensorEntry } from '../../budget/profile.js';
import { moreNote } from '../inspect/inspect-tensors.js';
import { MAX_ROWS } from '../inspect/inspect-text.js';
import { bytesCell, flopsCell, heading, integerCell, left, right } from '../kit/cells.js';
import type { Block, Cell } from '../kit/report.js';
import { formatInteger } from '../kit/units.js';

const spanText = ({ heads, window, rule }: BlockBudget['spans'][number]) =>
  window === undefined ? `${heads} global` : `${heads} ${rule} (${formatInteger(window)})`;

/** As many as people get, or all for a program. */
const shownOf = <T>(all: readonly T[], flat: boolean): readonly T[] =>
  flat ? all : all.slice(0, MAX_ROWS);

export function layersBlocks(layers: readonly BlockBudget[], flat: boolean): Block[] {
  const shown = shownOf(layers, flat);
  return [
    heading('Layers'),
    {
      kind: 'table',
      columns: [
        left('layer', 'layer'),
        right('parameters', 'parameters'),
        right('state', 'state_bytes'),
        right('forward', 'forward_flops'),
        left('heads', 'heads', true),
      ],
      rows: shown.map(({ name, parameters, state, forwardFlops, spans }) => [
        { text: name },
        integerCell(parameters.value),
        bytesCell(state),
        flopsCell(forwardFlops.value),
        { text: spans.map(spanText).join(', ') },
      ]),
    },
    ...moreNote(layers.length - shown.length),
  ];
}

/** Parameters as a tree of their names; buffers in a list of their own. */
export function tensorsBlocks(tensors: readonly TensorEntry[], flat: boolean): Block[] {
  const columns = [
    left('tensor', 'tensor'),
    right('shape', 'shape'),
    right('values', 'values'),
    left('also named', 'aliases', true),
  ];
  const cells = ({ name, shape, elements, aliases }: TensorEntry, text: string): Cell[] => [
    { text, value: name },
    { text: `[${shape.join(', ')}]` },
    integerCell(elements),
    { text: aliasText(aliases), value: aliases.join(' ') },
  ];
  const parameters = tensors.filter(({ role }) => role === 'parameter');
  const buffers = tensors.filter(({ role }) => role === 'buffer');
  const [shown, shownBuffers] = [shownOf(parameters, flat), shownOf(buffers, flat)];
  return [
    heading('Tensors'),
    {
      kind: 'table',
      columns,
      rows: flat ? shown.map((each) => cells(each, each.name)) : treeRows(shown, cells),
    },
    ...moreNote(parameters.length - shown.length),
    ...(buffers.length > 0
      ? [
          heading('Buffers'),
          {
            kind: 'table' as const,
            columns,
            rows: shownBuffers.map((each) => cells(each, each.name)),
          },
          ...moreNote(buffers.length - shownBuffers.length),
        ]
      : []),
  ];
}

/** Each name below the parts that it shares with the one before it. */
function treeRows(
  tensors: readonly TensorEntry[],
  cells: (tensor: TensorEntry, text: string) => Cell[],
): Cell[][] {
  const rows: Cell[][] = [];
  let above: string[] = [];
  for (const tensor of tensors) {
    const parts = tensor.name.split('.');
    const folders = parts.slice(0, -1);
    const shared = folders.findIndex((part, depth) => part !== above[depth]);
    const from = shared < 0 ? folders.length : shared;
    for (const [offset, part] of folders.slice(from).entries()) {
      rows.push([
        { text: `${'  '.repeat(from + offset)}${part}`, value: '', tone: 'dim' },
        { text: '' },
        { text: '' },
        { text: '' },
      ]);
    }
    rows.push(cells(tensor, `${'  '.repeat(folders.length)}${parts.at(-1) ?? ''}`));
    above = folders;
  }
  return rows;
}

function aliasText(aliases: readonly string[]): string {
  const [first, ...others] = aliases;
  if (first === undefined) return '';
  return others.length === 0 ? first : `${first} … (${aliases.length} names)`;
}
