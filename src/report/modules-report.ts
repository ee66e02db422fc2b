/** Reports of `minimind modules`: the list of blocks, and the run of one. */

import { nextCommand, setting } from '../base/text/setting.js';
import { formatInteger, significant } from '../base/text/units.js';
import { counted } from '../base/text/words.js';
import type { SoftmaxStep } from '../model/modules/attention-modules.js';
import type {
  ListedBlock,
  ModuleResult,
  NamedTensor,
  RotationStep,
} from '../model/modules/block-run.js';
import type { Block, Cell, Report, TableBlock } from './kit/report.js';
import {
  codeLine,
  headingBlock,
  integerCell,
  leftColumn,
  noteOf,
  right,
  shapeText,
  strongCell,
  tableOf,
  valueCell,
  wrapColumn,
} from './kit/report.js';

export const blockListReport = (blocks: readonly ListedBlock[]): Report => ({
  verdict: { text: `${counted(blocks.length, 'block')} to run on small inputs` },
  blocks: [
    tableOf(blocks, [
      leftColumn('block', 'block', ({ name }) => strongCell(name)),
      wrapColumn('what it does', 'summary', ({ summary }) => summary),
    ]),
  ],
  details: [
    tableOf(blocks, [
      leftColumn('block', 'block', ({ name }) => strongCell(name)),
      wrapColumn('flags', 'flags', ({ flags }) => flags.join(' ')),
    ]),
  ],
  next: nextCommand('modules', ['group-rms-norm']),
});

/** Maximum checks in the answer. More checks, and the checks of a run with steps, are in the details. */
const MOST_CHECKS = 3;

export function moduleReport(run: ModuleResult): Report {
  const { block, torch, tensors, checks, calls, steps } = run;
  const failed = checks.filter(({ passed }) => !passed).length;
  const isShort = failed > 0 || (checks.length <= MOST_CHECKS && !steps);
  return {
    verdict:
      failed > 0
        ? { text: `${block}: ${counted(failed, 'check')} of ${checks.length} failed`, tone: 'bad' }
        : { text: `${block}: ${counted(checks.length, 'check')} passed`, tone: 'good' },
    blocks: [
      headingBlock('Inputs in PyTorch'),
      ...seededLines(torch).map(codeLine),
      tensorTable(tensors),
      ...(calls ? [callTable(calls)] : []),
      ...(steps ? [stepTable(steps)] : []),
      ...(isShort ? [checkTable(checks)] : []),
    ],
    details: [
      ...(isShort ? [] : [checkTable(checks)]),
      ...tensors.flatMap(valueBlocks),
      ...(steps ? stepBlocks(steps) : []),
    ],
    data: valueTable(tensors),
  };
}

/** Lines of PyTorch; a seed shares the line of its first fill. */
function seededLines(torch: readonly string[]): string[] {
  const isSeed = (line: string | undefined) => line?.startsWith('torch.manual_seed') === true;
  return torch.flatMap((line, at) => {
    if (isSeed(line)) return [];
    const before = torch[at - 1];
    return [isSeed(before) ? `${before}; ${line}` : line];
  });
}

const DTYPES = { f32: 'float32', f16: 'float16', bf16: 'bfloat16', i64: 'int64' } as const;

/** Four decimals as in PyTorch; whole numbers for ids. */
const moduleValueText = (dtype: NamedTensor['dtype'], value: number, decimals = 4) =>
  dtype === 'i64' ? String(value) : value.toFixed(decimals);

/** Values of a row in the answer. */
const FIRST = 4;

const firstOf = (values: readonly number[], text: (value: number) => string): string =>
  values.slice(0, FIRST).map(text).join(' ') + (values.length > FIRST ? ' …' : '');

function tensorTable(tensors: readonly NamedTensor[]): TableBlock {
  return tableOf(tensors, [
    leftColumn('tensor', 'tensor', ({ name }) => strongCell(name)),
    leftColumn('role', 'role', ({ role }) => role),
    leftColumn('type', 'dtype', ({ dtype }) => DTYPES[dtype]),
    leftColumn('shape', 'shape', ({ shape }) => shapeText(shape)),
    leftColumn('first values', 'first_values', ({ dtype, values }) =>
      firstOf(values, (value) => moduleValueText(dtype, value).padStart(dtype === 'i64' ? 0 : 7)),
    ),
  ]);
}

const callTable = (calls: readonly RotationStep[]): TableBlock =>
  tableOf(calls, [
    right('call', 'call', (_, at) => integerCell(at + 1)),
    right('positions', 'positions', ({ positions }) => integerCell(positions)),
    right('offset', 'offset', ({ offset }) => integerCell(offset)),
    right('scale', 'scale', ({ scale }) => integerCell(scale)),
    right('base', 'base', ({ base }) => valueCell(base, significant)),
    right('scale after', 'kept_scale', ({ keptScale }) => integerCell(keptScale)),
    right('rows of tables', 'kept_rows', ({ keptRows }) => integerCell(keptRows)),
  ]);

const stepTable = (steps: readonly SoftmaxStep[]): TableBlock => {
  const sixDecimals = (value: number): Cell => ({ text: value.toFixed(6), value });
  return tableOf(steps, [
    right('tile', 'tile', (_, at) => integerCell(at + 1)),
    leftColumn('keys', 'keys', ({ firstKey, keys }) =>
      keys === 1 ? String(firstKey) : `${firstKey}–${firstKey + keys - 1}`,
    ),
    right('maximum m', 'max', ({ max }) => sixDecimals(max)),
    right('correction', 'correction', ({ correction }) => sixDecimals(correction)),
    right('sum ℓ', 'sum', ({ sum }) => sixDecimals(sum)),
    leftColumn('output so far', 'output', ({ output }) =>
      firstOf(output, (value) => value.toFixed(4)),
    ),
  ]);
};

/** The scores of each tile. */
const stepBlocks = (steps: readonly SoftmaxStep[]): Block[] => [
  headingBlock('Scores of the last query, first head'),
  ...steps.map(({ scores }, at) =>
    noteOf(`tile ${at + 1}: ${scores.map((score) => score.toFixed(6)).join(' ')}`),
  ),
];

const checkTable = (checks: ModuleResult['checks']): TableBlock =>
  tableOf(checks, [
    wrapColumn('check', 'check', ({ check }) => check),
    leftColumn('result', 'result', ({ passed }) => ({
      text: passed ? 'ok' : 'failed',
      tone: passed ? 'good' : 'bad',
    })),
    right('difference', 'difference', ({ difference }) => ({
      text: difference === 0 ? '0' : difference.toExponential(1),
      value: difference,
    })),
    right('limit', 'limit', ({ limit }) => ({
      text: limit === 0 ? '0' : limit.toExponential(0),
      value: limit,
    })),
  ]);

/** Maximum rows of a tensor that are shown to people. */
const MOST_ROWS = 64;

function valueBlocks({ name, role, dtype, shape, values }: NamedTensor): Block[] {
  const width = Math.max(1, shape.at(-1) ?? 1);
  const rows = Math.ceil(values.length / width);
  const lines = Array.from({ length: Math.min(rows, MOST_ROWS) }, (_, row) =>
    values
      .slice(row * width, (row + 1) * width)
      .map((value) => moduleValueText(dtype, value, 6).padStart(dtype === 'i64' ? 0 : 9))
      .join(' '),
  );
  return [
    headingBlock(`${name} ${shapeText(shape)} ${DTYPES[dtype]}, ${role}`),
    ...lines.map(codeLine),
    ...(rows > MOST_ROWS
      ? [noteOf(`… ${formatInteger(rows - MOST_ROWS)} more rows: ${setting('json')}`)]
      : []),
  ];
}

/** A row for each value, for programs. */
const valueTable = (tensors: readonly NamedTensor[]): TableBlock =>
  tableOf(
    tensors.flatMap(({ values, ...tensor }) =>
      values.map((value, at) => ({ ...tensor, value, at })),
    ),
    [
      leftColumn('tensor', 'tensor', ({ name }) => name),
      leftColumn('role', 'role', ({ role }) => role),
      leftColumn('type', 'dtype', ({ dtype }) => DTYPES[dtype]),
      leftColumn('shape', 'shape', ({ shape }) => shape.join('x')),
      right('index', 'index', ({ at }) => integerCell(at)),
      right('value', 'value', ({ value }) => valueCell(value)),
    ],
  );
