import os from 'node:os';
import path from 'node:path';
import type { Param } from '../../architecture/param.js';
import type { MappableDtype, WeightSource } from '../weights.js';
import type { Place, Rows } from './context.js';
import type { ElementType, Initializer, InitializerBytes } from './proto.js';
import { Spool } from './spool.js';

/** Element types of what a graph reads as it lies in a file. */
const IN_PLACE = {
  F32: 'f32',
  F16: 'f16',
  BF16: 'bf16',
} as const satisfies Record<MappableDtype, ElementType>;

/** Tensors of fewer elements stand in the graph itself. */
const FEW_ELEMENTS = 256;

/**
 * Where a graph finds its weights: in the user's own file where one holds them as they are needed, else in
 * a spool. ONNX Runtime takes names of files below one folder, and neither `..` nor a symbolic link in
 * them; that folder is the root of the file system, so that files of several folders can be used.
 */
export class PlacedWeights {
  readonly #source: WeightSource;
  readonly #placed = new Map<Param, Initializer>();
  #spool: Spool | undefined;

  constructor(source: WeightSource) {
    this.#source = source;
  }

  /** The folder from which the locations of all initializers lead on. */
  readonly root = path.parse(os.tmpdir()).root;

  /** What the graph says of a tensor, or of some rows of it; each time the same. */
  place(...[tensor, rows]: Parameters<Place>): Initializer {
    const placed = this.#whole(tensor);
    return rows === undefined ? placed : rowsOf(placed, rows);
  }

  /** Brings the weights that are in no file of the user's to where `place` said that they are. */
  async write(): Promise<void> {
    await this.#spool?.write(this.#source);
  }

  /** Frees what a session does not need once it has been made. */
  release(): void {
    this.#spool?.remove();
  }

  #whole(tensor: Param): Initializer {
    const known = this.#placed.get(tensor);
    if (known !== undefined) return known;
    const initializer = {
      name: `weight${this.#placed.size}:${tensor.name}`,
      shape: tensor.shape,
      ...this.#find(tensor),
    };
    this.#placed.set(tensor, initializer);
    return initializer;
  }

  #find(tensor: Param): { type: ElementType; bytes: InitializerBytes } {
    if (tensor.elements < FEW_ELEMENTS) return { type: 'f32', bytes: this.#inline(tensor) };
    const range = this.#source.rangeOf(tensor);
    // On Windows it may be on another drive than the spool.
    if (range && path.parse(range.path).root === this.root) {
      const type = IN_PLACE[range.dtype];
      return { type, bytes: this.#locate(range.path, range.position, range.bytes) };
    }
    this.#spool ??= new Spool();
    const position = this.#spool.add(tensor);
    const bytes = tensor.elements * Float32Array.BYTES_PER_ELEMENT;
    return { type: 'f32', bytes: this.#locate(this.#spool.file, position, bytes) };
  }

  #inline(tensor: Param): InitializerBytes {
    const values = new Float32Array(tensor.elements);
    this.#source.read(tensor, 0, values);
    return { raw: new Uint8Array(values.buffer) };
  }

  #locate(file: string, offset: number, length: number): InitializerBytes {
    return { location: path.relative(this.root, file), offset, length };
  }
}

/** Some rows of what an initializer holds. */
export function rowsOf({ name, type, shape, bytes }: Initializer, rows: Rows): Initializer {
  const columns = shape.at(-1) ?? 1;
  const all = shape.reduce((product, size) => product * size, 1) / columns;
  return {
    name: `${name}:${rows.first}+${rows.count}`,
    type,
    shape: [rows.count, columns],
    bytes: bytesOfRows(bytes, rows, all),
  };
}

/** @param all How many rows the bytes are those of. */
function bytesOfRows(
  bytes: InitializerBytes,
  { first, count }: Rows,
  all: number,
): InitializerBytes {
  if ('raw' in bytes) {
    const size = bytes.raw.length / all;
    return { raw: bytes.raw.subarray(first * size, (first + count) * size) };
  }
  const size = bytes.length / all;
  return { ...bytes, offset: bytes.offset + first * size, length: count * size };
}
