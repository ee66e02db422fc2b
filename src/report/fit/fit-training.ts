/** Training part of the report of `minimind fit`. */

import { type SettingValues, settingsLine } from '../../base/text/setting.js';
import {
  formatInteger,
  formatSeconds,
  percentText,
  shortCount,
  significant,
} from '../../base/text/units.js';
import { counted, sentence } from '../../base/text/words.js';
import { present } from '../../base/values.js';
import type { Fits } from '../../estimate/fit/fits.js';
import type { ClusterLora } from '../../estimate/fit/training/lora.js';
import type {
  Remedy,
  StepTime,
  TrainingLimit,
  TrainingTime,
} from '../../estimate/fit/training/training-fit.js';
import type { Cluster } from '../../estimate/hardware/gpu.js';
import type { Bounds } from '../../model/budget/figure.js';
import type { Block, TableBlock } from '../kit/report.js';
import {
  headingBlock,
  integerCell,
  leftColumn,
  noteOf,
  right,
  strongCell,
  valueCell,
  wrapColumn,
} from '../kit/report.js';
import { contextText, precisionText } from '../profile/setting-notes.js';
import {
  boundsCells,
  boundsColumns,
  bytesText,
  labelled,
  memoryTable,
  NOUNS,
  publishedText,
  sameBounds,
  type UsedMemory,
  verdictHeading,
} from './fit-bounds.js';

export type Training = NonNullable<Fits['training']>;

export function trainingBlocks(training: Training): Block[] {
  const { setting, contextOrigin, fit } = training;
  const { stages, apart, verdict } = fit;
  return [
    verdictHeading('Training', verdict),
    noteOf(
      `Micro-batch of ${formatInteger(setting.microBatch)} × ${formatInteger(setting.context)} ` +
        `tokens${contextText(contextOrigin)}, ${precisionText(setting.precision)}, ${setting.optimizer}, ` +
        `recomputation ${setting.recompute}, ${ATTENTION[setting.attention]}, ${LOSSES[setting.loss]}, ` +
        `${setting.dropout ? 'with dropout, ' : ''}${spreadText(setting)}.`,
    ),
    memoryTable(setting.cluster.gpu.kind, trainingMemory(training)),
    ...(apart ? [noteOf(PEAK)] : []),
    ...(stages.length > 1 ? [stagesTable(fit)] : []),
    ...speedBlocks(fit),
    ...remedyBlocks(training),
  ];
}

export function trainingMemory({ fit }: Pick<Training, 'fit'>): UsedMemory {
  const { stages, fullest, workspaceParts, total, capacity } = fit;
  const stage = stages[fullest];
  return {
    exact: (stage?.parts ?? []).map(({ part, bytes }) => ({
      part,
      bytes: sameBounds(bytes.value),
    })),
    workspace: labelled(workspaceParts),
    total: stage?.total ?? total,
    capacity,
  };
}

function speedBlocks({ verdict, step, time, withoutSpeed }: Training['fit']): Block[] {
  if (verdict === 'does not fit') {
    return [noteOf('No speed estimate: the training does not fit into the memory.')];
  }
  return step ? stepBlocks(step, time) : [noteOf(sentence(withoutSpeedText(withoutSpeed)))];
}

export const withoutSpeedText = (reason: string | null): string =>
  `no speed estimate: ${reason ?? 'unknown'}`;

const ATTENTION = {
  fused: 'fused attention',
  plain: 'plain attention',
} as const satisfies Record<Training['setting']['attention'], string>;

const LOSSES = {
  full: 'logits of all tokens',
  fused: 'fused loss',
  chunked: 'loss in chunks',
} as const satisfies Record<Training['setting']['loss'], string>;

function spreadText(setting: Training['setting']): string {
  const { cluster, tensorParallel, pipelineParallel, sequenceParallel, zero, hybrid } = setting;
  const { contextParallel = 1, expertParallel = 1 } = setting;
  const replicas = cluster.gpus / (tensorParallel * pipelineParallel * contextParallel);
  const parts = [
    counted(replicas, 'replica'),
    ...(tensorParallel > 1 ? [`tensor parallel ${tensorParallel}`] : []),
    ...(sequenceParallel ? ['sequence parallel'] : []),
    ...(pipelineParallel > 1 ? [`${pipelineParallel} pipeline stages`] : []),
    ...(contextParallel > 1 ? [`context parallel ${contextParallel}`] : []),
    ...(expertParallel > 1 ? [`expert parallel ${expertParallel}`] : []),
    ...(replicas > 1 || zero > 0 ? [hybrid ? 'HSDP' : `ZeRO-${zero}`] : []),
  ];
  return parts.join(', ');
}

/** All stages; the fullest one can differ between bounds. */
function stagesTable({ stages, fullest, total }: Training['fit']): TableBlock {
  const markOf = (index: number, own: Bounds) => {
    const by = (['lower', 'upper'] as const).filter(
      (bound) => own[bound].value > (stages[fullest]?.total ?? own)[bound].value,
    );
    const decides = by.filter((bound) => own[bound].value === total[bound].value);
    return index === fullest ? 'fullest' : decides.map((bound) => `fullest by ${bound}`).join(', ');
  };
  return {
    kind: 'table',
    columns: [
      right('stage', 'stage'),
      leftColumn('blocks', 'blocks'),
      right('parameters', 'parameters'),
      ...boundsColumns('bytes'),
      leftColumn('', 'fullest'),
    ],
    rows: stages.map(({ stage, blocks: [from, to], parameters, total: bounds }, index) => [
      integerCell(stage),
      { text: to - from === 1 ? String(from) : `${from}–${to - 1}` },
      integerCell(parameters.value),
      ...boundsCells(bounds, bytesText),
      { text: markOf(index, bounds) },
    ]),
  };
}

/** Limiting factor of the expected time, shown instead of the utilisation. */
const DECIDING = {
  compute: 'compute',
  memory: 'memory traffic and launches',
  communication: 'communication',
  host: 'copies to system memory and the update there',
} as const satisfies Record<TrainingLimit | 'host', string>;

function utilisationText({ mfu, assumedMfu, decidedBy }: StepTime): string {
  const assumed = `${percentText(assumedMfu.value)} (${assumedMfu.source})`;
  return decidedBy === 'utilisation'
    ? `at an MFU of ${assumed}`
    : `limited by ${DECIDING[decidedBy]} to an MFU of ${percentText(mfu.value)}, less than ${assumed}`;
}

/** `1,500 tokens/s (9 of 10: 1,200–1,900; limit 2,600)`. */
export const stepSpeedText = ({ tokensPerSecond, published, tokens, roofline }: StepTime): string =>
  significant(tokensPerSecond.value) +
  ` tokens/s${publishedText(published, tokens.value / roofline.value, significant)}`;

function limitText(
  { limit, seconds: { lower } }: StepTime['limits'][number],
  { withoutLink }: StepTime,
): string {
  const seconds = formatSeconds(lower.value);
  if (limit !== 'communication' || withoutLink === null) return `${limit} ${seconds}`;
  return lower.value === 0 ? `${limit} unknown` : `${limit} at least ${seconds}`;
}

function stepBlocks(step: StepTime, time: TrainingTime | undefined): Block[] {
  const { seconds, limits, limitedBy, tokens, tokensPerSecond } = step;
  return present([
    noteOf(
      `A step has ${formatInteger(Math.round(tokens.value))} tokens: ${significant(tokensPerSecond.value)} tokens/s ` +
        `(estimate), ${utilisationText(step)}. Its lower bound is limited by ${limitedBy}: ` +
        `${limits.map((each) => limitText(each, step)).join(', ')}.`,
    ),
    {
      kind: 'table',
      columns: [leftColumn('time', 'what'), ...boundsColumns('seconds')],
      rows: present([
        [strongCell('one step'), ...boundsCells(seconds, formatSeconds)],
        time && [
          strongCell(`total, ${formatInteger(Math.round(time.steps.value))} steps`),
          ...boundsCells(time.totalSeconds, formatSeconds),
        ],
      ]),
    },
  ]);
}

function remedyBlocks(training: Training): Block[] {
  const { setting, fit } = training;
  const { remedies, verdict } = fit;
  const isRoom = verdict === 'fits';
  if (remedies.length === 0) {
    return isRoom ? [] : [noteOf(sentence(nothingFits(training)))];
  }
  return [
    headingBlock(
      isRoom
        ? 'Largest micro-batch and context that fit'
        : 'Smallest changes that make training fit by the upper bound',
    ),
    ...(isRoom ? [] : caveats(remedies, setting)),
    {
      kind: 'table',
      columns: [
        wrapColumn('flags', 'flags'),
        ...boundsColumns('bytes'),
        right('tokens/s', 'expected_tokens_per_second'),
      ],
      rows: remedies.map(({ flags, total, host, tokensPerSecond }) => [
        {
          text:
            `${isRoom ? 'up to ' : ''}${changesText(flags)}` +
            `${host ? ` (at most ${bytesText(host.upper.value)} of system memory)` : ''}`,
        },
        ...boundsCells(total, bytesText),
        valueCell(tokensPerSecond?.value ?? null, significant),
      ]),
    },
  ];
}

/** Memory of training low-rank adapters. */
export function loraBlocks(
  { setting }: Pick<Training, 'setting'>,
  lora: ClusterLora,
  title: 'LoRA' | 'QLoRA',
): Block[] {
  const { adapters, apart, verdict } = lora;
  return [
    verdictHeading(title, verdict),
    noteOf(
      `Adapters of rank ${lora.rank} on ${lora.targets?.join(', ') ?? 'each product inside the blocks'}: ${shortCount(Number(adapters.value))} parameters. ` +
        `The weights of the model are frozen. Recomputation ${lora.recompute}` +
        `${setting.cluster.gpus > 1 ? `, ${adapterDivision(setting)}` : ''}.`,
    ),
    memoryTable(setting.cluster.gpu.kind, loraMemory(lora)),
    ...(apart ? [noteOf(PEAK)] : []),
  ];
}

/** How GPUs divide a training of adapters. */
export const adapterDivision = ({
  zero,
  hybrid,
  contextParallel = 1,
}: Training['setting']): string => {
  const ring = contextParallel > 1 ? `context parallel ${contextParallel}, ` : '';
  if (zero === 0) return `${ring}DDP`;
  return `${ring}${hybrid ? 'HSDP' : `ZeRO-${zero}`}`;
};

/** Setting of adapters beside a training: they divide all state, whatever that divides. */
export const besideTraining = (setting: Training['setting']): Training['setting'] => ({
  ...setting,
  zero: 3,
  hybrid: undefined,
});

export function loraMemory(lora: ClusterLora): UsedMemory {
  const { frozen, parts, kept, workspaceParts, total, capacity } = lora;
  return {
    exact: [
      { part: frozen.label, bytes: sameBounds(frozen.value) },
      ...parts.map(({ part, bytes }) => ({
        part: LORA_PARTS[part],
        bytes: sameBounds(bytes.value),
      })),
      { part: kept.label, bytes: sameBounds(kept.value) },
    ],
    workspace: labelled(workspaceParts),
    total,
    capacity,
  };
}

const LORA_PARTS = {
  weights: 'weights of the adapters',
  gradients: 'gradients of the adapters',
  optimizer: 'optimizer of the adapters',
  buffers: 'buffers',
  activations: 'activations of the model',
} as const satisfies Record<Training['lora']['parts'][number]['part'], string>;

const PEAK = 'The total is the peak of a step: not all parts exist at the same time.';

/** `does not fit: 50.5 GB (rank 16, full recompute); fits on 32 GPUs`. */
export function loraText({ setting: { cluster } }: Training, lora: ClusterLora): string {
  const { rank, recompute, verdict, gpus, total } = lora;
  const each = cluster.gpus === 1 ? '' : ` per ${NOUNS[cluster.gpu.kind].each}`;
  const how = [`rank ${rank}`, ...(recompute === 'none' ? [] : [`${recompute} recompute`])];
  const needed =
    gpus === null ? '; no number of linked GPUs is enough' : `; fits on ${counted(gpus, 'GPU')}`;
  const isEnough =
    verdict === 'fits' || cluster.gpu.links.length === 0 || cluster.cards !== undefined;
  return (
    `${verdict}: ${bytesText(total.expected.value)}${each} (${how.join(', ')})` +
    `${isEnough ? '' : needed}`
  );
}

/** Text for a training that no proposal makes fit. */
export function nothingFits({ setting, fit }: Pick<Training, 'setting' | 'fit'>): string {
  const { host, total, capacity } = fit;
  const isGpuEnough = total.upper.value <= capacity.value;
  if (isShortOfMemory(fit) && isGpuEnough && host) {
    const installed = bytesText(host.memory.bytes ?? 0);
    return `needs ${bytesText(host.bytes.upper.value)} of system memory, found ${installed}`;
  }
  // Proposals put at most as much into system memory as a desktop has.
  const isAsked = setting.offload || setting.cluster.cards;
  return `${noNumber(setting.cluster)}${isAsked ? '' : ' without system memory'}`;
}

/** Whether a part of the state may be more than the installed system memory. */
export const isShortOfMemory = ({ host }: Training['fit']): boolean =>
  host !== undefined && host.verdict !== 'fits';

/** Text where no number of GPUs is enough. */
export const noNumber = ({ cards }: Cluster): string =>
  `larger GPUs are needed${cards ? '' : ': no number of these with a known link is enough'}`;

/** `at most 19.1 GB per GPU and 96.5 GB of system memory, 812 tokens/s`. */
export function remedyText({ total, host, tokensPerSecond }: Remedy): string {
  const beside = host ? ` and ${bytesText(host.upper.value)} of system memory` : '';
  const speed = tokensPerSecond ? `, ${significant(tokensPerSecond.value)} tokens/s` : '';
  return `at most ${bytesText(total.upper.value)} per GPU${beside}${speed}`;
}

/**
 * Activations and the rest of a GPU's memory. Where not all parts exist at the same time and the rest would be less than
 * nothing, the activations are those at the peak.
 * @param state Bytes of all parts that stay.
 */
export function partsAtPeak(
  { total, apart }: Pick<Training['fit'], 'total' | 'apart'>,
  state: number,
  activations: number,
): (readonly [name: string, bytes: number])[] {
  const rest = total.expected.value - state - activations;
  if (rest >= 0 || apart === null) {
    return [
      ['activations', activations],
      ['rest', rest],
    ];
  }
  const atPeak = Math.max(0, activations + apart.expected.value);
  return [
    ['activations at the peak', atPeak],
    ['rest', total.expected.value - state - atPeak],
  ];
}

/** Side effects of the remedies. */
function caveats(remedies: readonly Remedy[], { cluster: { gpus } }: Training['setting']): Block[] {
  const isAnother = ({ flags }: Remedy) => (flags.optimizer ?? flags.context) !== undefined;
  const here = `${formatInteger(gpus)} ${gpus === 1 ? 'GPU' : 'GPUs'}`;
  const more = remedies.flatMap(({ flags: { cluster } }) => cluster?.gpus ?? [])[0];
  const others = remedies.filter(isAnother);
  if (remedies.length > others.length && more === undefined) return [];
  const first =
    others.length > 0
      ? `On ${here}, only another optimizer or context fits.`
      : `Does not fit on ${here}.`;
  const needed =
    more === undefined
      ? ''
      : ` Smallest setup that fits: ${counted(more, 'GPU')} (tried by doubling).`;
  return [noteOf(`${first}${needed}`)];
}

/** The changed settings in order, under their names in texts. */
export const changedSettings = ({
  cluster,
  globalBatchTokens,
  offload,
  ...flags
}: Remedy['flags']): SettingValues => ({
  ...(cluster?.machine !== undefined && { gpu: cluster.machine }),
  ...(cluster && { gpus: cluster.gpus }),
  ...(flags as SettingValues),
  ...(offload && { offload: offload.part }),
  ...(globalBatchTokens !== undefined && { globalBatchTokens }),
});

export const changesText = (flags: Remedy['flags']): string => settingsLine(changedSettings(flags));
