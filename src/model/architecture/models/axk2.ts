/**
 * A.X K2 (transformers 5.18, models/axk2): latent attention with an indexer, a gate that the queries' product gives
 * too, and norms with a gate of a low rank. Described, not run.
 */

import type * as z from 'zod';
import { asNumber } from '../../../base/values.js';
import { rmsNormLayer } from '../constructors/basic-layers.js';
import { described } from '../constructors/described-layer.js';
import type { NameOnLoad } from '../family.js';
import type { Layer } from '../layer.js';
import { MAX_LAYERS } from '../param.js';
import { type JsonObject, unreadEach } from '../transformer/config-keys.js';
import { decoder, separateMlp } from '../transformer/decoder-parts.js';
import { routedRules } from '../transformer/deepseek.js';
import { defineTransformer } from '../transformer/define-decoder.js';
import {
  correctedExperts,
  indexedLatent,
  indexerParts,
  latentParts,
} from '../transformer/described/latent.js';
import { product, ROTARY_VALUES, valueKeys } from '../transformer/described/parts.js';
import { expertRules, layerListRules } from '../transformer/rules.js';
import {
  activationOf,
  attentionBias,
  count,
  expertsStored,
  gateActivation,
  mixtureStored,
  mlpLayerTypes,
  normEpsilon,
  positiveInteger,
  storedPrefix,
  tiedHead,
  transformerDocument,
} from '../transformer/settings.js';

const LAYERS = 48;

const schema = transformerDocument('axk2', {
  vocab_size: count(163_840, 'Rows of the embedding and of the head'),
  hidden_size: count(2048, 'Width of the residual stream'),
  intermediate_size: count(5120, 'Width inside the dense networks'),
  moe_intermediate_size: count(512, 'Width inside an expert'),
  num_hidden_layers: count(LAYERS, 'Number of blocks'),
  num_attention_heads: count(32, 'Query heads'),
  n_shared_experts: count(1, 'Experts for every token, as one network of their joint width'),
  n_routed_experts: count(128, 'Experts to choose from'),
  num_experts_per_tok: count(8, 'Experts that a token goes to'),
  n_group: positiveInteger.nullable().default(null).describe('Groups of experts'),
  topk_group: positiveInteger.nullable().default(null).describe('Groups that are kept'),
  kv_lora_rank: count(128, 'Width of the latent of which keys and values are made'),
  q_lora_rank: count(384, 'Rank of the queries'),
  qk_rope_head_dim: count(32, 'Dimensions of a head that are rotated'),
  qk_nope_head_dim: count(64, 'Dimensions of a head that are not'),
  v_head_dim: count(64, "Width of a head's value"),
  max_position_embeddings: count(131_072, 'Longest input, in tokens'),
  mlp_layer_types: mlpLayerTypes,
  index_topk: count(2048, 'Keys that a query sees at most'),
  index_head_dim: count(128, "Width of the indexer's heads"),
  index_n_heads: count(16, 'Heads of the indexer'),
  gated_norm_rank: count(16, 'Rank of the gates of the norms'),
  rms_norm_eps: normEpsilon(1e-6),
  hidden_act: gateActivation,
  attention_bias: attentionBias,
  experts_stored: expertsStored,
  stored_prefix: storedPrefix({ own: 'model.' }),
  tie_word_embeddings: tiedHead(false),
});

type Config = z.output<typeof schema>['model'];

/** Kinds of the networks, from the keys of older files. */
function networksIn(config: JsonObject): JsonObject {
  const { mlp_layer_types: kinds, first_k_dense_replace: dense, moe_layer_freq: step } = config;
  if (kinds != null) return {};
  const layers = Math.min(asNumber(config.num_hidden_layers ?? LAYERS), MAX_LAYERS);
  return {
    mlp_layer_types: Array.from({ length: layers }, (_, index) =>
      index >= asNumber(dense ?? 1) && index % asNumber(step ?? 1) === 0 ? 'sparse' : 'dense',
    ),
  };
}

const isSparse = ({ mlp_layer_types: kinds }: Config, index: number): boolean =>
  kinds ? kinds[index] === 'sparse' : index >= 1;

/** norm(x) · σ(fc2(silu(fc1(norm(x))))). */
const gatedNorm = (name: string, config: Config): Layer =>
  described(name, {
    title: 'norm with a gate',
    component: 'norm',
    parts: [
      rmsNormLayer(`${name}.norm`, config.hidden_size, config.rms_norm_eps),
      product(`${name}.mlp.fc1`, config.hidden_size, config.gated_norm_rank),
      product(`${name}.mlp.fc2`, config.gated_norm_rank, config.hidden_size),
    ],
    output: config.hidden_size,
  });

function gatedLatentAttention(name: string, config: Config): Layer {
  const { num_attention_heads: heads, q_lora_rank: rank, v_head_dim: valueDim } = config;
  const width = config.qk_nope_head_dim + config.qk_rope_head_dim + valueDim;
  const [queryDown, queryNorm, , ...others] = latentParts(name, config);
  return indexedLatent(name, config, 'latent attention with an indexer and a gate', [
    queryDown,
    queryNorm,
    product(`${name}.q_gate_proj`, 2 * rank, heads * width),
    ...others,
    indexerParts(`${name}.indexer`, config),
  ]);
}

/** Names in files of SKT; transformers 5.18, conversion_mapping.py. */
const NAMES_ON_LOAD: readonly NameOnLoad[] = [
  [/W_down/, 'mlp.fc1'],
  [/W_up/, 'mlp.fc2'],
  [/self_attn\.q_b_proj\./, 'self_attn.q_gate_proj.'],
];

export const axk2 = defineTransformer({
  title: 'A.X K2: latent attention with an indexer, gated norms, experts; described, not run',
  architecture: 'mixture',
  schema,
  rules: [
    ...layerListRules('mlp_layer_types'),
    ...expertRules('n_routed_experts'),
    ...routedRules('n_routed_experts'),
  ],
  storedSettings: mixtureStored,
  namesOnLoad: () => NAMES_ON_LOAD,
  huggingFace: {
    names: { n_routed_experts: ['num_local_experts'] },
    more: networksIn,
    reads: ['first_k_dense_replace', 'moe_layer_freq'],
    harmless: {
      ...ROTARY_VALUES,
      ...valueKeys('routed_scaling_factor', 'norm_topk_prob', 'layer_types'),
    },
    limited: unreadEach(
      ['num_key_value_heads', 'head_dim', 'qk_head_dim', 'mlp_bias'],
      () => true,
      'it follows from other keys',
    ),
  },
  build: ({ model: config }) =>
    decoder(config, {
      norm: (name) => rmsNormLayer(name, config.hidden_size, config.rms_norm_eps),
      block(name, index) {
        const isRouted = isSparse(config, index);
        const sizes = {
          hidden: config.hidden_size,
          activation: activationOf(config.hidden_act),
        };
        const after = `${name}.post_attention_layernorm`;
        return described(name, {
          title: 'block with gated norms',
          parts: [
            gatedLatentAttention(`${name}.self_attn`, config),
            isRouted
              ? correctedExperts(`${name}.mlp`, config)
              : separateMlp(`${name}.mlp`, { ...sizes, inner: config.intermediate_size }),
            gatedNorm(`${name}.input_layernorm`, config),
            isRouted
              ? gatedNorm(after, config)
              : rmsNormLayer(after, config.hidden_size, config.rms_norm_eps),
          ],
          output: config.hidden_size,
        });
      },
    }),
});
