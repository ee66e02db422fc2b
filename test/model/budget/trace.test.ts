import { describe, expect, it } from 'vitest';
import { countParameters } from '../../../src/model/budget/parameters.js';
import { lossStepsOf } from '../../../src/model/budget/trace/loss-steps.js';
import { traceOf } from '../../../src/model/budget/trace/trace.js';
import { TINY } from '../../check/test-contexts.js';
import { modelOfConfig } from '../../engine/fixture-models.js';
import { hybridCases } from '../../fixtures.js';
import { publishedConfig } from './published-models.js';

const SIZE = { batch: 2, tokens: 5 };

describe('the trace of shapes', () => {
  it.each(hybridCases().map(({ name, config }) => [name, config] as const))(
    'reports every parameter once: %s',
    (_, config) => {
      const model = modelOfConfig(config);
      const reported = traceOf(model, SIZE).reduce((sum, { parameters }) => sum + parameters, 0);
      expect(reported).toBe(countParameters(model).parameters);
    },
  );

  it('begins with ids and ends with logits', () => {
    const steps = traceOf(modelOfConfig(TINY), SIZE);
    expect(steps[0]).toMatchObject({ name: 'ids', shape: [2, 5] });
    expect(steps.at(-1)).toMatchObject({
      name: 'lm_head',
      operation: 'linear 8 → 12, with embed_tokens.weight',
      shape: [2, 5, 12],
      parameters: 0,
    });
  });

  it('has the shapes and parameters of each step', () => {
    const steps = traceOf(modelOfConfig(TINY), SIZE);
    const stepsByName = new Map(steps.map((step) => [step.name, step]));
    const shapes: Record<string, [number[], number]> = {
      embed_tokens: [[2, 5, 8], 96],
      'layers.0.mamba.in_proj': [[2, 5, 32], 288],
      'layers.0.mamba.conv1d': [[2, 5, 16], 80],
      'layers.0.mamba.x_proj': [[2, 5, 129], 2064],
      'layers.0.mamba.scan': [[2, 5, 16], 1040],
      'layers.0.attention.rope': [[2, 2, 5, 4], 0],
      'layers.0.alignment.concat': [[2, 5, 16], 0],
      'layers.0.gate.tanh': [[2, 5, 2], 0],
      'layers.0.small_mlp.0': [[2, 5, 32], 288],
      'layers.0.small_mlp.1': [[2, 5, 32], 0],
      'layers.0.small_mlp.2': [[2, 5, 8], 264],
    };
    for (const [name, [shape, parameters]] of Object.entries(shapes)) {
      expect(stepsByName.get(name), name).toMatchObject({ shape, parameters });
    }
  });

  it.each([
    // 5 · 6 / 2 pairs of a query and a key at or before it.
    [{}, /later keys, which leaves 15 of 25 scores of a head$/],
    // A local window of 2 has one key before the query: 1 + 2 + 2 + 2 + 2.
    [{ window_size: 2 }, /outside the window, which leaves (?:15 or 9|9 or 15) of 25 scores/],
  ])('has the causal mask between q and the softmax: %j', (config, expected) => {
    const steps = traceOf(modelOfConfig({ ...TINY, ...config }), SIZE);
    const at = steps.findIndex(({ name }) => name.endsWith('.mask'));
    expect(steps[at]).toMatchObject({
      operation: expect.stringMatching(expected),
      shape: [5, 5],
      parameters: 0,
    });
    expect(steps[at + 1]?.operation).toMatch(/^softmax/);
  });

  it('ends, in a training, with the shapes of torch.nn.functional.cross_entropy', () => {
    // logits.view(-1, V), targets.view(-1), reduction="none"; ln 12 = 2.4849.
    const steps = lossStepsOf(modelOfConfig(TINY), SIZE);
    expect(steps.map(({ name, shape }) => [name, shape])).toEqual([
      ['targets', [2, 5]],
      ['logits', [10, 12]],
      ['cross entropy', [10]],
      ['loss mask', [10]],
      ['loss', []],
    ]);
    expect(steps[0]?.operation).toContain('from 6 ids');
    expect(steps[2]?.operation).toContain('ln 12 = 2.48 ');
  });

  it('reports equal blocks once', () => {
    const steps = traceOf(modelOfConfig({ ...TINY, num_layers: 5 }), SIZE);
    expect(steps.filter(({ name }) => name.startsWith('layers.0')).length).toBeGreaterThan(20);
    expect(steps.filter(({ name }) => /^layers\.[1-4]/.test(name))).toEqual([
      expect.objectContaining({ name: 'layers.1–4', operation: '4 more blocks like layers.0' }),
    ]);
  });

  it('reports each block of a pyramid, because its windows differ', () => {
    const pyramid = { ...TINY, num_layers: 3, attention_type: 'pyramidal', window_size: 700 };
    const steps = traceOf(modelOfConfig(pyramid), SIZE);
    const scores = steps.filter(({ operation }) => operation.startsWith('softmax'));
    expect(scores.map(({ operation }) => operation)).toEqual(
      [512, 606, 700].map(
        (window) => `softmax(q · kᵀ / √4): 1 head local (${window}), 1 head global`,
      ),
    );
  });

  it.each([
    [{ srte_encoding: 'sincos' }, 'shared_srte', 'rows 0 to 4: sines and cosines'],
    [{ srte_factorized_rank: 0 }, 'shared_srte', 'rows 0 to 4: a table of 32'],
    [{}, 'shared_srte', 'rows 0 to 4: 32 rows of rank 3 · projection'],
    [
      { srte_share_across_layers: false },
      'layers.0.srte',
      'rows 0 to 4: 32 rows of rank 3 · projection',
    ],
  ])('describes the SRTE with %j', (config, name, operation) => {
    const steps = traceOf(modelOfConfig({ ...TINY, ...config }), SIZE);
    const first = steps.find((step) => step.name === name);
    expect(first).toMatchObject({ operation, shape: [1, 5, 8] });
  });
});

describe('the trace of a transformer', () => {
  const trace = async (name: string) => {
    const { model } = await publishedConfig(name);
    return { model, steps: traceOf(model, SIZE) };
  };

  it.each([
    'gpt2',
    'bloom-560m',
    'pythia-70m',
    'phi-3-mini',
    'gemma-2-2b',
    'qwen3-0.6b',
    'qwen1.5-moe-a2.7b',
    'deepseek-v3-main',
  ])('reports every parameter once: %s', async (name) => {
    const { model, steps } = await trace(name);
    const reported = steps.reduce((sum, { parameters }) => sum + parameters, 0);
    expect(reported).toBe(countParameters(model).parameters);
    expect(steps.length).toBeLessThan(60);
  });

  it('describes the scores of attention', async () => {
    const { steps } = await trace('gemma-2-2b');
    expect(steps.find(({ operation }) => operation.startsWith('softmax'))?.operation).toBe(
      'softmax(50 · tanh(q · kᵀ / √256 / 50)): 8 heads sliding (4,096); k and v of 4 heads',
    );
    expect(steps.filter(({ name }) => /^model\.layers\.\d+(–|$)/.test(name))).toEqual([
      expect.objectContaining({ name: 'model.layers.0' }),
      expect.objectContaining({ name: 'model.layers.1' }),
      expect.objectContaining({
        name: 'model.layers.2–25',
        operation: '24 more blocks, each like one of model.layers.0–1',
      }),
    ]);
  });

  it('shows keys and values with their own heads, and their repetition', async () => {
    const { minimind } = await import('../../../src/model/architecture/models/minimind.js');
    const headsOf = (num_key_value_heads: number) => {
      const sizes = { hidden_size: 64, num_hidden_layers: 1, num_attention_heads: 8 };
      const model = { family: 'minimind', ...sizes, num_key_value_heads };
      return traceOf(minimind.build(minimind.schema.parse({ model })), SIZE)
        .filter(({ name }) => name.endsWith('self_attn.heads'))
        .map(({ operation, shape }) => [operation, shape]);
    };
    expect(headsOf(2).slice(0, 2)).toEqual([
      ['k and v, 2 heads', [2, 2, 5, 8]],
      ['k and v repeated 4 ×: query head j reads head ⌊j / 4⌋', [2, 8, 5, 8]],
    ]);
    expect(headsOf(2)).toHaveLength(4);
    expect(headsOf(8)).toHaveLength(2);
  });

  it('describes the router and the experts', async () => {
    const { steps } = await trace('deepseek-v3-main');
    const stepsByName = new Map(steps.map((step) => [step.name, step]));
    expect(stepsByName.get('model.layers.3.mlp.gate')?.operation).toBe(
      'sigmoid of 256 scores; 4 of 8 groups; the best 8; divided by their sum; · 2.5',
    );
    expect(stepsByName.get('model.layers.3.mlp.experts.0–255')).toMatchObject({
      operation: '8 of 256 experts 7,168 → 2,048 → 7,168, f = x · σ(x)',
      shape: [2, 5, 8, 7168],
    });
  });
});
