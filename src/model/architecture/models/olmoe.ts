/** OLMoE (arXiv 2409.02060): experts in every layer, norms over all queries and all keys at once. */
import { sparseMixture } from '../transformer/decoder-parts.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import {
  attentionBias,
  clipSetting,
  count,
  expertsStored,
  gateActivation,
  toggle,
} from '../transformer/settings.js';

export const olmoe = defineDecoder({
  title: 'OLMoE',
  architecture: 'mixture',
  schema: decoderDocument(
    'olmoe',
    {
      vocab_size: 50_304,
      hidden_size: 2048,
      intermediate_size: 2048,
      num_hidden_layers: 16,
      num_attention_heads: 16,
      max_position_embeddings: 4096,
      rms_norm_eps: 1e-5,
    },
    {
      num_experts: count(64, 'Experts to choose from'),
      num_experts_per_tok: count(8, 'Experts that a token goes to'),
      norm_topk_prob: toggle(false, 'Weights of the chosen experts sum to one'),
      experts_stored: expertsStored,
      hidden_act: gateActivation,
      attention_bias: attentionBias,
      clip_qkv: clipSetting,
    },
  ),
  dimensions: { feedForward: { key: 'intermediate_size', perChannel: [1 / 4, 1] } },
  huggingFace: { names: { num_experts: ['num_local_experts'] } },
  queryKeyNorms: 'all heads',
  attention: ({ config }) => ({ clip: config.clip_qkv ?? undefined }),
  feedForward: ({ name, config }) =>
    sparseMixture(`${name}.mlp`, { ...config, moe_intermediate_size: config.intermediate_size }),
});
