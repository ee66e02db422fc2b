import { randomUUID } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { open } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { UserError } from '../../base/errors.js';
import { TemporaryFolder } from '../../base/files/temporary.js';
import type { WeightForm } from '../../base/tensor/group-quantization.js';
import type { Param } from '../../model/architecture/param.js';
import type { WeightMatrix } from '../../model/architecture/weight-matrices.js';
import { quantizedPieces } from '../weights/quantized-weights.js';
import type { MappableDtype, WeightSource } from '../weights/weights.js';
import type { InitializerLookup, QuantizedWeight, Rows } from './context.js';
import type { ElementType, Initializer, InitializerBytes } from './proto.js';
import type { QuantizedPart } from './quantized-products.js';
import { partBytes, partLayout, QUANTIZED_PARTS, quantizedWeight } from './quantized-products.js';

// Weights as the bytes of a file that ONNX Runtime reads: float32, little-endian.

/** Tensors begin at multiples of the page size, so that they can be mapped. */
const ALIGNMENT = 4096;
/** Elements read and written at a time. */
const PIECE_ELEMENTS = 2 ** 20;

/** Start of the next tensor after data that ends at `position`. */
export const aligned = (position: number): number => Math.ceil(position / ALIGNMENT) * ALIGNMENT;

/** `count` elements of a tensor from `first` on, in pieces that reuse their memory. */
export function* weightBytes(
  source: WeightSource,
  tensor: Param,
  first: number,
  count: number,
): Generator<Uint8Array> {
  const piece = new Float32Array(Math.min(PIECE_ELEMENTS, count));
  for (let done = 0; done < count; done += piece.length) {
    const values = piece.subarray(0, Math.min(piece.length, count - done));
    source.read(tensor, first + done, values);
    yield new Uint8Array(values.buffer, 0, values.byteLength);
  }
}

// Temporary files for weights: ONNX Runtime reads weights from files only.

const FLOAT_BYTES = Float32Array.BYTES_PER_ELEMENT;

/** A quantized matrix, and the positions of its parts. */
interface SpooledMatrix {
  readonly matrix: WeightMatrix;
  readonly form: WeightForm;
  readonly positions: Readonly<Record<QuantizedPart, number>>;
}

/** A private file of float32 tensors and quantized matrices, which only the user may read, until it is removed. */
export class Spool {
  readonly #tensors: { readonly tensor: Param; readonly position: number }[] = [];
  readonly #matrices: SpooledMatrix[] = [];
  readonly #folder = temporaryFolder();
  #end = 0;

  /** The file, in a folder of its own. */
  readonly file = path.join(this.#folder.path, randomUUID());

  /** Position at which a tensor will begin in the file. */
  add(tensor: Param): number {
    const position = this.#reserve(tensor.elements * FLOAT_BYTES);
    this.#tensors.push({ tensor, position });
    return position;
  }

  /** Positions of the parts of a quantized matrix. */
  addQuantized(matrix: WeightMatrix, form: WeightForm): Readonly<Record<QuantizedPart, number>> {
    const [codes = 0, scales = 0, zeroPoints = 0] = QUANTIZED_PARTS.map((part) =>
      this.#reserve(matrix.rows * partLayout(part, matrix, form, matrix.rows).rowBytes),
    );
    const positions = { codes, scales, zeroPoints };
    this.#matrices.push({ matrix, form, positions });
    return positions;
  }

  #reserve(bytes: number): number {
    const position = aligned(this.#end);
    this.#end = position + bytes;
    return position;
  }

  /** Writes all tensors: matrices from `source`, the others from `floats`. @throws UserError when the system refuses; rethrows errors of the source. */
  async write(source: WeightSource, floats = source): Promise<void> {
    try {
      const handle = await open(this.file, 'wx', 0o600);
      try {
        for (const { tensor, position } of this.#tensors) {
          await writeTensor(handle, floats, tensor, position);
        }
        for (const each of this.#matrices) await writeMatrix(handle, source, each);
      } finally {
        await handle.close();
      }
    } catch (error) {
      throw cannotSpool(path.dirname(this.file), this.#end, error);
    }
  }

  /** Can be repeated when the system did not delete the file the time before. */
  remove(): void {
    this.#folder.remove();
  }
}

/** @throws UserError without a folder for weights. */
function temporaryFolder(): TemporaryFolder {
  try {
    return new TemporaryFolder();
  } catch (error) {
    const cause = error instanceof UserError && error.cause !== undefined ? error.cause : error;
    throw cannotSpool(os.tmpdir(), 0, cause);
  }
}

async function writeTensor(
  handle: FileHandle,
  source: WeightSource,
  tensor: Param,
  position: number,
): Promise<void> {
  let end = position;
  for (const bytes of weightBytes(source, tensor, 0, tensor.elements)) {
    await writeFully(handle, bytes, end);
    end += bytes.length;
  }
}

/** Quantizes a matrix once, for all its parts. */
async function writeMatrix(
  handle: FileHandle,
  source: WeightSource,
  { matrix, form, positions }: SpooledMatrix,
): Promise<void> {
  const ends = { ...positions };
  for (const piece of quantizedPieces(source, matrix, form)) {
    for (const part of QUANTIZED_PARTS) {
      const bytes = partBytes(part, piece, form);
      await writeFully(handle, bytes, ends[part]);
      ends[part] += bytes.length;
    }
  }
}

async function writeFully(handle: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await handle.write(bytes, done, bytes.length - done, position + done);
    done += bytesWritten;
  }
}

function cannotSpool(folder: string, bytes: number, error: unknown): unknown {
  if (!(error instanceof Error && 'syscall' in error)) return error;
  return new UserError('system', `cannot keep weights in ${folder}: ${error.message}`, {
    suggestion:
      bytes === 0
        ? 'set TMPDIR to a folder that can be written to'
        : `set TMPDIR to a folder that has ${Math.ceil(bytes / 1e6)} MB to spare`,
    cause: error,
  });
}

/** Element types that a graph can read directly from a file. */
const IN_PLACE = {
  F32: 'f32',
  F16: 'f16',
  BF16: 'bf16',
} as const satisfies Record<MappableDtype, ElementType>;

/** Maximum elements of a tensor that is stored in the graph itself. */
const FEW_ELEMENTS = 256;

type PlacedMatrix = Readonly<Record<QuantizedPart, Initializer>>;

/**
 * Locations of a graph's weights: the user's own file where it has the needed format, else a spool. ONNX Runtime
 * accepts file names below one folder, without `..` or symbolic links. That folder is the root of the file system, so
 * that files of several folders can be used.
 */
export class PlacedWeights {
  readonly #source: WeightSource;
  readonly #floats: WeightSource;
  readonly #placed = new Map<Param, Initializer>();
  readonly #quantized = new Map<Param, PlacedMatrix>();
  #spool: Spool | undefined;

  /** @param floats Source of the tensors that are read as floats: of a quantized matrix, its quantized values. */
  constructor(source: WeightSource, floats = source) {
    this.#source = source;
    this.#floats = floats;
  }

  /** The folder that the locations of all initializers are relative to. */
  readonly root = path.parse(os.tmpdir()).root;

  /** The initializer of a tensor, or of some rows of it; always the same one. */
  place(...[tensor, rows]: Parameters<InitializerLookup>): Initializer {
    const placed = this.#whole(tensor);
    return rows === undefined ? placed : initializerRows(placed, rows);
  }

  /** The initializers of a quantized matrix, or of some rows of it; always the same ones. */
  placeQuantized(matrix: WeightMatrix, form: WeightForm, rows?: Rows): QuantizedWeight {
    const known = this.#quantized.get(matrix.tensor) ?? this.#quantize(matrix, form);
    this.#quantized.set(matrix.tensor, known);
    return quantizedWeight(matrix, form, rows, (part) => known[part]);
  }

  #quantize(matrix: WeightMatrix, form: WeightForm): PlacedMatrix {
    this.#spool ??= new Spool();
    const { file } = this.#spool;
    const positions = this.#spool.addQuantized(matrix, form);
    const name = `quantized${this.#quantized.size}:${matrix.tensor.name}`;
    const initializer = (part: QuantizedPart): Initializer => {
      const { type, shape, rowBytes } = partLayout(part, matrix, form, matrix.rows);
      const bytes = this.#locate(file, positions[part], matrix.rows * rowBytes);
      return { name: `${name}:${part}`, type, shape, bytes };
    };
    return {
      codes: initializer('codes'),
      scales: initializer('scales'),
      zeroPoints: initializer('zeroPoints'),
    };
  }

  /** Writes the weights that are not in a file of the user's to the locations from `place`. */
  async write(): Promise<void> {
    await this.#spool?.write(this.#source, this.#floats);
  }

  /** Frees data that a created session does not need. */
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
    const range = this.#floats.rangeOf(tensor);
    // On Windows the file may be on another drive than the spool.
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
    this.#floats.read(tensor, 0, values);
    return { raw: new Uint8Array(values.buffer) };
  }

  #locate(file: string, offset: number, length: number): InitializerBytes {
    return { location: path.relative(this.root, file), offset, length };
  }
}

/** Some rows of an initializer. */
export function initializerRows(
  { name, type, shape, bytes }: Initializer,
  rows: Rows,
): Initializer {
  const columns = shape.at(-1) ?? 1;
  const all = shape.reduce((product, size) => product * size, 1) / columns;
  return {
    name: `${name}:${rows.first}+${rows.count}`,
    type,
    shape: [rows.count, columns],
    bytes: bytesOfRows(bytes, rows, all),
  };
}

/** @param all Number of rows in the bytes. */
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
