/**
 * Types in which a cache keeps keys and values: each row of a head is rounded as it is written, and read rounded, by the
 * tokens of the same call too (llama.cpp: `--cache-type-k`, `--cache-type-v`). Engines compute with the rounded values in
 * float32, so that the error is that of the type, and the memory that of float32.
 */
import { usageError } from '../base/errors.js';
import type { CacheType } from '../base/tensor/dtype.js';
import { setting } from '../base/text/setting.js';
import type { LanguageModel } from '../model/architecture/layer.js';
import { isAttention, walkCounted } from '../model/architecture/walk.js';
import { refuseCacheWidths } from '../model/budget/cache-widths.js';

/** Attention without a cache of keys and values of heads, named as in diagrams. */
const NAMES = {
  latentAttention: 'latent attention (MLA)',
  expertAttention: 'attention with experts',
} as const;

/** @throws UserError for a model whose keys and values cannot be kept in the type. */
export function refuseCacheType(model: LanguageModel, type: CacheType): void {
  const attentions = walkCounted(model)
    .map(({ layer }) => layer)
    .filter(isAttention);
  const other = attentions
    .map(({ kind }) => kind)
    .find((kind) => kind === 'latentAttention' || kind === 'expertAttention');
  if (attentions.length === 0 || other !== undefined) {
    throw usageError(
      `${setting('cacheDtype', type)} requires keys and values of heads, found ${other === undefined ? 'no attention' : NAMES[other]}`,
      `remove ${setting('cacheDtype')}`,
    );
  }
  refuseCacheWidths(model, type);
}
