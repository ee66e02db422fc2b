/** Weight types for serving: unquantised, quantised with group scales, or GGUF blocks that contain their scales. */

import type { Dtype } from '../../../base/tensor/dtype.js';
import { DTYPES, parseDtype } from '../../../base/tensor/dtype.js';
import { type GgmlTypeName, ggmlType } from '../../../checkpoint/gguf/ggml-types.js';
import { MIXTURE_NAMES, MIXTURES, type MixtureName } from '../../../checkpoint/gguf/mixtures.js';
import type { PeakDtype } from '../../hardware/gpu.js';
import type { WeightWidth } from '../efficiency.js';

// Quantised files of llama.cpp (GGUF): bits per weight, scales included. Embedding and head are quantised too; norms,
// routers and biases are not.

/** Bits of 10,000 weights in blocks of a ggml type, or of plain numbers: bits of a block divided by its values. */
export function bitsOfType(type: GgmlTypeName): number {
  const { bytes, values } = ggmlType(type);
  return (80_000 * bytes) / values;
}

/**
 * Mean bits of the types among the products, where this project does not choose the type of each matrix. Bits in blocks
 * follow from the mean of the whole file of Llama-3.1-8B, whose embedding and head types are known.
 */
const meanMixture = (
  whole: number,
  products: number,
  embedding: GgmlTypeName,
  head: GgmlTypeName = 'Q6_K',
) => ({
  blocks: { products, embedding: bitsOfType(embedding), head: bitsOfType(head) },
  source:
    `a mixture with ${products / 10_000} bits a weight in blocks, as ${whole} of the whole of Llama-3.1-8B make it ` +
    `(llama.cpp, tools/quantize, README, 2025), the embedding in ${embedding.toLowerCase()} and the head in ${head.toLowerCase()}`,
});

/** Ternary file: the head and the embedding have more bits. */
const ternary = (type: GgmlTypeName) => ({
  blocks: {
    products: bitsOfType(type),
    embedding: bitsOfType('Q4_K'),
    head: bitsOfType('Q6_K'),
  },
  source: `${type.toLowerCase()}, ${bitsOfType(type) / 10_000} bits a weight with its scales (ggml-common.h), the embedding in q4_k and the head in q6_k`,
});

/** GGUF file types whose matrices have mean bits, by their names in llama-quantize. */
const MEAN_FILES = {
  iq1_s: meanMixture(2.0042, 16_944, 'Q2_K', 'Q5_K'),
  iq1_m: meanMixture(2.146, 18_575, 'Q2_K', 'Q5_K'),
  iq2_xxs: meanMixture(2.3824, 21_295, 'Q2_K', 'Q5_K'),
  iq2_xs: meanMixture(2.5882, 23_663, 'Q2_K', 'Q5_K'),
  iq2_s: meanMixture(2.7403, 24_001, 'IQ3_S'),
  iq2_m: meanMixture(2.9294, 26_177, 'IQ3_S'),
  iq3_xxs: meanMixture(3.2548, 29_921, 'IQ3_S'),
  iq3_xs: meanMixture(3.4977, 32_716, 'IQ3_S'),
  iq3_s: meanMixture(3.6606, 34_590, 'IQ3_S'),
  iq3_m: meanMixture(3.7628, 35_766, 'IQ3_S'),
  iq4_xs: meanMixture(4.4597, 43_172, 'IQ4_XS'),
  iq4_nl: meanMixture(4.6818, 45_539, 'IQ4_NL'),
  tq1_0: ternary('TQ1_0'),
  tq2_0: ternary('TQ2_0'),
} as const;

/** GGUF file type whose matrices have the types that a conversion writes. */
const writtenMixture = (name: MixtureName) => ({
  mixture: name,
  source: `the type of each matrix as in llama-quantize's ${name} (llama.cpp, src/llama-quant.cpp), with the scales of its blocks (ggml-common.h)`,
});

/** GGUF file types, by their names in llama-quantize. */
const GGUF_FILES = {
  ...(Object.fromEntries(MIXTURE_NAMES.map((name) => [name, writtenMixture(name)])) as Record<
    MixtureName,
    ReturnType<typeof writtenMixture>
  >),
  ...MEAN_FILES,
};

type GgufFile = keyof typeof GGUF_FILES;

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
  /** In a GGUF file, where embedding and head are quantised too: the types of its matrices, or mean bits. */
  readonly blocks?: MixtureName | BlockBits;
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

/** Weights are widened to 16 bits, the type of activations. @param bits Bits of 10,000 weights of most products. */
const ofGguf = (bits: number, blocks: MixtureName | BlockBits, source: string): WeightType => ({
  bits: bits / 10_000,
  otherBits: 16,
  computes: 'f16',
  width: bits > 60_000 ? 'eight' : 'four',
  blocks,
  source,
});

export const WEIGHT_DTYPES: Readonly<Record<WeightDtype, WeightType>> = {
  ...PLAIN,
  ...(Object.fromEntries(
    Object.entries(GGUF_FILES).map(([name, file]) => [
      name,
      'mixture' in file
        ? ofGguf(bitsOfType(MIXTURES[file.mixture].base), file.mixture, file.source)
        : ofGguf(file.blocks.products, file.blocks, file.source),
    ]),
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
