import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { StoredTensor } from '../../src/checkpoint/stored-tensor.js';
import { parseDocument } from '../../src/config/document.js';
import { modelOf } from '../../src/input/model-input/model-file.js';
import { safetensorsFile } from '../checkpoint/reconcile/files.js';
import { Workshop } from '../checkpoint/reconcile/support.js';
import { runHere } from '../run-here.js';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
const workshop = new Workshop();
afterAll(() => {
  workshop.close();
  fs.rmSync(folder, { recursive: true });
});

const inFolder = (...parts: string[]) => path.join(folder, ...parts);
const LLAMA = {
  architectures: ['LlamaForCausalLM'],
  model_type: 'llama',
  vocab_size: 11,
  hidden_size: 8,
  intermediate_size: 8,
  num_hidden_layers: 1,
  num_attention_heads: 2,
  tie_word_embeddings: true,
};

/** Tied model with a head in its file, which has the values of a seed. */
async function withHead(name: string, seed: number) {
  const config = JSON.stringify(LLAMA);
  const { model } = await modelOf(parseDocument(config, 'config.json'));
  const tensors = new Map<string, StoredTensor>(workshop.stateDict(model, false));
  const { shape } = model.embedding.weight;
  tensors.set('model.embed_tokens.weight', workshop.tensor(shape, { seed: 1 }));
  tensors.set('lm_head.weight', workshop.tensor(shape, { seed }));
  fs.mkdirSync(inFolder(name));
  fs.writeFileSync(inFolder(name, 'config.json'), config);
  await safetensorsFile(inFolder(name, 'model.safetensors'), tensors);
  return inFolder(name);
}

describe('a tied config with a stored head', () => {
  const profiled = async (modelPath: string) => {
    const { code, stderr } = await runHere(['profile', modelPath, '--context', '8']);
    expect(code).toBe(0);
    return stderr;
  };
  const verified = (modelPath: string) =>
    runHere(['verify', `${modelPath}/config.json`, modelPath, '--details']);

  it('has no warning for a head with equal values', async () => {
    const modelPath = await withHead('equal', 1);
    expect(await profiled(modelPath)).not.toContain('warning');
    expect(await verified(modelPath)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('1 tied tensor stored twice (lm_head.weight)'),
    });
  });

  it('has a warning for a head with other values', async () => {
    const modelPath = await withHead('other', 2);
    expect(await profiled(modelPath)).toContain(
      'lm_head.weight: has other values than model.embed_tokens.weight, and is counted once with it, because the config ties them\n' +
        '  → set tie_word_embeddings to false to count both, as transformers loads them',
    );
    expect(await verified(modelPath)).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/^not tied +lm_head\.weight/m),
    });
  });
});

describe('a count that differs from other programs', () => {
  it('has a note for experts in only some layers', async () => {
    const config = { model_type: 'deepseek_v3', num_hidden_layers: 6, moe_layer_freq: 2 };
    fs.writeFileSync(inFolder('config.json'), JSON.stringify(config));
    const { code, stderr } = await runHere(['profile', inFolder('config.json'), '--context', '8']);
    expect(code).toBe(0);
    expect(stderr).toContain(
      "moe_layer_freq 2: experts are counted in every layer whose number it divides, as in DeepSeek's own code; transformers reads 1",
    );
  });

  it('has a note for the cache of the hybrid model', async () => {
    const flags = ['--set', 'model.window_size=16', '--context', '64', '--details'];
    const { stdout } = await runHere(['profile', 'configs/hybrid/tiny.yaml', ...flags]);
    expect(stdout.replaceAll(/\s+/g, ' ')).toContain(
      'The original code never evicts a key: its cache keeps all.',
    );
  });
});
