import { describe, expect, it } from 'vitest';
import { runHere } from '../run-here.js';

const modules = (...args: string[]) => runHere(['modules', ...args]);
const json = async (...args: string[]) => JSON.parse((await modules(...args, '--json')).stdout);

describe('minimind modules', () => {
  it.each([
    ['no-such-block'],
    ['group-rms-norm', '--group-size', '3'],
    ['group-rms-norm', '--hidden', '1e15'],
    ['parallel-embedding', '--vocab', '1e15'],
    ['parallel-embedding', '--world-size', '3'],
    ['gqa', '--key-heads', '3'],
    ['ntk-rope', '--head-dim', '3'],
    ['swiglu', '--causal'],
    ['activations', '--seed', '3'],
    ['activations', '--points', '1,a'],
    ['sinusoidal', '--hidden', '5'],
    ['interleaved-rope', '--head-dim', '3'],
  ])('refuses %s %s %s with a suggestion in lower case', async (...args) => {
    const { code, stderr } = await modules(...args);
    expect(code).toBe(2);
    expect(stderr).toMatch(/\n {2}→ [^A-Z].*[^.]\n$/);
  });

  it('lists the blocks, with their flags in the details', async () => {
    const { code, stdout } = await modules('--details');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^online-softmax +attention tile by tile/m);
    expect(stdout).toMatch(/^swiglu +--batch --context --hidden --dtype --seed$/m);
  });

  it('prints the lines of PyTorch, the tensors and the checks', async () => {
    const { code, stdout } = await modules('group-rms-norm', '--seed', '1');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^group-rms-norm: 2 checks passed\n/);
    expect(stdout).toMatch(/^torch\.manual_seed\(1\); x = torch\.randn\(1, 4, 8\)$/m);
    // torch.manual_seed(1); torch.randn(1, 4, 8)
    expect(stdout).toMatch(
      /^x +input +float32 +\[1, 4, 8\] +-1\.5256 -0\.7502 -0\.6540 -1\.6095 …$/m,
    );
    expect(stdout).toMatch(/^each group alone, as RMSNorm, times γ +ok /m);
  });

  // torch.manual_seed(42), then torch.nn.init on torch.empty(8), (8, 8) and (4, 8): PyTorch 2.13.
  it.each([
    [
      ['group-rms-norm', '--init-range', '-1,1'],
      'gamma',
      [0.764539, 0.830008, -0.234272, 0.918611],
    ],
    // The output of rms_norm in groups of 4 on torch.randn(1, 4, 8) of seed 0, times this γ.
    [
      ['group-rms-norm', '--init-range', '(-1, 1)'],
      'y',
      [-1.020348, -1.133816, 0.069588, -0.472468],
    ],
    [
      ['vocab-embedding', '--init-mean', '0.', '--init-std', '1.'],
      'table',
      [1.926915, 1.487284, 0.900717, -2.105521],
    ],
    [
      ['vocab-embedding', '--init-mean', '-0.5', '--init-std', '0.02'],
      'table',
      [-0.461462, -0.470254, -0.481986, -0.54211],
    ],
    [
      ['parallel-embedding', '--init-mean', '0.1', '--init-std', '0.5'],
      'table0',
      [1.063458, 0.843642, 0.550359, -0.95276],
    ],
    // Seed 42 + rank 1.
    [
      ['parallel-embedding', '--init-mean', '0.1', '--init-std', '0.5'],
      'table1',
      [0.091698, -0.133397, 1.145449, 0.407451],
    ],
  ])('initialises as torch.nn.init does: %j, %s', async (args, name, expected) => {
    const { tensors } = await json(...args, '--init-seed', '42');
    const { values } = tensors.find((each: { name: string }) => each.name === name);
    for (const [at, value] of expected.entries()) expect(values[at]).toBeCloseTo(value, 6);
  });

  it.each([
    [['rms-norm', '--init-mean', '2'], /--init-mean is not used by rms-norm/],
    [['rms-norm', '--init-range', '2,1'], /expected a range from small to large, found "2,1"/],
    [['rms-norm', '--init-range', '1'], /expected a range/],
    [['vocab-embedding', '--init-std', '-1'], /expected a number from 0 on, found "-1"/],
    [['vocab-embedding', '--init-mean', 'nan'], /expected a number, found "nan"/],
    [['parallel-embedding', '--init-base-seed', 'x'], /unknown flag "--init-base-seed"/],
  ])('refuses %j', async (args, message) => {
    const { code, stderr } = await modules(...args);
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringMatching(message) });
  });

  it('shows the gradients of activations at given points', async () => {
    const { stdout } = await modules('activations', '--points', '-1,0,0.5,2');
    // torch.autograd.grad(f(x).sum(), x) at -1, 0, 0.5, 2.
    expect(stdout).toMatch(/^relu_grad .* 0\.0000 {2}0\.0000 {2}1\.0000 {2}1\.0000$/m);
    expect(stdout).toMatch(/^gelu_grad .* -0\.0833 {2}0\.5000 {2}0\.8675 {2}1\.0852$/m);
    expect(stdout).toMatch(/^silu_grad .* {2}0\.0723 {2}0\.5000 {2}0\.7400 {2}1\.0908$/m);
  });

  it('shows the scale after each call of the rotation', async () => {
    const { stdout } = await modules('ntk-rope', '--dynamic', '--calls', '4,9,1@9');
    expect(stdout).toMatch(/^ +2 +9 +0 +4 +160,000 +4 +16$/m);
    expect(stdout).toMatch(/^ +3 +1 +9 +4 +160,000 +4 +16$/m);
  });

  it('shows the running maximum and sum, tile by tile', async () => {
    const { stdout } = await modules('online-softmax', '--details');
    // First two scores, then all four. The last row is torch.softmax of them.
    expect(stdout).toMatch(/^ +1 +0–1 +1\.293919 +0\.000000 +1\.277170 /m);
    expect(stdout).toMatch(/^ +2 +2–3 +1\.293919 +1\.000000 +1\.822654 /m);
    expect(stdout).toMatch(/^tile 2: /m);
    expect(stdout).toMatch(/^plain softmax +ok /m);
  });

  it('has all values in the details, JSON and CSV', async () => {
    const { stdout } = await modules(
      'vocab-embedding',
      '--vocab',
      '3',
      '--hidden',
      '2',
      '--details',
    );
    expect(stdout).toMatch(/^table \[3, 2\] float32, parameter\n.*\n.*\n.*\n/m);
    const { sizes, tensors } = await json('parallel-embedding', '--dtype', 'bf16');
    expect(sizes).toMatchObject({ ranks: 2, dtype: 'bf16', initSeed: 0 });
    expect(tensors.map(({ values }: { values: number[] }) => values.length)).toEqual([
      4, 32, 32, 32, 32, 32,
    ]);
    const csv = (await modules('swiglu', '--format', 'csv')).stdout.trim().split('\n');
    expect(csv).toHaveLength(1 + 3 * 32);
  });

  it.each([
    [['spin'], 'unknown block'],
    [['gqa', '--tile', '4'], '--tile is not used by gqa'],
    [['swiglu', '--init-seed', '4'], '--init-seed is not used by swiglu'],
    [['gqa', '--key-heads', '3'], '3 key heads do not divide 4 heads'],
    [['ntk-rope', '--calls', '4@x'], 'expected positions of a call'],
    [['rms-norm', '--hidden', '1M'], 'values'],
  ])('refuses %j', async (args, message) => {
    const { code, stderr } = await modules(...args);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
    expect(stderr).not.toMatch(/^\s+at /m);
  });
});
