import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { UserError } from '../../src/base/errors.js';
import { openCheckpoint } from '../../src/checkpoint/open.js';
import type { StoredTensor } from '../../src/checkpoint/stored-tensor.js';
import { readTensor } from '../../src/checkpoint/view.js';
import type { WeightSource } from '../../src/engine/weights/weights.js';
import { checkpointWeights } from '../../src/engine/weights/weights.js';
import type { LanguageModel } from '../../src/model/architecture/layer.js';
import type { Param } from '../../src/model/architecture/param.js';
import { tensorsOf } from '../../src/model/architecture/walk.js';
import { torchFile } from '../checkpoint/reconcile/files.js';
import { checkpointOf, storageOf, tensorIn } from '../checkpoint/stored-tensors.js';
import { fixtureModel, modelOfConfig, valuesOf } from './fixture-models.js';

const folder = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), 'minimind-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));

function read(weights: WeightSource, tensor: Param, first = 0, count = tensor.elements): number[] {
  const target = new Float32Array(count);
  weights.read(tensor, first, target);
  return [...target];
}

const named = (model: LanguageModel, name: string): Param => {
  const tensor = tensorsOf(model).find((each) => each.name === name);
  if (!tensor) throw new Error(name);
  return tensor;
};

const MODEL = modelOfConfig({
  vocab_size: 6,
  hidden_size: 4,
  num_layers: 2,
  num_heads: 1,
  gate_rank: 2,
  max_position_embeddings: 8,
  tie_word_embeddings: true,
});

/** A state dict of zeros without buffers, with some tensors replaced. */
function tensorsWith(change: Record<string, StoredTensor | undefined> = {}) {
  const tensors = new Map<string, StoredTensor>();
  for (const { name, shape, elements, role } of tensorsOf(MODEL)) {
    if (role === 'parameter') {
      tensors.set(name, tensorIn(storageOf(new Uint8Array(4 * elements)), shape));
    }
  }
  for (const [name, tensor] of Object.entries(change)) {
    if (tensor) tensors.set(name, tensor);
    else tensors.delete(name);
  }
  return tensors;
}

describe('the weights of a checkpoint', () => {
  const { model, checkpoint, weights } = fixtureModel('shared-lowrank-tied');

  it('equal its tensors, in any part', () => {
    for (const tensor of tensorsOf(model).filter(({ role }) => role === 'parameter')) {
      const stored = checkpoint.tensors.get(tensor.name);
      const expected = stored ? [...valuesOf(stored).data] : [];
      expect(read(weights, tensor)).toEqual(expected);
      const middle = Math.floor(tensor.elements / 2);
      expect(read(weights, tensor, middle, 1)).toEqual(expected.slice(middle, middle + 1));
    }
  });

  it('are in the file at their stated place', () => {
    const tensor = named(model, 'layers.1.gate.u.weight');
    const range = weights.rangeOf(tensor);
    if (!range) throw new Error('no range');
    expect(range).toMatchObject({ bytes: 4 * tensor.elements, dtype: 'F32' });
    expect(range.path).toBe(fs.realpathSync(checkpoint.path));
    const file = fs.readFileSync(range.path);
    const bytes = file.subarray(range.position, range.position + range.bytes);
    expect([...new Float32Array(Uint8Array.from(bytes).buffer)]).toEqual(read(weights, tensor));
  });

  it('are in the target of a link', () => {
    const link = path.join(folder, 'link.safetensors');
    fs.symlinkSync(checkpoint.path, link);
    const linked = openCheckpoint(link);
    const tensor = named(model, 'norm.weight');
    expect(checkpointWeights(model, linked).rangeOf(tensor)?.path).toBe(
      fs.realpathSync(checkpoint.path),
    );
    linked.close();
  });

  it('can be read in place from PyTorch files, too', async () => {
    const file = await torchFile(path.join(folder, 'model.pt'), checkpoint.tensors);
    const torch = openCheckpoint(file);
    const own = checkpointWeights(model, torch);
    const tensor = named(model, 'layers.2.mamba.in_proj.weight');
    const range = own.rangeOf(tensor);
    const bytes = fs
      .readFileSync(file)
      .subarray(range?.position, (range?.position ?? 0) + (range?.bytes ?? 0));
    expect([...new Float32Array(Uint8Array.from(bytes).buffer)]).toEqual(read(weights, tensor));
    expect(read(own, tensor)).toEqual(read(weights, tensor));
    torch.close();
  });

  it('can have any of their names, without the prefixes of wrappers', () => {
    const values = tensorIn(
      storageOf(new Uint8Array(Float32Array.from({ length: 32 }, (_, i) => i).buffer)),
      [1, 8, 4],
    );
    const tensors = tensorsWith({
      'shared_srte.freqs': undefined,
      'layers.1.srte.freqs': values,
    });
    const wrapped = new Map([...tensors].map(([name, tensor]) => [`module.${name}`, tensor]));
    const source = checkpointWeights(MODEL, checkpointOf(wrapped));
    expect(read(source, named(MODEL, 'shared_srte.freqs'), 5, 2)).toEqual([5, 6]);
  });

  it('can have names that are only in metadata', () => {
    const tensors = tensorsWith({ 'embed_tokens.weight': undefined });
    tensors.set('other', tensorIn(storageOf(new Uint8Array(96).fill(0)), [6, 4]));
    const aliases = new Map([['lm_head.weight', 'other']]);
    const source = checkpointWeights(MODEL, checkpointOf(tensors, { aliases }));
    expect(read(source, MODEL.embedding.weight)).toEqual(new Array(24).fill(0));
  });

  it('may leave out buffers that the configuration determines', () => {
    const { model: sincos, checkpoint: full } = fixtureModel('per-layer-sincos');
    const tensor = named(sincos, 'layers.1.srte.inv_freq');
    const stored = full.tensors.get(tensor.name);
    const tensors = new Map([...full.tensors].filter(([name]) => !name.endsWith('inv_freq')));
    const source = checkpointWeights(sincos, checkpointOf(tensors));
    expect(source.rangeOf(tensor)).toBeUndefined();
    expect(read(source, tensor)).toEqual(stored ? [...valuesOf(stored).data] : []);
  });
});

describe('weights can be stored', () => {
  const tensor = named(MODEL, 'layers.0.attention.q_proj.weight');
  const values = Float32Array.from({ length: 16 }, (_, index) => index - 3.5);
  const sourceOf = (stored: StoredTensor) =>
    checkpointWeights(MODEL, checkpointOf(tensorsWith({ [tensor.name]: stored })));
  const bytesOf = (array: ArrayBufferView) =>
    new Uint8Array(array.buffer, array.byteOffset, array.byteLength).slice();

  it.each([
    ['F32', bytesOf(values)],
    ['F64', bytesOf(Float64Array.from(values))],
    ['BF16', bytesOf(Uint16Array.from(values, (value) => upperHalf(value)))],
  ] as const)('as %s, in parts of any size', (dtype, bytes) => {
    const source = sourceOf(tensorIn(storageOf(bytes), [4, 4], { dtype }));
    for (let first = 0; first < 16; first++) {
      for (let count = 0; first + count <= 16; count++) {
        expect(read(source, tensor, first, count)).toEqual([...values].slice(first, first + count));
      }
    }
  });

  it('transposed', () => {
    const stored = tensorIn(storageOf(bytesOf(values)), [4, 4], { strides: [1, 4] });
    const source = sourceOf(stored);
    const expected = [...values].map((_, at) => values[(at % 4) * 4 + Math.floor(at / 4)]);
    expect(source.rangeOf(tensor)).toBeUndefined();
    expect(read(source, tensor)).toEqual(expected);
    expect(read(source, tensor, 3, 7)).toEqual(expected.slice(3, 10));
  });

  it('in big-endian bytes', () => {
    const swapped = Buffer.from(bytesOf(values)).swap32();
    const storage = { ...storageOf(swapped), isBigEndian: true };
    const source = sourceOf(tensorIn(storage, [4, 4]));
    expect(source.rangeOf(tensor)).toBeUndefined();
    expect(read(source, tensor, 1, 14)).toEqual([...values].slice(1, 15));
  });

  it('in four bits', () => {
    const bytes = Uint8Array.of(0x21, 0x43, 0x65, 0x07, 0x21, 0x43, 0x65, 0x07);
    const source = sourceOf(tensorIn(storageOf(bytes), [4, 4], { dtype: 'F4' }));
    expect(source.rangeOf(tensor)).toBeUndefined();
    expect(read(source, tensor, 1, 4)).toEqual([1, 1.5, 2, 3]);
  });

  it('in more than one block', () => {
    const large = modelOfConfig({
      vocab_size: 70_000,
      hidden_size: 4,
      num_heads: 1,
      num_layers: 1,
    });
    const table = large.embedding.weight;
    const data = Float64Array.from({ length: table.elements }, (_, index) => index);
    const stored = tensorIn(storageOf(bytesOf(data)), [70_000, 4], { dtype: 'F64' });
    const tensors = new Map<string, StoredTensor>();
    for (const { name, shape, elements, role } of tensorsOf(large)) {
      if (role === 'buffer') continue;
      tensors.set(name, tensorIn(storageOf(new Uint8Array(4 * elements)), shape));
    }
    const source = checkpointWeights(large, checkpointOf(tensors.set(table.name, stored)));
    const values = read(source, table, 5, table.elements - 6);
    expect(values.every((value, at) => value === at + 5)).toBe(true);
  });
});

/** Upper half of a float32, which is a bfloat16 when the lower half is zero. */
function upperHalf(value: number): number {
  const view = new DataView(new ArrayBuffer(4));
  view.setFloat32(0, value);
  return view.getUint16(0);
}

describe('a checkpoint', () => {
  const complaint = (change: Record<string, StoredTensor | undefined>) => {
    try {
      checkpointWeights(MODEL, checkpointOf(tensorsWith(change)));
    } catch (error) {
      if (error instanceof UserError) return `${error.message}; ${error.suggestion}`;
      throw error;
    }
    return 'nothing';
  };
  const advice = '; see all that differs with minimind verify CONFIG CHECKPOINT';

  it.each([
    ['a missing tensor', undefined, 'model.pt has no tensor norm.bias'],
    [
      'a tensor of another shape',
      tensorIn(storageOf(new Uint8Array(20)), [5]),
      'model.pt has norm.bias as [5], not [4]',
    ],
    [
      'a tensor of integers',
      tensorIn(storageOf(new Uint8Array(16)), [4], { dtype: 'I32' }),
      'model.pt has norm.bias as I32, not as floats',
    ],
  ])('is refused with %s', (_, stored, message) => {
    expect(complaint({ 'norm.bias': stored })).toBe(`${message}${advice}`);
  });

  it('is accepted with tensors that the model lacks', () => {
    expect(complaint({ extra: tensorIn(storageOf(new Uint8Array(4)), [1]) })).toBe('nothing');
  });
});

it('weights are read like views of the tensors', () => {
  const { model, checkpoint, weights } = fixtureModel('shared-learnable');
  const stored = checkpoint.tensors.get('norm.weight');
  if (!stored) throw new Error('no tensor');
  const bytes = readTensor(stored);
  expect(read(weights, named(model, 'norm.weight'))).toEqual([...new Float32Array(bytes.buffer)]);
});

it('a replaced file gives an error instead of a place', () => {
  const original = fixtureModel('shared-learnable').checkpoint.path;
  const file = path.join(folder, 'replaced.safetensors');
  fs.copyFileSync(original, file);
  const checkpoint = openCheckpoint(file);
  const { model } = fixtureModel('shared-learnable');
  const weights = checkpointWeights(model, checkpoint);
  const [tensor] = tensorsOf(model);
  if (!tensor) throw new Error('no tensor');
  expect(weights.rangeOf(tensor)).toMatchObject({ path: file });
  fs.copyFileSync(original, `${file}.new`);
  fs.renameSync(`${file}.new`, file);
  expect(() => weights.rangeOf(tensor)).toThrow(UserError);
  checkpoint.close();
});
