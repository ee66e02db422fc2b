/** Commands that run a model refuse one that is described and not run; the others say what they can. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runHere } from '../run-here.js';

const configIn = (name: string) =>
  JSON.parse(fs.readFileSync(`fixtures/described/${name}.json`, 'utf8')).config;

const MOSHI = {
  ...{ hidden_size: 64, num_hidden_layers: 2, num_attention_heads: 4, head_dim: 16 },
  ...{ ffn_dim: 128, vocab_size: 100 },
};

const CONFIGS = {
  deepseek_v4: { hidden_size: 64, num_hidden_layers: 4, vocab_size: 256 },
  axk2: {},
  inkling_text: {},
  qwen4_exp_text: {},
  xlstm: {},
  xlnet: { d_model: 64, n_layer: 2, n_head: 4 },
  zaya: configIn('zaya-7-13'),
  moshi: { ...MOSHI, max_position_embeddings: 8000, sliding_window: 250 },
};

let folder: string;
const file = (name: keyof typeof CONFIGS) => path.join(folder, `${name}.json`);

beforeAll(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-described-'));
  for (const [name, config] of Object.entries(CONFIGS)) {
    fs.writeFileSync(
      path.join(folder, `${name}.json`),
      JSON.stringify({ model_type: name, ...config }),
    );
  }
});

afterAll(() => fs.rmSync(folder, { recursive: true, force: true }));

describe('a model that is described and not run', () => {
  it.each([
    ['quick-test'],
    ['generate', '--random', '--ids', '1'],
    ['evaluate', '--random', '--ids', '1,2,3'],
    ['export', '--random', '--save', 'model.onnx'],
  ])('is refused by %s', async (command, ...args) => {
    const words = args.map((each) =>
      each === 'model.onnx' ? path.join(folder, 'model.onnx') : each,
    );
    const { code, stderr, stdout } = await runHere([command, file('deepseek_v4'), ...words]);
    expect(stderr).toMatch(/is described, and no engine computes it/);
    expect(code).toBe(2);
    expect(stdout).toBe('');
    expect(fs.existsSync(path.join(folder, 'model.onnx'))).toBe(false);
  });

  it.each(['deepseek_v4', 'axk2', 'inkling_text', 'qwen4_exp_text'] as const)(
    '%s has no more experts for a token than there are',
    async (name) => {
      const line = ['validate', file(name), '--set', 'model.num_experts_per_tok=100000'];
      const { code, stdout, stderr } = await runHere(line);
      expect(code).toBe(1);
      expect(stdout + stderr).toMatch(/100000 experts for a token are more than the \d+ there are/);
    },
  );

  it.each([7, 4095])('xlstm with %i heads is refused', async (heads) => {
    const line = ['validate', file('xlstm'), '--set', `model.num_heads=${heads}`];
    const { code, stdout, stderr } = await runHere(line);
    expect(code).toBe(1);
    expect(stdout + stderr).toContain(`${heads} heads do not divide keys of 2048`);
  });

  it.each(['deepseek_v4', 'xlnet'] as const)('%s has positions for rope', async (name) => {
    const { code, stderr } = await runHere(['rope', file(name)]);
    expect(code).toBe(2);
    expect(stderr).toContain('its positions are described, not computed');
    expect(stderr).not.toContain('no positions at all');
  });

  it('moshi takes no input longer than its window', async () => {
    const line = ['profile', file('moshi')];
    expect((await runHere([...line, '--context', '250'])).code).toBe(0);
    const { code, stderr } = await runHere([...line, '--context', '251']);
    expect(code).toBe(2);
    expect(stderr).toContain('250');
  });

  it('has the attention layers of its blocks', async () => {
    const { stdout } = await runHere([
      'attention',
      file('deepseek_v4'),
      '--context',
      '8k',
      '--json',
    ]);
    expect(JSON.parse(stdout).layers).toBe(4);
  });

  it.each(['deepseek_v4', 'zaya'] as const)('%s has no recurrent layers', async (name) => {
    const { code, stderr } = await runHere(
      ['fit', file(name), '--for', 'training', '--gpu', 'h100', '--gpus', '2'].concat(
        ...['--context-parallel', '2', '--context', '64'],
      ),
    );
    expect(code).toBe(2);
    expect(stderr).toContain('layers of this model are described');
    expect(stderr).not.toContain('recurrent');
    const { stdout } = await runHere(['profile', file(name), '--details']);
    expect(stdout).not.toContain('convolution state');
  });

  it('has the cache of a token within its windows and beyond them', async () => {
    const { stdout } = await runHere(['profile', file('deepseek_v4'), '--context', '4096']);
    expect(stdout).toMatch(
      /KV cache +[\d.]+ kB per token, [\d.]+ k?B with windows full; [\d.]+ MB/,
    );
  });

  it('has no limit of positions where its class has none', async () => {
    const { code } = await runHere(['profile', file('xlnet'), '--context', '4096']);
    expect(code).toBe(0);
  });

  it('is verified without a proposal to run it', async () => {
    const place = 'fixtures/described/saved/axk2-3-1';
    const { code, stdout } = await runHere(['verify', `${place}/config.json`, place]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/matches: 68 tensors/);
    expect(stdout).not.toMatch(/quick-test/);
  });

  it('is read in the decoder of a model of sounds', async () => {
    const whole = path.join(folder, 'musicgen.json');
    const encoder = { model_type: 't5' };
    const decoder = { ...configIn('musicgen_decoder-7-17'), model_type: 'musicgen_decoder' };
    fs.writeFileSync(
      whole,
      JSON.stringify({ model_type: 'musicgen', text_encoder: encoder, decoder }),
    );
    const { stdout, stderr } = await runHere(['profile', whole]);
    expect(stdout).toMatch(/musicgen_decoder/);
    expect(stderr).toMatch(/text_encoder is left out|text_encoder.* left out/);
  });
});
