/** Report of `minimind train-plan`: size, learning rate, groups, mistakes, checkpoints, memory. */

import { nextCommand, setting, withoutSettings } from '../base/text/setting.js';
import {
  formatBytes,
  formatInteger,
  formatSeconds,
  formatSequences,
  percentText,
  shortCount,
  shortNumber,
  significant,
} from '../base/text/units.js';
import { counted, joined } from '../base/text/words.js';
import { present } from '../base/values.js';
import type { Mistake } from '../estimate/training/mistakes/find-mistakes.js';
import type {
  PlainBounds,
  ShownPlan,
  TrainPlanResult,
} from '../estimate/training/plan-training.js';
import { publishedTimeText } from './fit/fit-bounds.js';
import type { LinePlotBlock } from './kit/pictures.js';
import type { Block, Cell, Fact, Report, TableBlock } from './kit/report.js';
import {
  bytesCell,
  headingBlock,
  integerCell,
  leftColumn,
  noteOf,
  paragraph,
  percentCell,
  right,
  strongCell,
  tableOf,
  valueCell,
} from './kit/report.js';

interface TrainPlanOptions {
  /** The learning rate of each step, for CSV. */
  readonly rates: () => readonly (readonly [step: number, rate: number])[];
  readonly isLong: boolean;
  /** Words of the user's command after `train-plan`, for the next one. */
  readonly argv: readonly string[];
}

/** Maximum mistakes in the answer; the others are in the details. */
const FIRST_MISTAKES = 2;

/**
 * Rows of the plot in the answer, by the number of mistakes above it. With more mistakes, the plot is in the details.
 */
const ROWS: readonly number[] = [6, 3];
const LONG_ROWS = 12;

export function trainPlanReport(plan: TrainPlanResult, options: TrainPlanOptions): Report {
  const { mistakes, hardware } = plan;
  const { isLong, argv } = options;
  const shown = isLong ? mistakes : mistakes.slice(0, FIRST_MISTAKES);
  const more = mistakes.length - shown.length;
  const rows = isLong ? LONG_ROWS : ROWS[mistakes.length];
  const isAsked = hardware !== null || mistakes.length > 0;
  return {
    verdict: trainPlanVerdict(plan),
    blocks: [
      ...shown.map(mistakeBlock),
      ...(more > 0 ? [noteOf(`${counted(more, 'more mistake')}: ${setting('details')}`)] : []),
      { kind: 'facts', facts: trainPlanFacts(plan, isLong) },
      ...(rows === undefined ? [] : [plotOf(plan, rows)]),
    ],
    details: detailsOf(plan),
    ...(!isAsked && {
      next: nextCommand('trainPlan', withoutSettings(argv), { gpu: 'h100' }),
    }),
    data: rateTable(plan, options),
  };
}

/** Titles of trainings of adapters. */
const ADAPTERS = { lora: 'LoRA', qlora: 'QLoRA' } as const;

function trainPlanVerdict({
  parameters,
  size,
  mistakes,
  adapters,
}: TrainPlanResult): Report['verdict'] {
  const errors = mistakes.filter(({ severity }) => severity === 'error').length;
  const found = mistakes.length === 0 ? 'no mistake found' : counted(mistakes.length, 'mistake');
  return {
    text:
      `${adapters ? `${ADAPTERS[adapters.kind]} of ` : ''}${shortCount(parameters)} parameters on ${shortCount(Math.round(size.tokens))} ${size.tokens === 1 ? 'token' : 'tokens'}: ` +
      `${counted(size.steps, 'step')}; ${found}`,
    tone: errors > 0 ? 'bad' : mistakes.length > 0 ? 'warning' : 'good',
  };
}

const mistakeBlock = ({ severity, place, title, reason, fix }: Mistake): Block =>
  paragraph(
    `${severity}: ${place}: ${title}: ${reason}. Write ${fix}`,
    severity === 'error' ? 'bad' : 'warning',
  );

const usual = (isUsual: boolean) => (isUsual ? ' (default)' : '');

/** One line per fact, if the terminal has 80 columns. */
function trainPlanFacts(plan: TrainPlanResult, isLong: boolean): Fact[] {
  const { size, optimizer, checkpoints, mistakes, hardware } = plan;
  const hasRoom = isLong || (mistakes.length === 0 && hardware === null);
  const { steps, microSteps, microBatch, accumulation, gpus, replicas } = size;
  const { context, tokensPerStep } = size;
  return [
    {
      name: 'steps',
      text: `${formatInteger(steps)}, or ${shortCount(microSteps)} ${microSteps === 1 ? 'micro-step' : 'micro-steps'} of a GPU`,
    },
    {
      name: 'batch',
      text: `${formatSequences(microBatch, context)} × ${formatInteger(accumulation)} accumulated × ${replicas === gpus ? counted(gpus, 'GPU') : counted(replicas, 'replica')} = ${shortCount(tokensPerStep)}${usual(size.isUsualBatch)}`,
    },
    { name: 'tokens', text: trainingTokensText(plan) },
    { name: 'rate', text: rateText(plan) },
    plan.adapters
      ? { name: 'adapters', text: adaptersText(plan.adapters) }
      : { name: 'AdamW', text: optimizerText(optimizer) },
    ...dataFacts(plan),
    ...(hasRoom && plan.data === null && !plan.adapters
      ? [{ name: 'disk', text: diskText(checkpoints) }]
      : []),
    ...memoryFacts(plan),
    ...(hasRoom ? underflowFacts(plan) : []),
  ];
}

/** `rank 32 on q_proj, v_proj: 15.3M parameters are trained` */
const adaptersText = ({
  rank,
  targets,
  parameters,
}: NonNullable<TrainPlanResult['adapters']>): string =>
  `rank ${formatInteger(rank)}${targets ? ` on ${targets.join(', ')}` : ''}: ${shortCount(parameters)} parameters are trained`;

function dataFacts({ data, size }: TrainPlanResult): Fact[] {
  if (data === null) return [];
  const { samples, tokens, longest, isPacked } = data;
  const rest = isPacked
    ? `packed into sequences of ${formatInteger(size.context)}`
    : `${percentText(1 - size.filled)} of ${formatInteger(size.context)} is padding`;
  return [
    {
      name: 'data',
      text: `${shortCount(tokens)} tokens in ${counted(samples, 'sample')}, longest ${formatInteger(longest)}; ${rest}`,
    },
  ];
}

function diskText({
  weights16,
  resumable,
  kept,
  diskBytes,
}: TrainPlanResult['checkpoints']): string {
  const all = kept > 1 ? `, ${formatInteger(kept)} kept: ${formatBytes(diskBytes)}` : '';
  return `${formatBytes(weights16)} of weights in 16 bits; to resume ${formatBytes(resumable)}${all}`;
}

function optimizerText({ rule, weightDecay, groups }: TrainPlanResult['optimizer']): string {
  if (weightDecay === 0) return `no weight decay (rule ${rule})`;
  const of = (isDecayed: boolean) =>
    shortCount(groups.find((group) => group.isDecayed === isDecayed)?.parameters ?? 0);
  return `weight decay ${shortNumber(weightDecay)} on ${of(true)} parameters, none on ${of(false)} (rule ${rule})`;
}

function trainingTokensText({ size, adapters, overTrained: [longer] }: TrainPlanResult): string {
  const { tokensPerParameter, epochs, dataTokens, length } = size;
  const repeated =
    epochs === undefined || dataTokens === undefined
      ? ''
      : `; ${shortNumber(epochs)} ${epochs === 1 ? 'epoch' : 'epochs'} of ${shortCount(dataTokens)} ${dataTokens === 1 ? 'token' : 'tokens'}`;
  // What is best for the training of a model says nothing about its adapters.
  if (adapters) return `${shortCount(Math.round(size.tokens))}${repeated}`;
  const other = longer
    ? `, ${longer.model.split('-')[0]} ${formatInteger(Math.round(longer.tokensPerParameter))}`
    : '';
  const ratio =
    tokensPerParameter < 1000
      ? shortNumber(tokensPerParameter)
      : formatInteger(Math.round(tokensPerParameter));
  return `${ratio} a parameter (${length === 'default' ? 'default; ' : ''}optimal 20${other})${repeated}`;
}

function rateText({ learningRate }: TrainPlanResult): string {
  const { schedule, peak, floor, warmup, isUsualPeak, isUsualSchedule, isUsualWarmup } =
    learningRate;
  const { points } = learningRate;
  const last = points.at(-1)?.[1] ?? floor;
  const defaults = [
    ...(isUsualPeak ? ['rate'] : []),
    ...(isUsualSchedule ? ['schedule'] : []),
    ...(isUsualWarmup && warmup > 0 ? ['warm-up'] : []),
  ];
  const from =
    defaults.length === 3
      ? ' (defaults)'
      : defaults.length > 0
        ? ` (default: ${defaults.join(', ')})`
        : '';
  return (
    `${shortNumber(peak)}, ${schedule} to ${shortNumber(last)}, ` +
    `warm-up ${warmup === 0 ? 'none' : counted(warmup, 'step')}${from}`
  );
}

function memoryFacts({ hardware, accumulation, size }: TrainPlanResult): Fact[] {
  if (hardware === null) {
    const planned = accumulation.find(({ isPlanned }) => isPlanned);
    return planned
      ? [
          {
            name: 'memory',
            text: `${boundsText(planned.memory, bytesText)} per GPU at micro-batch ${formatInteger(size.microBatch)}`,
          },
        ]
      : [];
  }
  const { gpu, gpus, verdict, memory, capacity, tokensPerSecond, cost } = hardware;
  const { totalSeconds, publishedSeconds } = hardware;
  const time =
    totalSeconds === null || tokensPerSecond === null
      ? 'unknown: no published peak for this GPU'
      : formatSeconds(totalSeconds.expected) +
        publishedTimeText(publishedSeconds, totalSeconds, formatSeconds) +
        ` at ${significant(tokensPerSecond)} tokens/s` +
        (cost === null ? '' : `; cost ${boundsText(cost, significant)}`);
  return [
    {
      name: 'memory',
      text: `${verdict}: ${bytesText(memory.expected)} of ${bytesText(capacity)}, ${formatInteger(gpus)} × ${gpu}`,
      ...(verdict === 'does not fit' && { tone: 'bad' as const }),
    },
    ...(verdict === 'does not fit' ? [] : [{ name: 'time', text: time }]),
  ];
}

/** `12.1 GB (bounds 10.9 GB–13.6 GB)` */
const boundsText = ({ lower, expected, upper }: PlainBounds, format: (value: number) => string) =>
  `${format(expected)} (bounds ${format(lower)}–${format(upper)})`;

const bytesText = (bytes: number) => formatBytes(Math.round(bytes));

/** A scale as text. Scales of GradScaler are whole numbers; others need not be. */
const scaleText = (scale: number) =>
  Number.isSafeInteger(scale) ? formatInteger(scale) : shortNumber(scale);

function underflowFacts({ underflow, precision }: TrainPlanResult): Fact[] {
  if (underflow === null) return [];
  const { below, scale, isMeasured } = underflow;
  const where = precision === 'fp16' ? '' : ', if it were fp16';
  return [
    {
      name: 'fp16',
      text:
        `${percentText(below)} of gradient values below 6.0e-8 at scale ${scaleText(scale)}${where} ` +
        `(${isMeasured ? 'measured' : 'assumed normal, norm as clipped'})`,
    },
  ];
}

const plotOf = ({ learningRate, size }: TrainPlanResult, rows: number): LinePlotBlock => ({
  kind: 'line plot',
  title: `learning rate over ${counted(size.steps, 'step')} (${learningRate.title})`,
  x: {},
  y: { from: 0 },
  curves: [{ label: 'learning rate', tone: 'hue1', points: learningRate.points }],
  rows,
});

function detailsOf(plan: TrainPlanResult): Block[] {
  const { learningRate, optimizer, size, gradients } = plan;
  return present([
    headingBlock(
      `Same tokens a step: micro-batch × accumulation × ${size.replicas === size.gpus ? 'GPUs' : 'replicas'}`,
    ),
    accumulationTable(plan),
    noteOf(
      plan.hardware === null
        ? `Memory of a GPU: lower bound, estimate, upper bound. With ${setting('gpu')}: whether it fits.`
        : 'Memory of a GPU: lower bound, estimate, upper bound.',
    ),
    ...undividedNotes(plan),
    // The groups and the checkpoints are those of all weights.
    ...(plan.adapters
      ? []
      : [
          headingBlock(`AdamW groups: ${optimizer.title}`),
          groupsTable(plan),
          noteOf(`Tied tensors count once. Rule: ${optimizer.source}. JSON lists each tensor.`),
          headingBlock('Checkpoints'),
          checkpointTable(plan),
        ]),
    ...(gradients === null ? [] : gradientBlocks(plan)),
    noteOf(`Schedule: ${learningRate.source}. Steps count from 0.`),
    !plan.adapters &&
      noteOf(
        `Tokens a parameter: ${shortNumber(size.tokensPerParameter)}. Compute-optimal is 20 (arXiv 2203.15556). Small models are trained longer: ${longerText(plan)}.`,
      ),
  ]);
}

/** Reason for dividing a loss by the accumulation. */
function undividedNotes({ undivided }: TrainPlanResult): Block[] {
  if (undivided === null) return [];
  const { gradientFactor, sgdLearningRate, clippedAbove } = undivided;
  const times = formatInteger(gradientFactor);
  const clipping =
    clippedAbove === null
      ? ''
      : ` Clipping would begin at a norm of ${shortNumber(clippedAbove)} of the mean gradient.`;
  return [
    noteOf(
      `Divide the loss of each micro-step by ${times}: the gradients of a step add up, and give their mean. Without that the ` +
        `gradient is ${times} × as large. SGD steps as with a learning rate of ${shortNumber(sgdLearningRate)}; AdamW takes the same ` +
        `steps, since its update does not depend on the scale.${clipping}`,
    ),
  ];
}

/** `TinyLlama-1.1B 2,727 (arXiv 2401.02385)` */
const longerText = ({ overTrained }: TrainPlanResult): string =>
  joined(
    overTrained.map(
      ({ model, tokensPerParameter, source }) =>
        `${model} ${formatInteger(Math.round(tokensPerParameter))} (${source})`,
    ),
  );

const accumulationTable = ({ accumulation, size }: TrainPlanResult): TableBlock => {
  const roundBytes = (bytes: number): Cell => valueCell(bytes, bytesText);
  return tableOf(accumulation, [
    right('micro-batch', 'micro_batch', ({ microBatch, isPlanned }) =>
      isPlanned ? strongCell(formatInteger(microBatch)) : integerCell(microBatch),
    ),
    right('accumulation', 'accumulation', ({ accumulation: times }) => integerCell(times)),
    ...(size.replicas === size.gpus
      ? []
      : [right('replicas', 'replicas', () => integerCell(size.replicas))]),
    right('GPUs', 'gpus', ({ gpus }) => integerCell(gpus)),
    right('lower', 'lower_bytes', ({ memory }) => roundBytes(memory.lower)),
    right('memory', 'expected_bytes', ({ memory }) => roundBytes(memory.expected)),
    right('upper', 'upper_bytes', ({ memory }) => roundBytes(memory.upper)),
    leftColumn('', 'verdict', ({ verdict, isPlanned }) =>
      [verdict ?? '', isPlanned ? 'planned' : ''].filter(Boolean).join(', '),
    ),
  ]);
};

/** Copy of `TENSOR_KINDS`, of which a report uses types only. */
const KINDS = {
  matrix: 'matrices',
  embedding: 'embedding',
  positions: 'learned positions',
  srte: 'SRTE tables',
  norm: 'norms',
  bias: 'biases',
  vector: 'other vectors',
} as const satisfies Record<
  ShownPlan['optimizer']['groups'][number]['kinds'][number]['kind'],
  string
>;

const groupsTable = ({ optimizer: { groups } }: TrainPlanResult): TableBlock =>
  tableOf(
    groups.flatMap(({ weightDecay, kinds }) => kinds.map((each) => ({ ...each, weightDecay }))),
    [
      right('weight decay', 'weight_decay', ({ weightDecay }) =>
        valueCell(weightDecay, shortNumber),
      ),
      leftColumn('tensors of', 'kind', ({ kind }) => strongCell(KINDS[kind])),
      right('tensors', 'tensors', ({ tensors }) => integerCell(tensors)),
      right('parameters', 'parameters', ({ parameters }) => integerCell(parameters)),
    ],
  );

function checkpointTable({ checkpoints }: TrainPlanResult): TableBlock {
  const { weights16, weights32, resumable, kept, diskBytes, every, written } = checkpoints;
  const row = (what: string, bytes: number) => [strongCell(what), bytesCell(bytes)];
  const when = every === undefined ? 'only at the end' : `every ${formatInteger(every)} steps`;
  return {
    kind: 'table',
    columns: [leftColumn('checkpoint', 'what'), right('size', 'bytes')],
    rows: [
      row('weights in 16 bits (2 bytes a parameter)', weights16),
      row('weights in float32 (4 bytes)', weights32),
      row('to resume: float32 and both moments of AdamW (12 bytes)', resumable),
      row(`disk: ${formatInteger(kept)} kept of ${formatInteger(written)}, ${when}`, diskBytes),
    ],
  };
}

function gradientBlocks({ gradients }: TrainPlanResult): Block[] {
  if (gradients === null) return [];
  const { file, values, zeros, notFinite, largest, scales } = gradients;
  return [
    headingBlock(`Gradients of ${file} in fp16`),
    noteOf(
      `${formatInteger(values)} values other than 0, ${formatInteger(zeros)} zeros, ${formatInteger(notFinite)} not finite; largest ${shortNumber(largest)}.`,
    ),
    tableOf(scales, [
      right('scale', 'scale', ({ scale }) => valueCell(scale, scaleText)),
      right('below 6.0e-8', 'below', ({ below }) => percentCell(below)),
      right('become 0', 'zeroed', ({ zeroed }) => percentCell(zeroed)),
      right('below 6.1e-5', 'imprecise', ({ imprecise }) => percentCell(imprecise)),
      right('above 65,504', 'above', ({ above }) => percentCell(above)),
    ]),
  ];
}

/** The learning rate step by step, for CSV. */
const rateTable = ({ size }: TrainPlanResult, { rates }: TrainPlanOptions): TableBlock => ({
  kind: 'table',
  columns: [
    right('step', 'step'),
    right('tokens', 'tokens'),
    right('learning rate', 'learning_rate'),
  ],
  get rows() {
    return rates().map(([step, rate]) => [
      valueCell(step),
      integerCell(Math.round((step + 1) * size.tokensPerStep * size.filled)),
      valueCell(rate),
    ]);
  },
});
