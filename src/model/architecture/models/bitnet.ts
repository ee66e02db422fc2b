/** BitNet b1.58 (arXiv 2504.12285): Llama with a norm before the last product of each branch. */
import { asNumber } from '../../../base/values.js';
import { rmsNormLayer } from '../constructors/basic-layers.js';
import { separateMlp } from '../transformer/decoder-parts.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import { activationOf, activationWord, attentionBias } from '../transformer/settings.js';

export const bitnet = defineDecoder({
  title: 'BitNet b1.58',
  schema: decoderDocument(
    'bitnet',
    {
      vocab_size: 128_256,
      hidden_size: 2560,
      intermediate_size: 6912,
      num_hidden_layers: 30,
      num_attention_heads: 20,
      num_key_value_heads: 5,
      max_position_embeddings: 2048,
      rms_norm_eps: 1e-5,
      rope_theta: 500_000,
    },
    {
      hidden_act: activationWord.default('relu2').describe('Activation of the gate'),
      attention_bias: attentionBias,
    },
  ),
  huggingFace: {
    limited: {
      head_dim: {
        allows: (width, { hidden_size: hidden = 2560, num_attention_heads: heads = 20 }) =>
          width === null || width === asNumber(hidden) / asNumber(heads),
        why: 'the norm of the heads has the width of the model',
        severity: 'error',
      },
    },
  },
  attention: ({ name, config }) => ({
    outNorm: rmsNormLayer(
      `${name}.self_attn.attn_sub_norm`,
      config.hidden_size,
      config.rms_norm_eps,
    ),
  }),
  feedForward({ name: block, config }) {
    const [name, inner] = [`${block}.mlp`, config.intermediate_size];
    return separateMlp(name, {
      hidden: config.hidden_size,
      inner,
      activation: activationOf(config.hidden_act),
      innerNorm: rmsNormLayer(`${name}.ffn_sub_norm`, inner, config.rms_norm_eps),
    });
  },
});
