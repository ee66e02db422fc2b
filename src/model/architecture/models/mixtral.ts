/** Mixtral (arXiv 2401.04088): Mistral with a mixture of experts in every layer. */
import { unreadBut } from '../transformer/config-keys.js';
import { softmaxMixture } from '../transformer/decoder-parts.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import {
  activationOf,
  count,
  expertsStored,
  gateActivation,
  windowAt,
  windowSettings,
} from '../transformer/settings.js';

/** Name of the mixture with packed and with separate experts. */
const MIXTURE = { packed: 'mlp', separate: 'block_sparse_moe' } as const;

export const mixtral = defineDecoder({
  title: 'Mixtral: Mistral with experts',
  architecture: 'mixture',
  schema: decoderDocument(
    'mixtral',
    {
      vocab_size: 32_000,
      hidden_size: 4096,
      intermediate_size: 14_336,
      num_hidden_layers: 32,
      num_attention_heads: 32,
      num_key_value_heads: 8,
      max_position_embeddings: 131_072,
      rms_norm_eps: 1e-5,
      rope_theta: 1e6,
    },
    {
      sliding_window: windowSettings().sliding_window,
      num_local_experts: count(8, 'Experts to choose from'),
      num_experts_per_tok: count(2, 'Experts that a token goes to'),
      experts_stored: expertsStored,
      hidden_act: gateActivation,
    },
  ),
  huggingFace: {
    names: { num_local_experts: ['num_experts'] },
    limited: { norm_topk_prob: unreadBut([true]) },
  },
  attention: ({ config, index }) => ({ window: windowAt(config, index, true) }),
  feedForward: ({ name, config }) =>
    softmaxMixture(`${name}.${MIXTURE[config.experts_stored]}`, {
      experts: config.num_local_experts,
      expertsPerToken: config.num_experts_per_tok,
      isNormed: true,
      stored: config.experts_stored,
      hidden: config.hidden_size,
      inner: config.intermediate_size,
      activation: activationOf(config.hidden_act),
      leaves: ['w1', 'w3', 'w2'],
    }),
});
