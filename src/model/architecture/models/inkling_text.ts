/**
 * Inkling (transformers 5.18, models/inkling): attention with learned biases of the distance, short convolutions behind
 * keys, values and both branches, and experts whose router scores the shared ones too. Described, not run.
 */

import * as z from 'zod';
import { asNumber } from '../../../base/values.js';
import { rmsNormLayer } from '../constructors/basic-layers.js';
import { described } from '../constructors/described-layer.js';
import { mixtureOfExperts, packedExperts } from '../constructors/feed-forward-layers.js';
import type { Layer } from '../layer.js';
import { buffer, MAX_LAYERS, param } from '../param.js';
import { type JsonObject, unreadEach } from '../transformer/config-keys.js';
import { decoder, separateMlp } from '../transformer/decoder-parts.js';
import { defineTransformer } from '../transformer/define-decoder.js';
import {
  describedRouter,
  product,
  shortConvolution,
  valueKeys,
} from '../transformer/described/parts.js';
import { expertRules, layerListRules } from '../transformer/rules.js';
import {
  activationOf,
  count,
  gateActivation,
  mixtureStored,
  mlpLayerTypes,
  normEpsilon,
  storedPrefix,
  transformerDocument,
} from '../transformer/settings.js';

const LAYERS = 66;
/** Without a list, one layer in this many has no window. */
const PERIOD = 6;

const schema = transformerDocument('inkling_text', {
  vocab_size: count(201_024, 'Rows of the embedding and of the head'),
  hidden_size: count(6144, 'Width of the residual stream'),
  intermediate_size: count(24_576, 'Width inside the dense networks'),
  moe_intermediate_size: count(3072, 'Width inside an expert'),
  num_hidden_layers: count(LAYERS, 'Number of blocks'),
  num_attention_heads: count(64, 'Query heads of the layers without a window'),
  num_key_value_heads: count(8, 'Key and value heads of these'),
  head_dim: count(128, 'Width of a head of these'),
  swa_num_attention_heads: count(64, 'Query heads of the layers with a window'),
  swa_num_key_value_heads: count(16, 'Key and value heads of these'),
  swa_head_dim: count(128, 'Width of a head of these'),
  sliding_window_size: count(512, 'How many keys a position sees in these'),
  d_rel: count(16, 'Values of a head that mix the biases of the distance'),
  rel_extent: count(1024, 'Distances with a bias, in the layers without a window'),
  layer_types: z
    .array(z.enum(['hybrid', 'hybrid_sliding']))
    .nullish()
    .describe('Which layers have the window'),
  mlp_layer_types: mlpLayerTypes,
  max_position_embeddings: count(131_072, 'Longest input, in tokens'),
  conv_kernel_size: count(4, 'Tokens that a convolution sees'),
  n_routed_experts: count(256, 'Experts to choose from'),
  num_experts_per_tok: count(6, 'Experts that a token goes to'),
  n_shared_experts: count(2, 'Experts for every token'),
  rms_norm_eps: normEpsilon(1e-6),
  hidden_act: gateActivation,
  stored_prefix: storedPrefix({ own: 'model.' }),
});

type Config = z.output<typeof schema>['model'];

/** Lists that the class derives. */
function listsIn(config: JsonObject): JsonObject {
  const layers = Math.min(asNumber(config.num_hidden_layers ?? LAYERS), MAX_LAYERS);
  const { layer_types: kinds, local_layer_ids: local, mlp_layer_types: networks } = config;
  const isLocal = (index: number) =>
    Array.isArray(local) ? local.includes(index) : (index + 1) % PERIOD !== 0;
  const each = <Kind>(kind: (index: number) => Kind) =>
    Array.from({ length: layers }, (_, at) => kind(at));
  const dense = asNumber(config.dense_mlp_idx ?? 0);
  return {
    ...(kinds == null && {
      layer_types: each((index) => (isLocal(index) ? 'hybrid_sliding' : 'hybrid')),
    }),
    ...(networks == null && {
      mlp_layer_types: each((index) => (index < dense ? 'dense' : 'sparse')),
    }),
    ...(config.dense_intermediate_size != null && {
      intermediate_size: config.dense_intermediate_size,
    }),
  };
}

const slides = ({ layer_types: kinds }: Config, index: number): boolean =>
  kinds ? kinds[index] === 'hybrid_sliding' : (index + 1) % PERIOD !== 0;

function distanceBiasedAttention(name: string, config: Config, index: number): Layer {
  const { hidden_size: hidden, d_rel: mixed, conv_kernel_size: kernel } = config;
  const isWindowed = slides(config, index);
  const [heads, keyHeads, width] = isWindowed
    ? [config.swa_num_attention_heads, config.swa_num_key_value_heads, config.swa_head_dim]
    : [config.num_attention_heads, config.num_key_value_heads, config.head_dim];
  const extent = isWindowed ? config.sliding_window_size : config.rel_extent;
  const norm = (leaf: string) => rmsNormLayer(`${name}.${leaf}`, width, config.rms_norm_eps);
  return described(name, {
    title: 'attention with learned biases of the distance',
    component: 'attention',
    parts: [
      product(`${name}.q_proj`, hidden, heads * width),
      product(`${name}.k_proj`, hidden, keyHeads * width),
      product(`${name}.v_proj`, hidden, keyHeads * width),
      product(`${name}.r_proj`, hidden, heads * mixed),
      product(`${name}.o_proj`, heads * width, hidden),
      convolutionOf(`${name}.k_sconv`, keyHeads * width, kernel),
      convolutionOf(`${name}.v_sconv`, keyHeads * width, kernel),
      norm('q_norm'),
      norm('k_norm'),
      described(`${name}.rel_logits_proj`, {
        title: 'biases of the distance',
        tensors: { proj: [mixed, extent] },
        output: heads * width,
      }),
    ],
    works: [
      {
        work: 'attention',
        heads,
        keyValueHeads: keyHeads,
        headDim: width,
        valueDim: width,
        window: isWindowed ? { rule: 'sliding', tokens: config.sliding_window_size } : undefined,
      },
    ],
    output: hidden,
  });
}

const convolutionOf = (name: string, channels: number, kernel: number): Layer =>
  described(name, {
    title: 'short convolution',
    parts: [shortConvolution(`${name}.conv1d`, channels, kernel, kernel)],
    output: channels,
  });

function networkAt(name: string, config: Config, index: number): Layer {
  const { hidden_size: hidden, moe_intermediate_size: inner, n_routed_experts: experts } = config;
  const { n_shared_experts: shared } = config;
  const activation = activationOf(config.hidden_act);
  const [gate, always] = [`${name}.gate`, `${name}.shared_experts`];
  if (config.mlp_layer_types?.[index] === 'dense') {
    return described(`${name}.scaled`, {
      title: 'network with a factor',
      component: 'feedForward',
      held: [param(`${name}.global_scale`, [1])],
      parts: [separateMlp(name, { hidden, inner: config.intermediate_size, activation })],
      output: hidden,
    });
  }
  return described(`${name}.all`, {
    title: 'routed and shared experts',
    component: 'feedForward',
    held: [param(`${gate}.global_scale`, [1])],
    parts: [
      mixtureOfExperts(name, {
        router: describedRouter(gate, {
          weight: param(`${gate}.weight`, [experts + shared, hidden]),
          correction: buffer(`${gate}.e_score_correction_bias`, [experts]),
          expertsPerToken: config.num_experts_per_tok,
        }),
        experts: packedExperts(`${name}.experts`, { experts, hidden, inner }, activation),
        // Those of the router that every token goes to.
        zeroExperts: shared,
      }),
      described(always, {
        title: 'shared experts',
        component: 'sharedExperts',
        tensors: {
          gate_proj: [shared, inner, hidden],
          up_proj: [shared, inner, hidden],
          down_proj: [shared, hidden, inner],
        },
        products: {
          gate_proj: [hidden, shared * inner],
          up_proj: [hidden, shared * inner],
          down_proj: [shared * inner, hidden],
        },
        output: hidden,
      }),
    ],
    output: hidden,
  });
}

export const inklingText = defineTransformer({
  title: 'Inkling, text only: attention with biases of the distance, experts; described, not run',
  architecture: 'mixture',
  schema,
  rules: [
    ...layerListRules('layer_types'),
    ...layerListRules('mlp_layer_types'),
    ...expertRules('n_routed_experts'),
  ],
  storedSettings: mixtureStored,
  huggingFace: {
    names: {
      sliding_window_size: ['sliding_window'],
      n_routed_experts: ['num_local_experts'],
      conv_kernel_size: ['sconv_kernel_size'],
      max_position_embeddings: ['model_max_length'],
    },
    more: listsIn,
    reads: ['local_layer_ids', 'dense_mlp_idx', 'dense_intermediate_size'],
    harmless: valueKeys(
      'log_scaling_n_floor',
      'log_scaling_alpha',
      'logits_mup_width_multiplier',
      'embedding_multiplier',
      'rms_norm_eps_moe_gate',
      'route_scale',
      'shared_expert_sink',
      'unpadded_vocab_size',
      'num_mtp_layers',
      'chain_hidden_post_norm',
      'mtp_hidden_states_first',
      'mtp_local_layer_ids',
      'number_of_conv_states',
    ),
    limited: unreadEach(['tie_word_embeddings'], [false], 'the class has a head of its own'),
  },
  build: ({ model: config }) =>
    decoder(
      { ...config, tie_word_embeddings: false },
      {
        embeddingSteps: [
          rmsNormLayer(
            `${config.stored_prefix}embed_tokens.embed_norm`,
            config.hidden_size,
            config.rms_norm_eps,
          ),
        ],
        norm: (name) => rmsNormLayer(name, config.hidden_size, config.rms_norm_eps),
        block(name, index) {
          const { hidden_size: hidden, conv_kernel_size: kernel, rms_norm_eps: eps } = config;
          return described(name, {
            title: 'block with short convolutions',
            parts: [
              distanceBiasedAttention(`${name}.self_attn`, config, index),
              networkAt(`${name}.mlp`, config, index),
              rmsNormLayer(`${name}.input_layernorm`, hidden, eps),
              rmsNormLayer(`${name}.post_attention_layernorm`, hidden, eps),
              convolutionOf(`${name}.attn_sconv`, hidden, kernel),
              convolutionOf(`${name}.mlp_sconv`, hidden, kernel),
            ],
            output: hidden,
          });
        },
      },
    ),
});
