/**
 * Qwen4-Exp, the text part (transformers 5.18, models/qwen4_exp): gated DeltaNet and attention with an indexer of blocks,
 * residual streams joined by gates, experts, and tables of n-grams. Described, not run.
 */

import * as z from 'zod';
import { asNumber } from '../../../base/values.js';
import { linear, rmsNormLayer, sequence } from '../constructors/basic-layers.js';
import { described } from '../constructors/described-layer.js';
import { mixtureOfExperts, router } from '../constructors/feed-forward-layers.js';
import { defineRules } from '../family.js';
import type { Layer } from '../layer.js';
import { buffer, MAX_LAYERS } from '../param.js';
import { type JsonObject, unreadEach } from '../transformer/config-keys.js';
import { decoder, expertsOf, separateMlp } from '../transformer/decoder-parts.js';
import { defineTransformer } from '../transformer/define-decoder.js';
import { ngramRows } from '../transformer/described/ngram-tables.js';
import {
  product,
  ROTARY_VALUES,
  shortConvolution,
  splitStreams,
  valueKeys,
} from '../transformer/described/parts.js';
import { deltaNet, IMAGE_KEYS } from '../transformer/gated-delta.js';
import { PREDICTING, SEEING } from '../transformer/ignored-tensors.js';
import { expertRules, keyHeadsDivide, layerListRules } from '../transformer/rules.js';
import {
  activationOf,
  attentionBias,
  count,
  expertsStored,
  gateActivation,
  mixtureStored,
  normEpsilon,
  positiveInteger,
  storedPrefix,
  tiedHead,
  toggle,
  transformerDocument,
} from '../transformer/settings.js';
import { qwen35Inputs } from './qwen3_5_text.js';

const LAYERS = 40;

const optional = (meaning: string) => positiveInteger.nullable().default(null).describe(meaning);

const schema = transformerDocument('qwen4_exp_text', {
  vocab_size: count(248_320, 'Rows of the embedding and of the head'),
  hidden_size: count(2048, 'Width of each residual stream'),
  num_hidden_layers: count(LAYERS, 'Number of blocks'),
  num_attention_heads: count(16, 'Query heads'),
  num_key_value_heads: count(2, 'Key and value heads, a divisor of the query heads'),
  head_dim: count(256, 'Width of a head'),
  max_position_embeddings: count(32_768, 'Longest input, in tokens'),
  layer_types: z
    .array(z.enum(['linear_attention', 'indexed_attention']))
    .nullish()
    .describe('Which layers have attention; the others have gated DeltaNet'),
  linear_conv_kernel_dim: count(4, 'Tokens that the convolution of gated DeltaNet sees'),
  linear_key_head_dim: count(128, 'Width of a query or key of gated DeltaNet'),
  linear_value_head_dim: count(128, 'Width of a value of gated DeltaNet'),
  linear_num_key_heads: count(16, 'Query and key heads of gated DeltaNet'),
  linear_num_value_heads: count(32, 'Value heads of gated DeltaNet'),
  moe_intermediate_size: count(512, 'Width inside an expert'),
  shared_expert_intermediate_size: count(512, 'Width inside the shared expert'),
  num_experts: count(512, 'Experts to choose from'),
  num_experts_per_tok: count(10, 'Experts that a token goes to'),
  norm_topk_prob: toggle(true, 'Weights of the chosen experts sum to one'),
  hc_count: z.int().min(2).default(4).describe('Residual streams'),
  hc_lowrank: count(320, 'Rank of the gates that join the streams'),
  ple_layer_ids: z.array(z.int().min(1)).default([]).describe('Layers with n-grams, from 1'),
  ple_embed_dim: optional('Width of the embedding of n-grams; null: hidden_size'),
  ple_conv_kernel_size: count(4, 'Tokens that the convolution of n-grams sees'),
  ngram_size: z.int().min(2).default(3).describe('Longest n-gram'),
  heads_per_ngram: count(8, 'Hash functions of each length'),
  ngram_vocab_size_base: count(20_000_000, 'Least rows of the table of a hash function'),
  make_ngram_vocab_size_divisible_by: count(128, 'Divisor of the rows of all tables'),
  indexer_n_heads: optional('Heads of the indexer; the class needs it'),
  indexer_kv_heads: optional('Keys of the indexer: 1'),
  indexer_head_dim: optional("Width of the indexer's heads"),
  indexer_budget: optional('Keys that a query sees at most'),
  indexer_compress_ratio: optional('Keys of a block'),
  rms_norm_eps: normEpsilon(1e-6),
  hidden_act: gateActivation,
  attention_bias: attentionBias,
  experts_stored: expertsStored,
  stored_prefix: storedPrefix({ own: 'model.' }),
  tie_word_embeddings: tiedHead(false),
});

type Config = z.output<typeof schema>['model'];

/** The list of kinds with the class's names, and n-gram layers in order. */
function listsIn(config: JsonObject): JsonObject {
  const { layer_types: kinds, full_attention_interval: interval, ple_layer_ids: ngrams } = config;
  const layers = Math.min(asNumber(config.num_hidden_layers ?? LAYERS), MAX_LAYERS);
  return {
    layer_types: Array.isArray(kinds)
      ? kinds.map((kind) => (kind === 'full_attention' ? 'indexed_attention' : kind))
      : Array.from({ length: layers }, (_, index) =>
          (index + 1) % asNumber(interval ?? 4) ? 'linear_attention' : 'indexed_attention',
        ),
    ...(Array.isArray(ngrams) && { ple_layer_ids: [...new Set(ngrams)].sort((a, b) => a - b) }),
  };
}

const attends = ({ layer_types: kinds }: Config, index: number): boolean =>
  kinds ? kinds[index] === 'indexed_attention' : (index + 1) % 4 === 0;

function blockIndexedAttention(name: string, config: Config): Layer {
  const { hidden_size: hidden, num_attention_heads: heads, head_dim: width } = config;
  const { num_key_value_heads: keyHeads, attention_bias: bias, rms_norm_eps: eps } = config;
  const { indexer_n_heads: indexHeads, indexer_head_dim: indexWidth } = config;
  const [choosers, chosen] = [indexHeads ?? 1, indexWidth ?? 1];
  const indexer = `${name}.indexer`;
  return described(name, {
    title: 'attention with an indexer of blocks',
    component: 'attention',
    parts: [
      product(`${name}.q_proj`, hidden, 2 * heads * width, { bias }),
      product(`${name}.k_proj`, hidden, keyHeads * width, { bias }),
      product(`${name}.v_proj`, hidden, keyHeads * width, { bias }),
      product(`${name}.o_proj`, heads * width, hidden, { bias }),
      rmsNormLayer(`${name}.q_norm`, width, eps, 1),
      rmsNormLayer(`${name}.k_norm`, width, eps, 1),
      described(indexer, {
        title: 'indexer of blocks',
        component: 'indexer',
        parts: [
          product(`${indexer}.index_qk_proj`, hidden, (choosers + 1) * chosen),
          rmsNormLayer(`${indexer}.q_layernorm`, chosen, eps, 1),
          rmsNormLayer(`${indexer}.k_layernorm`, chosen, eps, 1),
        ],
        works: [{ work: 'index', heads: choosers, headDim: chosen }],
        output: choosers,
      }),
    ],
    works: [{ work: 'attention', heads, keyValueHeads: keyHeads, headDim: width, valueDim: width }],
    output: hidden,
  });
}

/** Gates that join the streams, and the weights that spread the output of a branch over them. */
function gatedResidual(name: string, config: Config, combines: boolean): Layer {
  const { hidden_size: hidden, hc_count: streams, hc_lowrank: rank } = config;
  const all = streams * hidden;
  return described(name, {
    title: 'gates of the residual streams',
    component: 'other',
    parts: [
      rmsNormLayer(`${name}.hc_norm`, all, config.rms_norm_eps, 1),
      product(`${name}.input_mix_weight_down`, all, rank),
      product(`${name}.input_mix_weight_up`, rank, all),
      ...(combines ? [product(`${name}.block_inject_weight`, all, streams)] : []),
    ],
    output: hidden,
  });
}

function ngramLayer(name: string, config: Config, place: number): Layer {
  const { hidden_size: hidden, hc_count: streams, ngram_size: size } = config;
  const { heads_per_ngram: perLength, ple_conv_kernel_size: kernel } = config;
  const [all, width] = [streams * hidden, config.ple_embed_dim ?? hidden];
  const heads = (size - 1) * perLength;
  const table = `${name}.ple_embedding`;
  const norm = (leaf: string) => rmsNormLayer(`${name}.${leaf}`, all, config.rms_norm_eps, 1);
  const rows = ngramRows(config, heads, place);
  return described(name, {
    title: 'embedding of n-grams',
    component: 'perLayerInputs',
    parts: [
      described(table, {
        title: 'tables of n-grams',
        component: 'perLayerInputs',
        held: [
          buffer(`${table}.layer_multipliers`, [size], { isInteger: true }),
          buffer(`${table}.ngram_heads_vocab_sizes`, [heads], { isInteger: true }),
          buffer(`${table}.ngram_heads_offsets`, [heads], { isInteger: true }),
        ],
        tensors: { 'ngram_embedding.weight': [rows, Math.floor(width / heads)] },
        output: width,
      }),
      product(`${name}.key_proj`, width, all),
      product(`${name}.value_proj`, width, hidden),
      norm('norm_key'),
      norm('norm_query'),
      norm('norm_conv'),
      shortConvolution(`${name}.conv1d`, all, kernel, (kernel - 1) * size),
    ],
    output: all,
  });
}

function expertsAt(name: string, config: Config): Layer {
  const { hidden_size: hidden, moe_intermediate_size: inner, num_experts: experts } = config;
  const sizes = { hidden, activation: activationOf(config.hidden_act) };
  return mixtureOfExperts(name, {
    router: router(`${name}.gate`, hidden, {
      experts,
      expertsPerToken: config.num_experts_per_tok,
      scoring: 'softmax',
      renormalised: config.norm_topk_prob ? { eps: 0 } : undefined,
    }),
    experts: expertsOf(`${name}.experts`, {
      ...sizes,
      inner,
      experts,
      stored: config.experts_stored,
    }),
    shared: [
      separateMlp(`${name}.shared_expert`, {
        ...sizes,
        inner: config.shared_expert_intermediate_size,
        component: 'sharedExperts',
      }),
    ],
    sharedGate: linear(`${name}.shared_expert_gate`, hidden, 1, { bias: false }),
  });
}

export const qwen4ExpText = defineTransformer({
  title: 'Qwen4-Exp, text only: DeltaNet, indexed attention, n-grams, experts; described, not run',
  architecture: 'hybrid',
  schema,
  rules: [
    ...expertRules('num_experts'),
    ...layerListRules('layer_types'),
    ...keyHeadsDivide('num_key_value_heads'),
    ...defineRules<{ readonly model: Config }>([
      {
        severity: 'error',
        reads: ['model.indexer_n_heads', 'model.indexer_head_dim', 'model.layer_types'],
        check: ({ model }) =>
          model.indexer_n_heads === null || model.indexer_head_dim === null
            ? {
                message: 'the class has no attention without an indexer, and its sizes are missing',
                suggestion:
                  'write indexer_n_heads, indexer_head_dim, indexer_budget and indexer_compress_ratio',
              }
            : undefined,
      },
      {
        severity: 'error',
        reads: ['model.ple_layer_ids', 'model.ple_embed_dim', 'model.ngram_size'],
        check({ model }) {
          const heads = (model.ngram_size - 1) * model.heads_per_ngram;
          const width = model.ple_embed_dim ?? model.hidden_size;
          return model.ple_layer_ids.length > 0 && width % heads !== 0
            ? {
                message: `${heads} hash functions do not divide an embedding of ${width} values`,
                suggestion: `write ple_embed_dim: ${heads * Math.ceil(width / heads)}`,
              }
            : undefined;
        },
      },
    ]),
  ],
  storedSettings: mixtureStored,
  // transformers 5.18, conversion_mapping.py: tables in one part; those in several are not described.
  namesOnLoad: () => [[/ngram_embedding\.shard_0\.weight$/, 'ngram_embedding.weight']],
  ignoredOnLoad: [SEEING, PREDICTING],
  huggingFace: {
    names: { num_experts: ['num_local_experts'] },
    more: listsIn,
    reads: ['full_attention_interval'],
    harmless: {
      ...ROTARY_VALUES,
      ...valueKeys('seed', 'split_ngram_parts', 'output_gate_type', 'number_of_conv_states'),
    },
    limited: { ...IMAGE_KEYS, ...unreadEach(['intermediate_size', 'mlp_bias'], () => true) },
  },
  build: ({ model: config }) =>
    decoder(config, {
      embeddingSteps: [splitStreams({ hidden: config.hidden_size, streams: config.hc_count })],
      block(name, index) {
        const place = config.ple_layer_ids.indexOf(index + 1);
        return described(name, {
          title: 'block with residual streams',
          parts: [
            attends(config, index)
              ? blockIndexedAttention(`${name}.self_attn`, config)
              : deltaNet(`${name}.linear_attn`, config, qwen35Inputs),
            expertsAt(`${name}.mlp`, config),
            ...(place >= 0 ? [ngramLayer(`${name}.ple`, config, place)] : []),
            gatedResidual(`${name}.attn_hyper_connection`, config, true),
            gatedResidual(`${name}.mlp_hyper_connection`, config, true),
          ],
          output: config.hc_count * config.hidden_size,
        });
      },
      norm: () =>
        sequence('joined_streams', [
          gatedResidual(`${config.stored_prefix}hyper_connection_mixer`, config, false),
        ]),
    }),
});
