/** Qwen3-Next: gated DeltaNet (arXiv 2412.06464) in three of four layers, gated attention in the others, and experts. */
import { fusedProjection, linear } from '../constructors/basic-layers.js';
import { mlpOf, sharedExpert, sparseMixture } from '../transformer/decoder-parts.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import {
  DELTA_READING,
  DELTA_RULES,
  deltaOrAttention,
  deltaSettings,
} from '../transformer/gated-delta.js';
import { PREDICTING, ROTARY_BUFFERS } from '../transformer/ignored-tensors.js';
import { count, hasExperts, sparseSettings, toggle } from '../transformer/settings.js';

export const qwen3Next = defineDecoder({
  title: 'Qwen3-Next: gated DeltaNet, attention in every fourth layer, and experts',
  architecture: 'hybrid',
  schema: decoderDocument(
    'qwen3_next',
    {
      vocab_size: 151_936,
      hidden_size: 2048,
      intermediate_size: 5632,
      num_hidden_layers: 48,
      num_attention_heads: 16,
      num_key_value_heads: 2,
      head_dim: 256,
      max_position_embeddings: 32_768,
      rms_norm_eps: 1e-6,
    },
    {
      ...deltaSettings({ linear_num_value_heads: 32 }),
      ...sparseSettings({ experts: 512, expertsPerToken: 10, inner: 512 }),
      norm_topk_prob: toggle(true, 'Weights of the chosen experts sum to one'),
      shared_expert_intermediate_size: count(512, 'Width inside the shared expert'),
    },
  ),
  rules: DELTA_RULES,
  dimensions: null,
  ignoredOnLoad: [PREDICTING, ROTARY_BUFFERS],
  huggingFace: DELTA_READING,
  normOffset: 1,
  attentionLayer: (block) =>
    deltaOrAttention(block, (name, { hidden, keys, values, keyHeads, valueHeads }) => {
      const plain = { bias: false };
      const main = linear(`${name}.in_proj_qkvz`, hidden, 2 * (keys + values), plain);
      const steps = linear(`${name}.in_proj_ba`, hidden, 2 * valueHeads, plain);
      return [
        fusedProjection(main, [keys, keys, values, values], keyHeads),
        fusedProjection(steps, [valueHeads, valueHeads], keyHeads),
      ];
    }),
  feedForward: ({ name, config, index }) =>
    hasExperts(config, index)
      ? sparseMixture(`${name}.mlp`, config, sharedExpert(`${name}.mlp`, config))
      : mlpOf(`${name}.mlp`, config),
});
