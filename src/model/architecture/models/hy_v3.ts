/** Hy3 (Tencent): attention of Qwen 3, and experts with sigmoid scores beside one for every token. */
import * as z from 'zod';
import { mixtureOfExperts, router } from '../constructors/feed-forward-layers.js';
import { buffer } from '../param.js';
import { unreadBut, unreadEach } from '../transformer/config-keys.js';
import { expertsOf, mlpOf, separateMlp } from '../transformer/decoder-parts.js';
import { predictionSettings, predictionTensors, RENORMALISE_EPS } from '../transformer/deepseek.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import { ROTARY_BUFFERS } from '../transformer/ignored-tensors.js';
import {
  activationOf,
  attentionBias,
  count,
  expertsStored,
  gateActivation,
  mlpBias,
  mlpLayerTypes,
} from '../transformer/settings.js';

const INNER = 1536;

/** First layers without experts, where the config does not list them. */
const DENSE = 1;

/** Names inside a mixture, in files and in memory. */
const NAMES = {
  separate: { gate: 'router.gate', correction: 'expert_bias', shared: 'shared_mlp' },
  packed: { gate: 'gate', correction: 'e_score_correction_bias', shared: 'shared_experts' },
} as const;

export const hyV3 = defineDecoder({
  title: 'Hy3, with experts',
  architecture: 'mixture',
  schema: decoderDocument(
    'hy_v3',
    {
      vocab_size: 120_832,
      hidden_size: 4096,
      intermediate_size: 13_312,
      num_hidden_layers: 80,
      num_attention_heads: 64,
      num_key_value_heads: 8,
      head_dim: 128,
      max_position_embeddings: 131_072,
      rms_norm_eps: 1e-5,
      rope_theta: 11_158_840,
    },
    {
      attention_bias: attentionBias,
      mlp_bias: mlpBias,
      mlp_layer_types: mlpLayerTypes,
      num_experts: count(192, 'Experts to choose from'),
      num_experts_per_tok: count(8, 'Experts that a token goes to'),
      num_shared_experts: z
        .int()
        .min(0)
        .default(1)
        .describe(
          'Experts for every token, as one network of their joint width; 0: one as wide as intermediate_size',
        ),
      moe_intermediate_size: count(INNER, 'Width inside an expert'),
      router_scaling_factor: z
        .number()
        .default(2.826)
        .describe('What the weights of the chosen experts are multiplied by'),
      experts_stored: expertsStored,
      hidden_act: gateActivation,
      ...predictionSettings,
    },
  ),
  dimensions: null,
  predictionLayers: ({ model }) => model.num_nextn_predict_layers ?? 0,
  ignoredOnLoad: ['model\\.layers\\.80.*', ROTARY_BUFFERS],
  ignored: ({ model }) => predictionTensors(model),
  huggingFace: {
    names: { num_experts: ['num_local_experts'] },
    limited: {
      ...unreadEach(['qk_norm', 'use_qk_norm', 'route_norm', 'moe_router_use_sigmoid'], [true]),
      ...unreadEach(['moe_router_enable_expert_bias'], [true]),
      ...unreadEach(['first_k_dense_replace'], [DENSE]),
      expert_hidden_dim: unreadBut(
        (width, { moe_intermediate_size: inner = INNER }) => width === null || width === inner,
      ),
    },
    harmless: {
      enable_moe_fp32_combine: 'says in which type two outputs are added',
      enable_lm_head_fp32: 'says in which type the head is computed',
      enable_attention_fp32_softmax: 'says in which type a softmax is computed',
    },
  },
  queryKeyNorms: 'each head',
  feedForward({ name: block, index, config }) {
    const name = `${block}.mlp`;
    const types = config.mlp_layer_types;
    if (types ? types[index] !== 'sparse' : index < DENSE) return mlpOf(name, config);
    const { hidden_size: hidden, moe_intermediate_size: inner, num_experts: experts } = config;
    const activation = activationOf(config.hidden_act);
    const names = NAMES[config.experts_stored];
    return mixtureOfExperts(name, {
      router: router(`${name}.${names.gate}`, hidden, {
        experts,
        expertsPerToken: config.num_experts_per_tok,
        scoring: 'sigmoid',
        correction: buffer(`${name}.${names.correction}`, [experts]),
        renormalised: { eps: RENORMALISE_EPS },
        scale: config.router_scaling_factor,
      }),
      experts: expertsOf(`${name}.experts`, {
        experts,
        stored: config.experts_stored,
        hidden,
        inner,
        activation,
      }),
      shared: [
        separateMlp(`${name}.${names.shared}`, {
          hidden,
          inner: config.num_shared_experts * inner || config.intermediate_size,
          activation,
          bias: config.mlp_bias,
          component: 'sharedExperts',
        }),
      ],
    });
  },
});
