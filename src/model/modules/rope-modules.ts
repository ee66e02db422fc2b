/** Positions as angles: sinusoidal and rotary ones, and their scaling to longer inputs by a larger base. */
import { ntkBase, rotaryFrequencies } from '../architecture/rotary-scaling.js';
import type { Float32Tensor, Tensor } from './tensor.js';
import {
  expectAxes,
  expectShape,
  expectWhole,
  mistake,
  numbersOf,
  roundedTensor,
} from './tensor.js';

/** How a head's columns are paired: (x_0, x_{hd/2}), …, or neighbours (x_0, x_1), …. */
type Pairing = 'halves' | 'neighbours';

/**
 * Rotates the pairs (x_0, x_{hd/2}), (x_1, x_{hd/2+1}), … of every head by its position's angles:
 * X · cos + concat(−X[hd/2:], X[:hd/2]) · sin.
 * @param x [b, s, heads, hd]
 * @param cos [s, hd]
 * @param sin [s, hd]
 * @returns [b, s, heads, hd] in X's dtype.
 * @throws UserError when shapes do not fit, or hd is odd.
 */
export const applyRotaryPosEmb = (x: Tensor, cos: Tensor, sin: Tensor): Tensor =>
  turned('applyRotaryPosEmb', 'halves', x, cos, sin);

/**
 * Rotates neighbours (x_0, x_1), (x_2, x_3), … of every head (arXiv 2104.09864, equation 34), as GPT-J and ChatGLM do:
 * X · cos + (−x_1, x_0, −x_3, x_2, …) · sin. Tables hold each angle twice, side by side: those of `interleavedTables`.
 * @param x [b, s, heads, hd]
 * @param cos [s, hd]
 * @param sin [s, hd]
 * @returns [b, s, heads, hd] in X's dtype.
 * @throws UserError when shapes do not fit, or hd is odd.
 */
export const applyInterleavedRotaryPosEmb = (x: Tensor, cos: Tensor, sin: Tensor): Tensor =>
  turned('applyInterleavedRotaryPosEmb', 'neighbours', x, cos, sin);

function turned(where: string, pairing: Pairing, x: Tensor, cos: Tensor, sin: Tensor): Tensor {
  expectAxes(where, 'X', x.shape, 'batch, positions, heads, width');
  const [, positions = 0, heads = 0, width = 0] = x.shape;
  expectEven(where, width);
  expectShape(where, 'the table of cosines', cos.shape, [positions, width]);
  expectShape(where, 'the table of sines', sin.shape, [positions, width]);
  const input = numbersOf(where, x);
  const cosines = numbersOf(where, cos);
  const sines = numbersOf(where, sin);
  const data = new Float32Array(input.length);
  const distance = pairing === 'halves' ? width / 2 : 1;
  for (let at = 0; at < input.length; at++) {
    const column = at % width;
    const position = Math.floor(at / (heads * width)) % positions;
    const isFirst = pairing === 'halves' ? column < distance : column % 2 === 0;
    const other = isFirst ? -(input[at + distance] ?? 0) : (input[at - distance] ?? 0);
    const place = position * width + column;
    data[at] =
      Math.fround((input[at] ?? 0) * (cosines[place] ?? 0)) +
      Math.fround(other * (sines[place] ?? 0));
  }
  return roundedTensor(where, { dtype: 'f32', shape: x.shape, data }, x.dtype);
}

/** Positions and width of tables of angles. */
export interface AngleTableOptions {
  /** Number of positions. */
  readonly positions: number;
  /** Even width of a row: of a head, or of the model for sinusoidal positions. */
  readonly width: number;
  /** Default 10000. */
  readonly base?: number;
  /** First position. Default 0. */
  readonly offset?: number;
}

/** Angle n · base^(−2i/d) of each position n and pair i, in float32 as PyTorch computes it. */
function anglesOf(
  where: string,
  options: AngleTableOptions,
): (position: number, pair: number) => number {
  const { positions, width, base = DEFAULT_BASE, offset = 0 } = options;
  expectWhole(where, 'the number of positions', positions, 1);
  expectWhole(where, 'the width', width, 2);
  expectEven(where, width, 'the width');
  expectWhole(where, 'the offset', offset, 0);
  expectBase(where, base);
  expectRoom(where, positions * width);
  const frequencies = rotaryFrequencies({ base, rotatedDim: width, scaling: undefined });
  return (position, pair) => Math.fround(Math.fround(offset + position) * (frequencies[pair] ?? 0));
}

/** A table [positions, width] of values by row and column. */
function rotaryTable(
  { positions, width }: AngleTableOptions,
  value: (position: number, column: number) => number,
): Float32Tensor {
  const data = new Float32Array(positions * width);
  for (let at = 0; at < data.length; at++) data[at] = value(Math.floor(at / width), at % width);
  return { dtype: 'f32', shape: [positions, width], data };
}

/**
 * Sinusoidal positions (arXiv 1706.03762, section 3.5): sin(n·θ^i) in column 2i and cos(n·θ^i) in column 2i + 1, with
 * θ = base^(−2/d). They are added to embeddings.
 * @returns [positions, width], float32.
 * @throws UserError for an odd width, or tables that are too large.
 */
export function sinusoidalPositions(options: AngleTableOptions): Float32Tensor {
  const angle = anglesOf('sinusoidalPositions', options);
  return rotaryTable(options, (position, column) => {
    const turn = angle(position, column >> 1);
    return column % 2 === 0 ? Math.sin(turn) : Math.cos(turn);
  });
}

/**
 * Cosines and sines of `applyInterleavedRotaryPosEmb`: columns 2i and 2i + 1 have the angle of pair i.
 * @returns [positions, width] each, float32.
 * @throws UserError for an odd width, or tables that are too large.
 */
export function interleavedTables(options: AngleTableOptions): RotaryTables {
  const angle = anglesOf('interleavedTables', options);
  return {
    cos: rotaryTable(options, (position, column) => Math.cos(angle(position, column >> 1))),
    sin: rotaryTable(options, (position, column) => Math.sin(angle(position, column >> 1))),
  };
}

const DEFAULT_BASE = 10000;

function expectBase(where: string, base: number): void {
  if (base > 0 && Number.isFinite(base)) return;
  throw mistake(where, `the base is ${base}`, 'give a finite number above zero, such as 10000');
}

function expectRoom(where: string, values: number): void {
  if (values <= MOST_VALUES) return;
  throw mistake(where, `a table would have more than ${MOST_VALUES} values`, 'use fewer positions');
}

function expectEven(where: string, width: number, what = 'the width of a head'): void {
  if (width >= 2 && width % 2 === 0) return;
  throw mistake(where, `${what} is ${width}`, 'use an even width: RoPE rotates pairs');
}

export interface NtkAwareRopeOptions {
  /** Width of a head, even. */
  readonly headDim: number;
  /** Training positions of the model. */
  readonly maxPositions: number;
  /** Default 10000. */
  readonly base?: number;
  /** Initial multiple of the training positions, a whole number, odd or even. Default 1. */
  readonly scale?: number;
  /** Whether a longer input changes scale and tables for all later calls. Default false. */
  readonly dynamic?: boolean;
}

/** Cosines and sines of positions 0, 1, …: [positions, hd] each, in float32 for every dtype of X. */
export interface RotaryTables {
  readonly cos: Float32Tensor;
  readonly sin: Float32Tensor;
}

/**
 * Rotary positions whose base grows with the length: base' = base · k^(hd / (hd − 2)), for k times the training
 * positions ("NTK-aware": bloc97, r/LocalLLaMA, June 2023; arXiv 2309.00071, section 3.1).
 */
export class NtkAwareRope {
  readonly #options: Required<NtkAwareRopeOptions>;
  #scale: number;
  #tables: RotaryTables;

  /** @throws UserError for invalid options. */
  constructor({
    headDim,
    maxPositions,
    base = DEFAULT_BASE,
    scale = 1,
    dynamic = false,
  }: NtkAwareRopeOptions) {
    expectWhole(NAME, 'the width of a head', headDim, 2);
    expectEven(NAME, headDim);
    expectWhole(NAME, 'the number of positions', maxPositions, 1);
    expectWhole(NAME, 'the scale', scale, 1);
    expectBase(NAME, base);
    this.#options = { headDim, maxPositions, base, scale, dynamic };
    this.#scale = scale;
    this.#tables = this.#tablesFor(scale);
  }

  /** k: number of positions in the tables relative to the training positions. */
  get scale(): number {
    return this.#scale;
  }

  /** Cached tables for scale · maxPositions positions. */
  get tables(): RotaryTables {
    return this.#tables;
  }

  /**
   * Scale for a call: the cached one if it is enough, else the smallest sufficient even one.
   * @param positions Positions up to the last of the call: offset + s.
   */
  scaleFor(positions: number): number {
    const { maxPositions } = this.#options;
    if (positions <= maxPositions * this.#scale) return this.#scale;
    return 2 * Math.ceil(positions / (2 * maxPositions));
  }

  /**
   * Rotates every head by its position.
   * @param x [b, s, heads, hd]
   * @param offset Position of the first one, for calls with a cache of earlier positions.
   * @returns [b, s, heads, hd] in X's dtype.
   * @throws UserError when the shape does not fit, or the offset is not a position.
   */
  apply(x: Tensor, offset = 0): Tensor {
    const { headDim, dynamic } = this.#options;
    expectAxes(NAME, 'X', x.shape, 'batch, positions, heads, width');
    expectWhole(NAME, 'the offset', offset, 0);
    const [batch = 0, positions = 0, heads = 0] = x.shape;
    expectShape(NAME, 'X', x.shape, [batch, positions, heads, headDim]);
    const scale = this.scaleFor(offset + positions);
    if (dynamic && scale !== this.#scale) {
      this.#tables = this.#tablesFor(scale);
      this.#scale = scale;
    }
    // If the scale is not cached, only the rows of this call are computed.
    const { cos, sin } =
      scale === this.#scale
        ? positionRows(this.#tables, offset, positions)
        : this.#rowsFor(scale, offset, positions);
    return applyRotaryPosEmb(x, cos, sin);
  }

  /** All rows for a scale. */
  #tablesFor(scale: number): RotaryTables {
    const { headDim, maxPositions } = this.#options;
    const positions = maxPositions * scale;
    if (positions * headDim > MOST_VALUES) {
      throw mistake(
        NAME,
        `the tables of ${positions} positions would have more than ${MOST_VALUES} values`,
        'use fewer positions, or leave dynamic off: then a call computes only its own rows',
      );
    }
    return this.#rowsFor(scale, 0, positions);
  }

  /** Rows of positions `first` to `first + count - 1`. */
  #rowsFor(scale: number, first: number, count: number): RotaryTables {
    const { headDim } = this.#options;
    const frequencies = rotaryFrequencies({
      base: this.baseFor(scale),
      rotatedDim: headDim,
      scaling: undefined,
    });
    const shape = [count, headDim];
    const cos = new Float32Array(count * headDim);
    const sin = new Float32Array(count * headDim);
    for (let at = 0; at < cos.length; at++) {
      const frequency = frequencies[at % (headDim / 2)] ?? 0;
      const position = Math.fround(first + Math.floor(at / headDim));
      const angle = Math.fround(position * frequency);
      cos[at] = Math.cos(angle);
      sin[at] = Math.sin(angle);
    }
    return { cos: { dtype: 'f32', shape, data: cos }, sin: { dtype: 'f32', shape, data: sin } };
  }

  /** Base of the frequencies for a scale. @throws UserError for heads without a frequency to stretch. */
  baseFor(scale: number): number {
    const { base, headDim } = this.#options;
    if (scale === 1) return base;
    if (headDim === 2) {
      throw mistake(
        NAME,
        'heads of width 2 have one frequency, 1, for any base',
        'use wider heads, or at most the training positions',
      );
    }
    return ntkBase(base, scale, headDim);
  }
}

const NAME = 'NtkAwareRope';

/** 4 GiB per table. */
const MOST_VALUES = 2 ** 30;

/** `count` rows of tables from `first` on. */
function positionRows({ cos, sin }: RotaryTables, first: number, count: number): RotaryTables {
  const rows = ({ shape: [, width = 0], data }: Float32Tensor): Float32Tensor => ({
    dtype: 'f32',
    shape: [count, width],
    data: data.subarray(first * width, (first + count) * width),
  });
  return { cos: rows(cos), sin: rows(sin) };
}
