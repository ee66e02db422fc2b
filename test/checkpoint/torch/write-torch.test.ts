import { describe, expect, it } from 'vitest';
import { UserError } from '../../../src/base/errors.js';
import type { ByteChunks } from '../../../src/base/files/write-whole.js';
import type { StoredDtype } from '../../../src/base/tensor/dtype.js';
import {
  contiguousStrides,
  type StoredBytes,
  type StoredTensor,
} from '../../../src/checkpoint/stored-tensor.js';
import type { Writable, WritableTensor } from '../../../src/checkpoint/torch/pickle/writable.js';
import { readTorchZip } from '../../../src/checkpoint/torch/read-torch.js';
import { planTorch } from '../../../src/checkpoint/torch/write-torch.js';
import { readTorchArchive } from '../../../src/checkpoint/torch/zip/torch-archive.js';
import { readTensor } from '../../../src/checkpoint/view.js';
import { fileOf } from '../byte-files.js';
import { MemorySink } from '../safetensors/tensors.js';
import { tensorIn } from '../stored-tensors.js';
import { writeTorch } from './write-builder.js';

const dictOf = (entries: Readonly<Record<string, Writable>>, type = 'dict'): Writable => ({
  kind: 'dict',
  type,
  entries: new Map(Object.entries(entries)),
});

/** Tensor that is computed while it is written. */
function made(
  dtype: StoredDtype,
  shape: readonly number[],
  chunks: () => ByteChunks,
  bytes: number,
) {
  const storage = { bytes, chunks };
  const strides = contiguousStrides(shape);
  return { kind: 'tensor', dtype, shape, strides, offset: 0, storage } satisfies WritableTensor;
}

const floats = (...values: readonly number[]) => Buffer.from(Float32Array.from(values).buffer);
const float32 = (...values: readonly number[]) =>
  made('F32', [values.length], () => [floats(...values)], 4 * values.length);

async function written(value: Writable, root?: string): Promise<Buffer> {
  const sink = new MemorySink();
  await writeTorch(sink, value, root);
  expect(sink.position).toBe(planTorch(value, root).fileBytes);
  return sink.bytes();
}

const reread = async (value: Writable) => readTorchZip(fileOf(await written(value)));

/** Float32 values of the tensors, by their names. */
const valuesOf = (tensors: ReadonlyMap<string, StoredTensor>) =>
  Object.fromEntries(
    [...tensors].map(([name, tensor]) => {
      const bytes = readTensor(tensor);
      return [name, [...new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4)]];
    }),
  );

describe('the plan of a PyTorch file', () => {
  it.each<[string, Writable, RegExp]>([
    [
      'a name that is too long',
      dictOf({ ['a'.repeat(2 ** 20 + 1)]: float32(1) }),
      /cannot be read again: .*1048577/,
    ],
    [
      'dicts that are nested too deep',
      Array.from({ length: 250 }).reduce<Writable>((inner) => dictOf({ inner }), dictOf({})),
      /cannot be read again: .*nested more than 200/,
    ],
  ])('refuses a value that the reader refuses: %s', (_, value, message) => {
    expect(() => planTorch(value)).toThrow(UserError);
    expect(() => planTorch(value)).toThrow(message);
  });
});

describe('a written PyTorch file', () => {
  it('has the records of torch.save', async () => {
    const bytes = await written(dictOf({ a: float32(1), b: float32(2) }), 'model');
    const { root, records, isBigEndian, warnings } = readTorchArchive(fileOf(bytes));
    expect([root, isBigEndian, warnings]).toEqual(['model', false, []]);
    const contents = [...records].map(([name, { position, bytes: length }]) => [
      name,
      bytes.toString('latin1', position, position + length),
    ]);
    expect(Object.fromEntries(contents)).toMatchObject({ byteorder: 'little', version: '3\n' });
    expect([...records.keys()]).toEqual(['data.pkl', 'byteorder', 'data/0', 'data/1', 'version']);
  });

  it('has the root folder "archive" by default', async () => {
    expect(readTorchArchive(fileOf(await written(null))).root).toBe('archive');
  });

  it.each(['', '.', '..', 'a/b', '/a', 'a\\b', 'a\nb', 'C:x'])('has no root folder %j', (root) => {
    expect(() => planTorch(null, root)).toThrow(RangeError);
  });

  it('has tensors and the other values', async () => {
    const model = dictOf(
      { weight: float32(1, -2, 0.5), __proto__x: float32(3) },
      'collections.OrderedDict',
    );
    const { tensors, content, stateDict } = await reread(dictOf({ model, step: 7, note: 'x' }));
    expect(stateDict).toEqual(['model']);
    expect(valuesOf(tensors)).toEqual({ weight: [1, -2, 0.5], __proto__x: [3] });
    expect([...content]).toEqual([
      ['step', 7],
      ['note', 'x'],
    ]);
  });

  it('keeps shared storages and views', async () => {
    const whole = { ...float32(0, 1, 2, 3, 4, 5), shape: [2, 3], strides: [3, 1] };
    const { tensors } = await reread(
      dictOf({
        whole,
        tied: whole,
        transposed: { ...whole, shape: [3, 2], strides: [1, 3] },
        part: { ...whole, shape: [2], strides: [2], offset: 3 },
        apart: float32(9),
      }),
    );
    expect(valuesOf(tensors)).toEqual({
      whole: [0, 1, 2, 3, 4, 5],
      tied: [0, 1, 2, 3, 4, 5],
      transposed: [0, 3, 1, 4, 2, 5],
      part: [3, 5],
      apart: [9],
    });
    const storages = ['whole', 'tied', 'transposed', 'part'].map(
      (name) => tensors.get(name)?.storage,
    );
    expect(new Set(storages).size).toBe(1);
    expect(tensors.get('tied')).toBe(tensors.get('whole'));
  });

  it('is the same if its content is read and written again', async () => {
    const whole = { ...float32(0, 1, 2, 3), shape: [2, 2], strides: [1, 2] };
    const first = await written(dictOf({ a: whole, b: whole, step: 2 ** 40, lr: null }));
    const { tensors, content } = readTorchZip(fileOf(first));
    const entries = new Map<Writable, Writable>([...tensors, ...content]);
    expect(await written({ kind: 'dict', type: 'dict', entries })).toEqual(first);
  });

  it('has the bytes of new tensors from pieces that share their memory, synchronous or not', async () => {
    const memory = new Float32Array(1);
    function* pieces() {
      for (const value of [1, 2, 3]) {
        memory[0] = value;
        yield new Uint8Array(memory.buffer);
      }
    }
    async function* later() {
      yield* pieces();
    }
    const { tensors } = await reread(
      dictOf({ a: made('F32', [3], pieces, 12), b: made('F32', [3], later, 12) }),
    );
    expect(valuesOf(tensors)).toEqual({ a: [1, 2, 3], b: [1, 2, 3] });
  });

  it('has whole storages of other files, in little-endian', async () => {
    const words = Buffer.alloc(2 ** 21 + 8);
    for (let at = 0; at < words.length; at += 4) words.writeFloatBE(at / 4, at);
    const storage: StoredBytes = {
      file: fileOf(Buffer.concat([Buffer.from('xyz'), words])),
      position: 3,
      bytes: words.length,
      isBigEndian: true,
    };
    const last = words.length / 4 - 1;
    const part = tensorIn(storage, [2], { offset: last - 1 });
    const { tensors } = await reread(dictOf({ part }));
    expect(valuesOf(tensors)).toEqual({ part: [last - 1, last] });
    expect(tensors.get('part')).toMatchObject({
      offset: last - 1,
      storage: { isBigEndian: false },
    });
    expect(tensors.get('part')?.storage.bytes).toBe(words.length);
  });

  it('has every dtype of PyTorch', async () => {
    const sizes = {
      BOOL: 1,
      U8: 1,
      I8: 1,
      U16: 2,
      I16: 2,
      U32: 4,
      I32: 4,
      U64: 8,
      I64: 8,
      F8_E4M3: 1,
      F8_E5M2: 1,
      F8_E8M0: 1,
      F8_E4M3FNUZ: 1,
      F8_E5M2FNUZ: 1,
      F16: 2,
      BF16: 2,
      F32: 4,
      F64: 8,
      C64: 8,
      C128: 16,
    } as const;
    const data = (size: number) => Uint8Array.from({ length: 2 * size }, (_, i) => i);
    const all = Object.entries(sizes).map(([dtype, size]) => [
      dtype,
      made(dtype as StoredDtype, [2], () => [data(size)], 2 * size),
    ]);
    const { tensors } = await reread(dictOf(Object.fromEntries(all)));
    for (const [dtype, size] of Object.entries(sizes)) {
      const tensor = tensors.get(dtype);
      expect(tensor?.dtype).toBe(dtype);
      expect(tensor && readTensor(tensor)).toEqual(data(size));
    }
  });

  it('has tensors of several dtypes on one storage', async () => {
    const whole = float32(1, 2);
    const bits = { ...whole, dtype: 'I32', shape: [1], offset: 1 } as const;
    const { tensors } = await reread(dictOf({ whole, bits }));
    const { whole: a, bits: b } = Object.fromEntries(tensors);
    expect([a?.dtype, b?.dtype, a?.storage === b?.storage]).toEqual(['F32', 'I32', true]);
    expect(b && Buffer.from(readTensor(b)).readInt32LE()).toBe(0x40000000);
  });

  it('has scalars and tensors without elements', async () => {
    const scalar = { ...float32(7), shape: [], strides: [] };
    const empty = { ...made('F32', [0, 5], () => [], 0), strides: [5, 1] };
    const { tensors } = await reread(dictOf({ scalar, empty }));
    expect(tensors.get('scalar')?.shape).toEqual([]);
    expect(tensors.get('empty')?.shape).toEqual([0, 5]);
  });
});

describe('writing a PyTorch file', () => {
  const bigEndian = (bytes: number): StoredBytes => ({
    file: fileOf(Buffer.alloc(bytes)),
    position: 0,
    bytes,
    isBigEndian: true,
  });

  it.each<[string, () => Writable]>([
    [
      'tensor "b" shares big-endian bytes',
      () => {
        const storage = bigEndian(8);
        return dictOf({
          a: tensorIn(storage, [2]),
          b: tensorIn(storage, [4], { dtype: 'F16', bytes: 8 }),
        });
      },
    ],
    ['tensor "a" shares big-endian bytes', () => dictOf({ a: tensorIn(bigEndian(9), [2]) })],
    [
      'storage "a" is a part of another storage',
      () => {
        const data = { ...bigEndian(8), isBigEndian: false };
        return dictOf({
          a: { kind: 'storage', key: '0', dtype: 'F32', start: 1, length: 1, data },
        });
      },
    ],
  ])('is refused with the message: %s', async (message, value) => {
    const sink = new MemorySink();
    const attempt = writeTorch(sink, value());
    await expect(attempt).rejects.toThrow(message);
    await expect(attempt).rejects.toBeInstanceOf(UserError);
    expect(sink.position).toBe(0);
  });

  it('stops at a tensor with another number of bytes than planned', async () => {
    const tensor = made('F32', [2], () => [floats(1)], 8);
    await expect(written(dictOf({ tensor }))).rejects.toThrow(
      'archive/data/0 was planned with 8 bytes and has 4',
    );
  });
});
