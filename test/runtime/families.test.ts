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

/** Each case is read once for all that is tested on it. */
const casesRead = new Map<string, ReturnType<typeof familyCase>>();
const caseAt = (place: string): ReturnType<typeof familyCase> => {
  const read = casesRead.get(place) ?? familyCase(place);
  casesRead.set(place, read);
  return read;
};

it.skipIf(process.env.MINIMIND_FAMILY_CASES)('has the cases that were made', () => {
  expect(FAMILY_CASES.length).toBeGreaterThan(50);
});

describe('the description has the tensors that the original stores', () => {
  it.each(FAMILY_CASES)('%s', async (place) => {
    const { model, shapes, parameters } = await caseAt(place);
    const own = tensorsOf(model);
    expect(Object.fromEntries(own.map(({ name, shape }) => [name, shape]))).toEqual(shapes);
    const counted = own.filter(({ role }) => role === 'parameter');
    expect(counted.reduce((sum, { elements }) => sum + elements, 0)).toBe(parameters);
  });
});

describe('the state counted is what the cache of the original holds', () => {
  it.each(FAMILY_CASES)('%s', async (place) => {
    const { model, ids, cache } = await caseAt(place);
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
    const { model, ids, cacheBytes } = await caseAt(place);
    if (cacheBytes === undefined) return;
    const { total } = stateOf(model, { batch: ids.batch, context: ids.tokens, dtype: 'f32' });
    expect(Number(total.value)).toBe(cacheBytes);
  });
});

withEachEngine('models of every family', (load, engine) => {
  /** What the whole forward gives, for the test that decodes the same tokens. */
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

  it.each(FAMILY_CASES)('compute what the original does: %s', async (place) => {
    const { expected } = await caseAt(place);
    const { output, blocks } = await forwardOf(place);
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
    const { model, weights, ids } = await caseAt(place);
    const full = await forwardOf(place);
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
