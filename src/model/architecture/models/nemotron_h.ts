/** Nemotron-H (arXiv 2504.03624): one mixer a block, which is Mamba-2, attention, a network or experts without gates. */
import * as z from 'zod';
import { gatedRmsNorm, linear, rmsNormLayer } from '../constructors/basic-layers.js';
import { mixtureOfExperts, packedExperts, router } from '../constructors/feed-forward-layers.js';
import { stateSpaceDual } from '../constructors/recurrent-layers.js';
import type { Layer, MixtureOfExperts } from '../layer.js';
import { buffer, checkNames } from '../param.js';
import {
  type HarmlessKeys,
  harmless,
  type JsonObject,
  unreadBut,
  unreadEach,
} from '../transformer/config-keys.js';
import {
  causalModel,
  plainMlp,
  residualBlock,
  separateAttention,
} from '../transformer/decoder-parts.js';
import { defineTransformer } from '../transformer/define-decoder.js';
import { isHeldInMemory } from '../transformer/hugging-face.js';
import { expertRules, groupRules, headRules, lengthRules } from '../transformer/rules.js';
import {
  activationOf,
  activationWord,
  count,
  expertsStored,
  headPath,
  headsOf,
  mlpBias,
  normEpsilon,
  positiveInteger,
  prefixStoredIn,
  storedPrefix,
  toggle,
  transformerDocument,
} from '../transformer/settings.js';
import { layerTypesIn, RECURRENT_HARMLESS } from '../transformer/state-space.js';

const KINDS = ['linear_attention', 'full_attention', 'mlp', 'moe'] as const;

/** Letters of older files. */
const LETTERS: Readonly<Record<string, (typeof KINDS)[number]>> = {
  M: 'linear_attention',
  '*': 'full_attention',
  '-': 'mlp',
  E: 'moe',
};

const PREFIXES = { own: 'backbone.', held: 'model.' };

/** Added to the sum of the chosen experts' scores. */
const SUM_EPS = 1e-20;

const schema = transformerDocument('nemotron_h', {
  vocab_size: count(131_072, 'Rows of the embedding and of the head'),
  hidden_size: count(4096, 'Width of the residual stream'),
  layers_block_type: z
    .array(z.enum(KINDS))
    .min(1)
    .default(['linear_attention', 'moe', 'full_attention', 'mlp'])
    .describe('Mixer of each block'),
  num_attention_heads: count(32, 'Query heads'),
  num_key_value_heads: positiveInteger
    .nullable()
    .default(8)
    .describe('Key and value heads, a divisor of the query heads; null: as many'),
  head_dim: count(128, 'Width of a head'),
  max_position_embeddings: count(4096, 'Longest input, in tokens'),
  intermediate_size: count(21_504, 'Width inside a network'),
  mlp_hidden_act: activationWord.default('relu2').describe('Activation of networks and experts'),
  mlp_bias: mlpBias,
  mamba_num_heads: count(128, 'Heads of a Mamba layer'),
  mamba_head_dim: count(64, 'Width of a head of a Mamba layer'),
  n_groups: count(8, 'Groups of heads with the same B and C'),
  ssm_state_size: count(128, 'Values of the state, a channel'),
  conv_kernel: count(4, 'Tokens that the convolution sees'),
  mamba_hidden_act: activationWord.default('silu').describe('Activation behind the convolution'),
  time_step_min: z.number().min(0).default(0.001).describe('Least step of a Mamba layer'),
  use_bias: toggle(false, 'Biases in in_proj and out_proj of a Mamba layer'),
  use_conv_bias: toggle(true, 'Biases in the convolution'),
  n_routed_experts: count(8, 'Experts to choose from'),
  num_experts_per_tok: count(2, 'Experts that a token goes to'),
  moe_intermediate_size: count(7688, 'Width inside an expert'),
  moe_shared_expert_intermediate_size: count(7688, 'Width inside the shared network'),
  moe_latent_size: positiveInteger
    .nullable()
    .default(null)
    .describe('Width that experts read and give; null: that of the model'),
  n_group: count(1, 'Groups of experts'),
  topk_group: count(1, 'Groups that a token can go to'),
  norm_topk_prob: toggle(true, 'Weights of the chosen experts sum to one'),
  routed_scaling_factor: z.number().default(1).describe('Factor of the weights of experts'),
  layer_norm_epsilon: normEpsilon(1e-5),
  stored_prefix: storedPrefix(PREFIXES),
  experts_stored: expertsStored,
});

/** Harmless keys without the least step, which is a setting here. */
const { time_step_min: _, ...OTHERS_HARMLESS }: HarmlessKeys = RECURRENT_HARMLESS;

type NemotronH = z.output<typeof schema>['model'];

export const nemotronH = defineTransformer({
  title: 'Nemotron-H: Mamba-2, attention, and networks without gates',
  architecture: 'hybrid',
  schema,
  rules: [
    ...headRules,
    ...groupRules('n_groups', 'mamba_num_heads'),
    ...expertRules('n_routed_experts'),
    ...lengthRules('max_position_embeddings'),
  ],
  huggingFace: {
    names: {
      layers_block_type: ['layer_types'],
      n_routed_experts: ['num_local_experts'],
      n_groups: ['mamba_n_groups'],
      conv_kernel: ['mamba_d_conv'],
      time_step_min: ['mamba_dt_min'],
      use_conv_bias: ['mamba_conv_bias'],
    },
    more: (config) => ({
      layers_block_type: mixersIn(config),
      stored_prefix: isHeldInMemory(config) ? 'model.' : undefined,
    }),
    reads: ['hybrid_override_pattern', 'num_hidden_layers'],
    harmless: {
      ...OTHERS_HARMLESS,
      ...harmless('of layers that predict further tokens, which the model leaves out', [
        'num_nextn_predict_layers',
        'mtp_layers_block_type',
        'mtp_hybrid_override_pattern',
      ]),
      ...harmless('not read: the sizes of the heads decide', ['expand', 'mamba_expand']),
      moe_shared_expert_overlap: 'chooses how the same values are computed',
      mamba_ssm_cache_dtype: 'not read: the state is in float32',
      num_logits_to_keep: 'the logits of fewer tokens are the same',
      n_shared_experts: 'not read: there is one shared network',
    },
    limited: {
      ...unreadEach(['attention_bias', 'mamba_proj_bias', 'tie_word_embeddings'], [false]),
      ...unreadEach(
        ['rope_parameters', 'rope_scaling', 'rope_theta', 'partial_rotary_factor'],
        [],
        'attention has no positions',
      ),
      time_step_limit: {
        allows: (value) => value === null || isWithoutLimits(value),
        why: 'transformers takes time_step_min in its place',
        severity: 'warning',
      },
      mamba_dt_limit: unreadBut(isWithoutLimits, 'transformers takes time_step_min in its place'),
    },
  },
  storedSettings(stored) {
    const expert = [...stored.names()].find((name) => name.includes('.experts.'));
    return [
      ...prefixStoredIn(stored, PREFIXES, 'embeddings.weight'),
      ...(expert === undefined
        ? []
        : [
            {
              path: 'model.experts_stored',
              value: /\.experts\.\d/.test(expert) ? 'separate' : 'packed',
            },
          ]),
    ];
  },
  ignoredOnLoad: ['mtp.*'],
  build({ model: config }) {
    const { hidden_size: hidden, stored_prefix: prefix, layer_norm_epsilon: eps } = config;
    const norm = (name: string) => rmsNormLayer(name, hidden, eps);
    return causalModel({
      paths: {
        embedding: `${prefix}embeddings`,
        blocks: `${prefix}layers`,
        head: headPath(prefix, PREFIXES),
      },
      vocabulary: config.vocab_size,
      hidden,
      positions: config.max_position_embeddings,
      tied: false,
      blocks: config.layers_block_type.length,
      blocksKey: 'layers_block_type',
      norm: norm(`${prefix}norm_f`),
      block: (name, index) =>
        residualBlock(name, {
          mixer: [norm(`${name}.norm`), mixer(`${name}.mixer`, config, index)],
        }),
    });
  },
});

function mixersIn({
  layers_block_type: list,
  layer_types: other,
  hybrid_override_pattern: pattern,
}: JsonObject): unknown {
  const given = list ?? other;
  if (given != null || typeof pattern !== 'string') return layerTypesIn(given);
  return [...pattern].map((letter) => (Object.hasOwn(LETTERS, letter) ? LETTERS[letter] : letter));
}

/** Whether bounds of steps are those of a config that gives none. */
function isWithoutLimits(value: unknown): boolean {
  return Array.isArray(value) && value[0] === 0 && typeof value[1] !== 'number';
}

function mixer(name: string, config: NemotronH, index: number): Layer {
  const { hidden_size: hidden, mlp_bias: bias, mlp_hidden_act: activation } = config;
  switch (config.layers_block_type[index] ?? 'mlp') {
    case 'linear_attention':
      return dual(name, config);
    case 'full_attention':
      return separateAttention(name, headsOf(config));
    case 'mlp':
      return plainMlp(name, { hidden, inner: config.intermediate_size, activation, bias });
    case 'moe':
      return experts(name, config);
  }
}

function dual(name: string, config: NemotronH): Layer {
  const { mamba_num_heads: heads, mamba_head_dim: headDim, n_groups: groups } = config;
  const kernel = config.conv_kernel;
  return stateSpaceDual(
    name,
    {
      hidden: config.hidden_size,
      heads,
      headDim,
      state: config.ssm_state_size,
      groups,
      kernel,
    },
    {
      bias: config.use_bias,
      conv: { bias: config.use_conv_bias, cached: kernel },
      norm: gatedRmsNorm(`${name}.norm`, {
        eps: config.layer_norm_epsilon,
        width: heads * headDim,
        groups,
        gated: 'before',
      }),
      activation: activationOf(config.mamba_hidden_act),
      stepLimits: [config.time_step_min, Number.POSITIVE_INFINITY],
    },
  );
}

function experts(name: string, config: NemotronH): MixtureOfExperts {
  const { hidden_size: hidden, mlp_bias: bias, mlp_hidden_act: activation } = config;
  const { n_routed_experts: count, moe_intermediate_size: inner, moe_latent_size: latent } = config;
  const width = latent ?? hidden;
  const gate = `${name}.gate`;
  if (config.experts_stored === 'separate') checkNames('model.n_routed_experts', count);
  return mixtureOfExperts(name, {
    router: router(gate, hidden, {
      experts: count,
      expertsPerToken: config.num_experts_per_tok,
      scoring: 'sigmoid',
      correction: buffer(`${gate}.e_score_correction_bias`, [count]),
      groups:
        config.n_group === 1
          ? undefined
          : {
              count: config.n_group,
              kept: config.topk_group,
              score: 'bestTwo',
              dropped: Number.NEGATIVE_INFINITY,
            },
      renormalised: config.norm_topk_prob ? { eps: SUM_EPS } : undefined,
      scale: config.routed_scaling_factor,
    }),
    experts:
      config.experts_stored === 'packed'
        ? packedExperts(
            `${name}.experts`,
            { experts: count, hidden: width, inner },
            activationOf(activation),
            { leaves: ['up_proj', 'down_proj'], gated: false },
          )
        : Array.from({ length: count }, (_, index) => ({
            ...plainMlp(`${name}.experts.${index}`, {
              hidden: width,
              inner,
              activation,
              bias: false,
            }),
            component: 'experts' as const,
          })),
    shared: [
      {
        ...plainMlp(`${name}.shared_experts`, {
          hidden,
          inner: config.moe_shared_expert_intermediate_size,
          activation,
          bias,
        }),
        component: 'sharedExperts',
      },
    ],
    latent: latent
      ? [
          linear(`${name}.fc1_latent_proj`, hidden, latent, { bias }),
          linear(`${name}.fc2_latent_proj`, latent, hidden, { bias }),
        ]
      : [],
  });
}
