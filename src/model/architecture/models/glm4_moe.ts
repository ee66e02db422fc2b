/** GLM-4.5 to 4.7: attention of GLM with experts of DeepSeek-V3. */
import { rmsNormLayer } from '../constructors/basic-layers.js';
import {
  correctedRouting,
  deepseekFeedForward,
  predictionSettings,
  predictionTensors,
  ROUTED_RULES,
  routedSettings,
} from '../transformer/deepseek.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import { ROTARY_BUFFERS } from '../transformer/ignored-tensors.js';
import { gateActivation, partOfHead, toggle } from '../transformer/settings.js';

export const glm4Moe = defineDecoder({
  title: 'GLM-4.5 to 4.7, with experts',
  architecture: 'mixture',
  schema: decoderDocument(
    'glm4_moe',
    {
      vocab_size: 151_552,
      hidden_size: 4096,
      intermediate_size: 10_944,
      num_hidden_layers: 46,
      // They do not divide the width: without a head_dim, which published configs have, heads are 42 wide.
      num_attention_heads: 96,
      num_key_value_heads: 8,
      max_position_embeddings: 131_072,
      rms_norm_eps: 1e-5,
    },
    {
      partial_rotary_factor: partOfHead(0.5),
      attention_bias: toggle(false, 'Biases on queries, keys and values'),
      use_qk_norm: toggle(false, 'Norms on queries and keys'),
      ...routedSettings({
        moe_intermediate_size: 1408,
        n_routed_experts: 128,
        n_shared_experts: 1,
        num_experts_per_tok: 8,
        first_k_dense_replace: 1,
        routed_scaling_factor: 1,
        norm_topk_prob: true,
        n_group: 1,
        topk_group: 1,
      }),
      hidden_act: gateActivation,
      ...predictionSettings,
    },
  ),
  rules: ROUTED_RULES,
  dimensions: null,
  predictionLayers: ({ model }) => model.num_nextn_predict_layers ?? 0,
  ignoredOnLoad: ['model\\.layers\\.46.*', 'model\\.layers\\.92.*', ROTARY_BUFFERS],
  ignored: ({ model }) => predictionTensors(model),
  huggingFace: {
    names: {
      n_routed_experts: ['num_local_experts'],
      num_nextn_predict_layers: ['num_mtp_layers'],
    },
  },
  attention({ name, config, heads: { headDim } }) {
    const norm = (leaf: string) =>
      rmsNormLayer(`${name}.self_attn.${leaf}`, headDim, config.rms_norm_eps);
    return {
      outBias: false,
      ...(config.use_qk_norm && { queryNorm: norm('q_norm'), keyNorm: norm('k_norm') }),
    };
  },
  feedForward: ({ name, config, index }) =>
    deepseekFeedForward(`${name}.mlp`, index, config, { routing: correctedRouting(config) }),
});
