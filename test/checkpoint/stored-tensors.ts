import type { ByteFile } from '../../src/checkpoint/byte-file.js';
import type { Checkpoint } from '../../src/checkpoint/checkpoint.js';
import {
  contiguousStrides,
  type StoredBytes,
  type StoredTensor,
} from '../../src/checkpoint/stored-tensor.js';
import { STORED_DTYPES } from '../../src/tensor/dtype.js';
import { fileOf } from './byte-files.js';

/** A storage of its own for these bytes. */
export function storageOf(bytes: Uint8Array, file: ByteFile = fileOf(bytes)): StoredBytes {
  return { file, position: 0, bytes: bytes.length, isBigEndian: false };
}

/** A tensor in a storage; contiguous and at its beginning, if nothing else is said. */
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

/** A float32 tensor with these values, one dimension if no shape is given. */
export function tensorOf(values: readonly number[], shape = [values.length]): StoredTensor {
  const bytes = new Uint8Array(Float32Array.from(values).buffer);
  return tensorIn(storageOf(bytes), shape);
}

/** A checkpoint of these tensors, with nothing else in it if nothing else is said. */
export function checkpointOf(
  tensors: Readonly<Record<string, StoredTensor>> | ReadonlyMap<string, StoredTensor>,
  given: Partial<Checkpoint> = {},
): Checkpoint {
  const named = tensors instanceof Map ? tensors : new Map(Object.entries(tensors));
  return {
    path: 'model.pt',
    format: 'torch-zip',
    files: [...new Set([...named.values()].map(({ storage }) => storage.file))],
    tensors: named,
    ambiguous: [],
    aliases: new Map(),
    metadata: new Map(),
    stateDict: [],
    content: new Map(),
    warnings: [],
    close() {},
    ...given,
  };
}
