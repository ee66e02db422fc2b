/** GLM-5: DeepSeek-V3.2 whose layers can take the keys that an earlier layer chose (arXiv 2603.12201). */

import * as z from 'zod';
import { asNumber } from '../../../base/values.js';
import { defineRules } from '../family.js';
import type { LatentAttention } from '../layer.js';
import { MAX_LAYERS } from '../param.js';
import { type JsonObject, unreadBut } from '../transformer/config-keys.js';
import {
  BEST_TWO_RULES,
  correctedRouting,
  deepseekAttention,
  deepseekFeedForward,
  falseForNull,
  LATENT_RULES,
  latentKeys,
  latentSettings,
  predictionSettings,
  predictionTensors,
  ROUTED_RULES,
  routedSettings,
} from '../transformer/deepseek.js';
import { defineDecoder } from '../transformer/define-decoder.js';
import { ROTARY_BUFFERS } from '../transformer/ignored-tensors.js';
import { layerListRules } from '../transformer/rules.js';
import { mlpLayerTypes, positiveInteger, transformerDocument } from '../transformer/settings.js';
import {
  INDEXER_RULES,
  indexedKeys,
  indexerSettings,
  tokenIndexerOf,
} from '../transformer/token-indexer.js';

/** Dimensions of a head that are not rotated. */
const STILL = 192;

const LAYERS = 78;

const schema = transformerDocument('glm_moe_dsa', {
  ...latentSettings({
    latent: { q_lora_rank: 2048, kv_lora_rank: 512, qk_nope_head_dim: STILL, v_head_dim: 256 },
    sizes: {
      vocab_size: 154_880,
      hidden_size: 6144,
      intermediate_size: 12_288,
      num_hidden_layers: LAYERS,
      num_attention_heads: 64,
      max_position_embeddings: 202_752,
      rms_norm_eps: 1e-5,
    },
  }),
  q_lora_rank: positiveInteger.default(2048).describe('Rank of the queries'),
  ...routedSettings({
    moe_intermediate_size: 2048,
    n_routed_experts: 256,
    n_shared_experts: 1,
    num_experts_per_tok: 8,
    first_k_dense_replace: 3,
    routed_scaling_factor: 2.5,
    norm_topk_prob: true,
    n_group: 1,
    topk_group: 1,
  }),
  mlp_layer_types: mlpLayerTypes,
  ...indexerSettings({ index_topk: 2048, index_head_dim: 128, index_n_heads: 32 }),
  indexer_types: z
    .array(z.enum(['full', 'shared']))
    .nullish()
    .describe('Which layers have an indexer: full, or take the keys of the last that has: shared'),
  ...predictionSettings,
});

type Config = z.output<typeof schema>['model'];

const OF_LETTERS: Readonly<Record<string, string>> = { F: 'full', S: 'shared' };

/** Kinds of the layers, from the list, a pattern, or a period and an offset, as the class derives them. */
function indexerTypesIn(config: JsonObject): JsonObject {
  const { indexer_types: types, index_topk_pattern: pattern, num_hidden_layers } = config;
  if (types != null) return {};
  if (pattern != null) {
    const kinds =
      typeof pattern === 'string' ? [...pattern].map((c) => OF_LETTERS[c] ?? c) : pattern;
    return { indexer_types: kinds };
  }
  const period = Math.max(asNumber(config.index_topk_freq ?? 1), 1);
  if (period === 1) return {};
  const offset = asNumber(config.index_skip_topk_offset ?? 2);
  // More layers are refused as such.
  const layers = Math.min(asNumber(num_hidden_layers ?? LAYERS), MAX_LAYERS);
  return {
    indexer_types: Array.from({ length: layers }, (_, index) =>
      Math.max(index - offset + 1, 0) % period === 0 ? 'full' : 'shared',
    ),
  };
}

/** The layer's own indexer, or the nearest one before it. */
function selectionAt(
  block: string,
  index: number,
  config: Config,
): NonNullable<LatentAttention['selection']> {
  const kinds = config.indexer_types;
  const path = (at: number) => `${config.stored_prefix}layers.${at}.self_attn`;
  const source = kinds?.[index] === 'shared' ? kinds.lastIndexOf('full', index) : index;
  return source === index
    ? tokenIndexerOf(`${block}.self_attn.indexer`, config, 'neighbours')
    : { from: path(source) };
}

export const glmMoeDsa = defineDecoder({
  title: 'GLM-5: latent attention with indexers, corrected experts',
  architecture: 'mixture',
  schema,
  headRules: [...LATENT_RULES, ...ROUTED_RULES],
  rules: [
    ...BEST_TWO_RULES,
    ...INDEXER_RULES,
    ...layerListRules('indexer_types'),
    ...defineRules<{ readonly model: Pick<Config, 'indexer_types'> }>([
      {
        severity: 'error',
        reads: ['model.indexer_types'],
        check: ({ model: { indexer_types: kinds } }) =>
          kinds?.[0] === 'shared'
            ? {
                message: 'the first layer takes the keys of an earlier one, and there is none',
                suggestion: 'write full as the first entry of indexer_types',
              }
            : undefined,
      },
    ]),
  ],
  dimensions: null,
  predictionLayers: ({ model }) => model.num_nextn_predict_layers ?? 0,
  huggingFace: {
    names: {
      n_routed_experts: ['num_experts', 'num_local_experts'],
      num_nextn_predict_layers: ['num_mtp_layers'],
    },
    more: (config) => ({ ...falseForNull(config), ...indexerTypesIn(config) }),
    reads: ['index_topk_pattern', 'index_topk_freq', 'index_skip_topk_offset'],
    limited: {
      ...latentKeys(STILL),
      ...indexedKeys(),
      indexer_rope_interleave: unreadBut([true], 'neighbours are always rotated together'),
    },
  },
  ignoredOnLoad: ['model\\.layers\\.78.*', ROTARY_BUFFERS],
  ignored: ({ model }) => predictionTensors(model),
  attentionLayer: ({ name, index, config }) =>
    deepseekAttention(`${name}.self_attn`, config, 'neighbours', {
      selection: selectionAt(name, index, config),
    }),
  feedForward: ({ name, index, config }) =>
    deepseekFeedForward(`${name}.mlp`, index, config, { routing: correctedRouting(config) }),
});
