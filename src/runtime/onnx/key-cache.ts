/**
 * Keys and values of a sequence in buffers that its calls share. Rows are in the order of positions: a call reads those
 * before it as one view, and ONNX Runtime writes its own behind them. Nothing is copied until a buffer is full. Before
 * the first position there is a row of zeros, so that no view is empty.
 */
import type { Library, OrtTensor } from './library.js';

/** Rows of a new buffer, unless the sequence ends before. A full one doubles. */
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

  /** Notes that a call is about to replace all rows from `from` on. */
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
