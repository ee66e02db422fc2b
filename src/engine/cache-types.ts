/**
 * Types in which a cache keeps keys and values: each row of a head is rounded as it is written, and read rounded, by the
 * tokens of the same call too (llama.cpp: `--cache-type-k`, `--cache-type-v`). Engines compute with the rounded values in
 * float32, so that the error is that of the type, and the memory that of float32.
 */
import { usageError } from '../base/errors.js';
import type { CacheType } from '../base/tensor/dtype.js';
import { setting } from '../base/text/setting.js';
import { joined } from '../base/text/words.js';
import type { LanguageModel } from '../model/architecture/layer.js';
import { isAttention, valueWidth, walkCounted } from '../model/architecture/walk.js';

/** Values of a block of `q8_0` and `q4_0`. */
export const CACHE_BLOCK = 32;

/** @throws UserError for a model whose keys and values cannot be kept in the type. */
export function refuseCacheType(model: LanguageModel, type: CacheType): void {
  const attentions = walkCounted(model)
    .map(({ layer }) => layer)
    .filter(isAttention);
  const kinds = new Set(attentions.map(({ kind }) => kind));
  const other = [...kinds].find((kind) => kind !== 'attention' && kind !== 'differentialAttention');
  if (attentions.length === 0 || other !== undefined) {
    throw usageError(
      `${setting('cacheDtype', type)} requires keys and values of heads, found ${other ?? 'no attention'}`,
      `remove ${setting('cacheDtype')}`,
    );
  }
  if (type === 'f16') return;
  const widths = attentions.flatMap((layer) =>
    layer.kind === 'attention' ? [layer.headDim, valueWidth(layer)] : [],
  );
  const wrong = [...new Set(widths)].filter((width) => width % CACHE_BLOCK !== 0);
  if (wrong.length === 0) return;
  throw usageError(
    `${setting('cacheDtype', type)} requires heads of a multiple of ${CACHE_BLOCK} values, found ${joined(wrong.map(String))}`,
    `choose ${setting('cacheDtype', 'f16')}`,
  );
}
