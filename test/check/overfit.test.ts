import { describe, expect, it } from 'vitest';
import { overfitSettings, summary } from '../../src/check/overfit/judge.js';
import type { OverfitRequest } from '../../src/check/overfit/overfit.js';
import { overfit, overfitProxy } from '../../src/check/overfit/overfit.js';
import { scaledDownProxy } from '../../src/check/test-context.js';
import type { WeightSource } from '../../src/engine/weights/weights.js';
import { walk } from '../../src/model/architecture/walk.js';
import { countParameters } from '../../src/model/budget/parameters.js';
import { familyCase } from '../engine/family-cases.js';
import { modelOfConfig } from '../engine/fixture-models.js';
import { publishedConfig, publishedModels } from '../model/budget/published-models.js';
import { sampled } from '../sampled.js';
import { TINY } from './test-contexts.js';

const REQUEST: Omit<OverfitRequest, 'model'> = {
  family: { build: () => expect.unreachable() },
  document: { model: {} },
  weights: undefined,
  ids: undefined,
  seed: 0,
  steps: 12,
  // Time must not decide here.
  seconds: 100_000,
  learningRate: undefined,
  full: true,
  threads: 1,
  watch: () => {},
};

/** Without time it takes the minimum number of steps and no sweep. */
const FIVE_STEPS = { seconds: 0 };

const training = (values: Readonly<Record<string, number>>) => ({
  document: { model: {}, training: values },
});

async function trained(place: string, request: Partial<OverfitRequest> = {}) {
  const { model, weights } = await familyCase(place);
  return overfit({ ...REQUEST, model, weights, ...request });
}

/** A source with one value in all elements of some tensors. */
const withValue = (source: WeightSource, name: RegExp, value: number): WeightSource => ({
  rangeOf: () => undefined,
  read(tensor, first, target) {
    if (name.test(tensor.name)) target.fill(value);
    else source.read(tensor, first, target);
  },
});

describe('a working model', () => {
  it.each(sampled(['hf/llama', 'hf/qwen3-moe', 'hf/jamba', 'hf/qwen3-5-text-7-11'], 4))(
    'learns its batch: %s',
    async (place) => {
      const { problems, warnings, steps, finalLoss, deadParameters } = await trained(place);
      expect({ problems, warnings, deadParameters }).toEqual({
        problems: [],
        warnings: [],
        deadParameters: [],
      });
      expect(steps).toHaveLength(12);
      expect(finalLoss).toBeLessThan(0.9 * (steps[0]?.loss ?? 0));
    },
  );

  it.each([
    {},
    { srte_encoding: 'sincos' },
    { srte_encoding: 'learnable' },
    { srte_share_across_layers: false, srte_encoding: 'learnable' },
  ])('trains every tensor: a hybrid with %j', async (config) => {
    const model = modelOfConfig({ ...TINY, ...config });
    const { problems, warnings, uniformLoss, trainedTensors } = await overfit({
      ...REQUEST,
      ...FIVE_STEPS,
      ...training({ learning_rate: 3e-3 }),
      model,
    });
    expect({ problems, warnings }).toEqual({ problems: [], warnings: [] });
    expect(uniformLoss).toBe(Math.log(12));
    expect(trainedTensors).toBeGreaterThan(40);
  });

  it('starts from the same weights and ids with the same seed', async () => {
    const model = modelOfConfig(TINY);
    const lossesOf = async (seed: number) =>
      (await overfit({ ...REQUEST, ...FIVE_STEPS, model, seed })).steps.map(({ loss }) => loss);
    const losses = await lossesOf(1);
    expect(await lossesOf(1)).toEqual(losses);
    expect(await lossesOf(2)).not.toEqual(losses);
  });
});

describe('a broken training', () => {
  it.each([
    ['a learning rate of 10', 'hf/llama', training({ learning_rate: 10 })],
    ['a learning rate of 1e30', 'hf/qwen3', training({ learning_rate: 1e30 })],
  ])('is found with %s', async (_, place, request) => {
    const { passed, problems, learningRates } = await trained(place, request);
    expect(passed).toBe(false);
    expect(problems).toHaveLength(1);
    expect(problems[0]?.message).toMatch(/learning rate (10|1e30) is too high/);
    expect(problems[0]?.suggestion).toMatch(/^write training\.learning_rate: /);
    expect(learningRates?.suggested).toBeLessThan(1);
  });

  it('is found with an expert that no token chooses', async () => {
    const { model, weights } = await familyCase('hf/deepseek-v3');
    const source: WeightSource = {
      rangeOf: () => undefined,
      read(tensor, first, target) {
        weights.read(tensor, first, target);
        if (!tensor.name.endsWith('e_score_correction_bias')) return;
        for (let at = 0; at < target.length; at++) if (first + at === 5) target[at] = -1e4;
      },
    };
    const { problems } = await overfit({ ...REQUEST, ...FIVE_STEPS, model, weights: source });
    expect(problems).toEqual([
      {
        kind: 'dead parameter',
        message:
          'model.layers.1.mlp expert 5 and model.layers.2.mlp expert 5 are dead: no token of 62 chose them in 5 steps',
        suggestion: "check the router's weights, correction and groups",
      },
    ]);
  });

  it('is found with eps 0, where a token of the vocabulary does not occur', async () => {
    const request = training({ eps: 0 });
    const { problems, firstNonFinite, steps } = await trained('hf/llama', request);
    expect(firstNonFinite).toEqual({
      step: 1,
      what: 'parameter',
      name: 'model.embed_tokens.weight',
    });
    expect(steps).toHaveLength(1);
    expect(problems[0]?.message).toContain('eps is 0, and AdamW divides 0 by 0');
    expect(problems[0]?.suggestion).toBe('write training.eps: 1e-8');
  });

  it('is found with weights that overflow, and names the layer', async () => {
    const { model, weights } = await familyCase('hf/llama');
    const { firstNonFinite, problems } = await overfit({
      ...REQUEST,
      model,
      weights: withValue(weights, /layers\.1\.mlp\.up_proj/, 3e38),
    });
    expect(firstNonFinite).toEqual({
      step: 1,
      what: 'output',
      name: 'model.layers.1.mlp.up_proj',
    });
    expect(problems[0]?.message).toBe(
      "NaN or infinity at step 1, first in the output of model.layers.1.mlp.up_proj: the checkpoint's weights already give it",
    );
  });

  it('is found with tensors that get no gradient', async () => {
    const { model, weights } = await familyCase('hf/llama');
    // A matrix of zeros passes no gradient, and stays zero without a learning rate.
    const { problems } = await overfit({
      ...REQUEST,
      ...FIVE_STEPS,
      model,
      weights: withValue(weights, /layers\.0\.mlp\.down_proj/, 0),
      ...training({ learning_rate: 0 }),
    });
    expect(problems.map(({ kind }) => kind)).toContain('dead parameter');
    expect(problems.at(-1)?.message).toBe(
      'model.layers.0.post_attention_layernorm.weight, model.layers.0.mlp.gate_proj.weight and model.layers.0.mlp.up_proj.weight got no gradient in 5 steps: they never learn',
    );
  });

  it('is found when the loss does not fall', async () => {
    const { problems } = await trained('hf/llama', training({ learning_rate: 0 }));
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatchObject({ kind: 'not falling' });
    expect(problems[0]?.message).toMatch(/learning rate 0 changes nothing$/);
  });

  it('gives only a warning for a router of one expert with weight 1', async () => {
    const { warnings } = await trained('minimind/v3-moe', FIVE_STEPS);
    expect(warnings[0]).toMatch(/gate\.weight learns only from an auxiliary loss/);
  });
});

describe('a proxy for overfitting', () => {
  it.each(sampled(publishedModels(), 4).map(({ model }) => model))(
    'of %s is small',
    async (name) => {
      const { family, document } = await publishedConfig(name);
      const { model } = overfitProxy({ family, document, steps: 40, seconds: 20 }, 32, 64);
      const kinds = (each: typeof model) => new Set(walk(each).map(({ layer }) => layer.kind));
      expect(kinds(model)).toEqual(kinds(scaledDownProxy(family, document, 32).model));
    },
  );

  it('has fewer layers where experts take the time', async () => {
    const { minimind } = await import('../../src/model/architecture/models/minimind.js');
    const document = minimind.schema.parse({
      model: { family: 'minimind', hidden_size: 640, num_hidden_layers: 8, use_moe: true },
    });
    const { model, changes } = overfitProxy(
      { family: minimind, document, steps: 40, seconds: 20 },
      32,
      64,
    );
    // At 4 GFLOPS and 6 FLOPs for each parameter and token, 20 steps take 20 seconds.
    expect(countParameters(model).parameters).toBeLessThan(10.4e6);
    expect(changes).toContainEqual({ path: 'model.num_hidden_layers', from: 8, to: 2 });
  });
});

it('overfitting needs three tokens', async () => {
  const model = modelOfConfig(TINY);
  await expect(overfit({ ...REQUEST, model, context: 2 })).rejects.toThrow(
    '--overfit: expected sequences of 3 tokens or more, found 2',
  );
});

it('settings come from the flag, the file and defaults, in this order', () => {
  const document = { training: { learning_rate: 3e-4, beta2: 0.95 } };
  expect(overfitSettings(document, undefined)).toEqual({
    learning_rate: { value: 3e-4, source: 'file' },
    beta1: { value: 0.9, source: 'default' },
    beta2: { value: 0.95, source: 'file' },
    eps: { value: 1e-8, source: 'default' },
    weight_decay: { value: 0.01, source: 'default' },
    max_grad_norm: { value: 1, source: 'default' },
  });
  expect(overfitSettings(document, 0.1).learning_rate).toEqual({ value: 0.1, source: 'flag' });
});

it('a sweep suggests a tenth of the best learning rate, and finds where the loss rises', () => {
  const points = [5, 4, 2, 1, 1.1, 3].map((loss, at) => ({ learningRate: 10 ** (at - 4), loss }));
  expect(summary(5, points)).toEqual({
    points,
    lowestAt: 0.1,
    suggested: 0.01,
    risesFrom: 10,
  });
});
