import { expect, it } from 'vitest';
import { randomWeights } from '../../src/engine/weights/weights.js';
import { withEachEngine } from './both-engines.js';
import { idsOf, modelOfConfig } from './fixture-models.js';

const SMALL = {
  vocab_size: 10,
  hidden_size: 8,
  num_layers: 1,
  num_heads: 2,
  window_size: 4,
  gate_rank: 2,
  max_position_embeddings: 16,
};

const model = modelOfConfig(SMALL);
const weights = randomWeights(model, 1);
const zeros = (tokens: number, batch = 1) =>
  idsOf(Array.from({ length: batch }, () => Array.from({ length: tokens }, () => 0)));
const value = (...shape: number[]) => ({
  shape,
  data: new Float32Array(shape.reduce((product, size) => product * size, 1)),
});

withEachEngine('a call is refused', (load) => {
  it.each([
    ['no tokens', { ids: zeros(0) }, 'no tokens to run the model on'],
    [
      'a token that is too large',
      {
        ids: idsOf([
          [1, 2],
          [3, 10],
        ]),
      },
      'token 10 (row 1, position 1) is not in a vocabulary of 10',
    ],
    ['a negative token', { ids: idsOf([[3, -1]]) }, 'token -1 (row 0, position 1) is not in'],
    ['no ids', { tokens: 3 }, 'takes token ids'],
    [
      'too few ids',
      { ids: { batch: 2, tokens: 3, data: new Int32Array(5) } },
      '5 token ids for 2 × 3',
    ],
    ['too many tokens', { ids: zeros(17) }, "17 tokens are more than the model's 16 positions"],
  ])('by a model when it has %s', async (_, input, message) => {
    const program = await load(model, weights);
    await expect(program.run(input)).rejects.toThrow(message);
    await program.release();
  });

  it.each([
    ['no value', {}, '"norm" (layerNorm) takes one value [B, T, C]'],
    ['two values', { inputs: [value(1, 2, 8), value(1, 2, 8)] }, 'takes one value'],
    ['a value without tokens', { inputs: [value(2, 8)] }, 'takes one value'],
    ['too little data', { inputs: [{ ...value(1, 1, 8), shape: [1, 2, 8] }] }, 'takes one value'],
  ])('by a layer when it has %s', async (_, input, message) => {
    const program = await load(model.norm, weights);
    await expect(program.run(input)).rejects.toThrow(message);
    await program.release();
  });

  it.each(['learnable', 'sincos'])(
    'when it has more tokens than positions, for an SRTE of kind %s',
    async (srte_encoding) => {
      const other = modelOfConfig({ ...SMALL, srte_encoding });
      const program = await load(other, randomWeights(other, 1));
      await expect(program.run({ ids: zeros(17) })).rejects.toMatchObject({
        code: 'usage',
        message: "17 tokens are more than the model's 16 positions",
      });
      await program.release();
    },
  );

  it('when it has more tokens than the table of a block', async () => {
    const [block] = model.blocks;
    if (!block) throw new Error('no block');
    const program = await load(block, weights);
    await expect(program.run({ inputs: [value(1, 17, 8)] })).rejects.toThrow('16 positions');
    await program.release();
  });

  it('when its state is of another program or batch, or it has too many tokens', async () => {
    const decoding = { totalTokens: 4 };
    const [one, other] = [await load(model, weights, { decoding }), await load(model, weights)];
    const ids = zeros(3);
    const { state } = await one.run({ ids });
    await expect(other.run({ ids, state })).rejects.toThrow('another program');
    await expect(one.run({ ids, state: { position: 3 } })).rejects.toThrow('another program');
    await expect(one.run({ ids, state })).rejects.toThrow('6 tokens where 4 were announced');
    await expect(one.run({ ids: zeros(1, 2), state })).rejects.toThrow('a batch of 2 after one');
    // A state is a value: it can be continued several times.
    const next = zeros(1);
    const [a, b] = [await one.run({ ids: next, state }), await one.run({ ids: next, state })];
    expect(a.output).toEqual(b.output);
    await one.release();
    await other.release();
  });

  it('when decoding has passed the last position', async () => {
    const program = await load(model, weights, { decoding: { totalTokens: 20 } });
    const { state } = await program.run({ ids: zeros(16) });
    await expect(program.run({ ids: zeros(1), state })).rejects.toThrow('17 tokens are more');
    await program.release();
  });

  it('once the program is released, which may happen twice', async () => {
    const program = await load(model, weights);
    await program.release();
    await program.release();
    await expect(program.run({ ids: zeros(1) })).rejects.toThrow('has been released');
  });
});
