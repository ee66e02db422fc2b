/** Memory of a GPU of a replica: that of the model, and of a draft model next to it. */

import type { LanguageModel } from '../../../model/architecture/layer.js';
import { add, mul, v } from '../../../model/budget/expression.js';
import { type Bounds, type Figure, quantity } from '../../../model/budget/figure.js';
import { eachBound } from '../bounds.js';
import { weightLayout } from './quantized.js';
import { sequencesOfGroup } from './serving-axes.js';
import { type ServingMemory, servingMemoryOf } from './serving-memory.js';
import type { ServingFitSetting } from './serving-work.js';
import type { RuntimeSetting } from './throughput/runtimes.js';

/** A setting of serving with the description of its draft model. */
export interface DraftedServing {
  readonly setting: ServingFitSetting;
  /** Model that drafts tokens; undefined without speculative decoding. */
  readonly draft?: LanguageModel | undefined;
}

/** Memory of a draft model, which drafts between the steps of the model and so shares its workspace. */
export interface DraftMemory {
  /** Weights on a GPU. */
  readonly weights: Figure;
  /** Keys and values of one sequence at the context, on one GPU. */
  readonly cachePerSequence: Figure;
  /** States of one sequence, on one GPU. */
  readonly state: Figure;
}

export interface ReplicaMemory extends ServingMemory {
  /** Part of the total; absent without a draft model. */
  readonly draft?: DraftMemory;
}

/** Memory as a function of batch and context. */
export function replicaMemoryOf(
  model: LanguageModel,
  { setting, draft }: DraftedServing,
): (batch: number, context: number) => ReplicaMemory {
  const memoryOf = (served: LanguageModel) =>
    servingMemoryOf(
      { model: served, form: setting, layout: weightLayout(served) },
      setting.cluster.gpu,
    );
  const own = memoryOf(model);
  if (draft === undefined) return own;
  const drafting = memoryOf(draft);
  return (batch, context) => {
    const memory = own(batch, context);
    const { weights, cachePerSequence, state } = drafting(batch, context);
    const parts = { weights, cachePerSequence, state };
    const total = withDraft(memory.total, parts, sequencesOfGroup(setting, batch));
    return { ...memory, draft: parts, total };
  };
}

const withDraft = (
  total: Bounds,
  { weights, cachePerSequence, state }: DraftMemory,
  batch: number,
): Bounds =>
  eachBound(total, ({ value }) =>
    quantity({
      label: 'memory of serving',
      unit: 'bytes',
      formula: add(
        v({ model: value }),
        v({ draft_weights: weights.value }),
        mul(
          v({ batch }),
          add(v({ draft_cache: cachePerSequence.value }), v({ draft_state: state.value })),
        ),
      ),
      source: 'the model with its workspace, and weights, caches and states of the draft model',
    }),
  );

/**
 * Share of the memory that a program has to take: its default where that is enough by the upper bound, else the whole
 * percent that is, or of what fits by the estimate alone, that by the estimate.
 * @param capacity Bytes of a GPU; of a share that the user chose, that share of them.
 */
export function takenShare(
  { expected, upper }: Readonly<Record<'expected' | 'upper', { readonly value: number }>>,
  capacity: number,
  { memoryShare, isMemoryChosen }: Pick<RuntimeSetting, 'memoryShare' | 'isMemoryChosen'>,
): number {
  const needed = upper.value <= capacity ? upper.value : expected.value;
  if (isMemoryChosen || needed <= memoryShare * capacity) return memoryShare;
  return Math.min(1, Math.ceil((100 * needed) / capacity) / 100);
}
