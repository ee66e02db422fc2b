import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { safetensorsFile, torchFile } from '../checkpoint/reconcile/files.js';
import { describeModel, SMALL, Workshop } from '../checkpoint/reconcile/support.js';
import { inPackage } from '../fixtures.js';
import { runCli } from '../run-cli.js';
import { runHere } from '../run-here.js';

const ORIGINAL = 'configs/hybrid/original.yaml';
const TINY = 'configs/hybrid/tiny.yaml';
const profile = (...args: string[]) => runHere(['profile', ...args]);
const json = async (...args: string[]) => JSON.parse((await profile(...args, '--json')).stdout);

describe('profile', () => {
  it('has the exact totals of the original', async () => {
    const { parameters, inference } = await json(ORIGINAL);
    expect(parameters.total.value).toBe(22_143_967_232);
    expect(inference.state.keyValueCache.value).toBe(319_258_624);
  });

  it('shows where the parameters are', async () => {
    const { code, stdout, stderr } = await profile(ORIGINAL);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^SRTE +8,589,934,592 +38\.8% {2}█{24}$/m);
    expect(stdout).toMatch(/^total +22,143,967,232 +100\.0%$/m);
    expect(stdout).toContain('KV cache     524.3 kB per token, 319.3 MB for 1 × 2,048 tokens');
    const { stdout: long } = await profile(ORIGINAL, '--details');
    expect(long).toMatch(/^key-value cache +319\.3 MB +304\.5 MiB/m);
  });

  it('uses batch, length, precision and recomputation of the file', () => {
    const training = {
      batch_size: 3,
      max_seq_length: 100,
      fp16: false,
      gradient_checkpointing: true,
    };
    const input = JSON.stringify({ model: { num_layers: 1 }, training, system: { zero_stage: 2 } });
    const read = (...flags: string[]) =>
      JSON.parse(runCli(['profile', '-', '--json', ...flags], { input }).stdout).setting;
    expect(read()).toEqual({
      inference: { batch: 1, context: 100, dtype: 'bf16', cacheDtype: 'bf16', causal: false },
      training: {
        batch: 3,
        context: 100,
        precision: 'float32',
        optimizer: 'adamw',
        recompute: 'full',
      },
      origins: {
        inferenceBatch: 'default',
        trainingBatch: 'file',
        context: 'file',
        precision: 'file',
        recompute: 'file',
      },
      beyondOneDevice: ['system.zero_stage: 2'],
    });
    const flags = [
      '--batch',
      '2',
      '--context',
      '50',
      '--precision',
      'mixed',
      '--recompute',
      'none',
    ];
    expect(read(...flags)).toMatchObject({
      inference: { batch: 2, context: 50 },
      training: { batch: 2, context: 50, precision: 'mixed', recompute: 'none' },
      origins: { inferenceBatch: 'flag', trainingBatch: 'flag', context: 'flag' },
    });
  });

  it('never uses the longest input as the default context silently', async () => {
    expect((await json('configs/hybrid/shared.yaml')).setting.inference.context).toBe(2048);
    expect((await json(TINY)).setting.origins.context).toBe('longest'); // reported as "longest"
    expect((await profile('configs/hybrid/shared.yaml')).stdout).toContain(
      '1 × 2,048 tokens (default)',
    );
  });

  it('has the memory of a training with the workspace of kernels, as fit has', async () => {
    const { stdout } = await profile(TINY, '-q');
    const [, exactly, whole] =
      /^ {2}training +(\S+ MB), .*; (\S+ MB) with workspace$/m.exec(stdout) ?? [];
    const fit = await runHere(['fit', TINY, '--gpu', 'h100-80gb', '--for', 'training', '--json']);
    const { total, stages } = JSON.parse(fit.stdout).training.fit;
    const inMegabytes = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`;
    expect(whole).toBe(inMegabytes(total.expected.value));
    expect(exactly).toBe(inMegabytes(stages[0].exactBytes.value));
  });

  it.each([
    ['max_position_embeddings=32k', 32_768],
    ['vocab_size=32k', 32_000],
  ])('suggests the number for %s, whose k is 1,024 only in tokens', async (set, number) => {
    const { code, stderr } = await profile('minimind2-small', '--set', `model.${set}`);
    expect(code).toBe(2);
    expect(stderr).toMatch(new RegExp(`^ {2}→ write ${number}$`, 'm'));
  });

  it('counts weights with their scales, in the asked type first', async () => {
    const { stdout } = await profile(TINY, '--dtype', 'int4');
    expect(stdout).toMatch(/^ {2}weights +205\.8 kB int4 · \S+ kB bf16 · \S+ kB int8$/m);
    expect((await profile(TINY, '--dtype', 'f32')).stdout).toMatch(
      /^ {2}weights .* f32 · .* bf16 · .* int8 · .* int4$/m,
    );
  });

  it('refuses a context beyond the positions of the model', async () => {
    const { code, stderr } = await profile(TINY, '--context', '257');
    expect(code).toBe(2);
    expect(stderr).toBe(
      'error: --context: 257 tokens are more than the 256 positions of the model\n  → write --context 256, or less\n',
    );
  });

  it.each([
    [['--max-params', '22.2B'], 0],
    [['--max-params', '22143967232'], 0],
    [['--max-params', '22143967231'], 1],
    [['--max-memory', '24GB'], 1],
    [['--max-memory', '43.6GiB'], 0],
    [['--max-memory', '24G'], 1],
    [['--max-memory', '24B'], 1],
    [['--max-kv-cache', '319258624'], 0],
    [['--max-kv-cache', '304MiB'], 1],
    [['--max-training-memory', '80GB'], 1],
    [['--max-flops', '1e15'], 0],
    [['--max-params', '30B', '--max-flops', '1'], 1],
    [['--max-flops', '20000T'], 0],
  ])('with %j exits with %d', async (limits, code) => {
    const run = await profile(ORIGINAL, ...limits);
    expect(run.code).toBe(code);
    expect(run.stderr).toMatch(code === 1 ? /^error: .* exceeds? --max-/ : /^$/);
    expect(run.stdout).toContain(code === 1 ? 'exceeded' : 'kept');
  });

  it.each([
    [['--max-memory', '24X'], '--max-memory: expected a size, found "24X"'],
    ...['max-memory', 'max-kv-cache', 'max-training-memory'].map((flag): [string[], string] => [
      [`--${flag}`, '30'],
      `--${flag}: expected a size with its unit, found "30"\n  → write --${flag} 30GB or 30GiB, or 30B for bytes`,
    ]),
    [['--layers', '--tensors', '--format', 'csv'], 'expected one table for CSV'],
    [['--max-params', 'lots'], '--max-params: expected a count, found "lots"'],
    [['--context', '0'], '--context: expected a positive whole number, found "0"'],
    [
      ['--published', '7Q'],
      '--published: expected a count, a size, FLOPs, a ratio or a percentage, found "7Q"',
    ],
  ])('refuses %j', async (args, message) => {
    const { code, stderr } = await profile(TINY, ...args);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
  });

  it('takes the same memory for 22 billion parameters as for 5 million', () => {
    // Prints the peak memory of the process in KiB at its end.
    const printPeak = encodeURIComponent(
      "process.on('exit', () => process.stderr.write(String(process.resourceUsage().maxRSS)))",
    );
    const peak = (...sizes: string[]) => {
      const run = [inPackage('bin/run.js'), 'profile', inPackage(ORIGINAL), '--json', '--quiet'];
      const args = ['--import', `data:text/javascript,${printPeak}`, ...run, ...sizes];
      return Number(spawnSync(process.execPath, args, { encoding: 'utf8' }).stderr);
    };
    const small = peak('--set', 'model.hidden_size=64');
    expect(small).toBeGreaterThan(10_000);
    // The weights would take 44 GB in bf16. Both models have the same number of tensors.
    expect(peak() - small).toBeLessThan(30_000);
  });

  it('explains every figure', async () => {
    const { stdout } = await profile(TINY, '--explain', '--format', 'csv');
    const lines = stdout.split('\n').filter((line) => line.startsWith('key-value cache,'));
    expect(stdout).toMatch(/^figure,value,unit,formula,inputs,source\n/);
    expect(lines.at(-1)).toMatch(/ceildiv\(batch \* \(2 \* width_window_32 \* min\(context, 17\)/);
    expect((await profile(TINY)).stdout).not.toContain('How each figure comes about');
  });

  it('shows layers and the tree of tensors, with aliases and buffers apart', async () => {
    const { stdout } = await profile(TINY, '--layers', '--tensors');
    expect(stdout).toMatch(/^layers\.1 +128,064 .* 3 local \(32\), 1 global$/m);
    expect(stdout).toMatch(
      /^ {2}lowrank +\[1, 256, 8\] +2,048 +layers\.0\.srte\.lowrank … \(2 names\)$/m,
    );
    expect(stdout.indexOf('Buffers')).toBeLessThan(stdout.indexOf('rope.cos_cached'));
  });

  it.each([
    ['561.5x', '561.5 ×'],
    ['16:3', '5.33333 ×'],
    ['3 to 5 x', '3 × to 5 ×'],
    ['12.34%', '12.34%'],
    ['50-70%', '50% to 70%'],
    ['1,024x', '1,024 ×'],
  ])('repeats the published number %s with its digits', async (text, shown) => {
    const { stdout } = await profile(TINY, '--published', text);
    expect(stdout.split('\n')).toContain(`Published: ${shown}`);
  });

  it('explains a published number, or reports that nothing explains it', async () => {
    expect((await profile('configs/hybrid/aggressive.yaml', '--published', '7B')).stdout).toMatch(
      /Published: 7,000,000,000 \(\+4,407,735,808\)/,
    );
    const lost = String(275_200 + 16_384);
    expect((await profile(TINY, '--published', lost)).stdout).toContain(
      'the tied head counted a second time',
    );
    const rows = [
      '22.144B',
      '13.822B',
      '13.563B',
      '13.558B',
      '13.554B',
      '13.352B',
      '8.321B',
      '0.268B',
    ];
    for (const row of rows) {
      const { stdout } = await profile(ORIGINAL, '--published', row);
      expect(stdout).not.toContain('None of the');
    }
    const shared = (await profile(ORIGINAL, '--published', '13.822B')).stdout;
    expect(shared).toContain('these are the parameters of the preset hybrid/shared');
    expect((await profile(TINY, '--published', '275201')).stdout).toMatch(
      /None of the \d+ combinations of common errors gives this number\./,
    );
    expect((await profile(TINY, '--published', '275,200')).stdout).toContain(
      'That is the number of parameters',
    );
  });
});

describe('profile of a checkpoint', () => {
  const folder = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), 'minimind-'));
  const inFolder = (...parts: string[]) => path.join(folder, ...parts);
  const workshop = new Workshop();
  const tensors = workshop.stateDict(describeModel().model, false);
  const config = { model: SMALL, training: { batch_size: 3 } };
  const budgets = ({ parameters, inference, training }: Record<string, unknown>) => ({
    parameters,
    inference,
    training,
  });

  beforeAll(async () => {
    fs.writeFileSync(inFolder('other.yaml'), JSON.stringify(config));
    await torchFile(inFolder('inside.pt'), tensors, { config });
    // A file without an extension is recognised by its content.
    fs.copyFileSync(inFolder('inside.pt'), inFolder('weights'));
    await safetensorsFile(inFolder('bare', 'model.safetensors'), tensors);
    await safetensorsFile(inFolder('beside', 'model.safetensors'), tensors);
    fs.writeFileSync(inFolder('beside', 'config.yaml'), JSON.stringify(config));
    fs.symlinkSync(path.join('beside', 'model.safetensors'), inFolder('linked.safetensors'));
    await safetensorsFile(inFolder('hf', 'model.safetensors'), tensors);
    fs.writeFileSync(inFolder('hf', 'config.json'), '{"model_type": "lama", "hidden_size": 8}');
  });
  afterAll(() => {
    workshop.close();
    fs.rmSync(folder, { recursive: true });
  });

  it.each([
    [['inside.pt'], 'inside', 'inside.pt: config'],
    [['weights'], 'inside', 'weights: config'],
    [['beside'], 'beside', 'beside/config.yaml'],
    [['beside/model.safetensors'], 'beside', 'beside/config.yaml'],
    // Where the link leads.
    [['linked.safetensors'], 'beside', inFolder('beside', 'config.yaml')],
    [['bare/model.safetensors', '--config', 'other.yaml'], 'flag', 'other.yaml'],
    [['hf', '--config', 'other.yaml'], 'flag', 'other.yaml'],
    [['inside.pt', '--config', 'other.yaml'], 'flag', 'other.yaml'],
  ])('of %j uses the config of %s', async ([file = '', ...flags], origin, configFile) => {
    const { code, stdout, stderr } = await runHere(['profile', file, ...flags, '--json'], {
      cwd: folder,
    });
    expect(code).toBe(0);
    const result = JSON.parse(stdout);
    expect(result.file).toBe(file);
    expect(result.checkpoint).toMatchObject({
      file,
      config: { file: configFile, origin },
      matches: true,
      faults: [],
      totals: { distinctTensors: 144, dtypes: [{ dtype: 'F32', tensors: 144 }] },
    });
    expect(stderr).toMatch(/^the config is [^\n]+\n$/);
    expect(budgets(result)).toEqual(budgets(await json(inFolder('other.yaml'))));
  });

  it('shows the stored tensors in addition to the budgets', async () => {
    const { stdout } = await runHere(['profile', 'beside', '--details'], { cwd: folder });
    expect(stdout).toMatch(/^F32 +144 +[\d,]+ +[\d.]+ kB$/m);
    expect(stdout).toContain(
      '144 names. Names, shapes and types are as the config describes; the config is beside/config.yaml, next to the checkpoint.',
    );
  });

  it('warns if the tensors do not match the config', async () => {
    const run = await runHere(['profile', 'beside', '--set', 'model.vocab_size=9'], {
      cwd: folder,
    });
    expect(run.code).toBe(0);
    expect(run.stderr).toContain('warning: beside: does not match beside/config.yaml: 2 faults\n');
    expect(run.stderr).toContain(
      'warning: beside: lm_head.weight: wrong shape: expected [9, 8], found F32 [17, 8]\n',
    );
    expect(run.stdout).toContain('does not match config.yaml');
  });

  it.each([
    [['other.yaml', '--config', 'other.yaml'], 'other.yaml is not a checkpoint'],
    [['inside.pt', '--state-dict', 'ema'], 'ema'],
  ])('refuses %j', async ([file = '', ...flags], message) => {
    const { code, stderr } = await runHere(['profile', file, ...flags], { cwd: folder });
    expect(code).toBe(2);
    expect(stderr).toContain(message);
  });

  it.each([
    ['bare', 'bare has no config, and there is none next to it'],
    ['hf', 'no family describes "lama"'],
  ])('counts %s from its headers', async (name, reason) => {
    const { code, stdout } = await runHere(['profile', name], { cwd: folder });
    expect(code).toBe(0);
    expect(stdout).toContain('counted from headers');
    expect(stdout).toContain(reason);
  });

  it('reports mistakes of a config inside with their keys', async () => {
    const wrong = { model: { ...SMALL, srte_encoding: 'factorized', num_heads: '2' } };
    await torchFile(inFolder('wrong.pt'), tensors, { config: wrong });
    const { code, stderr } = await runHere(['profile', 'wrong.pt'], { cwd: folder });
    expect(code).toBe(2);
    expect(stderr).toContain('error: wrong.pt: config is not valid: 2 errors');
    expect(stderr).toMatch(
      /error: wrong\.pt: config: model\.srte_encoding: unknown encoding "factorized"/,
    );
    expect(stderr).toMatch(/error: wrong\.pt: config: model\.num_heads: must be an integer ≥ 1/);
  });

  it('reads a config inside with a long list and a long text', async () => {
    const data = { files: Array.from({ length: 5000 }, (_, i) => i), prompt: 'x'.repeat(5000) };
    await torchFile(inFolder('long.pt'), tensors, { config: { model: SMALL, data } });
    const { code, stderr } = await runHere(['profile', 'long.pt'], { cwd: folder });
    expect([code, stderr]).toEqual([0, expect.not.stringContaining('error')]);
  });

  it.each([
    ['a list', ['model'], 'is not a mapping, but of type list'],
    ['too large', { data: Array.from({ length: 100_000 }, (_, i) => i) }, 'is larger than'],
  ])('refuses a config inside that is %s', async (_, inside, message) => {
    await torchFile(inFolder('odd.pt'), tensors, { config: inside });
    const { code, stderr } = await runHere(['profile', 'odd.pt'], { cwd: folder });
    expect(code).toBe(2);
    expect(stderr).toContain(`the config in odd.pt ${message}`);
  });

  it('reads the text 1e-5 in a config inside as a number', async () => {
    const inside = { model: { ...SMALL, layer_norm_eps: '1e-5' } };
    await torchFile(inFolder('text.pt'), tensors, { config: inside });
    const { stderr } = await runHere(['profile', 'text.pt', '-q'], { cwd: folder });
    expect(stderr).toBe('');
  });
});

it.each([
  [[], 'Mamba state  35.1 MB in bf16'],
  [['--cache-dtype', 'f32'], 'Mamba state  70.3 MB in f32'],
])('profile notes the dtype of Mamba states: %j', async (flags, line) => {
  const { stdout } = await runHere(['profile', 'configs/hybrid/original.yaml', ...flags]);
  expect(stdout.split('\n').map((each) => each.trim())).toContain(line);
});

it.each([
  ['qwen3-next-7-12', 'gated DeltaNet state'],
  ['mamba2', 'Mamba state'],
  ['lfm2-7-15', 'convolution state'],
])('profile names the state of %s: %s', async (name, label) => {
  const { stdout } = await runHere(['profile', `fixtures/hf/${name}`, '-q']);
  expect(stdout).toMatch(new RegExp(`^  ${label} `, 'm'));
});
