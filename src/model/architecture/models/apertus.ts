/** Apertus (arXiv 2509.14233): Llama with norms on queries and keys, and xIELU in a network without a gate. */
import * as z from 'zod';
import { linear, sequence, xielu } from '../constructors/basic-layers.js';
import { unreadEach } from '../transformer/config-keys.js';
import { plainMlp, residualBlock } from '../transformer/decoder-parts.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import { rotaryOr } from '../transformer/rotary.js';
import { activationWord, attentionBias } from '../transformer/settings.js';

const BASE = 12_000_000;

export const apertus = defineDecoder({
  title: 'Apertus',
  schema: decoderDocument(
    'apertus',
    {
      vocab_size: 131_072,
      hidden_size: 4096,
      intermediate_size: 14_336,
      num_hidden_layers: 32,
      num_attention_heads: 32,
      max_position_embeddings: 65_536,
      rms_norm_eps: 1e-5,
      rope_theta: BASE,
    },
    {
      hidden_act: z
        .enum(['xielu', ...activationWord.options])
        .default('xielu')
        .describe('Activation; xielu has parameters of its own in each layer'),
      attention_bias: attentionBias,
    },
  ),
  huggingFace: {
    limited: { ...unreadEach(['qk_norm'], [true]), ...unreadEach(['post_norm'], [false]) },
    harmless: { hidden_dropout: 'used in training only' },
    rotary: rotaryOr({
      rope_type: 'llama3',
      rope_theta: BASE,
      factor: 8,
      original_max_position_embeddings: 8192,
      low_freq_factor: 1,
      high_freq_factor: 4,
    }),
  },
  queryKeyNorms: 'each head',
  block: (name, { norm, attention, feedForward }) =>
    residualBlock(name, {
      attention: [norm(`${name}.attention_layernorm`), attention],
      mlp: [norm(`${name}.feedforward_layernorm`), feedForward],
    }),
  feedForward({ name: block, config }) {
    const name = `${block}.mlp`;
    const { hidden_size: hidden, intermediate_size: inner, hidden_act: activation } = config;
    const bias = false;
    if (activation !== 'xielu') return plainMlp(name, { hidden, inner, activation, bias });
    return sequence(
      name,
      [
        linear(`${name}.up_proj`, hidden, inner, { bias }),
        xielu(`${name}.act_fn`),
        linear(`${name}.down_proj`, inner, hidden, { bias }),
      ],
      'feedForward',
    );
  },
});
