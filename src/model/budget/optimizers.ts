/** State of optimizers, in bytes, and the types that a training keeps its values in. */

import { sumOf } from '../../base/values.js';
import type { Expression } from './expression.js';
import { add, inputs, mul, v } from './expression.js';

/** Types of a training by its precision. */
export const PRECISIONS = {
  mixed: {
    label: 'mixed precision',
    weightBytes: 2,
    masterBytes: 4,
    momentBytes: 4,
    products: 'bf16',
    source: '16-bit weights and gradients, with a float32 master copy (arXiv 1710.03740)',
  },
  bf16: {
    label: 'pure bf16',
    weightBytes: 2,
    masterBytes: 0,
    momentBytes: 2,
    products: 'bf16',
    source:
      'weights, gradients and moments in bf16, no master copy (torchtune, dtype=bf16; PyTorch keeps moments in the ' +
      'type of the weights)',
  },
  fp8: {
    label: 'FP8 products',
    weightBytes: 2,
    masterBytes: 4,
    momentBytes: 4,
    products: 'f8',
    source:
      'products in FP8; weights, gradients and saved values in bf16, float32 master copy (Transformer Engine; torchao, ' +
      'float8; arXiv 2209.05433)',
  },
  float32: {
    label: 'float32',
    weightBytes: 4,
    masterBytes: 0,
    momentBytes: 4,
    products: 'f32',
    source: 'all values in float32',
  },
} as const;

/** Types of weights, gradients, products and moments. */
export type Precision = keyof typeof PRECISIONS;

export const PRECISION_NAMES = Object.keys(PRECISIONS) as readonly Precision[];

/** Equal tensors, or a device's parts of them. */
export interface Trained {
  /** Elements of each. */
  readonly elements: number;
  /** Number of tensors; default 1. */
  readonly count?: number;
  /** Whether rows are looked up: 8-bit optimizers keep its state in float32. */
  readonly isEmbedding?: boolean;
  /** Whether it is the head, which Muon and GaLore leave to AdamW. */
  readonly isHead?: boolean;
  /** Length of a row of its matrices; undefined for vectors. */
  readonly columns?: number | undefined;
  /** Matrices that it stacks, such as those of experts; default 1. */
  readonly matrices?: number | undefined;
}

/** Values per scale, and minimum tensor size, of the 8-bit optimizers of bitsandbytes. */
const EIGHT_BIT_BLOCK = 256;
const EIGHT_BIT_SMALLEST = 4096;

/** Share of the shorter side that GaLore's rank has by default: 1,024 of 4,096 for 7B, 512 of 2,048 for 1B. */
const GALORE_DIVISOR = 4;

/** Memory that the update itself takes for a moment, in bytes per parameter. */
export interface UpdateMemory {
  readonly bytes: number;
  readonly source: string;
}

const ROOTS: UpdateMemory = {
  bytes: 4,
  source:
    'the root of the second moments, of all weights at once (PyTorch, AdamW with foreach, as by default on CUDA)',
};

const PLAIN_SGD: UpdateMemory = {
  bytes: 0,
  source: 'the gradients are added to the weights in place (PyTorch, SGD with foreach)',
};

const DECAYED_SGD: UpdateMemory = {
  bytes: 4,
  source: 'with weight decay a copy of the gradients (PyTorch, SGD with foreach)',
};

const IN_PLACE: UpdateMemory = {
  bytes: 0,
  source:
    'a kernel updates weights and moments in place, block by block (bitsandbytes; PyTorch, AdamW with fused)',
};

const TENSOR_BY_TENSOR: UpdateMemory = {
  bytes: 0,
  source: 'the update of one tensor at a time',
};

interface OptimizerRow {
  readonly label: string;
  /** Bytes of the state on a GPU, without the master copy. @param moment Bytes of a moment in full. */
  readonly state: (trained: readonly Trained[], moment: number) => Expression;
  readonly source: string;
  /** Bytes per value of each state tensor, for the rounding of the allocator. */
  readonly tensors: readonly number[];
  readonly update: Readonly<Record<'expected' | 'upper', UpdateMemory>>;
  /** Whether the state is in the memory of the host, and pages are moved as an update needs them. */
  readonly isPaged?: boolean;
}

const full =
  (moments: number, name = 'parameters') =>
  (trained: readonly Trained[], moment: number): Expression =>
    mul(moments * moment, v({ [name]: trainedTotal(trained) }));

const inEightBits =
  (moments: number) =>
  (trained: readonly Trained[]): Expression => {
    const large = trained.filter(
      ({ elements, isEmbedding = false }) => elements >= EIGHT_BIT_SMALLEST && !isEmbedding,
    );
    const of = inputs({
      large: trainedTotal(large),
      small: trainedTotal(trained) - trainedTotal(large),
      blocks: trainedTotal(large, ({ elements }) => Math.ceil(elements / EIGHT_BIT_BLOCK)),
    });
    return add(mul(moments, of.large), mul(4 * moments, of.small), mul(4 * moments, of.blocks));
  };

/** State of matrices of the blocks by a rule of its own, and of the other tensors as AdamW keeps it. */
const byShape =
  (
    inside: (trained: readonly Trained[], moment: number) => Expression,
    others: (trained: readonly Trained[], moment: number) => Expression,
  ) =>
  (trained: readonly Trained[], moment: number): Expression => {
    const isInside = ({ columns, isEmbedding, isHead }: Trained) =>
      columns !== undefined && !isEmbedding && !isHead;
    return add(
      inside(trained.filter(isInside), moment),
      others(
        trained.filter((each) => !isInside(each)),
        moment,
      ),
    );
  };

/** Shorter and longer side of a matrix of a tensor. */
function sidesOf({ elements, columns = 1, matrices = 1 }: Trained) {
  const rows = elements / (columns * matrices);
  return { short: Math.min(rows, columns), long: Math.max(rows, columns), matrices };
}

/** A projection on a quarter of the shorter side, and moments of the projected gradient. */
const projected =
  (isNarrow: boolean) =>
  (trained: readonly Trained[], moment: number): Expression => {
    const rankOf = (each: Trained) => Math.ceil(sidesOf(each).short / GALORE_DIVISOR);
    const of = inputs({
      projections: trainedTotal(trained, (each) => {
        const { short, matrices } = sidesOf(each);
        return Math.ceil(matrices * short * rankOf(each));
      }),
      projected: trainedTotal(trained, (each) => {
        const { long, matrices } = sidesOf(each);
        return Math.ceil(matrices * long * rankOf(each));
      }),
    });
    const projections = mul(moment, of.projections);
    if (!isNarrow) return add(projections, mul(2 * moment, of.projected));
    const { projected_blocks } = inputs({
      projected_blocks: Math.ceil(Number(of.projected.value) / EIGHT_BIT_BLOCK),
    });
    return add(projections, mul(2, of.projected), mul(8, projected_blocks));
  };

/** Row and column sums of squares in place of the second moments. */
const factored = (trained: readonly Trained[]): Expression => {
  const matrices = trained.filter(({ columns }) => columns !== undefined);
  const vectors = trained.filter(({ columns }) => columns === undefined);
  const of = inputs({
    rows_and_columns: trainedTotal(matrices, (each) => {
      const { short, long, matrices } = sidesOf(each);
      return Math.ceil(matrices * (short + long));
    }),
    vectors: trainedTotal(vectors),
  });
  return add(mul(4, of.rows_and_columns), mul(4, of.vectors));
};

const none = (): Expression => mul(0, 1);

/** State of each optimizer, the tensors that hold it, and the memory of its update. */
export const OPTIMIZERS = {
  adamw: {
    label: 'AdamW',
    state: full(2),
    source: 'two moments in the type of the master weights (arXiv 1711.05101; PyTorch, AdamW)',
    tensors: [4, 4],
    update: { expected: ROOTS, upper: ROOTS },
  },
  'adamw-fused': {
    label: 'AdamW, fused',
    state: full(2),
    source:
      'two moments, as AdamW; one kernel updates them in place (transformers, adamw_torch_fused)',
    tensors: [4, 4],
    update: { expected: IN_PLACE, upper: IN_PLACE },
  },
  'adamw-8bit': {
    label: 'AdamW, 8 bits',
    state: inEightBits(2),
    source:
      'two moments of 1 byte with a float32 scale for each block of 256 values; tensors below 4096 values in float32 ' +
      '(bitsandbytes, AdamW8bit), and embeddings (transformers, Trainer.create_optimizer)',
    tensors: [1, 1, 4 / EIGHT_BIT_BLOCK, 4 / EIGHT_BIT_BLOCK],
    update: { expected: IN_PLACE, upper: IN_PLACE },
  },
  'paged-adamw': {
    label: 'AdamW, paged',
    state: none,
    source:
      'two float32 moments in memory of the host, 8 bytes a parameter; pages move to the GPU for the update ' +
      '(bitsandbytes, PagedAdamW; arXiv 2305.14314)',
    tensors: [],
    update: { expected: IN_PLACE, upper: IN_PLACE },
    isPaged: true,
  },
  'paged-adamw-8bit': {
    label: 'AdamW, paged, 8 bits',
    state: none,
    source:
      'two moments of 1 byte in memory of the host, 2 bytes a parameter; pages move to the GPU for the update ' +
      '(bitsandbytes, PagedAdamW8bit; arXiv 2305.14314)',
    tensors: [],
    update: { expected: IN_PLACE, upper: IN_PLACE },
    isPaged: true,
  },
  lion: {
    label: 'Lion',
    state: full(1),
    source: 'one moment (arXiv 2302.06675)',
    tensors: [4],
    update: { expected: TENSOR_BY_TENSOR, upper: DECAYED_SGD },
  },
  'lion-8bit': {
    label: 'Lion, 8 bits',
    state: inEightBits(1),
    source:
      'one moment of 1 byte with a float32 scale for each block of 256 values (bitsandbytes, Lion8bit)',
    tensors: [1, 4 / EIGHT_BIT_BLOCK],
    update: { expected: IN_PLACE, upper: IN_PLACE },
  },
  muon: {
    label: 'Muon',
    state: byShape(full(1, 'matrices'), full(2, 'others')),
    source:
      'one momentum for matrices of the blocks; AdamW with two moments for embedding, head and vectors ' +
      '(KellerJordan/Muon, README; arXiv 2502.16982)',
    tensors: [4],
    update: { expected: TENSOR_BY_TENSOR, upper: DECAYED_SGD },
  },
  adafactor: {
    label: 'Adafactor',
    state: factored,
    source:
      'float32 sums of rows and columns in place of the second moments, no first moment (arXiv 1804.04235; ' +
      'transformers, Adafactor with beta1=None)',
    tensors: [],
    update: { expected: TENSOR_BY_TENSOR, upper: DECAYED_SGD },
  },
  galore: {
    label: 'GaLore',
    state: byShape(projected(false), full(2, 'others')),
    source:
      'for matrices of the blocks a projection of a quarter of the shorter side, and two moments of the projected ' +
      'gradient; AdamW for the others (arXiv 2403.03507, tables 1 and 2)',
    tensors: [1, 1, 1],
    update: { expected: TENSOR_BY_TENSOR, upper: ROOTS },
  },
  'galore-8bit': {
    label: 'GaLore, 8 bits',
    state: byShape(projected(true), inEightBits(2)),
    source:
      'as GaLore, with moments of 1 byte and a float32 scale for each block of 256 values (arXiv 2403.03507; ' +
      'bitsandbytes)',
    tensors: [1, 0.25, 0.25],
    update: { expected: TENSOR_BY_TENSOR, upper: IN_PLACE },
  },
  sgd: {
    label: 'SGD',
    state: full(0),
    source: 'no state without momentum',
    tensors: [],
    update: { expected: PLAIN_SGD, upper: DECAYED_SGD },
  },
  'sgd-momentum': {
    label: 'SGD with momentum',
    state: full(1),
    source: 'one velocity (PyTorch, SGD)',
    tensors: [4],
    update: { expected: PLAIN_SGD, upper: DECAYED_SGD },
  },
} as const satisfies Record<string, OptimizerRow>;

/** Optimizer of a training by default. */
export const DEFAULT_OPTIMIZER = 'adamw' satisfies Optimizer;

export type Optimizer = keyof typeof OPTIMIZERS;

export const OPTIMIZER_NAMES = Object.keys(OPTIMIZERS) as readonly Optimizer[];

/** Sum over tensors; by default of their elements. */
export const trainedTotal = (
  tensors: readonly Trained[],
  of: (each: Trained) => number = ({ elements }) => elements,
): number => sumOf(tensors, (each) => (each.count ?? 1) * of(each));
