/** MiniCPM 1 and 2 (arXiv 2404.06395): Llama with factors of the embedding, of each branch and of the logits. */
import * as z from 'zod';
import { streamFactor } from '../transformer/decoder-parts.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import { attentionBias, count, gateActivation } from '../transformer/settings.js';

// Defaults are those of configuration_minicpm.py in the repositories of the models.
export const minicpm = defineDecoder({
  title: 'MiniCPM 1 and 2',
  schema: decoderDocument(
    'minicpm',
    {
      vocab_size: 32_000,
      hidden_size: 4096,
      intermediate_size: 11_008,
      num_hidden_layers: 32,
      num_attention_heads: 32,
      max_position_embeddings: 2048,
      rms_norm_eps: 1e-6,
      tie_word_embeddings: true,
    },
    {
      hidden_act: gateActivation,
      attention_bias: attentionBias,
      scale_emb: z.number().default(1).describe('Factor of the embeddings'),
      scale_depth: z
        .number()
        .default(1)
        .describe("Factor of each branch's output, times √num_hidden_layers"),
      dim_model_base: count(1, 'Part of hidden_size that the logits are multiplied by'),
      num_experts: z.literal(0).nullish().describe('Experts, which are not supported'),
    },
  ),
  huggingFace: {
    harmless: { pretraining_tp: 'slices of the same products' },
    limited: {
      sparse_config: {
        allows: (sparse) => sparse === null,
        why: 'sparse attention is not described',
        severity: 'error',
      },
    },
  },
  embeddingSteps: ({ scale_emb }) => streamFactor('scale_emb', scale_emb),
  branchFactor: ({ scale_depth, num_hidden_layers }) => scale_depth / Math.sqrt(num_hidden_layers),
  logitSteps: ({ dim_model_base, hidden_size }) =>
    streamFactor('dim_model_base', dim_model_base / hidden_size),
});
