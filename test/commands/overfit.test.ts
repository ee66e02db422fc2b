import { describe, expect, it } from 'vitest';
import { runHere } from '../run-here.js';

const MODEL = 'fixtures/hf/llama';

const overfit = (...args: string[]) =>
  runHere(['quick-test', MODEL, '--overfit', '--steps', '5', ...args]);

describe('quick-test --overfit', () => {
  it('shows the fall of the loss', async () => {
    const { code, stdout, stderr } = await overfit('--quiet');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(
      /^llama: loss fell from \d\.\d+ to \d\.\d+ in 5 steps \(uniform guess 4\.57\)\n/,
    );
    expect(stdout).toMatch(
      /^ {2}model +llama, 29,408 parameters, weights of fixtures\/hf\/llama$/m,
    );
    expect(stdout).toMatch(
      /^ {2}optimizer +AdamW, learning rate 1e-3 \(default\), betas 0\.9\/0\.999/m,
    );
    expect(stdout).toContain('Loss by step');
  });

  it('fails with a too high learning rate', async () => {
    const { code, stdout } = await overfit('--lr', '1e30');
    expect(code).toBe(1);
    expect(stdout).toMatch(/^llama: FAILED: loss \d\.\d+ at first, NaN or infinity at step 2/);
    expect(stdout).toMatch(
      /^ {2}problem +NaN or infinity at step 2, first in the \w+ of .*: learning rate 1e30 is too high/m,
    );
  });

  it('uses the training section of the file', async () => {
    const set = ['training.learning_rate=3e-4', 'training.max_grad_norm=0', 'training.beta2=0.95'];
    const { stdout } = await runHere([
      ...['quick-test', 'hybrid/tiny', '--overfit', '--steps', '2', '--seconds', '1', '--json'],
      ...set.flatMap((each) => ['--set', each]),
    ]);
    const { settings, steps } = JSON.parse(stdout).overfit;
    expect(settings).toMatchObject({
      learning_rate: { value: 3e-4, source: 'file' },
      max_grad_norm: { value: 0, source: 'file' },
      beta2: { value: 0.95, source: 'file' },
      weight_decay: { value: 0.01, source: 'default' },
    });
    expect(steps.map(({ clipped }: { clipped: boolean }) => clipped)).toEqual([false, false]);
  });

  it('writes the steps as CSV', async () => {
    const { stdout } = await overfit('--format', 'csv');
    const [head, ...rows] = stdout.trim().split(/\r?\n/);
    expect(head).toBe('step,loss,gradient_norm,clipped');
    expect(rows).toHaveLength(5);
  });

  it.each([
    [['--engine', 'tfjs'], '--overfit and --engine cannot be used together'],
    [['--lr', '0'], '--lr: expected a number above 0, found "0"'],
    [['--context', '2'], '--overfit: expected sequences of 3 tokens or more, found 2'],
  ])('refuses %j', async (args, message) => {
    const { code, stderr } = await overfit(...args);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
  });

  it('is required by --steps', async () => {
    const { code, stderr } = await runHere(['quick-test', MODEL, '--steps', '5']);
    expect(code).toBe(2);
    expect(stderr).toContain('--overfit');
  });
});
