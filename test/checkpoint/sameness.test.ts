import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, expect, it } from 'vitest';
import type { StoredDtype } from '../../src/base/tensor/dtype.js';
import { ByteFile } from '../../src/checkpoint/byte-file.js';
import { equalByBytes } from '../../src/checkpoint/sharing.js';
import { contiguousStrides, type StoredTensor } from '../../src/checkpoint/stored-tensor.js';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
const opened: ByteFile[] = [];
afterAll(() => {
  for (const file of opened) file.close();
  fs.rmSync(folder, { recursive: true });
});

const BITS = { F16: 16, F32: 32, F6_E3M2: 6 } as const satisfies Partial<
  Record<StoredDtype, number>
>;

/** Tensor of these bytes, read along `strides`. */
function stored(
  bytes: Uint8Array,
  shape: readonly number[],
  {
    dtype = 'F16',
    strides = contiguousStrides(shape),
    isBigEndian = false,
  }: { dtype?: keyof typeof BITS; strides?: readonly number[]; isBigEndian?: boolean } = {},
): StoredTensor {
  const name = path.join(folder, String(opened.length));
  fs.writeFileSync(name, bytes);
  const file = ByteFile.open(name);
  opened.push(file);
  const elements = shape.reduce((product, size) => product * size, 1);
  const storage = { file, position: 0, bytes: bytes.length, isBigEndian };
  const length = (elements * BITS[dtype]) / 8;
  return { kind: 'tensor', dtype, shape, elements, strides, offset: 0, storage, bytes: length };
}

/** Values that do not repeat for a few hundred thousand positions. */
const values = (count: number) => Uint16Array.from({ length: count }, (_, i) => (i * 40_503) >> 3);
const bytesOf = (array: Uint16Array) => new Uint8Array(array.buffer.slice(0));

const areEqual = async (a: StoredTensor, b: StoredTensor) => (await equalByBytes([[a, b]]))(a, b);

// Slightly more than three blocks.
const COLUMNS = 701;
const ROWS = 2301;
const table = values(ROWS * COLUMNS);

it.each([[[ROWS, COLUMNS]], [[1, ROWS, COLUMNS]], [[1, 1, ROWS * COLUMNS]]])(
  'tensors of shape %j are read to their end',
  async (shape) => {
    const first = stored(bytesOf(table), shape);
    expect(await areEqual(first, stored(bytesOf(table), shape))).toBe(true);
    const last = table.with(table.length - 1, 1 + (table.at(-1) ?? 0));
    expect(await areEqual(first, stored(bytesOf(last), shape))).toBe(false);
  },
);

it('tensors of equal values are equal with any strides and byte order', async () => {
  const transposed = new Uint16Array(table.length);
  for (let row = 0; row < ROWS; row++) {
    for (let column = 0; column < COLUMNS; column++) {
      transposed[column * ROWS + row] = table[row * COLUMNS + column] ?? 0;
    }
  }
  const plain = stored(bytesOf(table), [1, ROWS, COLUMNS]);
  const strides = [1, 1, ROWS];
  const turned = stored(bytesOf(transposed), [1, ROWS, COLUMNS], { strides });
  expect(await areEqual(plain, turned)).toBe(true);
  expect(await areEqual(turned, plain)).toBe(true);
  const swapped = stored(Buffer.from(bytesOf(table)).swap16(), [1, ROWS, COLUMNS], {
    isBigEndian: true,
  });
  expect(await areEqual(plain, swapped)).toBe(true);
  transposed[transposed.length - 1] = 1 + (transposed.at(-1) ?? 0);
  const other = stored(bytesOf(transposed), [1, ROWS, COLUMNS], { strides });
  expect(await areEqual(plain, other)).toBe(false);
});

it('strided rows longer than a block are read in parts', async () => {
  // Two rows of 1.5 MB, interleaved.
  const long = 750_000;
  const rows = values(2 * long);
  const interleaved = new Uint16Array(rows.length);
  for (let at = 0; at < long; at++) {
    interleaved[2 * at] = rows[at] ?? 0;
    interleaved[2 * at + 1] = rows[long + at] ?? 0;
  }
  const plain = stored(bytesOf(rows), [2, long]);
  expect(await areEqual(plain, stored(bytesOf(interleaved), [2, long], { strides: [1, 2] }))).toBe(
    true,
  );
});

it('values of six bits are compared in blocks of whole bytes', async () => {
  const count = 2_000_000;
  const bytes = bytesOf(values((count * 6) / 16));
  const first = stored(bytes, [count], { dtype: 'F6_E3M2' });
  expect(await areEqual(first, stored(bytes, [count], { dtype: 'F6_E3M2' }))).toBe(true);
  const other = bytes.with(bytes.length - 1, 1 ^ (bytes.at(-1) ?? 0));
  expect(await areEqual(first, stored(other, [count], { dtype: 'F6_E3M2' }))).toBe(false);
});

it('empty tensors are equal', async () => {
  const nothing = new Uint8Array(0);
  expect(await areEqual(stored(nothing, [0, 8]), stored(nothing, [0, 8]))).toBe(true);
});

it('tensors of another dtype or shape differ', async () => {
  const bytes = bytesOf(values(8));
  const plain = stored(bytes, [8]);
  expect(await areEqual(plain, stored(bytes, [2, 4]))).toBe(false);
  expect(await areEqual(plain, stored(bytes, [4], { dtype: 'F32' }))).toBe(false);
});

it('each tensor of a group is compared with the first, not with others', async () => {
  const [a, b, c, d, e] = [1, 1, 2, 2, 1].map((value) => stored(Uint8Array.of(value, 0), [1])) as [
    StoredTensor,
    StoredTensor,
    StoredTensor,
    StoredTensor,
    StoredTensor,
  ];
  const same = await equalByBytes([[a, b, c, d]]);
  expect([same(a, a), same(a, b), same(b, a), same(b, c), same(c, d)]).toEqual([
    true,
    true,
    true,
    false,
    false,
  ]);
  expect(same(a, e)).toBe(undefined);
});

it('tensors that differ are not read further', async () => {
  // The second file lacks its second block, so reading that would fail.
  const first = stored(bytesOf(table), [table.length]);
  const short = { ...stored(new Uint8Array(1 << 20).fill(1), [1]), shape: first.shape };
  const other = { ...short, elements: first.elements, bytes: first.bytes };
  expect(await areEqual(first, other)).toBe(false);
});
