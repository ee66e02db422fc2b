/** Report of `minimind fit`: a verdict for training and for serving, and its basis. */

import { type SettingName, setting } from '../../base/text/setting.js';
import {
  formatBytes,
  formatInteger,
  formatSeconds,
  formatSequences,
  loadText,
  percentText,
  significant,
} from '../../base/text/units.js';
import { counted } from '../../base/text/words.js';
import type { FitResult, MachineForward } from '../../estimate/fit/fits.js';
import type { BatchingComparison } from '../../estimate/fit/serving/batching.js';
import type {
  LoadAnswer,
  LoadMet,
  ServingLoad,
} from '../../estimate/fit/serving/throughput/arrivals.js';
import type { Gpu, GpuMachine, Hardware, Link, PeakDtype } from '../../estimate/hardware/gpu.js';
import type { MachineProfile } from '../../estimate/hardware/machine-profile.js';
import type { Quantity } from '../../model/budget/figure.js';
import type { Block, Cell, Report, TableBlock } from '../kit/report.js';
import {
  bytesCell,
  headingBlock,
  integerCell,
  leftColumn,
  NOTHING,
  noteOf,
  percentCell,
  right,
  strongCell,
  tableOf,
  valueCell,
  wrapColumn,
} from '../kit/report.js';
import { explanationBlocks } from '../profile/explanation.js';
import { answerTable, fitFacts, fitVerdictOf, nextOf, withGpuName } from './fit-answer.js';
import type { BoundsRow } from './fit-bounds.js';
import { boundsCells, boundsColumns, bytesText, sameBounds } from './fit-bounds.js';
import { passRows } from './fit-pass.js';
import { fitPictures } from './fit-pictures.js';
import { placesBlocks, placesRows } from './fit-places.js';
import { serverRows } from './fit-server.js';
import type { Serving } from './fit-serving.js';
import { sequencesOnGpu, servingBlocks } from './fit-serving.js';
import type { Training } from './fit-training.js';
import { besideTraining, changesText, loraBlocks, trainingBlocks } from './fit-training.js';

export interface FitReportOptions {
  readonly explain: boolean;
  /** Words of the user's command after `fit`, for the next one. */
  readonly argv: readonly string[];
  /** Name of the GPU, where the command has it with a number, as in `2xA100`. */
  readonly gpuName?: string | undefined;
  /** Settings that require hardware: a command without it leaves them out. */
  readonly ofHardware?: readonly SettingName[];
}

export function fitReport(
  answer: FitResult,
  { explain, gpuName, ...command }: FitReportOptions,
): Report {
  const result = withGpuName(answer, gpuName);
  const { training, serving, adapters, doubts } = result;
  const next = nextOf(result, command);
  return {
    verdict: fitVerdictOf(result),
    blocks: [
      { kind: 'facts', facts: fitFacts(result) },
      ...answerTable(result),
      ...(explain ? explanationBlocks(sectionsOf(result)) : []),
    ],
    details: [
      ...(serving ? servingDetails(serving, doubts) : []),
      ...(result.batching ? batchingBlocks(result.batching) : []),
      ...(training && !serving?.places?.isAsked
        ? [
            ...trainingBlocks(training),
            ...loraBlocks({ setting: besideTraining(training.setting) }, training.lora, 'LoRA'),
            ...loraBlocks({ setting: besideTraining(training.setting) }, training.qlora, 'QLoRA'),
          ]
        : []),
      ...(adapters
        ? loraBlocks(adapters, adapters.fit, result.purpose === 'qlora' ? 'QLoRA' : 'LoRA')
        : []),
      ...(result.forward && result.profile ? forwardBlocks(result.forward, result.profile) : []),
    ],
    pictures: () => fitPictures(result),
    ...(!explain && { derivations: () => explanationBlocks(sectionsOf(result)) }),
    more: explain ? [] : ['explain'],
    ...(next && { next }),
    data: csvTable(result),
  };
}

/** Details of serving: of the GPUs alone, or with system memory. */
const servingDetails = (serving: Serving, doubts: FitResult['doubts']): Block[] =>
  serving.places?.isAsked
    ? placesBlocks(serving.places, serving.setting)
    : servingBlocks(serving, doubts);

/** Decoding steps and places of both ways of batching. */
function batchingBlocks({ lengths, batch, mean, drawn, ...mixed }: BatchingComparison): Block[] {
  const rows = [
    { name: 'static', ...mixed },
    { name: 'static, drawn at random', ...drawn },
    { name: 'continuous', steps: mean, wasted: 0, ratio: 1 },
  ];
  return [
    headingBlock(
      `Batches of ${counted(batch, 'request')} with ${significant(mean)} output tokens on average`,
    ),
    tableOf(rows, [
      leftColumn('batching', 'batching', ({ name }) => strongCell(name)),
      right('steps per request', 'steps', ({ steps }) => valueCell(steps, significant)),
      right('wasted places', 'wasted', ({ wasted }) => percentCell(wasted)),
      right('throughput', 'ratio', ({ ratio }) => valueCell(1 / ratio, percentText)),
    ]),
    noteOf(
      `A static batch runs for its longest answer: ${formatInteger(Math.max(...lengths))} steps if it holds one. Continuous batching ` +
        'gives a place to the next request at once, and needs requests that wait. A step takes the same time in both; ' +
        'prefills are left out. Published gains of 3 to 5 times need answers whose mean is a third to a fifth of the longest.',
    ),
  ];
}

/** Figures by section, those of the question first. */
function sectionsOf({ purpose, training, serving, adapters, forward, pass }: FitResult) {
  const ofServing = serving && {
    serving: {
      ...explainedFit(serving.fit),
      ...(serving.cost && { cost: serving.cost }),
      users: serving.users,
      ...(serving.places?.isAsked && { places: serving.places }),
    },
  };
  return {
    ...(pass && { pass }),
    ...(adapters && { adapters: adapters.fit }),
    ...(purpose === 'serving' && ofServing),
    ...(training && {
      training: { ...training.fit, ...(training.cost && { cost: training.cost }) },
      LoRA: training.lora,
      QLoRA: training.qlora,
    }),
    ...ofServing,
    ...(forward && { 'forward pass on this machine': forward }),
  };
}

/** The fit without a speed, which a model that does not fit lacks. */
function explainedFit(fit: Serving['fit']): Partial<Serving['fit']> {
  if (fit.withoutRoom === null) return fit;
  const { prefill: _, decode: __, ...memory } = fit;
  return memory;
}

/** Forward pass, as measured by `quick-test`. */
const forwardBlocks = (
  { batch, tokens, seconds, bytes }: MachineForward,
  { engine, measured, load, history }: MachineProfile,
): Block[] => [
  headingBlock(
    `A forward pass of ${formatSequences(batch, tokens)} on this machine, ${engine.title}, in ${engine.compute}`,
  ),
  {
    kind: 'table',
    columns: [leftColumn('forward pass', 'what'), ...boundsColumns('value')],
    rows: [
      [strongCell('time'), ...boundsCells(seconds, formatSeconds)],
      [strongCell('memory, on top of the weights'), ...boundsCells(bytes, bytesText)],
    ],
  },
  noteOf(
    `Measured on ${measured.slice(0, 10)} at ${loadText(load)}. ${historyText(history)} The lower bound of the time is ` +
      'the best measurement less a margin; the upper bound holds at loads like those measured.',
  ),
];

const historyText = ({ measurements, since, leastLoad }: MachineProfile['history']): string =>
  measurements === 1
    ? 'Best and worst are from this one measurement.'
    : `Best and worst are from ${formatInteger(measurements)} measurements since ${since.slice(0, 10)}, the quietest at ` +
      `${loadText(leastLoad)}.`;

// Report of `minimind fit --list-gpus`.

export function hardwareReport({ gpus, machines }: Hardware): Report {
  const listed = [
    ...gpus.map((gpu) => ({ ...gpu, gpu, gpus: 1 })),
    ...machines.map((machine) => ({ ...machine, links: machine.network ? [machine.network] : [] })),
  ];
  return {
    verdict: {
      text: `${counted(gpus.length, 'GPU')} and ${counted(machines.length, 'machine')} with a name for ${setting('gpu')}`,
    },
    blocks: [
      hardwareTable(listed, FEW, false),
      noteOf(
        'Memory that programs can use, and bandwidth, per GPU; peaks in TFLOP/s of dense products. GB is 10^9 bytes. ' +
          'Memory marked * is the advertised size.',
      ),
    ],
    details: [hardwareTable(listed, PEAKS, true)],
    data: hardwareTable(listed, PEAKS, true),
  };
}

const PEAKS = Object.keys({
  f32: true,
  tf32: true,
  bf16: true,
  f16: true,
  f8: true,
  f4: true,
  int8: true,
  int4: true,
} satisfies Record<PeakDtype, true>) as PeakDtype[];

/** Types of peaks that fit into 80 columns. */
const FEW = ['bf16', 'f8', 'int8'] as const satisfies readonly PeakDtype[];

/** A GPU, or a machine with its GPUs; links are those of one GPU, or of the machine to others. */
interface Listed extends Pick<GpuMachine, 'name' | 'title' | 'gpu' | 'gpus' | 'source'> {
  readonly links: readonly Link[];
}

function hardwareTable(
  listed: readonly Listed[],
  dtypes: readonly PeakDtype[],
  isLong: boolean,
): TableBlock {
  return tableOf(listed, [
    leftColumn('name', 'name', ({ name }) => strongCell(name)),
    isLong && wrapColumn('title', 'title', ({ title }) => title),
    right('GPUs', 'gpus', ({ gpus }) => integerCell(gpus)),
    right('memory', 'usable_bytes', ({ gpu }) => usableCell(gpu)),
    isLong && right('label', 'memory_bytes', ({ gpu }) => bytesCell(gpu.memoryBytes)),
    right('bandwidth', 'bandwidth_bytes_per_second', ({ gpu: { bandwidth } }) => ({
      text: `${formatBytes(bandwidth)}/s`,
      value: bandwidth,
    })),
    ...dtypes.map((dtype) =>
      right(dtype, `${dtype}_flops`, ({ gpu }: Listed) => peakCell(gpu.peakFlops[dtype])),
    ),
    isLong && leftColumn('link', 'link', ({ links }) => links[0]?.name ?? ''),
    isLong && wrapColumn('source', 'source', ({ source }) => source),
  ]);
}

const usableCell = ({ memoryBytes, usable }: Gpu): Cell =>
  usable
    ? valueCell(usable.bytes, formatBytes)
    : { text: `*${formatBytes(memoryBytes)}`, value: memoryBytes };

const peakCell = (peak: number | undefined): Cell =>
  peak === undefined ? NOTHING : { text: significant(peak / 1e12), value: peak };

// CSV: one row per figure, with exact numbers.

function csvTable({
  pass,
  training,
  serving,
  adapters,
  forward,
}: {
  readonly adapters: FitResult['adapters'];
  readonly training: Training | null;
  readonly serving: Serving | null;
  readonly forward: MachineForward | null;
  readonly pass?: FitResult['pass'];
}): TableBlock {
  const rows = {
    training: training ? trainingRows(training) : [],
    serving: serving ? servingRows(serving) : [],
    pass: pass ? passRows(pass) : [],
    adapters: adapters ? memoryRows(adapters.fit) : [],
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

const cellsOf = (purpose: string, { what, unit, bounds }: BoundsRow): Cell[] => [
  { text: purpose },
  { text: what },
  { text: unit },
  ...[bounds.lower, bounds.expected, bounds.upper].map((bound) =>
    valueCell(bound ? Number(bound.value) : ''),
  ),
];

const costRow = ({ label, unit, value }: Quantity): BoundsRow => ({
  what: label,
  unit,
  bounds: { expected: { value } },
});

const trainingRows = ({ fit, cost }: Training): BoundsRow[] => [
  ...(fit.stages[fit.fullest]?.parts ?? []).map(({ part, bytes }) => bytesRow(part, bytes.value)),
  ...(fit.apart ? [{ what: 'not at the peak', unit: 'bytes', bounds: fit.apart }] : []),
  { what: 'workspace', unit: 'bytes', bounds: fit.workspace },
  ...memoryRows(fit),
  ...(fit.step ? [{ what: 'step', unit: 'seconds', bounds: fit.step.seconds }] : []),
  ...(fit.time ? [{ what: 'all steps', unit: 'seconds', bounds: fit.time.totalSeconds }] : []),
  ...(cost ? [{ what: 'cost of all steps', unit: 'currency', bounds: cost }] : []),
  ...fit.remedies.map(({ flags, total }) => ({
    what: `total with ${changesText(flags)}`,
    unit: 'bytes',
    bounds: total,
  })),
];

const servingRows = ({ setting, fit, cost, throughput, places }: Serving): BoundsRow[] => [
  ...fit.weightParts.map(({ part, bytes }) => bytesRow(`weights: ${part}`, bytes.value)),
  bytesRow('keys and values', sequencesOnGpu(setting) * Number(fit.cachePerSequence.value)),
  bytesRow('states', sequencesOnGpu(setting) * Number(fit.state.value)),
  { what: 'workspace', unit: 'bytes', bounds: fit.workspace },
  ...memoryRows(fit),
  ...(fit.withoutRoom === null ? speedRows(fit) : []),
  { what: 'largest batch', unit: 'sequences', bounds: sameBounds(fit.largestBatch?.value ?? 0) },
  { what: 'largest context', unit: 'tokens', bounds: sameBounds(fit.largestContext?.value ?? 0) },
  ...(places?.isAsked ? placesRows(places) : []),
  ...(throughput ? serverRows(throughput) : []),
  ...(fit.load ? loadRows(fit.load) : []),
  ...Object.values(cost ?? {}).map(costRow),
];

const speedRows = ({ prefill, decode }: Serving['fit']): BoundsRow[] => [
  ...(prefill ? [{ what: 'prefill', unit: 'seconds', bounds: prefill.seconds }] : []),
  ...(decode
    ? [
        { what: 'step of decoding', unit: 'seconds', bounds: decode.seconds },
        { what: 'decoding', unit: 'tokens/s', bounds: decode.tokensPerSecond },
      ]
    : []),
];

const bytesRow = (what: string, bytes: number | bigint): BoundsRow => ({
  what,
  unit: 'bytes',
  bounds: sameBounds(bytes),
});

/** Total, capacity, and whether the total fits by each bound. */
function memoryRows({
  total,
  capacity,
}: Pick<Training['fit'] | Serving['fit'], 'total' | 'capacity'>): BoundsRow[] {
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
function loadRows({ lower, expected, upper }: ServingLoad): BoundsRow[] {
  const row = (what: string, unit: string, of: (answer: LoadMet) => Quantity): BoundsRow => {
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
