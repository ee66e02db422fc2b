import { expect, it } from 'vitest';
import { Decoder } from '../../src/engine/decoder.js';
import type { Program, Values } from '../../src/engine/engine.js';
import { transformerModel } from '../../src/engine/select/self-check.js';
import { randomWeights } from '../../src/engine/weights/weights.js';
import { withEachEngine } from './both-engines.js';
import { fixtureModel, idsOf, modelOfConfig } from './fixture-models.js';
import { rowsOf } from './sequences.js';
import { largestDifference } from './tfjs/support.js';

const LIMIT = 2e-5;

/** A model with windows, softcap, ALiBi and latents, and one with recurrent layers and windows. */
const MODELS = [
  ['a transformer', transformerModel()],
  ['a recurrent model', fixtureModel('pyramidal-windowed').model],
] as const;

/** One block, with a window, for long sequences. */
const LONG = modelOfConfig({
  vocab_size: 8,
  hidden_size: 8,
  num_layers: 1,
  num_heads: 2,
  window_size: 16,
  gate_rank: 2,
  max_position_embeddings: 300,
});

const tokens = (count: number, step: number) =>
  Array.from({ length: count }, (_, index) => (index * step) % 8);

withEachEngine('a growing sequence', (load, engine) => {
  /** Logits of a whole sequence from one forward pass. */
  async function forward(program: Program, all: readonly number[]): Promise<Values> {
    const { output } = await program.run({ ids: idsOf([all]) });
    return output;
  }

  it.each(MODELS)('ends like a sequence that is read at once: %s', async (_, model) => {
    const weights = randomWeights(model, 5);
    const [whole, program] = [
      await load(model, weights),
      await load(model, weights, { decoding: { totalTokens: 12 } }),
    ];
    const all = tokens(12, 3);
    const expected = await forward(whole, all);
    const decoder = new Decoder(program);
    const first = await decoder.append(all.slice(0, 7), 2);
    expect(first.shape).toEqual([2, expected.shape[2]]);
    expect(largestDifference(first.data, rowsOf(expected, 5, 7))).toBeLessThan(LIMIT);
    for (let position = 7; position < 12; position++) {
      const { data } = await decoder.append([all[position] ?? 0]);
      expect(largestDifference(data, rowsOf(expected, position, position + 1))).toBeLessThan(LIMIT);
    }
    expect(decoder.tokens).toEqual(all);
    await whole.release();
    await program.release();
  });

  it.each(MODELS)('continues from an earlier position with other tokens: %s', async (_, model) => {
    const weights = randomWeights(model, 5);
    const [whole, program] = [
      await load(model, weights),
      await load(model, weights, { decoding: { totalTokens: 12 } }),
    ];
    const [one, other] = [tokens(12, 3), tokens(12, 5)];
    const decoder = new Decoder(program);
    await decoder.append(one.slice(0, 6));
    await decoder.append(one.slice(6, 12));
    // Within the last call, before it, and to the start.
    for (const position of [9, 3, 0]) {
      await decoder.rewind(position);
      expect(decoder.position).toBe(position);
      const all = [...decoder.tokens, ...other.slice(position)];
      const expected = await forward(whole, all);
      const { data } = await decoder.append(other.slice(position), 12 - position);
      expect(largestDifference(data, rowsOf(expected, position, 12))).toBeLessThan(LIMIT);
      expect(decoder.tokens).toEqual(all);
    }
    await whole.release();
    await program.release();
  });

  it('is independent of others of the same program', async () => {
    const [, model] = MODELS[0];
    const program = await load(model, randomWeights(model, 5), { decoding: { totalTokens: 8 } });
    const [a, b, alone] = [new Decoder(program), new Decoder(program), new Decoder(program)];
    await a.append(tokens(4, 3));
    await b.append(tokens(6, 5));
    const [actual, expected] = [await a.append([1]), await alone.append([...tokens(4, 3), 1])];
    expect(largestDifference(actual.data, expected.data)).toBeLessThan(LIMIT);
    await program.release();
  });

  it.skipIf(engine === 'TensorFlow.js')('refuses a state whose tokens were replaced', async () => {
    const [, model] = MODELS[0];
    const program = await load(model, randomWeights(model, 5), { decoding: { totalTokens: 8 } });
    const run = (all: readonly number[], state = first.state) =>
      program.run({ ids: idsOf([all]), state });
    const first = await program.run({ ids: idsOf([[1, 2]]) });
    const old = await run([3, 4]);
    const state = old.state && program.rewind?.(old.state, 3);
    expect(state?.position).toBe(3);
    const again = await run([4], state);
    expect(largestDifference(again.output.data, rowsOf(old.output, 1, 2))).toBeLessThan(LIMIT);
    await run([5], first.state);
    await expect(run([6], old.state)).rejects.toThrow('other tokens replaced its own');
    expect(() => old.state && program.rewind?.(old.state, 2)).toThrow('replaced its own');
    // Even where the replacement is shorter.
    await expect(run([6], state)).rejects.toThrow('replaced its own');
    await program.release();
  });

  it('can exceed the first buffer, for several sequences at once', async () => {
    const model = LONG;
    const weights = randomWeights(model, 5);
    const program = await load(model, weights, { decoding: { totalTokens: 300 } });
    const whole = await load(model, weights);
    const ids = idsOf([tokens(300, 3), tokens(300, 5)]);
    const expected = await whole.run({ ids });
    const parts = [tokens(300, 3), tokens(300, 5)];
    const first = await program.run({ ids: idsOf(parts.map((each) => each.slice(0, 250))) });
    const last = await program.run({
      ids: idsOf(parts.map((each) => each.slice(250))),
      state: first.state,
      lastTokens: 3,
    });
    expect(last.output.shape).toEqual([2, 3, expected.output.shape[2]]);
    expect(largestDifference(last.output.data, rowsOf(expected.output, 297, 300))).toBeLessThan(
      LIMIT,
    );
    await whole.release();
    await program.release();
  });

  it('keeps only the states that it can return to', async () => {
    const [, model] = MODELS[1];
    const program = await load(model, randomWeights(model, 5), { decoding: { totalTokens: 12 } });
    const discarded: number[] = [];
    const decoder = new Decoder({
      run: (input) => program.run(input),
      discard(state) {
        discarded.push(state.position);
        program.discard?.(state);
      },
    });
    await decoder.append([1, 2]);
    decoder.keep();
    for (const token of [3, 4, 5, 6]) await decoder.append([token]);
    expect(discarded).toEqual([3, 4]);
    await decoder.rewind(5);
    expect(discarded).toEqual([3, 4, 6]);
    await decoder.rewind(2);
    expect(discarded).toEqual([3, 4, 6, 5]);
    expect(decoder.tokens).toEqual([1, 2]);
    await program.release();
  });

  it.skipIf(engine === 'TensorFlow.js')('frees a discarded state at once', async () => {
    const [, model] = MODELS[1];
    const program = await load(model, randomWeights(model, 5), { decoding: { totalTokens: 8 } });
    const first = await program.run({ ids: idsOf([[1, 2]]) });
    const next = () => program.run({ ids: idsOf([[3]]), state: first.state });
    const second = await next();
    const before = process.memoryUsage().arrayBuffers;
    if (first.state) program.discard?.(first.state);
    expect(process.memoryUsage().arrayBuffers).toBeLessThan(before);
    await expect(next()).rejects.toThrow('the state was discarded');
    const { output } = await program.run({ ids: idsOf([[4]]), state: second.state });
    expect(output.data.every(Number.isFinite)).toBe(true);
    await program.release();
  });
});
