/** Compares values of every type with the float32 values of Python's gguf package: see fixtures/gguf/make.py. */
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import { isDecodable } from '../../../src/checkpoint/gguf/blocks/decode-blocks.js';
import { encodeBlocks } from '../../../src/checkpoint/gguf/blocks/encode-blocks.js';
import type { GgmlTypeName } from '../../../src/checkpoint/gguf/ggml-types.js';
import { ggmlType } from '../../../src/checkpoint/gguf/ggml-types.js';
import { storedTypeOf } from '../../../src/checkpoint/stored-tensor.js';
import { summarise } from '../../../src/checkpoint/summary.js';
import { narrow, readInChunks, readRows, readTensor } from '../../../src/checkpoint/view.js';
import { inPackage } from '../../fixtures.js';
import { opened } from '../temp-folder.js';

const TYPES = inPackage('fixtures/gguf/types.gguf');

interface Expected {
  readonly type: GgmlTypeName;
  readonly shape: readonly number[];
  readonly sha256?: string;
}

const expected = Object.entries(
  JSON.parse(fs.readFileSync(inPackage('fixtures/gguf/types.json'), 'utf8')) as Record<
    string,
    Expected
  >,
);

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

const tensorIn = (file: string, name: string) => {
  const tensor = opened(file).tensors.get(name);
  if (!tensor) throw new Error(name);
  return tensor;
};

describe('a GGUF file', () => {
  it.each(expected)(
    'has the values of the gguf package: %s',
    (name, { type, shape, sha256: hash }) => {
      const tensor = tensorIn(TYPES, name);
      expect([storedTypeOf(tensor), tensor.shape]).toEqual([type, shape]);
      if (hash === undefined) {
        expect(isDecodable(type)).toBe(false);
        expect(() => readTensor(tensor)).toThrow(/values of type/);
      } else expect(sha256(readTensor(tensor))).toBe(hash);
    },
  );

  it('has the stored bytes of each type', () => {
    for (const [name, { type, shape }] of expected) {
      const tensor = tensorIn(TYPES, name);
      const { values, bytes } = ggmlType(type);
      const blocks = shape.reduce((product, size) => product * size, 1) / values;
      expect(tensor.encoding?.bytes ?? tensor.bytes).toBe(blocks * bytes);
    }
  });

  it('has the same values if it is read in parts of blocks', async () => {
    for (const [name, { type }] of expected.filter(([, { type }]) => isDecodable(type))) {
      const tensor = tensorIn(TYPES, name);
      const whole = readTensor(tensor);
      const row = new Uint8Array(tensor.bytes / 3);
      readRows(tensor, 1, 1, row);
      expect([type, Buffer.compare(row, whole.subarray(row.length, 2 * row.length))]).toEqual([
        type,
        0,
      ]);
      const columns = narrow(tensor, 1, 5, 3);
      expect(sha256(readTensor(columns))).toBe(sha256(columnsOf(whole, tensor.shape[1] ?? 0)));
      const chunks: Uint8Array[] = [];
      for await (const chunk of readInChunks(tensor, 100)) chunks.push(Uint8Array.from(chunk));
      expect(Buffer.compare(Buffer.concat(chunks), whole)).toBe(0);
    }
  });

  it('keeps short arrays of its metadata and counts long ones', () => {
    const { keyValues } = opened(TYPES);
    expect(keyValues?.get('tokenizer.ggml.tokens')).toEqual({
      type: 'array',
      element: 'string',
      length: 5000,
      value: null,
    });
    expect(keyValues?.get('llama.attention.head_count_kv')?.value).toEqual([2, 0, 2]);
    expect(keyValues?.get('general.name')?.value).toBe('one tensor of each type');
    expect(keyValues?.get('tokenizer.ggml.add_bos_token')?.value).toBe(true);
  });

  it('is summarised with stored bytes', () => {
    const checkpoint = opened(TYPES);
    const { totals } = summarise(checkpoint);
    const q4 = totals.dtypes.find(({ dtype }) => dtype === 'Q4_K');
    expect(q4).toEqual({ dtype: 'Q4_K', tensors: 1, elements: 1536, bytes: (1536 * 4.5) / 8 });
  });
});

const columnsOf = (whole: Uint8Array, width: number) =>
  Buffer.concat(
    [0, 1, 2].map((row) => whole.subarray((row * width + 5) * 4, (row * width + 8) * 4)),
  );

describe('encoded blocks', () => {
  it.each(['Q8_0', 'Q4_0'] as const)('of %s equal those of gguf.quants.quantize', (type) => {
    const checkpoint = opened(inPackage('fixtures/gguf/rounding.gguf'));
    const [values, encoded] = ['values', type.toLowerCase()].map((name) =>
      checkpoint.tensors.get(name),
    );
    if (!values || !encoded?.encoding) throw new Error('no tensor');
    const bytes = readTensor(values);
    const target = new Uint8Array(encoded.encoding.bytes);
    const numbers = new Float32Array(bytes.buffer, bytes.byteOffset, values.elements);
    expect(encodeBlocks(type, numbers, target)).toBe(-1);
    const { position } = encoded.encoding;
    const file = fs.readFileSync(inPackage('fixtures/gguf/rounding.gguf'));
    expect(Buffer.compare(target, file.subarray(position, position + target.length))).toBe(0);
  });
});
