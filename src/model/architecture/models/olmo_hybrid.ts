/** OLMo Hybrid: gated DeltaNet with norms before it, attention of OLMo 3 in every fourth layer. */
import * as z from 'zod';
import { gatedRmsNorm, linear } from '../constructors/basic-layers.js';
import { causalConv, gatedDelta } from '../constructors/recurrent-layers.js';
import type { StoredShapes } from '../family.js';
import type { Layer } from '../layer.js';
import { harmless, type JsonObject } from '../transformer/config-keys.js';
import { postNormBlock, preNormBlock } from '../transformer/decoder-parts.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import { isHeldInMemory } from '../transformer/hugging-face.js';
import { PREDICTING, ROTARY_BUFFERS } from '../transformer/ignored-tensors.js';
import { rotaryIn } from '../transformer/rotary.js';
import {
  activationOf,
  attentionBias,
  count,
  decoderStored,
  gateActivation,
  positiveInteger,
  toggle,
} from '../transformer/settings.js';

/** Epsilon of the gated norms, regardless of rms_norm_eps. */
const GATED_NORM_EPS = 1e-5;
const PATTERN = 4;

const sizeOrNull = (text: string) => positiveInteger.nullable().default(null).describe(text);

const olmoHybridSchema = decoderDocument(
  'olmo_hybrid',
  {
    vocab_size: 100_352,
    hidden_size: 3840,
    intermediate_size: 11_008,
    num_hidden_layers: 32,
    num_attention_heads: 30,
    max_position_embeddings: 65_536,
    rms_norm_eps: 1e-6,
  },
  {
    stored_names: z
      .enum(['saved', 'in thirds', 'held'])
      .default('saved')
      .describe(
        'Names of the tensors: as published, as transformers 5 saves them, with a convolution in three equal parts, or as it holds them',
      ),
    use_rope: toggle(
      true,
      'Attention has rotary positions; in files, false is a rope_theta of null',
    ),
    layer_types: z
      .array(z.enum(['linear_attention', 'full_attention']))
      .nullish()
      .describe('Which layers have attention; the others have gated DeltaNet'),
    linear_num_key_heads: sizeOrNull(
      'Query and key heads of gated DeltaNet; null: num_attention_heads',
    ),
    linear_num_value_heads: sizeOrNull('Its value heads; null: num_attention_heads'),
    linear_key_head_dim: sizeOrNull('Width of its keys; null: ¾ of hidden_size, over its heads'),
    linear_value_head_dim: sizeOrNull('Width of its values; null: twice that of its keys'),
    linear_conv_kernel_dim: count(4, 'Tokens that its convolution sees'),
    linear_allow_neg_eigval: toggle(
      true,
      'β is between 0 and 2, not 1: states can change their sign',
    ),
    attention_bias: attentionBias,
    hidden_act: gateActivation,
  },
);

type OlmoHybridConfig = z.output<typeof olmoHybridSchema>['model'];

/** Ending of a convolution's name in saved files. */
const SAVED_CONV = '.linear_attn.q_conv1d.weight';

/** Name of a norm in saved files. */
const storedNorm = (path: string): string =>
  path
    .replace(/\binput_layernorm$/, 'attention_layer_norm')
    .replace(/\bpost_attention_layernorm$/, 'feedforward_layer_norm');

/** Sizes of gated DeltaNet; those left out follow from the attention's. */
function deltaSizes(config: OlmoHybridConfig) {
  const keyHeads = config.linear_num_key_heads ?? config.num_attention_heads;
  const keyDim = config.linear_key_head_dim ?? Math.trunc((0.75 * config.hidden_size) / keyHeads);
  return {
    keyHeads,
    keyDim,
    valueHeads: config.linear_num_value_heads ?? config.num_attention_heads,
    valueDim: config.linear_value_head_dim ?? 2 * keyDim,
  };
}

/**
 * Channels of the first two of three parts, as torch.chunk cuts them. transformers 5 saves its joint convolution in
 * these parts, regardless of the widths of queries, keys and values.
 */
function thirdsOf(channels: number): readonly [number, number] {
  const first = Math.ceil(channels / 3);
  return [first, Math.min(first, channels - first)];
}

/** Form of the names in a checkpoint; undefined without such a convolution. */
function namesStored(stored: StoredShapes): 'saved' | 'in thirds' | 'held' | undefined {
  for (const name of stored.names()) {
    if (name.endsWith('.linear_attn.conv1d.weight')) return 'held';
    if (!name.endsWith(SAVED_CONV)) continue;
    const [queries = 0, , values = 0] = ['q', 'k', 'v'].map(
      (part) => stored.shapeOf(name.replace(SAVED_CONV, `.linear_attn.${part}_conv1d.weight`))?.[0],
    );
    return values <= queries && queries - values <= 2 ? 'in thirds' : 'saved';
  }
  return undefined;
}

function attends({ layer_types: types, num_hidden_layers: layers }: OlmoHybridConfig, at: number) {
  if (types) return types[at] === 'full_attention';
  // The last layer of a model that is not deep enough for the pattern.
  return layers < PATTERN ? at === layers - 1 : at % PATTERN === PATTERN - 1;
}

function deltaNet(block: string, config: OlmoHybridConfig): Layer {
  const name = `${block}.linear_attn`;
  const { hidden_size: hidden, linear_conv_kernel_dim: kernel } = config;
  const sizes = deltaSizes(config);
  const [keys, values] = [sizes.keyHeads * sizes.keyDim, sizes.valueHeads * sizes.valueDim];
  const product = (leaf: string, width: number) =>
    linear(`${name}.${leaf}`, hidden, width, { bias: false });
  const conv = (leaf: string, channels: number) =>
    causalConv(`${name}.${leaf}`, channels, kernel, { bias: false, cached: kernel });
  const channels = 2 * keys + values;
  const [first, second] = config.stored_names === 'saved' ? [keys, keys] : thirdsOf(channels);
  return gatedDelta(name, {
    ...sizes,
    convs:
      config.stored_names === 'held'
        ? [conv('conv1d', channels)]
        : [
            conv('q_conv1d', first),
            conv('k_conv1d', second),
            conv('v_conv1d', channels - first - second),
          ],
    inputs: [
      product('q_proj', keys),
      product('k_proj', keys),
      product('v_proj', values),
      product('g_proj', values),
      product('b_proj', sizes.valueHeads),
      product('a_proj', sizes.valueHeads),
    ],
    norm: gatedRmsNorm(`${name}.o_norm`, {
      eps: GATED_NORM_EPS,
      width: values,
      groups: sizes.valueHeads,
      sharedWeight: true,
      gated: 'after',
    }),
    outProj: linear(`${name}.o_proj`, values, hidden, { bias: false }),
    activation: activationOf(config.hidden_act),
    betaScale: config.linear_allow_neg_eigval ? 2 : 1,
  });
}

export const olmoHybrid = defineDecoder({
  title: 'OLMo Hybrid: gated DeltaNet, and attention in every fourth layer',
  architecture: 'hybrid',
  schema: olmoHybridSchema,
  rules: [
    {
      severity: 'error',
      reads: ['model.linear_num_value_heads', 'model.linear_num_key_heads'],
      check({ model }) {
        const { keyHeads, valueHeads } = deltaSizes(model);
        return valueHeads % keyHeads === 0
          ? undefined
          : {
              message: `${keyHeads} key heads do not divide ${valueHeads} value heads`,
              suggestion: `write linear_num_value_heads: ${keyHeads * Math.ceil(valueHeads / keyHeads)}`,
            };
      },
    },
  ],
  dimensions: null,
  ignoredOnLoad: ({ model }) => [PREDICTING, ...(model.use_rope ? [ROTARY_BUFFERS] : [])],
  huggingFace: {
    more: (config: JsonObject) => ({
      stored_names: isHeldInMemory(config) ? 'held' : 'saved',
      use_rope: rotaryIn(config).rope_theta !== null || config.rope_theta != null,
    }),
    harmless: harmless('sets the initial weights', [
      'linear_a_log_max',
      'linear_a_log_min',
      'linear_dt_init_floor',
      'linear_dt_max',
      'linear_dt_min',
    ]),
  },
  block(name, parts, { stored_names: stored }) {
    const norm = (path: string) => parts.norm(stored === 'held' ? path : storedNorm(path));
    const block = parts.attention.kind === 'gatedDelta' ? preNormBlock : postNormBlock;
    return block(name, { ...parts, norm });
  },
  storedSettings(stored) {
    const names = namesStored(stored);
    return [
      ...decoderStored(stored),
      ...(names === undefined ? [] : [{ path: 'model.stored_names', value: names }]),
    ];
  },
  queryKeyNorms: 'all heads',
  attention: ({ config }) => ({ ...(!config.use_rope && { rotary: undefined }) }),
  attentionLayer: ({ name, config, index }) =>
    attends(config, index) ? undefined : deltaNet(name, config),
});
