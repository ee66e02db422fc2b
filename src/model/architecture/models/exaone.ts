/** EXAONE 3 and 3.5 (arXiv 2408.03541): Llama with names of GPT-2. */

import { unreadEach } from '../transformer/config-keys.js';
import { separateAttention } from '../transformer/decoder-parts.js';
import { defineTransformer } from '../transformer/define-decoder.js';
import { remoteDecoder } from '../transformer/remote-decoder.js';
import { rotarySettings } from '../transformer/rotary.js';
import { WHOLE_HEAD_RULES } from '../transformer/rules.js';
import {
  activationWord,
  DECODER_DIMENSIONS,
  decoderSizes,
  headsOf,
  normEpsilon,
  tiedHead,
  transformerDocument,
} from '../transformer/settings.js';

// Defaults are those of configuration_exaone.py in the repositories of the models.
const { stored_prefix: _, ...sizes } = decoderSizes({
  vocab_size: 102_400,
  hidden_size: 2048,
  intermediate_size: 8192,
  num_hidden_layers: 32,
  num_attention_heads: 32,
  max_position_embeddings: 2048,
});

export const exaone = defineTransformer({
  title: 'EXAONE 3 and 3.5',
  schema: transformerDocument('exaone', {
    ...sizes,
    ...rotarySettings(10_000),
    layer_norm_epsilon: normEpsilon(1e-5),
    activation_function: activationWord.default('silu').describe('Activation of the gate'),
    tie_word_embeddings: tiedHead(true),
  }),
  rules: WHOLE_HEAD_RULES,
  dimensions: DECODER_DIMENSIONS,
  huggingFace: {
    names: { num_hidden_layers: ['num_layers'], intermediate_size: ['ffn_dim'] },
    limited: unreadEach(['attention_bias', 'mlp_bias'], [false]),
    harmless: { embed_dropout: 'used in training only' },
  },
  build: ({ model }) => {
    const config = {
      ...model,
      rms_norm_eps: model.layer_norm_epsilon,
      hidden_act: model.activation_function,
    };
    return remoteDecoder(config, {
      names: {
        embedding: 'transformer.wte',
        blocks: 'transformer.h',
        norm: 'transformer.ln_f',
        head: 'lm_head',
        attention: 'attn.attention',
        norms: ['ln_1', 'ln_2'],
        feedForward: 'mlp',
        network: ['c_fc_0', 'c_fc_1', 'c_proj'],
      },
      attention: (name, rotary) =>
        separateAttention(name, { ...headsOf(config), outName: 'out_proj', rotary }),
    });
  },
});
