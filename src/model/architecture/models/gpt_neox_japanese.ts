/** GPT-NeoX of ABEJA for Japanese: blocks in turn, no biases but one behind the last attention. */
import { rotary } from '../constructors/attention-layers.js';
import { layerNormLayer } from '../constructors/basic-layers.js';
import { param } from '../param.js';
import { fusedAttention, plainMlp } from '../transformer/decoder-parts.js';
import { defineGpt, gptDocument } from '../transformer/define-gpt.js';
import { ROTARY_BUFFERS } from '../transformer/ignored-tensors.js';
import { rotarySettings, scalingOf } from '../transformer/rotary.js';
import { activationWord, count, normEpsilon, partOfHead } from '../transformer/settings.js';
import { NEOX_ROTARY_RULES, neoxKeys, neoxRotary } from './gpt_neox.js';

const { rope_theta, rope_scaling } = rotarySettings(10_000);

export const gptNeoxJapanese = defineGpt({
  title: 'GPT-NeoX for Japanese',
  document: gptDocument(
    'gpt_neox_japanese',
    {
      prefix: 'gpt_neox_japanese.',
      sizes: {
        vocabulary: ['vocab_size', 32_000],
        width: ['hidden_size', 2560],
        depth: ['num_hidden_layers', 32],
        heads: ['num_attention_heads', 32],
        positions: ['max_position_embeddings', 2048],
      },
    },
    {
      intermediate_multiple_size: count(4, 'Width inside the network, in widths of the model'),
      layer_norm_eps: normEpsilon(1e-5),
      hidden_act: activationWord.default('gelu').describe('Activation between the two products'),
      rotary_emb_base: rope_theta,
      rotary_pct: partOfHead(1),
      rope_scaling,
    },
  ),
  rules: NEOX_ROTARY_RULES,
  huggingFace: { more: neoxRotary, limited: neoxKeys({ width: 2560, heads: 32 }) },
  names: { embedding: 'embed_in', blocks: 'layers', norm: 'final_layer_norm' },
  head: () => 'embed_out',
  ignoredOnLoad: [ROTARY_BUFFERS],
  norm: (name, width, config) => layerNormLayer(name, width, config.layer_norm_eps),
  attention({ name: block, index, config, positions, layout, hidden, heads, headDim }) {
    const name = `${block}.attention`;
    const rotatedDim = Math.trunc(headDim * config.rotary_pct);
    const found = fusedAttention(name, {
      leaves: ['query_key_value', 'dense'],
      groups: heads,
      bias: false,
      ...layout,
      ownTypeSoftmax: true,
      rotary: rotary(`${block}.rotary`, {
        base: config.rotary_emb_base,
        headDim,
        rotatedDim,
        scaling: scalingOf(config.rope_scaling, positions, rotatedDim),
      }),
    });
    return index < config.num_hidden_layers - 1
      ? found
      : { ...found, out: { ...found.out, bias: param(`${name}.dense_bias`, [hidden]) } };
  },
  feedForward: ({ name, config, hidden }) =>
    plainMlp(`${name}.mlp`, {
      hidden,
      inner: config.intermediate_multiple_size * hidden,
      activation: config.hidden_act,
      bias: false,
      leaves: ['dense_h_to_4h', 'dense_4h_to_h'],
    }),
});
