/**
 * CPM-Ant (transformers 5.18, models/cpmant): attention with learned biases of segments and distances, behind rows of a
 * prompt. Described, not run.
 */
import type * as z from 'zod';
import {
  blockNames,
  embedding,
  head,
  languageModel,
  rmsNormLayer,
  stack,
} from '../constructors/basic-layers.js';
import { described } from '../constructors/described-layer.js';
import type { Layer } from '../layer.js';
import { param } from '../param.js';
import { harmless, unreadEach } from '../transformer/config-keys.js';
import { separateMlp } from '../transformer/decoder-parts.js';
import { defineTransformer } from '../transformer/define-decoder.js';
import { product, valueKeys } from '../transformer/described/parts.js';
import { count, normEpsilon, transformerDocument } from '../transformer/settings.js';

/** The class has no limit; this is that of the state-space models. */
const POSITIONS = 1_048_576;

const schema = transformerDocument('cpmant', {
  vocab_size: count(30_720, 'Rows of the head'),
  hidden_size: count(4096, 'Width of the residual stream'),
  num_hidden_layers: count(48, 'Number of blocks'),
  num_attention_heads: count(32, 'Heads'),
  dim_head: count(128, 'Width of a head'),
  dim_ff: count(10_240, 'Width inside the feed-forward network'),
  position_bias_num_buckets: count(512, 'Biases of distances'),
  prompt_types: count(32, 'Kinds of prompts, which have rows of the embedding'),
  prompt_length: count(32, 'Rows of a prompt'),
  segment_types: count(32, 'Kinds of segments'),
  eps: normEpsilon(1e-6),
});

type Config = z.output<typeof schema>['model'];

function cpmAntBlock(name: string, config: Config): Layer {
  const { hidden_size: hidden, num_attention_heads: heads, dim_head: width } = config;
  const [attention, network] = [`${name}.self_att`, `${name}.ffn`];
  const input = (leaf: string) =>
    product(`${attention}.self_attention.${leaf}`, hidden, heads * width);
  return described(name, {
    title: 'block of CPM-Ant',
    parts: [
      described(attention, {
        title: 'attention with biases of segments',
        component: 'attention',
        parts: [
          rmsNormLayer(`${attention}.layernorm_before_attention`, hidden, config.eps),
          input('project_q'),
          input('project_k'),
          input('project_v'),
          product(`${attention}.self_attention.attention_out`, heads * width, hidden),
        ],
        works: [
          { work: 'attention', heads, keyValueHeads: heads, headDim: width, valueDim: width },
        ],
        output: hidden,
      }),
      rmsNormLayer(`${network}.layernorm_before_ffn`, hidden, config.eps),
      separateMlp(`${network}.ffn`, {
        hidden,
        inner: config.dim_ff,
        activation: 'gelu',
        leaves: ['w_in.w_0', 'w_in.w_1', 'w_out'],
      }),
    ],
    output: hidden,
  });
}

export const cpmant = defineTransformer({
  title: 'CPM-Ant; described, not run',
  schema,
  rules: [],
  huggingFace: {
    harmless: {
      ...valueKeys('position_bias_max_distance'),
      ...harmless('used in training only', ['dropout_p', 'init_std']),
    },
    limited: unreadEach(['tie_word_embeddings'], () => true, 'the class has a head of its own'),
  },
  build({ model: config }) {
    const { hidden_size: hidden, num_attention_heads: heads, vocab_size: vocabulary } = config;
    const path = 'cpmant';
    const biases = config.segment_types ** 2 + config.position_bias_num_buckets;
    const tokens = embedding(
      `${path}.input_embedding`,
      vocabulary + config.prompt_types * config.prompt_length,
      hidden,
    );
    return languageModel({
      embedding: tokens,
      embeddingSteps: [
        described('segments', {
          title: 'segments and biases of distances',
          component: 'embedding',
          held: [
            param(`${path}.segment_embedding.weight`, [config.segment_types, hidden]),
            param(`${path}.position_bias.relative_attention_bias`, [biases, heads]),
          ],
          output: hidden,
        }),
      ],
      blocks: stack(
        blockNames(`${path}.encoder.layers`, config.num_hidden_layers, 'model.num_hidden_layers'),
        'model.num_hidden_layers',
        (name) => cpmAntBlock(name, config),
      ),
      norm: rmsNormLayer(`${path}.encoder.output_layernorm`, hidden, config.eps),
      head: head('lm_head', hidden, vocabulary),
      positions: POSITIONS,
    });
  },
});
