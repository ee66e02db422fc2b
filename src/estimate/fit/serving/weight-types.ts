/** Weight types for serving: unquantised, quantised with group scales, or GGUF blocks that contain their scales. */

import type { Dtype } from '../../../base/tensor/dtype.js';
import { DTYPES, parseDtype } from '../../../base/tensor/dtype.js';
import type { PeakDtype } from '../../hardware/gpu.js';
import type { WeightWidth } from '../efficiency.js';

// Quantised files of llama.cpp (GGUF): bits per weight, scales included. Embedding and head are quantised too; norms,
// routers and biases are not.

/** Bits of 10,000 weights by ggml block type (ggml-common.h): bits of a block divided by its values. */
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

type BlockType = keyof typeof TENSORS;

/** File with one block type for all tensors; the head has at least Q6_K. */
const uniform = (
  tensor: BlockType,
  { embedding = tensor }: { readonly embedding?: BlockType } = {},
) => ({
  blocks: {
    products: TENSORS[tensor],
    embedding: TENSORS[embedding],
    head: Math.max(TENSORS.q6_k, TENSORS[tensor]),
  },
  source: `${tensor}, ${TENSORS[tensor] / 10_000} bits a weight with its scales (ggml-common.h), the head in at least q6_k`,
});

/** Same block type for every tensor, as with --pure. */
const pure = (tensor: BlockType) => ({
  blocks: { products: TENSORS[tensor], embedding: TENSORS[tensor], head: TENSORS[tensor] },
  source: `${tensor}, ${TENSORS[tensor] / 10_000} bits a weight with its scales (ggml-common.h), embedding and head too`,
});

/**
 * Mixture of block types among the products. Mean bits in the blocks follow from the mean of the whole file of
 * Llama-3.1-8B, whose embedding and head types are known.
 */
const mixed = (
  whole: number,
  products: number,
  embedding: BlockType = 'q2_k',
  head: BlockType = 'q6_k',
) => ({
  blocks: { products, embedding: TENSORS[embedding], head: TENSORS[head] },
  source:
    `a mixture with ${products / 10_000} bits a weight in blocks, as ${whole} of the whole of Llama-3.1-8B make it ` +
    `(llama.cpp, tools/quantize, README, 2025), the embedding in ${embedding} and the head in ${head}`,
});

/** GGUF file types, by their names in llama-quantize. */
export const GGUF_FILES = {
  q4_0: uniform('q4_0'),
  q4_1: uniform('q4_1'),
  q5_0: uniform('q5_0'),
  q5_1: uniform('q5_1'),
  q8_0: uniform('q8_0'),
  q2_k: mixed(3.1593, 29_434),
  q3_k: pure('q3_k'),
  q3_k_s: mixed(3.6429, 34_386, 'q3_k'),
  // From an earlier table of that README: not verified.
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

/** Types other than GGUF. */
type PlainDtype = 'f32' | 'bf16' | 'f16' | 'f8' | 'int8' | 'int4' | 'mxfp4' | 'nvfp4';

export type WeightDtype = PlainDtype | GgufFile;

/** Type of scales: one that `--scale-dtype` takes, or the E8M0 of MXFP4. */
export type ScaleType = Dtype | 'f8_e8m0';

/** Bits of a scale. */
export const scaleBits = (type: ScaleType): number => (type === 'f8_e8m0' ? 8 : DTYPES[type].bits);

/** Storage format of weights. */
export interface WeightFormat {
  /** Type of the weights, also one of GGUF files: `q4_k_m`. */
  readonly dtype: WeightDtype;
  /**
   * Values of a row that share a scale; `row`: the whole row; `block`: scales are within the GGUF blocks.
   * @integer @minimum 1
   */
  readonly groupSize: number | 'row' | 'block';
  readonly scaleDtype: ScaleType;
  /** Whether each group has a zero point, with the bits of a weight. */
  readonly zeroPoints: boolean;
  /** Layout of the checkpoint, if the weights are served as it stores them. */
  readonly stored?: string;
}

/** Bits of 10,000 weights, so that means are whole numbers. */
export interface BlockBits {
  readonly products: number;
  readonly embedding: number;
  readonly head: number;
}

interface WeightType {
  readonly bits: number;
  /** Bits of tensors that are not quantised. */
  readonly otherBits: number;
  /** Type of the products. */
  readonly computes: PeakDtype;
  /** Width class for the read bandwidth. */
  readonly width: WeightWidth;
  /** Usual format; absent for unquantised weights and for blocks that contain their scales. */
  readonly usual?: Omit<WeightFormat, 'dtype'>;
  /** Bits of 10,000 weights with their scales, if embedding and head are quantised too. */
  readonly blocks?: BlockBits;
  readonly source: string;
}

const PLAIN: Readonly<Record<PlainDtype, WeightType>> = {
  f32: { bits: 32, otherBits: 32, computes: 'f32', width: 'wide', source: 'float32' },
  bf16: { bits: 16, otherBits: 16, computes: 'bf16', width: 'wide', source: 'bfloat16' },
  f16: { bits: 16, otherBits: 16, computes: 'f16', width: 'wide', source: 'float16' },
  f8: {
    bits: 8,
    otherBits: 16,
    computes: 'f8',
    width: 'eight',
    usual: { groupSize: 'row', scaleDtype: 'f32', zeroPoints: false },
    source: 'a scale for each row, activations in 8 bits too (FP8 formats, arXiv 2209.05433)',
  },
  int8: {
    bits: 8,
    otherBits: 16,
    computes: 'int8',
    width: 'eight',
    usual: { groupSize: 'row', scaleDtype: 'f32', zeroPoints: false },
    source: 'a scale for each row, activations in 8 bits too (LLM.int8(), arXiv 2208.07339)',
  },
  int4: {
    bits: 4,
    otherBits: 16,
    // Weights are widened to 16 bits before products.
    computes: 'f16',
    width: 'four',
    usual: { groupSize: 128, scaleDtype: 'f16', zeroPoints: true },
    source:
      'groups of 128 with a float16 scale and a zero point of 4 bits (GPTQ, arXiv 2210.17323; AWQ, arXiv 2306.00978)',
  },
  mxfp4: {
    bits: 4,
    otherBits: 16,
    computes: 'f16',
    width: 'four',
    usual: { groupSize: 32, scaleDtype: 'f8_e8m0', zeroPoints: false },
    source:
      '32 values with a scale of 8 bits, 4.25 bits a weight: E8M0, a power of two (OCP Microscaling Formats 1.0, section 5.2)',
  },
  nvfp4: {
    bits: 4,
    otherBits: 16,
    // Activations are in 4 bits too; hardware without such products widens the weights.
    computes: 'f4',
    width: 'four',
    usual: { groupSize: 16, scaleDtype: 'f8_e4m3', zeroPoints: false },
    source: '16 values with a scale of 8 bits, 4.5 bits a weight (ggml-common.h, NVFP4)',
  },
};

/** Weights are widened to 16 bits, the type of activations. */
const ofGguf = (blocks: BlockBits, source: string): WeightType => ({
  bits: blocks.products / 10_000,
  otherBits: 16,
  computes: 'f16',
  width: blocks.products > 60_000 ? 'eight' : 'four',
  blocks,
  source,
});

export const WEIGHT_DTYPES: Readonly<Record<WeightDtype, WeightType>> = {
  ...PLAIN,
  ...(Object.fromEntries(
    Object.entries(GGUF_FILES).map(([name, { blocks, source }]) => [name, ofGguf(blocks, source)]),
  ) as Record<GgufFile, WeightType>),
};

export const WEIGHT_DTYPE_NAMES = Object.keys(WEIGHT_DTYPES) as WeightDtype[];

/** Serving type for a stored type; undefined if unsupported. */
export const SERVED_IN = {
  f64: undefined,
  f32: 'f32',
  f16: 'f16',
  bf16: 'bf16',
  f8_e4m3: 'f8',
  f8_e5m2: 'f8',
  i8: 'int8',
  i4: 'int4',
} as const satisfies Record<Dtype, WeightDtype | undefined>;

/** `q4km` for `Q4_K_M`. */
const joinedName = (text: string) => text.toLowerCase().replaceAll(/[^a-z0-9]/g, '');

/** Type for a user's `text`, in any case and by any usual name. */
export function parseWeightDtype(text: string): WeightDtype | undefined {
  const name = joinedName(text);
  const stored = parseDtype(text);
  return (
    WEIGHT_DTYPE_NAMES.find((each) => joinedName(each) === name) ?? (stored && SERVED_IN[stored])
  );
}

export function usualFormat(dtype: WeightDtype): WeightFormat {
  const { usual, blocks } = WEIGHT_DTYPES[dtype];
  const without = {
    groupSize: blocks ? 'block' : 'row',
    scaleDtype: 'f32',
    zeroPoints: false,
  } as const;
  return { dtype, ...(usual ?? without) };
}
