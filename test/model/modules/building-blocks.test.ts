import { describe, expect, it } from 'vitest';
import { type BlockSizes, SMALL_SIZES } from '../../../src/model/modules/block-run.js';
import { BLOCKS, runBlock } from '../../../src/model/modules/building-blocks.js';
import { readJson } from '../../fixtures.js';

interface Case {
  readonly block: string;
  readonly sizes: Partial<BlockSizes>;
  readonly torch: readonly string[];
  readonly tensors: Readonly<Record<string, { shape: number[]; values: number[] }>>;
  readonly calls?: readonly object[];
  readonly steps?: readonly Readonly<Record<string, unknown>>[];
}

/** Runs of PyTorch, made by fixtures/modules/make_runs.py. */
const CASES = readJson<Case[]>('fixtures/modules/runs.json');

const run = (name: string, sizes: Partial<BlockSizes> = {}) =>
  runBlock(name, { ...SMALL_SIZES, ...sizes });

/** Largest difference, relative for values above one. */
const largestRelative = (a: readonly number[], b: readonly number[]) =>
  Math.max(
    ...a.map((value, at) => Math.abs(value - (b[at] ?? Number.NaN)) / Math.max(1, Math.abs(value))),
  );

describe('runs of blocks', () => {
  it('cover every block with cases of PyTorch', () => {
    expect([...new Set(CASES.map(({ block }) => block))].toSorted()).toEqual(
      BLOCKS.map(({ name }) => name).toSorted(),
    );
  });

  it.each(CASES.map((each) => [each.block, JSON.stringify(each.sizes), each] as const))(
    'give the numbers of PyTorch: %s %s',
    (_, __, { block, sizes, torch, tensors, calls, steps }) => {
      const result = run(block, sizes);
      expect(result.torch).toEqual(torch);
      expect(result.tensors.map(({ name }) => name).toSorted()).toEqual(
        Object.keys(tensors).toSorted(),
      );
      for (const { name, role, shape, values, dtype } of result.tensors) {
        expect({ name, shape }).toEqual({ name, shape: tensors[name]?.shape });
        const expected = tensors[name]?.values ?? [];
        if (role === 'output')
          expect(largestRelative(values, expected)).toBeLessThan(dtype === 'bf16' ? 0.004 : 1e-6);
        else expect(values).toEqual(expected);
      }
      if (calls) expect(result.calls).toMatchObject(calls);
      for (const [at, step] of (steps ?? []).entries()) {
        const own = { ...result.steps?.[at] } as Record<string, unknown>;
        for (const [key, value] of Object.entries(step)) {
          const numbers = (given: unknown) => [given].flat() as number[];
          expect(largestRelative(numbers(own[key]), numbers(value))).toBeLessThan(1e-6);
        }
      }
    },
  );

  it.each(BLOCKS.map(({ name }) => name))('pass the checks of %s in every dtype', (name) => {
    for (const dtype of ['f32', 'f16', 'bf16'] as const) {
      for (const seed of [0, 1, 2]) {
        const { checks } = run(name, { dtype, seed, initSeed: seed });
        expect(checks.length).toBeGreaterThan(0);
        for (const { check, difference, limit } of checks) {
          expect({ name, dtype, check, difference }).toSatisfy(() => difference <= limit);
        }
      }
    }
  });

  it('keep the scale of a dynamic rotation, but not of a static one', () => {
    const scales = (dynamic: boolean) =>
      run('ntk-rope', { dynamic }).calls?.map(({ scale, keptScale }) => [scale, keptScale]);
    expect(scales(false)).toEqual([
      [1, 1],
      [4, 1],
      [2, 1],
    ]);
    expect(scales(true)).toEqual([
      [1, 1],
      [4, 4],
      [4, 4],
    ]);
  });

  it.each([
    ['group-rms-norm', { group: 3 }, 'does not divide'],
    ['parallel-embedding', { ranks: 3 }, '3 ranks do not divide a vocabulary of 8'],
    ['gqa', { keyHeads: 3 }, '3 key heads do not divide 4 heads'],
    ['rms-norm', { hidden: 2 ** 20 }, 'values'],
    ['ntk-rope', { positions: 2 ** 24 }, 'values'],
    ['ntk-rope', { calls: [{ positions: 1, offset: 2 ** 24 }] }, 'values'],
    ['spin', {}, 'unknown block'],
  ])('are refused: %s %j', (name, sizes, message) => {
    expect(() => run(name, sizes)).toThrow(message);
  });
});
