/** LFM2 with experts in all but the first layers. */
import * as z from 'zod';
import { mixtureOfExperts, router } from '../constructors/feed-forward-layers.js';
import { buffer } from '../param.js';
import { expertsOf } from '../transformer/decoder-parts.js';
import { defineDecoder, plainDecoderDocument } from '../transformer/define-decoder.js';
import { count, expertsStored, toggle } from '../transformer/settings.js';
import { LFM2, LFM2_HARMLESS, LFM2_LEAVES, lfm2Mlp, lfm2Settings } from './lfm2.js';

export const lfm2Moe = defineDecoder({
  ...LFM2,
  title: 'LFM2 with experts',
  architecture: 'hybrid',
  schema: plainDecoderDocument(
    'lfm2_moe',
    {
      vocab_size: 65_536,
      hidden_size: 2048,
      intermediate_size: 7168,
      num_hidden_layers: 32,
      num_attention_heads: 32,
      num_key_value_heads: 8,
      max_position_embeddings: 128_000,
      rope_theta: 1e6,
      tie_word_embeddings: true,
    },
    {
      ...lfm2Settings,
      moe_intermediate_size: count(1792, 'Width inside an expert'),
      num_dense_layers: z.int().min(0).default(2).describe('First layers without experts'),
      num_experts: count(32, 'Experts to choose from'),
      num_experts_per_tok: count(4, 'Experts that a token goes to'),
      use_expert_bias: toggle(
        true,
        'A bias of each expert helps to choose, and does not change its weight',
      ),
      routed_scaling_factor: z
        .number()
        .positive()
        .default(1)
        .describe('What the weights of the chosen experts are multiplied by'),
      norm_topk_prob: toggle(true, 'Weights of the chosen experts sum to one before that'),
      experts_stored: expertsStored,
    },
  ),
  dimensions: null,
  ignoredOnLoad: [],
  huggingFace: {
    names: { tie_word_embeddings: ['tie_embedding'] },
    harmless: LFM2_HARMLESS,
  },
  feedForward({ name: block, config, index }) {
    const name = `${block}.feed_forward`;
    const { hidden_size: hidden, num_experts: experts } = config;
    if (index < config.num_dense_layers) return lfm2Mlp(name, hidden, config.intermediate_size);
    return mixtureOfExperts(name, {
      router: router(`${name}.gate`, hidden, {
        experts,
        expertsPerToken: config.num_experts_per_tok,
        scoring: 'sigmoid',
        correction: config.use_expert_bias ? buffer(`${name}.expert_bias`, [experts]) : undefined,
        renormalised: config.norm_topk_prob ? { eps: 1e-6 } : undefined,
        scale: config.routed_scaling_factor,
      }),
      experts: expertsOf(`${name}.experts`, {
        experts,
        hidden,
        inner: config.moe_intermediate_size,
        activation: 'silu',
        stored: config.experts_stored,
        leaves: LFM2_LEAVES,
      }),
    });
  },
});
