import { describe, expect, it } from 'vitest';
import { batchingOf } from '../../../src/estimate/fit/serving/batching.js';
import { runHere } from '../../run-here.js';

const FIT = ['fit', 'minimind2-small', '--gpu', 'h100-80gb'];

describe('static batching', () => {
  it('wastes 90 of 200 places on a request of 100 tokens and one of 10', () => {
    const { mean, steps, wasted, ratio, drawn } = batchingOf([100, 10], 2);
    expect({ mean, steps, ratio }).toEqual({ mean: 55, steps: 100, ratio: 200 / 110 });
    expect(wasted).toBeCloseTo(90 / 200, 12);
    // Pairs drawn at random: three of four have a request of 100.
    expect(drawn.steps).toBe(0.75 * 100 + 0.25 * 10);
  });

  it('wastes more with few long answers: the published gain of 3 to 5 times', () => {
    const mixed = batchingOf([100, ...Array(9).fill(10)], 32);
    expect(mixed.ratio).toBeCloseTo(100 / 19, 12);
    // 1 − 0.9^32 of the batches have a long answer.
    expect(mixed.drawn.steps).toBeCloseTo(100 - 90 * 0.9 ** 32, 9);
    expect(batchingOf([100, 10, 10, 10], 8).ratio).toBeCloseTo(400 / 130, 12);
  });

  it('wastes nothing on equal answers, or on one request', () => {
    expect(batchingOf([50, 50], 8)).toMatchObject({ wasted: 0, ratio: 1, drawn: { wasted: 0 } });
    expect(batchingOf([100, 10], 1)).toMatchObject({ steps: 55, ratio: 1 });
  });

  it('agrees with a simulation of both', () => {
    // Deterministic: a batch of 8 for each of the 2^8 draws of two lengths.
    let steps = 0;
    for (let draw = 0; draw < 256; draw++) steps += draw === 0 ? 10 : 100;
    expect(batchingOf([10, 100], 8).drawn.steps).toBeCloseTo(steps / 256, 9);
  });
});

describe('fit --output-mix', () => {
  it('compares both ways of batching', async () => {
    const { code, stdout } = await runHere([
      ...FIT,
      '--output-mix',
      '100,10',
      '--batch',
      '2',
      '--details',
    ]);
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /batching +continuous 1\.82 × static: 2 requests of 100 or 10 tokens waste\s+45\.0% of a static batch/,
    );
    expect(stdout).toMatch(/^static, drawn at random +77\.5 +29\.0% +71\.0%$/m);
    const { stdout: json } = await runHere([...FIT, '--output-mix', '100,10', '--json']);
    expect(JSON.parse(json).batching).toMatchObject({ batch: 32, lengths: [100, 10], steps: 100 });
  });

  it.each([
    ['10,20,30', 'requests of 10, 20 or 30 tokens waste'],
    ['1', 'requests of 1 token waste'],
  ])('lists the lengths %s', async (lengths, text) => {
    const { stdout } = await runHere([...FIT, '--output-mix', lengths, '--batch', '2']);
    expect(stdout.replaceAll(/\s+/g, ' ')).toContain(text);
  });

  it.each([
    [['fit', 'minimind2-small', '--output-mix', '100,10'], '--output-mix requires hardware'],
    [[...FIT, '--for', 'training', '--output-mix', '100,10'], 'does not apply to --for training'],
    [[...FIT, '--output-mix', '100,0'], '--output-mix'],
  ])('refuses %j', async (args, message) => {
    const { code, stderr } = await runHere(args);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
  });
});
