/** nanochat (github.com/karpathy/nanochat): norms without weights, also behind the embedding and the rotation. */
import { plainRmsNorm } from '../constructors/basic-layers.js';
import { plainMlp, rotaryOf } from '../transformer/decoder-parts.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import { activationWord, attentionBias } from '../transformer/settings.js';
import { gateAndLogitSettings, softcappedLogits } from './gemma.js';

export const nanochat = defineDecoder({
  title: 'nanochat',
  schema: decoderDocument(
    'nanochat',
    {
      vocab_size: 50_304,
      hidden_size: 768,
      intermediate_size: 8192,
      num_hidden_layers: 12,
      num_attention_heads: 6,
      max_position_embeddings: 2048,
      rms_norm_eps: 1e-6,
    },
    {
      hidden_act: activationWord.default('relu2').describe('Activation'),
      final_logit_softcapping: gateAndLogitSettings(15).final_logit_softcapping,
      attention_bias: attentionBias,
    },
  ),
  norm: (name, config) => plainRmsNorm(name, config.hidden_size, config.rms_norm_eps),
  embeddingSteps: ({ hidden_size, rms_norm_eps }) => [
    plainRmsNorm('embedding_norm', hidden_size, rms_norm_eps),
  ],
  logitSteps: softcappedLogits,
  attention({ name, config, heads: { headDim } }) {
    const norm = (leaf: string) =>
      plainRmsNorm(`${name}.self_attn.${leaf}`, headDim, config.rms_norm_eps);
    return {
      queryNorm: norm('q_norm'),
      keyNorm: norm('k_norm'),
      normsAfterRotation: true,
      rotary: { ...rotaryOf(name, config, headDim), isBackwards: true },
    };
  },
  feedForward: ({ name, config }) =>
    plainMlp(`${name}.mlp`, {
      hidden: config.hidden_size,
      inner: config.intermediate_size,
      activation: config.hidden_act,
      bias: false,
      leaves: ['fc1', 'fc2'],
    }),
});
