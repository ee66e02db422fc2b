/** Activations of layers with tensor parallelism, computed by hand: divided by t, divided by tokens, or whole. */
import { describe, expect, it } from 'vitest';
import { type FamilyName, loadFamily } from '../../../src/model/architecture/families.js';
import type { ActivationSetting } from '../../../src/model/budget/kernel-activations.js';
import { activationsOf } from '../../../src/model/budget/saved-activations.js';

const [s, t] = [8, 2];

/** Bytes of the first block in 16 bits, by part. */
async function blockOf(family: FamilyName, config: object, changes: Partial<ActivationSetting>) {
  const { build, schema } = await loadFamily(family);
  const model = build(schema.parse({ model: { family, ...config } }));
  // Neither the first stage nor the last, so that only the block is counted.
  const { parts } = activationsOf(model, {
    batch: 1,
    context: s,
    bytesPerValue: 2,
    recompute: 'selective',
    tensor: t,
    stage: { from: 1, to: 2, microBatches: 1 },
    ...changes,
  });
  return Object.fromEntries(parts.map(({ part, bytes }) => [part, Number(bytes.value)]));
}

describe('SwiGLU with grouped heads', () => {
  const [h, f, a, k, d] = [32, 48, 4, 2, 8];
  const config = {
    hidden_size: h,
    intermediate_size: f,
    num_hidden_layers: 3,
    num_attention_heads: a,
    num_key_value_heads: k,
    head_dim: d,
  };
  const kept = (tokens: number) => ({
    norm: 2 * tokens * 2 * h,
    attention: 2 * tokens * h + (2 * s * 2 * (a * d + k * d)) / t,
    feedForward: 2 * tokens * h + (2 * s * 4 * f) / t,
  });

  it('divides heads and feed-forward width', async () => {
    expect(await blockOf('llama', config, {})).toEqual(kept(s));
  });

  it('divides the rest by tokens with sequence parallelism', async () => {
    expect(await blockOf('llama', config, { sequence: true })).toEqual(kept(s / t));
  });
});

describe('Mamba with attention', () => {
  const h = 32;
  const config = {
    hidden_size: h,
    num_layers: 3,
    num_heads: 4,
    window_size: 4,
    global_heads: 1,
    gate_rank: 8,
    max_position_embeddings: 64,
  };

  it('divides channels, but not steps, B and C', async () => {
    const { mamba } = await blockOf('hybrid', config, { sequence: true });
    // inner 64, state 64, step rank ceil(32 / 16).
    expect(mamba).toBe(2 * ((s / t) * h + (s * 9 * 64) / t + s * (2 + 2 * 64)));
  });

  it('divides scan states and the hidden layer of the alignment, but not the gate', async () => {
    const { scanStates, gate, alignment } = await blockOf('hybrid', config, { recompute: 'none' });
    expect(scanStates).toBe((3 * 2 * s * 64 * 64) / t);
    expect(gate).toBe(2 * s * (5 * h + 8));
    // Both branches; its network around the activation.
    expect(alignment).toBe(2 * s * (2 * h + (2 * h) / t));
  });

  it('counts the scores of the GPU with the widest windows', async () => {
    // Beyond 2048 tokens local heads are cheaper: three local and one global, two on each GPU.
    const context = 4096;
    const { scores: whole = 0 } = await blockOf(
      'hybrid',
      { ...config, max_position_embeddings: context },
      {
        recompute: 'none',
        context,
        tensor: 1,
      },
    );
    const { scores: fullest = 0 } = await blockOf(
      'hybrid',
      { ...config, max_position_embeddings: context },
      { recompute: 'none', context },
    );
    const global = 2 * context * context;
    const local = (whole - global) / 3;
    expect(fullest).toBe(global + local);
    expect(fullest).toBeGreaterThan(whole / t);
  });
});
