import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { decodeValues } from '../../../src/base/tensor/decode-values.js';
import { STORED_DTYPES } from '../../../src/base/tensor/dtype.js';
import { convertDtype, type EncodableDtype } from '../../../src/base/tensor/encode.js';
import { openAdapter } from '../../../src/checkpoint/adapter/adapter.js';
import { mergedCheckpoint } from '../../../src/checkpoint/adapter/merge-adapter.js';
import type { Checkpoint } from '../../../src/checkpoint/checkpoint.js';
import { computedTensor } from '../../../src/checkpoint/computed-file.js';
import type { StoredTensor } from '../../../src/checkpoint/stored-tensor.js';
import { readInChunks, readTensor } from '../../../src/checkpoint/view.js';
import { inPackage } from '../../fixtures.js';
import { opened } from '../temp-folder.js';

const FOLDER = inPackage('fixtures/lora');
/** Base model and dtype of each case. */
const CASES: Readonly<Record<string, readonly [base: string, dtype: EncodableDtype]>> = {
  'gpt2-bias': ['gpt2', 'F32'],
  'llama-bf16': ['llama', 'BF16'],
  'llama-embedding': ['llama', 'F16'],
  'llama-patterns': ['llama', 'F32'],
  'llama-tied': ['llama-tied-rope3', 'BF16'],
  'qwen2-lora-bias': ['qwen2', 'BF16'],
};

/** Tensor rounded to a dtype. */
function cast(tensor: StoredTensor, dtype: EncodableDtype): StoredTensor {
  const bytes = (tensor.elements * STORED_DTYPES[dtype].bits) / 8;
  const values = new Uint8Array(bytes);
  convertDtype(tensor.dtype, dtype, readTensor(tensor), values);
  const { shape, elements } = tensor;
  return computedTensor(tensor.storage.file, {
    ...{ dtype, shape, elements, bytes },
    fill: (target, position) => target.set(values.subarray(position, position + target.length)),
  });
}

const numbersOf = (tensor: StoredTensor): Float64Array => {
  const numbers = new Float64Array(tensor.elements);
  decodeValues(tensor.dtype, readTensor(tensor), numbers);
  return numbers;
};

/** Bits of the fraction of a dtype. */
const FRACTION = { F32: 23, F16: 10, BF16: 7, F64: 52 } as const;

/** Distance to the next number of a dtype. */
const unitOf = (value: number, dtype: EncodableDtype): number =>
  2 ** (Math.floor(Math.log2(Math.abs(value) || Number.MIN_VALUE)) - FRACTION[dtype]);

const ties = (name: string): readonly string[] =>
  /^(?:lm_head|model\.embed_tokens)\.weight$/.test(name)
    ? ['model.embed_tokens.weight', 'lm_head.weight']
    : [name];

it('each folder of fixtures/lora is a case', () => {
  const folders = fs
    .readdirSync(FOLDER, { withFileTypes: true })
    .filter((each) => each.isDirectory());
  expect(folders.map(({ name }) => name).sort()).toEqual(Object.keys(CASES));
});

describe('a merged adapter', () => {
  it.each(Object.entries(CASES))(
    '%s has the values of merge_and_unload',
    async (name, [base, dtype]) => {
      const stored = opened(inPackage('fixtures/hf', base));
      const model: Checkpoint = {
        ...stored,
        tensors: new Map([...stored.tensors].map(([key, tensor]) => [key, cast(tensor, dtype)])),
      };
      const adapter = await openAdapter(path.join(FOLDER, name));
      const isTied = name === 'llama-tied';
      const merged = mergedCheckpoint(model, adapter, (key) => (isTied ? ties(key) : [key]));
      const expected = opened(path.join(FOLDER, `${name}.safetensors`)).tensors;
      let changed = 0;
      for (const [key, tensor] of merged.tensors) {
        const own = model.tensors.get(key) ?? expect.fail();
        const [actual, before] = [numbersOf(tensor), numbersOf(own)];
        expect([tensor.dtype, tensor.shape]).toEqual([own.dtype, own.shape]);
        const other = expected.get(key);
        if (other === undefined) {
          expect(actual, key).toEqual(before);
          continue;
        }
        changed++;
        const target = numbersOf(other);
        for (let i = 0; i < target.length; i++) {
          const [a = 0, b = 0, c = 0] = [actual[i], target[i], before[i]];
          // One unit of the larger of the two summands.
          const unit = unitOf(Math.max(Math.abs(b), Math.abs(c), Math.abs(b - c)), dtype);
          expect(Math.abs(a - b), `${key} ${i}: ${a}, ${b}`).toBeLessThanOrEqual(unit);
        }
        const chunks: Buffer[] = [];
        for await (const chunk of readInChunks(tensor, 96)) chunks.push(Buffer.from(chunk));
        expect(Buffer.concat(chunks).equals(Buffer.from(readTensor(tensor)))).toBe(true);
      }
      const stated = [...expected.keys()].filter((key) => model.tensors.has(key));
      expect(changed).toBe(stated.length);
      expect(expected.size - stated.length).toBe(isTied ? 1 : 0);
      adapter.checkpoint.close();
    },
  );
});
