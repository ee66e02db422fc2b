/** What a checkpoint holds, beside the budgets of its model. */
import type { CheckpointFound } from '../../model-input/checkpoint-model.js';
import { formatBytes, formatInteger } from '../../text/units.js';
import { bytesCell, heading, integerCell, left, note, right, strong } from '../kit/cells.js';
import type { Block, Cell } from '../kit/report.js';

/** Which config it is. */
const CONFIGS = {
  flag: (file) => file,
  inside: () => 'the one in the checkpoint',
  beside: (file) => `${file}, beside the checkpoint`,
} as const satisfies Record<CheckpointFound['config']['origin'], (file: string) => string>;

/** `the config is model.yaml, beside the checkpoint`. */
export const configText = ({ file, origin }: CheckpointFound['config']): string =>
  `the config is ${CONFIGS[origin](file)}`;

export function checkpointBlocks({ totals, config, matches }: CheckpointFound): Block[] {
  const { dtypes, distinctTensors, distinctElements, distinctBytes, tensors } = totals;
  const row = (label: Cell, counts: readonly [number, number, number]): Cell[] => [
    label,
    integerCell(counts[0]),
    integerCell(counts[1]),
    bytesCell({ value: counts[2] }),
  ];
  return [
    heading(`Stored: ${formatBytes(distinctBytes)}`),
    {
      kind: 'table',
      columns: [
        left('type', 'dtype'),
        right('tensors', 'tensors'),
        right('values', 'values'),
        right('bytes', 'bytes'),
      ],
      rows: [
        ...dtypes.map((each) =>
          row({ text: each.dtype }, [each.tensors, each.elements, each.bytes]),
        ),
        row(strong('in all'), [distinctTensors, distinctElements, distinctBytes]),
      ],
    },
    note(
      `Each tensor once, buffers included; ${formatInteger(tensors)} names. ` +
        `Names, shapes and types are ${matches ? '' : 'not '}as the config describes; ${configText(config)}.`,
    ),
  ];
}
