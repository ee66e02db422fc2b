/** The parts that the generations of Gemma share. */
import * as z from 'zod';
import { scale, softcap } from '../constructors.js';
import { type LimitedKeys, unreadBut } from './config-keys.js';
import { sandwichBlock, separateMlp } from './parts.js';
import { activationOf, activationWord, attentionBias, causalOnly } from './settings.js';

/** Norms about one, and embeddings scaled by the root of the width. */
export const GEMMA = {
  normOffset: 1,
  embeddingSteps: ({ hidden_size: hidden }: { readonly hidden_size: number }) => [
    scale('model.embed_scale', Math.sqrt(hidden)),
  ],
} as const;

const softcapping = (cap: number | null) => z.number().positive().nullable().default(cap);

/** Keys of Gemma 2 and 3 in addition to those of Gemma. */
export const laterGemmaSettings = (softcaps: {
  readonly attention: number | null;
  readonly logits: number | null;
}) => ({
  hidden_activation: activationWord.default('gelu_pytorch_tanh').describe('Activation of the gate'),
  query_pre_attn_scalar: z
    .number()
    .positive()
    .default(256)
    .describe('Scores are divided by its square root'),
  attn_logit_softcapping: softcapping(softcaps.attention).describe('Softcap of the scores'),
  final_logit_softcapping: softcapping(softcaps.logits).describe('Softcap of the logits'),
  attention_bias: attentionBias,
  use_bidirectional_attention: causalOnly,
});

interface LaterGemma {
  readonly hidden_size: number;
  readonly intermediate_size: number;
  readonly hidden_activation: Parameters<typeof activationOf>[0];
  readonly final_logit_softcapping: number | null;
}

/** Gemma 2 and 3: norms on both sides of a branch, windows in some layers, softcapped logits. */
export const LATER_GEMMA = {
  ...GEMMA,
  block: sandwichBlock,
  slidesByRule: () => true,
  dimensions: { headDim: ['head_dim', 'query_pre_attn_scalar'] },
  feedForward: ({ name, config }: { readonly name: string; readonly config: LaterGemma }) =>
    separateMlp(`${name}.mlp`, {
      hidden: config.hidden_size,
      inner: config.intermediate_size,
      activation: activationOf(config.hidden_activation),
    }),
  logitSteps: ({ final_logit_softcapping: cap }: LaterGemma) =>
    cap === null ? [] : [softcap('logit_softcap', cap)],
};

/** The key of other families for the activation, where a family reads `hidden_activation`. */
export const HIDDEN_ACT_UNREAD: LimitedKeys = {
  hidden_act: unreadBut(
    (word, { hidden_activation: read = 'gelu_pytorch_tanh' }) => word === null || word === read,
  ),
};
