import { describe, expect, it } from 'vitest';
import { tensorsOf } from '../../src/architecture/walk.js';
import { stateOf } from '../../src/budget/state.js';
import type { RunOutput, Values } from '../../src/runtime/engine.js';
import { withEachEngine } from './both-engines.js';
import { FAMILY_CASES, familyCase } from './family-cases.js';
import { differenceAt } from './fixture-models.js';
import { partOf, rowsOf } from './sequences.js';
import { largestDifference } from './tfjs/support.js';

/** The largest value, which rounding is in proportion to; at least 1. */
const sizeOf = ({ data }: Values) =>
  data.reduce((most, value) => Math.max(most, Math.abs(value)), 1);

/** How far float32 may be from the original's, which is float32 too. */
const LIMITS = { 'ONNX Runtime': 2e-5, 'TensorFlow.js': 5e-5 } as const;

it.skipIf(process.env.MINIMIND_FAMILY_CASES)('has the cases that were made', () => {
  expect(FAMILY_CASES.length).toBeGreaterThan(50);
});

describe('the description has the tensors that the original stores', () => {
  it.each(FAMILY_CASES)('%s', async (place) => {
    const { model, shapes, parameters } = await familyCase(place);
    const own = tensorsOf(model);
    expect(Object.fromEntries(own.map(({ name, shape }) => [name, shape]))).toEqual(shapes);
    const counted = own.filter(({ role }) => role === 'parameter');
    expect(counted.reduce((sum, { elements }) => sum + elements, 0)).toBe(parameters);
  });
});

describe('the state counted is what the cache of the original holds', () => {
  it.each(FAMILY_CASES)('%s', async (place) => {
    const { model, ids, cache } = await familyCase(place);
    const { batch, tokens: context } = ids;
    for (const [name, dtype] of Object.entries({ float32: 'f32', bfloat16: 'bf16' } as const)) {
      const wanted = cache[name];
      if (!wanted) continue;
      const state = stateOf(model, { batch, context, dtype });
      expect({
        keys_values: state.keyValueCache.value,
        convolutions: state.convolutionState.value,
        states: state.mambaState.value,
      }).toEqual(wanted);
    }
  });
});

describe('the state has the bytes of the original cache', () => {
  it.each(FAMILY_CASES)('%s', async (place) => {
    const { model, ids, cacheBytes } = await familyCase(place);
    if (cacheBytes === undefined) return;
    const { total } = stateOf(model, { batch: ids.batch, context: ids.tokens, dtype: 'f32' });
    expect(Number(total.value)).toBe(cacheBytes);
  });
});

withEachEngine('models of every family', (load, engine) => {
  it.each(FAMILY_CASES)('compute what the original does: %s', async (place) => {
    const { model, weights, ids, expected } = await familyCase(place);
    const program = await load(model, weights);
    const { output, blocks } = await program.run({ ids });
    await program.release();
    const found = new Map([
      ...[...blocks.values()].map((value, index) => [`hidden.${index}`, value] as const),
      ['logits', output],
    ]);
    for (const [key, wanted] of expected) {
      const value = found.get(key);
      expect(value?.shape, key).toEqual(wanted.shape);
      const difference = value ? differenceAt(value, wanted, 1) : Number.NaN;
      expect(difference, key).toBeLessThan(LIMITS[engine] * sizeOf(wanted));
    }
  });

  it.each(FAMILY_CASES)('decode to what the full forward gives: %s', async (place) => {
    const { model, weights, ids } = await familyCase(place);
    const whole = await load(model, weights);
    const full = await whole.run({ ids });
    await whole.release();
    const program = await load(model, weights, { decoding: { totalTokens: ids.tokens } });
    // A prefill, several tokens on top of it, then one at a time.
    const singly = Array.from({ length: 4 }, (_, index) => ids.tokens - 3 + index);
    const ends = [ids.tokens - 8, ...singly];
    let before: RunOutput | undefined;
    for (const [index, to] of ends.entries()) {
      const from = ends[index - 1] ?? 0;
      const run = await program.run({ ids: partOf(ids, from, to), state: before?.state });
      expect(run.state?.position).toBe(to);
      const wanted = rowsOf(full.output, from, to);
      expect(largestDifference(run.output.data, wanted)).toBeLessThan(
        LIMITS[engine] * sizeOf(full.output),
      );
      before = run;
    }
    await program.release();
  });
});
