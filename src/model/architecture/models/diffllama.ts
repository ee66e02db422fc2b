/** DiffLlama (arXiv 2410.05258): Llama with differential attention. */
import { differentialAttention } from '../constructors/attention-kinds.js';
import { linear } from '../constructors/basic-layers.js';
import { harmless, unreadBut } from '../transformer/config-keys.js';
import { rotaryOf } from '../transformer/decoder-parts.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import { attentionBias, gateActivation } from '../transformer/settings.js';

/** First value of λ in a layer. */
const initialOf = (layer: number) => 0.8 - 0.6 * Math.exp(-0.3 * layer);

export const diffllama = defineDecoder({
  title: 'DiffLlama',
  schema: decoderDocument(
    'diffllama',
    {
      vocab_size: 32_000,
      hidden_size: 2048,
      intermediate_size: 8192,
      num_hidden_layers: 16,
      num_attention_heads: 32,
      max_position_embeddings: 2048,
      rms_norm_eps: 1e-5,
    },
    { hidden_act: gateActivation, attention_bias: attentionBias },
  ),
  // Key-value heads come in pairs, which the shapes of a plan do not know.
  dimensions: null,
  rules: [
    {
      severity: 'error',
      reads: ['model.num_key_value_heads', 'model.num_attention_heads'],
      check({ model }) {
        const count = model.num_key_value_heads ?? model.num_attention_heads;
        return count % 2 === 0
          ? undefined
          : {
              message: `${count} key-value heads do not come in pairs, whose values a head sees`,
              suggestion: 'write an even num_key_value_heads',
            };
      },
    },
  ],
  huggingFace: {
    harmless: harmless('used in training only', ['lambda_std_dev']),
    limited: {
      attention_dropout: {
        ...unreadBut([0], 'the class refuses dropout in this attention'),
        severity: 'error',
      },
    },
  },
  attentionLayer({ name: block, index, config, heads: layout }) {
    const name = `${block}.self_attn`;
    const { hidden, heads, keyValueHeads, headDim } = layout;
    const bias = config.attention_bias;
    const input = (leaf: string, count: number) =>
      linear(`${name}.${leaf}`, hidden, count * headDim, { bias });
    return differentialAttention(name, {
      inputs: [
        input('q_proj', heads),
        input('k_proj', keyValueHeads),
        input('v_proj', keyValueHeads),
      ],
      out: linear(`${name}.o_proj`, heads * headDim, hidden, { bias }),
      initial: initialOf(index),
      rotary: rotaryOf(block, config, headDim),
      heads,
      keyValueHeads,
      headDim,
      eps: config.rms_norm_eps,
    });
  },
});
