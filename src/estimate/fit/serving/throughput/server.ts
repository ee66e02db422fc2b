/** A server of a model on GPUs, ready to be simulated: its steps, its places and its batching. */

import type { LanguageModel } from '../../../../model/architecture/layer.js';
import { generationOf } from '../../../../model/budget/generation.js';
import { capacityOf, computedDtype, peakIfKnown } from '../../../hardware/gpu.js';
import { largestCount } from '../../bounds.js';
import { calibratedShare } from '../../efficiency.js';
import { linkFor, machinesFor, withoutLink } from '../../parallelism/collectives.js';
import { cacheTransfer, linkedGpus, serverUnit } from '../disaggregation.js';
import { type DraftedServing, replicaMemoryOf, takenShare } from '../replica-memory.js';
import type { Rates } from '../roofline.js';
import { ratesOf } from '../roofline.js';
import { gpusOfStage, sequencesOfStep } from '../serving-axes.js';
import type { ServedModel, ServingFitSetting } from '../serving-work.js';
import { servedModel } from '../serving-work.js';
import { WEIGHT_DTYPES } from '../weight-types.js';
import type { PrefillServers } from './prefill-fleet.js';
import type { RuntimeSetting } from './runtimes.js';
import { EAGER_LAUNCH, readingShare, runtimeFacts, runtimeSetting } from './runtimes.js';
import { APART, FULL_STEP, SEQUENCE_SECONDS, serverComputing } from './server-shares.js';
import type { Server, StepSeconds } from './simulation.js';
import type { StepForm } from './step-seconds.js';
import { requestWork, stepPartsOf, stepSecondsOf } from './step-seconds.js';

export type ServerQuestion = DraftedServing;

/** Program of a setting: the chosen one, or the usual one. */
export const runtimeOf = ({
  runtime,
  cluster,
  weights,
  cacheDtype,
}: ServingFitSetting): RuntimeSetting =>
  runtime ?? runtimeSetting({}, cluster.gpu, weights.dtype, cacheDtype);

/** Rates of the roofline with the launches and shares of the program. */
export function servingRates(setting: ServingFitSetting): Rates {
  const { cluster, weights, tensorParallel } = setting;
  const { computes, width } = WEIGHT_DTYPES[weights.dtype];
  const peak = peakIfKnown(cluster.gpu, computes);
  const stage = gpusOfStage(setting);
  const rates = {
    ...ratesOf(cluster, tensorParallel, peak, weights.dtype),
    ...(stage > tensorParallel && {
      expertLink: linkFor({ cluster }, stage, stage),
      expertPlaces: { gpus: stage, machines: machinesFor(cluster, stage) },
    }),
  };
  const { name, launching } = runtimeOf(setting);
  const reading = readingShare(name, cluster.gpu, width);
  const isEager = launching === 'eager';
  if (reading === undefined && !isEager) return rates;
  const { expected } = rates.efficiencies;
  const sources = [
    expected.source,
    ...(reading ? [`weights in ${name}: ${reading.source}`] : []),
    ...(isEager ? [EAGER_LAUNCH.source] : []),
  ];
  return {
    ...rates,
    efficiencies: {
      ...rates.efficiencies,
      expected: {
        ...expected,
        ...(reading && {
          weightUtilisation: calibratedShare(reading.share, cluster.gpu.calibration?.reading),
        }),
        ...(isEager && { launchSeconds: EAGER_LAUNCH.seconds }),
        source: sources.join('; '),
      },
    },
  };
}

/** Rates of the steps of a server, which have many tokens. */
function serverRates(setting: ServingFitSetting, { expertGroups }: ServedModel): Rates {
  const rates = servingRates(setting);
  const { gpu } = setting.cluster;
  const computes = computedDtype(gpu, WEIGHT_DTYPES[setting.weights.dtype].computes);
  const { share } = serverComputing(gpu, computes, expertGroups.length > 0);
  const { expected, lower } = rates.efficiencies;
  const computeUtilisation = calibratedShare(
    share,
    gpu.calibration?.computing,
    lower.computeUtilisation,
  );
  return {
    ...rates,
    efficiencies: { ...rates.efficiencies, expected: { ...expected, computeUtilisation } },
  };
}

/** Rates of a step with a lone prompt: those of the prefill in the roofline. */
function promptRates(setting: ServingFitSetting, { expertGroups }: ServedModel): Rates {
  const rates = servingRates(setting);
  const { expected } = rates.efficiencies;
  const { memoryUtilisation, computeUtilisation, expertComputeUtilisation } = expected;
  return {
    ...rates,
    efficiencies: {
      ...rates.efficiencies,
      expected: {
        ...expected,
        computeUtilisation:
          expertGroups.length === 0 ? computeUtilisation : expertComputeUtilisation,
        weightUtilisation: memoryUtilisation,
        expertUtilisation: memoryUtilisation,
      },
    },
  };
}

/** Why a server cannot be simulated. */
export type NoServer = 'no peak' | 'no link' | 'no room' | 'an encoder';

/** Server at the estimated speed, and at the limit of the hardware. */
export interface Servers {
  readonly expected: Server;
  readonly limit: Server;
  /** Share of the memory that the program takes. */
  readonly memoryShare: number;
}

/** Most sequences of a search for places. */
const MOST_PLACES = 2 ** 14;

/** Servers of a setting, once: throughput, users and a load ask for the same one. */
const KNOWN = new WeakMap<
  ServingFitSetting,
  { model: LanguageModel; servers: Servers | NoServer }
>();

export function serversOf(model: LanguageModel, question: ServerQuestion): Servers | NoServer {
  const known = KNOWN.get(question.setting);
  if (known?.model === model) return known.servers;
  const servers = newServers(model, question);
  KNOWN.set(question.setting, { model, servers });
  return servers;
}

function newServers(model: LanguageModel, question: ServerQuestion): Servers | NoServer {
  const { setting } = question;
  const { cluster, measured } = setting;
  const isMeasured = measured?.tokenSeconds !== undefined && measured.prefillSeconds !== undefined;
  if (generationOf(model) !== 'tokens') return 'an encoder';
  if (!isMeasured && withoutLink(cluster, linkedGpus(setting)) !== null) return 'no link';
  const room = roomOf(model, question);
  if (room.places === 0) return 'no room';
  const served = servedModel(model, setting);
  const rates = serverRates(setting, served);
  if (!isMeasured && rates.peakFlops === null) return 'no peak';
  const { decoding } = serverUnit(setting);
  const server = {
    ...requestsOf(question),
    batching: runtimeOf(setting).batching,
    places: decoding * room.places,
    parts: concurrentParts(setting),
    stepTokens: runtimeFacts(runtimeOf(setting).name).stepTokens(cluster.gpu),
  };
  const ofBound = modelSeconds(served, question);
  const serverOf = (bound: 'expected' | 'lower'): Server => {
    const own = withMeasured(setting, ofGroups(setting, ofBound(bound)));
    const stepSeconds: StepSeconds = (prefill, sequences, context) =>
      own(prefill, Math.ceil(sequences / decoding), context);
    const prefill = prefillOf(served, setting, { ...server, stepSeconds: own }, bound);
    return { ...server, stepSeconds, ...(prefill && { prefill }) };
  };
  return {
    expected: serverOf('expected'),
    limit: serverOf('lower'),
    memoryShare: room.memoryShare,
  };
}

/** Servers that only read prompts; undefined without them. @param server One of those that decode. */
function prefillOf(
  served: ServedModel,
  setting: ServingFitSetting,
  { prompt, cachedTokens, stepTokens, parts, stepSeconds }: Server,
  bound: 'expected' | 'lower',
): PrefillServers | undefined {
  const servers = serverUnit(setting).prefill;
  const transfer =
    servers > 0 && cacheTransfer(served, setting, servingRates(setting).efficiencies[bound]);
  if (!transfer) return undefined;
  const computed = Math.max(1, prompt - cachedTokens);
  return {
    servers,
    parts,
    promptsOfStep: Math.max(1, Math.floor(stepTokens / computed)),
    readSeconds(prompts) {
      const tokens = prompts * computed;
      const [whole, rest] = [Math.floor(tokens / stepTokens), tokens % stepTokens];
      const chunks = whole === 0 ? 0 : whole * stepSeconds(stepTokens, 0, prompt);
      return chunks + (rest === 0 ? 0 : stepSeconds(rest, 0, prompt));
    },
    transferSeconds: transfer.seconds.value,
    isOverlapped: bound === 'lower',
  };
}

/** Lengths of the requests, and what a decoding step makes of each. */
function requestsOf({ setting }: ServerQuestion) {
  const { prompt, prefixCache = 0, draft } = setting;
  return {
    prompt,
    cachedTokens: Math.min(prompt - 1, Math.round(prefixCache * prompt)),
    outputs: outputsOf(setting),
    tokensPerStep: draft ? acceptedTokens(draft) : 1,
    computedPerStep: draft ? draft.tokens + 1 : 1,
  };
}

/** Output tokens of requests, in equal shares. */
export const outputsOf = ({ output, outputMix }: ServingFitSetting): readonly number[] =>
  outputMix ?? [output];

/**
 * Mean tokens of a step that checks drafted tokens, each accepted with the same probability α: (1 − α^(γ + 1)) ÷ (1 − α)
 * (Leviathan et al., arXiv 2211.17192, equation 1).
 */
export const acceptedTokens = ({
  acceptance,
  tokens,
}: NonNullable<ServingFitSetting['draft']>): number =>
  acceptance === 1 ? tokens + 1 : (1 - acceptance ** (tokens + 1)) / (1 - acceptance);

/** Seconds of the steps of the model, and of its draft. */
function modelSeconds(
  served: ServedModel,
  { setting, draft }: ServerQuestion,
): (bound: 'expected' | 'lower') => StepSeconds {
  const { prompt, cachedTokens, outputs, computedPerStep } = requestsOf({ setting });
  const lengths = { prompt, cachedTokens, output: Math.max(...outputs) };
  const timed = (of: ServedModel, computed: number) => {
    const work = requestWork(of, lengths);
    const [many, one] = [serverRates(setting, of), promptRates(setting, of)];
    return (bound: 'expected' | 'lower') => {
      const secondsWith = (rates: Rates) =>
        stepSecondsOf(stepPartsOf(work, rates, bound), stepForm(bound, computed));
      return byRequests(secondsWith(one), secondsWith(many), prompt - cachedTokens);
    };
  };
  const own = timed(served, computedPerStep);
  if (draft === undefined || setting.draft === undefined) return own;
  const drafting = timed(servedModel(draft, setting), 1);
  const { tokens } = setting.draft;
  return (bound) => withDraft(own(bound), drafting(bound), tokens);
}

/**
 * Steps whose shares grow from those of a lone prompt to those of a server, with the requests that a step has.
 * @param prompt Tokens of a prompt that are computed.
 */
const byRequests =
  (one: StepSeconds, many: StepSeconds, prompt: number): StepSeconds =>
  (prefill, decoding, context) => {
    const requests = decoding + prefill / prompt;
    const share = Math.min(1, Math.max(0, requests - 1) / (FULL_STEP.requests - 1));
    const full = many(prefill, decoding, context);
    if (prefill === 0 || share === 1) return full;
    return (1 - share) * one(prefill, decoding, context) + share * full;
  };

function stepForm(bound: 'expected' | 'lower', computedPerStep: number): StepForm {
  const isOverlapped = bound === 'lower';
  return {
    isOverlapped,
    sequenceSeconds: isOverlapped ? 0 : SEQUENCE_SECONDS.seconds,
    apartShare: APART.share,
    computedPerStep,
  };
}

/** The draft reads the prompt, too, and then makes its tokens one after the other. */
const withDraft =
  (own: StepSeconds, drafting: StepSeconds, tokens: number): StepSeconds =>
  (prefill, decoding, context) => {
    const first = drafting(prefill, decoding, context);
    const others = decoding > 0 ? (tokens - 1) * drafting(0, decoding, context) : 0;
    return own(prefill, decoding, context) + first + others;
  };

/** Groups of GPUs with sequences of their own. */
const groupsOf = ({ dataParallelAttention = 1 }: ServingFitSetting): number =>
  dataParallelAttention;

/** Groups and stages, which each have prompts and sequences of their own at a time. */
const concurrentParts = (setting: ServingFitSetting): number =>
  groupsOf(setting) * (setting.pipelineParallel ?? 1);

/**
 * Steps of groups and stages with equal parts of the sequences. All take as long as the one with the most prompt tokens: groups
 * wait for each other at the experts, and stages for the part before them.
 */
function ofGroups(setting: ServingFitSetting, own: StepSeconds): StepSeconds {
  if (concurrentParts(setting) === 1) return own;
  return (prefill, decoding, context) => own(prefill, sequencesOfStep(setting, decoding), context);
}

/** Steps of which some times were measured: a prompt, a decoding step, or both. */
const withMeasured =
  ({ measured = {}, prompt }: ServingFitSetting, own: StepSeconds): StepSeconds =>
  (prefill, decoding, context) => {
    const { tokenSeconds, prefillSeconds } = measured;
    if (tokenSeconds === undefined && prefillSeconds === undefined) {
      return own(prefill, decoding, context);
    }
    const decoded = decoding === 0 ? 0 : (tokenSeconds ?? own(0, decoding, context));
    if (prefill === 0) return decoded;
    const read =
      prefillSeconds === undefined ? own(prefill, 0, context) : (prefill / prompt) * prefillSeconds;
    return decoded + read;
  };

/** Sequences that a replica serves at a time: those that fit, and that the program takes. */
function roomOf(model: LanguageModel, question: ServerQuestion) {
  const { setting } = question;
  const { cluster, measured, batch, context, prompt } = setting;
  const runtime = runtimeOf(setting);
  const most = Math.min(
    MOST_PLACES,
    // A written command has as many as were asked for.
    Math.max(batch, groupsOf(setting) * runtimeFacts(runtime.name).places(cluster.gpu)),
    // Times measured with a batch hold for no more than that.
    measured?.tokenSeconds === undefined ? Number.POSITIVE_INFINITY : batch,
  );
  const memoryAt = replicaMemoryOf(model, question);
  const { value: capacity } = capacityOf(cluster.gpu);
  // More than the usual share of the program where it does not hold one sequence; others wait for a place.
  const share = takenShare(memoryAt(1, context).total, capacity, runtime);
  // A share that the user chose is already the memory of the GPU.
  const limit = runtime.isMemoryChosen ? capacity : share * capacity;
  const longest = prompt + Math.max(...outputsOf(setting));
  const places = largestCount(
    most,
    (count) => memoryAt(count, longest).total.expected.value <= limit,
  );
  return { places, memoryShare: share };
}
