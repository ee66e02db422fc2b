/** What would be done to each tensor. */
import type { StepGroup, StepKind, TensorStep } from '../../conversion/plan-steps.js';
import { nameText } from '../inspect/inspect-text.js';
import { bytesCell, heading, integerCell, left, note, right } from '../kit/cells.js';
import type { Block, TableBlock } from '../kit/report.js';
import { counted } from '../kit/wording.js';

const STEPS = {
  factorised: 'factorised',
  merged: 'merged',
  'multiplied-out': 'multiplied out',
  averaged: 'averaged',
  reordered: 'reordered',
  cut: 'cut',
  extended: 'extended',
  computed: 'computed',
  cast: 'cast',
  copied: 'copied',
} as const satisfies Record<StepKind, string>;

/** More lines than this are for programs to read. */
const MOST_LINES = 100;

export function planBlocks(groups: readonly StepGroup[]): Block[] {
  const more = groups.length - MOST_LINES;
  return [
    heading('Tensors of the output'),
    {
      kind: 'table',
      columns: [
        left('', 'action'),
        left('tensors', 'tensors', true),
        right('count', 'count'),
        left('type', 'dtype'),
        right('bytes', 'bytes'),
      ],
      rows: groups
        .slice(0, MOST_LINES)
        .map((group) => [
          { text: STEPS[group.action], value: group.action },
          { text: nameText(group.pattern) },
          integerCell(group.tensors),
          { text: dtypeText(group) },
          bytesCell({ value: group.bytes }),
        ]),
    },
    ...(more > 0 ? [note(`And ${counted(more, 'more line')}; --json has them all.`)] : []),
  ];
}

/** `F32 → BF16`, `F32`. */
function dtypeText({ fromDtypes, dtype }: Pick<StepGroup, 'fromDtypes' | 'dtype'>): string {
  const from = fromDtypes.join(', ');
  return from === '' || from === dtype ? dtype : `${from} → ${dtype}`;
}

/** For programs: a row for each tensor, in the order of the output. */
export const stepsTable = (steps: readonly TensorStep[]): TableBlock => ({
  kind: 'table',
  columns: [
    left('tensor', 'tensor', true),
    left('action', 'action'),
    left('from', 'from', true),
    left('from types', 'from_dtypes'),
    left('type', 'dtype'),
    left('shape', 'shape'),
    right('bytes', 'bytes'),
    left('role', 'role'),
    left('further names', 'aliases', true),
    left('file', 'file', true),
  ],
  rows: steps.map(({ name, action, from, fromDtypes, dtype, shape, bytes, ...rest }) => [
    { text: name },
    { text: action },
    { text: from.join(' ') },
    { text: fromDtypes.join(' ') },
    { text: dtype },
    { text: shape.join(' ') },
    bytesCell({ value: bytes }),
    { text: rest.role },
    { text: rest.aliases.join(' ') },
    { text: rest.file },
  ]),
});
