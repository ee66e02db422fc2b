/** CSV of `minimind fit`: one row per figure, with exact numbers. */
import type { Quantity } from '../../budget/figure.js';
import type { MachineForward } from '../../fit/fits.js';
import type { LoadAnswer, LoadMet } from '../../fit/serving/queueing.js';
import type { ServingLoad } from '../../fit/serving/serving.js';
import { leftColumn, right } from '../kit/cells.js';
import type { Cell, TableBlock } from '../kit/report.js';
import { type ShownBounds, sameBounds } from './fit-bounds.js';
import type { Serving } from './fit-serving.js';
import { flagsText, type Training } from './fit-training.js';

interface Row {
  readonly what: string;
  readonly unit: string;
  /** Values by bound; undefined when there is none. */
  readonly bounds: { readonly [bound in keyof ShownBounds]?: ShownBounds[bound] | undefined };
}

export function csvTable({
  training,
  serving,
  forward,
}: {
  readonly training: Training | null;
  readonly serving: Serving | null;
  readonly forward: MachineForward | null;
}): TableBlock {
  const rows = {
    training: training ? trainingRows(training) : [],
    serving: serving ? servingRows(serving) : [],
    forward: forward
      ? [
          { what: 'time', unit: 'seconds', bounds: forward.seconds },
          { what: 'memory', unit: 'bytes', bounds: forward.bytes },
        ]
      : [],
  } as const;
  return {
    kind: 'table',
    columns: [
      leftColumn('for', 'for'),
      leftColumn('what', 'what'),
      leftColumn('unit', 'unit'),
      right('lower', 'lower'),
      right('expected', 'expected'),
      right('upper', 'upper'),
    ],
    rows: Object.entries(rows).flatMap(([purpose, each]) =>
      each.map((row) => cellsOf(purpose, row)),
    ),
  };
}

const cellsOf = (purpose: string, { what, unit, bounds }: Row): Cell[] => [
  { text: purpose },
  { text: what },
  { text: unit },
  ...[bounds.lower, bounds.expected, bounds.upper].map((bound): Cell => {
    const value = bound && Number(bound.value);
    return { text: String(value ?? ''), value: value ?? '' };
  }),
];

const costRow = ({ label, unit, value }: Quantity): Row => ({
  what: label,
  unit,
  bounds: { expected: { value } },
});

const trainingRows = ({ fit, cost }: Training): Row[] => [
  ...(fit.stages[fit.fullest]?.parts ?? []).map(({ part, bytes }) => bytesRow(part, bytes.value)),
  ...(fit.apart ? [{ what: 'not at the peak', unit: 'bytes', bounds: fit.apart }] : []),
  { what: 'workspace', unit: 'bytes', bounds: fit.workspace },
  ...memoryRows(fit),
  ...(fit.step ? [{ what: 'step', unit: 'seconds', bounds: fit.step.seconds }] : []),
  ...(fit.time ? [{ what: 'all steps', unit: 'seconds', bounds: fit.time.totalSeconds }] : []),
  ...(cost ? [{ what: 'cost of all steps', unit: 'currency', bounds: cost }] : []),
  ...fit.remedies.map(({ flags, total }) => ({
    what: `total with ${flagsText(flags)}`,
    unit: 'bytes',
    bounds: total,
  })),
];

const servingRows = ({ setting: { batch }, fit, cost }: Serving): Row[] => [
  ...fit.weightParts.map(({ part, bytes }) => bytesRow(`weights: ${part}`, bytes.value)),
  bytesRow('keys and values', batch * Number(fit.cachePerSequence.value)),
  bytesRow('states', batch * Number(fit.state.value)),
  { what: 'workspace', unit: 'bytes', bounds: fit.workspace },
  ...memoryRows(fit),
  ...(fit.withoutRoom === null ? speedRows(fit) : []),
  { what: 'largest batch', unit: 'sequences', bounds: sameBounds(fit.largestBatch?.value ?? 0) },
  { what: 'largest context', unit: 'tokens', bounds: sameBounds(fit.largestContext?.value ?? 0) },
  ...(fit.load ? loadRows(fit.load) : []),
  ...Object.values(cost ?? {}).map(costRow),
];

const speedRows = ({ prefill, decode }: Serving['fit']): Row[] => [
  ...(prefill ? [{ what: 'prefill', unit: 'seconds', bounds: prefill.seconds }] : []),
  { what: 'step of decoding', unit: 'seconds', bounds: decode.seconds },
  { what: 'decoding', unit: 'tokens/s', bounds: decode.tokensPerSecond },
];

const bytesRow = (what: string, bytes: number | bigint): Row => ({
  what,
  unit: 'bytes',
  bounds: sameBounds(bytes),
});

/** Total, capacity, and whether the total fits by each bound. */
function memoryRows({
  total,
  capacity,
}: Pick<Training['fit'] | Serving['fit'], 'total' | 'capacity'>): Row[] {
  const fits = ({ value }: { readonly value: number }) => ({
    value: value <= capacity.value ? 1 : 0,
  });
  return [
    { what: 'total', unit: 'bytes', bounds: total },
    bytesRow('capacity', capacity.value),
    {
      what: 'fits',
      unit: '1 or 0',
      bounds: {
        lower: fits(total.lower),
        expected: fits(total.expected),
        upper: fits(total.upper),
      },
    },
  ];
}

/** Values at the speed of each bound; empty when no number of GPUs supports the load. */
function loadRows({ lower, expected, upper }: ServingLoad): Row[] {
  const row = (what: string, unit: string, of: (answer: LoadMet) => Quantity): Row => {
    const figureOf = (answer: LoadAnswer) => (answer.met ? of(answer) : undefined);
    const bounds = { lower: figureOf(lower), expected: figureOf(expected), upper: figureOf(upper) };
    return { what: `load: ${what}`, unit, bounds };
  };
  return [
    row('GPUs', 'GPUs', ({ gpus }) => gpus),
    row('batch', 'requests', ({ batch }) => batch),
    row('mean', 'seconds', ({ meanSeconds }) => meanSeconds),
    row('95th percentile', 'seconds', ({ p95Seconds }) => p95Seconds),
  ];
}
