/** The answer of `minimind fit` on one screen: a verdict, the facts, and the memory. */

import {
  nextCommand,
  type SettingName,
  type SettingValues,
  setting,
  withoutSettings,
} from '../../base/text/setting.js';
import {
  dtypeWord,
  formatInteger,
  formatSeconds,
  formatSequences,
  loadText,
  percentText,
  shortCount,
  significant,
} from '../../base/text/units.js';
import { capital, counted, modelName } from '../../base/text/words.js';
import { present, sumOf } from '../../base/values.js';
import type { AdaptersFit, FitResult, FoundMachine } from '../../estimate/fit/fits.js';
import type { BatchingComparison } from '../../estimate/fit/serving/batching.js';
import type { UsersFit } from '../../estimate/fit/serving/serving.js';
import type { HostMemory, Remedy, TrainingTime } from '../../estimate/fit/training/training-fit.js';
import type { GpuMemory } from '../../estimate/hardware/gpu.js';
import type { Bounds } from '../../model/budget/figure.js';
import type { Block, Cell, Fact, TableBlock, Verdict } from '../kit/report.js';
import { leftColumn, noteOf, right, strongCell, valueCell } from '../kit/report.js';
import { contextText, precisionText } from '../profile/setting-notes.js';
import {
  boundsCells,
  boundsColumns,
  bytesText,
  NOUNS,
  publishedTimeText,
  TONES,
} from './fit-bounds.js';
import { passFacts, passVerdict } from './fit-pass.js';
import { hardwareText, placesFacts, placesProposal, placesVerdict, ramFor } from './fit-places.js';
import { firstUsers, serverFacts, totalsNote, usersTable } from './fit-server.js';
import type { Serving } from './fit-serving.js';
import {
  decodeLimitText,
  formatText,
  NO_PEAK,
  prefillLimitText,
  sequencesOnGpu,
  servingChanges,
  servingText,
  sharingText,
} from './fit-serving.js';
import type { Training } from './fit-training.js';
import {
  adapterDivision,
  changedSettings,
  changesText,
  isShortOfMemory,
  loraText,
  noNumber,
  nothingFits,
  partsAtPeak,
  remedyText,
  stepSpeedText,
  withoutSpeedText,
} from './fit-training.js';
import { memorySum } from './memory-sum.js';

/** The answer to the question alone: somebody who serves is not told that a training does not fit. */
export function fitVerdictOf(result: FitResult): Verdict {
  const { cluster, purpose, training, serving, adapters, doubts } = result;
  const on = hardwareText(cluster);
  if (purpose === 'lora' || purpose === 'qlora') {
    if (!adapters) return { text: on };
    const { verdict, total, capacity } = adapters.fit;
    const of = `${bytesText(total.expected.value)} of ${bytesText(capacity.value)}`;
    return {
      text: `${ADAPTERS[purpose]} ${verdict} on ${on}: ${of} (estimate)`,
      tone: TONES[verdict],
    };
  }
  if (result.pass && purpose === 'serving') return passVerdict(result.pass, cluster);
  const verdict = (purpose === 'training' ? training : serving)?.fit.verdict ?? 'does not fit';
  if (purpose === 'training') {
    const text = serving ? `Training ${verdict} on ${on}` : `${capital(verdict)} on ${on}`;
    const isShort = training !== null && isShortOfMemory(training.fit);
    return { text: `${text}${isShort ? ': too little system memory' : ''}`, tone: TONES[verdict] };
  }
  if (serving?.places?.isAsked) return placesVerdict(serving.places, cluster);
  const isDoubted = (what: 'load' | 'speed') => doubts.some(({ about }) => about === what);
  const short = present([
    isDoubted('load') && loadShortage(serving),
    isDoubted('speed') && `less than ${setting('minTokensPerSecond', serving?.setting.minSpeed)}`,
  ]);
  const details = present([serving && usersText(serving), ...short]).join('; ');
  const detail = details === '' ? '' : `: ${details}`;
  const tone = short.length > 0 ? 'bad' : TONES[verdict];
  return { text: `${capital(verdict)} on ${on}${detail}`, tone };
}

const ADAPTERS = { lora: 'LoRA', qlora: 'QLoRA' } as const;

function loadShortage(serving: Serving | null): string {
  const answer = serving?.fit.load?.expected;
  return answer?.met
    ? `the load needs ${counted(answer.gpus.value, 'GPU')}`
    : 'no number of GPUs meets the load';
}

/** `serves 124 users at 2,048 tokens, 27 tokens/s each (estimate)`. */
function usersText(serving: Serving): string {
  const { setting, fit, users, throughput } = serving;
  const at = `at ${formatInteger(setting.context)} tokens`;
  const { asked, total, speed } = users;
  if (fit.verdict === 'does not fit') {
    if (asked === null || total.expected.value === 0) return '';
    return `room for ${formatInteger(total.expected.value)} of ${counted(asked, 'user')} ${at}`;
  }
  if (asked === null && throughput?.atSpeed) {
    const { atSpeed, minSpeed } = throughput;
    return `serves ${counted(atSpeed.users, 'user')} ${at}, ${significant(minSpeed)} tokens/s or more each (estimate)`;
  }
  const first = asked === null && throughput ? firstUsers(serving) : undefined;
  if (first) {
    const own = first.users === 1 ? '' : ' each';
    return `serves ${counted(first.users, 'user')} ${at}, ${significant(first.each)} tokens/s${own} (estimate)`;
  }
  const count = asked ?? total.expected.value;
  if (count === 0) return '';
  const each = speed ? `, ${significant(speed.ofUser.value)} tokens/s each` : '';
  return `serves ${counted(count, 'user')} ${at}${each} (${speed?.limitedBy === null ? 'measured' : 'estimate'})`;
}

export function fitFacts(result: FitResult): Fact[] {
  const { file, family, parameters, purpose, training, serving, adapters } = result;
  return [
    {
      name: 'model',
      text: `${modelName(file)} · ${family} · ${shortCount(parameters)} parameters`,
    },
    ...(result.found ? foundFacts(result.found) : []),
    ...present([
      result.cluster.cards === undefined && gpuFact(result.memory),
      calibrationFact(result.cluster),
    ]),
    ...(serving && purpose === 'serving' ? servingFacts(serving, result) : []),
    ...(result.pass ? passFacts(result.pass) : []),
    ...(result.batching ? [{ name: 'batching', text: batchingText(result.batching) }] : []),
    ...(training && purpose === 'training' ? trainingFacts(training) : []),
    ...(adapters ? adapterFacts(adapters) : []),
    ...(training && purpose === 'serving' && !isAboutServing(serving) ? otherFacts(training) : []),
    ...forwardFacts(result),
  ];
}

/** `NVIDIA GeForce RTX 4090 (nvidia-smi) · 64.0 GB of memory · AMD Ryzen 9 7950X`, and what is assumed. */
const foundFacts = ({ cards, ignored, memoryBytes, processor, assumed }: FoundMachine): Fact[] =>
  present([
    {
      name: 'machine',
      text: [
        ...(cards.length === 0 ? ['no graphics card'] : cards),
        `${bytesText(memoryBytes)} of memory`,
        ...(processor === null ? [] : [processor]),
      ].join(' · '),
    },
    ignored.length > 0 && {
      name: 'not used',
      text: `${ignored.join(', ')}: unknown to ${setting('listGpus')}, or graphics of the processor`,
    },
    assumed.length > 0 && { name: 'assumed', text: assumed.join('; ') },
  ]);

/** Whether the user gave a load, a price, or system memory, and so serves. */
const isAboutServing = (serving: Serving | null): boolean =>
  serving?.setting.load !== undefined ||
  serving?.throughput?.atSpeed?.cost !== undefined ||
  serving?.places?.isAsked === true;

/** `24 GB card, 23.6 GiB (25.3 GB) usable`, and what others take of it. */
function gpuFact({ advertisedBytes, usableBytes, reservedBytes, kind }: GpuMemory): Fact | false {
  if (kind === null) return false;
  const memory = `${significant(usableBytes / 2 ** 30)} GiB (${bytesText(usableBytes)})`;
  const label = `${formatInteger(Math.round(advertisedBytes / 1e9))} GB`;
  const flag = setting('reserveBytes');
  const text =
    reservedBytes === null
      ? {
          shared: `${label} shared with the system, ${memory} usable (${flag})`,
          screen: `${label} card, ${memory} usable; ${setting('reserveBytes', '2GB')} for a screen`,
          card: `${label} card, ${memory} usable`,
        }[kind]
      : `${label}, ${memory} left with ${flag} ${bytesText(reservedBytes)}`;
  return { name: 'GPU', text };
}

/** Shares of the user's own benchmark, compared with those of published runs. */
function calibrationFact({ gpu: { calibration } }: FitResult['cluster']): Fact | false {
  if (calibration === undefined) return false;
  const { reading, computing, source } = calibration;
  const [memory, compute] = [reading, computing].map(significant);
  return {
    name: 'shares',
    text: `of bandwidth ${memory} ×, of compute ${compute} × the usual: ${source}`,
  };
}

/** Training of adapters, and the smallest changes that make it fit. */
function adapterFacts({ setting, contextOrigin, fit, remedies }: AdaptersFit): Fact[] {
  const { microBatch, context, precision, recompute } = setting;
  const { frozen, parts, kept, total, capacity } = fit;
  const activations = Number(parts.find(({ part }) => part === 'activations')?.bytes.value ?? 0);
  const adapters = sumOf(parts, ({ bytes }) => Number(bytes.value)) - activations;
  const base = Number(frozen.value);
  const backward = activations + Number(kept.value);
  return present([
    {
      name: 'training',
      text:
        `rank ${fit.rank}${fit.targets ? ` on ${fit.targets.join(', ')}` : ''}, ${precisionText(precision)}, ` +
        `${formatSequences(microBatch, context)}${contextText(contextOrigin)}` +
        `${recompute === 'none' ? '' : `, ${recompute} recompute`}` +
        `${setting.cluster.gpus > 1 ? `, ${adapterDivision(setting)}` : ''}`,
    },
    {
      name: 'memory',
      text: memorySum(
        [['weights', base], ['adapters', adapters], ...partsAtPeak(fit, base + adapters, backward)],
        total,
        capacity.value,
      ),
    },
    { name: 'free', text: leftText(total, capacity.value) },
    fit.step &&
      fit.verdict !== 'does not fit' && {
        name: 'speed',
        text: stepSpeedText(fit.step),
      },
    fit.verdict !== 'fits' && {
      name: 'to train',
      text:
        remedies.length > 0
          ? remedies.map(({ flags }) => changesText(flags)).join(' · ')
          : noNumber(setting.cluster),
    },
  ]);
}

/** One line each for what was not asked for. */
function otherFacts(training: Training): Fact[] {
  const { fit, setting } = training;
  const isLacking = fit.verdict !== 'fits' && fit.gpus !== null;
  const change = isLacking ? `; ${counted(fit.gpus, 'GPU')} with changes` : '';
  const { step } = fit;
  const speed =
    fit.verdict === 'fits' && step ? `; ${significant(step.tokensPerSecond.value)} tokens/s` : '';
  return [
    { name: 'LoRA', text: loraText(training, training.lora) },
    { name: 'QLoRA', text: loraText(training, training.qlora) },
    {
      name: 'training',
      text:
        `${fit.verdict}: ${bytesText(fit.total.expected.value)} (${setting.optimizer}, ` +
        `${precisionText(setting.precision)})${change}${speed}`,
    },
  ];
}

/** `continuous 1.82 × static: 32 requests of 100 or 10 tokens waste 45.0% of a static batch`. */
function batchingText({ lengths, batch, wasted, ratio }: BatchingComparison): string {
  const kinds = [...new Set(lengths)];
  const last = counted(kinds.at(-1) ?? 0, 'token');
  const others = kinds.slice(0, -1).map(formatInteger).join(', ');
  return (
    `continuous ${significant(ratio)} × static: ${counted(batch, 'request')} of ${others && `${others} or `}${last} waste ` +
    `${percentText(wasted)} of a static batch`
  );
}

function servingFacts(serving: Serving, { doubts }: FitResult): Fact[] {
  const { setting, contextOrigin, fit, users, remedies, places } = serving;
  const { context } = setting;
  const sharing = sharingText(setting);
  const shared = sharing === '' || places?.isAsked ? '' : `, ${sharing}`;
  const doubt = doubts.find(({ about }) => about === 'load');
  const missing = remedies.map(servingText);
  const how = {
    name: 'serving',
    text: `${weightsText(setting)}, ${dtypeWord(setting.cacheDtype)} cache, ${formatInteger(context)} tokens${contextText(contextOrigin)}${shared}`,
  };
  const toServe = missing.length > 0 && { name: 'to serve', text: missing.join(' · ') };
  if (places?.isAsked) return present([how, ...placesFacts(places, setting), toServe]);
  return present([
    how,
    { name: 'memory', text: servingSum(serving) },
    { name: 'free', text: freeText(fit) },
    { name: 'room for', text: roomText(users) },
    users.needed &&
      users.asked !== null &&
      fit.verdict !== 'fits' && { name: 'needed', text: neededText(users.asked, users.needed) },
    ...speedFacts(serving),
    ...serverFacts(serving),
    toServe,
    places && { name: 'with RAM', text: placesProposal(places) },
    ...(doubt ? [{ name: 'load', text: doubt.text, tone: 'bad' as const }] : loadFacts(serving)),
    ...latencyFacts(serving),
  ]);
}

/** Parts of the memory of one GPU. */
function servingSum({ setting, fit }: Serving): string {
  const batch = sequencesOnGpu(setting);
  const parts = [
    ['weights', Number(fit.weights.value)],
    ['cache', batch * Number(fit.cachePerSequence.value)],
    ['states', batch * Number(fit.state.value)],
    ['draft', draftBytes(fit, batch)],
    ['workspace', fit.workspace.expected.value],
  ] as const;
  return memorySum(parts, fit.total, fit.capacity.value);
}

/** Bytes of a draft model with its caches; 0 without one. */
function draftBytes({ draft }: Serving['fit'], batch: number): number {
  if (draft === undefined) return 0;
  const { weights, cachePerSequence, state } = draft;
  return Number(weights.value) + batch * (Number(cachePerSequence.value) + Number(state.value));
}

/** `7.8 GB (7.0 GB to 8.1 GB); longest context: 40,960 tokens`. */
function freeText({ total, capacity, largestContext }: Serving['fit']): string {
  const free = leftText(total, capacity.value);
  if (largestContext === null) return free;
  return `${free}; longest context: ${counted(largestContext.value, 'token')}`;
}

/** `7.8 GB (7.0 GB to 8.1 GB)`, or how much is missing. */
function leftText({ lower, expected, upper }: Bounds, capacity: number): string {
  const left = capacity - expected.value;
  if (left < 0) return `none: ${bytesText(-left)} too much`;
  const [least, most] = [upper, lower].map(({ value }) => bytesText(Math.max(0, capacity - value)));
  return least === most ? bytesText(left) : `${bytesText(left)} (${least} to ${most})`;
}

/** `bf16 weights`, `f8 weights (one f32 scale per row)`. */
const weightsText = (setting: Serving['setting']) =>
  formatText(setting).replace(/(?= \()|$/, ' weights');

/** `31 per replica × 4 = 124 users (120–128)`: the estimate, and its bounds. */
function roomText({ replicas, perReplica, total: { lower, expected, upper } }: UsersFit): string {
  const range =
    lower.value === upper.value
      ? ''
      : ` (${formatInteger(lower.value)}–${formatInteger(upper.value)})`;
  const product =
    replicas === 1
      ? ''
      : `${formatInteger(perReplica.expected.value)} per replica × ${formatInteger(replicas)} = `;
  return `${product}${counted(expected.value, 'user')}${range}`;
}

const neededText = (
  asked: number,
  { gpus, replicas, perReplica }: NonNullable<UsersFit['needed']>,
): string =>
  `${counted(gpus, 'GPU')} for ${counted(asked, 'user')}: ${counted(replicas, 'replica')}` +
  `${gpus === replicas ? '' : ` of ${counted(gpus / replicas, 'GPU')}`} with room for ` +
  `${formatInteger(perReplica)}${replicas === 1 ? '' : ' each'}`;

function speedFacts({ setting, fit }: Serving): Fact[] {
  if (fit.withoutRoom !== null) return [];
  // Many sequences are limited by compute, whose peak is not known.
  if (fit.decode === null || (fit.prefill === null && setting.batch > 1)) {
    return [{ name: 'speed', text: withoutSpeedText(fit.withoutLink ?? NO_PEAK) }];
  }
  if (fit.prefill === null) {
    // One sequence is limited by reading weights, whatever the peak is.
    const { tokensPerSecond, published } = fit.decode;
    const range = published
      ? `; 9 of 10: ${significant(published.lower)}–${significant(published.upper)}`
      : '';
    return [
      {
        name: 'speed',
        text: `decoding ${significant(tokensPerSecond.expected.value)} tokens/s (estimate, by bandwidth alone${range}); prompts: ${NO_PEAK}`,
      },
    ];
  }
  const { decode, prefill } = fit;
  return [
    {
      name: 'limits',
      text:
        `decoding: ${decodeLimitText(decode, fit)}; prefill of ${counted(setting.prompt, 'token')}: ` +
        prefillLimitText(prefill),
    },
  ];
}

function loadFacts({ setting: { load }, fit }: Serving): Fact[] {
  if (!load || !fit.load?.expected.met) return [];
  const { gpus, p95Seconds } = fit.load.expected;
  return [
    {
      name: 'load',
      text:
        `${significant(load.requestsPerSecond)} requests/s need ${counted(gpus.value, 'GPU')}: ` +
        `95% within ${formatSeconds(p95Seconds.value)} (estimate)`,
      tone: 'good',
    },
  ];
}

function latencyFacts({ fit, cost }: Serving): Fact[] {
  if (!fit.load?.expected.met) return [];
  const { meanSeconds, p95Seconds, batch } = fit.load.expected;
  const [mean, p95] = [meanSeconds, p95Seconds].map(({ value }) => formatSeconds(value));
  return present([
    {
      name: 'latency',
      text: `mean ${mean}, 95th percentile ${p95}; up to ${counted(batch.value, 'request')} per replica`,
    },
    cost && {
      name: 'cost',
      text:
        `${significant(cost.perHour.value)} an hour, ` +
        `${significant(cost.perThousandRequests.value)} per 1,000 requests, ` +
        `${significant(cost.perMillionOutputTokens.value)} per 1M output tokens`,
    },
  ]);
}

function trainingFacts(training: Training): Fact[] {
  const { setting, contextOrigin, fit, cost } = training;
  const { microBatch, context, precision, optimizer, recompute } = setting;
  const how = [
    optimizer,
    precisionText(precision),
    `${formatSequences(microBatch, context)}${contextText(contextOrigin)}`,
    ...(recompute === 'none' ? [] : [`recomputation ${recompute}`]),
  ];
  const [first] = fit.remedies;
  return present([
    { name: 'training', text: how.join(', ') },
    { name: 'memory', text: trainingSum(fit) },
    { name: 'free', text: leftText(fit.total, fit.capacity.value) },
    fit.host && { name: 'offload', text: hostText(fit.host, fit.step?.host) },
    fit.verdict !== 'does not fit' && { name: 'speed', text: stepText(fit) },
    fit.time &&
      fit.verdict !== 'does not fit' && {
        name: 'time',
        text: `${timeText(fit.time)} for ${formatInteger(Math.round(fit.time.steps.value))} steps`,
      },
    cost &&
      fit.verdict !== 'does not fit' && {
        name: 'cost',
        text: `${significant(cost.expected.value)} (estimate; bounds ${significant(cost.lower.value)}–${significant(cost.upper.value)})`,
      },
    fit.verdict !== 'fits' && {
      name: 'to train',
      text: first ? `${changesText(first.flags)} (${remedyText(first)})` : nothingFits(training),
    },
    { name: 'LoRA', text: loraText(training, training.lora) },
    { name: 'QLoRA', text: loraText(training, training.qlora) },
  ]);
}

/** `5.97 h (9 of 10: 4.81 h–7.65 h; limit 2.61 h)`. */
function timeText({ totalSeconds: { lower, expected, upper }, published }: TrainingTime): string {
  const bounds = { lower: lower.value, upper: upper.value };
  return `${formatSeconds(expected.value)}${publishedTimeText(published, bounds, formatSeconds)}`;
}

/** Parts of the memory of the fullest GPU; the state is that of weights, gradients and optimizer. */
function trainingSum({ stages, fullest, total, apart, capacity }: Training['fit']): string {
  const { parts = [] } = stages[fullest] ?? {};
  const bytesOf = (names: readonly string[]) =>
    sumOf(
      parts.filter(({ part }) => names.includes(part)),
      ({ bytes }) => Number(bytes.value),
    );
  const state = bytesOf(['weights', 'gradients', 'optimizer']);
  const activations = bytesOf(['activations']);
  return memorySum(
    [['state', state], ...partsAtPeak({ total, apart }, state, activations)],
    total,
    capacity.value,
  );
}

/** `optimizer: 131 GB of system memory (at most 197 GB), 128 GB installed; copies and update 3.1 s a step` */
function hostText({ part, bytes, memory }: HostMemory, host: Bounds | undefined): string {
  const size = memory.bytes === null ? '' : `, ${bytesText(memory.bytes)} installed`;
  const time = host ? `; copies and update ${formatSeconds(host.expected.value)} a step` : '';
  return (
    `${part}: ${bytesText(bytes.expected.value)} of system memory (at most ${bytesText(bytes.upper.value)})${size}${time}; ` +
    `${memory.label}${memory.isAssumed ? ' (assumed)' : ''}`
  );
}

function stepText({ step, withoutSpeed }: Training['fit']): string {
  if (!step) return withoutSpeedText(withoutSpeed);
  // A share of the peak is a time of computing.
  const limit = step.decidedBy === 'utilisation' ? 'compute' : step.decidedBy;
  return (
    `${stepSpeedText(step)}, ` +
    `MFU ${percentText(step.mfu.value)}, ` +
    `limited by ${limit === 'host' ? 'system memory' : limit}`
  );
}

function forwardFacts({ forward, profile }: FitResult): Fact[] {
  if (!forward || !profile) return [];
  const { batch, tokens, seconds, bytes } = forward;
  const { memoryBandwidth } = profile.speed;
  return [
    {
      name: 'forward',
      text:
        `${formatSequences(batch, tokens)} in ${formatSeconds(seconds.expected.value)}, ` +
        `${bytesText(bytes.expected.value)} here (${profile.engine.title}, measured at ${loadText(profile.load)})`,
    },
    ...(memoryBandwidth === undefined
      ? []
      : [
          {
            name: 'RAM',
            text: `${significant(memoryBandwidth.median / 1e9)} GB/s read by threads (at best ${significant(memoryBandwidth.most / 1e9)})`,
          },
        ]),
  ];
}

/** The table of the question: speeds of serving by users, or memory of a training. */
export function answerTable(result: FitResult): Block[] {
  const { purpose, serving } = result;
  if (purpose !== 'serving') return [trainingMemory(result), ...rangeNote(result)];
  if (serving?.places?.isAsked) return [];
  const speeds = serving ? usersTable(serving) : null;
  return speeds === null ? [] : [speeds, ...rangeNote(result)];
}

/** Meaning of the two ranges on the screen. */
function rangeNote({ purpose, serving, training, adapters }: FitResult): Block[] {
  const published =
    purpose === 'serving'
      ? (serving?.fit.decode?.published ?? serving?.throughput)
      : (purpose === 'training' ? training?.fit : adapters?.fit)?.step?.published;
  const verdict = (purpose === 'training' ? training : adapters)?.fit.verdict;
  if (!published || verdict === 'does not fit') return [];
  return [
    noteOf('9 of 10: range of nine of ten published runs; limit: no program is faster.'),
    ...(purpose === 'serving' && serving ? totalsNote(serving) : []),
  ];
}

/** Memory of the fullest GPU for a training, compared with its capacity. */
function trainingMemory({ cluster, purpose, training, adapters }: FitResult): TableBlock {
  const { each, own } = NOUNS[cluster.gpu.kind];
  const row = (
    what: string,
    { total, capacity, verdict }: Pick<Serving['fit'], 'total' | 'capacity' | 'verdict'>,
  ): Cell[] => [
    strongCell(what),
    ...boundsCells(total, bytesText),
    valueCell(capacity.value, bytesText),
    { text: verdict, tone: TONES[verdict] },
  ];
  return {
    kind: 'table',
    columns: [
      leftColumn(`memory per ${each}`, 'for'),
      ...boundsColumns('bytes'),
      right(`${own} has`, 'capacity_bytes'),
      leftColumn('', 'verdict'),
    ],
    rows: present([
      training && purpose === 'training' && row('training', training.fit),
      adapters && row(ADAPTERS[purpose as keyof typeof ADAPTERS], adapters.fit),
    ]),
  };
}

/** Settings that another setting replaces. */
const INSTEAD_OF: Partial<Record<SettingName, readonly SettingName[]>> = {
  globalBatchTokens: ['accumulation'],
};

/**
 * The result with proposals that name the GPU beside its number: the command has both in one word, as in `2xA100`, which
 * another number contradicts.
 */
export function withGpuName(result: FitResult, gpu: string | undefined): FitResult {
  if (gpu === undefined) return result;
  const { serving, training, adapters } = result;
  const named = (remedies: readonly Remedy[]): Remedy[] =>
    remedies.map(({ flags, ...each }) => {
      const { cluster } = flags;
      const machine = cluster?.machine ?? gpu;
      return { ...each, flags: { ...flags, ...(cluster && { cluster: { ...cluster, machine } }) } };
    });
  const servingRemedies = serving?.remedies.map(({ flags, ...each }) => ({
    ...each,
    flags: 'gpus' in flags ? { gpu, ...flags } : flags,
  }));
  return {
    ...result,
    serving: serving && { ...serving, remedies: servingRemedies ?? [] },
    training: training && {
      ...training,
      fit: { ...training.fit, remedies: named(training.fit.remedies) },
    },
    adapters: adapters && { ...adapters, remedies: named(adapters.remedies) },
  };
}

/** The user's command. */
interface GivenCommand {
  /** Words after `fit`. */
  readonly argv: readonly string[];
  /** Settings that require hardware. */
  readonly ofHardware?: readonly SettingName[] | undefined;
}

/**
 * Command with the smallest change that makes it fit; for adapters, and a model in system memory, that no change makes fit that
 * of the hardware.
 */
export function nextOf(
  { purpose, serving, training, adapters, profile }: FitResult,
  { argv, ofHardware }: GivenCommand,
) {
  const [remedy] =
    purpose === 'training' && training?.fit.verdict !== 'fits'
      ? (training?.fit.remedies ?? [])
      : (adapters?.remedies ?? []);
  const [served] = purpose === 'serving' ? (serving?.remedies ?? []) : [];
  // Another type or length on the same GPUs is better than system memory, and system memory than other GPUs.
  const isOnOthers = served === undefined || 'gpus' in served.flags || 'gpu' in served.flags;
  const places =
    purpose === 'serving' && isOnOthers && !serving?.places?.isAsked ? serving?.places : undefined;
  const changes: SettingValues = places
    ? { ramBytes: ramFor(places) }
    : served
      ? servingChanges(served.flags)
      : remedy
        ? changedSettings(remedy.flags)
        : {};
  // The user cannot add or exchange the GPUs of this machine.
  if (profile) return undefined;
  const isPlaced = purpose === 'serving' && serving?.places?.isAsked;
  const asked = isPlaced ? serving?.places : adapters?.fit;
  const isStuck = asked && asked.verdict !== 'fits' && (remedy ?? served) === undefined;
  if (isStuck && ofHardware) {
    return nextCommand('fit', withoutSettings(argv, ['gpu', 'hardware', ...ofHardware]), {
      gpu: 'all',
    });
  }
  if (Object.keys(changes).length === 0) return undefined;
  const changed = Object.keys(changes) as SettingName[];
  const names = changed.flatMap((name) => [name, ...(INSTEAD_OF[name] ?? [])]);
  return nextCommand('fit', withoutSettings(argv, names), changes);
}
