/** Checkpoints for conversions, written to files. */
import fs from 'node:fs';
import path from 'node:path';
import type { ByteSink } from '../../../src/base/files/write-whole.js';
import { STORED_DTYPES, type StoredDtype } from '../../../src/base/tensor/dtype.js';
import { encode, isEncodable } from '../../../src/base/tensor/encode.js';
import { writeSafetensors } from '../../../src/checkpoint/safetensors/write-safetensors.js';
import { contiguousStrides } from '../../../src/checkpoint/stored-tensor.js';
import type { Writable, WritableTensor } from '../../../src/checkpoint/torch/pickle/writable.js';
import { MemorySink } from '../../checkpoint/safetensors/tensors.js';
import { folderOf } from '../../checkpoint/temp-folder.js';
import { writeTorch } from '../../checkpoint/torch/write-builder.js';

/** Tensor for a file, with its bytes. */
export interface Made {
  readonly dtype: StoredDtype;
  readonly shape: readonly number[];
  readonly bytes: Uint8Array;
}

/** Tensors by name. The same object under several names is one storage. */
export type MadeTensors = Readonly<Record<string, Made>> | ReadonlyMap<string, Made>;

export function made(
  shape: readonly number[],
  values: readonly number[] | ((index: number) => number),
  dtype: StoredDtype = 'F32',
): Made {
  const length = shape.reduce((product, size) => product * size, 1);
  const numbers = Float64Array.from({ length }, (_, index) =>
    typeof values === 'function' ? values(index) : (values[index] ?? 0),
  );
  const bytes = new Uint8Array((length * STORED_DTYPES[dtype].bits) / 8);
  if (!isEncodable(dtype)) throw new Error(`cannot encode ${dtype}: use raw()`);
  encode(dtype, numbers, bytes);
  return { dtype, shape, bytes };
}

/** Tensor of given bytes. */
export const raw = (
  dtype: StoredDtype,
  shape: readonly number[],
  bytes: readonly number[],
): Made => ({
  dtype,
  shape,
  bytes: Uint8Array.from(bytes),
});

const entriesOf = (tensors: MadeTensors) =>
  tensors instanceof Map ? [...tensors] : Object.entries(tensors);

/** Safetensors file, with further names of a tensor in its metadata. */
export async function safetensorsFile(
  tensors: MadeTensors,
  name = 'model.safetensors',
): Promise<string> {
  const first = new Map<Made, string>();
  const aliases = new Map<string, string>();
  for (const [each, tensor] of entriesOf(tensors)) {
    const known = first.get(tensor);
    if (known === undefined) first.set(tensor, each);
    else aliases.set(each, known);
  }
  const toWrite = Array.from(first, ([{ bytes, ...tensor }, each]) => ({
    ...tensor,
    name: each,
    chunks: () => [bytes],
  }));
  return written(name, (sink) => writeSafetensors(sink, toWrite, aliases));
}

/** PyTorch file with the state dict, or with the value that `around` makes of it. */
export function torchFile(
  tensors: MadeTensors,
  around: (stateDict: Writable) => Writable = (stateDict) => stateDict,
  name = 'model.pt',
): Promise<string> {
  const known = new Map<Made, WritableTensor>();
  const entries = entriesOf(tensors).map(([each, tensor]): [Writable, Writable] => {
    const { dtype, shape, bytes } = tensor;
    const stored: WritableTensor = known.get(tensor) ?? {
      kind: 'tensor',
      dtype,
      shape,
      strides: contiguousStrides(shape),
      offset: 0,
      storage: { bytes: bytes.length, chunks: () => [bytes] },
    };
    known.set(tensor, stored);
    return [each, stored];
  });
  const stateDict = dictOf(entries, 'collections.OrderedDict');
  return written(name, (sink) => writeTorch(sink, around(stateDict), 'archive'));
}

export const dictOf = (entries: readonly [Writable, Writable][], type = 'dict'): Writable => ({
  kind: 'dict',
  type,
  entries: new Map(entries),
});

async function written(name: string, fill: (sink: ByteSink) => Promise<void>): Promise<string> {
  const sink = new MemorySink();
  await fill(sink);
  const file = path.join(folderOf({}), name);
  fs.writeFileSync(file, sink.bytes());
  return file;
}

/** Different tables [1, rows, columns] of each layer, and an unrelated tensor. */
export function layersOf(
  layers: number,
  [rows, columns]: readonly [number, number],
  dtype: StoredDtype = 'F32',
): Record<string, Made> {
  const tables = Array.from({ length: layers }, (_, layer) => [
    `layers.${layer}.srte.freqs`,
    made([1, rows, columns], (index) => Math.sin(1 + index * (layer + 1)), dtype),
  ]);
  return {
    'embed.weight': made([3, columns], (index) => index - 1.5),
    ...Object.fromEntries(tables),
  };
}
