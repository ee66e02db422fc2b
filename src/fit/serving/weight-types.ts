/**
 * Element types that weights are served in: as they are, quantised with the scales of their groups, or in blocks of GGUF
 * that hold their own.
 */
import type { PeakDtype } from '../../hardware/gpu.js';
import { type Dtype, parseDtype } from '../../tensor/dtype.js';
import type { WeightWidth } from '../efficiency.js';
import { GGUF_FILES, type GgufFile } from './gguf-types.js';

/** Types with a usual format of their own. */
type PlainDtype = 'f32' | 'bf16' | 'f16' | 'f8' | 'int8' | 'int4' | 'mxfp4' | 'nvfp4';

export type WeightDtype = PlainDtype | GgufFile;

/** How weights are stored. */
export interface WeightFormat {
  readonly dtype: WeightDtype;
  /** Values of a row that share a scale; `row`: all of them; `block`: scales are within the blocks of GGUF. */
  readonly groupSize: number | 'row' | 'block';
  readonly scaleDtype: Dtype;
  /** Whether each group has a zero point, in as many bits as a weight. */
  readonly zeroPoints: boolean;
}

/** Of ten thousand weights, so that mean bits are whole numbers. */
export interface BlockBits {
  readonly products: number;
  readonly embedding: number;
  readonly head: number;
}

interface WeightType {
  readonly bits: number;
  /** Of what is not quantised. */
  readonly otherBits: number;
  /** What the products are computed in. */
  readonly computes: PeakDtype;
  /** How well they can be read. */
  readonly width: WeightWidth;
  /** The format that is usual; nothing is grouped where weights are not quantised, or hold their scales. */
  readonly usual?: Omit<WeightFormat, 'dtype'>;
  /** Bits of 10,000 weights with their scales, where embedding and head are quantised too. */
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
    // Weights are widened to 16 bits before they are multiplied.
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
    usual: { groupSize: 32, scaleDtype: 'f8_e4m3', zeroPoints: false },
    source: '32 values with a scale of 8 bits, 4.25 bits a weight (ggml-common.h, MXFP4)',
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

/** Weights are widened to 16 bits, which is what activations are in. */
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

/** What weights of a stored type are served in; undefined where nothing is. */
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

/** The type that a user means by `text`, in any case and by any of its usual names. */
export function parseWeightDtype(text: string): WeightDtype | undefined {
  const name = text.trim().toLowerCase().replaceAll('-', '_');
  const stored = parseDtype(name);
  return WEIGHT_DTYPE_NAMES.find((each) => each === name) ?? (stored && SERVED_IN[stored]);
}

/** The usual format of a dtype. */
export function usualFormat(dtype: WeightDtype): WeightFormat {
  const { usual, blocks } = WEIGHT_DTYPES[dtype];
  const without = {
    groupSize: blocks ? 'block' : 'row',
    scaleDtype: 'f32',
    zeroPoints: false,
  } as const;
  return { dtype, ...(usual ?? without) };
}
