/** The run of a block: sizes, inputs filled as PyTorch fills them, results, and checks of identities. */
import { manualSeed } from '../../base/random/generator.js';
import { formatInteger } from '../../base/text/units.js';
import type { SoftmaxStep } from './attention-modules.js';
import {
  cast,
  type Ids,
  type ModuleDtype,
  mistake,
  type Tensor,
  tensor,
  toFloat32,
} from './tensor.js';

/** Sizes and settings of all blocks; each block uses some of them. */
export interface BlockSizes {
  /** Sequences. @integer @minimum 1 */
  readonly batch: number;
  /** Tokens of a sequence. @integer @minimum 1 */
  readonly tokens: number;
  /** Width of the model. @integer @minimum 1 */
  readonly hidden: number;
  /** Columns of a group. @integer @minimum 1 */
  readonly group: number;
  /** Query heads. @integer @minimum 1 */
  readonly heads: number;
  /** Key heads. @integer @minimum 1 */
  readonly keyHeads: number;
  /** Width of a head. @integer @minimum 1 */
  readonly headDim: number;
  /** Size of the vocabulary. @integer @minimum 1 */
  readonly vocab: number;
  /** Processes that share a table. @integer @minimum 1 */
  readonly ranks: number;
  /** Positions of the tables. @integer @minimum 1 */
  readonly positions: number;
  /** Scale of the rotation. @integer @minimum 1 */
  readonly scale: number;
  /** Base of the rotation. */
  readonly base: number;
  /** Whether the scale grows with the input. */
  readonly dynamic: boolean;
  /** Calls of the rotation: positions and the first one of each. */
  readonly calls: readonly RotationCall[];
  /** Keys of a tile. @integer @minimum 1 */
  readonly tile: number;
  /** Inputs of activations. */
  readonly points: readonly number[];
  /** Whether queries see keys up to their own position only. */
  readonly causal: boolean;
  /** ε of the norm. */
  readonly eps: number;
  /** Element type of the tensors. */
  readonly dtype: ModuleDtype;
  /** Seed of the inputs; absent where none is drawn. @count */
  readonly seed: number;
  /** Seed of parameters: γ, tables. A rank adds its number. @count */
  readonly initSeed: number;
  /** Uniform range of γ and β. */
  readonly initRange: readonly [low: number, high: number];
  /** Mean of the normal distribution of a table. */
  readonly initMean: number;
  /** Its standard deviation. @minimum 0 */
  readonly initStd: number;
}

export interface RotationCall {
  /** Positions of the call. @integer @minimum 1 */
  readonly positions: number;
  /** Position of the first one. @count */
  readonly offset: number;
}

/** Sizes for a first look: everything fits on a screen. */
export const SMALL_SIZES: BlockSizes = {
  batch: 1,
  tokens: 4,
  hidden: 8,
  group: 4,
  heads: 4,
  keyHeads: 2,
  headDim: 4,
  vocab: 8,
  ranks: 2,
  positions: 4,
  scale: 1,
  base: 10000,
  dynamic: false,
  calls: [
    { positions: 4, offset: 0 },
    { positions: 9, offset: 0 },
    { positions: 1, offset: 4 },
  ],
  tile: 2,
  points: [-3, -2, -1, -0.5, 0, 0.5, 1, 2, 3],
  causal: false,
  eps: 1e-5,
  dtype: 'f32',
  seed: 0,
  initSeed: 0,
  initRange: [0.5, 1.5],
  initMean: 0,
  initStd: 1,
};

export interface NamedTensor {
  /** Name of the tensor. */
  readonly name: string;
  /** Use of the tensor. */
  readonly role: 'input' | 'parameter' | 'output';
  /** Element type. */
  readonly dtype: ModuleDtype | 'i64';
  /** Sizes of the dimensions. @count */
  readonly shape: readonly number[];
  /** Values as numbers; those of half precision are exact in float32. */
  readonly values: readonly number[];
}

/** An identity, and how far the result is from it. */
export interface BlockCheck {
  /** Identity that the result keeps. */
  readonly check: string;
  /** Difference, relative to the largest value where that is above one. */
  readonly difference: number;
  /** Largest allowed difference. */
  readonly limit: number;
}

/** State of the rotation after a call. */
export interface RotationStep extends RotationCall {
  /** Scale of this call. @integer @minimum 1 */
  readonly scale: number;
  /** Base of the frequencies of this call. */
  readonly base: number;
  /** Scale and rows of the tables that later calls use. @integer @minimum 1 */
  readonly keptScale: number;
  /** Positions of the tables that are kept. @integer @minimum 1 */
  readonly keptRows: number;
}

export interface BlockRun {
  /** Lines of PyTorch that make the inputs and parameters. */
  readonly torch: readonly string[];
  /** Inputs, parameters and outputs. */
  readonly tensors: readonly NamedTensor[];
  readonly checks: readonly BlockCheck[];
  /** Set for the rotation. */
  readonly calls?: readonly RotationStep[];
  /** Set for the online softmax: the last query of the first head. */
  readonly steps?: readonly SoftmaxStep[];
}

/** A block that can be run, and the flags that it uses. */
export interface ListedBlock {
  /** Name for the command line. */
  readonly name: string;
  /** Computation of the block, in one line. */
  readonly summary: string;
  /** Flags that it uses, without the dashes. */
  readonly flags: readonly string[];
}

/** The blocks that can be run. */
export interface BlockList {
  readonly schema: 'minimind/modules@1';
  /** All blocks. */
  readonly blocks: readonly ListedBlock[];
}

/** A check and its result. */
export interface JudgedCheck extends BlockCheck {
  /** Whether the difference is within the limit. */
  readonly passed: boolean;
}

/** A run of one block. */
export interface ModuleResult extends Omit<BlockRun, 'checks'> {
  readonly schema: 'minimind/modules@1';
  /** Name of the block. */
  readonly block: string;
  /** Settings that the block uses. */
  readonly sizes: Partial<BlockSizes> & Required<Pick<BlockSizes, 'dtype'>>;
  /** Identities that hold for the block. */
  readonly checks: readonly JudgedCheck[];
}

/**
 * All blocks, or a run of one of them.
 * @answer minimind modules --json
 */
export type ModulesAnswer = BlockList | ModuleResult;

/** Largest number of values of a tensor: these runs are for reading. */
const MOST_VALUES = 2 ** 16;

/** Float32 rounding, in units of results near one. */
export const CLOSE = { f32: 1e-5, f16: 2e-2, bf16: 2e-1 } as const satisfies Record<
  ModuleDtype,
  number
>;

const DTYPE_NAMES = { f32: 'float32', f16: 'float16', bf16: 'bfloat16' } as const;

export const productOf = (values: readonly number[]) => values.reduce((a, b) => a * b, 1);

/** Fills in the order of PyTorch, with the line for each. */
export class Inputs {
  readonly torch: string[] = [];
  readonly tensors: NamedTensor[] = [];
  #generator = manualSeed(0);
  readonly #dtype: ModuleDtype;

  constructor({ dtype }: BlockSizes) {
    this.#dtype = dtype;
  }

  seed(seed: number): void {
    this.#generator = manualSeed(seed);
    this.torch.push(`torch.manual_seed(${seed})`);
  }

  randn(name: string, shape: readonly number[]): Tensor {
    return this.#made(
      name,
      'input',
      shape,
      this.#generator.randn(countOf(shape)),
      `torch.randn(${shape.join(', ')})`,
    );
  }

  uniform(name: string, width: number, [low, high]: BlockSizes['initRange']): Tensor {
    const values = this.#generator.uniform(new Float32Array(width), low, high);
    return this.#made(
      name,
      'parameter',
      [width],
      values,
      `torch.empty(${width}).uniform_(${low}, ${high})`,
    );
  }

  randint(name: string, shape: readonly number[], high: number): Ids {
    const data = this.#generator.randint(countOf(shape), 0, high);
    this.torch.push(`${name} = torch.randint(0, ${high}, (${shape.join(', ')}))`);
    this.tensors.push({ name, role: 'input', dtype: 'i64', shape, values: Array.from(data) });
    return { shape, data };
  }

  /** Numbers that the user or the block chooses. */
  given(name: string, numbers: readonly number[], line: string): Tensor {
    countOf([numbers.length]);
    return this.#made(name, 'input', [numbers.length], Float32Array.from(numbers), line);
  }

  /** A tensor that a library function has initialised. */
  made(name: string, values: Tensor, line: string): Tensor {
    return this.#made(name, 'parameter', values.shape, toFloat32(values), line);
  }

  output(name: string, values: Tensor): void {
    this.tensors.push(namedTensor(name, 'output', values));
  }

  #made(
    name: string,
    role: NamedTensor['role'],
    shape: readonly number[],
    values: Float32Array,
    line: string,
  ): Tensor {
    const made = cast(tensor(shape, values), this.#dtype);
    const converted = this.#dtype === 'f32' ? '' : `.to(torch.${DTYPE_NAMES[this.#dtype]})`;
    this.torch.push(`${name} = ${line}${converted}`);
    this.tensors.push(namedTensor(name, role, made));
    return made;
  }
}

const namedTensor = (name: string, role: NamedTensor['role'], values: Tensor): NamedTensor => ({
  name,
  role,
  dtype: values.dtype,
  shape: values.shape,
  values: Array.from(toFloat32(values)),
});

export function countOf(shape: readonly number[]): number {
  const count = productOf(shape);
  if (count <= MOST_VALUES) return count;
  throw mistake(
    'modules',
    `expected tensors of at most ${formatInteger(MOST_VALUES)} values, found ${formatInteger(count)}`,
    'write smaller sizes',
  );
}

/** Largest difference of two tensors, relative to the largest value where that is above one. */
function largestDifference(a: Tensor, b: Tensor): number {
  const [left, right] = [toFloat32(a), toFloat32(b)];
  let [difference, largest] = [0, 1];
  for (const [at, value] of left.entries()) {
    const other = right[at] ?? Number.NaN;
    difference = Math.max(difference, Math.abs(value - other));
    largest = Math.max(largest, Math.abs(value), Math.abs(other));
  }
  return difference / largest;
}

export const same = (check: string, a: Tensor, b: Tensor, limit: number): BlockCheck => ({
  check,
  difference: largestDifference(a, b),
  limit,
});

export const done = ({ torch, tensors }: Inputs, checks: readonly BlockCheck[]): BlockRun => ({
  torch,
  tensors,
  checks,
});

export const mapped = (x: Tensor, of: (value: number, at: number) => number): Tensor =>
  cast(tensor(x.shape, toFloat32(x).map(of)), x.dtype);

export const onesLike = (x: Tensor, shape = x.shape): Tensor =>
  cast(tensor(shape, new Float32Array(productOf(shape)).fill(1)), x.dtype);

/** A float as Python writes one. */
export const pythonFloat = (value: number) =>
  Number.isInteger(value) ? `${value}.` : String(value);
