import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { inPackage } from '../fixtures.js';
import { runCli } from '../run-cli.js';
import { runHere } from '../run-here.js';

const folder = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), 'minimind-'));
const FIXTURE = 'fixtures/old-checkpoint/trained-same-start/checkpoint_step_30.pt';
const IN = path.join(folder, 'old.pt');
beforeAll(() => fs.copyFileSync(inPackage(FIXTURE), IN));
afterAll(() => fs.rmSync(folder, { recursive: true }));

let made = 0;
/** Path of a new file. */
const out = (ending = '.pt') => path.join(folder, `out-${made++}${ending}`);

const convert = (...args: string[]) => runHere(['convert-checkpoint', ...args]);
/** Converts without a config, because the RoPE tables were removed from the fixture. */
const shared = (target: string, ...args: string[]) =>
  convert(IN, target, '--to', 'shared', '--no-config', ...args);

describe('convert-checkpoint', () => {
  it('answers on stdout, exits with 0, and leaves no other file', async () => {
    const target = out();
    const before = fs.readdirSync(folder);
    const { code, stdout, stderr } = await shared(target);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(
      /^Converted to .*\.pt: [\d.]+ kB → [\d.]+ kB, largest SRTE error \d\d\.\d% \(layer \d\)\n/,
    );
    expect(stdout).toMatch(/^total +23\.0%$/m);
    expect(fs.readdirSync(folder).sort()).toEqual([...before, path.basename(target)].sort());
    const { size } = fs.statSync(target);
    expect(stdout).toMatch(/^Converted to .*out-\d+\.pt: /m);
    const { output, run } = JSON.parse((await shared(target, '--force', '--json')).stdout);
    expect(output.bytes).toBe(size);
    expect(run.writtenBytes).toBe(size);
    expect(run).toMatchObject({ resumed: false, checked: false });
  });

  it('writes nothing in a dry run', async () => {
    const before = fs.readdirSync(folder);
    const target = out('');
    const { code, stdout } = await shared(target, '--dry-run');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Plan for .*, nothing was written\n/);
    expect(stdout).toContain(
      `Next: minimind convert-checkpoint ${IN} ${target} --to shared --no-config`,
    );
    expect(stdout).toMatch(/^merged +shared_srte\.freqs +1 +F32 +1\.5 kB$/m);
    expect(stdout).toMatch(/^copied +layers\.\{0–2\}\.… +102 +F32 /m);
    expect(fs.readdirSync(folder)).toEqual(before);
  });

  it.each([
    ['another container', 'hf/llama', '.pt'],
    ['a folder of safetensors from another format', 'onnx/llama.onnx', ''],
    ['one checkpoint from the parts of all processes', 'distributed/world8', ''],
  ])('takes the name of the output for the change: %s', async (_, input, ending) => {
    const target = out(ending);
    const config = ['--config', inPackage('fixtures/hf/llama/config.json')];
    const { code, stderr } = await convert(
      ...[inPackage('fixtures', input), target, '--check', '--max-memory', '4GB'],
      ...(input.endsWith('.onnx') ? config : []),
    );
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(fs.existsSync(target)).toBe(true);
  });

  it('takes one file of several shards for the change', async () => {
    const [shards, whole] = [out(''), out('.safetensors')];
    const room = ['--max-memory', '4GB'];
    const input = inPackage('fixtures/hf/llama');
    await convert(input, shards, '--dtype', 'bf16', '--shard-size', '20kB', ...room);
    expect((await convert(shards, whole, ...room)).code).toBe(0);
    expect((await convert(whole, out('.safetensors'), ...room)).stderr).toContain(
      'expected a change, found none',
    );
  });

  it.each([
    ['out', ['--to', 'low-rank', '--rank', '4'], '--to low-rank', '--quantize int8'],
    ['out.pt', ['--rank', '4'], '--rank 4', '--dtype f16'],
    ['out.gguf', ['--max-positions', '16'], '--max-positions 16', '--dtype q8_0'],
    ['out', ['--target', 'hybrid/tiny'], '--target hybrid/tiny', '--quantize int8'],
  ])(
    'proposes another change for a model without an SRTE: %s %j',
    async (name, words, asked, change) => {
      const [input, target] = [inPackage('fixtures/hf/qwen3'), out(`-${name}`)];
      const { code, stderr } = await convert(input, target, ...words);
      const line = `convert-checkpoint ${input} ${target} ${change}`;
      expect({ code, stderr }).toEqual({
        code: 2,
        stderr:
          `error: ${asked} changes an SRTE, and ${input} holds a qwen3 model, which has none\n` +
          `  → only hybrid models have one; to make the weights smaller, write minimind ${line}\n`,
      });
      expect(await runHere([...line.split(' '), '--dry-run'])).toMatchObject({ code: 0 });
    },
  );

  it('compares sizes with a target of a family without an SRTE', async () => {
    const input = inPackage('fixtures/hf/qwen3');
    const config = JSON.parse(fs.readFileSync(path.join(input, 'config.json'), 'utf8'));
    const target = out('.json');
    fs.writeFileSync(target, JSON.stringify({ ...config, num_key_value_heads: 1 }));
    const { code, stderr } = await convert(input, out(''), '--target', target);
    expect(code).toBe(2);
    expect(stderr).toContain('choose a target of the same sizes');
    const { stderr: unchanged } = await convert(
      input,
      out(''),
      '--set',
      'model.num_key_value_heads=1',
    );
    expect(unchanged).toContain('expected a change, found none: --set alone changes no tensor');
  });

  it('follows the plan of its dry run', async () => {
    const target = out('.safetensors');
    const planned = JSON.parse((await shared(target, '--dry-run', '--json')).stdout);
    const done = JSON.parse((await shared(target, '--json')).stdout);
    for (const part of ['input', 'output', 'groups', 'tensors', 'leftOut', 'notes']) {
      expect(done[part], part).toEqual(planned[part]);
    }
    expect(planned).toMatchObject({ dryRun: true, run: null, memory: { peakBytes: null } });
    expect(planned.srte.tables[0].errors).toEqual([]);
  });

  it('has exact figures in JSON', async () => {
    const { stdout } = await shared(out('.safetensors'), '--json', '--check');
    const result = JSON.parse(stdout);
    const hidden = { positions: 48, hidden: 8, layers: 3, form: 'table', rank: null };
    expect(result).toMatchObject({
      input: { path: IN, format: 'torch-zip', config: null, parameters: 16920 },
      output: { container: 'safetensors', parameters: 16152, tensorBytes: 16152 * 4 },
      srte: {
        source: { ...hidden, sharing: 'per-layer', parameters: 1152 },
        target: { ...hidden, sharing: 'shared', parameters: 384 },
        merge: 'mean',
      },
      leftOut: [
        { pattern: 'optimizer_state_dict' },
        { pattern: 'config' },
        { pattern: 'scheduler_state_dict' },
      ],
      run: { checked: true },
    });
    expect(result.input.bytes).toBe(fs.statSync(IN).size);
    expect(result.run.readBytes).toBeGreaterThan(result.input.tensorBytes);
    const step = result.tensors.find(({ name }: { name: string }) => name === 'shared_srte.freqs');
    expect(step).toMatchObject({
      action: 'merged',
      from: [0, 1, 2].map((layer) => `layers.${layer}.srte.freqs`),
      aliases: [0, 1, 2].map((layer) => `layers.${layer}.srte.freqs`),
      shape: [1, 48, 8],
      bytes: 1536,
    });
    // ‖before − after‖² of all layers is the sum over layers.
    const { errors } = result.srte.tables[0];
    const squares = (of: (each: { norm: number; relativeError: number }) => number) =>
      errors.reduce((sum: number, each: never) => sum + of(each) ** 2, 0);
    const error = squares(({ norm, relativeError }) => norm * relativeError);
    const before = squares(({ norm }) => norm);
    expect(result.srte.relativeError).toBeCloseTo(Math.sqrt(error / before), 12);
  });

  it.each([
    ['a pair', ['--to', 'low-rank', '--rank', '4'], 'factorised'],
    ['fewer rows', ['--max-positions', '32'], 'cut'],
    ['more rows', ['--max-positions', '50', '--extend', 'zero'], 'extended'],
    ['another type', ['--dtype', 'f16'], 'cast'],
    ['a tied head', ['--tie', 'mean'], 'averaged'],
    ['no table', ['--to', 'sincos'], 'computed'],
  ])('names the action for %s', async (_, flags, action) => {
    const { stdout } = await convert(IN, out(), '--no-config', '--dry-run', '--json', ...flags);
    const { groups } = JSON.parse(stdout);
    expect(groups.map((group: { action: string }) => group.action)).toContain(action);
  });

  it('names the action for a table from a pair, and the changes of the config', async () => {
    const source = 'fixtures/hybrid/shared-lowrank-tied';
    const { stdout } = await convert(source, out(''), '--to', 'per-layer', '--dry-run', '--json');
    const { groups, configChanges, srte } = JSON.parse(stdout);
    expect(groups[0]).toMatchObject({
      action: 'multiplied-out',
      pattern: 'layers.{0–2}.srte.freqs',
    });
    expect(configChanges).toEqual([
      { path: 'model.srte_share_across_layers', from: true, to: false },
      { path: 'model.srte_factorized_rank', from: 4, to: 0 },
    ]);
    expect(srte.merge).toBeNull();
  });

  it('has a row for each layer, although all shared one table', async () => {
    const args = ['fixtures/hybrid/shared-lowrank-tied', out(''), '--to', 'per-layer'];
    const { stdout } = await convert(...args, '--format', 'csv');
    const rows = stdout.trim().split('\n').slice(1);
    expect(rows.map((row) => row.split(',').slice(0, 3))).toEqual(
      [0, 1, 2].map((layer) => [String(layer), 'shared_srte.lowrank', `layers.${layer}.srte`]),
    );
  });

  it('names the shard of each tensor', async () => {
    const { stdout } = await shared(out(''), '--shard-size', '30kB', '--json');
    const { tensors, output } = JSON.parse(stdout);
    const bytes = new Map<string, number>();
    for (const { file, bytes: more } of tensors) bytes.set(file, (bytes.get(file) ?? 0) + more);
    expect(bytes.size).toBe(3);
    for (const [file, inside] of bytes) {
      expect(inside).toBeLessThanOrEqual(30e3);
      const written = output.files.find(({ name }: { name: string }) => name === file);
      expect(written.bytes).toBeGreaterThan(inside);
    }
  });

  it('writes its report as Markdown to a file', async () => {
    const file = path.join(folder, 'report.md');
    const { code, stdout, stderr } = await shared(out(), '--format', 'markdown', '-o', file);
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: '', stderr: `wrote ${file}\n` });
    expect(fs.readFileSync(file, 'utf8')).toMatch(/^## Converted to /);
  });

  it('hides warnings with --quiet', async () => {
    const strange = path.join(folder, 'strange');
    fs.mkdirSync(strange);
    const input = path.join(strange, 'old.safetensors');
    expect((await shared(input)).code).toBe(0);
    fs.writeFileSync(path.join(strange, 'config.yaml'), 'model: {nonsense: 1}\n');
    const args = [input, out(), '--to', 'per-layer', '--dry-run'];
    const warned = await convert(...args);
    expect(warned.code).toBe(0);
    expect(warned.stderr).toMatch(/^warning: .*the checkpoint is converted by its names alone/m);
    expect((await convert(...args, '--quiet')).stderr).toBe('');
  });

  it('uses colours with FORCE_COLOR', () => {
    const args = ['convert-checkpoint', IN, out(), '--to', 'shared', '--dry-run', '--no-config'];
    const start = String.fromCharCode(27);
    const { stdout } = runCli([...args, '--details'], { env: { FORCE_COLOR: '1' } });
    expect(stdout).toContain(`${start}[32m768`);
    expect(runCli(args, { env: { NO_COLOR: '1' } }).stdout).not.toContain(start);
  });
});

describe('Ctrl-C', () => {
  it('ends a conversion, and reports that nothing was written', async () => {
    // The warning about a single shard comes first. Then the command waits for the config.
    const shard = path.join(folder, 'model-00001-of-00002.safetensors');
    fs.copyFileSync(inPackage('fixtures/checkpoints/valid/st_nan_inf.safetensors'), shard);
    const args = ['convert-checkpoint', shard, out(), '--dtype', 'bf16', '--config', '-'];
    const child = spawn(process.execPath, [inPackage('bin/run.js'), ...args]);
    const closed = new Promise((resolve) => child.on('close', resolve));
    let stderr = '';
    child.stderr.on('data', (chunk) => {
      if (stderr === '') child.kill('SIGINT');
      stderr += chunk;
    });
    expect(await closed).toBe(130);
    expect(stderr).toMatch(/^warning: [^\0]*\nstopped; nothing was written\n$/);
  });
});

describe('a user error', () => {
  it.each([
    [[], 'expected a checkpoint, found none'],
    [['no-such.pt', 'x.pt', '--to', 'shared'], 'there is no file or folder no-such.pt'],
    [[IN, 'x.pt', '--set', 'model.window_size=8'], 'expected a change, found none'],
    [[IN], 'expected IN and OUT, found only'],
    [[IN, IN, '--to', 'shared'], 'would replace the input'],
    [[IN, 'x.pt', '--to', 'low-rank'], '--to low-rank requires a rank'],
    [
      [IN, 'x.pt', '--to', 'shared', '--merge', 'layer:9'],
      '--merge layer:9: there is no such layer',
    ],
    [
      [IN, 'x.pt', '--to', 'shared', '--merge', 'median'],
      '--merge: expected mean, first or layer:N, found "median"',
    ],
    [
      [IN, 'x.pt', '--to', 'low-rank', '--max-error', '2'],
      'expected a number between 0 and 1, found "2"',
    ],
    [[IN, 'x.pt', '--to', 'per-layer'], 'its SRTE is per-layer already [conversion-changes]'],
    [
      [IN, 'x.pt', '--max-positions', '99'],
      'expected at most 48 rows, those of the tables, found 99',
    ],
    [[IN, '-', '--to', 'shared'], 'expected OUT to be a file or a folder, found "-"'],
    [[IN, 'x', '--to', 'shared', '--parts', '2', '--plan', '-'], '--plan: expected a file'],
    // A pasted number of heads that fits any model would reorder its rows wrongly.
    [[IN, 'x.pt', '--dialect', 'minimind'], '--dialect minimind --heads 8'],
    [
      [IN, 'x.pt', '--to', 'shared', '--max-memory', '8'],
      '--max-memory: expected a size with its unit, found "8"',
    ],
    [
      [IN, 'x.safetensors', '--to', 'shared', '--shard-size', '5'],
      '--shard-size: expected a size with its unit, found "5"',
    ],
    [[IN, 'x.pt', '--to', 'shared', '--max-memory', '1MB'], '--max-memory 1.0 MB is not enough'],
    [[IN, 'x.safetensors', '--to', 'shared', '--shard-size', '9kB'], 'x.safetensors is one file'],
    [[IN, 'x.safetensors', '--to', 'shared', '--shard-size', '9GB'], 'x.safetensors is one file'],
    [
      [IN, 'x.safetensors', '--container', 'safetensors', '--saturate'],
      '--saturate requires --dtype',
    ],
    [[IN, 'x.pt', '--to', 'shared', '--shard-size', '9kB'], 'a PyTorch file has no shards'],
    [
      [IN, 'x.pt', '--to', 'shared', '--rank', '3', '--max-error', '0.1'],
      'cannot be used together',
    ],
  ])('has exit code 2 and writes no file: %j', async (args, message) => {
    const { code, stdout, stderr } = await convert(...args);
    expect(stderr).toContain(message);
    expect(stderr).not.toMatch(/^\s+at /m);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(fs.existsSync(args[1] ?? 'x.pt')).toBe(args[1] === IN);
  });

  it('is an object with --json', async () => {
    const { code, stdout, stderr } = await convert(IN, 'x.pt', '--to', 'per-layer', '--json');
    expect(code).toBe(2);
    expect(JSON.parse(stdout)).toMatchObject({
      schema: 'minimind/error@1',
      code: 'refused-file',
      problems: [{ file: IN, rule: 'conversion-changes' }],
    });
    expect(stderr).toMatch(/^error: /);
  });

  it('keeps an existing file', async () => {
    const target = out();
    fs.writeFileSync(target, 'mine');
    const { code, stderr } = await shared(target);
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: `error: ${target} exists already\n  → choose another name, or replace it with --force\n`,
    });
    expect(fs.readFileSync(target, 'utf8')).toBe('mine');
  });
});

describe('an exported hybrid with a table in each layer', () => {
  it('keeps its layout where only the format changes, and becomes shared when asked', async () => {
    const [onnx, torch, target] = [out('.onnx'), out(), out('')];
    const perLayer = ['srte_share_across_layers=false', 'srte_factorized_rank=0'];
    const sets = perLayer.flatMap((each) => ['--set', `model.${each}`]);
    expect(
      (await runHere(['export', 'hybrid/tiny', '--random', ...sets, '--save', onnx])).code,
    ).toBe(0);
    const { code, stdout, stderr } = await convert(onnx, torch);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^ {2}SRTE +a table \(\d+ × \d+\) in each of 2 layers, same layout$/m);
    const after = await convert(torch, target, '--to', 'shared');
    expect(after.code).toBe(0);
    expect(after.stdout).toMatch(/^ {2}SRTE +a table .* → one table /m);
    // Of a training checkpoint in the old layout, the new one is still meant.
    const meant = await convert(torch, out(), '--dry-run');
    expect(meant.stderr).toContain('converting to --to shared');
  });
});
