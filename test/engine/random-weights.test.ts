import { describe, expect, it } from 'vitest';
import type { WeightSource } from '../../src/engine/weights/weights.js';
import { randomIntegers, randomWeights } from '../../src/engine/weights/weights.js';
import type { Param } from '../../src/model/architecture/param.js';
import { param } from '../../src/model/architecture/param.js';
import { tensorsOf } from '../../src/model/architecture/walk.js';
import { readJson } from '../fixtures.js';
import { fixtureModel, modelOfConfig } from './fixture-models.js';
import { referenceEngine } from './reference-engine.js';

const CONFIG = {
  vocab_size: 50,
  hidden_size: 16,
  num_layers: 2,
  num_heads: 2,
  gate_rank: 4,
  max_position_embeddings: 40,
  srte_factorized_rank: 4,
};

const model = modelOfConfig(CONFIG);
const named = (name: string): Param => {
  const tensor = tensorsOf(model).find((each) => each.name === name);
  if (!tensor) throw new Error(name);
  return tensor;
};

function part(source: WeightSource, tensor: Param, first: number, count: number): number[] {
  const target = new Float32Array(count);
  source.read(tensor, first, target);
  return [...target];
}
const whole = (source: WeightSource, name: string) =>
  part(source, named(name), 0, named(name).elements);

describe('random weights', () => {
  const weights = randomWeights(model, 7);

  interface Expected {
    readonly seed: number;
    readonly name: string;
    readonly shape: readonly number[];
    /** Places of the values; all by default. */
    readonly places?: readonly number[];
    readonly values: readonly number[];
  }

  const expected = readJson<Expected[]>('fixtures/random/weights.json');

  it.each(expected)('equal those of PyTorch for $name with seed $seed', (each) => {
    const { seed, name, shape, places, values } = each;
    expect(named(name).shape).toEqual(shape);
    const all = whole(randomWeights(model, seed), name);
    const shown = places ? places.map((place) => all[place] ?? Number.NaN) : all;
    expect([...shown].slice(0, values.length)).toEqual(values.map(Math.fround));
  });

  it('can be read in any part', () => {
    for (const tensor of tensorsOf(model).filter(({ role }) => role === 'parameter')) {
      const all = part(weights, tensor, 0, tensor.elements);
      const middle = Math.floor(tensor.elements / 3);
      expect(part(weights, tensor, middle, tensor.elements - middle)).toEqual(all.slice(middle));
    }
  });

  it('depend on the seed and on the name', () => {
    const other = randomWeights(model, 8);
    const name = 'layers.0.fusion_proj.weight';
    expect(whole(other, name)).not.toEqual(whole(weights, name));
    expect(whole(weights, 'layers.1.fusion_proj.weight')).not.toEqual(whole(weights, name));
  });

  it('have the spread of PyTorch', () => {
    const values = whole(weights, 'layers.0.small_mlp.0.weight');
    const bound = 1 / Math.sqrt(16);
    expect(Math.max(...values)).toBeLessThan(bound);
    expect(Math.max(...values)).toBeGreaterThan(0.99 * bound);
    expect(Math.min(...values)).toBeLessThan(-0.99 * bound);
    expect(deviationOf(values) / (bound / Math.sqrt(3))).toBeCloseTo(1, 1);
    expect(Math.max(...whole(weights, 'layers.0.mamba.conv1d.weight'))).toBeGreaterThan(0.45);
  });

  it('are small in tables', () => {
    const values = whole(weights, 'embed_tokens.weight');
    expect(deviationOf(values) / 0.02).toBeCloseTo(1, 1);
    expect(Math.abs(meanOf(values))).toBeLessThan(0.002);
  });

  it('are ones and zeros for norms, and S4D-real for the state', () => {
    expect(new Set(whole(weights, 'norm.weight'))).toEqual(new Set([1]));
    expect(new Set(whole(weights, 'norm.bias'))).toEqual(new Set([0]));
    expect(new Set(whole(weights, 'layers.1.mamba.D'))).toEqual(new Set([1]));
    const logarithms = whole(weights, 'layers.1.mamba.A_log');
    expect(logarithms[0]).toBe(0);
    expect(logarithms[64 + 2]).toBe(Math.fround(Math.log(3)));
  });

  it('cannot be read beyond the tensor', () => {
    const tensor = named('embed_tokens.weight');
    expect(() => part(weights, tensor, 790, 11)).toThrow(RangeError);
  });

  it('are the same when tensors are read alternately', () => {
    const [one, other] = [named('embed_tokens.weight'), named('layers.0.fusion_proj.weight')];
    const turns = [0, 1, 2].flatMap((turn) => [
      part(weights, one, 40 * turn, 40),
      part(weights, other, 40 * turn, 40),
    ]);
    const inTurns = (first: number) => [0, 2, 4].flatMap((at) => turns[at + first] ?? []);
    expect(inTurns(0)).toEqual(whole(weights, one.name).slice(0, 120));
    expect(inTurns(1)).toEqual(whole(weights, other.name).slice(0, 120));
  });

  it('are those of the embedding when the head is tied', () => {
    const tied = modelOfConfig({ ...CONFIG, tie_word_embeddings: true });
    const values = part(randomWeights(tied, 7), tied.head.weight, 0, 800);
    expect(values).toEqual(whole(weights, 'embed_tokens.weight'));
  });

  it('are not in a file', () => {
    expect(weights.rangeOf(named('norm.weight'))).toBeUndefined();
  });

  it('are missing for other models', () => {
    const foreign = param('stranger', [1]);
    expect(() => weights.read(foreign, 0, new Float32Array(1))).toThrow('stranger');
  });

  it('keep the outputs of a model in bounds', async () => {
    const program = await referenceEngine().load(model, weights);
    const ids = { batch: 1, tokens: 40, data: randomIntegers(1, 'ids', 40, 50) };
    const { output } = await program.run({ ids });
    expect(deviationOf([...output.data])).toBeGreaterThan(0.1);
    expect(Math.max(...output.data.map(Math.abs))).toBeLessThan(10);
  });
});

const meanOf = (values: readonly number[]) =>
  values.reduce((sum, value) => sum + value, 0) / values.length;
const deviationOf = (values: readonly number[]) => {
  const mean = meanOf(values);
  return Math.sqrt(meanOf(values.map((value) => (value - mean) ** 2)));
};

describe('a buffer', () => {
  it('of sines and cosines equals the original, to the bit', () => {
    const { model: original, weights } = fixtureModel('shared-sincos');
    const tensor = tensorsOf(original).find(({ name }) => name === 'shared_srte.inv_freq');
    if (!tensor) throw new Error('no buffer');
    const computed = part(randomWeights(original, 1), tensor, 0, tensor.elements);
    expect(computed).toEqual(part(weights, tensor, 0, tensor.elements));
  });

  it('of RoPE has frequencies, cosines and sines', () => {
    const weights = randomWeights(model, 1);
    const at = (leaf: string, index: number) =>
      part(weights, named(`layers.0.attention.rope.${leaf}`), index, 1)[0];
    expect(whole(weights, 'layers.0.attention.rope.inv_freq')).toEqual(
      [1, 0.1, 0.01, 0.001].map(Math.fround),
    );
    // Position 3, column 5: the second half has the frequencies of the first again.
    expect(at('cos_cached', 3 * 8 + 5)).toBeCloseTo(Math.cos(0.3), 6);
    expect(at('sin_cached', 3 * 8 + 5)).toBeCloseTo(Math.sin(0.3), 6);
  });
});

describe('random integers', () => {
  it('cover all values below the limit, and are the same for the same seed', () => {
    const values = randomIntegers(5, 'ids', 1000, 7);
    expect(new Set(values)).toEqual(new Set([0, 1, 2, 3, 4, 5, 6]));
    expect(randomIntegers(5, 'ids', 1000, 7)).toEqual(values);
    expect(randomIntegers(6, 'ids', 1000, 7)).not.toEqual(values);
  });
});
