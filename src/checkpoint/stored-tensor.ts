import type { Shape, StoredDtype } from '../base/tensor/dtype.js';
import { elementCount } from '../base/tensor/dtype.js';
import type { ByteFile } from './byte-file.js';

/** A byte range of a file that contains tensors. Tensors that share a storage refer to the same object. */
export interface StoredBytes {
  readonly file: ByteFile;
  /** Position of the first byte in the file. */
  readonly position: number;
  readonly bytes: number;
  readonly isBigEndian: boolean;
}

/** Location of a tensor in a file, without its values. The sizes are checked to fit in the file. */
export interface StoredTensor {
  readonly kind: 'tensor';
  readonly dtype: StoredDtype;
  readonly shape: Shape;
  readonly elements: number;
  /** Strides in elements, one per dimension. */
  readonly strides: readonly number[];
  /** Index of the first element in the storage. */
  readonly offset: number;
  readonly storage: StoredBytes;
  /** Bytes when contiguous. */
  readonly bytes: number;
  /** Encoding of the values in the file, if they are not stored as `dtype`: blocks with scales. */
  readonly encoding?: StoredEncoding;
  /** Type and bytes of values that are computed from several tensors, possibly of several files. */
  readonly packing?: Pick<StoredEncoding, 'type' | 'bytes'>;
}

/** Values that are computed from other bytes of a file. */
export interface StoredEncoding {
  /** `Q4_K` */
  readonly type: string;
  readonly file: ByteFile;
  /** Position of the first byte in the file. */
  readonly position: number;
  readonly bytes: number;
  /** Whether the values cannot be read, only their names and sizes. */
  readonly isUnreadable?: boolean;
}

/** Name of a tensor's type in its file. */
export const storedTypeOf = ({ dtype, encoding, packing }: StoredTensor): string =>
  (encoding ?? packing)?.type ?? dtype;

/** Bytes of a tensor in its file, when contiguous there. */
export const encodedBytes = ({ bytes, encoding, packing }: StoredTensor): number =>
  (encoding ?? packing)?.bytes ?? bytes;

/** Whether two tensors are the same view: same storage, dtype, shape, strides and offset. */
export function isSameView(a: StoredTensor, b: StoredTensor): boolean {
  return (
    a === b ||
    (a.storage === b.storage &&
      a.dtype === b.dtype &&
      a.offset === b.offset &&
      a.shape.length === b.shape.length &&
      a.shape.every((size, axis) => size === b.shape[axis]) &&
      a.strides.every((stride, axis) => stride === b.strides[axis]))
  );
}

export function contiguousStrides(shape: Shape): number[] {
  const strides = new Array<number>(shape.length);
  let stride = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    strides[axis] = stride;
    stride *= Math.max(1, shape[axis] ?? 1);
  }
  return strides;
}

/** A contiguous tensor that fills a whole file. */
export function tensorIn(file: ByteFile, dtype: StoredDtype, shape: Shape): StoredTensor {
  return {
    kind: 'tensor',
    dtype,
    shape,
    elements: elementCount(shape) ?? Number.NaN,
    strides: contiguousStrides(shape),
    offset: 0,
    storage: { file, position: 0, bytes: file.size, isBigEndian: false },
    bytes: file.size,
  };
}

/** Whether the elements are contiguous in row-major order. */
export function isContiguous({ shape, strides, elements }: StoredTensor): boolean {
  if (elements === 0) return true;
  let expected = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    const size = shape[axis] ?? 1;
    if (size !== 1 && strides[axis] !== expected) return false;
    expected *= size;
  }
  return true;
}
