/** Compares blocks with those of ggml's quantizers, and their values with those of Python's gguf package. */
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import { decodeBlocks } from '../../../src/checkpoint/gguf/blocks/decode-blocks.js';
import {
  encodeBlocks,
  WRITABLE_BLOCKS,
  type WritableBlocks,
} from '../../../src/checkpoint/gguf/blocks/encode-blocks.js';
import { ggmlType } from '../../../src/checkpoint/gguf/ggml-types.js';
import { inPackage } from '../../fixtures.js';

interface Blocks {
  readonly columns: number;
  readonly values: string;
  readonly importance: string;
  readonly types: Readonly<
    Record<
      WritableBlocks,
      {
        readonly bytes: string;
        readonly weighted: string;
        readonly valuesSha256: string;
        readonly weightedValuesSha256: string;
      }
    >
  >;
}

const fixture = JSON.parse(
  fs.readFileSync(inPackage('fixtures/gguf/k-quants.json'), 'utf8'),
) as Blocks;

const floats = (base64: string) =>
  new Float32Array(Uint8Array.from(Buffer.from(base64, 'base64')).buffer);

const { columns } = fixture;
const values = floats(fixture.values);
const rows = { columns, importance: floats(fixture.importance) };

/** Bytes of blocks of `numbers`. */
function encoded(type: WritableBlocks, numbers: Float32Array, important?: typeof rows) {
  const { values: perBlock, bytes } = ggmlType(type);
  const target = new Uint8Array((numbers.length / perBlock) * bytes).fill(0xff);
  return { wrong: encodeBlocks(type, numbers, target, important), target };
}

function sha256OfValues(type: WritableBlocks, bytes: Uint8Array): string {
  const decoded = new Float32Array(values.length);
  decodeBlocks(type, bytes, decoded);
  return createHash('sha256').update(new Uint8Array(decoded.buffer)).digest('hex');
}

const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64');

/** Relative error of blocks. */
function errorOf(type: WritableBlocks, bytes: Uint8Array, numbers: Float32Array): number {
  const decoded = new Float32Array(numbers.length);
  decodeBlocks(type, bytes, decoded);
  let [squared, norm] = [0, 0];
  for (const [index, value] of numbers.entries()) {
    squared += (value - (decoded[index] ?? 0)) ** 2;
    norm += value ** 2;
  }
  return Math.sqrt(squared / norm);
}

describe('blocks', () => {
  it.each(WRITABLE_BLOCKS)('of %s are those of ggml, byte for byte', (type) => {
    const { wrong, target } = encoded(type, values);
    expect(wrong).toBe(-1);
    expect(base64(target)).toBe(fixture.types[type].bytes);
    expect(sha256OfValues(type, target)).toBe(fixture.types[type].valuesSha256);
  });

  it.each(WRITABLE_BLOCKS)('of %s with importances are those of ggml, too', (type) => {
    const { wrong, target } = encoded(type, values, rows);
    expect(wrong).toBe(-1);
    expect(base64(target)).toBe(fixture.types[type].weighted);
    expect(sha256OfValues(type, target)).toBe(fixture.types[type].weightedValuesSha256);
    // Q8_0 alone has no search.
    expect(fixture.types[type].weighted === fixture.types[type].bytes).toBe(type === 'Q8_0');
  });

  it.each(WRITABLE_BLOCKS)('of %s are the same in any number at a time', (type) => {
    const { target } = encoded(type, values, rows);
    const parts = [0, 1, 2, 3, 4].map((row) =>
      base64(encoded(type, values.slice(row * columns, (row + 1) * columns), rows).target),
    );
    expect(parts.map((part) => Buffer.from(part, 'base64'))).toEqual(
      [0, 1, 2, 3, 4].map((row) =>
        Buffer.from(target.subarray((row * target.length) / 5, ((row + 1) * target.length) / 5)),
      ),
    );
  });

  it.each(WRITABLE_BLOCKS)('of %s with a value that they cannot hold are named', (type) => {
    const at = 2 * columns + 300;
    const first = at - (at % ggmlType(type).values);
    for (const value of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 1e30]) {
      for (const important of [undefined, rows]) {
        expect(encoded(type, values.with(at, value), important).wrong).toBe(first);
      }
    }
  });

  it('importances move the error away from the values that matter', () => {
    const numbers = values.slice(0, 256);
    const importance = Float32Array.from({ length: 256 }, (_, index) => (index % 32 < 4 ? 100 : 1));
    const own = { columns: 256, importance };
    const kept = (all: Float32Array) => all.filter((_, index) => index % 32 < 4);
    const errorOfKept = (bytes: Uint8Array) => {
      const decoded = new Float32Array(256);
      decodeBlocks('Q2_K', bytes, decoded);
      return kept(numbers).reduce((sum, value, index) => {
        return sum + (value - (kept(decoded)[index] ?? 0)) ** 2;
      }, 0);
    };
    const plain = encoded('Q2_K', numbers).target;
    const weighted = encoded('Q2_K', numbers, own).target;
    expect(errorOfKept(weighted)).toBeLessThan(errorOfKept(plain) / 2);
    expect(errorOf('Q2_K', weighted, numbers)).toBeGreaterThan(errorOf('Q2_K', plain, numbers));
  });
});
