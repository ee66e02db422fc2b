/**
 * Blocks run on small inputs, as `torch.manual_seed` and the same fills make them: inputs, results, the lines of
 * PyTorch that give the inputs, and identities that the results have to keep.
 */
import { manualSeed } from '../random/generator.js';
import { formatInteger } from '../text/units.js';
import {
  ACTIVATIONS,
  type ActivationName,
  activation,
  activationGradient,
} from './activation-modules.js';
import {
  groupedQueryAttention,
  onlineSoftmaxAttention,
  onlineSoftmaxSteps,
  type SoftmaxStep,
} from './attention-modules.js';
import {
  initialParallelTable,
  initialTable,
  parallelVocabEmbedding,
  vocabEmbedding,
} from './embedding-modules.js';
import { groupRmsNorm, layerNorm, rmsNorm, swiglu } from './norms-and-activations.js';
import {
  applyInterleavedRotaryPosEmb,
  applyRotaryPosEmb,
  interleavedTables,
  NtkAwareRope,
  sinusoidalPositions,
} from './rope-modules.js';
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
  readonly batch: number;
  readonly tokens: number;
  readonly hidden: number;
  readonly group: number;
  readonly heads: number;
  readonly keyHeads: number;
  readonly headDim: number;
  readonly vocab: number;
  readonly ranks: number;
  readonly positions: number;
  readonly scale: number;
  readonly base: number;
  readonly dynamic: boolean;
  /** Calls of the rotation: positions and the first one of each. */
  readonly calls: readonly RotationCall[];
  readonly tile: number;
  /** Inputs of activations. */
  readonly points: readonly number[];
  readonly causal: boolean;
  readonly eps: number;
  readonly dtype: ModuleDtype;
  readonly seed: number;
  /** Seed of parameters: γ, tables. A rank adds its number. */
  readonly initSeed: number;
  /** Uniform range of γ and β. */
  readonly initRange: readonly [low: number, high: number];
  /** Mean of the normal distribution of a table. */
  readonly initMean: number;
  /** Its standard deviation. */
  readonly initStd: number;
}

export interface RotationCall {
  readonly positions: number;
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
  readonly name: string;
  readonly role: 'input' | 'parameter' | 'output';
  readonly dtype: ModuleDtype | 'i64';
  readonly shape: readonly number[];
  /** Values as numbers; those of half precision are exact in float32. */
  readonly values: readonly number[];
}

/** An identity, and how far the result is from it. */
export interface BlockCheck {
  readonly check: string;
  readonly difference: number;
  readonly limit: number;
}

/** State of the rotation after a call. */
export interface RotationStep extends RotationCall {
  /** Scale of this call. */
  readonly scale: number;
  readonly base: number;
  /** Scale and rows of the tables that later calls use. */
  readonly keptScale: number;
  readonly keptRows: number;
}

export interface BlockRun {
  /** Lines of PyTorch that make the inputs and parameters. */
  readonly torch: readonly string[];
  readonly tensors: readonly NamedTensor[];
  readonly checks: readonly BlockCheck[];
  /** Set for the rotation. */
  readonly calls?: readonly RotationStep[];
  /** Set for the online softmax: the last query of the first head. */
  readonly steps?: readonly SoftmaxStep[];
}

export interface BuildingBlock {
  readonly name: string;
  readonly summary: string;
  /** Settings that it uses, besides dtype and seed. */
  readonly uses: readonly (keyof BlockSizes)[];
  /** Whether its inputs are drawn, from the seed. Default true. */
  readonly isDrawn?: boolean;
  readonly run: (sizes: BlockSizes) => BlockRun;
}

/** Largest number of values of a tensor: these runs are for reading. */
const MOST_VALUES = 2 ** 16;

/** Float32 rounding, in units of results near one. */
const CLOSE = { f32: 1e-5, f16: 2e-2, bf16: 2e-1 } as const satisfies Record<ModuleDtype, number>;

const DTYPE_NAMES = { f32: 'float32', f16: 'float16', bf16: 'bfloat16' } as const;

const productOf = (values: readonly number[]) => values.reduce((a, b) => a * b, 1);

/** Fills in the order of PyTorch, with the line for each. */
class Inputs {
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
    this.tensors.push(named(name, 'output', values));
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
    this.tensors.push(named(name, role, made));
    return made;
  }
}

const named = (name: string, role: NamedTensor['role'], values: Tensor): NamedTensor => ({
  name,
  role,
  dtype: values.dtype,
  shape: values.shape,
  values: Array.from(toFloat32(values)),
});

function countOf(shape: readonly number[]): number {
  const count = productOf(shape);
  if (count <= MOST_VALUES) return count;
  throw mistake(
    'modules',
    `expected tensors of at most ${formatInteger(MOST_VALUES)} values, found ${formatInteger(count)}`,
    'write smaller sizes',
  );
}

/** Largest difference of two tensors, relative to the largest value where that is above one. */
function differenceOf(a: Tensor, b: Tensor): number {
  const [left, right] = [toFloat32(a), toFloat32(b)];
  let [difference, largest] = [0, 1];
  for (const [at, value] of left.entries()) {
    const other = right[at] ?? Number.NaN;
    difference = Math.max(difference, Math.abs(value - other));
    largest = Math.max(largest, Math.abs(value), Math.abs(other));
  }
  return difference / largest;
}

const same = (check: string, a: Tensor, b: Tensor, limit: number): BlockCheck => ({
  check,
  difference: differenceOf(a, b),
  limit,
});

const done = ({ torch, tensors }: Inputs, checks: readonly BlockCheck[]): BlockRun => ({
  torch,
  tensors,
  checks,
});

const mapped = (x: Tensor, of: (value: number, at: number) => number): Tensor =>
  cast(tensor(x.shape, toFloat32(x).map(of)), x.dtype);

const onesLike = (x: Tensor, shape = x.shape): Tensor =>
  cast(tensor(shape, new Float32Array(productOf(shape)).fill(1)), x.dtype);

// Norms and activations

function normInputs(sizes: BlockSizes, names: readonly string[]) {
  const inputs = new Inputs(sizes);
  inputs.seed(sizes.seed);
  const x = inputs.randn('x', [sizes.batch, sizes.tokens, sizes.hidden]);
  inputs.seed(sizes.initSeed);
  const [gamma, beta] = names.map((name) => inputs.uniform(name, sizes.hidden, sizes.initRange));
  if (gamma === undefined) throw new Error('a norm has a γ');
  return { inputs, x, gamma, beta, close: CLOSE[sizes.dtype] };
}

function runGroupRmsNorm(sizes: BlockSizes): BlockRun {
  const { group, eps, hidden } = sizes;
  const { inputs, x, gamma, close } = normInputs(sizes, ['gamma']);
  const y = groupRmsNorm(x, gamma, group, eps);
  inputs.output('y', y);
  const rows = { ...x, shape: [...x.shape.slice(0, -1), hidden / group, group] } as Tensor;
  const alone = rmsNorm(cast(rows, 'f32'), onesLike(cast(x, 'f32'), [group]), eps);
  const scales = toFloat32(gamma);
  const scaled = mapped(
    { ...alone, shape: x.shape } as Tensor,
    (value, at) => value * (scales[at % hidden] ?? 0),
  );
  return done(inputs, [
    same('each group alone, as RMSNorm, times γ', y, cast(scaled, sizes.dtype), close),
    same(
      'one group of the whole width is RMSNorm',
      groupRmsNorm(x, gamma, hidden, eps),
      rmsNorm(x, gamma, eps),
      0,
    ),
  ]);
}

function runRmsNorm(sizes: BlockSizes): BlockRun {
  const { inputs, x, gamma, close } = normInputs(sizes, ['gamma']);
  const y = rmsNorm(x, gamma, sizes.eps);
  inputs.output('y', y);
  const doubled = rmsNorm(
    mapped(x, (value) => 2 * value),
    gamma,
    4 * sizes.eps,
  );
  return done(inputs, [
    same('twice the input, 4 times eps: the same', y, doubled, close),
    same('one group of the whole width', y, groupRmsNorm(x, gamma, sizes.hidden, sizes.eps), 0),
  ]);
}

function runLayerNorm(sizes: BlockSizes): BlockRun {
  const { eps, hidden } = sizes;
  const { inputs, x, gamma, beta, close } = normInputs(sizes, ['gamma', 'beta']);
  const y = layerNorm(x, gamma, beta, eps);
  inputs.output('y', y);
  const wide = cast(x, 'f32');
  const values = toFloat32(x);
  const centred = mapped(wide, (value, at) => {
    const row = at - (at % hidden);
    return value - values.subarray(row, row + hidden).reduce((a, b) => a + b, 0) / hidden;
  });
  const shifts = beta ? toFloat32(beta) : [];
  const normed = mapped(
    rmsNorm(centred, cast(gamma, 'f32'), eps),
    (value, at) => value + (shifts[at % hidden] ?? 0),
  );
  return done(inputs, [same('RMSNorm of x − mean, plus β', y, cast(normed, sizes.dtype), close)]);
}

function runSwiglu(sizes: BlockSizes): BlockRun {
  const inputs = new Inputs(sizes);
  inputs.seed(sizes.seed);
  const shape = [sizes.batch, sizes.tokens, sizes.hidden];
  const [gate, up] = [inputs.randn('gate', shape), inputs.randn('up', shape)];
  inputs.output('y', swiglu(gate, up));
  const [wide, one] = [cast(gate, 'f32'), onesLike(cast(gate, 'f32'))];
  const negative = toFloat32(
    swiglu(
      mapped(wide, (value) => -value),
      one,
    ),
  );
  const odd = mapped(swiglu(wide, one), (value, at) => value - (negative[at] ?? 0));
  return done(inputs, [
    same('silu(x) − silu(−x) = x', odd, wide, CLOSE.f32),
    same(
      'a gate of zeros gives zeros',
      swiglu(
        mapped(gate, () => 0),
        up,
      ),
      mapped(gate, () => 0),
      0,
    ),
  ]);
}

/** A float as Python writes one. */
const pythonFloat = (value: number) => (Number.isInteger(value) ? `${value}.` : String(value));

function runActivations(sizes: BlockSizes): BlockRun {
  const inputs = new Inputs(sizes);
  const x = inputs.given(
    'x',
    sizes.points,
    `torch.tensor([${sizes.points.map(pythonFloat).join(', ')}])`,
  );
  const names = Object.keys(ACTIVATIONS) as ActivationName[];
  for (const name of names) {
    inputs.output(name, activation(name, x));
    inputs.output(`${name}_grad`, activationGradient(name, x));
  }
  const wide = cast(x, 'f32');
  const smooth = names.filter((name) => name !== 'relu');
  return done(inputs, [
    ...smooth.map((name) => ({
      check: `${name}: gradient = difference quotient`,
      difference: quotientError(name, toFloat32(wide)),
      limit: 1e-6,
    })),
    ...smooth.map((name) => {
      const slopes = activationGradient(name, wide);
      const mirrored = toFloat32(
        activationGradient(
          name,
          mapped(wide, (value) => -value),
        ),
      );
      const sums = mapped(slopes, (slope, at) => slope + (mirrored[at] ?? 0));
      return same(`${name}: gradients at x and −x sum to one`, sums, onesLike(sums), CLOSE.f32);
    }),
  ]);
}

/** Largest distance between the derivative and (f(x + h) − f(x − h)) / 2h in float64, relative above one. */
function quotientError(name: ActivationName, points: Float32Array): number {
  const { value, derivative } = ACTIVATIONS[name];
  let most = 0;
  for (const x of points) {
    const step = 1e-5 * Math.max(1, Math.abs(x));
    const slope = (value(x + step) - value(x - step)) / (2 * step);
    most = Math.max(most, Math.abs(slope - derivative(x)));
  }
  return most;
}

// Embeddings

const tableLine = (rows: number, { hidden, initMean, initStd }: BlockSizes) =>
  initMean === 0 && initStd === 1
    ? `torch.randn(${rows}, ${hidden})`
    : `torch.empty(${rows}, ${hidden}).normal_(${initMean}, ${initStd})`;

const tableOf = ({ vocab, hidden, initMean, initStd, initSeed }: BlockSizes) => ({
  ...{ vocabSize: vocab, width: hidden },
  ...{ mean: initMean, deviation: initStd, seed: initSeed },
});

function runVocabEmbedding(sizes: BlockSizes): BlockRun {
  const { batch, tokens, vocab, hidden, seed, initSeed, dtype } = sizes;
  const inputs = new Inputs(sizes);
  inputs.seed(seed);
  const ids = inputs.randint('ids', [batch, tokens], vocab);
  countOf([vocab, hidden]);
  inputs.seed(initSeed);
  const table = inputs.made('table', initialTable(tableOf(sizes)), tableLine(vocab, sizes));
  const y = vocabEmbedding(ids, table);
  inputs.output('y', y);
  const values = toFloat32(table);
  const product = new Float32Array(ids.data.length * hidden);
  for (const [at, id] of ids.data.entries()) {
    for (let row = 0; row < vocab; row++) {
      for (let i = 0; i < hidden; i++) {
        const place = at * hidden + i;
        product[place] =
          (product[place] ?? 0) + (row === id ? 1 : 0) * (values[row * hidden + i] ?? 0);
      }
    }
  }
  return done(inputs, [
    same('one-hot rows times the table', y, cast(tensor(y.shape, product), dtype), 0),
  ]);
}

function runParallelEmbedding(sizes: BlockSizes): BlockRun {
  const { batch, tokens, vocab, hidden, ranks, seed, initSeed } = sizes;
  const inputs = new Inputs(sizes);
  inputs.seed(seed);
  const ids = inputs.randint('ids', [batch, tokens], vocab);
  countOf([vocab, hidden]);
  const tables = Array.from({ length: ranks }, (_, rank) => {
    const place = { rank, worldSize: ranks };
    const made = initialParallelTable(tableOf(sizes), place);
    inputs.seed(initSeed + rank);
    return inputs.made(`table${rank}`, made, tableLine(vocab / ranks, sizes));
  });
  const parts = tables.map((table, rank) => {
    const part = parallelVocabEmbedding(ids, table, { rank, worldSize: ranks });
    inputs.output(`y${rank}`, part);
    return toFloat32(part);
  });
  const shape = [...ids.shape, hidden];
  const sum = new Float32Array(productOf(shape)).map((_, at) =>
    parts.reduce((total, part) => total + (part[at] ?? 0), 0),
  );
  const whole = tensor(
    [vocab, hidden],
    tables.flatMap((table) => Array.from(toFloat32(table))),
  );
  const y = tensor(shape, sum);
  inputs.output('sum', cast(y, sizes.dtype));
  return done(inputs, [
    same('sum over the ranks = embedding with the whole table', y, vocabEmbedding(ids, whole), 0),
  ]);
}

// Rotation

function runNtkRope(sizes: BlockSizes): BlockRun {
  const { batch, heads, headDim, positions, base, scale, dynamic, calls, dtype } = sizes;
  // Tables reach from position 0 to the last one, at twice that with the next even scale.
  countOf([positions * scale, headDim]);
  for (const call of calls) countOf([call.offset + call.positions, headDim]);
  const rope = new NtkAwareRope({ headDim, maxPositions: positions, base, scale, dynamic });
  const inputs = new Inputs(sizes);
  inputs.seed(sizes.seed);
  const steps: RotationStep[] = [];
  const checks: BlockCheck[] = [];
  for (const [at, call] of calls.entries()) {
    const x = inputs.randn(`x${at}`, [batch, call.positions, heads, headDim]);
    const used = rope.scaleFor(call.offset + call.positions);
    const y = rope.apply(x, call.offset);
    inputs.output(`y${at}`, y);
    steps.push({
      ...call,
      scale: used,
      base: rope.baseFor(used),
      keptScale: rope.scale,
      keptRows: rope.tables.cos.shape[0] ?? 0,
    });
    checks.push(
      same(`call ${at + 1}: lengths of the pairs`, pairLengths(x), pairLengths(y), CLOSE[dtype]),
    );
    if (call.offset === 0) {
      const first = heads * headDim;
      const firstOf = (values: Tensor) => tensor([first], toFloat32(values).subarray(0, first));
      checks.push(same(`call ${at + 1}: position 0 is not rotated`, firstOf(x), firstOf(y), 0));
    }
  }
  return { ...done(inputs, checks), calls: steps };
}

/** Length of each pair (x_j, x_{j + hd/2}), which a rotation keeps. */
function pairLengths(x: Tensor): Tensor {
  const width = x.shape.at(-1) ?? 2;
  const values = toFloat32(x);
  const lengths = values.map((value, at) => {
    const column = at % width;
    return column < width / 2 ? Math.hypot(value, values[at + width / 2] ?? 0) : 0;
  });
  return tensor(x.shape, lengths);
}

function runSinusoidal(sizes: BlockSizes): BlockRun {
  const { tokens, hidden, base, dtype } = sizes;
  countOf([tokens, hidden]);
  const inputs = new Inputs(sizes);
  const positions = Array.from({ length: tokens }, (_, position) => position);
  inputs.given('n', positions, `torch.arange(${pythonFloat(tokens)})`);
  const table = sinusoidalPositions({ positions: tokens, width: hidden, base });
  inputs.output('y', cast(table, dtype));
  const { cos, sin } = interleavedTables({ positions: 1, width: hidden, base, offset: 1 });
  const next = sinusoidalPositions({ positions: tokens, width: hidden, base, offset: 1 });
  const swapped = swappedPairs(table);
  // sin(a + θ) = sin a · cos θ + cos a · sin θ, and cos(a + θ) = cos a · cos θ − sin a · sin θ.
  const moved = mapped(table, (value, at) => {
    const column = at % hidden;
    const sign = column % 2 === 0 ? 1 : -1;
    return value * (cos.data[column] ?? 0) + sign * (swapped[at] ?? 0) * (sin.data[column] ?? 0);
  });
  const lengths = mapped(table, (value, at) => value ** 2 + (swapped[at] ?? 0) ** 2);
  return done(inputs, [
    same('sin² + cos² = 1 in each pair', lengths, onesLike(lengths), CLOSE.f32),
    same('position n + 1 is position n, turned by θ', moved, next, CLOSE.f32),
  ]);
}

/** Values with those of each pair of neighbours exchanged. */
const swappedPairs = (x: Tensor): Float32Array => {
  const values = toFloat32(x);
  return values.map((_, at) => values[at % 2 === 0 ? at + 1 : at - 1] ?? 0);
};

function runInterleavedRope(sizes: BlockSizes): BlockRun {
  const { batch, tokens, heads, headDim, base, dtype } = sizes;
  countOf([tokens, headDim]);
  const inputs = new Inputs(sizes);
  inputs.seed(sizes.seed);
  const x = inputs.randn('x', [batch, tokens, heads, headDim]);
  const { cos, sin } = interleavedTables({ positions: tokens, width: headDim, base });
  inputs.output('cos', cos);
  inputs.output('sin', sin);
  const y = applyInterleavedRotaryPosEmb(x, cos, sin);
  inputs.output('y', y);
  const halves = (values: Tensor) => reordered(values, (column) => halfColumn(column, headDim));
  const lengths = ({ shape, data }: Tensor, swapped: Float32Array) =>
    tensor(
      shape,
      Float32Array.from(data, (_, at) => Math.hypot(data[at] ?? 0, swapped[at] ?? 0)),
    );
  const [before, after] = [cast(x, 'f32'), cast(y, 'f32')];
  return done(inputs, [
    same(
      'the pairs (x_j, x_{j + hd/2}) of reordered columns: the same',
      halves(y),
      applyRotaryPosEmb(halves(x), halves(cos), halves(sin)),
      0,
    ),
    same(
      'lengths of the pairs',
      lengths(before, swappedPairs(before)),
      lengths(after, swappedPairs(after)),
      CLOSE[dtype],
    ),
  ]);
}

/** Column of neighbours that comes to `column` when first members precede second ones. */
const halfColumn = (column: number, width: number): number =>
  column < width / 2 ? 2 * column : 2 * (column - width / 2) + 1;

function reordered(x: Tensor, from: (column: number) => number): Tensor {
  const width = x.shape.at(-1) ?? 1;
  const values = toFloat32(x);
  return mapped(x, (_, at) => {
    const column = at % width;
    return values[at - column + from(column)] ?? 0;
  });
}

// Attention

function attentionInputs(sizes: BlockSizes) {
  const { batch, tokens, heads, keyHeads, headDim } = sizes;
  const inputs = new Inputs(sizes);
  inputs.seed(sizes.seed);
  const q = inputs.randn('q', [batch, tokens, heads, headDim]);
  const k = inputs.randn('k', [batch, tokens, keyHeads, headDim]);
  const v = inputs.randn('v', [batch, tokens, keyHeads, headDim]);
  return { inputs, q, k, v };
}

function runGqa(sizes: BlockSizes): BlockRun {
  const { heads, keyHeads, headDim, causal } = sizes;
  const { inputs, q, k, v } = attentionInputs(sizes);
  const y = groupedQueryAttention(q, k, v, { causal });
  inputs.output('y', y);
  const repeated = (x: Tensor): Tensor => {
    const values = toFloat32(x);
    const [batch = 0, tokens = 0] = x.shape;
    const data = Float32Array.from({ length: batch * tokens * heads * headDim }, (_, at) => {
      const column = at % headDim;
      const head = Math.floor(at / headDim) % heads;
      const token = Math.floor(at / (headDim * heads));
      const from = Math.floor((head * keyHeads) / heads);
      return values[(token * keyHeads + from) * headDim + column] ?? 0;
    });
    return cast(tensor([batch, tokens, heads, headDim], data), x.dtype);
  };
  const plain = groupedQueryAttention(q, repeated(k), repeated(v), { causal });
  const ones = groupedQueryAttention(q, k, onesLike(v), { causal });
  return done(inputs, [
    same(`K and V repeated ${heads / keyHeads} times: plain attention`, y, plain, 0),
    same('values of one: weights sum to one', ones, onesLike(ones), CLOSE[sizes.dtype]),
  ]);
}

function runOnlineSoftmax(sizes: BlockSizes): BlockRun {
  const { tokens, tile, causal, dtype } = sizes;
  const { inputs, q, k, v } = attentionInputs(sizes);
  const y = onlineSoftmaxAttention(q, k, v, { causal, tile });
  inputs.output('y', y);
  const steps = onlineSoftmaxSteps(
    q,
    k,
    v,
    { batch: 0, position: tokens - 1, head: 0 },
    { causal, tile },
  );
  const scores = steps.flatMap((step) => step.scores);
  const max = Math.max(...scores);
  const sum = scores.reduce((total, score) => total + Math.exp(score - max), 0);
  const last = steps.at(-1);
  return {
    ...done(inputs, [
      same('plain softmax', y, groupedQueryAttention(q, k, v, { causal }), CLOSE[dtype]),
      {
        check: 'last maximum = maximum of all scores',
        difference: Math.abs((last?.max ?? Number.NaN) - max),
        limit: 0,
      },
      {
        check: 'last sum = sum over all keys',
        difference: Math.abs((last?.sum ?? Number.NaN) / sum - 1),
        limit: 1e-12,
      },
    ]),
    steps,
  };
}

const NORM = ['batch', 'tokens', 'hidden', 'eps', 'initSeed', 'initRange'] as const;
const EMBEDDING = [
  ...['batch', 'tokens', 'hidden', 'vocab'],
  ...['initSeed', 'initMean', 'initStd'],
] as const;
const ATTENTION = ['batch', 'tokens', 'heads', 'keyHeads', 'headDim', 'causal'] as const;

export const BLOCKS: readonly BuildingBlock[] = [
  { name: 'rms-norm', summary: 'RMSNorm', uses: NORM, run: runRmsNorm },
  { name: 'layer-norm', summary: 'LayerNorm', uses: NORM, run: runLayerNorm },
  {
    name: 'group-rms-norm',
    summary: 'RMSNorm in groups of columns',
    uses: [...NORM, 'group'],
    run: runGroupRmsNorm,
  },
  {
    name: 'swiglu',
    summary: 'silu(gate) · up',
    uses: ['batch', 'tokens', 'hidden'],
    run: runSwiglu,
  },
  {
    name: 'activations',
    summary: 'ReLU, GELU and SiLU with their gradients, at given points',
    uses: ['points'],
    isDrawn: false,
    run: runActivations,
  },
  {
    name: 'vocab-embedding',
    summary: 'rows of a table by token ids',
    uses: EMBEDDING,
    run: runVocabEmbedding,
  },
  {
    name: 'parallel-embedding',
    summary: 'the table split over ranks, and the sum of their parts',
    uses: [...EMBEDDING, 'ranks'],
    run: runParallelEmbedding,
  },
  {
    name: 'sinusoidal',
    summary: 'sinusoidal positions (SinPE), sines and cosines side by side',
    uses: ['tokens', 'hidden', 'base'],
    isDrawn: false,
    run: runSinusoidal,
  },
  {
    name: 'interleaved-rope',
    summary: 'RoPE that rotates neighbours (x_0, x_1), as GPT-J does',
    uses: ['batch', 'tokens', 'heads', 'headDim', 'base'],
    run: runInterleavedRope,
  },
  {
    name: 'ntk-rope',
    summary: 'NTK-aware RoPE: the scale after each call, static or dynamic',
    uses: ['batch', 'heads', 'headDim', 'positions', 'scale', 'base', 'dynamic', 'calls'],
    run: runNtkRope,
  },
  { name: 'gqa', summary: 'grouped-query attention', uses: ATTENTION, run: runGqa },
  {
    name: 'online-softmax',
    summary: 'attention tile by tile, with the running maximum and sum',
    uses: [...ATTENTION, 'tile'],
    run: runOnlineSoftmax,
  },
];

/** Sizes of axes, each of which some tensor has. */
const TENSOR_SIZES = [
  'batch',
  'tokens',
  'hidden',
  'heads',
  'keyHeads',
  'headDim',
  'vocab',
  'ranks',
] as const satisfies readonly (keyof BlockSizes)[];

/** Runs a block. @throws UserError for an unknown block, or sizes that do not fit it. */
export function runBlock(name: string, sizes: BlockSizes): BlockRun {
  const block = BLOCKS.find((each) => each.name === name);
  if (block) {
    for (const setting of TENSOR_SIZES) if (block.uses.includes(setting)) countOf([sizes[setting]]);
    return block.run(sizes);
  }
  throw mistake(
    'modules',
    `unknown block ${name}`,
    `write one of ${BLOCKS.map((each) => each.name).join(', ')}`,
  );
}
