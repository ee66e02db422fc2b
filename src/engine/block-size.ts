/** Sizes of the parts in which ONNX Runtime computes what is largest in a long sequence. */

/** Scores that a block computes, at most: 32 MB. Larger blocks are no faster, smaller ones take hardly less memory. */
export const MOST_SCORES = 2 ** 23;

/** Queries of a block for any number of keys: with fewer, copying the keys of each block takes longer than their products. */
export const LEAST_QUERIES = 64;

/** Queries of a block, at most. */
export const queriesOfBlock = (heads: number, batch: number, tokens: number): number =>
  Math.min(tokens, Math.max(LEAST_QUERIES, Math.floor(MOST_SCORES / (heads * batch * tokens))));

/** Logits of one run of their graph, at most: 64 MB, which ONNX Runtime then copies. */
export const MOST_LOGITS = 2 ** 24;
