/**
 * ZAYA1 (transformers 5.18, models/zaya): attention whose queries and keys go through convolutions (arXiv 2510.04476),
 * and one expert for each token, chosen by a network that reads the choice of the layer before. Described, not run.
 */
import * as z from 'zod';
import { linear, rmsNormLayer } from '../constructors/basic-layers.js';
import { described } from '../constructors/described-layer.js';
import { mixtureOfExperts } from '../constructors/feed-forward-layers.js';
import { defineRules } from '../family.js';
import type { Layer } from '../layer.js';
import { buffer, param } from '../param.js';
import { decoder, expertsOf } from '../transformer/decoder-parts.js';
import { defineTransformer } from '../transformer/define-decoder.js';
import { describedRouter, product, ROTARY_VALUES } from '../transformer/described/parts.js';
import { keyHeadsDivide, layerListRules } from '../transformer/rules.js';
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

const schema = transformerDocument('zaya', {
  vocab_size: count(262_272, 'Rows of the embedding and of the head'),
  hidden_size: count(2048, 'Width of the residual stream'),
  moe_intermediate_size: count(2048, 'Width inside an expert'),
  num_hidden_layers: count(40, 'Number of blocks'),
  num_attention_heads: count(8, 'Query heads'),
  num_key_value_heads: count(2, 'Key and value heads, a divisor of the query heads'),
  head_dim: count(128, 'Width of a head'),
  num_experts: count(16, 'Experts to choose from'),
  num_experts_per_tok: z.literal(1).default(1).describe('Experts that a token goes to'),
  max_position_embeddings: count(131_072, 'Longest input, in tokens'),
  sliding_window: positiveInteger
    .nullable()
    .default(null)
    .describe('How many keys a position sees in the layers that layer_types lists for it'),
  layer_types: z
    .array(z.enum(['hybrid', 'hybrid_sliding']))
    .nullish()
    .describe('Which layers have the window'),
  router_hidden_size: count(256, 'Width inside the network that chooses experts'),
  cca_time0: count(2, 'Tokens of the first convolution'),
  cca_time1: count(2, 'Tokens of the second one'),
  rms_norm_eps: normEpsilon(1e-5),
  hidden_act: gateActivation,
  attention_bias: attentionBias,
  lm_head_bias: toggle(false, 'A bias in the head'),
  experts_stored: expertsStored,
  stored_prefix: storedPrefix({ own: 'model.' }),
  tie_word_embeddings: tiedHead(true),
});

type Config = z.output<typeof schema>['model'];

/** x · scale + bias of a branch and of the stream beside it. */
const residualScale = (name: string, hidden: number): Layer =>
  described(name, {
    title: 'scales of a residual sum',
    component: 'other',
    tensors: {
      hidden_states_scale: [hidden],
      hidden_states_bias: [hidden],
      residual_scale: [hidden],
      residual_bias: [hidden],
    },
    output: hidden,
  });

function convolvedAttention(name: string, config: Config, index: number): Layer {
  const { hidden_size: hidden, num_attention_heads: heads, head_dim: width } = config;
  const { num_key_value_heads: keyHeads, attention_bias: bias } = config;
  const { cca_time0: first, cca_time1: second } = config;
  const keys = keyHeads * width;
  const channels = heads * width + keys;
  const path = `${name}.qkv_proj`;
  const isWindowed = config.layer_types?.[index] === 'hybrid_sliding';
  const depthwise = { weight: [channels, 1, first], bias: [channels] };
  const grouped = { weight: [channels, width, second], bias: [channels] };
  const convolution = (leaf: string, tensors: Readonly<Record<string, readonly number[]>>) =>
    described(`${path}.${leaf}`, {
      title: 'convolution of queries and keys',
      tensors,
      products: { weight: [channels, channels] },
      output: channels,
    });
  return described(name, {
    title: 'convolutional attention',
    component: 'attention',
    parts: [
      product(`${name}.o_proj`, heads * width, hidden, { bias }),
      described(path, {
        title: 'queries, keys and values',
        parts: [
          product(`${path}.q_proj`, hidden, heads * width, { bias }),
          product(`${path}.k_proj`, hidden, keys, { bias }),
          product(`${path}.v_proj_current`, hidden, Math.floor(keys / 2), { bias }),
          product(`${path}.v_proj_delayed`, hidden, Math.floor(keys / 2), { bias }),
          convolution('conv_qk_depthwise', depthwise),
          convolution('conv_qk_grouped', grouped),
        ],
        works: [
          { work: 'buffer', channels, tokens: first + second - 2, macs: 0 },
          { work: 'buffer', channels: Math.floor(keys / 2), tokens: 1, macs: 0 },
        ],
        output: heads * width + 2 * keys,
      }),
      described(`${name}.qk_norm`, {
        title: 'lengths of queries and keys',
        tensors: { temp: [keyHeads] },
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
        window:
          isWindowed && config.sliding_window !== null
            ? { rule: 'sliding', tokens: config.sliding_window }
            : undefined,
      },
    ],
    output: hidden,
  });
}

function expertsAt(name: string, config: Config, index: number): Layer {
  const { hidden_size: hidden, router_hidden_size: width, num_experts: experts } = config;
  const gate = `${name}.gate`;
  const network = `${gate}.router_mlp`;
  return mixtureOfExperts(name, {
    router: describedRouter(gate, {
      steps: [
        described(`${gate}.states`, {
          title: 'states of the router',
          component: 'router',
          held: index === 0 ? [] : [param(`${gate}.router_states_scale`, [width])],
          parts: [
            linear(`${gate}.down_proj`, hidden, width),
            rmsNormLayer(`${network}.norm`, width, config.rms_norm_eps),
            linear(`${network}.fc1`, width, width),
            linear(`${network}.fc2`, width, width),
          ],
          output: width,
        }),
      ],
      // One more than there are experts: a token can skip them.
      weight: param(`${network}.out_proj.weight`, [experts + 1, width]),
      correction: buffer(`${gate}.balancing_biases`, [experts + 1]),
      expertsPerToken: 1,
    }),
    experts: expertsOf(`${name}.experts`, {
      experts,
      stored: config.experts_stored,
      hidden,
      inner: config.moe_intermediate_size,
      activation: activationOf(config.hidden_act),
    }),
    zeroExperts: 1,
  });
}

export const zaya = defineTransformer({
  title: 'ZAYA1: convolutional attention, one expert for each token; described, not run',
  architecture: 'mixture',
  schema,
  rules: [
    ...layerListRules('layer_types'),
    ...keyHeadsDivide('num_key_value_heads'),
    ...defineRules<{ readonly model: Config }>([
      {
        severity: 'error',
        reads: ['model.layer_types', 'model.sliding_window'],
        check: ({ model: { layer_types: kinds, sliding_window: window } }) =>
          kinds?.includes('hybrid_sliding') && window === null
            ? {
                message: 'layer_types lists layers with a window, but sliding_window is null',
                suggestion: 'write sliding_window: TOKENS',
              }
            : undefined,
      },
    ]),
  ],
  storedSettings: mixtureStored,
  huggingFace: {
    names: { num_experts: ['num_local_experts'] },
    harmless: ROTARY_VALUES,
  },
  build: ({ model: config }) =>
    decoder(config, {
      embeddingSteps: [
        described('input_scale', {
          title: 'scale of the embedding',
          held: ['scale', 'bias'].map((leaf) =>
            param(`${config.stored_prefix}input_hidden_states_${leaf}`, [config.hidden_size]),
          ),
          output: config.hidden_size,
        }),
      ],
      headBias: config.lm_head_bias,
      norm: (name) => rmsNormLayer(name, config.hidden_size, config.rms_norm_eps),
      block(name, index) {
        const { hidden_size: hidden } = config;
        const norm = (leaf: string) => rmsNormLayer(`${name}.${leaf}`, hidden, config.rms_norm_eps);
        return described(name, {
          title: 'block with scaled residual sums',
          parts: [
            convolvedAttention(`${name}.self_attn`, config, index),
            expertsAt(`${name}.mlp`, config, index),
            norm('input_layernorm'),
            norm('post_attention_layernorm'),
            residualScale(`${name}.post_attention_residual_scale`, hidden),
            residualScale(`${name}.post_mlp_residual_scale`, hidden),
          ],
          output: hidden,
        });
      },
    }),
});
