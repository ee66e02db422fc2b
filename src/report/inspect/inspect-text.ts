/** Texts from checkpoints, short enough for a table. */
import type { JsonLike } from '../../checkpoint/summary-content.js';
import type { CheckpointFacts } from '../../model-input/checkpoint-model.js';
import { formatBytes, formatInteger } from '../../text/units.js';
import { shortened } from '../../text/words.js';
import type { Block } from '../kit/report.js';
import {
  bytesCell,
  headingBlock,
  integerCell,
  leftColumn,
  noteOf,
  right,
  strongCell,
  tableOf,
} from '../kit/report.js';

/** Maximum characters of a configuration in a table. */
const MAX_PLAIN_TEXT = 160;

/** Maximum rows of tensors or layers for people; programs get all. */
export const MAX_ROWS = 1000;

/** Plain data in one line, without the outer brackets. */
export function plainText(value: JsonLike): string {
  const line: Line = { parts: [], room: MAX_PLAIN_TEXT };
  write(value, 0, line);
  return shortened(line.parts.join(''), MAX_PLAIN_TEXT);
}

/** Output line with limited room. */
interface Line {
  readonly parts: string[];
  /** Remaining characters. */
  room: number;
}

function put(line: Line, text: string): void {
  line.parts.push(text);
  line.room -= text.length;
}

/** @param depth Depth of the value, which plain data limits. */
function write(value: JsonLike, depth: number, line: Line): void {
  if (typeof value !== 'object' || value === null) {
    put(line, typeof value === 'string' && depth > 0 ? JSON.stringify(value) : String(value));
    return;
  }
  const isList = Array.isArray(value);
  const [open, close] = depth === 0 ? ['', ''] : isList ? ['[', ']'] : ['{', '}'];
  put(line, open);
  for (const [index, [key, item]] of Object.entries(value).entries()) {
    if (line.room < 0) return;
    put(line, `${index > 0 ? ', ' : ''}${isList ? '' : `${key}: `}`);
    write(item, depth + 1, line);
  }
  put(line, close);
}

// Further contents of a checkpoint.

const CONFIGS = {
  flag: (file) => file,
  inside: () => 'the one in the checkpoint',
  beside: (file) => `${file}, next to the checkpoint`,
} as const satisfies Record<CheckpointFacts['config']['origin'], (file: string) => string>;

export const configText = ({ file, origin }: CheckpointFacts['config']): string =>
  `the config is ${CONFIGS[origin](file)}`;

export function checkpointBlocks({ totals, config, matches }: CheckpointFacts): Block[] {
  const { dtypes, distinctTensors, distinctElements, distinctBytes, tensors } = totals;
  return [
    headingBlock(`Stored: ${formatBytes(distinctBytes)}`),
    tableOf(
      dtypes,
      [
        leftColumn('type', 'dtype', ({ dtype }) => dtype),
        right('tensors', 'tensors', (each) => integerCell(each.tensors)),
        right('values', 'values', ({ elements }) => integerCell(elements)),
        right('bytes', 'bytes', ({ bytes }) => bytesCell(bytes)),
      ],
      [
        [
          strongCell('total'),
          integerCell(distinctTensors),
          integerCell(distinctElements),
          bytesCell(distinctBytes),
        ],
      ],
    ),
    noteOf(
      `Each tensor once, buffers included; ${formatInteger(tensors)} names. ` +
        `Names, shapes and types are ${matches ? '' : 'not '}as the config describes; ${configText(config)}.`,
    ),
  ];
}
