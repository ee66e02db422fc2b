/** What `minimind fit` prints: a verdict for training and for serving, and what it rests on. */
import type { Bounds, Quantity } from '../budget/quantity.js';
import type { Fits, MachineForward } from '../cli/fit-setting.js';
import type { Cluster } from '../fit/hardware-setting.js';
import type { LoadAnswer } from '../fit/queueing.js';
import type { ServingLoad } from '../fit/serving.js';
import type { Remedy, StepTime, TrainingTime, Verdict } from '../fit/training.js';
import type { MachineProfile } from '../hardware/machine-profile.js';
import { bar } from './bar.js';
import { heading, integerCell, left, note, right, strong } from './cells.js';
import { explanationBlocks } from './explanation.js';
import { percentText } from './percent.js';
import type { Block, Cell, Report, TableBlock, Tone } from './report.js';
import { contextText } from './setting.js';
import { formatBytes, formatCount, formatInteger, formatSeconds, significant } from './units.js';

export interface FitResult extends Fits {
  readonly file: string;
  readonly family: string;
  readonly parameters: number;
  readonly cluster: Cluster;
  /** What was measured, when the hardware is this machine. */
  readonly profile: MachineProfile | null;
  /** A forward pass on it. */
  readonly forward: MachineForward | null;
}

type Training = NonNullable<Fits['training']>;
type Serving = NonNullable<Fits['serving']>;

/** @param flat Whether the reader is a program, which gets one table. */
export function fitReport(
  result: FitResult,
  { explain, flat }: { readonly explain: boolean; readonly flat: boolean },
): Report {
  const { file, family, parameters, cluster, training, serving } = result;
  if (flat) return { blocks: [flatTable(result)] };
  return {
    blocks: [
      heading(`${family} model of ${file} on ${hardwareText(cluster)}`),
      note(
        `${formatCount(parameters)} parameters. Of every figure there is what must be (lower), what is expected, and ` +
          'what poor software makes of it (upper); --explain has the formulas.',
      ),
      ...(training ? trainingBlocks(training) : []),
      ...(serving ? servingBlocks(serving) : []),
      ...(result.forward && result.profile ? forwardBlocks(result.forward, result.profile) : []),
      ...(explain ? explanationBlocks(sectionsOf(result)) : []),
    ],
  };
}

const hardwareText = ({ gpu, gpus }: Cluster) =>
  `${gpus === 1 ? '' : `${formatInteger(gpus)} × `}${gpu.title}`;

const sectionsOf = ({ training, serving, forward }: FitResult) => ({
  ...(training && { training: training.fit }),
  ...(serving && { serving: serving.fit }),
  ...(forward && { 'a forward pass here': forward }),
});

const TONES = {
  fits: 'good',
  'may fit': 'warning',
  'does not fit': 'bad',
} as const satisfies Record<Verdict, Tone>;

const verdictHeading = (what: string, verdict: Verdict): Block => ({
  kind: 'heading',
  text: `${what}: ${verdict}`,
  tone: TONES[verdict],
});

// Training.

function trainingBlocks({ setting, contextOrigin, fit }: Training): Block[] {
  const { stages, fullest, workspaceParts, total, capacity, verdict, step, time, remedies } = fit;
  const stage = stages[fullest];
  const parts = stage ? stage.parts : [];
  return [
    verdictHeading('Training', verdict),
    note(
      `${formatInteger(setting.microBatch)} × ${formatInteger(setting.context)} tokens${contextText(contextOrigin)} a ` +
        `micro-batch, ${setting.precision === 'mixed' ? 'mixed precision' : 'float32'}, ${setting.optimizer}, ` +
        `recomputation ${setting.recompute}, ${setting.attention} attention, ${spreadText(setting)}.`,
    ),
    memoryTable(
      parts.map(({ part, bytes }) => ({ part, bytes: sameBounds(bytes.value) })),
      labelled(workspaceParts),
      total,
      capacity,
    ),
    ...(stages.length > 1 ? [stagesTable(fit)] : []),
    ...(step
      ? stepBlocks(step, time)
      : [note('How fast it is, nobody says: no peak of this GPU is published.')]),
    ...remedyBlocks(remedies, verdict),
  ];
}

function spreadText(setting: Training['setting']): string {
  const { cluster, tensorParallel, pipelineParallel, sequenceParallel, zero } = setting;
  const replicas = cluster.gpus / (tensorParallel * pipelineParallel);
  const parts = [
    `${formatInteger(replicas)} ${replicas === 1 ? 'replica' : 'replicas'}`,
    ...(tensorParallel > 1 ? [`tensor parallel ${tensorParallel}`] : []),
    ...(sequenceParallel ? ['sequence parallel'] : []),
    ...(pipelineParallel > 1 ? [`${pipelineParallel} pipeline stages`] : []),
    ...(replicas > 1 || zero > 0 ? [`ZeRO-${zero}`] : []),
  ];
  return parts.join(', ');
}

interface Value {
  readonly value: number | bigint;
}

/** Bounds as far as they are shown. */
interface ShownBounds {
  readonly lower: Value;
  readonly expected: Value;
  readonly upper: Value;
}

const sameBounds = (value: number | bigint): ShownBounds => ({
  lower: { value },
  expected: { value },
  upper: { value },
});

/** By what they are called where they are explained. */
const labelled = (parts: readonly { readonly bytes: Bounds }[]): MemoryPart[] =>
  parts.map(({ bytes }) => ({ part: bytes.expected.label, bytes }));

interface MemoryPart {
  readonly part: string;
  readonly bytes: ShownBounds;
}

/** How long the bar of what a GPU has is, in columns. */
const BAR_WIDTH = 20;

/** Of the fullest GPU: what there is exactly, the workspace, and both beside what the GPU has. */
function memoryTable(
  exact: readonly MemoryPart[],
  workspace: readonly MemoryPart[],
  total: Bounds,
  capacity: Quantity,
): TableBlock {
  const share = (bytes: ShownBounds): Cell => ({
    text: bar(Number(bytes.expected.value) / capacity.value, BAR_WIDTH),
    value: '',
  });
  const row = ({ part, bytes }: MemoryPart): Cell[] => [
    { text: part },
    ...boundsCells(bytes, bytesText),
    share(bytes),
  ];
  return {
    kind: 'table',
    columns: [
      left('memory of the fullest GPU', 'part'),
      ...boundsColumns('bytes'),
      left('', 'bar'),
    ],
    rows: [
      ...exact.filter(isThere).map(row),
      ...workspace.filter(isThere).map((each) => row({ ...each, part: `+ ${each.part}` })),
      [strong('total'), ...boundsCells(total, bytesText), share(total)],
      [
        { text: 'the GPU has', tone: 'dim' },
        { text: '', value: '' },
        { text: bytesText(capacity.value), value: capacity.value },
        { text: '', value: '' },
        { text: bar(1, BAR_WIDTH), value: '' },
      ],
    ],
  };
}

/** What is nothing by any bound is not worth a line. */
const isThere = ({ bytes }: MemoryPart): boolean => Number(bytes.upper.value) > 0;

const boundsColumns = (unit: string) => [
  right('lower', `lower_${unit}`),
  right('expected', `expected_${unit}`),
  right('upper', `upper_${unit}`),
];

const boundsCells = (bounds: ShownBounds, text: (value: number) => string): Cell[] =>
  [bounds.lower, bounds.expected, bounds.upper].map(({ value }) => ({
    text: text(Number(value)),
    value: Number(value),
  }));

const bytesText = (bytes: number) => formatBytes(Math.round(bytes));

function stagesTable({ stages, fullest }: Training['fit']): TableBlock {
  return {
    kind: 'table',
    columns: [
      right('stage', 'stage'),
      left('blocks', 'blocks'),
      right('parameters of a GPU', 'parameters'),
      right('exactly', 'exact_bytes'),
      left('', 'fullest'),
    ],
    rows: stages.map(({ stage, blocks: [from, to], parameters, exactBytes }, index) => [
      integerCell(stage),
      { text: to - from === 1 ? String(from) : `${from}–${to - 1}` },
      integerCell(parameters.value),
      { text: bytesText(Number(exactBytes.value)), value: Number(exactBytes.value) },
      { text: index === fullest ? 'the fullest' : '' },
    ]),
  };
}

function stepBlocks(step: StepTime, time: TrainingTime | undefined): Block[] {
  const { seconds, mfu, limits, limitedBy, tokens, tokensPerSecond } = step;
  return [
    note(
      `A step is ${formatInteger(Math.round(tokens.value))} tokens, ${significant(tokensPerSecond.value)} tokens/s at an ` +
        `MFU of ${percentText(mfu.value)} (${mfu.source}). At best ${limitedBy} limits it: ` +
        `${limits.map(({ limit, seconds: each }) => `${limit} ${formatSeconds(each.value)}`).join(', ')}.`,
    ),
    {
      kind: 'table',
      columns: [left('time', 'what'), ...boundsColumns('seconds')],
      rows: [
        [strong('a step'), ...boundsCells(seconds, formatSeconds)],
        ...(time
          ? [
              [
                strong(`all ${formatInteger(Math.round(time.steps.value))} steps`),
                ...boundsCells(time.totalSeconds, formatSeconds),
              ],
            ]
          : []),
      ],
    },
  ];
}

function remedyBlocks(remedies: readonly Remedy[], verdict: Verdict): Block[] {
  if (remedies.length === 0) {
    return verdict === 'fits' ? [] : [note('No change that is known here makes it fit.')];
  }
  return [
    heading(
      verdict === 'fits' ? 'How far it could be taken' : 'The smallest changes that make it fit',
    ),
    {
      kind: 'table',
      columns: [left('change', 'change', true), ...boundsColumns('bytes')],
      rows: remedies.map(({ change, total }) => [
        { text: change },
        ...boundsCells(total, bytesText),
      ]),
    },
  ];
}

// Serving.

function servingBlocks({ setting, contextOrigin, fit }: Serving): Block[] {
  const { weightParts, cachePerSequence, state, workspaceParts, total, capacity, verdict } = fit;
  const { batch, context } = setting;
  const times = (bytes: number | bigint) => sameBounds(batch * Number(bytes));
  return [
    verdictHeading('Serving', verdict),
    note(
      `${formatInteger(batch)} × ${formatInteger(context)} tokens${contextText(contextOrigin)}, weights in ` +
        `${formatText(setting)}, cache in ${setting.cacheDtype}, ` +
        `${setting.tensorParallel === 1 ? 'each GPU by itself' : `${setting.tensorParallel} GPUs share the layers`}.`,
    ),
    memoryTable(
      [
        ...weightParts.map(({ bytes }) => ({ part: bytes.label, bytes: sameBounds(bytes.value) })),
        { part: 'keys and values', bytes: times(cachePerSequence.value) },
        ...(state.value > 0 ? [{ part: 'states', bytes: times(state.value) }] : []),
      ],
      labelled(workspaceParts),
      total,
      capacity,
    ),
    speedTable(fit, setting),
    note(
      `At best ${fit.decode.limitedBy} limits decoding, and ${fit.prefill.limitedBy} the prefill. ${roomText(fit, setting)}`,
    ),
    ...(fit.load ? loadBlocks(fit.load, setting) : []),
  ];
}

const formatText = ({
  weights: { dtype, groupSize, scaleDtype, zeroPoints },
}: Serving['setting']) =>
  ['f32', 'bf16', 'f16'].includes(dtype)
    ? dtype
    : `${dtype} (a scale in ${scaleDtype} for ${groupSize === 'row' ? 'each row' : `each ${groupSize} values`}` +
      `${zeroPoints ? ', with zero points' : ''})`;

function speedTable(
  { prefill, decode }: Serving['fit'],
  { prompt, batch }: Serving['setting'],
): TableBlock {
  const sequences = batch === 1 ? '1 sequence' : `${formatInteger(batch)} sequences`;
  return {
    kind: 'table',
    columns: [left('speed', 'what'), ...boundsColumns('value')],
    rows: [
      [
        strong(`prefill of ${formatInteger(prompt)} tokens`),
        ...boundsCells(prefill.seconds, formatSeconds),
      ],
      [strong(`a token of ${sequences}`), ...boundsCells(decode.seconds, formatSeconds)],
      [{ text: 'tokens/s' }, ...boundsCells(decode.tokensPerSecond, significant)],
    ],
  };
}

function roomText(
  { largestBatch, largestContext }: Serving['fit'],
  { batch, context }: Serving['setting'],
): string {
  const sequences =
    largestBatch === null
      ? `Not one sequence of ${formatInteger(context)} tokens fits`
      : `At ${formatInteger(context)} tokens ${formatInteger(largestBatch.value)} sequences fit`;
  const tokens =
    largestContext === null
      ? 'and of no length'
      : `and ${formatInteger(largestContext.value)} tokens at a batch of ${formatInteger(batch)}`;
  return `${sequences}, ${tokens}.`;
}

function loadBlocks(
  { lower, expected, upper, assumption }: ServingLoad,
  setting: Serving['setting'],
): Block[] {
  const { load, prompt, output } = setting;
  if (!load) return [];
  return [
    heading(
      `${significant(load.requestsPerSecond)} requests/s of ${formatInteger(prompt)} and ${formatInteger(output)} tokens, ` +
        `95 % within ${formatSeconds(load.p95Seconds)}`,
    ),
    {
      kind: 'table',
      columns: [
        left('if speed is', 'speed'),
        right('GPUs', 'gpus'),
        right('replicas', 'replicas'),
        right('batch', 'batch'),
        right('p95', 'p95_seconds'),
        right('served', 'service_seconds'),
        right('waits', 'waiting_seconds'),
        right('in use', 'utilisation'),
        left('', 'remark', true),
      ],
      // The lower bound of a time is the best speed.
      rows: [loadRow('the best', lower), loadRow('as expected', expected), loadRow('poor', upper)],
    },
    note(`Assumed: ${assumption}.`),
  ];
}

const NOTHING: Cell = { text: '–', value: '' };

function loadRow(title: string, answer: LoadAnswer): Cell[] {
  if (!answer.met) {
    const why =
      answer.reason === 'no room'
        ? 'there is no room for one request'
        : `impossible: a request alone takes ${formatSeconds(answer.best.value)}`;
    return [strong(title), ...Array.from({ length: 7 }, () => NOTHING), { text: why, tone: 'bad' }];
  }
  const { gpus, replicas, batch, p95Seconds, service, waiting, utilisation } = answer;
  const seconds = ({ value }: Quantity): Cell => ({ text: formatSeconds(value), value });
  return [
    strong(title),
    integerCell(gpus.value),
    integerCell(replicas.value),
    integerCell(batch.value),
    seconds(p95Seconds),
    seconds(service),
    seconds(waiting),
    { text: percentText(utilisation.value), value: utilisation.value },
    { text: '' },
  ];
}

// This machine.

/** As `quick-test` measures it. */
const forwardBlocks = (
  { batch, tokens, seconds, bytes }: MachineForward,
  { engine }: MachineProfile,
): Block[] => [
  heading(
    `A forward pass of ${formatInteger(batch)} × ${formatInteger(tokens)} tokens on this machine, ${engine.title}, in ${engine.compute}`,
  ),
  {
    kind: 'table',
    columns: [left('quick-test will tell', 'what'), ...boundsColumns('value')],
    rows: [
      [strong('time'), ...boundsCells(seconds, formatSeconds)],
      [strong('memory, beside what it begins with'), ...boundsCells(bytes, bytesText)],
    ],
  },
];

// CSV: every figure a row.

function flatTable({ training, serving }: FitResult): TableBlock {
  const row = (purpose: string, what: string, unit: string, bounds: ShownBounds): Cell[] => [
    { text: purpose },
    { text: what },
    { text: unit },
    ...boundsCells(bounds, String),
  ];
  const rows: Cell[][] = [];
  if (training) {
    const { fit } = training;
    const stage = fit.stages[fit.fullest];
    for (const { part, bytes } of stage?.parts ?? []) {
      rows.push(row('training', part, 'bytes', sameBounds(bytes.value)));
    }
    rows.push(row('training', 'workspace', 'bytes', fit.workspace));
    rows.push(row('training', 'total', 'bytes', fit.total));
    rows.push(row('training', 'capacity', 'bytes', sameBounds(fit.capacity.value)));
    if (fit.step) rows.push(row('training', 'step', 'seconds', fit.step.seconds));
    if (fit.time) rows.push(row('training', 'all steps', 'seconds', fit.time.totalSeconds));
  }
  if (serving) {
    const { fit, setting } = serving;
    for (const { part, bytes } of fit.weightParts) {
      rows.push(row('serving', `weights: ${part}`, 'bytes', sameBounds(bytes.value)));
    }
    const cache = setting.batch * Number(fit.cachePerSequence.value);
    rows.push(row('serving', 'keys and values', 'bytes', sameBounds(cache)));
    rows.push(
      row('serving', 'states', 'bytes', sameBounds(setting.batch * Number(fit.state.value))),
    );
    rows.push(row('serving', 'workspace', 'bytes', fit.workspace));
    rows.push(row('serving', 'total', 'bytes', fit.total));
    rows.push(row('serving', 'capacity', 'bytes', sameBounds(fit.capacity.value)));
    rows.push(row('serving', 'prefill', 'seconds', fit.prefill.seconds));
    rows.push(row('serving', 'step of decoding', 'seconds', fit.decode.seconds));
    rows.push(row('serving', 'decoding', 'tokens/s', fit.decode.tokensPerSecond));
  }
  return {
    kind: 'table',
    columns: [
      left('for', 'for'),
      left('what', 'what'),
      left('unit', 'unit'),
      right('lower', 'lower'),
      right('expected', 'expected'),
      right('upper', 'upper'),
    ],
    rows,
  };
}
