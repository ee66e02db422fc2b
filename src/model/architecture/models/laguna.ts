/** Laguna (Poolside): heads with a softplus gate, in numbers of their own for each layer, and experts with sigmoid scores. */
import * as z from 'zod';
import { attention } from '../constructors/attention-layers.js';
import { linear, rmsNormLayer } from '../constructors/basic-layers.js';
import { mixtureOfExperts, router } from '../constructors/feed-forward-layers.js';
import { defineRules } from '../family.js';
import { param } from '../param.js';
import { type JsonObject, unreadEach } from '../transformer/config-keys.js';
import { expertsOf, mlpOf, separateMlp } from '../transformer/decoder-parts.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import {
  PART_RULES,
  partSettings,
  partsByKind,
  rotaryOfKind,
} from '../transformer/rotary-by-kind.js';
import { layerListRules } from '../transformer/rules.js';
import {
  activationOf,
  attentionBias,
  count,
  expertsStored,
  gateActivation,
  mlpLayerTypes,
  positiveInteger,
  slidesAt,
  windowAt,
  windowSettings,
} from '../transformer/settings.js';

const ROTARY = {
  rope_theta: 500_000,
  rope_local_base_freq: 10_000,
  partial_rotary_factor: 0.5,
  local_partial_rotary_factor: 1,
} as const;

/** First layers without experts, where the config does not list them. */
const DENSE = 1;

const lagunaLayerTypes = ({ layer_types: types }: JsonObject): readonly unknown[] =>
  Array.isArray(types) ? types : ['full_attention'];

/** Names inside a mixture, in files and in memory. */
const NAMES = {
  separate: { correction: 'experts.e_score_correction_bias', shared: 'shared_expert' },
  packed: { correction: 'gate.e_score_correction_bias', shared: 'shared_experts' },
} as const;

export const laguna = defineDecoder({
  title: 'Laguna, with experts',
  architecture: 'mixture',
  schema: decoderDocument(
    'laguna',
    {
      vocab_size: 100_352,
      hidden_size: 2048,
      intermediate_size: 8192,
      num_hidden_layers: 40,
      num_attention_heads: 48,
      num_key_value_heads: 8,
      head_dim: 128,
      max_position_embeddings: 131_072,
      rms_norm_eps: 1e-6,
      rope_theta: ROTARY.rope_theta,
    },
    {
      ...partSettings(ROTARY),
      ...windowSettings(512),
      num_attention_heads_per_layer: z
        .array(positiveInteger)
        .nullish()
        .describe('Query heads of each layer, in place of num_attention_heads'),
      gating: z
        .union([z.boolean(), z.literal(['per-head', 'per-element'])])
        .default(true)
        .describe(
          'per-head or true: one gate for each head; per-element or false: one for each value',
        ),
      attention_bias: attentionBias,
      mlp_layer_types: mlpLayerTypes,
      num_experts: count(256, 'Experts to choose from'),
      num_experts_per_tok: count(8, 'Experts that a token goes to'),
      moe_intermediate_size: count(512, 'Width inside an expert'),
      shared_expert_intermediate_size: count(512, 'Width inside the expert for every token'),
      moe_routed_scaling_factor: z
        .number()
        .default(1)
        .describe('What the weights of the chosen experts are multiplied by'),
      moe_router_logit_softcapping: z
        .number()
        .default(0)
        .describe('Cap of the products that score experts; 0 or less: none'),
      experts_stored: expertsStored,
      hidden_act: gateActivation,
    },
  ),
  rules: [
    ...PART_RULES,
    ...layerListRules('num_attention_heads_per_layer'),
    ...defineRules<{
      readonly model: {
        readonly num_attention_heads_per_layer?: readonly number[] | null | undefined;
        readonly num_attention_heads: number;
        readonly num_key_value_heads: number | null;
      };
    }>([
      {
        severity: 'error',
        reads: ['model.num_attention_heads_per_layer', 'model.num_key_value_heads'],
        check({ model }) {
          const keys = model.num_key_value_heads ?? model.num_attention_heads;
          const wrong = model.num_attention_heads_per_layer?.find((heads) => heads % keys !== 0);
          return wrong === undefined
            ? undefined
            : {
                message: `${keys} key-value heads do not divide the ${wrong} heads of a layer`,
                suggestion: `write multiples of ${keys} in num_attention_heads_per_layer`,
              };
        },
      },
    ]),
  ],
  dimensions: null,
  ignoredOnLoad: [],
  huggingFace: {
    rotary: partsByKind(ROTARY, 1, lagunaLayerTypes),
    limited: {
      ...unreadEach(['rope_scaling', 'rope_theta', 'rope_local_base_freq', 'swa_rope_parameters']),
      ...unreadEach(['partial_rotary_factor'], []),
      ...unreadEach(['norm_topk_prob'], [true]),
      ...unreadEach(['decoder_sparse_step'], [1]),
      ...unreadEach(['qkv_bias'], [false]),
      ...unreadEach(['num_local_experts', 'n_routed_experts', 'swa_attention_sink_enabled']),
      mlp_only_layers: {
        allows: (list, { mlp_layer_types: types }) =>
          list === null ||
          (Array.isArray(list) &&
            JSON.stringify(list) ===
              JSON.stringify(
                Array.isArray(types)
                  ? types.flatMap((kind, index) => (kind === 'dense' ? [index] : []))
                  : [0],
              )),
        why: 'transformers reads mlp_layer_types in its place',
        severity: 'warning',
      },
      moe_apply_router_weight_on_input: {
        allows: (value) => value === null || value === false,
        why: 'transformers has no weights of experts on their inputs for this family',
        severity: 'error',
      },
    },
  },
  attentionLayer({ name: block, config, index, heads: { hidden, headDim, ...given } }) {
    const name = `${block}.self_attn`;
    const heads = config.num_attention_heads_per_layer?.[index] ?? given.heads;
    const { keyValueHeads } = given;
    const gateDim = config.gating === true || config.gating === 'per-head' ? 1 : headDim;
    const product = (leaf: string, width: number, bias = config.attention_bias) =>
      linear(`${name}.${leaf}`, hidden, width, { bias });
    const norm = (leaf: string) => rmsNormLayer(`${name}.${leaf}`, headDim, config.rms_norm_eps);
    return attention(name, {
      inputs: [
        product('q_proj', heads * headDim),
        product('g_proj', heads * gateDim, false),
        product('k_proj', keyValueHeads * headDim),
        product('v_proj', keyValueHeads * headDim),
      ],
      gate: 'softplus',
      gateDim,
      out: linear(`${name}.o_proj`, heads * headDim, hidden, { bias: config.attention_bias }),
      queryNorm: norm('q_norm'),
      keyNorm: norm('k_norm'),
      rotary: rotaryOfKind(block, config, headDim, slidesAt(config, index, false)),
      window: windowAt(config, index, false),
      heads,
      keyValueHeads,
      headDim,
    });
  },
  feedForward({ name: block, index, config }) {
    const name = `${block}.mlp`;
    const types = config.mlp_layer_types;
    if (types ? types[index] !== 'sparse' : index < DENSE) return mlpOf(name, config);
    const { hidden_size: hidden, num_experts: experts } = config;
    const { moe_router_logit_softcapping: cap } = config;
    const activation = activationOf(config.hidden_act);
    const names = NAMES[config.experts_stored];
    return mixtureOfExperts(name, {
      router: router(`${name}.gate`, hidden, {
        experts,
        expertsPerToken: config.num_experts_per_tok,
        scoring: 'sigmoid',
        softcap: cap > 0 ? cap : undefined,
        correction: param(`${name}.${names.correction}`, [experts]),
        renormalised: { eps: 0 },
        scale: config.moe_routed_scaling_factor,
      }),
      experts: expertsOf(`${name}.experts`, {
        experts,
        stored: config.experts_stored,
        hidden,
        inner: config.moe_intermediate_size,
        activation,
      }),
      shared: [
        separateMlp(`${name}.${names.shared}`, {
          hidden,
          inner: config.shared_expert_intermediate_size,
          activation,
          component: 'sharedExperts',
        }),
      ],
    });
  },
});
