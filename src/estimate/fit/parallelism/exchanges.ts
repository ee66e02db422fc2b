/** Exchanges of the axes of large models in a training step: tokens for experts, and keys of other parts of a sequence. */

import { add, div, type Expression, inputs, mul, sub } from '../../../model/budget/expression.js';
import { quantity } from '../../../model/budget/figure.js';
import { trainingBytes } from '../../../model/budget/training-budget.js';
import type { Cluster } from '../../hardware/gpu.js';
import type { StepInputs } from '../training/training-fit.js';
import { tokensOfGpu } from '../training/training-setting.js';
import type { CommunicationPace, Traffic } from './collectives.js';
import { linkFor, machinesFor, reachedRate, waiting } from './collectives.js';
import { exchangedKeys, type MixtureGroup, mixturesBetween, placesOfToken } from './model-axes.js';
import type { Parallelism, Stage } from './parallelism.js';

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
export function expertTraffic(
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
export function contextTraffic(
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

/** Values in buffers of both exchanges, for the memory of a GPU. */
export function exchangeBuffers({
  model,
  setting,
  parallelism,
  stage,
}: Pick<StepInputs, 'model' | 'setting' | 'parallelism'> & {
  readonly stage: Stage;
}): { readonly tokens: Expression; readonly keys: Expression; readonly allKeys: Expression } {
  const { expert, tensor, context: ring } = parallelism;
  const { from, to } = stage;
  const bytes = trainingBytes(setting.precision);
  const tokens = setting.microBatch * tokensOfGpu(setting);
  const widest = Math.max(
    0,
    ...mixturesBetween(model, { from, to }).map(
      (group) => group.width * (placesOfToken(group, expert) + 1),
    ),
  );
  const { values, times } = exchangedKeys(model, { from, to });
  const ofLayer = times === 0 ? 0 : Math.ceil(values / times);
  const of = inputs({
    tokens,
    bytes,
    sent_values: expert > 1 ? Math.ceil(widest / tensor) : 0,
    key_values: ring > 1 ? Math.ceil(ofLayer / tensor) : 0,
    ring,
  });
  return {
    tokens: mul(of.tokens, of.bytes, of.sent_values),
    keys: mul(of.tokens, of.bytes, of.key_values),
    allKeys: mul(of.tokens, of.ring, of.bytes, of.key_values),
  };
}
