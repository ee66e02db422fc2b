/** Phi-3.5-MoE (arXiv 2404.14219): LayerNorms, and two experts, each with a softmax of the scores near its own. */
import * as z from 'zod';
import { rotary } from '../constructors/attention-layers.js';
import { layerNormLayer } from '../constructors/basic-layers.js';
import { mixtureOfExperts, router } from '../constructors/feed-forward-layers.js';
import type { KeyRemark } from '../family.js';
import type { RotaryScaling } from '../layer.js';
import { type JsonObject, unreadBut } from '../transformer/config-keys.js';
import { expertsOf } from '../transformer/decoder-parts.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import { type RotaryReading, rotaryIn, rotaryReading, scalingOf } from '../transformer/rotary.js';
import {
  activationOf,
  attentionBias,
  expertsStored,
  gateActivation,
  positiveInteger,
  toggle,
  windowAt,
  windowSettings,
} from '../transformer/settings.js';

/** Names of the mixture and its router with packed and with separate experts. */
const MIXTURE = {
  packed: { name: 'mlp', router: 'router' },
  separate: { name: 'block_sparse_moe', router: 'gate' },
} as const;

/** Experts of a token, fixed in the original code. */
const CHOSEN = 2;

const amplitude = z.number().nullish();
const plain = rotaryReading({});

/** The config with rotary settings without the amplitudes, which are settings of their own. */
const withoutAmplitudes = (config: JsonObject): JsonObject => {
  const {
    short_mscale: _,
    long_mscale: __,
    partial_rotary_factor: ___,
    ...rest
  } = rotaryIn(config);
  return { ...config, rope_scaling: undefined, rope_parameters: rest };
};

const reading: RotaryReading = {
  keys: plain.keys,
  settings(config) {
    const { short_mscale, long_mscale } = rotaryIn(config);
    return { ...plain.settings(withoutAmplitudes(config)), short_mscale, long_mscale };
  },
  remarks(config) {
    const { partial_rotary_factor: part = null } = rotaryIn(config);
    const remark: KeyRemark = {
      path: ['rope_parameters', 'partial_rotary_factor'],
      severity: 'error',
      why: 'this family rotates whole heads',
    };
    return [
      ...plain.remarks(withoutAmplitudes(config)),
      ...(part === null || part === 1 ? [] : [remark]),
    ];
  },
};

const phimoeSchema = decoderDocument(
  'phimoe',
  {
    vocab_size: 32_064,
    hidden_size: 4096,
    intermediate_size: 6400,
    num_hidden_layers: 32,
    num_attention_heads: 32,
    num_key_value_heads: 8,
    max_position_embeddings: 131_072,
    rms_norm_eps: 1e-5,
    rope_theta: 1e6,
  },
  {
    short_mscale: amplitude.describe('With longrope: factor of cosine and sine'),
    long_mscale: amplitude.describe('The same, for inputs beyond the length of the training'),
    sliding_window: windowSettings().sliding_window,
    attention_bias: attentionBias,
    lm_head_bias: toggle(false, 'A bias in the head'),
    num_local_experts: positiveInteger.min(CHOSEN).default(16).describe('Experts to choose from'),
    router_jitter_noise: z
      .number()
      .min(0)
      .default(0.01)
      .describe('Half the distance up to which a score is near another'),
    experts_stored: expertsStored,
    hidden_act: gateActivation,
  },
);

type Phimoe = z.output<typeof phimoeSchema>['model'];

/** Rotary scaling, with the short divisors for every length as in transformers. */
function stretched(config: Phimoe, headDim: number): RotaryScaling | undefined {
  const { short_mscale: short, long_mscale: long } = config;
  const scaling = scalingOf(config.rope_scaling, config.max_position_embeddings, headDim);
  if (scaling?.kind !== 'longrope') return undefined;
  return {
    ...scaling,
    longDivisors: scaling.shortDivisors,
    amplitude: short ?? 1,
    longAmplitude: long ?? 1,
  };
}

export const phimoe = defineDecoder({
  title: 'Phi-3.5-MoE',
  architecture: 'mixture',
  schema: phimoeSchema,
  rules: [
    {
      severity: 'error',
      reads: ['model.rope_scaling', 'model.short_mscale', 'model.long_mscale'],
      check({ model: { rope_scaling: scaling, short_mscale: short, long_mscale: long } }) {
        if (!scaling || scaling.rope_type === 'default') return undefined;
        if (scaling.rope_type !== 'longrope') {
          return {
            message: `rope_type ${scaling.rope_type} is not supported by Phi-3.5-MoE`,
            suggestion: 'write longrope, or leave rope_scaling out',
          };
        }
        return short == null || long == null
          ? {
              message: 'rope_type longrope needs short_mscale and long_mscale',
              suggestion: 'write both; 1.243163121016122 in Phi-3.5-MoE',
            }
          : undefined;
      },
    },
  ],
  dimensions: { feedForward: { key: 'intermediate_size', perChannel: [1 / 4, 4] } },
  huggingFace: {
    names: { num_local_experts: ['num_experts'] },
    rotary: reading,
    harmless: { input_jitter_noise: 'used in training only' },
    limited: { num_experts_per_tok: unreadBut([CHOSEN], 'a token always has two experts') },
  },
  norm: (name, config) => layerNormLayer(name, config.hidden_size, config.rms_norm_eps),
  headBias: ({ lm_head_bias }) => lm_head_bias,
  attention: ({ name, config, index, heads: { headDim } }) => ({
    rotary: rotary(`${name}.rotary`, {
      base: config.rope_theta,
      headDim,
      scaling: stretched(config, headDim),
    }),
    window: windowAt(config, index, true),
  }),
  feedForward({ name: block, config }) {
    const stored = MIXTURE[config.experts_stored];
    const name = `${block}.${stored.name}`;
    const { hidden_size: hidden, num_local_experts: experts } = config;
    return mixtureOfExperts(name, {
      router: router(`${name}.${stored.router}`, hidden, {
        experts,
        expertsPerToken: CHOSEN,
        scoring: 'sparseMixer',
        nearness: 2 * config.router_jitter_noise,
      }),
      experts: expertsOf(`${name}.experts`, {
        experts,
        hidden,
        inner: config.intermediate_size,
        activation: activationOf(config.hidden_act),
        stored: config.experts_stored,
        leaves: ['w1', 'w3', 'w2'],
      }),
    });
  },
});
