/** FlexOlmo (arXiv 2507.07024): experts of OLMoE in the blocks of OLMo 2. */
import { postNormBlock, sparseMixture } from '../transformer/decoder-parts.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import {
  attentionBias,
  count,
  expertsStored,
  gateActivation,
  LLAMA_SIZES,
  toggle,
} from '../transformer/settings.js';

export const flexOlmo = defineDecoder({
  title: 'FlexOlmo',
  architecture: 'mixture',
  schema: decoderDocument(
    'flex_olmo',
    {
      ...LLAMA_SIZES,
      vocab_size: 100_352,
      max_position_embeddings: 4096,
      rms_norm_eps: 1e-6,
      rope_theta: 500_000,
    },
    {
      num_experts: count(7, 'Experts to choose from'),
      num_experts_per_tok: count(5, 'Experts that a token goes to'),
      norm_topk_prob: toggle(false, 'Weights of the chosen experts sum to one'),
      experts_stored: expertsStored,
      hidden_act: gateActivation,
      attention_bias: attentionBias,
    },
  ),
  dimensions: { feedForward: { key: 'intermediate_size', perChannel: [1 / 4, 4] } },
  huggingFace: { names: { num_experts: ['num_local_experts'] } },
  block: postNormBlock,
  queryKeyNorms: 'all heads',
  feedForward: ({ name, config }) =>
    sparseMixture(`${name}.mlp`, { ...config, moe_intermediate_size: config.intermediate_size }),
});
