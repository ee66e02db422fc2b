/** GPT-NeoX and Pythia (arXiv 2204.06745, 2304.01373): parallel attention and feed-forward. */
import * as z from 'zod';
import { attention, rotary } from '../constructors/attention-layers.js';
import {
  fusedProjection,
  layerNormLayer,
  linear,
  residual,
  sequence,
} from '../constructors/basic-layers.js';
import type { Layer } from '../layer.js';
import { type JsonObject, unreadBut } from '../transformer/config-keys.js';
import { causalModel, plainMlp, residualBlock } from '../transformer/decoder-parts.js';
import { defineTransformer } from '../transformer/define-decoder.js';
import { isHeldInMemory } from '../transformer/hugging-face.js';
import { longestInput, rotaryIn, rotarySettings, scalingOf } from '../transformer/rotary.js';
import {
  headsDivide,
  lengthRules,
  partOfEachHead,
  rotationRules,
  scalingRules,
} from '../transformer/rules.js';
import {
  activationWord,
  epsilon,
  FEED_FORWARD_PER_CHANNEL,
  flag,
  oldBuffers,
  partOfHead,
  positiveInteger,
  prefixStoredIn,
  storedPrefix,
  transformerDocument,
} from '../transformer/settings.js';

const { rope_theta, rope_scaling } = rotarySettings(10_000);

/** Names of the head. */
const HEADS = ['embed_out', 'lm_head'] as const;

const ROTATED = partOfEachHead('rotary_pct');

const schema = transformerDocument('gpt_neox', {
  vocab_size: positiveInteger.default(50_432).describe('Rows of the embedding and of the head'),
  hidden_size: positiveInteger.default(6144).describe('Width of the residual stream'),
  num_hidden_layers: positiveInteger.default(44).describe('Number of blocks'),
  num_attention_heads: positiveInteger
    .default(64)
    .describe('Attention heads, a divisor of hidden_size'),
  intermediate_size: positiveInteger
    .default(24_576)
    .describe('Width inside the feed-forward network'),
  max_position_embeddings: positiveInteger.default(2048).describe('Longest input, in tokens'),
  layer_norm_eps: epsilon.default(1e-5).describe('Epsilon of the norms'),
  hidden_act: activationWord.default('gelu').describe('Activation between the two products'),
  rotary_emb_base: rope_theta,
  rotary_pct: partOfHead(0.25),
  rope_scaling,
  attention_bias: flag.default(true).describe('Biases in both products of attention'),
  use_parallel_residual: flag
    .default(true)
    .describe('Attention and feed-forward read the same input, and are added to it at once'),
  tie_word_embeddings: flag.default(false).describe('The head reads the embedding'),
  stored_prefix: storedPrefix('gpt_neox.'),
  stored_head: z
    .enum(HEADS)
    .default('embed_out')
    .describe('Name of the head: on disk, or as transformers 5 holds it'),
});

/** Default head width of a file without one. */
const headDimIn = ({ hidden_size: hidden = 6144, num_attention_heads: heads = 64 }: JsonObject) =>
  Number(hidden) / Number(heads);

export const gptNeox = defineTransformer({
  title: 'GPT-NeoX and Pythia',
  schema,
  rules: [
    ...headsDivide('num_attention_heads', 'hidden_size'),
    ...rotationRules(ROTATED),
    ...scalingRules(ROTATED),
    ...lengthRules('max_position_embeddings'),
  ],
  dimensions: {
    vocabulary: 'vocab_size',
    positions: 'max_position_embeddings',
    depth: 'num_hidden_layers',
    width: 'hidden_size',
    heads: 'num_attention_heads',
    feedForward: { key: 'intermediate_size', perChannel: FEED_FORWARD_PER_CHANNEL },
  },
  huggingFace: {
    more: (config) => ({
      rotary_emb_base: rotaryIn(config).rope_theta,
      rotary_pct: rotaryIn(config).partial_rotary_factor,
      stored_head: isHeldInMemory(config) ? 'lm_head' : 'embed_out',
    }),
    limited: {
      rope_theta: unreadBut([], 'this family reads rotary_emb_base'),
      partial_rotary_factor: unreadBut([], 'this family reads rotary_pct'),
      head_dim: {
        allows: (width, config) => width === null || width === headDimIn(config),
        why: 'another part of each head is rotated',
        severity: 'error',
      },
    },
    harmless: { num_key_value_heads: 'every head has keys and values of its own' },
  },
  storedSettings: (stored) => {
    const head = HEADS.find((name) => stored.shapeOf(`${name}.weight`) !== undefined);
    return [
      ...(head === undefined ? [] : [{ path: 'model.stored_head', value: head }]),
      ...prefixStoredIn(stored, 'gpt_neox.', 'embed_in.weight'),
    ];
  },
  ignored: ({ model: { stored_prefix: prefix } }) =>
    oldBuffers(
      ['bias', 'masked_bias', 'rotary_emb.inv_freq'].map(
        (leaf) => `${prefix}layers.*.attention.${leaf}`,
      ),
    ),
  build({ model: config }) {
    const { hidden_size: hidden, num_attention_heads: heads, attention_bias: bias } = config;
    const { stored_prefix: prefix, max_position_embeddings: positions } = config;
    const headDim = hidden / heads;
    const rotatedDim = Math.trunc(headDim * config.rotary_pct);
    const scaling = scalingOf(config.rope_scaling, positions, rotatedDim);
    const norm = (name: string) => layerNormLayer(name, hidden, config.layer_norm_eps);
    const attend = (name: string): Layer =>
      attention(`${name}.attention`, {
        inputs: fusedProjection(
          linear(`${name}.attention.query_key_value`, hidden, 3 * hidden, { bias }),
          [hidden, hidden, hidden],
          heads,
        ),
        out: linear(`${name}.attention.dense`, hidden, hidden, { bias }),
        heads,
        headDim,
        rotary: rotary(`${name}.rotary`, {
          base: config.rotary_emb_base,
          headDim,
          rotatedDim,
          scaling,
        }),
      });
    const feedForward = (name: string): Layer =>
      plainMlp(`${name}.mlp`, {
        hidden,
        inner: config.intermediate_size,
        activation: config.hidden_act,
        leaves: ['dense_h_to_4h', 'dense_4h_to_h'],
      });
    return causalModel({
      paths: {
        embedding: `${prefix}embed_in`,
        blocks: `${prefix}layers`,
        head: config.stored_head,
      },
      vocabulary: config.vocab_size,
      hidden,
      positions: longestInput(positions, config.rope_scaling),
      tied: config.tie_word_embeddings,
      blocks: config.num_hidden_layers,
      blocksKey: 'num_hidden_layers',
      norm: norm(`${prefix}final_layer_norm`),
      block(name) {
        const branches = {
          attention: [norm(`${name}.input_layernorm`), attend(name)],
          mlp: [norm(`${name}.post_attention_layernorm`), feedForward(name)],
        };
        if (!config.use_parallel_residual) return residualBlock(name, branches);
        return residual(
          name,
          sequence(`${name}.attention_branch`, branches.attention),
          sequence(`${name}.mlp_branch`, branches.mlp),
        );
      },
    });
  },
});
