/** HyperCLOVA X: the factors of Granite, and norms behind the branches. */
import * as z from 'zod';
import { residualBlock, streamFactor } from '../transformer/decoder-parts.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import {
  attentionBias,
  gateActivation,
  LLAMA_SIZES,
  mlpBias,
  toggle,
} from '../transformer/settings.js';
import { graniteSettings } from './granite.js';

const { embedding_multiplier, residual_multiplier } = graniteSettings;

export const hyperclovax = defineDecoder({
  title: 'HyperCLOVA X',
  schema: decoderDocument(
    'hyperclovax',
    { ...LLAMA_SIZES, rms_norm_eps: 1e-6 },
    {
      embedding_multiplier,
      residual_multiplier,
      attention_multiplier: z
        .number()
        .nullable()
        .default(null)
        .describe('Factor of the scores; null: 1 / √head width'),
      logits_scaling: z.number().default(1).describe('Factor of the logits'),
      use_post_norm: toggle(true, 'A norm behind each branch, before its factor'),
      hidden_act: gateActivation,
      attention_bias: attentionBias,
      mlp_bias: mlpBias,
    },
  ),
  embeddingSteps: ({ embedding_multiplier: factor }) =>
    streamFactor('embedding_multiplier', factor),
  logitSteps: ({ logits_scaling: factor }) => streamFactor('logits_scaling', factor),
  block(name, { norm, attention, feedForward }, config) {
    const end = (leaf: string) => [
      ...(config.use_post_norm ? [norm(`${name}.${leaf}`)] : []),
      ...streamFactor(`${name}.${leaf}_multiplier`, config.residual_multiplier),
    ];
    return residualBlock(name, {
      attention: [norm(`${name}.input_layernorm`), attention, ...end('post_norm1')],
      mlp: [norm(`${name}.post_attention_layernorm`), feedForward, ...end('post_norm2')],
    });
  },
  attention: ({ config, heads: { headDim } }) => ({
    scale: config.attention_multiplier ?? headDim ** -0.5,
  }),
});
