/**
 * Models written as GGUF files and read again: every value, and the config from the metadata. bench/gguf_peers.py
 * compares the files with llama.cpp.
 */
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { openCheckpoint } from '../../../src/checkpoint/open.js';
import { readTensor } from '../../../src/checkpoint/view.js';
import { progressDisplay } from '../../../src/cli/progress.js';
import { findConfig } from '../../../src/input/model-input/checkpoint/checkpoint-config.js';
import { compareValues } from '../../../src/input/model-input/checkpoint/verify-checkpoint.js';
import { openModelCheckpoint } from '../../../src/input/model-input/gguf/gguf-checkpoint.js';
import { modelOf } from '../../../src/input/model-input/model-file.js';
import { loadModelFile } from '../../../src/input/model-input/read-model-file.js';
import { folderOf } from '../../checkpoint/temp-folder.js';
import { inPackage } from '../../fixtures.js';
import { convert } from './convert.js';

const fixture = (name: string) => inPackage('fixtures/hf', name);

/** Models of every supported architecture and kind of RoPE scaling. */
const MODELS = [
  ...['llama', 'llama-biases', 'llama-head-dim', 'llama-linear', 'llama-tied-rope3'],
  ...['mistral', 'mixtral-saved', 'qwen2', 'qwen3', 'gemma', 'olmo2', 'olmo2-gqa'],
  ...['phi3', 'phi3-longrope-beyond', 'phi3-partial', 'gpt2', 'gpt-neox', 'bloom'],
];

describe('a GGUF file', () => {
  it.each(MODELS)('has the same values and the same config: %s', async (name) => {
    const out = path.join(folderOf({ x: '' }), 'model.gguf');
    const result = await convert(fixture(name), out, {});
    expect(result.run?.checked).toBe(true);
    const [written, original] = [openModelCheckpoint(out), openCheckpoint(fixture(name))];
    try {
      const { beyond, types, compared } = await compareValues(
        written,
        original,
        progressDisplay({ quiet: true }),
      );
      expect(beyond).toEqual([]);
      expect(compared).toBeGreaterThan(10);
      // A norm of Gemma is stored with 1 added, which rounds it.
      expect(Math.max(...types.map(({ relativeError }) => relativeError))).toBeLessThan(1e-6);
      const config = await findConfig(written, undefined);
      if (!config) throw new Error('no config');
      const [mine, theirs] = [await modelOf(config.document), await loadModelFile(fixture(name))];
      const unlike = Object.keys(sizes(theirs.model)).filter(
        (key) => sizes(mine.model)[key] !== sizes(theirs.model)[key],
      );
      expect(unlike).toEqual([]);
    } finally {
      written.close();
      original.close();
    }
  });

  it.each(['q8_0', 'q4_0'] as const)('of %s is reported with its error per layer', async (type) => {
    const out = path.join(folderOf({ x: '' }), 'model.gguf');
    const blocks = type === 'q8_0' ? 'Q8_0' : 'Q4_0';
    const { gguf, groups } = await convert(fixture('llama'), out, { dtype: type });
    expect(gguf?.errors.map(({ part }) => part)).toEqual([
      'token_embd.weight',
      'output.weight',
      'blk.0',
      'blk.1',
    ]);
    expect(gguf?.errors[2]?.byTensor.map(({ name }) => name)).toContain('blk.0.attn_q.weight');
    // Blocks of 32 normal values: errors are uniform within 1 / 127 and 1 / 8 of the largest value.
    const [least, most] = type === 'q8_0' ? [0.004, 0.007] : [0.05, 0.1];
    expect(gguf?.relativeError).toBeGreaterThan(least);
    expect(gguf?.relativeError).toBeLessThan(most);
    expect(groups.some(({ dtype }) => dtype === blocks)).toBe(true);
  });

  it('is converted back into the tensors of transformers', async () => {
    const folder = folderOf({ x: '' });
    const [gguf, back] = [path.join(folder, 'model.gguf'), path.join(folder, 'back')];
    await convert(fixture('llama'), gguf, {});
    await convert(gguf, back, { container: 'safetensors' });
    const [a, b] = [openCheckpoint(back), openCheckpoint(fixture('llama'))];
    try {
      expect([...a.tensors.keys()].sort()).toEqual([...b.tensors.keys()].sort());
      for (const [name, tensor] of b.tensors) {
        const other = a.tensors.get(name);
        if (!other) throw new Error(name);
        expect([name, Buffer.compare(readTensor(tensor), readTensor(other))]).toEqual([name, 0]);
      }
    } finally {
      a.close();
      b.close();
    }
  });

  it('has the tokenizer of the folder', async () => {
    const folder = folderOf({ x: '' });
    for (const name of fs.readdirSync(fixture('llama'))) {
      fs.copyFileSync(path.join(fixture('llama'), name), path.join(folder, name));
    }
    const config = JSON.parse(fs.readFileSync(path.join(folder, 'config.json'), 'utf8'));
    const tokenizer = {
      added_tokens: [{ id: 0, content: '<s>', special: true }],
      pre_tokenizer: { type: 'ByteLevel', use_regex: true },
      model: { type: 'BPE', vocab: { '<s>': 0, a: 1, b: 2, ab: 3 }, merges: [['a', 'b']] },
    };
    fs.writeFileSync(path.join(folder, 'tokenizer.json'), JSON.stringify(tokenizer));
    fs.writeFileSync(path.join(folder, 'chat_template.jinja'), '{{ messages }}');
    const out = path.join(folderOf({ x: '' }), 'model.gguf');
    await convert(folder, out, {});
    const { keyValues, close } = openCheckpoint(out);
    close();
    const value = (key: string) => keyValues?.get(`tokenizer.${key}`)?.value;
    expect(value('ggml.model')).toBe('gpt2');
    expect(value('ggml.pre')).toBe('gpt-2');
    expect(value('ggml.merges')).toEqual(['a b']);
    expect(value('chat_template')).toBe('{{ messages }}');
    const types = value('ggml.token_type') as number[];
    expect(types.slice(0, 5)).toEqual([3, 1, 1, 1, 5]);
    expect(types.length).toBe(config.vocab_size);
  });
});

describe('writing a GGUF file', () => {
  it.each([
    ['deepseek-v3', {}, /no architecture/],
    ['qwen3-moe', {}, /experts/],
    ['llama-dynamic-beyond', {}, /RoPE scaling/],
    ['gemma3', {}, /scores/],
    ['gemma2', {}, /scores/],
    ['smollm3', {}, /positions/],
    ['llama-yarn', {}, /YaRN/],
    ['llama', { set: ['model.rope_theta=5'] as string[] }, /--set/],
    ['llama', { noConfig: true }, /needs the config/],
  ] as const)('refuses %s with %j', async (name, flags, message) => {
    const out = path.join(folderOf({ x: '' }), 'model.gguf');
    await expect(convert(fixture(name), out, flags)).rejects.toThrow(message);
    expect(fs.existsSync(out)).toBe(false);
  });

  it('is required for blocks of GGUF', async () => {
    const out = path.join(folderOf({ x: '' }), 'out');
    await expect(convert(fixture('llama'), out, { dtype: 'q8_0' })).rejects.toThrow(/\.gguf/);
  });
});

/** Positions and text of a description. */
function sizes(model: { readonly positions: number }): Record<string, unknown> {
  // The head of GPT-NeoX has two names.
  const text = JSON.stringify(model, (_, value) =>
    // Numbers are float32 in the metadata.
    typeof value === 'number' ? Number(value.toPrecision(6)) : value,
  ).replaceAll('lm_head', 'embed_out');
  return { positions: model.positions, text };
}
