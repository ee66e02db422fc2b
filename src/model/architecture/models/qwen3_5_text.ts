/** Qwen3.5, the text part: gated DeltaNet in three of four layers, gated attention in the others. */
import { fusedProjection, linear } from '../constructors/basic-layers.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import {
  DELTA_READING,
  DELTA_RULES,
  type DeltaInputBuilder,
  deltaOrAttention,
  deltaSettings,
  IMAGE_KEYS,
} from '../transformer/gated-delta.js';
import { PREDICTING, ROTARY_BUFFERS, SEEING } from '../transformer/ignored-tensors.js';

/** A product for queries, keys and values, and one for each of the others. */
export const qwen35Inputs: DeltaInputBuilder = (name, { hidden, keys, values, valueHeads }) => {
  const product = (leaf: string, width: number) =>
    linear(`${name}.${leaf}`, hidden, width, { bias: false });
  return [
    fusedProjection(product('in_proj_qkv', 2 * keys + values), [keys, keys, values]),
    product('in_proj_z', values),
    product('in_proj_b', valueHeads),
    product('in_proj_a', valueHeads),
  ];
};

export const qwen35Text = defineDecoder({
  title: 'Qwen3.5, text only: gated DeltaNet, and attention in every fourth layer',
  architecture: 'hybrid',
  schema: decoderDocument(
    'qwen3_5_text',
    {
      vocab_size: 248_320,
      hidden_size: 4096,
      intermediate_size: 12_288,
      num_hidden_layers: 32,
      num_attention_heads: 16,
      num_key_value_heads: 4,
      head_dim: 256,
      max_position_embeddings: 32_768,
      rms_norm_eps: 1e-6,
    },
    deltaSettings({ linear_num_value_heads: 32 }),
  ),
  rules: DELTA_RULES,
  ignoredOnLoad: [PREDICTING, ROTARY_BUFFERS, SEEING],
  huggingFace: { ...DELTA_READING, limited: IMAGE_KEYS },
  normOffset: 1,
  attentionLayer: (block) => deltaOrAttention(block, qwen35Inputs),
});
