/** Solar Open: attention of Llama with experts of DeepSeek-V3 in every layer. */
import { unreadEach } from '../transformer/config-keys.js';
import {
  BEST_TWO_RULES,
  correctedRouting,
  falseForNull,
  routedMixture,
  routedRules,
  routedSettings,
} from '../transformer/deepseek.js';
import { defineDecoder } from '../transformer/define-decoder.js';
import { rotarySettings } from '../transformer/rotary.js';
import {
  decoderSizes,
  gateActivation,
  normEpsilon,
  tiedHead,
  toggle,
  transformerDocument,
} from '../transformer/settings.js';

const { first_k_dense_replace: _, ...experts } = routedSettings({
  moe_intermediate_size: 1280,
  n_routed_experts: 128,
  n_shared_experts: 1,
  num_experts_per_tok: 8,
  first_k_dense_replace: 0,
  routed_scaling_factor: 1,
  norm_topk_prob: true,
  n_group: 1,
  topk_group: 1,
});

/** No layer has a dense network, whose width older files give. */
const { intermediate_size: __, ...sizes } = decoderSizes({
  vocab_size: 196_608,
  hidden_size: 4096,
  intermediate_size: 10_240,
  num_hidden_layers: 48,
  num_attention_heads: 64,
  num_key_value_heads: 8,
  head_dim: 128,
  max_position_embeddings: 131_072,
});

export const solarOpen = defineDecoder({
  title: 'Solar Open, with experts',
  architecture: 'mixture',
  schema: transformerDocument('solar_open', {
    ...sizes,
    ...rotarySettings(1e6),
    rms_norm_eps: normEpsilon(1e-5),
    attention_bias: toggle(false, 'Biases on queries, keys and values'),
    ...experts,
    hidden_act: gateActivation,
    tie_word_embeddings: tiedHead(false),
  }),
  rules: [...routedRules('n_routed_experts'), ...BEST_TWO_RULES],
  dimensions: null,
  huggingFace: {
    names: { n_routed_experts: ['num_local_experts'] },
    more: falseForNull,
    limited: {
      ...unreadEach(['first_k_dense_replace'], [0]),
      ...unreadEach(['use_qk_norm'], [false]),
      ...unreadEach(['topk_method'], ['noaux_tc']),
      ...unreadEach(['scoring_func'], ['sigmoid']),
    },
    harmless: { intermediate_size: 'no layer has a dense network' },
  },
  attention: () => ({ outBias: false }),
  feedForward: ({ name, config }) =>
    routedMixture(`${name}.mlp`, config, { routing: correctedRouting(config) }),
});
