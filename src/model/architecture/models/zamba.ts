/** Zamba 7B (arXiv 2405.16712): Mamba layers with heads, and before some of them one transformer block that all share. */

import * as z from 'zod';
import { asNumber } from '../../../base/values.js';
import { attention } from '../constructors/attention-layers.js';
import {
  embeddingJoin,
  linear,
  residual,
  rmsNormLayer,
  sequence,
} from '../constructors/basic-layers.js';
import { gatedMlp } from '../constructors/feed-forward-layers.js';
import { headedMamba } from '../constructors/recurrent-layers.js';
import { defineRules } from '../family.js';
import type { Embedding, Layer } from '../layer.js';
import { checkLayers } from '../param.js';
import { harmless, NO_ROTARY_KEYS, unreadEach } from '../transformer/config-keys.js';
import { decoder, residualBlock } from '../transformer/decoder-parts.js';
import { defineTransformer } from '../transformer/define-decoder.js';
import { headRules, layerListRules, lengthRules } from '../transformer/rules.js';
import {
  activationOf,
  activationWord,
  count,
  decoderSizes,
  decoderStored,
  gateActivation,
  normEpsilon,
  tiedHead,
  toggle,
  transformerDocument,
} from '../transformer/settings.js';
import {
  layerTypesIn,
  RECURRENT_HARMLESS,
  stepRank,
  stepRankOf,
} from '../transformer/state-space.js';
import { follows, sharedBy } from './zamba2.js';

/** Kinds of the first layers, where the config lists none. */
const FIRST: readonly string[] = ['linear_attention', 'linear_attention', 'hybrid'];

const HIDDEN = 3712;

const schema = transformerDocument('zamba', {
  ...decoderSizes({
    vocab_size: 32_000,
    hidden_size: HIDDEN,
    intermediate_size: 14_848,
    num_hidden_layers: 76,
    num_attention_heads: 16,
    num_key_value_heads: 16,
    max_position_embeddings: 4096,
  }),
  rms_norm_eps: normEpsilon(1e-5),
  layers_block_type: z
    .array(z.enum(['linear_attention', 'hybrid']))
    .nullish()
    .describe('Which layers are Mamba layers alone, and which have the shared block before theirs'),
  attn_layer_period: count(
    6,
    'Without layers_block_type: period of the hybrid layers, after three',
  ),
  attn_layer_offset: z
    .int()
    .min(0)
    .default(4)
    .describe('Without layers_block_type: the first hybrid layer, after three'),
  hidden_act: gateActivation.default('gelu'),
  hidden_mamba_act: activationWord.default('silu').describe('Activation behind the convolution'),
  n_mamba_heads: count(2, 'Heads of a Mamba layer'),
  mamba_d_state: count(16, 'Values of the state, a channel'),
  mamba_d_conv: count(4, 'Tokens that the convolution sees'),
  mamba_expand: count(2, 'Inner width of a Mamba layer, in widths of the model'),
  mamba_dt_rank: stepRank,
  mamba_conv_bias: toggle(true, 'Biases in the convolution'),
  mamba_proj_bias: toggle(false, 'Biases in in_proj and out_proj'),
  tie_word_embeddings: tiedHead(true),
});

type Zamba = z.output<typeof schema>['model'];

const headDimOf = (config: Zamba): number =>
  config.head_dim ?? Math.floor((2 * config.hidden_size) / config.num_attention_heads);

function isHybrid(config: Zamba, index: number): boolean {
  const { layers_block_type: kinds, attn_layer_period: period, attn_layer_offset: offset } = config;
  const kind = (kinds ?? FIRST)[index];
  return kind === undefined ? (index - FIRST.length) % period === offset : kind === 'hybrid';
}

const rules = defineRules<{ readonly model: Zamba }>([
  {
    severity: 'error',
    reads: ['model.num_hidden_layers', 'model.layers_block_type'],
    check: ({ model: { num_hidden_layers: layers, layers_block_type: kinds } }) =>
      kinds == null && layers < FIRST.length
        ? {
            message: `without layers_block_type there are ${FIRST.length} layers or more, not ${layers}`,
            suggestion: 'give layers_block_type, with linear_attention or hybrid for each layer',
          }
        : undefined,
  },
  {
    severity: 'error',
    reads: ['model.n_mamba_heads', 'model.mamba_expand', 'model.hidden_size'],
    check({ model: { n_mamba_heads: heads, mamba_expand: expand, hidden_size: hidden } }) {
      const inner = expand * hidden;
      return inner % heads === 0
        ? undefined
        : {
            message: `${heads} heads do not divide the ${inner} inner values of a Mamba layer`,
            suggestion: `write an n_mamba_heads that divides ${inner}`,
          };
    },
  },
]);

export const zamba = defineTransformer({
  title: 'Zamba: Mamba and one shared transformer block',
  architecture: 'hybrid',
  schema,
  rules: [
    ...headRules.map((rule) => ({
      ...rule,
      check: ({ model }: { readonly model: Zamba }) =>
        rule.check({ model: { ...model, head_dim: headDimOf(model) } }),
    })),
    ...layerListRules('layers_block_type'),
    ...lengthRules('max_position_embeddings'),
    ...rules,
  ],
  huggingFace: {
    names: { layers_block_type: ['layer_types'], head_dim: ['attention_head_dim'] },
    more: (config) => ({
      layers_block_type: layerTypesIn(config.layer_types ?? config.layers_block_type),
    }),
    harmless: {
      ...RECURRENT_HARMLESS,
      ...harmless('chooses how the same values are computed', ['use_associative_scan']),
      num_logits_to_keep: 'the logits of fewer tokens are the same',
    },
    limited: {
      ...unreadEach(Object.keys(NO_ROTARY_KEYS).filter((key) => key !== 'head_dim')),
      ...unreadEach(['attention_bias', 'mlp_bias'], [false]),
      attention_hidden_size: follows(
        ({ hidden_size: hidden }) => 2 * asNumber(hidden ?? HIDDEN),
        'attention reads the input and the embedding: 2 · hidden_size values',
      ),
    },
  },
  storedSettings: decoderStored,
  build({ model: config }) {
    const { hidden_size: hidden, stored_prefix: prefix, tie_word_embeddings: tied } = config;
    const norm = (name: string) => rmsNormLayer(name, hidden, config.rms_norm_eps);
    checkLayers('model.num_hidden_layers', config.num_hidden_layers);
    const places = Array.from({ length: config.num_hidden_layers }, (_, index) => index)
      .filter((index) => isHybrid(config, index))
      .map((index) => `${prefix}layers.${index}.`);
    const share = sharedBy(places);
    return decoder(config, {
      norm,
      finalNorm: 'final_layernorm',
      block(name, index, _, tokens) {
        const isMixed = isHybrid(config, index);
        const own = isMixed ? `${name}.mamba_decoder` : name;
        const recurrent = [norm(`${own}.input_layernorm`), mambaOf(`${own}.mamba`, config)];
        if (!isMixed) return residualBlock(name, { mixer: recurrent });
        // transformers unties the shared blocks together with the head.
        const shared = tied ? share : sharedBy([`${name}.`]);
        const added = sequence(`${name}.shared`, [
          ...sharedBlock(`${name}.shared_transf`, config, tokens, shared),
          linear(`${name}.linear`, hidden, hidden, { bias: false, component: 'fusion' }),
        ]);
        return residualBlock(name, {
          mixer: [residual(`${name}.shared_residual`, added), ...recurrent],
        });
      },
    });
  },
});

function mambaOf(name: string, config: Zamba): Layer {
  const { hidden_size: hidden, n_mamba_heads: heads, mamba_d_conv: kernel } = config;
  return headedMamba(
    name,
    {
      hidden,
      heads,
      headDim: Math.floor((config.mamba_expand * hidden) / heads),
      state: config.mamba_d_state,
      kernel,
      stepRank: stepRankOf(config.mamba_dt_rank, hidden),
    },
    {
      bias: config.mamba_proj_bias,
      conv: { bias: config.mamba_conv_bias, cached: kernel },
      activation: activationOf(config.hidden_mamba_act),
      float32State: true,
    },
  );
}

/** Attention and a network, without residual sums: it reads the input joined with the embedding. */
function sharedBlock(
  block: string,
  config: Zamba,
  tokens: Embedding,
  share: ReturnType<typeof sharedBy>,
): readonly Layer[] {
  const { hidden_size: hidden, intermediate_size: inner, num_attention_heads: heads } = config;
  const keyValueHeads = config.num_key_value_heads ?? heads;
  const headDim = headDimOf(config);
  const product = (path: string, from: number, to: number) =>
    share(linear(`${block}.${path}`, from, to, { bias: false }));
  const norm = (leaf: string, width: number) =>
    share(rmsNormLayer(`${block}.${leaf}`, width, config.rms_norm_eps));
  return [
    embeddingJoin(`${block}.joined`, tokens),
    norm('input_layernorm', 2 * hidden),
    attention(`${block}.self_attn`, {
      inputs: [
        product('self_attn.q_proj', 2 * hidden, heads * headDim),
        product('self_attn.k_proj', 2 * hidden, keyValueHeads * headDim),
        product('self_attn.v_proj', 2 * hidden, keyValueHeads * headDim),
      ],
      out: product('self_attn.o_proj', heads * headDim, hidden),
      heads,
      keyValueHeads,
      headDim,
      scale: 1 / Math.sqrt(headDim / 2),
    }),
    norm('pre_ff_layernorm', hidden),
    gatedMlp(`${block}.feed_forward`, {
      inputs: [
        product('feed_forward.gate_proj', hidden, inner),
        product('feed_forward.up_proj', hidden, inner),
      ],
      activation: activationOf(config.hidden_act),
      down: product('feed_forward.down_proj', inner, hidden),
    }),
  ];
}
