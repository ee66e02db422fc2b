import { describe, expect, it } from 'vitest';
import { compile } from '../../../src/engine/onnx/compile.js';
import { ON_CPU, type Target } from '../../../src/engine/onnx/context.js';
import type { OrtTensor } from '../../../src/engine/onnx/library.js';
import { transformerModel } from '../../../src/engine/select/self-check.js';
import { randomWeights } from '../../../src/engine/weights/weights.js';
import { differenceAt, idsOf } from '../fixture-models.js';
import { partOf } from '../sequences.js';
import { decoded, describeWithOnnx, loaded, loadedFor } from './support.js';

const model = transformerModel();
const weights = randomWeights(model, 5);
const decoding = { totalTokens: 12 };
const ids = idsOf([
  [5, 3, 0, 7, 1, 6, 2, 4, 4, 0, 3, 1],
  [0, 1, 1, 2, 3, 5, 2, 7, 6, 6, 5, 4],
]);

/** A target without an in-place cache of keys and values. */
const ELSEWHERE: Target = { ...ON_CPU, provider: 'webgpu' };

describe('the state between calls', () => {
  const place = (tensor: { name: string; shape: readonly number[] }) => ({
    name: tensor.name,
    shape: tensor.shape,
    type: 'f32' as const,
    bytes: { raw: new Uint8Array(0) },
  });
  const { feeds } = compile(model, place, { decoding }, ELSEWHERE);

  it.each([
    ['the keys of grouped heads', 'blocks.0.attention.0.keys', [0, 16]],
    ['their values', 'blocks.1.attention.0.values', [0, 16]],
    ['a latent', 'blocks.3.attention.latents', [0, 10]],
    ['one key for all heads', 'blocks.3.attention.keys', [0, 4]],
  ])('has %s', (_what, name, shape) => {
    expect(feeds.get(name)).toEqual({ kind: 'state', shape });
  });

  it('has nothing else', () => {
    const kept = [...feeds].filter(([, { kind }]) => kind === 'state').map(([name]) => name);
    expect(kept.length).toBe(2 * model.blocks.length);
  });
});

describeWithOnnx('decoding a transformer', () => {
  it.each([
    ['one token at a time', [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]],
    ['several at a time', [5, 4, 1, 2]],
  ])('%s equals a whole forward pass', async (_what, counts) => {
    const whole = await (await loaded(model, weights)).run({ ids });
    const program = await loaded(model, weights, { decoding });
    const actual = await decoded(program, ids, counts);
    expect(differenceAt(actual, whole.output, 1)).toBeLessThan(1e-5);
  });

  it('also gives results for earlier tokens', async () => {
    const whole = await (await loaded(model, weights, { taps: true })).run({ ids });
    const program = await loaded(model, weights, { decoding, taps: true });
    const first = await program.run({ ids: partOf(ids, 0, 9) });
    const { taps } = await program.run({ ids: partOf(ids, 9, 12), state: first.state });
    const [up, expected] = [taps, whole.taps].map((each) => each.get('blocks.3.attention.up'));
    expect(up?.shape).toEqual([2, 12, 44]);
    expect(up && expected && differenceAt(up, expected, 1)).toBeLessThan(1e-5);
  });

  it('keeps only the keys within a window', async () => {
    const program = await loadedFor(ELSEWHERE, model, weights, { decoding });
    const { state } = await program.run({ ids });
    const { kept } = state as unknown as { kept: { tensors: ReadonlyMap<string, OrtTensor> } };
    // The tokens that the next token sees, or all tokens without a window.
    expect(kept.tensors.get('blocks.0.attention.0.keys')?.dims).toEqual([2, 2, 16]);
    expect(kept.tensors.get('blocks.1.attention.0.keys')?.dims).toEqual([2, 12, 16]);
  });
});
