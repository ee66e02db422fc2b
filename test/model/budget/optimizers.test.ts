import { describe, expect, it } from 'vitest';
import { loadModelFile } from '../../../src/input/model-input/read-model-file.js';
import type { Optimizer, Precision } from '../../../src/model/budget/optimizers.js';
import { OPTIMIZER_NAMES, OPTIMIZERS } from '../../../src/model/budget/optimizers.js';
import { trainingMemoryOf } from '../../../src/model/budget/training-budget.js';
import { inPackage } from '../../fixtures.js';

const { model } = await loadModelFile(inPackage('fixtures/hf-configs/llama-2-7b/config.json'), {
  set: [],
});
const PARAMETERS = 6_738_415_616;
/** Embedding and head, 32,000 rows of 4,096 each, and 65 norms. */
const TABLE = 32_000 * 4096;
const VECTORS = 65 * 4096;
const INSIDE = PARAMETERS - 2 * TABLE - VECTORS;

const stateOf = (optimizer: Optimizer, precision: Precision) =>
  trainingMemoryOf(model, { batch: 1, context: 1, precision, optimizer, recompute: 'full' });

const bytesOf = (optimizer: Optimizer, precision: Precision) => {
  const { weights, gradients, optimizer: state } = stateOf(optimizer, precision);
  return [weights, gradients, state].map(({ value }) => Number(value) / PARAMETERS);
};

describe('bytes of a parameter: weights, gradients, master copy and moments', () => {
  it.each([
    // ZeRO (arXiv 1910.02054): 2 + 2 + 12.
    ['adamw', 'mixed', [2, 2, 12]],
    ['adamw-fused', 'mixed', [2, 2, 12]],
    // torchtune with dtype=bf16: two moments in bf16.
    ['adamw', 'bf16', [2, 2, 4]],
    ['adamw', 'fp8', [2, 2, 12]],
    ['adamw', 'float32', [4, 4, 8]],
    ['lion', 'mixed', [2, 2, 8]],
    ['lion', 'bf16', [2, 2, 2]],
    ['sgd', 'bf16', [2, 2, 0]],
    ['sgd-momentum', 'float32', [4, 4, 4]],
    // In memory of the host (arXiv 2305.14314).
    ['paged-adamw', 'bf16', [2, 2, 0]],
    ['paged-adamw-8bit', 'mixed', [2, 2, 4]],
  ] as const)('%s in %s', (optimizer, precision, expected) => {
    expect(bytesOf(optimizer, precision)).toEqual(expected);
  });
});

it('Muon keeps one momentum for matrices of the blocks, and two moments for the others', () => {
  const { optimizer } = stateOf('muon', 'bf16');
  expect(optimizer.value).toBe(2 * INSIDE + 4 * (PARAMETERS - INSIDE));
});

it('Adafactor keeps sums of rows and columns', () => {
  const { optimizer } = stateOf('adafactor', 'bf16');
  const attention = 4 * (4096 + 4096);
  const feedForward = 3 * (4096 + 11_008);
  const tables = 2 * (32_000 + 4096);
  expect(optimizer.value).toBe(4 * (32 * (attention + feedForward) + tables + VECTORS));
});

// arXiv 2403.03507, table 1: mr + 2nr values for a matrix of m × n with m ≤ n; rank 1,024 for 7B.
it('GaLore keeps a projection of rank 1,024, and moments of the projected gradient', () => {
  const { optimizer } = stateOf('galore', 'bf16');
  const matrix = (m: number, n: number) => 1024 * (m + 2 * n);
  const block = 4 * matrix(4096, 4096) + 3 * matrix(4096, 11_008);
  expect(optimizer.value).toBe(2 * (32 * block + 2 * (PARAMETERS - INSIDE)));
});

it('8-bit states are smaller than full ones', () => {
  for (const [narrow, full] of [
    ['adamw-8bit', 'adamw'],
    ['lion-8bit', 'lion'],
    ['galore-8bit', 'galore'],
  ] as const) {
    const [small, large] = [narrow, full].map((each) => stateOf(each, 'mixed').optimizer.value);
    expect(Number(small)).toBeLessThan(Number(large));
  }
});

it('every optimizer names the source of its state', () => {
  for (const name of OPTIMIZER_NAMES) expect(OPTIMIZERS[name].source.length).toBeGreaterThan(10);
});
