/**
 * Reformer (arXiv 2001.04451; transformers 5.18, models/reformer): attention inside chunks of neighbours, or of keys with one
 * hash, between two residual streams. Described, not run. FLOPs are those of attention to all tokens: an upper bound.
 */
import * as z from 'zod';
import {
  blockNames,
  embedding,
  head,
  languageModel,
  layerNormLayer,
  learnedPositions,
  linear,
  stack,
} from '../constructors/basic-layers.js';
import { described } from '../constructors/described-layer.js';
import { defineRules } from '../family.js';
import type { Layer } from '../layer.js';
import { param } from '../param.js';
import { harmless, NO_ROTARY_KEYS, unreadEach } from '../transformer/config-keys.js';
import { defineTransformer } from '../transformer/define-decoder.js';
import { product, valueKeys } from '../transformer/described/parts.js';
import {
  count,
  normEpsilon,
  positiveInteger,
  toggle,
  transformerDocument,
} from '../transformer/settings.js';

const PATH = 'reformer';

/** Streams of a reversible residual. */
const STREAMS = 2;

const schema = transformerDocument('reformer', {
  vocab_size: count(320, 'Rows of the embedding and of the head'),
  hidden_size: count(256, 'Width of each residual stream'),
  feed_forward_size: count(512, 'Width inside the feed-forward network'),
  num_attention_heads: count(12, 'Heads'),
  attention_head_size: count(64, 'Width of a head'),
  attn_layers: z
    .array(z.enum(['local', 'lsh']))
    .min(1)
    .default(['local', 'lsh', 'local', 'lsh', 'local', 'lsh'])
    .describe('Kind of each block: neighbours, or keys with one hash'),
  axial_pos_embds: toggle(true, 'Positions from tables of rows and columns'),
  axial_pos_shape: z
    .array(positiveInteger)
    .default([64, 64])
    .describe('Rows of each table of positions'),
  axial_pos_embds_dim: z
    .array(positiveInteger)
    .default([64, 192])
    .describe('Width of each table; their sum is hidden_size'),
  max_position_embeddings: count(4096, 'Longest input'),
  layer_norm_eps: normEpsilon(1e-12),
});

type Config = z.output<typeof schema>['model'];

function reformerAttention(name: string, config: Config, kind: 'local' | 'lsh'): Layer {
  const { hidden_size: hidden, num_attention_heads: heads, attention_head_size: width } = config;
  const leaves = kind === 'local' ? ['query', 'key', 'value'] : ['query_key', 'value'];
  return described(name, {
    title: kind === 'local' ? 'attention inside chunks' : 'attention inside hashes',
    component: 'attention',
    parts: [
      layerNormLayer(`${name}.layer_norm`, hidden, config.layer_norm_eps),
      ...leaves.map((leaf) => product(`${name}.self_attention.${leaf}`, hidden, heads * width)),
      product(`${name}.output.dense`, heads * width, hidden),
    ],
    // The cache holds the hidden state that keys and values are computed from.
    works: [
      {
        work: 'attention',
        heads,
        keyValueHeads: heads,
        headDim: width,
        valueDim: width,
        cached: hidden,
      },
    ],
    output: hidden,
  });
}

function reformerBlock(name: string, config: Config, kind: 'local' | 'lsh'): Layer {
  const { hidden_size: hidden, feed_forward_size: inner } = config;
  const network = `${name}.feed_forward`;
  return described(name, {
    title: 'block of Reformer',
    parts: [
      reformerAttention(`${name}.attention`, config, kind),
      described(network, {
        title: 'network',
        component: 'feedForward',
        parts: [
          layerNormLayer(`${network}.layer_norm`, hidden, config.layer_norm_eps),
          linear(`${network}.dense.dense`, hidden, inner),
          linear(`${network}.output.dense`, inner, hidden),
        ],
        output: hidden,
      }),
    ],
    output: STREAMS * hidden,
  });
}

const positionRules = defineRules<{
  readonly model: Pick<
    Config,
    'axial_pos_embds' | 'axial_pos_shape' | 'axial_pos_embds_dim' | 'hidden_size'
  >;
}>([
  {
    severity: 'error',
    reads: [
      'model.axial_pos_embds_dim',
      'model.axial_pos_shape',
      'model.hidden_size',
      'model.axial_pos_embds',
    ],
    check({ model }) {
      if (!model.axial_pos_embds) return undefined;
      const { axial_pos_embds_dim: widths, axial_pos_shape: shape, hidden_size: hidden } = model;
      const total = widths.reduce((sum, width) => sum + width, 0);
      return total === hidden && widths.length === shape.length
        ? undefined
        : {
            message: `tables of positions of the widths ${widths.join(', ')} are not ${shape.length} tables of ${hidden} values together`,
            suggestion:
              'write as many widths as axial_pos_shape has numbers, with the sum hidden_size',
          };
    },
  },
]);

export const reformer = defineTransformer({
  title: 'Reformer; described, not run',
  schema,
  rules: positionRules,
  huggingFace: {
    harmless: {
      ...valueKeys(
        'local_attn_chunk_length',
        'lsh_attn_chunk_length',
        'local_num_chunks_before',
        'lsh_num_chunks_before',
        'num_buckets',
        'num_hashes',
        'hash_seed',
        'hidden_act',
      ),
      ...harmless('used in training only', [
        'axial_norm_std',
        'local_attention_probs_dropout_prob',
        'lsh_attention_probs_dropout_prob',
      ]),
      ...harmless('chooses how the same values are computed', ['chunk_size_lm_head']),
      num_hidden_layers: 'the length of attn_layers is read in its place',
    },
    limited: {
      ...NO_ROTARY_KEYS,
      ...unreadEach(['tie_word_embeddings'], [false], 'the class has a head of its own'),
      ...Object.fromEntries(
        ['local_num_chunks_after', 'lsh_num_chunks_after'].map((key) => [
          key,
          {
            allows: (value: unknown) => value === null || value === 0,
            why: 'attention also reads the tokens that follow',
            severity: 'error' as const,
          },
        ]),
      ),
      is_decoder: {
        allows: (value) => value === true,
        why: 'the class with a head is a decoder only',
        severity: 'warning',
      },
    },
  },
  build({ model: config }) {
    const { hidden_size: hidden, vocab_size: rows, axial_pos_shape: shape } = config;
    const positions = `${PATH}.embeddings.position_embeddings`;
    const tables = config.axial_pos_embds_dim.map((width, axis) =>
      param(`${positions}.weights.${axis}`, [
        ...shape.map((size, each) => (each === axis ? size : 1)),
        width,
      ]),
    );
    return languageModel({
      embedding: embedding(`${PATH}.embeddings.word_embeddings`, rows, hidden),
      embeddingSteps: [
        config.axial_pos_embds
          ? described('positions', {
              title: 'positions from tables of rows and columns',
              component: 'positions',
              held: tables,
              output: hidden,
            })
          : learnedPositions(`${positions}.embedding`, config.max_position_embeddings, hidden),
        described('streams', {
          title: 'copies for the residual streams',
          component: 'other',
          output: STREAMS * hidden,
        }),
      ],
      blocks: stack(
        blockNames(`${PATH}.encoder.layers`, config.attn_layers.length, 'model.attn_layers'),
        'model.attn_layers',
        (name, index) => reformerBlock(name, config, config.attn_layers[index] ?? 'local'),
      ),
      norm: layerNormLayer(`${PATH}.encoder.layer_norm`, STREAMS * hidden, config.layer_norm_eps),
      head: head('lm_head.decoder', STREAMS * hidden, rows),
      logitSteps: [
        described('lm_head', {
          title: 'bias of the logits',
          component: 'head',
          held: [param('lm_head.bias', [rows])],
          output: rows,
        }),
      ],
      hidden,
      positions: config.max_position_embeddings,
    });
  },
});
