/**
 * Quantised files of llama.cpp (GGUF): bits of a weight, scales included. Embedding and head are quantised too; norms,
 * routers and biases are not.
 */

/** Bits of 10,000 weights in a tensor, by ggml's block types (ggml-common.h): bits of a block divided by its values. */
const TENSORS = {
  q4_0: 45_000,
  q4_1: 50_000,
  q5_0: 55_000,
  q5_1: 60_000,
  q8_0: 85_000,
  q2_k: 26_250,
  q3_k: 34_375,
  q4_k: 45_000,
  q5_k: 55_000,
  q6_k: 65_625,
  iq3_s: 34_375,
  iq4_nl: 45_000,
  iq4_xs: 42_500,
  tq1_0: 16_875,
  tq2_0: 20_625,
} as const;

type Tensor = keyof typeof TENSORS;

/** A file whose tensors in blocks are all of a type: the head is in Q6_K, unless the type has more bits. */
const uniform = (tensor: Tensor, { embedding = tensor }: { readonly embedding?: Tensor } = {}) => ({
  blocks: {
    products: TENSORS[tensor],
    embedding: TENSORS[embedding],
    head: Math.max(TENSORS.q6_k, TENSORS[tensor]),
  },
  source: `${tensor}, ${TENSORS[tensor] / 10_000} bits a weight with its scales (ggml-common.h), the head in at least q6_k`,
});

/** Every tensor of that type, as with --pure. */
const pure = (tensor: Tensor) => ({
  blocks: { products: TENSORS[tensor], embedding: TENSORS[tensor], head: TENSORS[tensor] },
  source: `${tensor}, ${TENSORS[tensor] / 10_000} bits a weight with its scales (ggml-common.h), embedding and head too`,
});

/**
 * A mixture: some products have more bits than others. How many a weight has in the mean of the blocks follows from that
 * of the whole file of Llama-3.1-8B, whose embedding and head are known.
 */
const mixed = (
  whole: number,
  products: number,
  embedding: Tensor = 'q2_k',
  head: Tensor = 'q6_k',
) => ({
  blocks: { products, embedding: TENSORS[embedding], head: TENSORS[head] },
  source:
    `a mixture with ${products / 10_000} bits a weight in blocks, as ${whole} of the whole of Llama-3.1-8B make it ` +
    `(llama.cpp, tools/quantize, README, 2025), the embedding in ${embedding} and the head in ${head}`,
});

/** By the names of files, which are those of llama-quantize. */
export const GGUF_FILES = {
  q4_0: uniform('q4_0'),
  q4_1: uniform('q4_1'),
  q5_0: uniform('q5_0'),
  q5_1: uniform('q5_1'),
  q8_0: uniform('q8_0'),
  q2_k: mixed(3.1593, 29_434),
  q3_k: pure('q3_k'),
  q3_k_s: mixed(3.6429, 34_386, 'q3_k'),
  // Of an earlier table of that README: not verified.
  q3_k_m: mixed(3.996, 38_449, 'q3_k'),
  q3_k_l: mixed(4.2979, 41_922, 'q3_k'),
  q4_k: pure('q4_k'),
  q4_k_s: mixed(4.6672, 45_371, 'q4_k'),
  q4_k_m: mixed(4.8944, 47_985, 'q4_k'),
  q5_k: pure('q5_k'),
  q5_k_s: mixed(5.5704, 55_010, 'q5_k'),
  q5_k_m: mixed(5.7036, 56_543, 'q5_k'),
  q6_k: uniform('q6_k'),
  iq1_s: mixed(2.0042, 16_944, 'q2_k', 'q5_k'),
  iq1_m: mixed(2.146, 18_575, 'q2_k', 'q5_k'),
  iq2_xxs: mixed(2.3824, 21_295, 'q2_k', 'q5_k'),
  iq2_xs: mixed(2.5882, 23_663, 'q2_k', 'q5_k'),
  iq2_s: mixed(2.7403, 24_001, 'iq3_s'),
  iq2_m: mixed(2.9294, 26_177, 'iq3_s'),
  iq3_xxs: mixed(3.2548, 29_921, 'iq3_s'),
  iq3_xs: mixed(3.4977, 32_716, 'iq3_s'),
  iq3_s: mixed(3.6606, 34_590, 'iq3_s'),
  iq3_m: mixed(3.7628, 35_766, 'iq3_s'),
  iq4_xs: mixed(4.4597, 43_172, 'iq4_xs'),
  iq4_nl: mixed(4.6818, 45_539, 'iq4_nl'),
  tq1_0: uniform('tq1_0', { embedding: 'q4_k' }),
  tq2_0: uniform('tq2_0', { embedding: 'q4_k' }),
} as const;

export type GgufFile = keyof typeof GGUF_FILES;
