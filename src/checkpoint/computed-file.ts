import { decodeValues } from '../base/tensor/decode-values.js';
import type { Shape, StoredDtype } from '../base/tensor/dtype.js';
import { encode } from '../base/tensor/encode.js';
import { ByteFile } from './byte-file.js';
import type { StoredEncoding, StoredTensor } from './stored-tensor.js';
import { tensorIn } from './stored-tensor.js';
import { readRows, rowBytes, rowCount } from './view.js';

/** Fills `target` with the bytes from `position` on. */
export type FillBytes = (target: Uint8Array, position: number) => void;

/** Bytes that are computed from another file when they are read, without a copy of them all. */
class ComputedFile extends ByteFile {
  readonly #origin: ByteFile;
  readonly #fill: FillBytes;

  constructor(origin: ByteFile, bytes: number, fill: FillBytes) {
    super(origin.path, { size: bytes, mtimeMs: origin.changedAt });
    this.#origin = origin;
    this.#fill = fill;
  }

  override readInto(target: Uint8Array, position: number): void {
    this.#fill(target, position);
  }

  override async readIntoAsync(target: Uint8Array, position: number): Promise<void> {
    this.#fill(target, position);
  }

  override get isComputed(): boolean {
    return true;
  }

  override hasChanged(): boolean {
    return this.#origin.hasChanged();
  }

  override close(): void {
    // The origin is closed by its owner.
  }

  override locate(): string {
    throw new Error(`values computed from ${this.path} have no place in it`);
  }
}

export interface ComputedValues {
  readonly dtype: StoredDtype;
  readonly shape: Shape;
  /** Bytes of all values. */
  readonly bytes: number;
  readonly encoding?: StoredEncoding;
  readonly fill: FillBytes;
}

/** A contiguous tensor whose values are computed from a file. */
export function computedTensor(
  origin: ByteFile,
  { dtype, shape, bytes, encoding, fill }: ComputedValues,
): StoredTensor {
  const file = new ComputedFile(origin, bytes, fill);
  return { ...tensorIn(file, dtype, shape), ...(encoding && { encoding }) };
}

/**
 * The elements of a view, in its order, as a contiguous tensor of another shape.
 * @param view A view of whole bytes per element.
 */
export function reshaped(view: StoredTensor, shape: Shape): StoredTensor {
  const { dtype, elements, bytes, encoding, storage } = view;
  return computedTensor(storage.file, {
    ...{ dtype, shape, elements, bytes },
    ...(encoding && { encoding }),
    fill: (target, position) => readElements(view, position / (bytes / elements), target),
  });
}

/** A matrix with its axes swapped, contiguous; a tensor with another number of axes is returned unchanged. */
export function transposedTensor(tensor: StoredTensor): StoredTensor {
  if (tensor.shape.length !== 2) return tensor;
  const [shape, strides] = [tensor.shape.toReversed(), tensor.strides.toReversed()];
  return reshaped({ ...tensor, shape, strides }, shape);
}

/** Reads elements of a view in row-major order: whole rows at once, parts of a row through the next axis. */
function readElements(view: StoredTensor, first: number, target: Uint8Array): void {
  if (target.length === 0) return;
  const size = rowBytes(view);
  const width = view.bytes / view.elements;
  const perRow = size / width;
  let done = 0;
  let element = first;
  while (done < target.length) {
    const row = Math.floor(element / perRow);
    const inRow = element % perRow;
    const left = target.length - done;
    if (inRow === 0 && left >= size) {
      const rows = Math.min(Math.floor(left / size), rowCount(view) - row);
      readRows(view, row, rows, target.subarray(done, done + rows * size));
      done += rows * size;
      element += rows * perRow;
    } else {
      const bytes = Math.min(size - inRow * width, left);
      readElements(viewRow(view, row), inRow, target.subarray(done, done + bytes));
      done += bytes;
      element += bytes / width;
    }
  }
}

/** One row without its axis; of a vector, one element. */
function viewRow(view: StoredTensor, row: number): StoredTensor {
  const rows = rowCount(view);
  return {
    ...view,
    shape: view.shape.slice(1),
    strides: view.strides.slice(1),
    offset: view.offset + row * (view.strides[0] ?? 0),
    elements: view.elements / rows,
    bytes: view.bytes / rows,
  };
}

/** Values of a tensor through a function, in float32. */
export function mapped(tensor: StoredTensor, change: (value: number) => number): StoredTensor {
  const { shape, elements, dtype, storage } = tensor;
  return computedTensor(storage.file, {
    ...{ dtype: 'F32', shape, elements },
    bytes: 4 * elements,
    fill(target, position) {
      const source = new Uint8Array((target.length / 4) * (tensor.bytes / elements));
      readElements(tensor, position / 4, source);
      const numbers = new Float64Array(target.length / 4);
      decodeValues(dtype, source, numbers);
      encode('F32', numbers.map(change), target);
    },
  });
}

/** Tensors of one dtype after each other, as a contiguous tensor. */
export function concatenated(
  parts: readonly [StoredTensor, ...StoredTensor[]],
  shape: Shape,
): StoredTensor {
  const [{ dtype, storage }] = parts;
  const contiguous = parts.map((part) => reshaped(part, part.shape));
  const bytes = parts.reduce((sum, part) => sum + part.bytes, 0);
  return computedTensor(storage.file, {
    ...{ dtype, shape, bytes },
    fill(target, position) {
      let start = 0;
      for (const part of contiguous) {
        const from = Math.max(position, start);
        const to = Math.min(position + target.length, start + part.bytes);
        if (from < to) {
          part.storage.file.readInto(target.subarray(from - position, to - position), from - start);
        }
        start += part.bytes;
      }
    },
  });
}
