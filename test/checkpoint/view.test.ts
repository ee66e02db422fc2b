import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { STORED_DTYPES, type StoredDtype } from '../../src/base/tensor/dtype.js';
import { contiguousStrides, type StoredTensor } from '../../src/checkpoint/stored-tensor.js';
import {
  readRows,
  readTensor,
  rowBytes,
  rowCount,
  streamTensor,
} from '../../src/checkpoint/view.js';
import { fileOf } from './byte-files.js';

interface View {
  readonly dtype?: StoredDtype;
  readonly shape: readonly number[];
  readonly strides?: readonly number[];
  readonly offset?: number;
  readonly isBigEndian?: boolean;
}

/** Tensor on these bytes, which begin at byte 3 of their file. */
function tensorOn(bytes: Uint8Array, view: View): StoredTensor {
  const { dtype = 'U8', shape, strides = contiguousStrides(shape), offset = 0 } = view;
  const elements = shape.reduce((product, size) => product * size, 1);
  return {
    kind: 'tensor',
    dtype,
    shape,
    elements,
    strides,
    offset,
    storage: {
      file: fileOf(Buffer.concat([Buffer.from('abc'), bytes])),
      position: 3,
      bytes: bytes.length,
      isBigEndian: view.isBigEndian ?? false,
    },
    bytes: (elements * STORED_DTYPES[dtype].bits) / 8,
  };
}

/** Bytes of a tensor, by Python's definition of strides. */
function gathered(bytes: Uint8Array, tensor: StoredTensor): number[] {
  const width = STORED_DTYPES[tensor.dtype].bits / 8;
  const walk = (axis: number, at: number): number[] => {
    if (axis === tensor.shape.length) return [...bytes.subarray(at * width, (at + 1) * width)];
    return Array.from({ length: tensor.shape[axis] ?? 0 }, (_, index) =>
      walk(axis + 1, at + index * (tensor.strides[axis] ?? 0)),
    ).flat();
  };
  return walk(0, tensor.offset);
}

const counting = (length: number) => Uint8Array.from({ length }, (_, index) => index % 251);

async function streamed(tensor: StoredTensor, chunkBytes?: number): Promise<number[]> {
  const seen: number[] = [];
  await streamTensor(tensor, (bytes) => void seen.push(...bytes), chunkBytes);
  return seen;
}

it.each([
  [[], []],
  [[4], [1]],
  [
    [2, 3, 5],
    [15, 5, 1],
  ],
  [
    [2, 0, 3],
    [3, 3, 1],
  ],
])('the rows of a tensor %j follow each other with strides %j', (shape, strides) => {
  expect(contiguousStrides(shape)).toEqual(strides);
});

describe('the values of a tensor', () => {
  const views = fc
    .record({
      dtype: fc.constantFrom<StoredDtype>('U8', 'F16', 'F32', 'C64', 'C128'),
      shape: fc.array(fc.integer({ min: 1, max: 5 }), { maxLength: 4 }),
      strides: fc.array(fc.integer({ min: 0, max: 9 }), { minLength: 4, maxLength: 4 }),
      offset: fc.nat(5),
    })
    .map((view) => ({ ...view, strides: view.strides.slice(0, view.shape.length) }));

  it('follow the strides if they are read whole, by rows and streamed', async () => {
    await fc.assert(
      fc.asyncProperty(
        views,
        fc.nat(),
        fc.integer({ min: 1, max: 64 }),
        async (view, cut, chunk) => {
          const bytes = counting(150 * 16);
          const tensor = tensorOn(bytes, view);
          const expected = gathered(bytes, tensor);
          expect([...readTensor(tensor)]).toEqual(expected);
          expect(await streamed(tensor, chunk)).toEqual(expected);
          const first = cut % rowCount(tensor);
          const target = new Uint8Array(rowBytes(tensor));
          readRows(tensor, first, 1, target);
          expect([...target]).toEqual(
            expected.slice(first * rowBytes(tensor), (first + 1) * rowBytes(tensor)),
          );
        },
      ),
      { numRuns: 150 },
    );
  });

  it.each([
    ['a small storage', 700_001],
    ['a large storage', 6_000_001],
  ])('follow strides of megabytes in %s', async (_, apart) => {
    const [rows, columns] = [3, 700_001];
    const bytes = counting(rows * apart);
    const tensor = tensorOn(bytes, { shape: [columns, rows], strides: [1, apart] });
    const whole = readTensor(tensor);
    for (const index of [0, 1, 2, rows * 350_000 + 1, rows * columns - 1]) {
      expect(whole[index]).toBe(bytes[(index % rows) * apart + Math.floor(index / rows)]);
    }
    const target = new Uint8Array(2 * rows);
    readRows(tensor, columns - 2, 2, target);
    expect(target).toEqual(whole.subarray(-2 * rows));
    const pieces: Uint8Array[] = [];
    await streamTensor(tensor, (bytes) => void pieces.push(bytes.slice()), 9999);
    expect(pieces.length).toBeGreaterThan(2);
    expect(Buffer.concat(pieces).equals(whole)).toBe(true);
  });

  it.each([
    ['one storage', 1],
    ['several storages in turn', 4],
  ])('are read once for many wide views of %s', async (_, count) => {
    const storages = Array.from({ length: count }, () =>
      tensorOn(counting(2_000_000), { shape: [2, 3], strides: [1_900_000, 7] }),
    );
    const reads = storages.map(({ storage }) => vi.spyOn(storage.file, 'readInto'));
    for (let offset = 0; offset < 500; offset++) {
      for (const tensor of storages) {
        const at = (row: number) => [0, 7, 14].map((step) => (row + offset + step) % 251);
        expect(await streamed({ ...tensor, offset })).toEqual([...at(0), ...at(1_900_000)]);
      }
    }
    expect(reads.map(({ mock }) => mock.calls.length)).toEqual(storages.map(() => 1));
    expect(storages.map(({ storage }) => storage.file.bytesRead)).toEqual(
      storages.map(() => 2_000_000),
    );
  });

  it('are streamed in small pieces, even if one row is the whole tensor', async () => {
    const [rows, columns] = [600, 700];
    const bytes = counting(rows * columns);
    const tensor = tensorOn(bytes, { shape: [1, columns, rows], strides: [0, 1, columns] });
    const pieces: Uint8Array[] = [];
    await streamTensor(tensor, (piece) => void pieces.push(piece.slice()), 1000);
    expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThanOrEqual(16_000);
    expect(Buffer.concat(pieces).equals(readTensor(tensor))).toBe(true);
  });

  it('are streamed in pieces of whole elements', async () => {
    const tensor = tensorOn(counting(1000 * 16), { dtype: 'C128', shape: [1000] });
    const lengths: number[] = [];
    await streamTensor(tensor, (bytes) => void lengths.push(bytes.length), 1000);
    expect(lengths.every((length) => length <= 1000 && length % 16 === 0)).toBe(true);
    expect(lengths.reduce((sum, length) => sum + length)).toBe(16000);
  });

  it.each([
    ['U8', [1, 2, 3, 4, 5, 6, 7, 8]],
    ['BF16', [2, 1, 4, 3, 6, 5, 8, 7]],
    ['F32', [4, 3, 2, 1, 8, 7, 6, 5]],
    ['C64', [4, 3, 2, 1, 8, 7, 6, 5]],
    ['F64', [8, 7, 6, 5, 4, 3, 2, 1]],
  ] as const)('are swapped from the other byte order: %s', async (dtype, expected) => {
    const shape = [64 / STORED_DTYPES[dtype].bits];
    const bytes = Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8);
    const tensor = tensorOn(bytes, { dtype, shape, isBigEndian: true });
    expect([...readTensor(tensor)]).toEqual(expected);
    expect(await streamed(tensor)).toEqual(expected);
  });

  it('are packed if they have four bits, and only rows of whole bytes can be read', () => {
    const even = tensorOn(counting(4), { dtype: 'F4', shape: [4, 2] });
    const row = new Uint8Array(1);
    readRows(even, 2, 1, row);
    expect([...row]).toEqual([2]);
    const odd = tensorOn(counting(3), { dtype: 'F4', shape: [2, 3] });
    expect([...readTensor(odd)]).toEqual([0, 1, 2]);
    expect(() => readRows(odd, 1, 1, new Uint8Array(1.5))).toThrow(RangeError);
  });

  it.each([
    ['a row too many', 1, 2],
    ['a negative row', -1, 1],
  ])('are refused for %s', (_, first, rows) => {
    const tensor = tensorOn(counting(4), { shape: [2, 2] });
    expect(() => readRows(tensor, first, rows, new Uint8Array(2 * rows))).toThrow(RangeError);
  });

  it('are empty for a tensor without elements', async () => {
    const tensor = tensorOn(counting(0), { shape: [3, 0] });
    expect(readTensor(tensor)).toEqual(new Uint8Array(0));
    expect(await streamed(tensor)).toEqual([]);
  });
});
