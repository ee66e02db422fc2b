/** Trinity (Arcee): attention with a gate and norms around each branch, and experts with sigmoid scores. */
import * as z from 'zod';
import { attention } from '../constructors/attention-layers.js';
import { linear, rmsNormLayer } from '../constructors/basic-layers.js';
import { mixtureOfExperts, router } from '../constructors/feed-forward-layers.js';
import { param } from '../param.js';
import { harmless, unreadEach } from '../transformer/config-keys.js';
import {
  expertsOf,
  jointExperts,
  mlpOf,
  residualBlock,
  rotaryOf,
  streamFactor,
} from '../transformer/decoder-parts.js';
import { RENORMALISE_EPS } from '../transformer/deepseek.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import {
  activationOf,
  attentionBias,
  count,
  expertsStored,
  gateActivation,
  slidesAt,
  toggle,
  windowAt,
  windowSettings,
} from '../transformer/settings.js';

export const afmoe = defineDecoder({
  title: 'Trinity, with experts',
  architecture: 'mixture',
  schema: decoderDocument(
    'afmoe',
    {
      vocab_size: 200_192,
      hidden_size: 2048,
      intermediate_size: 6144,
      num_hidden_layers: 32,
      num_attention_heads: 16,
      head_dim: 128,
      max_position_embeddings: 16_384,
      rms_norm_eps: 1e-5,
    },
    {
      ...windowSettings(1024),
      global_attn_every_n_layers: count(
        4,
        'Without layer_types: period of the layers without a window, which have no positions',
      ),
      num_dense_layers: z.int().min(0).default(1).describe('First layers without experts'),
      num_experts: count(64, 'Experts to choose from'),
      num_experts_per_tok: count(6, 'Experts that a token goes to'),
      num_shared_experts: z
        .int()
        .min(0)
        .default(2)
        .describe('Experts for every token, as one network of their joint width'),
      moe_intermediate_size: count(1408, 'Width inside an expert'),
      route_scale: z.number().default(1).describe('Factor of the weights of the chosen experts'),
      mup_enabled: toggle(false, 'Embeddings are multiplied by √hidden_size'),
      experts_stored: expertsStored,
      attention_bias: attentionBias,
      hidden_act: gateActivation,
    },
  ),
  dimensions: null,
  huggingFace: {
    limited: {
      ...unreadEach(['score_func'], ['sigmoid']),
      ...unreadEach(['route_norm'], [true]),
      ...unreadEach(['n_group', 'topk_group', 'num_expert_groups', 'num_limited_groups'], [0, 1]),
    },
    harmless: harmless('used in training only', ['load_balance_coeff', 'use_grouped_mm']),
  },
  slidesByRule: () => true,
  embeddingSteps: ({ mup_enabled, hidden_size }) =>
    mup_enabled ? streamFactor('mup', Math.sqrt(hidden_size)) : [],
  block: (name, { norm, attention: mixer, feedForward }) =>
    residualBlock(name, {
      attention: [norm(`${name}.input_layernorm`), mixer, norm(`${name}.post_attention_layernorm`)],
      mlp: [norm(`${name}.pre_mlp_layernorm`), feedForward, norm(`${name}.post_mlp_layernorm`)],
    }),
  attentionLayer({ name: block, config, index, heads: { hidden, heads, keyValueHeads, headDim } }) {
    const name = `${block}.self_attn`;
    const bias = config.attention_bias;
    const input = (leaf: string, count: number, hasBias = bias) =>
      linear(`${name}.${leaf}`, hidden, count * headDim, { bias: hasBias });
    const norm = (leaf: string) => rmsNormLayer(`${name}.${leaf}`, headDim, config.rms_norm_eps);
    const period = config.global_attn_every_n_layers;
    const slides = slidesAt(config, index, (index + 1) % period !== 0);
    return attention(name, {
      inputs: [
        input('q_proj', heads),
        input('gate_proj', heads, false),
        input('k_proj', keyValueHeads),
        input('v_proj', keyValueHeads),
      ],
      gate: 'sigmoid',
      out: linear(`${name}.o_proj`, heads * headDim, hidden, { bias }),
      queryNorm: norm('q_norm'),
      keyNorm: norm('k_norm'),
      ...(slides && { rotary: rotaryOf(block, config, headDim) }),
      window: windowAt(config, index, slides),
      heads,
      keyValueHeads,
      headDim,
    });
  },
  feedForward({ name: block, config, index }) {
    const name = `${block}.mlp`;
    if (index < config.num_dense_layers) return mlpOf(name, config);
    const { hidden_size: hidden, moe_intermediate_size: inner, num_experts: experts } = config;
    const activation = activationOf(config.hidden_act);
    return mixtureOfExperts(name, {
      router: router(`${name}.router.gate`, hidden, {
        experts,
        expertsPerToken: config.num_experts_per_tok,
        scoring: 'sigmoid',
        correction: param(`${name}.expert_bias`, [experts]),
        renormalised: { eps: RENORMALISE_EPS },
        scale: config.route_scale,
      }),
      experts: expertsOf(`${name}.experts`, {
        experts,
        stored: config.experts_stored,
        hidden,
        inner,
        activation,
      }),
      shared: jointExperts(`${name}.shared_experts`, config.num_shared_experts, {
        hidden,
        inner,
        activation,
      }),
    });
  },
});
