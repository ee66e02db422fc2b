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

import { sumOf } from '../../../base/text/words.js';
import type { LanguageModel } from '../../../model/architecture/layer.js';
import { memoized, walkCounted } from '../../../model/architecture/walk.js';
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
import type { FitVerdict, StageMemory, TrainingMemoryFit } from './training-fit.js';
import { memoryVerdict, stageFit } from './training-memory.js';
import type { TrainingFitSetting } from './training-setting.js';

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

/** Training of adapters on the GPUs of a cluster. */
export interface ClusterLora extends LoraFit {
  /** Rank of the adapters. @integer @minimum 1 */
  readonly rank: number;
  readonly recompute: TrainingFitSetting['recompute'];
  /**
   * Fewest GPUs that fit by the upper bound, by doubling; null if no number does whose links are known.
   * @integer @minimum 1
   */
  readonly gpus: number | null;
}

/**
 * Adapters on the GPUs of `setting`, and the fewest on which they fit. The GPUs divide all state (ZeRO-3).
 * @throws UserError when the model cannot be trained as requested.
 */
export function loraOn(
  model: LanguageModel,
  setting: TrainingFitSetting,
  base?: WeightFormat,
  { isSearched = true } = {},
): ClusterLora {
  const { cluster, recompute } = setting;
  const on = (wider: Cluster) =>
    fitLora(model, { ...setting, cluster: wider, zero: 3, globalBatchTokens: undefined }, base);
  const asked = on(cluster);
  const fewest =
    asked.verdict === 'fits' || !isSearched
      ? cluster
      : fewestGpus({ ...cluster, gpus: 2 * cluster.gpus }, (wider) => on(wider).verdict === 'fits');
  return { ...asked, rank: LORA_RANK, recompute, gpus: fewest?.gpus ?? null };
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
  const alone = { ...setting, tensorParallel: 1, pipelineParallel: 1, sequenceParallel: false };
  const parallelism = parallelismOf(model, alone);
  const { trained, perToken } = adaptersOf(model);
  const adapters = figure({
    label: 'adapters',
    unit: 'parameters',
    formula: add(...trained.map(({ elements, count = 1 }) => mul(count, elements))),
    source: `rank ${LORA_RANK}, on each product inside the blocks (LoRA, arXiv 2106.09685)`,
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
  const bytes = v({ bytes: trainingBytes(setting.precision) });
  const parameters = v({ parameters: whole.parameters.value });
  const isDivided = setting.zero === 3 && parallelism.replicas > 1;
  const served = base && servedParameters(model, base);
  const all = served ? v({ frozen: served.value }) : mul(bytes, parameters);
  const frozen = figure({
    label: 'frozen weights',
    unit: 'bytes',
    formula: isDivided ? ceildiv(all, v({ replicas: parallelism.replicas })) : all,
    source: `${served ? served.source : `${setting.precision} precision`}, without gradient and optimizer state`,
  });
  const kept = figure({
    label: 'activations of the adapters',
    unit: 'bytes',
    formula: mul(
      v({ batch: setting.microBatch }),
      v({ context: setting.context }),
      bytes,
      v({ values: perToken }),
    ),
    source: `${LORA_RANK} values for each product that a token goes through`,
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

interface Adapters {
  readonly trained: readonly Trained[];
  /** Values that adapters keep per token. */
  readonly perToken: number;
}

/** Adapters of a model, those of equal sizes together. */
const adaptersOf = memoized((model: LanguageModel): Adapters => {
  const { owned, quantised, experts } = weightLayout(model);
  const used = expertsPerToken(model);
  const sizes = new Map<number, number>();
  let perToken = 0;
  for (const { tensor, count } of owned) {
    const matrix = quantised.get(tensor);
    if (matrix === undefined) continue;
    const { rows, length, copies } = matrix;
    const matrices = count * copies;
    for (const side of [rows, length]) {
      sizes.set(LORA_RANK * side, (sizes.get(LORA_RANK * side) ?? 0) + matrices);
    }
    perToken += LORA_RANK * (experts.has(tensor) ? matrices * used : matrices);
  }
  const trained = [...sizes].map(([elements, count]) => ({ elements, count }));
  return { trained, perToken: Math.ceil(perToken) };
});

/** Largest share of the experts that a token goes to. */
function expertsPerToken(model: LanguageModel): number {
  const shares = walkCounted(model).flatMap(({ layer }) =>
    layer.kind === 'mixtureOfExperts'
      ? [layer.router.expertsPerToken / (layer.router.weight.shape[0] ?? 1)]
      : [],
  );
  return Math.max(0, ...shares);
}
