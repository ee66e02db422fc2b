import { describe, expect, it } from 'vitest';
import { parseDocument } from '../../../src/config/document.js';
import { modelOf } from '../../../src/input/model-input/model-file.js';
import { countParameters } from '../../../src/model/budget/parameters.js';

const SIZES = {
  model_type: 'bart',
  vocab_size: 50,
  d_model: 16,
  decoder_layers: 1,
  decoder_ffn_dim: 8,
  decoder_attention_heads: 2,
  max_position_embeddings: 20,
};

const read = (more: object) =>
  modelOf(parseDocument(JSON.stringify({ ...SIZES, ...more }), 'config.json'));

describe('a config.json of an encoder-decoder kind', () => {
  it.each([
    { architectures: ['BartForConditionalGeneration'] },
    { architectures: ['BartModel'], is_encoder_decoder: true },
    { is_encoder_decoder: true },
  ])('is not read as its decoder: %j', async (more) => {
    const { family, model } = await read(more);
    expect(family.name).toBe('bart-seq2seq');
    // A block of the decoder, and the encoder's twelve by default.
    expect(model.blocks).toHaveLength(13);
  });

  it.each([
    { architectures: ['BartForCausalLM'] },
    { architectures: null, is_encoder_decoder: false },
  ])('describes the decoder of its class: %j', async (more) => {
    const { model, warnings } = await read(more);
    expect(warnings).toEqual([]);
    // Counted by hand: embedding, positions and their norm; the block with both attentions.
    const block = 2 * 4 * (16 * 16 + 16) + 2 * 16 * 8 + 16 + 8 + 3 * 32;
    expect(countParameters(model).parameters).toBe(50 * 16 + 22 * 16 + 32 + block);
  });

  it('describes the decoder with a warning where it names no class', async () => {
    const { warnings } = await read({});
    expect(warnings.map(({ message }) => message)).toEqual([
      'names no class: only the decoder is described (BartForCausalLM)',
    ]);
  });
});
