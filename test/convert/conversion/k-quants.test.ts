/** Conversions into the mixtures of llama.cpp, with and without importances. */
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { encodeBlocks } from '../../../src/checkpoint/gguf/blocks/encode-blocks.js';
import { MIXTURE_NAMES, type MixtureName } from '../../../src/checkpoint/gguf/mixtures.js';
import { openCheckpoint } from '../../../src/checkpoint/open.js';
import { readTensor } from '../../../src/checkpoint/view.js';
import { servedWeights, weightLayout } from '../../../src/estimate/fit/serving/quantized.js';
import { usualFormat } from '../../../src/estimate/fit/serving/weight-types.js';
import { loadModelFile } from '../../../src/input/model-input/read-model-file.js';
import { countedTensors } from '../../../src/model/architecture/walk.js';
import { entry, imatrix, older } from '../../checkpoint/gguf/imatrix-files.js';
import { fileIn, folderOf, opened } from '../../checkpoint/temp-folder.js';
import { inPackage } from '../../fixtures.js';
import { publishedConfig } from '../../model/budget/published-models.js';
import { convert, type Flags } from './convert.js';
import { wideModel } from './wide-models.js';

const out = () => path.join(folderOf({}), 'model.gguf');

/** Type of each tensor of a file, with its own name for plain numbers. */
function typesIn(file: string): Record<string, string> {
  const checkpoint = openCheckpoint(file);
  try {
    return Object.fromEntries(
      [...checkpoint.tensors].map(([name, { encoding, dtype }]) => [name, encoding?.type ?? dtype]),
    );
  } finally {
    checkpoint.close();
  }
}

/** Stored bytes of a tensor. */
function bytesOf(file: string, name: string): Buffer {
  const checkpoint = openCheckpoint(file);
  const encoding = checkpoint.tensors.get(name)?.encoding;
  checkpoint.close();
  if (encoding === undefined) throw new Error(name);
  return fs.readFileSync(file).subarray(encoding.position, encoding.position + encoding.bytes);
}

describe('mixtures', () => {
  // Bits per weight of Llama-3.1-8B: llama.cpp, tools/quantize, README, 2025.
  it.each([
    ['q2_k', 3.1593],
    ['q2_k_s', 2.9697],
    ['q3_k_s', 3.6429],
    ['q3_k_m', 3.996],
    ['q3_k_l', 4.2979],
    ['q4_k_s', 4.6672],
    ['q4_k_m', 4.8944],
    ['q5_k_s', 5.5704],
    ['q5_k_m', 5.7036],
    ['q6_k', 6.5633],
    ['q8_0', 8.5008],
  ] as const)('%s of Llama-3.1-8B has %f bits per weight, as published', async (name, bits) => {
    const { model } = await publishedConfig('llama-3.1-8b');
    const weights = servedWeights(weightLayout(model), usualFormat(name), 1);
    const elements = countedTensors(model).reduce(
      (sum, { tensor, count }) => sum + (tensor.role === 'buffer' ? 0 : count * tensor.elements),
      0,
    );
    expect(Math.abs((Number(weights.total.value) * 8) / elements - bits)).toBeLessThan(0.0015);
  });

  it.each<readonly [string, () => Promise<string>, number]>([
    ['llama', () => wideModel('llama'), 256],
    ['tied', () => wideModel('tied'), 256],
    ['mixtral', () => wideModel('mixtral'), 256],
    ...['llama', 'qwen3', 'phi3', 'gpt2', 'gpt-neox', 'bloom'].map(
      (name) => [`rows of ${name}`, async () => inPackage('fixtures/hf', name), 32] as const,
    ),
  ])('are the same in a file and in fit: %s', async (_, make, columns) => {
    const folder = await make();
    const { model } = await loadModelFile(folder);
    const layout = weightLayout(model);
    const isMatrix = (tensor: Parameters<typeof layout.quantised.has>[0]) =>
      layout.quantised.has(tensor) || layout.tables.has(tensor);
    const matrix = `blk.0.${columns === 256 ? 'attn_output' : 'ffn_up'}.weight`;
    const imatrix = fileIn('m.dat', older([entry(matrix, 1, Array(columns).fill(1))]));
    for (const name of MIXTURE_NAMES) {
      const flags: Flags = { dtype: name, dryRun: true, ...(name === 'q2_k_s' && { imatrix }) };
      const { groups } = await convert(folder, out(), flags);
      const written = groups.reduce(
        (sum, { dtype, bytes }) => sum + (dtype === 'F32' ? 0 : bytes),
        0,
      );
      const counted = servedWeights(layout, usualFormat(name), 1, isMatrix).total.value;
      expect([name, written]).toEqual([name, Number(counted)]);
    }
  });

  it('q4_k_m of eight layers with shared keys', async () => {
    const file = out();
    const result = await convert(await wideModel('llama'), file, { dtype: 'q4_k_m' });
    const types = typesIn(file);
    const of = (part: string) =>
      Array.from({ length: 8 }, (_, layer) => types[`blk.${layer}.${part}.weight`]);
    // The first and the last eighth, and every third layer between.
    const more = [0, 3, 6, 7];
    const mixed = Array.from({ length: 8 }, (_, layer) => (more.includes(layer) ? 'Q6_K' : 'Q4_K'));
    expect(of('attn_v')).toEqual(mixed);
    expect(of('ffn_down')).toEqual(mixed);
    for (const part of ['attn_q', 'attn_k', 'attn_output', 'ffn_up', 'ffn_gate']) {
      expect(new Set(of(part))).toEqual(new Set(['Q4_K']));
    }
    expect(types['token_embd.weight']).toBe('Q4_K');
    expect(types['output.weight']).toBe('Q6_K');
    expect(types['blk.0.attn_norm.weight']).toBe('F32');
    expect(result.gguf?.relativeError).toBeGreaterThan(0.05);
    expect(result.gguf?.relativeError).toBeLessThan(0.09);
    expect(opened(file).keyValues?.get('general.file_type')?.value).toBe(15);
  });

  it('q4_k_m of eight experts: keys and values in q8_0, the router as it is', async () => {
    const file = out();
    await convert(await wideModel('mixtral'), file, { dtype: 'q4_k_m', check: false });
    const types = typesIn(file);
    expect(types).toMatchObject({
      'blk.0.attn_k.weight': 'Q8_0',
      'blk.0.attn_v.weight': 'Q8_0',
      'blk.0.attn_q.weight': 'Q4_K',
      'blk.0.attn_output.weight': 'Q5_K',
      'blk.0.ffn_gate_inp.weight': 'F32',
      'blk.0.ffn_up_exps.weight': 'Q4_K',
      'blk.1.ffn_down_exps.weight': 'Q6_K',
    });
  });

  it('have blocks of 32 where a row is no multiple of 256, and say so', async () => {
    const file = out();
    const { notes } = await convert(inPackage('fixtures/hf/llama'), file, { dtype: 'q4_k_m' });
    const types = typesIn(file);
    expect(types['blk.0.attn_q.weight']).toBe('Q5_0');
    // Rows of 88 values.
    expect(types['blk.0.ffn_down.weight']).toBe('F16');
    expect(notes.join('\n')).toMatch(/not a multiple of 256/);
    expect(notes.join('\n')).toMatch(/not a multiple of 32/);
  });

  it('a mixture in another mixture is written from its values', async () => {
    const [first, second] = [out(), out()];
    await convert(await wideModel('tied'), first, { dtype: 'q8_0' });
    const { gguf } = await convert(first, second, { dtype: 'q3_k_m' });
    expect(gguf?.relativeError).toBeGreaterThan(0.1);
    expect(typesIn(second)['blk.0.attn_q.weight']).toBe('Q3_K');
  });
});

describe('importances', () => {
  const NAME = 'blk.1.attn_q.weight';
  const squares = Array.from({ length: 256 }, (_, index) => ((index * 37) % 101) ** 2 / 100);
  const dat = () => fileIn('m.dat', older([entry(NAME, 2, squares)]));

  it('change the blocks of the matrices that have them', async () => {
    const folder = await wideModel('tied');
    const [plain, weighted] = [out(), out()];
    await convert(folder, plain, { dtype: 'q4_k_m' });
    const file = dat();
    const { notes } = await convert(folder, weighted, { dtype: 'q4_k_m', imatrix: file });
    const other = 'blk.0.attn_q.weight';
    expect(bytesOf(weighted, other)).toEqual(bytesOf(plain, other));
    expect(bytesOf(weighted, NAME)).not.toEqual(bytesOf(plain, NAME));
    const { keyValues } = opened(weighted);
    expect(opened(plain).keyValues?.has('quantize.imatrix.file')).toBe(false);
    expect(keyValues?.get('quantize.imatrix.file')?.value).toBe('m.dat');
    expect(keyValues?.get('quantize.imatrix.entries_count')?.value).toBe(1);
    expect(notes.join('\n')).toMatch(/^Importances of 1 matrix from /m);
    expect(notes.join('\n')).toMatch(/No importances for .*"blk\.0\.attn_k/);
  });

  it('of each expert are for the rows of that expert', async () => {
    const folder = await wideModel('mixtral');
    const name = 'blk.0.ffn_up_exps.weight';
    const sums = Array.from({ length: 8 * 256 }, (_, index) => ((index * 41) % 997) + 1);
    const file = fileIn('m.gguf', imatrix({ [name]: { sums, counts: Array(8).fill(1) } }));
    const target = out();
    const source = out();
    await convert(folder, source, {});
    await convert(folder, target, { dtype: 'q4_k_s', imatrix: file });
    const dead = fileIn(
      'd.dat',
      older([
        entry(
          name,
          1,
          sums.map((sum, at) => (at < 256 ? 0 : sum)),
        ),
      ]),
    );
    const { notes } = await convert(folder, out(), {
      dtype: 'q4_k_s',
      imatrix: dead,
      dryRun: true,
    });
    expect(notes.join('\n')).toMatch(
      /zero get equal ones: "blk\.0\.ffn_up_exps\.weight" \(1 of 8\)/,
    );
    const original = openCheckpoint(source);
    const tensor = original.tensors.get(name);
    if (tensor === undefined) throw new Error(name);
    const bytes = Buffer.from(readTensor(tensor));
    original.close();
    const values = new Float32Array(new Uint8Array(bytes).buffer);
    const [perExpert, blockBytes] = [256 * 256, (256 * 256 * 144) / 256];
    const expected = new Uint8Array(8 * blockBytes);
    for (let expert = 0; expert < 8; expert++) {
      encodeBlocks(
        'Q4_K',
        values.subarray(expert * perExpert, (expert + 1) * perExpert),
        expected.subarray(expert * blockBytes),
        {
          columns: 256,
          importance: Float32Array.from(sums.slice(256 * expert, 256 * (expert + 1))),
        },
      );
    }
    expect(bytesOf(target, name)).toEqual(Buffer.from(expected));
  });

  it.each<readonly [string, () => string | undefined, MixtureName | 'F16', RegExp]>([
    ['without a search for scales', dat, 'q8_0', /search for scales/],
    ['in a type of numbers', dat, 'F16', /search for scales, found f16/],
    ['in a folder', () => folderOf({}), 'q4_k_m', /--imatrix: expected a file, found the folder/],
    ['that are required and missing', () => undefined, 'q2_k_s', /requires an importance matrix/],
    [
      'of another size',
      () => fileIn('m.dat', older([entry(NAME, 2, [1, 2, 3])])),
      'q4_k_m',
      /another model/,
    ],
    [
      'of other names',
      () => fileIn('m.dat', older([entry('blk.99.attn_q.weight', 2, squares)])),
      'q4_k_m',
      /another model/,
    ],
    ['that are none', () => inPackage('package.json'), 'q4_k_m', /is refused/],
    ['of no file', () => path.join(folderOf({}), 'none.dat'), 'q4_k_m', /none\.dat/],
  ])('%s are refused', async (_, file, dtype, message) => {
    const target = out();
    const flags: Flags = { dtype, imatrix: file() };
    await expect(convert(await wideModel('tied'), target, flags)).rejects.toThrow(message);
    expect(fs.existsSync(target)).toBe(false);
  });

  it('may have another size for the embedding, which is then left out', async () => {
    const entries = [entry('token_embd.weight', 1, [1, 2]), entry(NAME, 1, squares)];
    const file = fileIn('m.dat', older(entries));
    const flags: Flags = { dtype: 'q2_k_s', imatrix: file, dryRun: true };
    const { notes } = await convert(await wideModel('tied'), out(), flags);
    expect(notes.join('\n')).toMatch(/No importances for.*token_embd/);
  });
});

describe('a file of blocks as the input of a conversion', () => {
  it.each(['llama', 'mixtral'] as const)('counts its stored bytes: %s', async (name) => {
    const folder = folderOf({});
    const file = path.join(folder, 'model.gguf');
    const made = await convert(await wideModel(name), file, { dtype: 'q4_k_m', check: false });
    const { input } = await convert(file, path.join(folder, 'back.gguf'), {
      dtype: 'q8_0',
      check: false,
    });
    // The padding between tensors is in no tensor.
    expect(input.tensorBytes).toBe(made.output.tensorBytes);
    expect(input.tensorBytes).toBeLessThan(fs.statSync(file).size);
  });
});
