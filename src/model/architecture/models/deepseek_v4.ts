/**
 * DeepSeek-V4 (transformers 5.18, models/deepseek_v4): attention to a window and to compressed keys, an indexer that
 * chooses among these, hyper-connections, and experts by token id in the first layers. Described, not run.
 */

import * as z from 'zod';
import { asNumber, asText } from '../../../base/values.js';
import { linear, rmsNormLayer } from '../constructors/basic-layers.js';
import { described } from '../constructors/described-layer.js';
import { mixtureOfExperts } from '../constructors/feed-forward-layers.js';
import { defineRules, type NameOnLoad } from '../family.js';
import type { DescribedWork, Layer, Window } from '../layer.js';
import { buffer, MAX_LAYERS, param } from '../param.js';
import { type JsonObject, unreadEach } from '../transformer/config-keys.js';
import { decoder, expertsOf, separateMlp } from '../transformer/decoder-parts.js';
import { predictionSettings } from '../transformer/deepseek.js';
import { defineTransformer } from '../transformer/define-decoder.js';
import {
  describedRouter,
  hyperConnection,
  normOfStreams,
  product,
  ROTARY_VALUES,
  splitStreams,
  valueKeys,
} from '../transformer/described/parts.js';
import { expertRules, layerListRules } from '../transformer/rules.js';
import {
  activationOf,
  count,
  expertsStored,
  gateActivation,
  mixtureStored,
  mlpBias,
  normEpsilon,
  storedPrefix,
  tiedHead,
  transformerDocument,
} from '../transformer/settings.js';

const [WINDOW, SPARSE, HEAVY] = [
  'sliding_attention',
  'compressed_sparse_attention',
  'heavily_compressed_attention',
] as const;

const LAYERS = 43;
/** First layers whose experts follow from the token id. */
const HASHED = 3;
const RATES = { [SPARSE]: 4, [HEAVY]: 128 } as const;

const schema = transformerDocument('deepseek_v4', {
  vocab_size: count(129_280, 'Rows of the embedding and of the head'),
  hidden_size: count(4096, 'Width of each residual stream'),
  moe_intermediate_size: count(2048, 'Width inside an expert'),
  num_hidden_layers: count(LAYERS, 'Number of blocks'),
  num_attention_heads: count(64, 'Query heads, which share one key and value'),
  head_dim: count(512, 'Width of a head'),
  q_lora_rank: count(1024, 'Rank of the queries'),
  num_experts_per_tok: count(6, 'Experts that a token goes to'),
  n_routed_experts: count(256, 'Experts to choose from'),
  max_position_embeddings: count(1_048_576, 'Longest input, in tokens'),
  layer_types: z
    .array(z.enum([WINDOW, SPARSE, HEAVY]))
    .nullish()
    .describe('Kind of attention of each layer; default: as in V4-Pro'),
  compress_rates: z
    .strictObject({
      [SPARSE]: count(RATES[SPARSE], 'Tokens of a compressed key, with an indexer'),
      [HEAVY]: count(RATES[HEAVY], 'Tokens of a compressed key, without one'),
    })
    .default(RATES)
    .describe('Tokens of a compressed key by the kind of attention'),
  hc_mult: count(4, 'Residual streams'),
  mlp_layer_types: z
    .array(z.enum(['hash_moe', 'moe']))
    .nullish()
    .describe('Layers whose experts follow from the token id: hash_moe; default: the first three'),
  sliding_window: count(128, 'How many keys a position sees uncompressed, its own included'),
  o_groups: count(8, 'Groups of heads in the product out of attention'),
  o_lora_rank: count(1024, 'Width of each of these groups'),
  index_n_heads: count(64, 'Heads of the indexer'),
  index_head_dim: count(128, "Width of the indexer's heads"),
  index_topk: count(512, 'Compressed keys that a query sees at most'),
  rms_norm_eps: normEpsilon(1e-6),
  hidden_act: gateActivation,
  mlp_bias: mlpBias,
  experts_stored: expertsStored,
  stored_prefix: storedPrefix({ own: 'model.' }),
  tie_word_embeddings: tiedHead(false),
  ...predictionSettings,
});

type Config = z.output<typeof schema>['model'];

const APART = { cached: undefined } as const;

const OF_RATIO: Readonly<Record<string, string>> = { 0: WINDOW, 4: SPARSE, 128: HEAVY };

/** Lists that the class derives, from the keys of published files where these have them. */
function listsIn(config: JsonObject): JsonObject {
  const layers = Math.min(asNumber(config.num_hidden_layers ?? LAYERS), MAX_LAYERS);
  const { layer_types: kinds, compress_ratios: ratios, mlp_layer_types: networks } = config;
  const cut = (list: unknown): unknown => (Array.isArray(list) ? list.slice(0, layers) : list);
  const rates = {
    ...RATES,
    ...(config.compress_rates as object | null | undefined),
    ...(config.compress_rate_csa != null && { [SPARSE]: config.compress_rate_csa }),
    ...(config.compress_rate_hca != null && { [HEAVY]: config.compress_rate_hca }),
  };
  const ofRatios = Array.isArray(ratios)
    ? ratios.map((ratio) => OF_RATIO[asText(ratio)] ?? ratio)
    : undefined;
  const hashed = asNumber(config.num_hash_layers ?? HASHED);
  return {
    layer_types: cut(kinds ?? ofRatios),
    compress_rates: rates,
    mlp_layer_types:
      cut(networks) ??
      Array.from({ length: layers }, (_, index) => (index < hashed ? 'hash_moe' : 'moe')),
  };
}

const kindAt = ({ layer_types: kinds }: Config, index: number) =>
  kinds ? kinds[index] : index < 2 || index % 2 === 0 ? HEAVY : SPARSE;

const isHashed = ({ mlp_layer_types: kinds }: Config, index: number): boolean =>
  kinds ? kinds[index] === 'hash_moe' : index < HASHED;

/** Values that a compressor keeps of tokens whose entry is not complete, at most, and of the entry before. */
const buffered = (width: number, rate: number, overlaps: boolean): DescribedWork[] => [
  {
    work: 'buffer',
    channels: 2 * (overlaps ? 2 : 1) * width,
    tokens: rate - 1,
    macs: 1,
  },
  ...(overlaps ? [{ work: 'buffer', channels: 2 * width, tokens: rate, macs: 0 } as const] : []),
];

/** Keys and gates of `rate` tokens become one entry; with an overlap, each token takes part in two. */
function compressor(
  name: string,
  config: Config,
  { width, rate, overlaps }: { width: number; rate: number; overlaps: boolean },
  parts: readonly Layer[] = [],
): Layer {
  const { hidden_size: hidden, rms_norm_eps: eps } = config;
  const columns = (overlaps ? 2 : 1) * width;
  return described(name, {
    title: 'compressor of keys',
    tensors: { position_bias: [rate, columns] },
    parts: [
      product(`${name}.kv_proj`, hidden, columns),
      product(`${name}.gate_proj`, hidden, columns),
      rmsNormLayer(`${name}.kv_norm`, width, eps),
      ...parts,
    ],
    works: buffered(width, rate, overlaps),
    output: width,
  });
}

function indexer(name: string, config: Config, window: Window): Layer {
  const { index_n_heads: heads, index_head_dim: width, hidden_size: hidden } = config;
  const entries = compressor(name, config, { width, rate: window.tokens, overlaps: true }, [
    product(`${name}.q_b_proj`, config.q_lora_rank, heads * width),
    product(`${name}.scorer.weights_proj`, hidden, heads),
  ]);
  return described(`${name}.scores`, {
    title: 'indexer of compressed keys',
    component: 'indexer',
    parts: [entries],
    works: [{ work: 'index', heads, headDim: width, window }],
    output: heads,
  });
}

function compressedAttention(name: string, config: Config, index: number): Layer {
  const { hidden_size: hidden, num_attention_heads: heads, head_dim: width } = config;
  const { o_groups: groups, o_lora_rank: rank, rms_norm_eps: eps } = config;
  const kind = kindAt(config, index);
  const core = { work: 'attention', heads, keyValueHeads: 1, headDim: width, valueDim: width };
  const seen = (window: Window): DescribedWork =>
    ({ ...core, window, cached: width }) as DescribedWork;
  const rate = kind === SPARSE || kind === HEAVY ? config.compress_rates[kind] : 0;
  const compressed: Window = { rule: 'compressed', tokens: rate };
  const path = `${name}.compressor`;
  const out = linear(`${name}.o_a_proj`, Math.floor((heads * width) / groups), groups * rank, {
    bias: false,
  });
  return described(name, {
    title: 'compressed attention',
    component: 'attention',
    tensors: { sinks: [heads] },
    parts: [
      product(`${name}.q_a_proj`, hidden, config.q_lora_rank),
      rmsNormLayer(`${name}.q_a_norm`, config.q_lora_rank, eps),
      product(`${name}.q_b_proj`, config.q_lora_rank, heads * width),
      product(`${name}.kv_proj`, hidden, width),
      rmsNormLayer(`${name}.kv_norm`, width, eps),
      // Each group of heads has its rows: a multiply-accumulate for each element.
      out,
      product(`${name}.o_b_proj`, groups * rank, hidden),
      ...(rate > 0
        ? [
            compressor(
              path,
              config,
              { width, rate, overlaps: kind === SPARSE },
              kind === SPARSE ? [indexer(`${path}.indexer`, config, compressed)] : [],
            ),
          ]
        : []),
    ],
    works: [
      // The cache of a layer without compressed keys holds keys and values apart, though they are the same.
      { ...seen({ rule: 'sliding', tokens: config.sliding_window }), ...(rate === 0 && APART) },
      ...(rate > 0 ? [seen(compressed)] : []),
    ],
    output: hidden,
  });
}

function expertsAt(name: string, config: Config, index: number): Layer {
  const { hidden_size: hidden, moe_intermediate_size: inner, n_routed_experts: experts } = config;
  const { num_experts_per_tok: chosen } = config;
  const activation = activationOf(config.hidden_act);
  const gate = `${name}.gate`;
  const sizes = { hidden, inner, activation };
  return mixtureOfExperts(name, {
    router: describedRouter(gate, {
      weight: param(`${gate}.weight`, [experts, hidden]),
      expertsPerToken: chosen,
      ...(isHashed(config, index)
        ? { table: buffer(`${gate}.tid2eid`, [config.vocab_size, chosen], { isInteger: true }) }
        : { correction: buffer(`${gate}.e_score_correction_bias`, [experts]) }),
    }),
    experts: expertsOf(`${name}.experts`, { ...sizes, experts, stored: config.experts_stored }),
    shared: [
      separateMlp(`${name}.shared_experts`, {
        ...sizes,
        bias: config.mlp_bias,
        component: 'sharedExperts',
      }),
    ],
  });
}

/** Names in files of DeepSeek; transformers 5.18, conversion_mapping.py. */
const NAMES_ON_LOAD: readonly NameOnLoad[] = [
  [/\.attn\./, '.self_attn.'],
  [/\.ffn\./, '.mlp.'],
  [/\.indexer\.compressor\./, '.compressor.indexer.'],
  [/^embed\.weight$/, 'embed_tokens.weight'],
  [/^head\.weight$/, 'lm_head.weight'],
  [/^hc_head_(fn|base|scale)$/, 'hc_head.hc_$1'],
  [/\.attn_norm\./, '.input_layernorm.'],
  [/\.ffn_norm\./, '.post_attention_layernorm.'],
  [/\.hc_(attn|ffn)_(fn|base|scale)$/, '.$1_hc.$2'],
  [/\.attn_sink$/, '.sinks'],
  [/\.indexer\.weights_proj\./, '.compressor.indexer.scorer.weights_proj.'],
  [/\.indexer\.wq_b\./, '.compressor.indexer.q_b_proj.'],
  [/(?<=\.(?:self_attn|compressor|indexer))\.norm\./, '.kv_norm.'],
  [/\.ape$/, '.position_bias'],
  [/\.wq_a\./, '.q_a_proj.'],
  [/\.self_attn\.wq_b\./, '.self_attn.q_b_proj.'],
  [/\.wkv\./, '.kv_proj.'],
  [/\.wgate\./, '.gate_proj.'],
  [/\.wo_([ab])\./, '.o_$1_proj.'],
  [/\.q_norm\./, '.q_a_norm.'],
  [/\.gate\.bias$/, '.gate.e_score_correction_bias'],
  [/(\.(?:shared_experts|experts\.\d+))\.w1\./, '$1.gate_proj.'],
  [/(\.(?:shared_experts|experts\.\d+))\.w2\./, '$1.down_proj.'],
  [/(\.(?:shared_experts|experts\.\d+))\.w3\./, '$1.up_proj.'],
];

export const deepseekV4 = defineTransformer({
  title: 'DeepSeek-V4: compressed attention, hyper-connections, experts; described, not run',
  architecture: 'mixture',
  schema,
  rules: [
    ...expertRules('n_routed_experts'),
    ...layerListRules('layer_types'),
    ...layerListRules('mlp_layer_types'),
    ...defineRules<{ readonly model: Config }>([
      {
        severity: 'error',
        reads: ['model.o_groups', 'model.num_attention_heads', 'model.head_dim'],
        check: ({ model: { o_groups: groups, num_attention_heads: heads, head_dim: width } }) =>
          (heads * width) % groups === 0
            ? undefined
            : {
                message: `${groups} groups do not divide the ${heads * width} values of all heads`,
                suggestion: 'write a divisor of num_attention_heads',
              },
      },
    ]),
  ],
  predictionLayers: ({ model }) => model.num_nextn_predict_layers ?? 0,
  storedSettings: mixtureStored,
  namesOnLoad: () => NAMES_ON_LOAD,
  huggingFace: {
    names: {
      n_routed_experts: ['num_local_experts'],
      moe_intermediate_size: ['intermediate_size'],
    },
    more: listsIn,
    reads: ['compress_ratios', 'compress_rate_csa', 'compress_rate_hca', 'num_hash_layers'],
    harmless: {
      ...ROTARY_VALUES,
      ...valueKeys(
        'scoring_func',
        'norm_topk_prob',
        'routed_scaling_factor',
        'hc_sinkhorn_iters',
        'hc_eps',
        'swiglu_limit',
        'compress_rope_theta',
        'qk_rope_head_dim',
      ),
    },
    limited: {
      ...unreadEach(['num_key_value_heads', 'n_shared_experts'], [1], 'there is one, always'),
      ...unreadEach(['attention_bias'], [false]),
    },
  },
  build({ model: config }) {
    const { hidden_size: hidden, hc_mult: streams, stored_prefix: prefix } = config;
    const sizes = { hidden, streams };
    const norm = (name: string) => rmsNormLayer(name, hidden, config.rms_norm_eps);
    const joined = (2 + streams) * streams;
    return decoder(config, {
      embeddingSteps: [splitStreams(sizes)],
      block: (name, index) =>
        described(name, {
          title: 'block with hyper-connections',
          parts: [
            compressedAttention(`${name}.self_attn`, config, index),
            expertsAt(`${name}.mlp`, config, index),
            norm(`${name}.input_layernorm`),
            norm(`${name}.post_attention_layernorm`),
            hyperConnection(`${name}.attn_hc`, sizes, joined, 3),
            hyperConnection(`${name}.ffn_hc`, sizes, joined, 3),
          ],
          output: streams * hidden,
        }),
      norm: (name) => normOfStreams(name, `${prefix}hc_head`, sizes, config.rms_norm_eps),
    });
  },
});
