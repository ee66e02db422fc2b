import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { logitDifference } from '../../src/engine/compare/differences.js';
import { onnxVersion } from '../../src/engine/onnx/library.js';
import { look } from '../convert/conversion/convert.js';
import { valuesOf } from '../engine/fixture-models.js';
import { inPackage, readJson } from '../fixtures.js';
import { runCli } from '../run-cli.js';
import { runHere } from '../run-here.js';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));

const TINY = 'configs/hybrid/tiny.yaml';
const TRAINED = 'fixtures/hybrid/shared-lowrank-tied';

async function json(...args: string[]) {
  const { code, stdout, stderr } = await runHere([...args, '--json']);
  return { code, stderr, result: JSON.parse(stdout) };
}

/** Compares a model with another on a few tokens. */
const against = (model: string, other: string, ...flags: string[]) =>
  json('quick-test', model, '--against', other, ...flags);

describe('quick-test --against after a conversion', () => {
  // fixtures/README.md: the logits of the original implementation before and after its own conversion.
  const CONVERSIONS = [
    ['shared_mean', ['--to', 'shared']],
    ['shared_rank3', ['--to', 'low-rank', '--rank', '3']],
    [
      'shared_rank3_len32_tied_to_embedding',
      ['--to', 'low-rank', '--rank', '3', '--max-positions', '32', '--tie', 'embed'],
    ],
  ] as const;

  it.each(
    ['trained-random-start', 'trained-same-start'].flatMap((name) =>
      CONVERSIONS.map(([title, flags]) => [name, title, flags] as const),
    ),
  )('measures the known difference: %s to %s', async (name, title, flags) => {
    const inCase = (file: string) => inPackage('fixtures/old-checkpoint', name, file);
    const ids = path.join(folder, `${name}.json`);
    const { input_ids } = readJson<{ input_ids: number[][] }>(
      inCase('case.json').slice(inPackage('').length),
    );
    fs.writeFileSync(ids, JSON.stringify(input_ids));
    const input = inCase('checkpoint_step_30.pt');
    const output = path.join(folder, `${name}-${title}`);
    expect((await runHere(['convert-checkpoint', input, output, ...flags])).code).toBe(0);
    const [before, after] = look(inCase('expected.safetensors'), ({ tensors }) =>
      ['logits.original', `logits.${title}`].map((key) => {
        const tensor = tensors.get(key);
        if (!tensor) throw new Error(`no ${key}`);
        return valuesOf(tensor);
      }),
    );
    if (!before || !after) throw new Error('no logits');
    const known = logitDifference(before, after);
    const { code, result } = await against(input, output, '--ids', ids);
    expect(code).toBe(0);
    const measured = result.against.logits;
    for (const key of ['largestDifference', 'meanDifference', 'klDivergence'] as const) {
      expect(Math.abs(measured[key] - known[key]), key).toBeLessThan(1e-5);
    }
    expect(Math.abs(measured.relativeDifference - known.relativeDifference)).toBeLessThan(1e-5);
    expect(measured.topAgreement).toBe(known.topAgreement);
    // The difference is large enough to be measured.
    expect(known.largestDifference).toBeGreaterThan(1e-3);
    expect(result.against.partsAt).toBe('layers.0');
  });
});

describe('quick-test --against', () => {
  it('finds no difference between a model and itself', async () => {
    const { code, result } = await against(TRAINED, `${TRAINED}/config.yaml`, '--context', '20');
    expect(code).toBe(0);
    expect(result.against).toMatchObject({
      own: { checkpoint: TRAINED, weights: 'checkpoint', mode: 'whole' },
      other: { checkpoint: TRAINED, weights: 'checkpoint' },
      logits: { largestDifference: 0, klDivergence: 0, topAgreement: 1 },
      partsAt: null,
      context: 20,
    });
    expect(result.against.blocks).toHaveLength(3);
  });

  it('finds only rounding between two engines', async () => {
    const { code, result } = await against(TRAINED, 'tfjs', '--engine', 'onnx', '--context', '20');
    expect(code).toBe(0);
    const { own, other, partsAt, logits } = result.against;
    expect([own.engine.name, other.engine.name, partsAt]).toEqual(['onnx', 'tfjs', null]);
    expect(logits.largestDifference).toBeGreaterThan(0);
    expect(logits.largestDifference).toBeLessThan(2e-4);
    expect(await against(TRAINED, 'onnx', '--engine', 'onnx')).toMatchObject({
      code: 2,
      result: { suggestion: expect.stringContaining('--engine tfjs') },
    });
  });

  it.skipIf(onnxVersion() === undefined)(
    'compares a model in float16 with itself in float32',
    async () => {
      const flags = ['--compute', 'f16', '--device', 'cpu', '--context', '20'];
      for (const otherEngine of ['cpu', 'onnx']) {
        const { code, result } = await against(TRAINED, otherEngine, ...flags);
        expect(code).toBe(0);
        const { own, other, logits, threshold } = result.against;
        expect([own.engine.compute, other.engine.compute, threshold]).toEqual(['f16', 'f32', 0.03]);
        expect(logits.relativeDifference).toBeGreaterThan(5e-5);
        expect(logits.relativeDifference).toBeLessThan(5e-3);
      }
      // Another model computes in the same type as the first.
      const { own, other, partsAt } = (await against(TRAINED, TRAINED, ...flags)).result.against;
      expect([own.engine.compute, other.engine.compute, partsAt]).toEqual(['f16', 'f16', null]);
    },
  );

  it('names the first block with a difference', async () => {
    // Only one value of the second block differs.
    const other = path.join(folder, 'other');
    fs.cpSync(inPackage(TRAINED), other, { recursive: true });
    const file = path.join(other, 'model.safetensors');
    const bytes = fs.readFileSync(file);
    const start = 8 + Number(bytes.readBigUInt64LE(0));
    const header = JSON.parse(bytes.toString('utf8', 8, start));
    const at = start + header['layers.1.ln_output.weight'].data_offsets[0];
    bytes.writeFloatLE(bytes.readFloatLE(at) * 2, at);
    fs.writeFileSync(file, bytes);
    const { result } = await against(TRAINED, other, '--context', '20');
    const [first, second, third] = result.against.blocks;
    expect([first.relativeDifference, result.against.partsAt]).toEqual([0, 'layers.1']);
    expect(second.relativeDifference).toBeGreaterThan(5e-5);
    expect(third.block).toBe('layers.2');
    const { stdout } = await runHere(['quick-test', TRAINED, '--against', other, '--details']);
    expect(stdout).toMatch(/: different from layers\.1 on \(KL /);
    expect(stdout).toMatch(/^layers\.0 +0% +0$/m);
    expect(stdout).toMatch(/^layers\.2 +[\d.]+% +█+/m);
  });

  it('uses the same random weights for tensors of the same name, and runs layer by layer', async () => {
    const set = ['--set', 'model.window_size=8', '--context', '32'];
    const { result } = await against(TINY, TINY, ...set, '--full');
    const { own, other, partsAt, logits } = result.against;
    expect([own.mode, other.mode, own.weights, other.weights]).toEqual([
      ...['streamed', 'streamed'],
      ...['random', 'random'],
    ]);
    expect(partsAt).toBe('layers.0');
    expect(logits.relativeDifference).toBeLessThan(0.5);
    expect((await against(TINY, TINY, ...set)).result.against.logits.largestDifference).toBeCloseTo(
      logits.largestDifference,
      5,
    );
  });

  it('compares only the logits if the blocks differ', async () => {
    const flags = ['--set', 'model.num_layers=1', '--context', '8'];
    const { code, result } = await against(TINY, TINY, ...flags);
    expect(code).toBe(0);
    expect(result.against).toMatchObject({
      blocks: null,
      blocksDiffer: 'one model has 1 block, the other 2',
      partsAt: 'logits',
    });
  });

  it('refuses another vocabulary, and --only', async () => {
    const { code, result } = await against(TINY, TRAINED);
    expect(code).toBe(2);
    expect(result.message).toMatch(/^the models do not share a vocabulary: /);
    expect((await runHere(['quick-test', TINY, '--against', TINY, '--only', 'cache'])).code).toBe(
      2,
    );
    const twice = runCli(['quick-test', '-', '--against', '-'], { input: 'model: {}' });
    expect(twice).toMatchObject({ code: 2, stderr: expect.stringContaining('read twice') });
  });

  it('prints one table as CSV', async () => {
    const args = ['quick-test', TINY, '--against', TINY, '--context', '8', '--format', 'csv'];
    const lines = (await runHere(args)).stdout.split('\n');
    expect(lines.slice(0, 2)).toEqual(['where,measure,value', 'logits,largest difference,0']);
    expect(lines).toContain('layers.1,relative difference,0');
  });
});

describe('convert-checkpoint --prove', () => {
  const prove = (out: string, ...flags: string[]) =>
    json('convert-checkpoint', TRAINED, path.join(folder, out), '--prove', ...flags);

  it('finds no difference after a conversion that keeps all values', async () => {
    const { code, result } = await prove('kept.pt', '--container', 'pt', '--context', '16');
    expect(code).toBe(0);
    expect(result.proof).toMatchObject({
      verdict: 'same',
      isExact: true,
      why: null,
      against: { context: 16, ids: 'random', logits: { largestDifference: 0 }, partsAt: null },
    });
    expect(result.proof.against.other.checkpoint).toBe(path.join(folder, 'kept.pt'));
  });

  it('measures the error of a lossy conversion', async () => {
    const { code, result } = await prove('lossy', '--dtype', 'bf16');
    expect(code).toBe(0);
    expect(result.proof).toMatchObject({ verdict: 'differs', isExact: false });
    // bfloat16 has eight bits of precision.
    const { relativeDifference } = result.proof.against.logits;
    expect(relativeDifference).toBeGreaterThan(2 ** -11);
    expect(relativeDifference).toBeLessThan(2 ** -5);
  });

  it('reports a missing proof without memory, and keeps the output', () => {
    const out = path.join(folder, 'whole');
    const args = ['convert-checkpoint', TRAINED, out, '--container', 'safetensors', '--prove'];
    const noMemory = '--import=data:text/javascript,process.availableMemory=()=>0';
    const { code, stdout } = runCli(args, { env: { NODE_OPTIONS: noMemory } });
    expect(code).toBe(3);
    expect(stdout).toMatch(/^Converted to /);
    expect(stdout).toMatch(/^ {2}proof +none: .* with the weights; 0\.0 GB is available$/m);
    expect(fs.existsSync(path.join(out, 'model.safetensors'))).toBe(true);
  });

  it.each([
    ['--dtype', 'bf16', '--context', '100000'],
    ['--max-positions', '20', '--context', '21'],
  ])('refuses more tokens than positions before writing: %j', async (...flags) => {
    const { code, result } = await prove('long', ...flags);
    expect({ code, made: fs.existsSync(path.join(folder, 'long')) }).toEqual({
      code: 2,
      made: false,
    });
    expect(result.message).toContain('positions of the model');
  });

  it('refuses an input without a config before writing', async () => {
    const out = path.join(folder, 'none.safetensors');
    const input = 'fixtures/checkpoints/valid/zip_proto5.pt';
    const args = [input, out, '--to', 'shared', '--prove'];
    const { code, result } = await json('convert-checkpoint', ...args);
    expect({ code, made: fs.existsSync(out) }).toEqual({ code: 2, made: false });
    expect(result.suggestion).toContain('--config');
  });

  it('has rows in the report', async () => {
    const out = path.join(folder, 'report');
    const args = ['convert-checkpoint', TRAINED, out, '--dtype', 'f16', '--prove', '--details'];
    const { stdout } = await runHere(args);
    expect(stdout).toMatch(/^Converted to .*logits differ by 0\.\d+%/s);
    expect(stdout).toMatch(/^same top token +[\d.]+%$/m);
  });
});
