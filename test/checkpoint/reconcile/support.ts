import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { Shape, StoredDtype } from '../../../src/base/tensor/dtype.js';
import { elementCount, STORED_DTYPES } from '../../../src/base/tensor/dtype.js';
import { ByteFile } from '../../../src/checkpoint/byte-file.js';
import { contiguousStrides, type StoredTensor } from '../../../src/checkpoint/stored-tensor.js';
import { descriptionOf } from '../../../src/input/model-input/checkpoint/checkpoint-config.js';
import type { LanguageModel } from '../../../src/model/architecture/layer.js';
import { hybrid } from '../../../src/model/architecture/models/hybrid.js';
import { stateDictOf } from '../../../src/model/architecture/walk.js';

/** Four layers of eight values, each with a separate SRTE table. */
export const SMALL = {
  vocab_size: 17,
  hidden_size: 8,
  num_layers: 4,
  num_heads: 2,
  gate_rank: 4,
  max_position_embeddings: 12,
  srte_share_across_layers: false,
} as const;

export function describeModel(change: Record<string, unknown> = {}) {
  const document = hybrid.schema.parse({ model: { ...SMALL, ...change } });
  const model = hybrid.build(document);
  return descriptionOf({ file: 'model.yaml', family: hybrid, document, model, warnings: [] });
}

export interface TensorOptions {
  readonly dtype?: StoredDtype;
  /** Equal seeds make equal values. */
  readonly seed?: number;
}

/** Makes tensors one after the other in a file of a temporary folder. */
export class Workshop {
  readonly #folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
  readonly #descriptor = fs.openSync(path.join(this.#folder, 'data'), 'w+');
  readonly #file = ByteFile.open(path.join(this.#folder, 'data'));
  #position = 0;
  #made = 0;

  tensor(shape: Shape, { dtype = 'F32', seed = this.#made + 1000 }: TensorOptions = {}) {
    this.#made++;
    const elements = elementCount(shape) ?? Number.NaN;
    const bytes = (elements * STORED_DTYPES[dtype].bits) / 8;
    const storage = { file: this.#file, position: this.#position, bytes, isBigEndian: false };
    // No test reads the values of large tensors.
    if (bytes <= LARGEST) {
      fs.writeSync(this.#descriptor, Buffer.alloc(bytes, bytesOfSeed(seed)));
      this.#position += bytes;
    }
    const tensor: StoredTensor = {
      kind: 'tensor',
      dtype,
      shape,
      elements,
      strides: contiguousStrides(shape),
      offset: 0,
      storage,
      bytes,
    };
    return tensor;
  }

  /** State dict of a model, with one tensor for all of its names. */
  stateDict(model: LanguageModel, buffers = true): Map<string, StoredTensor> {
    const made = new Map<object, StoredTensor>();
    const tensors = new Map<string, StoredTensor>();
    for (const { name, tensor } of stateDictOf(model)) {
      if (tensor.role === 'buffer' && !buffers) continue;
      const stored = made.get(tensor) ?? this.tensor(tensor.shape);
      made.set(tensor, stored);
      tensors.set(name, stored);
    }
    return tensors;
  }

  close() {
    this.#file.close();
    fs.closeSync(this.#descriptor);
    fs.rmSync(this.#folder, { recursive: true });
  }
}

/** Bytes of the largest tensor with values; the tables of RoPE are larger. */
export const LARGEST = 1 << 16;

const bytesOfSeed = (seed: number) => Buffer.from(Float32Array.of(Math.sin(seed)).buffer);
