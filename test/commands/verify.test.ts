import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { changedCheckpoint } from '../checkpoint/changed-checkpoint.js';
import { safetensorsFile, torchFile } from '../checkpoint/reconcile/files.js';
import { describeModel, SMALL, Workshop } from '../checkpoint/reconcile/support.js';
import { runCli } from '../run-cli.js';
import { runHere } from '../run-here.js';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
const workshop = new Workshop();
afterAll(() => {
  workshop.close();
  fs.rmSync(folder, { recursive: true });
});

/** A small model, so that its RoPE tables can be written. */
const MODEL = { ...SMALL, num_layers: 2, num_heads: 4 };
const CONFIG = path.join(folder, 'model.yaml');
const PT = path.join(folder, 'model.pt');

const verify = (...args: string[]) => runHere(['verify', ...args]);
const json = async (...args: string[]) => JSON.parse((await verify(...args, '--json')).stdout);

beforeAll(async () => {
  fs.writeFileSync(CONFIG, JSON.stringify({ model: MODEL }));
  const tensors = workshop.stateDict(describeModel(MODEL).model);
  await torchFile(PT, tensors, { config: { model: { ...MODEL, layer_norm_eps: '1e-5' } } });
});

describe('verify', () => {
  it('shows no table of values without a common tensor', async () => {
    const files = ['fixtures/hf/qwen3/config.json', 'fixtures/hf/qwen3'];
    const { code, stdout } = await verify(...files, '--values', 'fixtures/hf/gpt2');
    expect(code).toBe(1);
    expect(stdout).toContain('No tensor is in both: they are not checkpoints of one model.');
    expect(stdout).not.toContain('largest error');
  });

  it('does not call tensors of another shape inexact', async () => {
    const { code, stdout } = await verify(
      'fixtures/hf/llama',
      '--values',
      'fixtures/hf/llama-linear',
    );
    expect(code).toBe(1);
    expect(stdout).toContain('No tensor has the same shape in both');
    expect(stdout).toMatch(/^Of another shape: lm_head\.weight, /m);
    expect(stdout).not.toContain('Beyond the error');
  });

  it('allows packed weights the error of their codes', async () => {
    const out = path.join(folder, 'int4');
    const original = 'fixtures/hf/llama';
    await runHere(['convert-checkpoint', original, out, '--quantize', 'int4', '--quiet']);
    const { code, stdout } = await verify(out, '--values', original);
    expect(stdout).toMatch(/^INT4 +13 +\d\.\d+% +25\.0% +model\./m);
    expect(code).toBe(0);
    const { values } = await json(out, '--values', 'fixtures/hf/llama-linear');
    expect(values.reshaped).toContain('lm_head.weight');
    const difference = await runHere(['diff', original, out, '--json']);
    const inspected = await runHere(['inspect', out, '--json']);
    expect(JSON.parse(difference.stdout).b.bytes).toBe(JSON.parse(inspected.stdout).totals.bytes);
  });

  it.each([
    ['a tied head that only one of two files stores', 'gpt2', 'gpt2.pt'],
    ['tensors that the original has under an older name', 'gpt-neox', 'gpt-neox.gguf'],
  ])('compares %s', async (_, model, name) => {
    const original = `fixtures/hf/${model}`;
    const [out, back] = [path.join(folder, name), path.join(folder, `${model}-back`)];
    expect((await runHere(['convert-checkpoint', original, out])).code).toBe(0);
    const again = ['convert-checkpoint', out, back, '--container', 'safetensors'];
    expect((await runHere(again)).code).toBe(0);
    for (const pair of [
      [back, original],
      [original, back],
    ] as const) {
      const { matches, values } = await json(pair[0], '--values', pair[1]);
      expect({ matches, ...values }).toMatchObject({ matches: true, compared: 28, missing: [] });
    }
  });

  it('compares a tied head of the original that has values of its own', async () => {
    const tied = 'fixtures/hf/gpt2';
    const other = changedCheckpoint(tied, { 'lm_head.weight': ['F32', [97, 32], 97 * 32 * 4] });
    expect((await json(tied, '--values', other)).values).toMatchObject({
      compared: 29,
      missing: [],
      beyond: ['lm_head.weight'],
    });
  });

  it('reports a match', async () => {
    const { code, stdout, stderr } = await verify(CONFIG, PT);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toBe(
      'matches: 80 tensors\n' +
        `  checkpoint  ${PT} (PyTorch (zip), 80 names, state dict model_state_dict)\n` +
        `  config      ${CONFIG} (hybrid)\n` +
        '  values      no NaN or infinity in 74 tensors, 41.7 kB\n\n' +
        `Next: minimind quick-test ${CONFIG} --checkpoint ${PT}\n`,
    );
  });

  it('reports faults with a suggestion, and exits with 1', async () => {
    const { code, stdout, stderr } = await verify(
      CONFIG,
      PT,
      '--set',
      'model.max_position_embeddings=9',
    );
    expect({ code, stderr }).toEqual({ code: 1, stderr: '' });
    expect(stdout).toMatch(/^does not match: 2 wrong shape\n/);
    expect(stdout).toMatch(
      /^wrong shape {2}layers\.\{0–1\}\.srte\.freqs +2 {2}\[1, 9, 8\] {2}F32 \[1, 12, 8\]$/m,
    );
    expect(stdout).toMatch(
      /^→ the SRTE has 12 rows: set model\.max_position_embeddings: 12, or convert the checkpoint\. This explains all differences\.$/m,
    );
  });

  it('has faults and suggestions in JSON', async () => {
    const result = await json(CONFIG, PT, '--set', 'model.tie_word_embeddings=true');
    expect(result).toMatchObject({
      schema: 'minimind/verify@1',
      config: CONFIG,
      checkpoint: PT,
      format: 'torch-zip',
      stateDict: ['model_state_dict'],
      matches: false,
      counts: { described: 79, stored: 80, faulty: 1 },
      faults: [{ kind: 'not-tied', names: ['lm_head.weight'] }],
      suggestions: [
        { kind: 'config', set: [{ path: 'model.tie_word_embeddings', value: false }], leaves: 0 },
      ],
      configDifferences: [{ path: 'model.tie_word_embeddings', config: true, checkpoint: false }],
    });
    expect(
      (await verify(CONFIG, PT, '--set', 'model.tie_word_embeddings=true', '--json')).code,
    ).toBe(1);
  });

  it('warns of a different config inside, which is an error with --strict', async () => {
    const change = ['--set', 'model.window_size=7'];
    const lenient = await verify(CONFIG, PT, ...change);
    expect(lenient.code).toBe(0);
    expect(lenient.stdout).toContain(
      'The config inside the checkpoint says model.window_size: 1024, not 7.',
    );
    const strict = await verify(CONFIG, PT, ...change, '--strict');
    expect(strict.code).toBe(1);
    expect(strict.stdout).toMatch(
      /^does not match: the tensors match, but --strict refuses warnings\n/,
    );
    expect((await json(CONFIG, PT, ...change, '--strict')).matches).toBe(false);
    expect((await verify(CONFIG, PT, '--strict')).code).toBe(0);
  });

  it('reads a config from standard input', () => {
    const input = JSON.stringify({ model: { ...MODEL, gate_rank: 3 } });
    const { code, stdout } = runCli(['verify', '-', PT], { input });
    expect(code).toBe(1);
    expect(stdout).toContain('set model.gate_rank: 4.');
  });

  it('suggests a change even if it contradicts the rest of the config', () => {
    const model = { ...MODEL, max_position_embeddings: 20 };
    const input = JSON.stringify({ model, training: { max_seq_length: 15 } });
    const { stdout } = runCli(['verify', '-', PT], { input });
    expect(stdout).toContain('set model.max_position_embeddings: 12,');
  });

  it('accepts safetensors without buffers, with names of wrappers', async () => {
    const tensors = workshop.stateDict(describeModel(MODEL).model, false);
    const wrapped = new Map([...tensors].map(([name, tensor]) => [`_orig_mod.${name}`, tensor]));
    const file = await safetensorsFile(path.join(folder, 'model.safetensors'), wrapped);
    const { code, stdout } = await verify(CONFIG, file, '--strict');
    expect(code).toBe(0);
    expect(stdout).toContain('74 names, prefix "_orig_mod." ignored');
    expect(stdout).toContain('6 buffers not stored');
  });

  it('refuses names that collide', async () => {
    const tensors = workshop.stateDict(describeModel(MODEL).model, false);
    tensors.set('layers.0._orig_mod.mamba.D', workshop.tensor([16]));
    const file = await safetensorsFile(path.join(folder, 'collide.safetensors'), tensors);
    const { code, stderr } = await verify(CONFIG, file);
    expect(code).toBe(2);
    expect(stderr).toContain('tensor "layers.0._orig_mod.mamba.D"');
  });

  it('shows ten faults of all kinds, and all in the details', async () => {
    const args = ['configs/hybrid/tiny.yaml', 'fixtures/checkpoints/valid/zip_proto5.pt'];
    const { stdout } = await verify(...args);
    const faults = (text: string) => text.match(/^(?:missing|extra) /gm) ?? [];
    expect(stdout).toMatch(/^does not match: 73 missing, 4 extra\n/);
    expect(faults(stdout)).toHaveLength(10);
    expect(new Set(faults(stdout)).size).toBe(2);
    expect(stdout).toContain('… 32 more: --details');
    expect(stdout.split('\n').length).toBeLessThanOrEqual(24);
    expect(faults((await verify(...args, '--details')).stdout)).toHaveLength(10 + 42);
  });

  it('has a line of CSV for each fault', async () => {
    const { stdout } = await verify(CONFIG, PT, '--set', 'model.vocab_size=18', '--format', 'csv');
    expect(stdout).toBe(
      'fault,tensors,count,described,found\n' +
        'misshapen,embed_tokens.weight,1,"[18, 8]","F32 [17, 8]"\n' +
        'misshapen,lm_head.weight,1,"[18, 8]","F32 [17, 8]"\n',
    );
  });

  it('escapes and shortens names of tensors', async () => {
    const tensors = workshop.stateDict(describeModel(MODEL).model, false);
    tensors.set('\u001b[31mred', workshop.tensor([1]));
    tensors.set('__proto__', workshop.tensor([1]));
    tensors.set('x'.repeat(5000), workshop.tensor([1]));
    const file = await safetensorsFile(path.join(folder, 'hostile.safetensors'), tensors);
    const { code, stdout } = await verify(CONFIG, file);
    expect(code).toBe(1);
    expect(stdout).not.toContain('\u001b');
    expect(stdout).toMatch(/^extra +\\x1b\[31mred /m);
    expect(stdout).toMatch(/^extra +__proto__ /m);
    expect(stdout).not.toContain('x'.repeat(300));
    expect(
      (await json(CONFIG, file)).faults.map(({ names }: { names: string[] }) => names[0]),
    ).toContain('__proto__');
  });

  it.each([
    [['no-such.yaml', PT], 'found no file "no-such.yaml"'],
    [[CONFIG, 'no-such.pt'], 'there is no file or folder no-such.pt'],
    [[CONFIG], 'expected CONFIG and CHECKPOINT, found only'],
    [[CONFIG, CONFIG], 'is JSON'],
    [[PT, CONFIG], 'expected a config first, found the checkpoint'],
  ])('refuses %j', async (args, message) => {
    const { code, stderr } = await verify(...args);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
  });

  it('reads a folder as a checkpoint with its config, or as either', async () => {
    for (const args of [['fixtures/hf/llama'], ['fixtures/hf/llama', 'fixtures/hf/llama']]) {
      const { code, stdout } = await verify(...args, '--json');
      expect(code).toBe(0);
      expect(JSON.parse(stdout)).toMatchObject({ family: 'llama', matches: true });
    }
  });
});
