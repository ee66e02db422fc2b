/** What GPUs tell each other in a step of training, and how long that takes. */
import { type Quantity, quantity } from '../../budget/quantity.js';
import { bytesIn } from '../../budget/training.js';
import type { Cluster } from '../../hardware/gpu.js';
import { MACHINES } from '../../hardware/machines.js';
import { type Efficiency, type GroupLink, hopSeconds } from '../efficiency.js';
import type { StepSituation } from '../training/training.js';
import {
  gradientBytesOf,
  type TrainingFitSetting,
  type ZeroStage,
} from '../training/training-setting.js';
import type { Parallelism, Stage } from './parallelism.js';
import { type Exchanged, exchangeOf, headExchange } from './tensor-parallel.js';

/**
 * What joins so many GPUs for an exchange that all of them take part in; nothing where nobody knows. Between machines
 * each of a group's GPUs in a machine has its own way to the network, so they send together as fast as so many, or as
 * the link within lets them (rings of NCCL).
 * @param apart GPUs that stand between two of the group: with tensor parallelism of 8, every eighth belongs to it.
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

/** That nobody knows what joins so many of the GPUs, and how to say it; null where it is known. */
export function withoutLink(cluster: Cluster, gpus: number): string | null {
  if (gpus === 1 || linkFor({ cluster }, gpus)) return null;
  const { gpu } = cluster;
  const joined = Math.max(1, ...gpu.links.map((link) => link.gpus));
  const machine = MACHINES.find(({ network, gpu: { name } }) => network && name === gpu.name);
  const byName = machine
    ? `name a machine, as in --gpu ${machine.name}, or describe one`
    : 'describe a machine';
  return `what joins more than ${joined} of ${gpu.name} is not known: ${byName} with its network in a file for --hardware`;
}

/** At what share of the links, with what each exchange waits, and whether the pipeline has to fill. */
export interface Pace {
  readonly efficiency: Efficiency;
  /** Micro-batches; unless all is at its best, also the turns in which a pipeline fills and empties. */
  readonly turns: number;
}

export const paceOf = (
  efficiency: Efficiency,
  { microBatches, pipeline }: Parallelism,
  isBest: boolean,
): Pace => ({ efficiency, turns: isBest ? microBatches : microBatches + pipeline - 1 });

interface Traffic {
  readonly seconds: Quantity;
  readonly link: GroupLink;
}

/** Of the stage whose GPUs exchange longest; what goes over links that nobody knows is not counted. */
export function communicationSeconds(situation: StepSituation, pace: Pace): Quantity {
  const { cluster } = situation.setting;
  const traffic = situation.stages.flatMap((stage) => {
    const all = [
      tensorTraffic(situation, stage, pace),
      replicaTraffic(situation, stage, pace),
      pipelineTraffic(situation, pace),
    ];
    return [...sumByLink(all.flatMap((each) => (each ? [each] : [])))];
  });
  const nothing = quantity({
    label: 'communication',
    unit: 'seconds',
    formula: '0',
    inputs: {},
    source: cluster.gpus === 1 ? 'one GPU has nobody to talk to' : 'nothing can be said of it',
  });
  const longest = traffic.reduce((a, b) => (b.value > a.value ? b : a), nothing);
  const unknown = withoutLink(cluster, cluster.gpus);
  return unknown === null
    ? longest
    : { ...longest, source: `${longest.source}; not counted: ${unknown}` };
}

/** What shares a link takes turns; different links work at the same time. */
function sumByLink(traffic: readonly Traffic[]): Quantity[] {
  // By name: how many of its ways a group has differs from exchange to exchange.
  const names = [...new Set(traffic.map(({ link }) => link.name))];
  return names.map((name) => {
    const sharing = traffic.filter(({ link }) => link.name === name);
    return quantity({
      label: 'communication',
      unit: 'seconds',
      formula: sharing.map(({ seconds }) => seconds.label).join(' + '),
      inputs: Object.fromEntries(sharing.map(({ seconds }) => [seconds.label, seconds.value])),
      source: `${name}: ${sharing
        .map(
          ({ seconds: { label, formula, inputs, source } }) =>
            `${label} = ${formula} with ${Object.entries(inputs)
              .map(([input, each]) => `${input} = ${each}`)
              .join(', ')} (${source})`,
        )
        .join('; ')}`,
    });
  });
}

/** What an exchange is made of: its bytes by the share of the link that is reached, and what each of them waits. */
const waiting = (link: GroupLink, { efficiency }: Pace) => ({
  bandwidth: link.bandwidth,
  link_utilisation: efficiency.linkUtilisation,
  reduce_seconds: efficiency.reduceSeconds,
  hop_seconds: hopSeconds(efficiency, link),
});

function tensorTraffic(
  { model, setting, parallelism: { tensor } }: StepSituation,
  { from, to }: Stage,
  pace: Pace,
): Traffic | undefined {
  const link = linkFor(setting, tensor);
  if (tensor === 1 || link === undefined) return undefined;
  const blocks = exchangeOf(model.blocks.slice(from, to));
  const ends = [
    ...(from === 0 ? [exchangeOf([model.embedding])] : []),
    ...(to === model.blocks.length ? [headExchange(model.head)] : []),
  ];
  const passes = setting.recompute === 'full' ? 2 : 1;
  const inAll = (of: keyof Exchanged) =>
    ends.reduce(
      (sum, { forward, backward }) => sum + forward[of] + backward[of],
      passes * blocks.forward[of] + blocks.backward[of],
    );
  const seconds = quantity({
    label: 'tensor_parallel',
    unit: 'seconds',
    formula:
      'turns * (batch * context * bytes * values * (tensor - 1) / tensor / (bandwidth * link_utilisation) + ' +
      'all_reduces * (reduce_seconds + (tensor - 1) * hop_seconds))',
    inputs: {
      turns: pace.turns,
      batch: setting.microBatch,
      context: setting.context,
      bytes: bytesIn(setting.precision),
      values: inAll('values'),
      tensor,
      all_reduces: inAll('times'),
      ...waiting(link, pace),
    },
    source: 'per token, an all-reduce for each product by rows and its way back (arXiv 2104.04473)',
  });
  return { seconds, link };
}

interface ReplicaTraffic {
  readonly bytes: string;
  readonly exchanges: string;
  /** Of an exchange, in hops of an all-reduce in a ring, each of which is two steps of it. */
  readonly hops: string;
  readonly way: string;
}

/** An all-reduce goes up and down a tree. */
const TREE = { hops: 'ceil(ln(replicas) / ln(2))', way: 'in a tree of replicas' };

/** A reduce-scatter or an all-gather is half of an all-reduce in a ring, and NCCL has no tree for them. */
const RING = { hops: '(replicas - 1) / 2', way: 'in a ring of replicas, once around' };

/**
 * Times the parameters, in bytes of weights and of gradients: what replicas exchange (arXiv 1910.02054, 7). And in how
 * many exchanges, when each part of a stage has its own.
 */
const REPLICA_TRAFFIC: Readonly<Record<ZeroStage, ReplicaTraffic>> = {
  0: { ...TREE, bytes: '2 * gradients', exchanges: 'parts' },
  1: { ...RING, bytes: 'gradients + weights', exchanges: '2 * parts' },
  2: {
    ...RING,
    bytes: 'micro_batches * gradients + weights',
    exchanges: '(micro_batches + 1) * parts',
  },
  3: {
    ...RING,
    bytes: 'micro_batches * (2 * weights + gradients)',
    exchanges: '3 * micro_batches * parts',
  },
};

function replicaTraffic(
  { setting, parallelism: { tensor, replicas, microBatches } }: StepSituation,
  { from, to, parameters: { value } }: Stage,
  pace: Pace,
): Traffic | undefined {
  const link = linkFor(setting, tensor * replicas, tensor);
  if (replicas === 1 || link === undefined) return undefined;
  const bytes = bytesIn(setting.precision);
  const traffic = REPLICA_TRAFFIC[setting.zero];
  const seconds = quantity({
    label: 'replicas',
    unit: 'seconds',
    formula:
      `(${traffic.bytes}) * (replicas - 1) / replicas / (bandwidth * link_utilisation) + ` +
      `${traffic.exchanges} * (reduce_seconds + ${traffic.hops} * hop_seconds)`,
    inputs: {
      weights: bytes * Number(value),
      gradients: gradientBytesOf(setting) * Number(value),
      micro_batches: microBatches,
      replicas,
      // Each block, and what stands around them.
      parts: to - from + 1,
      ...waiting(link, pace),
    },
    source: `gradients are reduced, and weights gathered (arXiv 1910.02054, section 7); each ${traffic.way} (NCCL, tuning.cc)`,
  });
  return { seconds, link };
}

function pipelineTraffic(
  { model, setting, parallelism: { tensor, pipeline, replicas } }: StepSituation,
  pace: Pace,
): Traffic | undefined {
  // From one GPU to one other, each by its own way.
  const gpusInAll = tensor * pipeline * replicas;
  const link = linkFor(setting, gpusInAll, gpusInAll);
  if (pipeline === 1 || link === undefined) return undefined;
  const seconds = quantity({
    label: 'pipeline',
    unit: 'seconds',
    formula:
      'sends * turns * (batch * context * bytes * hidden / parts / (bandwidth * link_utilisation) + ' +
      'reduce_seconds + hop_seconds)',
    inputs: {
      // Those at an end send in one direction only.
      sends: pipeline > 2 ? 2 : 1,
      turns: pace.turns,
      batch: setting.microBatch,
      context: setting.context,
      bytes: bytesIn(setting.precision),
      hidden: model.norm.weight.elements,
      parts: setting.sequenceParallel ? tensor : 1,
      ...waiting(link, pace),
    },
    source: 'the residual stream forwards, its gradient backwards (arXiv 2104.04473)',
  });
  return { seconds, link };
}
