import { describe, expect, it } from 'vitest';
import { estimate, OPTIMIZER, sizeOf, verify } from '../../src/kv-projector/verify.js';
import { bandsAt } from '../../src/kv-projector/verify-bands.js';
import type { DataKind } from '../../src/kv-projector/verify-data.js';
import { manualSeed } from '../../src/random/index.js';
import type { BackendName } from '../../src/runtime/tfjs/backends.js';
import { openTrainer } from '../../src/runtime/tfjs/training.js';
import type { ChainLayer, Task } from '../../src/runtime/training.js';
import type { Values } from '../../src/runtime/values.js';
import { readJson } from '../fixtures.js';

interface Fixture {
  readonly size: Parameters<typeof sizeOf>[0];
  readonly runs: readonly {
    readonly data: DataKind;
    readonly seed: number;
    readonly losses: Readonly<Record<'linear' | 'elastic', readonly number[]>>;
  }[];
  readonly tiny: {
    readonly rows: number;
    readonly widths: readonly [number, number, number];
    readonly x: readonly number[];
    readonly y: readonly number[];
    readonly mask: readonly number[];
    readonly before: readonly (readonly number[])[];
    readonly losses: readonly number[];
    readonly after: readonly (readonly number[])[];
  };
}

const { size, runs, tiny } = readJson<Fixture>('fixtures/kv-projector/train.json');
const BACKENDS = ['wasm', 'cpu'] as const satisfies readonly BackendName[];

/** The chain of the fixture, with a constant mask, and what it learns. */
function tinyTask(parameters = tiny.before): { chain: ChainLayer[]; task: Task } {
  const [input, hidden, output] = tiny.widths;
  const shapes = [[input], [input], [hidden, input], [hidden], [output, hidden], [output]];
  const [scale, shift, first, firstBias, second, secondBias] = shapes.map((shape, at) =>
    values(parameters[at] ?? [], shape),
  ) as [Values, Values, Values, Values, Values, Values];
  return {
    chain: [
      { kind: 'layerNorm', epsilon: 1e-5, weight: scale, bias: shift },
      { kind: 'linear', weight: first, bias: firstBias },
      { kind: 'silu' },
      { kind: 'dropout', maskOf: () => Float32Array.from(tiny.mask) },
      { kind: 'linear', weight: second, bias: secondBias },
    ],
    task: { x: values(tiny.x, [tiny.rows, input]), y: values(tiny.y, [tiny.rows, output]) },
  };
}

const values = (data: readonly number[], shape: readonly number[]): Values => ({
  shape,
  data: Float32Array.from(data),
});

const farthest = (found: Iterable<number>, expected: readonly number[]): number => {
  const all = [...found];
  expect(all.length).toBe(expected.length);
  return Math.max(...all.map((value, at) => Math.abs(value - (expected[at] ?? Number.NaN))));
};

describe.each(BACKENDS)('a chain that learns (%s)', (backend) => {
  it('has the losses and the parameters of PyTorch', async () => {
    const { chain, task } = tinyTask();
    const training = await (await openTrainer(1, backend)).train(chain, task, OPTIMIZER);
    const losses: number[] = [];
    for (const _ of tiny.losses) losses.push(await training.step());
    expect(farthest(losses, tiny.losses)).toBeLessThan(1e-5);
    const after = (await training.parameters()).map(({ data }) => data);
    for (const [at, expected] of tiny.after.entries()) {
      expect(farthest(after[at] ?? [], expected)).toBeLessThan(1e-5);
      // Ten steps of 1e-3 have moved it.
      expect(farthest(after[at] ?? [], tiny.before[at] ?? [])).toBeGreaterThan(5e-3);
    }
    await training.release();
  });

  it('has the gradients that trying shows', async () => {
    const trainer = await openTrainer(1, backend);
    const lossWith = async (parameters: readonly (readonly number[])[]) => {
      const { chain, task } = tinyTask(parameters);
      const training = await trainer.train(chain, task, OPTIMIZER);
      const loss = await training.step();
      await training.release();
      return loss;
    };
    // Without means and decay, the first step takes the gradient itself, divided by epsilon, which is large.
    const plain = { learningRate: 1, betas: [0, 0], epsilon: 1e6, weightDecay: 0 } as const;
    const { chain, task } = tinyTask();
    const training = await trainer.train(chain, task, plain);
    await training.step();
    const after = await training.parameters();
    await training.release();
    const step = 1 / 128;
    for (const [at, before] of tiny.before.entries()) {
      const moved = (by: number) =>
        tiny.before.map((each, place) =>
          place === at ? each.map((value, i) => (i === 1 ? value + by : value)) : each,
        );
      const tried = ((await lossWith(moved(step))) - (await lossWith(moved(-step)))) / (2 * step);
      const slope = ((before[1] ?? 0) - (after[at]?.data[1] ?? 0)) * 1e6;
      expect(Math.abs(tried)).toBeGreaterThan(1e-3);
      // The values keep seven digits: what they change by, divided by a million, is known to a tenth at most.
      expect(Math.abs(slope - tried)).toBeLessThan(0.2);
    }
  });
});
