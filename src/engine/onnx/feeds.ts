/** Inputs of a graph, computed for each run. Shapes: B batch, T tokens of the call. */
import type { Rotary, Window } from '../../model/architecture/layer.js';
import { windowKey } from '../../model/architecture/masks.js';
import { amplitudeOf, rotaryFrequencies } from '../../model/architecture/rotary-scaling.js';
import { decodingKeys, firstKeys } from '../calls.js';
import type { TokenIds, Values } from '../engine.js';
import type { Library, OrtTensor } from './library.js';
import type { ElementType } from './proto.js';

/** Names of sizes that a run determines. */
const BATCH = 'B';
const TOKENS = 'T';

/** One input of a graph. */
export type Feed =
  /** Token ids, [B, T]; zeros for a layer that is given values. */
  | { readonly kind: 'ids' }
  /** A value passed to the layer, [B, T, C]. */
  | { readonly kind: 'value'; readonly index: number }
  /** Position of each token, [T]. */
  | { readonly kind: 'positions' }
  /** Rotation angle of each pair per position, [rotatedDim / 2]. */
  | { readonly kind: 'frequencies'; readonly rotary: Rotary }
  /** Factor of cosine and sine, [1]. */
  | { readonly kind: 'amplitude'; readonly rotary: Rotary }
  /** First position that each token sees, [T]. */
  | { readonly kind: 'firstKeys'; readonly window: Window | undefined }
  /** Position of each key, including former calls, [S]. */
  | {
      readonly kind: 'keyPositions';
      readonly window: Window | undefined;
      /** Whether the former keys are rows of the cache. */
      readonly isCached: boolean;
    }
  /** Number of these keys that the next call does not need, [1]. */
  | { readonly kind: 'droppedKeys'; readonly window: Window | undefined }
  /** State of the previous call, or zeros, [B, …shape]. */
  | { readonly kind: 'state'; readonly shape: readonly number[] }
  /** Cached rows that the call sees, [P, B, groups, width]. */
  | {
      readonly kind: 'pastRows';
      readonly window: Window | undefined;
      readonly groups: number;
      readonly width: number;
    }
  /** Number of cached and of new keys that the call sees, P and T, [2]. */
  | { readonly kind: 'keyCounts'; readonly window: Window | undefined }
  /** Position in the call of the first token whose logits are needed, [1]. */
  | { readonly kind: 'firstNeeded' };

/** Element type and shape as the graph declares them. */
export function declarationOf(feed: Feed): {
  readonly type: ElementType;
  readonly shape: readonly (number | string)[];
} {
  switch (feed.kind) {
    case 'ids':
      return { type: 'i32', shape: [BATCH, TOKENS] };
    case 'value':
      return { type: 'f32', shape: [BATCH, TOKENS, 'C'] };
    case 'positions':
    case 'firstKeys':
      return { type: 'i32', shape: [TOKENS] };
    case 'frequencies':
      return { type: 'f32', shape: [feed.rotary.rotatedDim / 2] };
    case 'amplitude':
      return { type: 'f32', shape: [1] };
    case 'keyPositions':
      return { type: 'i32', shape: [`S.${windowKey(feed.window)}`] };
    case 'droppedKeys':
    case 'firstNeeded':
      return { type: 'i64', shape: [1] };
    case 'keyCounts':
      return { type: 'i64', shape: [2] };
    case 'pastRows':
      return {
        type: 'f32',
        shape: [`P.${windowKey(feed.window)}`, BATCH, feed.groups, feed.width],
      };
    case 'state':
      return { type: 'f32', shape: [BATCH, ...feed.shape.map((size) => size || 'P')] };
  }
}

/** One run of a graph. */
export interface Call {
  readonly batch: number;
  readonly tokens: number;
  /** Position of the first token. */
  readonly start: number;
  /** Final number of tokens, when decoding. */
  readonly total: number | undefined;
  readonly ids: TokenIds | undefined;
  readonly inputs: readonly Values[];
  /** States by the name of the input; empty at the beginning. */
  readonly states: ReadonlyMap<string, OrtTensor>;
  /** Keys and values of the sequence. */
  readonly cache: KeyCache;
  /** Number of last tokens whose logits are needed; all when absent. */
  readonly lastTokens?: number | undefined;
}

export function tensorFor(library: Library, name: string, feed: Feed, call: Call): OrtTensor {
  const { Tensor } = library;
  const { batch, tokens, start } = call;
  const integers = (values: Int32Array) => new Tensor('int32', values, [values.length]);
  const longs = (...values: number[]) =>
    new Tensor('int64', BigInt64Array.from(values, BigInt), [values.length]);
  switch (feed.kind) {
    case 'ids':
      return new Tensor('int32', call.ids?.data ?? new Int32Array(batch * tokens), [batch, tokens]);
    case 'value': {
      const { data, shape } = call.inputs[feed.index] ?? { data: [], shape: [0] };
      return new Tensor('float32', data, [...shape]);
    }
    case 'positions':
      return integers(range(start, start + tokens));
    case 'frequencies': {
      const frequencies = rotaryFrequencies(feed.rotary, call.total ?? start + tokens);
      return new Tensor('float32', frequencies, [frequencies.length]);
    }
    case 'amplitude': {
      const amplitude = amplitudeOf(feed.rotary, call.total ?? start + tokens);
      return new Tensor('float32', Float32Array.of(amplitude), [1]);
    }
    case 'firstKeys':
      return integers(firstKeys(call, feed.window));
    case 'keyPositions':
      return integers(range(firstKey(call, feed), start + tokens));
    case 'droppedKeys':
      return longs(droppedKeys(call, feed.window));
    case 'keyCounts':
      return longs(start - firstRow(call, feed.window), tokens);
    case 'firstNeeded':
      return longs(Math.max(0, tokens - (call.lastTokens ?? tokens)));
    case 'pastRows': {
      const span = { from: firstRow(call, feed.window), to: start };
      return call.cache.rows(name, span, [batch, feed.groups, feed.width]);
    }
    case 'state':
      return call.states.get(name) ?? zeroTensor(library, [batch, ...feed.shape]);
  }
}

const range = (from: number, to: number) =>
  Int32Array.from({ length: to - from }, (_, index) => from + index);

function zeroTensor({ Tensor }: Library, shape: readonly number[]): OrtTensor {
  const elements = shape.reduce((product, size) => product * size, 1);
  return new Tensor('float32', new Float32Array(elements), [...shape]);
}

const firstKey = (call: Call, { window, isCached }: Feed & { readonly kind: 'keyPositions' }) =>
  isCached ? firstRow(call, window) : call.start - keptKeys(call, window, call.start);

/**
 * Position of the first cached row that a call reads. There is always one, even if no token sees it: ONNX Runtime 1.30
 * divides by zero in products with no rows.
 */
const firstRow = (call: Call, window: Window | undefined): number =>
  call.start - Math.max(1, keptKeys(call, window, call.start));

/** Number of earlier keys visible to the token at `position`: those to keep after as many tokens. */
function keptKeys({ total }: Call, window: Window | undefined, position: number): number {
  if (total === undefined) return 0;
  const [first = 0] = decodingKeys(position, 1, window, total);
  return position - first;
}

function droppedKeys(call: Call, window: Window | undefined): number {
  const { start, tokens } = call;
  return keptKeys(call, window, start) + tokens - keptKeys(call, window, start + tokens);
}

// Keys and values of a sequence in buffers that its calls share. Rows are in the order of positions. A call reads the
// earlier rows as one view, and ONNX Runtime writes the call's own rows after them. Nothing is copied until a buffer is
// full. Before the first position there is a row of zeros, so that no view is empty.

/** Rows of a new buffer, unless the sequence ends before. A full buffer doubles its size. */
const FIRST_ROWS = 256;

/** Identifies what the first `position` rows contain. */
export interface CacheMark {
  readonly position: number;
  /** Call that wrote the last of these rows; 0 before the first. */
  readonly writer: number;
}

interface Buffer {
  /** Elements of one position. */
  readonly width: number;
  data: Float32Array;
}

/** Positions that a view contains, from −1 on. */
interface Span {
  readonly from: number;
  readonly to: number;
}

/** Cache of one sequence, or of a batch of sequences with the same length. */
export class KeyCache {
  readonly #library: Library;
  readonly #totalTokens: number;
  readonly #buffers = new Map<string, Buffer>();
  /** Call that wrote each row. */
  readonly #writers: number[] = [];
  #capacity = 0;
  #calls = 0;

  constructor(library: Library, totalTokens: number) {
    this.#library = library;
    this.#totalTokens = totalTokens;
  }

  /** Makes room for the rows up to `end`. */
  reserve(end: number): void {
    if (end <= this.#capacity) return;
    const wanted = Math.max(end, 2 * this.#capacity, FIRST_ROWS);
    this.#capacity = Math.min(wanted, this.#totalTokens);
    for (const buffer of this.#buffers.values()) {
      const larger = this.#emptyBuffer(buffer.width);
      larger.set(buffer.data);
      buffer.data = larger;
    }
  }

  /** Rows as a tensor [rows, ...shape] that shares their memory. */
  rows(name: string, { from, to }: Span, shape: readonly number[]): OrtTensor {
    const { data, width } = this.#bufferOf(name, shape);
    const view = data.subarray((from + 1) * width, (to + 1) * width);
    return new this.#library.Tensor('float32', view, [to - from, ...shape]);
  }

  /** Records that a call is about to replace all rows from `from` on. */
  beginWriting({ from, to }: Span): void {
    this.#writers.length = from;
    this.#calls++;
    for (let row = from; row < to; row++) this.#writers.push(this.#calls);
  }

  /** Mark of the first rows; of none where calls write no rows. */
  markAt(tokens: number): CacheMark {
    const position = Math.min(tokens, this.#writers.length);
    return { position, writer: this.#writers[position - 1] ?? 0 };
  }

  /** Whether the rows of a mark are still there. */
  has({ position, writer }: CacheMark): boolean {
    const now = this.markAt(position);
    return now.position === position && now.writer === writer;
  }

  #bufferOf(name: string, shape: readonly number[]): Buffer {
    const known = this.#buffers.get(name);
    if (known) return known;
    const width = shape.reduce((product, size) => product * size, 1);
    const made = { width, data: this.#emptyBuffer(width) };
    this.#buffers.set(name, made);
    return made;
  }

  #emptyBuffer(width: number): Float32Array {
    return new Float32Array((1 + this.#capacity) * width);
  }
}
