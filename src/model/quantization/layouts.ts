/**
 * Tensors that store a quantized matrix, per method. From transformers 5.18 (`integrations/finegrained_fp8.py`,
 * `fbgemm_fp8.py`, `mxfp4.py`, `bitsandbytes.py`), GPTQModel and AutoGPTQ (`QuantLinear`), AutoAWQ
 * (`WQLinear_GEMM`), bitsandbytes (`QuantState.as_dict`), compressed-tensors (its compressors) and MLX
 * (`mlx/nn/layers/quantized.py`).
 */

/** Weight matrix of a linear layer: one row per output. */
export interface MatrixShape {
  readonly rows: number;
  readonly length: number;
}

export const PARTS = {
  values: 'quantized values',
  scales: 'scales',
  zeroPoints: 'zero points',
  indices: 'groups of the inputs',
  others: 'code tables and formats',
} as const satisfies Record<string, string>;

export type WeightPart = keyof typeof PARTS;

/** One tensor, or several with one dtype. */
export interface StoredPart {
  readonly part: WeightPart;
  readonly elements: number;
  /** Bits per stored element; packed values are stored in words. */
  readonly bits: number;
}

export type Layout = (matrix: MatrixShape) => readonly StoredPart[];

const stored = (part: WeightPart, elements: number, bits: number): StoredPart => ({
  part,
  elements,
  bits,
});

/** One scale per matrix, per row, per block of rows × length, or per group along a row. */
export type Granularity =
  | { readonly per: 'tensor' | 'row' }
  | { readonly per: 'block'; readonly rows: number; readonly length: number };

export const groupsAlongRow = (length: number): Granularity => ({ per: 'block', rows: 1, length });

function scaleCount({ rows, length }: MatrixShape, granularity: Granularity): number {
  switch (granularity.per) {
    case 'tensor':
      return 1;
    case 'row':
      return rows;
    case 'block':
      return Math.ceil(rows / granularity.rows) * Math.ceil(length / granularity.length);
  }
}

interface ScaledOptions {
  readonly bits: number;
  readonly scaleBits: number;
  readonly granularity: Granularity;
  /** Number of float32 values for the complete matrix, such as scales of its inputs or of its scales. */
  readonly singles?: number;
  /** Whether each scale has an 8-bit zero point. */
  readonly zeroPoints?: boolean;
}

/** Layout with values in bytes or half bytes, and separate scales. */
export const scaledLayout =
  ({ bits, scaleBits, granularity, singles = 0, zeroPoints = false }: ScaledOptions): Layout =>
  (matrix) => {
    const { rows, length } = matrix;
    const scales = scaleCount(matrix, granularity);
    return [
      stored('values', rows * Math.ceil((length * bits) / 8), 8),
      stored('scales', scales, scaleBits),
      stored('scales', singles, 32),
      stored('zeroPoints', zeroPoints ? scales : 0, 8),
    ];
  };

interface PackedOptions {
  readonly bits: number;
  /** Inputs per scale; undefined for all inputs. */
  readonly group: number | undefined;
}

const groupCount = ({ length }: MatrixShape, group: number | undefined) =>
  group === undefined ? 1 : Math.ceil(length / group);

const words = (values: number, bits: number) => Math.ceil((values * bits) / 32);

/** GPTQ packs values along the inputs and zero points along the outputs, and stores the group index of each input. */
export const gptq =
  ({ bits, group }: PackedOptions): Layout =>
  (matrix) => {
    const { rows, length } = matrix;
    const groups = groupCount(matrix, group);
    return [
      stored('values', words(length, bits) * rows, 32),
      stored('scales', groups * rows, 16),
      stored('zeroPoints', groups * words(rows, bits), 32),
      stored('indices', length, 32),
    ];
  };

/** AWQ packs both along the outputs; groups are consecutive inputs. */
export const awq =
  ({ bits, group }: PackedOptions): Layout =>
  (matrix) => {
    const { rows, length } = matrix;
    const groups = groupCount(matrix, group);
    return [
      stored('values', length * words(rows, bits), 32),
      stored('scales', groups * rows, 16),
      stored('zeroPoints', groups * words(rows, bits), 32),
    ];
  };

interface CompressedOptions extends PackedOptions {
  readonly scaleBits: number;
  readonly zeroPoints: boolean;
  readonly indices: boolean;
}

/** Packed format of compressed-tensors, which also stores the shape of the matrix. */
export const packQuantized =
  ({ bits, group, scaleBits, zeroPoints, indices }: CompressedOptions): Layout =>
  (matrix) => {
    const { rows, length } = matrix;
    const groups = groupCount(matrix, group);
    return [
      stored('values', rows * words(length, bits), 32),
      stored('scales', groups * rows, scaleBits),
      stored('zeroPoints', zeroPoints ? groups * words(rows, bits) : 0, 32),
      stored('indices', indices ? length : 0, 32),
      stored('others', 2, 64),
    ];
  };

/** LLM.int8(): one scale per row, and one byte for the order of the values. */
export const int8OfBitsandbytes: Layout = ({ rows, length }) => [
  stored('values', rows * length, 8),
  stored('scales', rows, 32),
  stored('others', 1, 8),
];

/** Values per scale in bitsandbytes, and scales per nested scale if the scales are quantized too. */
const BLOCK = 64;
const NESTED_BLOCK = 256;

/** NF4 or FP4. Adds a JSON description of about 100 bytes per matrix. */
export const fourBitsOfBitsandbytes =
  (isNested: boolean): Layout =>
  ({ rows, length }) => {
    const scales = Math.ceil((rows * length) / BLOCK);
    return [
      stored('values', Math.ceil((rows * length) / 2), 8),
      stored('scales', scales, isNested ? 8 : 32),
      stored('scales', isNested ? Math.ceil(scales / NESTED_BLOCK) : 0, 32),
      stored('others', 2 ** 4 + (isNested ? 2 ** 8 : 0), 32),
    ];
  };

interface MlxOptions extends PackedOptions {
  readonly group: number;
  readonly scaleBits: number;
  /** Whether each scale has a bias. */
  readonly isAffine: boolean;
}

/** MLX packs values along the inputs. */
export const mlxLayout =
  ({ bits, group, scaleBits, isAffine }: MlxOptions): Layout =>
  (matrix) => {
    const { rows, length } = matrix;
    const scales = rows * groupCount(matrix, group);
    return [
      stored('values', rows * words(length, bits), 32),
      stored('scales', scales, scaleBits),
      stored('zeroPoints', isAffine ? scales : 0, scaleBits),
    ];
  };
