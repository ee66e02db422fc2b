/** `--weights` of quick-test and export. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { onnxVersion } from '../../src/engine/onnx/library.js';
import { runHere } from '../run-here.js';

const LLAMA = 'fixtures/hf/llama';
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));

const quickTest = (...args: string[]) => runHere(['quick-test', LLAMA, ...args]);

const formOf = async (spelling: string) => {
  const { code, stdout } = await quickTest('--weights', spelling, '--only', 'created', '--json');
  return { code, form: JSON.parse(stdout).quantized };
};

describe.skipIf(onnxVersion() === undefined)('quick-test --weights', () => {
  it.each([
    ['int8', 8, 32],
    ['INT4', 4, 32],
    ['q8', 8, 32],
    ['4bit', 4, 32],
    ['4-bits', 4, 32],
    ['int4-64', 4, 64],
    ['int4:16', 4, 16],
    ['q4-g128', 4, 128],
    ['8', 8, 32],
  ])('reads %s', async (spelling, bits, group) => {
    const { code, form } = await formOf(spelling);
    expect(code).toBe(0);
    expect(form).toMatchObject({ bits, group });
  });

  it.each([
    ['int2', 'expected int8 or int4'],
    ['q4_0', 'expected a group of 16, 32, 64 or 128'],
    ['int4-48', 'expected a group of 16, 32, 64 or 128'],
    ['fp8', 'expected int8 or int4'],
  ])('refuses %s', async (spelling, message) => {
    const { code, stderr } = await quickTest('--weights', spelling);
    expect(code).toBe(2);
    expect(stderr).toContain(`--weights: ${message}`);
  });

  it('shows the difference from float32, with any checks', async () => {
    const { code, stdout } = await quickTest('--weights', 'int8', '--only', 'forward', '--details');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^ {2}weights +int8, groups of 32, for 29\.2K values .* float32/m);
    expect(stdout).toMatch(
      /^weights +ok +int8, groups of 32: logits differ from float32 by [\d.]+% .* KL .* nats, same top token at/m,
    );
    expect(stdout).toMatch(/^int8 is [\d.]+ times as fast as float32$/m);
  });

  it('passes all checks, and matches the dequantized values on the other engine', async () => {
    const { code, stdout } = await quickTest('--weights', 'int4', '--cross-check', '--json');
    const { checks, quantized, engine } = JSON.parse(stdout);
    expect(code).toBe(0);
    expect(quantized).toMatchObject({ bits: 4, group: 32, tensors: 16 });
    expect(engine.weightForm).toEqual({ bits: 4, group: 32 });
    const verdicts = new Map(
      checks.map((each: { check: string; verdict: string }) => [each.check, each.verdict]),
    );
    expect(verdicts.get('weights')).toBe('passed');
    expect(verdicts.get('cross-check')).toBe('passed');
    expect([...verdicts.values()]).not.toContain('failed');
  });

  it('checks limits', async () => {
    const loose = await quickTest('--weights', 'int8', '--only', 'created', '--max-kl', '0.1');
    expect(loose.code).toBe(0);
    const tight = await quickTest('--weights', 'int8', '--only', 'created', '--max-kl', '1e-9');
    expect(tight.code).toBe(1);
    expect(tight.stderr).toContain('exceeds --max-kl 1e-9');
    const unneeded = await quickTest('--max-kl', '0.1');
    expect(unneeded.code).toBe(2);
    expect(unneeded.stderr).toContain('--max-kl requires --against or --weights');
  });

  it('cannot be combined with products in float16, or with another model', async () => {
    const half = await quickTest('--weights', 'int8', '--compute', 'f16');
    expect(half.code).toBe(2);
    expect(half.stderr).toContain('found products in f16');
    const other = await quickTest('--weights', 'int8', '--against', 'tfjs');
    expect(other.code).toBe(2);
  });
});

describe('export --weights', () => {
  it('writes packed matrices, and reports them', async () => {
    const file = path.join(folder, 'llama.onnx');
    const { code, stdout } = await runHere([
      'export',
      LLAMA,
      '--weights',
      'int4',
      '--save',
      file,
      '--json',
    ]);
    expect(code).toBe(0);
    const { weights, operators } = JSON.parse(stdout);
    expect(weights.quantized).toEqual({ bits: 4, group: 32, tensors: 16, elements: 29_248 });
    expect(weights.bytes).toBeLessThan(29_408 * 2);
    const counts = operators.map(({ operator, count }: { operator: string; count: number }) => [
      operator,
      count,
    ]);
    expect(counts).toContainEqual(['MatMulNBits', 15]);
    expect(counts).toContainEqual(['GatherBlockQuantized', 1]);
    expect(counts).not.toContainEqual(['Gemm', expect.anything()]);
  });
});
