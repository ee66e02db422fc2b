/** InternLM 2 and 2.5 (arXiv 2403.17297): Llama with one product for queries, keys and values of each group of heads. */
import { unreadEach } from '../transformer/config-keys.js';
import { defineTransformer } from '../transformer/define-decoder.js';
import { remoteDecoder, remoteFusedAttention } from '../transformer/remote-decoder.js';
import { rotarySettings } from '../transformer/rotary.js';
import { WHOLE_HEAD_RULES } from '../transformer/rules.js';
import {
  DECODER_DIMENSIONS,
  decoderSizes,
  gateActivation,
  normEpsilon,
  tiedHead,
  toggle,
  transformerDocument,
} from '../transformer/settings.js';

// Defaults are those of configuration_internlm2.py in the repositories of the models.
const {
  stored_prefix: _,
  head_dim: __,
  ...sizes
} = decoderSizes({
  vocab_size: 103_168,
  hidden_size: 4096,
  intermediate_size: 11_008,
  num_hidden_layers: 32,
  num_attention_heads: 32,
  max_position_embeddings: 2048,
});

export const internlm2 = defineTransformer({
  title: 'InternLM 2 and 2.5',
  schema: transformerDocument('internlm2', {
    ...sizes,
    ...rotarySettings(10_000),
    rms_norm_eps: normEpsilon(1e-6),
    bias: toggle(true, 'Biases in both products of attention'),
    hidden_act: gateActivation,
    tie_word_embeddings: tiedHead(false),
  }),
  rules: WHOLE_HEAD_RULES,
  dimensions: DECODER_DIMENSIONS,
  huggingFace: {
    harmless: { pretraining_tp: 'slices of the same products' },
    limited: {
      ...unreadEach(['attention_bias', 'mlp_bias'], [false]),
      ...unreadEach(['head_dim']),
    },
  },
  build: ({ model: config }) =>
    remoteDecoder(config, {
      names: {
        embedding: 'model.tok_embeddings',
        blocks: 'model.layers',
        norm: 'model.norm',
        head: 'output',
        attention: 'attention',
        norms: ['attention_norm', 'ffn_norm'],
        feedForward: 'feed_forward',
        network: ['w1', 'w3', 'w2'],
      },
      attention: (name, rotary) =>
        remoteFusedAttention(name, config, rotary, {
          leaves: ['wqkv', 'wo'],
          bias: config.bias,
          outBias: config.bias,
          isGrouped: true,
        }),
    }),
});
