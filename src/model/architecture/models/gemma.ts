/** Gemma (arXiv 2403.08295): scaled embeddings, norms with offset 1, a GELU gate. */
import * as z from 'zod';
import { scale, softcap } from '../constructors/basic-layers.js';
import type { LimitedKeys } from '../transformer/config-keys.js';
import { unreadBut } from '../transformer/config-keys.js';
import { mlpOf, sandwichBlock } from '../transformer/decoder-parts.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import {
  type ActivationWord,
  activationWord,
  attentionBias,
  causalOnly,
} from '../transformer/settings.js';

// Parts shared by the generations of Gemma

/** Norms with offset 1, and embeddings scaled by the square root of the width. */
export const GEMMA = {
  normOffset: 1,
  embeddingSteps: ({ hidden_size: hidden }: { readonly hidden_size: number }) => [
    scale('model.embed_scale', Math.sqrt(hidden)),
  ],
} as const;

const softcapping = (cap: number | null) => z.number().positive().nullable().default(cap);

/** Keys of all Gemmas after the first. */
export const gateAndLogitSettings = (cap: number | null) => ({
  hidden_activation: activationWord.default('gelu_pytorch_tanh').describe('Activation of the gate'),
  final_logit_softcapping: softcapping(cap).describe('Softcap of the logits'),
  attention_bias: attentionBias,
});

export const softcappedLogits = ({
  final_logit_softcapping: cap,
}: {
  readonly final_logit_softcapping: number | null;
}) => (cap === null ? [] : [softcap('logit_softcap', cap)]);

/** Keys of Gemma 2 and 3 in addition to those of Gemma. */
export const laterGemmaSettings = (softcaps: {
  readonly attention: number | null;
  readonly logits: number | null;
}) => ({
  ...gateAndLogitSettings(softcaps.logits),
  query_pre_attn_scalar: z
    .number()
    .positive()
    .default(256)
    .describe('Scores are divided by its square root'),
  attn_logit_softcapping: softcapping(softcaps.attention).describe('Softcap of the scores'),
  use_bidirectional_attention: causalOnly,
});

interface LaterGemma {
  readonly hidden_size: number;
  readonly intermediate_size: number;
  readonly hidden_activation: ActivationWord;
}

/** Gemma 2 and 3: norms before and after each branch, windows in some layers, softcapped logits. */
export const LATER_GEMMA = {
  ...GEMMA,
  block: sandwichBlock,
  slidesByRule: () => true,
  dimensions: { headDim: ['head_dim', 'query_pre_attn_scalar'] },
  feedForward: ({ name, config }: { readonly name: string; readonly config: LaterGemma }) =>
    mlpOf(`${name}.mlp`, { ...config, hidden_act: config.hidden_activation }),
  logitSteps: softcappedLogits,
};

/** Activation key of other families, for families that read `hidden_activation`. */
export const HIDDEN_ACT_UNREAD: LimitedKeys = {
  hidden_act: unreadBut(
    (word, { hidden_activation: read = 'gelu_pytorch_tanh' }) => word === null || word === read,
  ),
};

export const gemma = defineDecoder({
  ...GEMMA,
  title: 'Gemma 1',
  schema: decoderDocument(
    'gemma',
    {
      vocab_size: 256_000,
      hidden_size: 3072,
      intermediate_size: 24_576,
      num_hidden_layers: 28,
      num_attention_heads: 16,
      num_key_value_heads: 16,
      head_dim: 256,
      max_position_embeddings: 8192,
      rms_norm_eps: 1e-6,
      tie_word_embeddings: true,
    },
    {
      hidden_act: activationWord
        .default('gelu_pytorch_tanh')
        .describe('Activation of the gate; gelu means gelu_pytorch_tanh, as in transformers'),
      attention_bias: attentionBias,
      use_bidirectional_attention: causalOnly,
    },
  ),
  huggingFace: {
    limited: {
      hidden_activation: unreadBut(
        (word, { hidden_act: read = 'gelu_pytorch_tanh' }) => word === null || word === read,
      ),
    },
  },
  feedForward: ({ name, config }) =>
    mlpOf(`${name}.mlp`, {
      ...config,
      hidden_act: config.hidden_act === 'gelu' ? 'gelu_pytorch_tanh' : config.hidden_act,
    }),
});
