/** Widths of cached heads that the blocks of a cache's type must divide. */
import { usageError } from '../../base/errors.js';
import { type CacheDtype, isCacheBlock } from '../../base/tensor/dtype.js';
import { setting } from '../../base/text/setting.js';
import { joined } from '../../base/text/words.js';
import type { Layer } from '../architecture/layer.js';
import { isAttention, valueWidth, walkCounted } from '../architecture/walk.js';

/** Values of a block of `q8_0` and `q4_0`. */
export const CACHE_BLOCK = 32;

/**
 * llama.cpp and the engines here keep each head in whole blocks.
 * @throws UserError for a type of blocks that do not divide the heads; latents have no heads.
 */
export function refuseCacheWidths(model: Layer, type: CacheDtype): void {
  if (!isCacheBlock(type)) return;
  const widths = walkCounted(model).flatMap(({ layer }) => {
    if (!isAttention(layer) || layer.kind === 'latentAttention') return [];
    return [layer.headDim, layer.kind === 'attention' ? valueWidth(layer) : layer.headDim];
  });
  const wrong = [...new Set(widths)].filter((width) => width % CACHE_BLOCK !== 0);
  if (wrong.length === 0) return;
  throw usageError(
    `${setting('cacheDtype', type)} requires heads of a multiple of ${CACHE_BLOCK} values, found ${joined(wrong.map(String))}`,
    `choose ${setting('cacheDtype', 'f16')}`,
  );
}
