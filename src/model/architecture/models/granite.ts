/** Granite 3 and 4 dense (arXiv 2408.13359 for the multipliers): Llama with a factor in four places. */
import * as z from 'zod';
import { streamFactor } from '../transformer/decoder-parts.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import { attentionBias, gateActivation, LLAMA_SIZES, mlpBias } from '../transformer/settings.js';

const factor = z.number().default(1);

/** Keys of the multipliers. */
export const graniteSettings = {
  embedding_multiplier: factor.describe('Factor of the embeddings'),
  attention_multiplier: factor.describe('Factor of the scores, in place of 1 / √head width'),
  residual_multiplier: factor.describe("Factor of each branch's output"),
  logits_scaling: z.number().positive().default(1).describe('Divisor of the logits'),
};

/** Values of `graniteSettings`. */
export interface Multipliers {
  readonly embedding_multiplier: number;
  readonly attention_multiplier: number;
  readonly residual_multiplier: number;
  readonly logits_scaling: number;
}

/** Parts shared with the mixtures. */
export const GRANITE = {
  branchFactor: ({ residual_multiplier }: Multipliers) => residual_multiplier,
  embeddingSteps: ({ embedding_multiplier }: Multipliers) =>
    streamFactor('embedding_multiplier', embedding_multiplier),
  logitSteps: ({ logits_scaling }: Multipliers) =>
    streamFactor('logits_scaling', 1 / logits_scaling),
  attention: ({ config }: { readonly config: Multipliers }) => ({
    scale: config.attention_multiplier,
  }),
};

export const granite = defineDecoder({
  ...GRANITE,
  title: 'Granite 3 and 4, dense',
  schema: decoderDocument(
    'granite',
    {
      ...LLAMA_SIZES,
      rms_norm_eps: 1e-6,
    },
    {
      ...graniteSettings,
      hidden_act: gateActivation,
      attention_bias: attentionBias,
      mlp_bias: mlpBias,
    },
  ),
});
