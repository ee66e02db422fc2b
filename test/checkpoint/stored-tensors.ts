import { STORED_DTYPES } from '../../src/base/tensor/dtype.js';
import type { ByteFile } from '../../src/checkpoint/byte-file.js';
import type { Checkpoint } from '../../src/checkpoint/checkpoint.js';
import {
  contiguousStrides,
  type StoredBytes,
  type StoredTensor,
} from '../../src/checkpoint/stored-tensor.js';
import { fileOf } from './byte-files.js';

/** New storage of these bytes. */
export function storageOf(bytes: Uint8Array, file: ByteFile = fileOf(bytes)): StoredBytes {
  return { file, position: 0, bytes: bytes.length, isBigEndian: false };
}

/** Tensor in a storage; by default contiguous, at the beginning. */
export function tensorIn(
  storage: StoredBytes,
  shape: readonly number[],
  given: Partial<StoredTensor> = {},
): StoredTensor {
  const elements = shape.reduce((product, size) => product * size, 1);
  const dtype = given.dtype ?? 'F32';
  return {
    kind: 'tensor',
    dtype,
    shape,
    elements,
    strides: contiguousStrides(shape),
    offset: 0,
    storage,
    bytes: (elements * STORED_DTYPES[dtype].bits) / 8,
    ...given,
  };
}

/** float32 tensor with these values; by default a vector. */
export function tensorOf(values: readonly number[], shape = [values.length]): StoredTensor {
  const bytes = new Uint8Array(Float32Array.from(values).buffer);
  return tensorIn(storageOf(bytes), shape);
}

/** Checkpoint of these tensors; by default without other content. */
export function checkpointOf(
  tensors: Readonly<Record<string, StoredTensor>> | ReadonlyMap<string, StoredTensor>,
  given: Partial<Checkpoint> = {},
): Checkpoint {
  const named = tensors instanceof Map ? tensors : new Map(Object.entries(tensors));
  return {
    path: 'model.pt',
    listing: 'file',
    format: 'torch-zip',
    files: [...new Set([...named.values()].map(({ storage }) => storage.file))],
    tensors: named,
    aliases: new Map(),
    metadata: new Map(),
    stateDict: [],
    content: new Map(),
    warnings: [],
    close() {},
    ...given,
  };
}
