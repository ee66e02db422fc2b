/** Axes of large models: GPUs with some of the experts, and GPUs with a part of each sequence. */

import { usageError } from '../../../base/errors.js';
import { setting } from '../../../base/text/setting.js';
import { formatInteger } from '../../../base/text/units.js';
import { counted } from '../../../base/text/words.js';
import { sumOf } from '../../../base/values.js';
import type { LanguageModel } from '../../../model/architecture/layer.js';
import type { Param } from '../../../model/architecture/param.js';
import {
  describedLayer,
  expertTensors,
  isRouted,
  memoized,
  memoizedBy,
  walkCounted,
} from '../../../model/architecture/walk.js';
import { primitivesOf } from '../../../model/operations/lower.js';
import type { TrainingFitSetting } from '../training/training-setting.js';
import { greatestCommonDivisor, nearestDivisors } from './divisors.js';

// Expert parallelism takes GPUs that otherwise hold copies of the experts: those of the replicas and of context
// parallelism, and those of tensor parallelism too if no GPUs share an expert (Megatron-LM, parallel_state.py and
// arXiv 2504.14960; torchtitan, parallel_dims.py). The numbers of tokens and products of a GPU stay the same if tokens
// choose all experts equally often.

/** Tensors of the routed experts of a model. */
export const expertsIn = memoized(
  (model: LanguageModel): ReadonlySet<Param> =>
    new Set(
      mixturesOf(model).flatMap(({ layer }) => expertTensors(layer).map((each) => each.tensor)),
    ),
);

const mixturesOf = memoized((model: LanguageModel) =>
  walkCounted(model).flatMap(({ layer, count }) => (isRouted(layer) ? [{ layer, count }] : [])),
);

/** Number of experts that all mixtures can be divided by; 0 without experts. */
export const dividedExperts = memoized((model: LanguageModel): number =>
  mixturesOf(model).reduce(
    (common, { layer }) => greatestCommonDivisor(common, layer.router.weight.shape[0] ?? 0),
    0,
  ),
);

/** Degrees of the experts of a training. */
interface ExpertDegrees {
  /** GPUs that each have some of the experts. */
  readonly expert: number;
  /** GPUs that share each expert. */
  readonly expertTensor: number;
}

/**
 * @param holders GPUs that have the same weights without expert parallelism.
 * @throws UserError when the experts or GPUs cannot be divided.
 */
export function expertParallelismOf(
  model: LanguageModel,
  asked: Pick<TrainingFitSetting, 'tensorParallel' | 'expertParallel' | 'expertTensorParallel'>,
  holders: number,
): ExpertDegrees {
  const { tensorParallel: tensor, expertParallel: expert = 1 } = asked;
  const { expertTensorParallel: expertTensor = tensor } = asked;
  if (expertTensor !== tensor && expertTensor !== 1) {
    throw usageError(
      `${setting('expertTensorParallel')}: expected 1, or the ${counted(tensor, 'GPU')} that share a layer, found ${formatInteger(expertTensor)}`,
      tensor === 1 ? 'write 1, or leave it out' : `write 1 or ${tensor}`,
    );
  }
  if (expert === 1) {
    if (expertTensor === tensor) return { expert, expertTensor };
    throw usageError(
      `${setting('expertTensorParallel', expertTensor)} requires GPUs that divide the experts`,
      `add ${setting('expertParallel', tensor)}, or leave it out`,
    );
  }
  const sharing = (holders * tensor) / expertTensor;
  requireExperts(model, expert, sharing);
  if (sharing % expert !== 0) {
    throw usageError(
      `${setting('expertParallel')}: ${formatInteger(expert)} does not divide the ${counted(sharing, 'GPU')} that ${sharing === 1 ? 'has' : 'have'} the same experts`,
      `write ${nearestDivisors(greatestCommonDivisor(sharing, dividedExperts(model)), expert).join(' or ')}`,
    );
  }
  return { expert, expertTensor };
}

/** @throws UserError for a model without experts, or with numbers of experts that the GPUs do not divide. */
function requireExperts(model: LanguageModel, expert: number, sharing: number): void {
  const experts = dividedExperts(model);
  if (experts === 0) {
    throw usageError(
      `${setting('expertParallel')} requires a model with routed experts`,
      'leave it out',
    );
  }
  if (experts % expert === 0) return;
  throw usageError(
    `${setting('expertParallel')}: ${formatInteger(expert)} GPUs cannot share ${formatInteger(experts)} experts equally`,
    `write ${nearestDivisors(greatestCommonDivisor(sharing, experts), expert).join(' or ')}`,
  );
}

/**
 * Context parallelism gives each GPU two parts of every sequence, one from its start and one from its end, so that causal
 * attention is the same work for all (Megatron-LM, get_batch_on_this_cp_rank; torchtitan, context_parallel.py).
 * @throws UserError for other lengths, for plain attention, and for layers whose state passes from token to token.
 */
export function requireContextParallel(
  model: LanguageModel,
  { contextParallel = 1, context, attention }: TrainingFitSetting,
): void {
  if (contextParallel === 1) return;
  const parts = 2 * contextParallel;
  if (context % parts !== 0) {
    const below = Math.floor(context / parts) * parts;
    throw usageError(
      `${setting('contextParallel')}: ${formatInteger(context)} tokens cannot be cut into ${formatInteger(parts)} equal parts, two for each GPU`,
      `write ${setting('context', below + (below === 0 ? parts : 0))}`,
    );
  }
  if (attention === 'plain') {
    throw usageError(
      `${setting('contextParallel')} requires fused attention`,
      `write ${setting('attention', 'fused')}, or leave it out`,
    );
  }
  if (!canCutSequences(model)) {
    if (describedLayer(model) !== undefined) {
      throw usageError(
        `${setting('contextParallel')}: layers of this model are described, and what they exchange between parts of a sequence is not`,
        'leave it out',
      );
    }
    throw usageError(
      `${setting('contextParallel')}: the states of recurrent layers pass from token to token, and their exchange is not described here`,
      'leave it out',
    );
  }
}

/** Whether only attention connects the tokens of a sequence. */
export const canCutSequences = memoized((model: LanguageModel): boolean =>
  primitivesOf(model).every(({ kind }) => kind !== 'scan' && kind !== 'convolution'),
);

/** Keys and values of a token that GPUs with other parts of its sequence need, in all attentions of some blocks. */
export const exchangedKeys = memoizedBy(
  ({ from, to }: { readonly from: number; readonly to: number }) => `${from} ${to}`,
  (model: LanguageModel, { from, to }): { readonly values: number; readonly times: number } => {
    const attentions = model.blocks
      .slice(from, to)
      .flatMap((block) => primitivesOf(block))
      .flatMap((each) => (each.kind === 'scores' ? [each] : []));
    return {
      values: sumOf(
        attentions,
        ({ keyValueHeads, headDim, valueDim }) => keyValueHeads * (headDim + valueDim),
      ),
      times: attentions.length,
    };
  },
);

/** Mixtures of some blocks with the same experts for each token. */
export interface MixtureGroup {
  /** Mixtures. */
  readonly count: number;
  readonly experts: number;
  readonly expertsPerToken: number;
  /** Values of a token that its experts read. */
  readonly width: number;
}

/** Mixtures between two blocks, those with the same numbers together. */
export const mixturesBetween = memoizedBy(
  ({ from, to }: { readonly from: number; readonly to: number }) => `${from} ${to}`,
  (model: LanguageModel, { from, to }): readonly MixtureGroup[] => {
    const groups = new Map<string, MixtureGroup>();
    for (const { layer, count } of model.blocks.slice(from, to).flatMap(walkCounted)) {
      if (!isRouted(layer)) continue;
      const [experts = 1, width = model.hidden] = layer.router.weight.shape;
      const { expertsPerToken } = layer.router;
      const key = `${experts} ${expertsPerToken} ${width}`;
      const before = groups.get(key)?.count ?? 0;
      groups.set(key, { count: before + count, experts, expertsPerToken, width });
    }
    return [...groups.values()];
  },
);

/**
 * Expected number of other places that a token is sent to: places with at least one of its experts, which it chooses at
 * random, without its own. Each place gets one copy (DeepEP; DeepSeek-V3, arXiv 2412.19437, section 3.2.2).
 * @param most Places to which the router limits a token.
 */
export function placesOfToken(
  { experts, expertsPerToken }: Pick<MixtureGroup, 'experts' | 'expertsPerToken'>,
  places: number,
  most = Number.POSITIVE_INFINITY,
): number {
  const each = experts / places;
  // No expert of the place among the chosen ones: a draw without putting back.
  let missed = 1;
  for (let drawn = 0; drawn < expertsPerToken; drawn++) {
    missed *= Math.max(0, experts - each - drawn) / (experts - drawn);
  }
  const reached = Math.min(places * (1 - missed), most);
  return (reached * (places - 1)) / places;
}
