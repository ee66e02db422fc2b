/** Parts of models with gated DeltaNet in most layers and gated attention in the others (Qwen3-Next, Qwen3.5). */

import * as z from 'zod';
import { isRecord } from '../../../base/values.js';
import { attention } from '../constructors/attention-layers.js';
import {
  fusedProjection,
  gatedRmsNorm,
  linear,
  rmsNormLayer,
} from '../constructors/basic-layers.js';
import { causalConv, gatedDelta } from '../constructors/recurrent-layers.js';
import { defineRules } from '../family.js';
import type { FusedProjection, Layer, Linear } from '../layer.js';
import { type JsonObject, unreadEach } from './config-keys.js';
import { rotaryOf } from './decoder-parts.js';
import type { BlockInputs } from './define-decoder.js';
import { type RopeScaling, rotaryReading } from './rotary.js';
import {
  activationOf,
  attentionBias,
  count,
  gateActivation,
  partOfHead,
  type SettingsOf,
} from './settings.js';

export const deltaSettings = (defaults: { readonly linear_num_value_heads: number }) => ({
  partial_rotary_factor: partOfHead(0.25),
  layer_types: z
    .array(z.enum(['linear_attention', 'full_attention']))
    .nullish()
    .describe('Which layers have attention; the others have gated DeltaNet'),
  full_attention_interval: count(
    4,
    'Without layer_types: period of the layers that have attention',
  ),
  linear_conv_kernel_dim: count(4, 'Tokens that the convolution of gated DeltaNet sees'),
  linear_num_key_heads: count(16, 'Query and key heads of gated DeltaNet'),
  linear_num_value_heads: count(
    defaults.linear_num_value_heads,
    'Value heads of gated DeltaNet, a multiple of its key heads',
  ),
  linear_key_head_dim: count(128, 'Width of a query or key of gated DeltaNet'),
  linear_value_head_dim: count(128, 'Width of a value of gated DeltaNet'),
  attention_bias: attentionBias,
  hidden_act: gateActivation,
});

type DeltaConfig = SettingsOf<ReturnType<typeof deltaSettings>> & {
  readonly hidden_size: number;
  readonly max_position_embeddings: number;
  readonly rope_theta: number;
  readonly rope_scaling?: RopeScaling | null | undefined;
  readonly rms_norm_eps: number;
};

/** Key heads must divide the value heads. */
export const DELTA_RULES = defineRules<{ readonly model: DeltaConfig }>([
  {
    severity: 'error',
    reads: ['model.linear_num_value_heads', 'model.linear_num_key_heads'],
    check: ({ model: { linear_num_value_heads: values, linear_num_key_heads: keys } }) =>
      values % keys === 0
        ? undefined
        : {
            message: `${keys} key heads do not divide ${values} value heads`,
            suggestion: `write linear_num_value_heads: ${keys * Math.ceil(values / keys)}`,
          },
  },
]);

/** Keys for positions of images. Text has the same position in every section. */
const OF_IMAGES: readonly string[] = ['mrope_section', 'mrope_interleaved'];

const ofText = (rotary: unknown): unknown =>
  isRecord(rotary)
    ? Object.fromEntries(Object.entries(rotary).filter(([key]) => !OF_IMAGES.includes(key)))
    : rotary;

const textConfig = (config: JsonObject): JsonObject => ({
  ...config,
  ...('rope_parameters' in config && { rope_parameters: ofText(config.rope_parameters) }),
  ...('rope_scaling' in config && { rope_scaling: ofText(config.rope_scaling) }),
});

const plain = rotaryReading({ partial_rotary_factor: true });

export const DELTA_READING = {
  rotary: {
    ...plain,
    settings: (config: JsonObject) => plain.settings(textConfig(config)),
    remarks: (config: JsonObject) => plain.remarks(textConfig(config)),
  },
} as const;

/** Keys of the model with images that the text part belongs to. */
export const IMAGE_KEYS = unreadEach(
  [
    'depth',
    'in_channels',
    'num_heads',
    'num_position_embeddings',
    'out_hidden_size',
    'patch_size',
    'spatial_merge_size',
    'temporal_patch_size',
    'text_config',
    'video_token_id',
    'vision_config',
  ],
  [],
  'it belongs to the model with images',
);

/** Products of gated DeltaNet: queries, keys, values, gate, β and steps. */
export type DeltaInputBuilder = (
  name: string,
  sizes: {
    readonly hidden: number;
    readonly keys: number;
    readonly values: number;
    readonly keyHeads: number;
    readonly valueHeads: number;
  },
) => readonly (Linear | FusedProjection)[];

/** Settings that gated DeltaNet reads. */
type DeltaSize =
  | 'hidden_size'
  | 'rms_norm_eps'
  | 'hidden_act'
  | `linear_${'num_key_heads' | 'num_value_heads' | 'key_head_dim' | 'value_head_dim' | 'conv_kernel_dim'}`;

/** Gated DeltaNet, or attention with a gate of its own, by the kind of the layer. */
export function deltaOrAttention(
  block: BlockInputs<DeltaConfig>,
  inputs: DeltaInputBuilder,
): Layer {
  const { config, index } = block;
  const { layer_types: types, full_attention_interval: interval } = config;
  const attends = types ? types[index] === 'full_attention' : (index + 1) % interval === 0;
  return attends ? gatedAttention(block) : deltaNet(`${block.name}.linear_attn`, config, inputs);
}

/** Gated DeltaNet (arXiv 2412.06464) of the Qwen models, [B, T, H] → [B, T, H]. */
export function deltaNet(
  name: string,
  config: Pick<DeltaConfig, DeltaSize>,
  inputs: DeltaInputBuilder,
): Layer {
  const { hidden_size: hidden, linear_conv_kernel_dim: kernel, rms_norm_eps: eps } = config;
  const { linear_num_key_heads: keyHeads, linear_num_value_heads: valueHeads } = config;
  const { linear_key_head_dim: keyDim, linear_value_head_dim: valueDim } = config;
  const [keys, values] = [keyHeads * keyDim, valueHeads * valueDim];
  return gatedDelta(name, {
    convs: [
      causalConv(`${name}.conv1d`, 2 * keys + values, kernel, { bias: false, cached: kernel }),
    ],
    inputs: inputs(name, { hidden, keys, values, keyHeads, valueHeads }),
    norm: gatedRmsNorm(`${name}.norm`, {
      eps,
      width: values,
      groups: valueHeads,
      sharedWeight: true,
      gated: 'after',
    }),
    outProj: linear(`${name}.out_proj`, values, hidden, { bias: false }),
    keyHeads,
    keyDim,
    valueHeads,
    valueDim,
    activation: activationOf(config.hidden_act),
    betaScale: 1,
  });
}

/** Each head of q_proj gives a query and a gate. */
function gatedAttention({ name: block, config, heads: layout }: BlockInputs<DeltaConfig>): Layer {
  const name = `${block}.self_attn`;
  const { hidden, heads, keyValueHeads, headDim } = layout;
  const bias = config.attention_bias;
  const product = (leaf: string, width: number) =>
    linear(`${name}.${leaf}`, hidden, width, { bias });
  const [queries, keys] = [heads * headDim, keyValueHeads * headDim];
  const norm = (leaf: string) => rmsNormLayer(`${name}.${leaf}`, headDim, config.rms_norm_eps, 1);
  return attention(name, {
    inputs: [
      fusedProjection(product('q_proj', 2 * queries), [queries, queries], heads),
      product('k_proj', keys),
      product('v_proj', keys),
    ],
    out: linear(`${name}.o_proj`, queries, hidden, { bias }),
    heads,
    keyValueHeads,
    headDim,
    queryNorm: norm('q_norm'),
    keyNorm: norm('k_norm'),
    rotary: rotaryOf(block, config, headDim, { part: config.partial_rotary_factor }),
    gate: 'sigmoid',
  });
}
