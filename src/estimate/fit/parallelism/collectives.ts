/** Communication between GPUs in a training step, and its time. */

import { setting } from '../../../base/text/setting.js';
import { sumOf } from '../../../base/values.js';
import {
  add,
  ceil,
  div,
  type Expression,
  type Input,
  inputs,
  ln,
  mul,
  sub,
  v,
} from '../../../model/budget/expression.js';
import { type Quantity, quantity } from '../../../model/budget/figure.js';
import { trainingBytes } from '../../../model/budget/training-budget.js';
import type { Cluster } from '../../hardware/gpu.js';
import { MACHINES } from '../../hardware/machines.js';
import { type Efficiency, type GroupLink, hopSeconds } from '../efficiency.js';
import type { StepInputs } from '../training/training-fit.js';
import {
  gradientBytesOf,
  type TrainingFitSetting,
  tokensOfGpu,
  type ZeroStage,
} from '../training/training-setting.js';
import { exchangedKeys, type MixtureGroup, mixturesBetween, placesOfToken } from './model-axes.js';
import type { Parallelism, Stage } from './parallelism.js';
import {
  type CollectiveTraffic,
  collectivesOf,
  expertShards,
  headCollectives,
} from './parallelism.js';

/**
 * Link for a collective over a number of GPUs; undefined if unknown. Between machines, each GPU of a group has its own
 * network link. The bandwidth is the sum of these, limited by the link within the machine (rings of NCCL).
 * @param apart Distance between neighbours of the group: 8 with tensor parallelism of 8.
 */
export function linkFor(
  { cluster: { gpu, network } }: Pick<TrainingFitSetting, 'cluster'>,
  gpus: number,
  apart = 1,
): GroupLink | undefined {
  const joining = gpu.links.find((link) => link.gpus >= gpus);
  if (joining) return { ...joining, ways: 1 };
  const within = gpu.links[0];
  if (!network) return undefined;
  if (!within) return { ...network, ways: 1 };
  const ways = Math.max(1, Math.floor(within.gpus / apart));
  return { ...network, ways, bandwidth: Math.min(within.bandwidth, ways * network.bandwidth) };
}

/** Machines, or groups with one link, that hold a number of neighbouring GPUs. */
export function machinesFor({ gpu }: Cluster, gpus: number): number {
  if (gpu.links.some((link) => link.gpus >= gpus)) return 1;
  return Math.ceil(gpus / Math.max(1, gpu.links[0]?.gpus ?? 1));
}

/** Error text if no link between the GPUs is known; null if one is known. */
export function withoutLink(cluster: Cluster, gpus: number): string | null {
  if (gpus === 1 || linkFor({ cluster }, gpus)) return null;
  const { gpu } = cluster;
  const joined = Math.max(1, ...gpu.links.map((link) => link.gpus));
  const machine = MACHINES.find(({ network, gpu: { name } }) => network && name === gpu.name);
  const byName = machine
    ? `name a machine, as in ${setting('gpu', machine.name)}, or describe one`
    : 'describe a machine';
  return `no link between more than ${joined} of ${gpu.name} is known: ${byName} with its network in a file for ${setting('hardware')}`;
}

/** Link utilisation, waiting time per exchange, and pipeline turns of a step. */
export interface CommunicationPace {
  readonly efficiency: Efficiency;
  /** Micro-batches; outside the best case, also the turns in which the pipeline fills and empties. */
  readonly turns: number;
}

export const paceOf = (
  efficiency: Efficiency,
  { microBatches, pipeline }: Parallelism,
  isBest: boolean,
): CommunicationPace => ({
  efficiency,
  turns: isBest ? microBatches : microBatches + pipeline - 1,
});

/** Time of an exchange, and the link that it takes. */
interface Traffic {
  readonly seconds: Quantity;
  readonly link: GroupLink;
}

/** Communication time of the stage that exchanges longest. Traffic over unknown links is not counted. */
export function communicationSeconds(situation: StepInputs, pace: CommunicationPace): Quantity {
  const { cluster } = situation.setting;
  const traffic = situation.stages.flatMap((stage) => {
    const all = [
      tensorTraffic(situation, stage, pace),
      expertTraffic(situation, stage, pace),
      contextTraffic(situation, stage, pace),
      replicaTraffic(situation, stage, pace),
      copiesTraffic(situation, stage, pace),
      pipelineTraffic(situation, pace),
    ];
    return [...sumByLink(all.flatMap((each) => (each ? [each] : [])))];
  });
  const nothing = quantity({
    label: 'communication',
    unit: 'seconds',
    formula: add(),
    source: cluster.gpus === 1 ? 'one GPU needs no communication' : 'unknown',
  });
  const longest = traffic.reduce((a, b) => (b.value > a.value ? b : a), nothing);
  const unknown = withoutLink(cluster, cluster.gpus);
  return unknown === null
    ? longest
    : longest.reworded({ source: `${longest.source}; not counted: ${unknown}` });
}

/** Traffic on the same link is sequential; different links work at the same time. */
function sumByLink(traffic: readonly Traffic[]): Quantity[] {
  // Group by name: the number of a group's ways differs between exchanges.
  const names = [...new Set(traffic.map(({ link }) => link.name))];
  return names.map((name) => {
    const sharing = traffic.filter(({ link }) => link.name === name);
    return quantity({
      label: 'communication',
      unit: 'seconds',
      formula: add(...sharing.map(({ seconds: { label, value } }) => v({ [label]: value }))),
      source: `${name}: ${sharing
        .map(
          ({ seconds: { label, formula, inputs: named, source } }) =>
            `${label} = ${formula} with ${Object.entries(named)
              .map(([input, each]) => `${input} = ${each}`)
              .join(', ')} (${source})`,
        )
        .join('; ')}`,
    });
  });
}

/** Time of an exchange: its bytes at the reached share of the link, and a wait for each collective. */
const waiting = (link: GroupLink, { efficiency }: CommunicationPace) =>
  inputs({
    bandwidth: link.bandwidth,
    link_utilisation: efficiency.linkUtilisation,
    reduce_seconds: efficiency.reduceSeconds,
    hop_seconds: hopSeconds(efficiency, link),
  });

const reachedRate = ({ bandwidth, link_utilisation }: ReturnType<typeof waiting>) =>
  mul(bandwidth, link_utilisation);

function tensorTraffic(
  { model, setting, parallelism: { tensor } }: StepInputs,
  { from, to }: Stage,
  pace: CommunicationPace,
): Traffic | undefined {
  const link = linkFor(setting, tensor);
  if (tensor === 1 || link === undefined) return undefined;
  const blocks = collectivesOf(model.blocks.slice(from, to));
  const ends = [
    ...(from === 0 ? [collectivesOf([model.embedding])] : []),
    ...(to === model.blocks.length ? [headCollectives(model.head)] : []),
  ];
  const passes = setting.recompute === 'full' ? 2 : 1;
  const inAll = (of: keyof CollectiveTraffic) =>
    ends.reduce(
      (sum, { forward, backward }) => sum + forward[of] + backward[of],
      passes * blocks.forward[of] + blocks.backward[of],
    );
  const of = inputs({
    turns: pace.turns,
    batch: setting.microBatch,
    context: tokensOfGpu(setting),
    bytes: trainingBytes(setting.precision),
    values: inAll('values'),
    tensor,
    all_reduces: inAll('times'),
  });
  const wait = waiting(link, pace);
  const others = sub(of.tensor, 1);
  const sent = div(mul(of.batch, of.context, of.bytes, of.values, others), of.tensor);
  const waits = add(wait.reduce_seconds, mul(others, wait.hop_seconds));
  const seconds = quantity({
    label: 'tensor_parallel',
    unit: 'seconds',
    formula: mul(of.turns, add(div(sent, reachedRate(wait)), mul(of.all_reduces, waits))),
    inputs: { ...of, ...wait },
    source: 'per token, an all-reduce for each product by rows and its way back (arXiv 2104.04473)',
  });
  return { seconds, link };
}

type Replicated = Readonly<
  Record<'weights' | 'gradients' | 'micro_batches' | 'replicas' | 'parts', Input>
>;

interface ReplicaTraffic {
  readonly bytes: (of: Replicated) => Expression;
  readonly exchanges: (of: Replicated) => Expression;
  /** Hops of an exchange, in hops of an all-reduce in a ring, each of which is two ring steps. */
  readonly hops: (of: Replicated) => Expression;
  readonly way: string;
}

/** A tree all-reduce goes up and down the tree. */
const TREE: Pick<ReplicaTraffic, 'hops' | 'way'> = {
  hops: ({ replicas }) => ceil(div(ln(replicas), ln(2))),
  way: 'in a tree of replicas',
};

/** A reduce-scatter or an all-gather is half of a ring all-reduce; NCCL has no tree for them. */
const RING: Pick<ReplicaTraffic, 'hops' | 'way'> = {
  hops: ({ replicas }) => div(sub(replicas, 1), 2),
  way: 'in a ring of replicas, once around',
};

/**
 * Traffic between replicas: bytes as factors of weights and gradients (arXiv 1910.02054, 7), and the number of
 * collectives if each part of a stage has its own.
 */
const REPLICA_TRAFFIC: Readonly<Record<ZeroStage, ReplicaTraffic>> = {
  0: { ...TREE, bytes: ({ gradients }) => mul(2, gradients), exchanges: ({ parts }) => parts },
  1: {
    ...RING,
    bytes: ({ gradients, weights }) => add(gradients, weights),
    exchanges: ({ parts }) => mul(2, parts),
  },
  2: {
    ...RING,
    bytes: ({ micro_batches, gradients, weights }) => add(mul(micro_batches, gradients), weights),
    exchanges: ({ micro_batches, parts }) => mul(add(micro_batches, 1), parts),
  },
  3: {
    ...RING,
    bytes: ({ micro_batches, gradients, weights }) =>
      mul(micro_batches, add(mul(2, weights), gradients)),
    exchanges: ({ micro_batches, parts }) => mul(3, micro_batches, parts),
  },
};

function replicaTraffic(
  { setting, parallelism }: StepInputs,
  stage: Stage,
  pace: CommunicationPace,
): Traffic | undefined {
  const { tensor, shards: replicas, microBatches } = parallelism;
  const { from, to } = stage;
  const value = reducedParameters(stage, parallelism);
  const link = linkFor(setting, tensor * replicas, tensor);
  if (replicas === 1 || link === undefined) return undefined;
  const bytes = trainingBytes(setting.precision);
  const traffic = REPLICA_TRAFFIC[setting.zero];
  const of = inputs({
    weights: bytes * value,
    gradients: gradientBytesOf(setting) * value,
    micro_batches: microBatches,
    replicas,
    // Each block, and the layers around the blocks.
    parts: to - from + 1,
  });
  const wait = waiting(link, pace);
  const sent = div(mul(traffic.bytes(of), sub(of.replicas, 1)), of.replicas);
  const waits = add(wait.reduce_seconds, mul(traffic.hops(of), wait.hop_seconds));
  const seconds = quantity({
    label: 'replicas',
    unit: 'seconds',
    formula: add(div(sent, reachedRate(wait)), mul(traffic.exchanges(of), waits)),
    inputs: { ...of, ...wait },
    source: `gradients are reduced, and weights gathered (arXiv 1910.02054, section 7); each ${traffic.way} (NCCL, tuning.cc)`,
  });
  return { seconds, link };
}

/** Parameters of a GPU that other GPUs have too: with expert parallelism, experts can have no copies. */
function reducedParameters({ parameters, experts = [] }: Stage, parallelism: Parallelism): number {
  const all = Number(parameters.value);
  if (expertShards(parallelism) > 1) return all;
  return all - sumOf(experts, ({ elements, count = 1 }) => count * elements);
}

/** Gradients between machines that each hold a copy of the state: each GPU reduces its part, over its own link. */
function copiesTraffic(
  { setting, parallelism: { tensor, copies, shards, microBatches } }: StepInputs,
  { from, to, parameters: { value } }: Stage,
  pace: CommunicationPace,
): Traffic | undefined {
  const link = linkFor(setting, tensor * shards * copies, tensor * shards);
  if (copies === 1 || link === undefined) return undefined;
  const of = inputs({
    gradients: gradientBytesOf(setting) * Number(value),
    micro_batches: microBatches,
    shards,
    copies,
    parts: to - from + 1,
  });
  const wait = waiting(link, pace);
  const sent = div(mul(2, of.gradients, sub(of.copies, 1)), mul(of.shards, of.copies));
  const hops = ceil(div(ln(of.copies), ln(2)));
  const waits = add(wait.reduce_seconds, mul(hops, wait.hop_seconds));
  const seconds = quantity({
    label: 'copies',
    unit: 'seconds',
    formula: mul(of.micro_batches, add(div(sent, reachedRate(wait)), mul(of.parts, waits))),
    inputs: { ...of, ...wait },
    source:
      'gradients of a micro-batch are reduced between machines, each GPU its part (PyTorch, fully_shard: ' +
      `set_requires_all_reduce), ${TREE.way}`,
  });
  return { seconds, link };
}

function pipelineTraffic(
  { model, setting, parallelism: { tensor, pipeline } }: StepInputs,
  pace: CommunicationPace,
): Traffic | undefined {
  // Point-to-point sends, each over the GPU's own link.
  const gpusInAll = setting.cluster.gpus;
  const link = linkFor(setting, gpusInAll, gpusInAll);
  if (pipeline === 1 || link === undefined) return undefined;
  const of = inputs({
    // The first and last stages send in one direction only.
    sends: pipeline > 2 ? 2 : 1,
    turns: pace.turns,
    batch: setting.microBatch,
    context: tokensOfGpu(setting),
    bytes: trainingBytes(setting.precision),
    hidden: model.hidden,
    parts: setting.sequenceParallel ? tensor : 1,
  });
  const wait = waiting(link, pace);
  const sent = div(mul(of.batch, of.context, of.bytes, of.hidden), of.parts);
  const seconds = quantity({
    label: 'pipeline',
    unit: 'seconds',
    formula: mul(
      of.sends,
      of.turns,
      add(div(sent, reachedRate(wait)), wait.reduce_seconds, wait.hop_seconds),
    ),
    inputs: { ...of, ...wait },
    source: 'the residual stream forwards, its gradient backwards (arXiv 2104.04473)',
  });
  return { seconds, link };
}

/** Bytes of a value that FP8 trainings send to experts; the way back has 16 bits (DeepSeek-V3, arXiv 2412.19437, 3.2.2). */
const FP8_DISPATCH = 1;

/** GPUs between neighbours of a group that shares experts. */
const apartOf = ({ expertTensor }: Pick<Parallelism, 'expertTensor'>): number => expertTensor;

/**
 * Values of a token that go to other places over the slowest link, in all mixtures: to each other GPU with one of its
 * experts, or to each other machine, which passes them on over its own links (DeepEP).
 */
function sentValues(
  mixtures: readonly MixtureGroup[],
  {
    cluster,
    expert,
    apart,
  }: { readonly cluster: Cluster; readonly expert: number; readonly apart: number },
): number {
  const machines = machinesFor(cluster, expert * apart);
  const places = machines > 1 ? machines : expert;
  return mixtures.reduce(
    (sum, group) => sum + group.count * group.width * placesOfToken(group, places),
    0,
  );
}

/** Tokens go to the GPUs of their experts and back, forwards and backwards, once more with full recomputation. */
function expertTraffic(
  { model, setting, parallelism }: StepInputs,
  stage: Stage,
  pace: CommunicationPace,
): Traffic | undefined {
  const { expert, tensor } = parallelism;
  const apart = apartOf(parallelism);
  const link = linkFor(setting, expert * apart, expert * apart);
  const mixtures = mixturesBetween(model, stage);
  if (expert === 1 || mixtures.length === 0 || link === undefined) return undefined;
  const bytes = trainingBytes(setting.precision);
  const dispatch = setting.precision === 'fp8' ? FP8_DISPATCH : bytes;
  const again = setting.recompute === 'full' ? dispatch + bytes : 0;
  const of = inputs({
    turns: pace.turns,
    batch: setting.microBatch,
    context: tokensOfGpu(setting),
    // GPUs that share a layer each send a part of the tokens (Megatron-LM requires sequence parallelism there).
    parts: tensor,
    values: sentValues(mixtures, { cluster: setting.cluster, expert, apart }),
    bytes: dispatch + 3 * bytes + again,
    exchanges: mixtures.reduce((sum, { count }) => sum + count, 0) * (again > 0 ? 6 : 4),
  });
  const wait = waiting(link, pace);
  const sent = div(mul(of.batch, of.context, of.bytes, of.values), of.parts);
  const seconds = quantity({
    label: 'expert_parallel',
    unit: 'seconds',
    formula: mul(
      of.turns,
      add(
        div(sent, reachedRate(wait)),
        mul(of.exchanges, add(wait.reduce_seconds, wait.hop_seconds)),
      ),
    ),
    inputs: { ...of, ...wait },
    source:
      'each token once to each other place with one of its experts, and back; the same for gradients (DeepEP; ' +
      'DeepSeek-V3, arXiv 2412.19437, section 3.2.2); experts are chosen equally often',
  });
  return { seconds, link };
}

/**
 * Keys and values go once around a ring of the GPUs of a sequence; backwards with their gradients (Ring Attention, arXiv
 * 2310.01889; Megatron-LM, context_parallel.md).
 */
function contextTraffic(
  { model, setting, parallelism }: StepInputs,
  stage: Stage,
  pace: CommunicationPace,
): Traffic | undefined {
  const { context: ring, tensor } = parallelism;
  const link = linkFor(setting, tensor * ring, tensor);
  if (ring === 1 || link === undefined) return undefined;
  const { values, times } = exchangedKeys(model, stage);
  const passes = setting.recompute === 'full' ? 4 : 3;
  const of = inputs({
    turns: pace.turns,
    batch: setting.microBatch,
    context: tokensOfGpu(setting),
    ring,
    tensor,
    bytes: trainingBytes(setting.precision),
    values,
    passes,
    exchanges: passes * times,
  });
  const wait = waiting(link, pace);
  const others = sub(of.ring, 1);
  const sent = div(mul(of.passes, of.batch, of.context, others, of.bytes, of.values), of.tensor);
  const seconds = quantity({
    label: 'context_parallel',
    unit: 'seconds',
    formula: mul(
      of.turns,
      add(div(sent, reachedRate(wait)), mul(of.exchanges, others, wait.hop_seconds)),
    ),
    inputs: { ...of, ...wait },
    source:
      'keys and values of each GPU once around the ring forwards; backwards again, with their gradients (arXiv 2310.01889)',
  });
  return { seconds, link };
}
