/** Serving part of the report of `minimind fit`. */

import { type SettingValues, settingsLine } from '../../base/text/setting.js';
import {
  dtypeWord,
  formatInteger,
  formatSeconds,
  formatSequences,
  significant,
} from '../../base/text/units.js';
import { counted, sentence } from '../../base/text/words.js';
import { present } from '../../base/values.js';
import type { Fits } from '../../estimate/fit/fits.js';
import type { ServingRemedy, UnmetRequirement } from '../../estimate/fit/remedies/remedies.js';
import type { DecodeStep, DecodingLimit, Prefill } from '../../estimate/fit/serving/roofline.js';
import type { LoadAnswer, ServingLoad } from '../../estimate/fit/serving/throughput/arrivals.js';
import type { Quantity } from '../../model/budget/figure.js';
import type { Block, Cell, TableBlock } from '../kit/report.js';
import {
  headingBlock,
  integerCell,
  leftColumn,
  NOTHING,
  noteOf,
  right,
  strongCell,
  valueCell,
  wrapColumn,
} from '../kit/report.js';
import { contextText, generationNote } from '../profile/setting-notes.js';
import {
  boundsCells,
  boundsColumns,
  bytesText,
  labelled,
  memoryTable,
  ramText,
  sameBounds,
  type UsedMemory,
  verdictHeading,
} from './fit-bounds.js';
import { serverBlocks } from './fit-server.js';

const DECODE_LIMITS = {
  weights: 'reading weights',
  cache: 'reading the KV cache',
  compute: 'compute',
  links: 'links between GPUs',
} as const satisfies Record<DecodingLimit, string>;

/** `reading weights`, or `measured`; a model without a KV cache reads its states. */
export const decodeLimitText = (
  { limitedBy }: Pick<DecodeStep, 'limitedBy'>,
  { cachePerToken }: Pick<Serving['fit'], 'cachePerToken'>,
): string => {
  if (limitedBy === null) return 'measured';
  const isWithoutCache = limitedBy === 'cache' && Number(cachePerToken.value) === 0;
  return isWithoutCache ? 'reading the states' : DECODE_LIMITS[limitedBy];
};

export const prefillLimitText = ({ limitedBy }: Pick<Prefill, 'limitedBy'>): string =>
  limitedBy ?? 'measured';

export const NO_PEAK = 'no published peak for this GPU';

export type Serving = NonNullable<Fits['serving']>;

export function servingBlocks(
  { setting, contextOrigin, fit, remedies, generation, throughput }: Serving,
  doubts: readonly UnmetRequirement[],
): Block[] {
  const { batch, context } = setting;
  return present([
    verdictHeading('Serving', fit.verdict),
    noteOf(
      `${formatSequences(batch, context)}${contextText(contextOrigin)}, weights in ` +
        `${formatText(setting)}, cache in ${dtypeWord(setting.cacheDtype)}, ` +
        `${sharingText(setting) || 'a replica on each GPU'}.`,
    ),
    memoryTable(setting.cluster.gpu.kind, servingMemory({ setting, fit })),
    ...(fit.withoutRoom === null
      ? [...speedBlocks(fit, setting), noteOf(roomText(fit, setting))]
      : [noteOf(`${sentence(fit.withoutRoom)} ${roomText(fit, setting)}`)]),
    ...(throughput ? serverBlocks(throughput, setting) : []),
    generation && generationNote(generation),
    ...(fit.load ? loadBlocks(fit.load, setting, doubts) : []),
    ...remedyBlocks(remedies),
  ]);
}

/** Sequences whose cache a GPU has: each group of GPUs has some of its own. */
export const sequencesOnGpu = ({ batch, dataParallelAttention = 1 }: Serving['setting']): number =>
  Math.ceil(batch / dataParallelAttention);

/** How GPUs share a replica: `8 GPUs share each layer, 2 stages`; empty for one GPU. */
export function sharingText(setting: Serving['setting']): string {
  const { tensorParallel, dataParallelAttention = 1, expertParallel = 1 } = setting;
  const { pipelineParallel = 1, contextParallel = 1 } = setting;
  return present([
    tensorParallel > 1 && `${formatInteger(tensorParallel)} GPUs share each layer`,
    dataParallelAttention > 1 && `${formatInteger(dataParallelAttention)} copies of the attention`,
    expertParallel > 1 && `experts on ${formatInteger(expertParallel)} GPUs`,
    pipelineParallel > 1 && `${formatInteger(pipelineParallel)} stages`,
    contextParallel > 1 && `caches in ${formatInteger(contextParallel)} parts`,
  ]).join(', ');
}

export function servingMemory({ setting, fit }: Pick<Serving, 'setting' | 'fit'>): UsedMemory {
  const { weightParts, cachePerSequence, state, draft, workspaceParts, total, capacity } = fit;
  const sequences = sequencesOnGpu(setting);
  const times = (bytes: number | bigint) => sameBounds(sequences * Number(bytes));
  return {
    exact: [
      ...weightParts.map(({ bytes }) => ({ part: bytes.label, bytes: sameBounds(bytes.value) })),
      { part: 'keys and values', bytes: times(cachePerSequence.value) },
      ...(state.value > 0 ? [{ part: 'states', bytes: times(state.value) }] : []),
      ...(draft
        ? [
            { part: 'weights of the draft model', bytes: sameBounds(draft.weights.value) },
            {
              part: 'keys, values and states of the draft model',
              bytes: times(Number(draft.cachePerSequence.value) + Number(draft.state.value)),
            },
          ]
        : []),
    ],
    workspace: labelled(workspaceParts),
    total,
    capacity,
  };
}

function remedyBlocks(remedies: Serving['remedies']): Block[] {
  if (remedies.length === 0) return [];
  return [
    headingBlock('Changes that make serving fit, each by itself'),
    {
      kind: 'table',
      columns: [wrapColumn('flags', 'flags'), ...boundsColumns('bytes')],
      rows: remedies.map((remedy) => [
        { text: servingText(remedy) },
        ...boundsCells(remedy.total, bytesText),
      ]),
    },
  ];
}

/** The changed settings under their names in texts. */
export const servingChanges = ({ ramBytes, ...flags }: ServingRemedy['flags']): SettingValues => ({
  ...flags,
  ...(ramBytes !== undefined && { ramBytes: ramText(ramBytes) }),
});

/** `--gpu-layers 19`, with the speed where it depends on the places: `--ram 96GB, 0.835 tokens/s`. */
export const servingText = ({ flags, tokensPerSecond }: ServingRemedy): string =>
  settingsLine(servingChanges(flags)) +
  (tokensPerSecond === undefined ? '' : `, ${significant(tokensPerSecond)} tokens/s`);

export const formatText = ({
  weights: { dtype, groupSize, scaleDtype, zeroPoints, stored },
}: Pick<Serving['setting'], 'weights'>) =>
  stored !== undefined
    ? `${dtype} (as stored: ${stored})`
    : groupSize === 'block' || ['f32', 'bf16', 'f16'].includes(dtype)
      ? dtype
      : `${dtype} (${groupSize === 'row' ? 'one' : `groups of ${formatInteger(groupSize)}, one`} ${scaleDtype === 'f8_e8m0' ? 'E8M0' : dtypeWord(scaleDtype)} scale` +
        `${groupSize === 'row' ? ' per row' : ' each'}${zeroPoints ? ', zero points' : ''})`;

function speedBlocks(fit: Serving['fit'], setting: Serving['setting']): Block[] {
  const { decode, prefill, withoutLink } = fit;
  if (decode === null) return [noteOf(sentence(`no speed estimate: ${withoutLink}`))];
  if (prefill === null) {
    const least = formatSeconds(decode.seconds.lower.value);
    return [
      noteOf(
        `${sentence(`no estimate of prompts and of many users: ${NO_PEAK}`)} A decoding step takes at least ${least}, for reading weights and caches.`,
      ),
    ];
  }
  return [
    speedTable({ prefill, decode }, setting),
    noteOf(
      sentence(
        `limit of decoding: ${decodeLimitText(decode, fit)}; limit of prefill: ${prefillLimitText(prefill)}`,
      ),
    ),
  ];
}

interface ShownSpeed {
  readonly prefill: Prefill;
  readonly decode: NonNullable<Serving['fit']['decode']>;
}

function speedTable(
  { prefill, decode }: ShownSpeed,
  { prompt, batch }: Serving['setting'],
): TableBlock {
  const sequences = batch === 1 ? '1 sequence' : `${formatInteger(batch)} sequences`;
  return {
    kind: 'table',
    columns: [leftColumn('speed', 'what'), ...boundsColumns('value')],
    rows: [
      [
        strongCell(`prefill of ${formatInteger(prompt)} tokens`),
        ...boundsCells(prefill.seconds, formatSeconds),
      ],
      [strongCell(`decoding step of ${sequences}`), ...boundsCells(decode.seconds, formatSeconds)],
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
      ? `No sequence of ${formatInteger(context)} tokens fits`
      : `${counted(largestBatch.value, 'sequence')} of ${formatInteger(context)} tokens ${largestBatch.value === 1 ? 'fits' : 'fit'}`;
  const tokens =
    largestContext === null
      ? `no context fits at a batch of ${formatInteger(batch)}`
      : `the longest context at a batch of ${formatInteger(batch)} is ${formatInteger(largestContext.value)} tokens`;
  return `${sequences}; ${tokens} (estimates).`;
}

function loadBlocks(
  answers: ServingLoad,
  setting: Serving['setting'],
  doubts: readonly UnmetRequirement[],
): Block[] {
  const { load, prompt, output } = setting;
  if (!load) return [];
  const { lower, expected, upper, assumption } = answers;
  const doubt = doubts.find(({ about }) => about === 'load');
  return [
    {
      kind: 'heading',
      text:
        `${significant(load.requestsPerSecond)} requests/s of ${formatInteger(prompt)} and ${formatInteger(output)} tokens, ` +
        `95% within ${formatSeconds(load.p95Seconds)}`,
      tone: doubt ? 'bad' : 'good',
    },
    ...(doubt ? [noteOf(sentence(doubt.text))] : []),
    {
      kind: 'table',
      columns: [
        leftColumn('speed', 'speed'),
        right('GPUs', 'gpus'),
        right('replicas', 'replicas'),
        right('batch', 'batch'),
        right('mean', 'mean_seconds'),
        right('p95', 'p95_seconds'),
        right('first token', 'first_token_p95_seconds'),
        right('per token', 'per_token_p95_seconds'),
        right('in service', 'mean_requests'),
        wrapColumn('', 'remark'),
      ],
      // The lower bound of a time is the upper bound of a speed.
      rows: [loadRow('upper', lower), loadRow('estimate', expected), loadRow('lower', upper)],
    },
    noteOf(`Assumed: ${assumption}.`),
  ];
}

function loadRow(title: string, answer: LoadAnswer): Cell[] {
  if (!answer.met) {
    const why =
      answer.reason === 'no room'
        ? 'no room for one request'
        : `too slow: a single request takes ${formatSeconds(answer.best.value)}`;
    return [
      strongCell(title),
      ...Array.from({ length: 8 }, () => NOTHING),
      { text: why, tone: 'bad' },
    ];
  }
  const { gpus, replicas, batch, meanSeconds, p95Seconds, meanRequests } = answer;
  const seconds = ({ value }: Quantity): Cell => valueCell(value, formatSeconds);
  return [
    strongCell(title),
    integerCell(gpus.value),
    integerCell(replicas.value),
    integerCell(batch.value),
    seconds(meanSeconds),
    seconds(p95Seconds),
    seconds(answer.firstToken.p95),
    seconds(answer.perToken.p95),
    valueCell(meanRequests.value, significant),
    { text: '' },
  ];
}
