import { describe, expect, it } from 'vitest';
import type { RunOutput, Values } from '../../src/engine/engine.js';
import { tensorsOf } from '../../src/model/architecture/walk.js';
import { stateOf } from '../../src/model/budget/state.js';
import { sampled } from '../sampled.js';
import { withEachEngine } from './both-engines.js';
import { FAMILY_CASES, familyCase } from './family-cases.js';
import { differenceAt } from './fixture-models.js';
import { partOf, rowsOf } from './sequences.js';
import { largestDifference } from './tfjs/support.js';

/** Largest value, at least 1. Rounding errors are in proportion to it. */
const sizeOf = ({ data }: Values) =>
  data.reduce((most, value) => Math.max(most, Math.abs(value)), 1);

/** Largest differences from the original, which is also in float32. */
const LIMITS = { 'ONNX Runtime': 2e-5, 'TensorFlow.js': 5e-5 } as const;

/** Each case is read once for all of its tests. */
const casesRead = new Map<string, ReturnType<typeof familyCase>>();
const caseAt = (place: string): ReturnType<typeof familyCase> => {
  const read = casesRead.get(place) ?? familyCase(place);
  casesRead.set(place, read);
  return read;
};

it.skipIf(process.env.MINIMIND_FAMILY_CASES)('there are more than 50 cases of families', () => {
  expect(FAMILY_CASES.length).toBeGreaterThan(50);
});

describe('the description has the tensors of the original:', () => {
  it.each(FAMILY_CASES)('%s', async (place) => {
    const { model, shapes, parameters } = await caseAt(place);
    const own = tensorsOf(model);
    expect(Object.fromEntries(own.map(({ name, shape }) => [name, shape]))).toEqual(shapes);
    const counted = own.filter(({ role }) => role === 'parameter');
    expect(counted.reduce((sum, { elements }) => sum + elements, 0)).toBe(parameters);
  });
});

describe('the counted state equals the cache of the original, by kind:', () => {
  it.each(FAMILY_CASES)('%s', async (place) => {
    const { model, ids, cache } = await caseAt(place);
    const { batch, tokens: context } = ids;
    for (const [name, dtype] of Object.entries({ float32: 'f32', bfloat16: 'bf16' } as const)) {
      const expected = cache[name];
      if (!expected) continue;
      const state = stateOf(model, { batch, context, dtype });
      expect({
        keys_values: state.keyValueCache.value,
        convolutions: state.convolutionState.value,
        states: state.mambaState.value,
      }).toEqual(expected);
    }
  });
});

describe('the counted state has the bytes of the original cache:', () => {
  it.each(FAMILY_CASES)('%s', async (place) => {
    const { model, ids, cacheBytes } = await caseAt(place);
    if (cacheBytes === undefined) return;
    const { total } = stateOf(model, { batch: ids.batch, context: ids.tokens, dtype: 'f32' });
    expect(Number(total.value)).toBe(cacheBytes);
  });
});

/** Kind of a case, without the numbers of random ones. */
const kindOf = (place: string) => place.replace(/-\d+-\d+$/, '');

withEachEngine('models of every family', (load, engine) => {
  const cases = sampled(FAMILY_CASES, 8, kindOf);
  /** Outputs of whole forward passes, kept for the tests of decoding. */
  const forwards = new Map<string, RunOutput>();
  const forwardOf = async (place: string): Promise<RunOutput> => {
    const known = forwards.get(place);
    if (known) return known;
    const { model, weights, ids } = await caseAt(place);
    const program = await load(model, weights);
    const forward = await program.run({ ids });
    await program.release();
    forwards.set(place, forward);
    return forward;
  };

  it.each(cases)('give the results of the original: %s', async (place) => {
    const { expected } = await caseAt(place);
    const { output, blocks } = await forwardOf(place);
    const outputs = new Map([
      ...[...blocks.values()].map((value, index) => [`hidden.${index}`, value] as const),
      ['logits', output],
    ]);
    for (const [key, reference] of expected) {
      const value = outputs.get(key);
      expect(value?.shape, key).toEqual(reference.shape);
      const difference = value ? differenceAt(value, reference, 1) : Number.NaN;
      expect(difference, key).toBeLessThan(LIMITS[engine] * sizeOf(reference));
    }
  });

  it.each(cases)('decode to the results of the full forward pass: %s', async (place) => {
    const { model, weights, ids } = await caseAt(place);
    const full = await forwardOf(place);
    const program = await load(model, weights, { decoding: { totalTokens: ids.tokens } });
    // A prefill, then several tokens, then one at a time.
    const singly = Array.from({ length: 4 }, (_, index) => ids.tokens - 3 + index);
    const ends = [ids.tokens - 8, ...singly];
    let before: RunOutput | undefined;
    for (const [index, to] of ends.entries()) {
      const from = ends[index - 1] ?? 0;
      const run = await program.run({ ids: partOf(ids, from, to), state: before?.state });
      expect(run.state?.position).toBe(to);
      const expected = rowsOf(full.output, from, to);
      expect(largestDifference(run.output.data, expected)).toBeLessThan(
        LIMITS[engine] * sizeOf(full.output),
      );
      before = run;
    }
    await program.release();
  });
});
