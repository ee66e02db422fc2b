/**
 * Memory of training low-rank adapters (LoRA, arXiv 2106.09685). Each product with a weight [outputs, inputs] inside
 * the blocks gets two matrices of `rank` · inputs and outputs · `rank` values; each expert has its own. Embedding, head,
 * norms and routers get none. The model's weights are frozen: they have no gradient and no optimizer state, and no
 * float32 copy. The adapters have all three, as in any training.
 *
 * Activations are those of a whole training: an adapter needs the input of its product, and norms, activation
 * functions, attention and scans need theirs to pass gradients on. The adapters add `rank` values per product and
 * token. Only the input of the frozen head could be dropped, and is counted.
 */

import { usageError } from '../../../base/errors.js';
import { setting } from '../../../base/text/setting.js';
import { ownValue, sumOf } from '../../../base/values.js';
import { quote } from '../../../config/quote.js';
import type { Component, LanguageModel } from '../../../model/architecture/layer.js';
import {
  isRouted,
  memoizedBy,
  type OwnedTensor,
  walkCounted,
} from '../../../model/architecture/walk.js';
import { add, ceildiv, mul, v } from '../../../model/budget/expression.js';
import type { Bounds, Figure, Quantity } from '../../../model/budget/figure.js';
import { figure } from '../../../model/budget/figure.js';
import type { Trained } from '../../../model/budget/optimizers.js';
import { trainingBytes } from '../../../model/budget/training-budget.js';
import type { Cluster } from '../../hardware/gpu.js';
import { capacityOf } from '../../hardware/gpu.js';
import { sumBounds } from '../bounds.js';
import { fewestGpus } from '../parallelism/linked-cluster.js';
import type { Stage } from '../parallelism/parallelism.js';
import { parallelismOf, pipelineStages } from '../parallelism/parallelism.js';
import { servedParameters, weightLayout } from '../serving/quantized.js';
import type { WeightFormat } from '../serving/weight-types.js';
import { adapterStepIfKnown } from './step-time.js';
import type { FitVerdict, StageMemory, StepTime, TrainingMemoryFit } from './training-fit.js';
import { memoryVerdict, stageFit } from './training-memory.js';
import { type TrainingFitSetting, tokensOfGpu } from './training-setting.js';

/** Rank of the adapters, as in most recipes (PEFT's default is 8, QLoRA's 64). */
export const LORA_RANK = 16;

/**
 * Frozen weights of QLoRA (arXiv 2305.14314): NF4 in blocks of 64 values, whose scales are quantized to 8 bits. The
 * products inside the blocks are quantized; embedding, head and norms stay in 16 bits (bitsandbytes).
 */
export const QLORA_BASE: WeightFormat = {
  dtype: 'int4',
  groupSize: 64,
  scaleDtype: 'f8_e4m3',
  zeroPoints: false,
};

export interface LoraFit {
  readonly adapters: Figure;
  /** Frozen weights on one GPU. */
  readonly frozen: Figure;
  /** Training of the adapters on one GPU: weights, gradients, optimizer state, activations of the model. */
  readonly parts: StageMemory['parts'];
  /** Values that the adapters keep for the backward pass. */
  readonly kept: Figure;
  /** Correction for parts that are never in memory at once, zero or negative. */
  readonly apart: Bounds | null;
  /** Parts of the workspace. */
  readonly workspaceParts: TrainingMemoryFit['workspaceParts'];
  readonly total: Bounds;
  readonly capacity: Quantity;
  /** Whether the training fits by the bounds. */
  readonly verdict: FitVerdict;
}

/** Memory of a training of adapters on the GPUs of a cluster. */
export interface ClusterLoraMemory extends LoraFit {
  /** Rank of the adapters. @integer @minimum 1 */
  readonly rank: number;
  /** Products with adapters; null for all of the blocks. */
  readonly targets: readonly string[] | null;
  /** Work repeated in the backward pass to save memory. */
  readonly recompute: TrainingFitSetting['recompute'];
  /**
   * Fewest GPUs that fit by the upper bound, by doubling; null if no number does whose links are known.
   * @integer @minimum 1
   */
  readonly gpus: number | null;
}

/** Training of adapters on the GPUs of a cluster. */
export interface ClusterLora extends ClusterLoraMemory {
  /** Time of a step, if the GPU's peak is known, and a link between the GPUs. */
  readonly step?: StepTime;
}

/** Division of adapters unless another one is asked for: GPUs divide all state. */
export const ADAPTER_DIVISION = { zero: 3, hybrid: undefined } as const;

/** Each step is one micro-batch. */
const asReplicas = (setting: TrainingFitSetting): TrainingFitSetting => ({
  ...setting,
  globalBatchTokens: undefined,
});

/**
 * Memory of adapters on the GPUs of `setting`, the fewest on which they fit, and the time of a step.
 * @throws UserError when the model cannot be trained as requested.
 */
export function loraOn(
  model: LanguageModel,
  setting: TrainingFitSetting,
  base?: WeightFormat,
): ClusterLora {
  const memory = loraMemoryOn(model, setting, base);
  const { alone, parallelism, stage, whole } = adapterStage(model, asReplicas(setting));
  const { memory: ofStage } = stageFit(model, alone, parallelism, stage);
  const shared = { setting: alone, parallelism, stage, whole, memory: ofStage };
  const step = adapterStepIfKnown(model, shared);
  return { ...(step && { step }), ...memory };
}

/**
 * Memory of adapters on the GPUs of `setting`, and the fewest on which they fit. They divide what `setting.zero` says.
 * @throws UserError when the model cannot be trained as requested.
 */
export function loraMemoryOn(
  model: LanguageModel,
  setting: TrainingFitSetting,
  base?: WeightFormat,
  { isSearched = true } = {},
): ClusterLoraMemory {
  const { cluster, recompute } = setting;
  const on = (wider: Cluster) =>
    withUsualRecipes(model, asReplicas({ ...setting, cluster: wider }), setting.frozen ?? base);
  const asked = on(cluster);
  const fewest =
    asked.verdict === 'fits' || !isSearched
      ? cluster
      : fewestGpus({ ...cluster, gpus: 2 * cluster.gpus }, (wider) => on(wider).verdict === 'fits');
  return {
    ...asked,
    rank: rankOf(setting),
    targets: setting.targets ?? null,
    recompute,
    gpus: fewest?.gpus ?? null,
  };
}

/** Ranks of usual recipes: PEFT's default, and QLoRA's (arXiv 2305.14314). */
const RANKS = { least: 8, most: 64 } as const;

const rankOf = ({ rank = LORA_RANK }: Pick<TrainingFitSetting, 'rank'>): number => rank;

/**
 * Adapters with bounds over usual recipes. The lower bound is that of a program that keeps adapters in bf16, moves the
 * inputs of the blocks to the host and computes the loss in chunks (Unsloth; torchtune). Without a rank, the bounds are
 * those of ranks 8 and 64.
 */
function withUsualRecipes(
  model: LanguageModel,
  setting: TrainingFitSetting,
  base: WeightFormat | undefined,
): LoraFit {
  const fit = fitLora(model, setting, base);
  const { rank, precision, optimizer } = setting;
  const [least, most] = rank === undefined ? [RANKS.least, RANKS.most] : [rank, rank];
  const frugal = {
    ...setting,
    rank: least,
    loss: 'chunked',
    offloaded: true,
    precision: precision === 'mixed' ? 'bf16' : precision,
    optimizer: optimizer === 'adamw' ? 'adamw-8bit' : optimizer,
  } as const;
  const { lower } = fitLora(model, frugal, base).total;
  const upper =
    most === rankOf(setting)
      ? fit.total.upper
      : fitLora(model, { ...setting, rank: most }, base).total.upper;
  const total = { ...fit.total, lower, upper };
  return { ...fit, total, verdict: memoryVerdict(total, fit.capacity) };
}

/**
 * Memory of each GPU. The GPUs are replicas: they divide what `setting.zero` says, frozen weights with ZeRO-3.
 * @param base Format of the frozen weights; default: the type of the training.
 * @throws UserError when the model cannot be trained as requested.
 */
export function fitLora(
  model: LanguageModel,
  setting: TrainingFitSetting,
  base?: WeightFormat,
): LoraFit {
  const { alone, parallelism, whole, stage, adapters, perToken } = adapterStage(model, setting);
  const rank = rankOf(setting);
  const bytes = v({ bytes: trainingBytes(setting.precision) });
  const parameters = v({ parameters: whole.parameters.value });
  const isDivided = setting.zero === 3 && parallelism.shards > 1;
  const served = base && servedParameters(model, base);
  const all = served ? v({ frozen: served.value }) : mul(bytes, parameters);
  const frozen = figure({
    label: 'frozen weights',
    unit: 'bytes',
    formula: isDivided ? ceildiv(all, v({ replicas: parallelism.shards })) : all,
    source: `${served ? served.source : `${setting.precision} precision`}, without gradient and optimizer state`,
  });
  const kept = figure({
    label: 'activations of the adapters',
    unit: 'bytes',
    formula: mul(
      v({ batch: setting.microBatch }),
      v({ context: tokensOfGpu(setting) }),
      bytes,
      v({ values: perToken }),
    ),
    source: `${rank} values for each product that a token goes through`,
  });
  const { memory, apart, workspace, total: others } = stageFit(model, alone, parallelism, stage);
  const total = sumBounds(
    'memory of a GPU',
    { adapters: others, frozen, kept },
    'frozen weights, training of the adapters, and activations of the adapters',
  );
  const capacity = capacityOf(setting.cluster.gpu);
  return {
    adapters,
    frozen,
    parts: memory.parts,
    kept,
    apart: apart ?? null,
    workspaceParts: workspace.parts,
    total,
    capacity,
    verdict: memoryVerdict(total, capacity),
  };
}

/** Model on each GPU with only its adapters trained. */
function adapterStage(model: LanguageModel, setting: TrainingFitSetting) {
  const alone = {
    ...setting,
    ...{ tensorParallel: 1, pipelineParallel: 1, sequenceParallel: false },
    ...{ expertParallel: undefined, expertTensorParallel: undefined },
  };
  const parallelism = parallelismOf(model, alone);
  const rank = rankOf(setting);
  const { trained, perToken } = adaptersOf(model, setting);
  const adapters = figure({
    label: 'adapters',
    unit: 'parameters',
    formula: add(...trained.map(({ elements, count = 1 }) => mul(count, elements))),
    source: `rank ${rank}, on ${setting.targets?.join(', ') ?? 'each product inside the blocks'} (LoRA, arXiv 2106.09685)`,
  });
  const [whole] = pipelineStages(model, parallelism);
  if (whole === undefined) throw new Error('a model without stages');
  const stage: Stage = {
    ...whole,
    trained,
    tensors: sumOf(trained, ({ count = 1 }) => count),
    parameters: adapters,
    frozen: whole.trained,
  };
  return { alone, parallelism, whole, stage, adapters, perToken };
}

interface Adapters {
  readonly trained: readonly Trained[];
  /** Values that adapters keep per token. */
  readonly perToken: number;
}

/** Groups of products by their components. */
const TARGET_GROUPS: Readonly<Record<string, readonly Component[]>> = {
  attention: ['attention', 'mamba', 'deltaNet', 'shortConvolution'],
  mlp: ['feedForward', 'mlp', 'experts', 'sharedExperts'],
};

/** Whether a product has an adapter: by a group, or by the end of its name, as in PEFT. */
const isTarget = ({ tensor, component }: OwnedTensor, target: string): boolean =>
  ownValue(TARGET_GROUPS, target)?.includes(component) ??
  (target !== '' && tensor.name.replace(/\.weight$/, '').endsWith(target));

type AdapterSetting = Pick<TrainingFitSetting, 'rank' | 'targets'>;

/**
 * Adapters of a model, those of equal sizes together.
 * @throws UserError for a target that no product has.
 */
const adaptersOf = memoizedBy(
  ({ rank, targets }: AdapterSetting) => `${rank} ${targets?.join()}`,
  (model: LanguageModel, setting): Adapters => {
    const rank = rankOf(setting);
    const { owned, quantised, experts } = weightLayout(model);
    const used = expertsPerToken(model);
    const products = owned.filter(({ tensor }) => quantised.has(tensor));
    refuseUnknownTargets(products, setting.targets);
    const sizes = new Map<number, number>();
    let perToken = 0;
    for (const each of products) {
      const { tensor, count } = each;
      const matrix = quantised.get(tensor);
      const isAdapted = setting.targets?.some((target) => isTarget(each, target)) ?? true;
      if (matrix === undefined || !isAdapted) continue;
      const { rows, length, copies } = matrix;
      const matrices = count * copies;
      for (const side of [rows, length]) {
        sizes.set(rank * side, (sizes.get(rank * side) ?? 0) + matrices);
      }
      perToken += rank * (experts.has(tensor) ? matrices * used : matrices);
    }
    const trained = [...sizes].map(([elements, count]) => ({
      elements,
      count,
      columns: rank,
    }));
    return { trained, perToken: Math.ceil(perToken) };
  },
);

function refuseUnknownTargets(
  products: readonly OwnedTensor[],
  targets: readonly string[] | undefined,
): void {
  const unknown = targets?.find((target) => !products.some((each) => isTarget(each, target)));
  if (unknown === undefined) return;
  const names = products.map(({ tensor: { name } }) =>
    name
      .replace(/\.weight$/, '')
      .split('.')
      .at(-1),
  );
  throw usageError(
    `${setting('targets')}: no product of the blocks is called ${quote(unknown)}`,
    `write attention, mlp, or ends of ${[...new Set(names)].slice(0, 8).join(', ')}`,
  );
}

/** Largest share of the experts that a token goes to. */
function expertsPerToken(model: LanguageModel): number {
  const shares = walkCounted(model).flatMap(({ layer }) =>
    isRouted(layer) ? [layer.router.expertsPerToken / (layer.router.weight.shape[0] ?? 1)] : [],
  );
  return Math.max(0, ...shares);
}
