import fs from 'node:fs';
import path from 'node:path';
import type { ByteSink } from '../../../src/base/files/write-whole.js';
import { writeSafetensors } from '../../../src/checkpoint/safetensors/write-safetensors.js';
import type { StoredTensor } from '../../../src/checkpoint/stored-tensor.js';
import type {
  Writable,
  WritableDict,
  WritableTensor,
} from '../../../src/checkpoint/torch/pickle/writable.js';
import { readTensor } from '../../../src/checkpoint/view.js';
import { writeTorch } from '../torch/write-builder.js';
import { LARGEST } from './support.js';

/** Writes a whole file. */
async function written(file: string, write: (sink: ByteSink) => Promise<void>): Promise<string> {
  const parts: Buffer[] = [];
  let position = 0;
  await write({
    get position() {
      return position;
    },
    async write(bytes) {
      parts.push(Buffer.from(bytes));
      position += bytes.length;
    },
  });
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, Buffer.concat(parts));
  return file;
}

export const safetensorsFile = (
  file: string,
  tensors: ReadonlyMap<string, StoredTensor>,
  metadata: Record<string, string> = {},
) =>
  written(file, (sink) =>
    writeSafetensors(
      sink,
      [...tensors].map(([name, tensor]) => ({
        name,
        dtype: tensor.dtype,
        shape: tensor.shape,
        chunks: () => [readTensor(tensor)],
      })),
      new Map(Object.entries(metadata)),
    ),
  );

/** Plain data as Python values; a number that must be a float is given as one. */
function pythonOf(data: unknown): Writable {
  if (Array.isArray(data)) return { kind: 'list', items: data.map(pythonOf) };
  if (typeof data === 'number' && !Number.isInteger(data)) return { kind: 'float', value: data };
  if (typeof data !== 'object' || data === null) return data as Writable;
  if ('kind' in data) return data as Writable;
  return dict(Object.entries(data).map(([key, value]) => [key, pythonOf(value)]));
}

const dict = (entries: readonly (readonly [string, Writable])[]): WritableDict => ({
  kind: 'dict',
  type: 'dict',
  entries: new Map(entries),
});

/** Replaces missing values by zeros. */
function withValues(tensor: StoredTensor): WritableTensor {
  const { bytes } = tensor;
  if (bytes <= LARGEST) return tensor;
  return { ...tensor, storage: { bytes, chunks: () => [new Uint8Array(bytes)] } };
}

/** A training checkpoint of tensors and other content. */
export const torchFile = (
  file: string,
  tensors: ReadonlyMap<string, StoredTensor>,
  content: Record<string, unknown> = {},
) =>
  written(file, (sink) =>
    writeTorch(
      sink,
      dict([
        ['step', 30],
        [
          'model_state_dict',
          dict([...tensors].map(([name, tensor]) => [name, withValues(tensor)])),
        ],
        ...Object.entries(content).map(([key, value]) => [key, pythonOf(value)] as const),
      ]),
    ),
  );
