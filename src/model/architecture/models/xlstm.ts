/** xLSTM 7B (arXiv 2503.13427; transformers 5.18, models/xlstm): matrix memories with gates. Described, not run. */
import * as z from 'zod';
import { layerNormLayer, rmsNormLayer, sequence, softcap } from '../constructors/basic-layers.js';
import { described } from '../constructors/described-layer.js';
import { defineRules } from '../family.js';
import type { Layer } from '../layer.js';
import { unreadEach } from '../transformer/config-keys.js';
import { causalModel } from '../transformer/decoder-parts.js';
import { defineTransformer } from '../transformer/define-decoder.js';
import { product, valueKeys } from '../transformer/described/parts.js';
import { count, normEpsilon, toggle, transformerDocument } from '../transformer/settings.js';

/** The class has no limit; this is that of the state-space models. */
const POSITIONS = 1_048_576;

const factor = (value: number, meaning: string) =>
  z.number().positive().default(value).describe(meaning);

const schema = transformerDocument('xlstm', {
  vocab_size: count(50_304, 'Rows of the embedding and of the head'),
  hidden_size: count(4096, 'Width of the residual stream'),
  num_hidden_layers: count(32, 'Number of blocks'),
  num_heads: count(8, 'Heads'),
  use_bias: toggle(false, 'Biases in the products and norms'),
  qk_dim_factor: factor(0.5, 'Width of queries and keys, in widths of the model'),
  v_dim_factor: factor(1, 'Width of values, in widths of the model'),
  ffn_proj_factor: factor(2.667, 'Width of the network, in widths of the model'),
  ffn_round_up_to_multiple_of: count(64, 'Divisor of the width of the network'),
  weight_mode: z
    .enum(['single', 'fused'])
    .default('single')
    .describe('Products of one input: apart, or as one'),
  output_logit_soft_cap: factor(30, 'Cap of the logits'),
  norm_eps: normEpsilon(1e-6),
});

type Config = z.output<typeof schema>['model'];

const PATH = 'backbone';

/** A norm of the class, which has a bias where the products have. */
const biasedNorm = (name: string, config: Config): Layer =>
  config.use_bias
    ? described(name, {
        title: 'norm with a bias',
        component: 'norm',
        tensors: { weight: [config.hidden_size], bias: [config.hidden_size] },
        output: config.hidden_size,
      })
    : rmsNormLayer(name, config.hidden_size, config.norm_eps);

/** Widths of queries and keys, and of values. */
const keyValueWidths = (config: Config): [keys: number, values: number] => [
  Math.trunc(config.hidden_size * config.qk_dim_factor),
  Math.trunc(config.hidden_size * config.v_dim_factor),
];

function matrixMemory(name: string, config: Config): Layer {
  const { hidden_size: hidden, num_heads: heads, use_bias: bias } = config;
  const [keys, values] = keyValueWidths(config);
  const input = (leaf: string, width: number, hasBias = bias) =>
    product(`${name}.${leaf}`, hidden, width, { bias: hasBias });
  return described(name, {
    title: 'matrix memory',
    component: 'linearAttention',
    parts: [
      ...(config.weight_mode === 'single'
        ? [
            input('q', keys),
            input('k', keys),
            input('v', values),
            input('ogate_preact', values),
            input('igate_preact', heads, true),
            input('fgate_preact', heads, true),
          ]
        : [input('qkv_opreact', 2 * (keys + values)), input('ifgate_preact', 2 * heads, true)]),
      layerNormLayer(`${name}.multihead_norm`, values, config.norm_eps, {
        holds: bias ? 'both' : 'weight',
      }),
      product(`${name}.out_proj`, values, hidden, { bias }),
    ],
    works: [
      // A matrix of each head, [keys, values], its sum of keys, and the largest exponent.
      {
        work: 'state',
        inner: values,
        state: keys / heads,
        inFloat32: true,
      },
      { work: 'state', inner: keys + heads, state: 1, inFloat32: true },
    ],
    output: hidden,
  });
}

function networkOf(name: string, config: Config): Layer {
  const { hidden_size: hidden, use_bias: bias, ffn_round_up_to_multiple_of: step } = config;
  const wide = hidden * config.ffn_proj_factor;
  // Python rounds the quotient down before it multiplies.
  const inner = Math.trunc(Math.floor((wide + step - 1) / step) * step);
  const input = (leaf: string, width: number) =>
    product(`${name}.${leaf}`, hidden, width, { bias });
  return described(name, {
    title: 'gated network',
    component: 'feedForward',
    parts: [
      ...(config.weight_mode === 'single'
        ? [input('proj_up_gate', inner), input('proj_up', inner)]
        : [input('proj_up_gate_z', 2 * inner)]),
      product(`${name}.proj_down`, inner, hidden, { bias }),
    ],
    output: hidden,
  });
}

export const xlstm = defineTransformer({
  title: 'xLSTM: matrix memories with gates; described, not run',
  architecture: 'recurrent',
  schema,
  rules: defineRules<{ readonly model: Config }>([
    {
      severity: 'error',
      reads: ['model.num_heads', 'model.hidden_size', 'model.qk_dim_factor', 'model.v_dim_factor'],
      check: ({ model }) => {
        const [keys, values] = keyValueWidths(model);
        const { num_heads: heads } = model;
        return keys % heads === 0 && values % heads === 0
          ? undefined
          : {
              message: `${heads} heads do not divide keys of ${keys} and values of ${values} values`,
              suggestion: 'write num_heads that divides both',
            };
      },
    },
  ]),
  huggingFace: {
    more: ({ hidden_size, embedding_dim, num_hidden_layers, num_blocks }) => ({
      hidden_size: hidden_size ?? embedding_dim ?? undefined,
      num_hidden_layers: num_hidden_layers ?? num_blocks ?? undefined,
    }),
    reads: ['embedding_dim', 'num_blocks'],
    harmless: valueKeys(
      'norm_reduction_force_float32',
      'add_out_norm',
      'chunkwise_kernel',
      'sequence_kernel',
      'step_kernel',
      'mode',
      'chunk_size',
      'return_last_states',
      'autocast_kernel_dtype',
      'eps',
      'inference_state_dtype',
      'gate_soft_cap',
      'max_inference_chunksize',
    ),
    limited: unreadEach(['tie_word_embeddings'], [false], 'the class has no tied head'),
  },
  build: ({ model: config }) =>
    causalModel({
      vocabulary: config.vocab_size,
      hidden: config.hidden_size,
      positions: POSITIONS,
      tied: false,
      paths: { embedding: `${PATH}.embeddings`, blocks: `${PATH}.blocks`, head: 'lm_head' },
      blocks: config.num_hidden_layers,
      blocksKey: 'num_hidden_layers',
      block: (name) =>
        described(name, {
          title: 'block of xLSTM',
          parts: [
            biasedNorm(`${name}.norm_mlstm`, config),
            matrixMemory(`${name}.mlstm_layer`, config),
            biasedNorm(`${name}.norm_ffn`, config),
            networkOf(`${name}.ffn`, config),
          ],
          output: config.hidden_size,
        }),
      norm: sequence('norm', [
        rmsNormLayer(`${PATH}.out_norm`, config.hidden_size, config.norm_eps),
      ]),
      logitSteps: [softcap('logits_softcap', config.output_logit_soft_cap)],
    }),
});
