/** A published table of speed-ups of flash attention, which names no model, next to figures of this program. */
import { describe, expect, it } from 'vitest';
import type { FitResult } from '../../src/estimate/fit/fits.js';
import type { AttentionAnswer } from '../../src/estimate/fit/training/attention-time.js';
import { runHere } from '../run-here.js';

/** Tokens, and how much faster flash attention is in the table. */
const PUBLISHED = [
  [512, 1.2],
  [2048, 2.1],
  [8192, 3.8],
  [16_384, 5.2],
] as const;

/** Speed-ups of a forward pass: against a fused softmax, and against elementary operations. */
async function ratiosOf(model: string) {
  const contexts = PUBLISHED.map(([context]) => context).join(',');
  const { stdout } = await runHere(['attention', model, '--context', contexts, '--json']);
  const { speeds = [] }: AttentionAnswer = JSON.parse(stdout);
  return speeds.map(({ ratios: [fused, eager] }) => [fused, eager] as const);
}

describe('published speed-ups of flash attention', () => {
  it('are in the range of a model with heads of 128 values, but for 2,048 tokens', async () => {
    const ratios = await ratiosOf('llama-3.1-8b');
    const above = PUBLISHED.map(([, published], index) => {
      const [fused = 0, eager = 0] = ratios[index] ?? [];
      expect(published).toBeGreaterThan(fused);
      return published / eager;
    });
    expect(above.map((share) => share <= 1)).toEqual([true, false, true, true]);
    expect(above[1]).toBeCloseTo(1.13, 2);
  });

  it('are below that of one with small heads, whose scores are more of the work', async () => {
    const ratios = await ratiosOf('minigpt-medium');
    const expected = [
      [1.62, 4.27],
      [3.13, 12.3],
      [6.52, 30.3],
      [8.51, 40.8],
    ];
    for (const [index, [fused, eager]] of ratios.entries()) {
      expect(fused).toBeGreaterThan(PUBLISHED[index]?.[1] ?? 0);
      expect(fused / (expected[index]?.[0] ?? 0)).toBeCloseTo(1, 2);
      expect(eager / (expected[index]?.[1] ?? 0)).toBeCloseTo(1, 2);
    }
  });

  it.each([
    // The weights are most of the traffic of a short step, with any attention.
    [512, 1.37],
    [2048, 8.28],
  ])('are those of a whole training step in fit: %d tokens', async (context, ratio) => {
    const speeds = [];
    for (const attention of ['fused', 'plain']) {
      const line = `fit minigpt-medium --gpu a100-80gb --for training --context ${context}`;
      const { stdout } = await runHere([...line.split(' '), '--attention', attention, '--json']);
      const { training }: FitResult = JSON.parse(stdout);
      speeds.push(training?.fit.step?.tokensPerSecond.value ?? 0);
    }
    const [flash = 0, plain = 0] = speeds;
    expect(flash / plain).toBeCloseTo(ratio, 2);
  });
});
