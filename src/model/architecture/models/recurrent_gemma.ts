/** RecurrentGemma (arXiv 2404.07839): Griffin's recurrent blocks, and attention with a window in every third block. */
import * as z from 'zod';
import { slidingWindow } from '../constructors/attention-layers.js';
import { scale, softcap } from '../constructors/basic-layers.js';
import { griffinRecurrence } from '../constructors/griffin-layers.js';
import { defineRules } from '../family.js';
import { harmless, type JsonObject, unreadEach } from '../transformer/config-keys.js';
import {
  residualBlock,
  rotaryOf,
  separateAttention,
  separateMlp,
} from '../transformer/decoder-parts.js';
import { defineDecoder, plainDecoderDocument } from '../transformer/define-decoder.js';
import { partialFactorIn } from '../transformer/rotary.js';
import {
  activationOf,
  activationWord,
  attentionBias,
  count,
  normEpsilon,
  partOfHead,
  positiveInteger,
} from '../transformer/settings.js';
import { HIDDEN_ACT_UNREAD } from './gemma.js';

const KINDS = ['recurrent', 'recurrent', 'attention'] as const;

/** Repetitions of `block_types` that the class makes. */
const MOST_REPETITIONS = 100;

// Defaults are those of transformers' RecurrentGemmaConfig.
const schema = plainDecoderDocument(
  'recurrent_gemma',
  {
    vocab_size: 256_000,
    hidden_size: 2560,
    intermediate_size: 7680,
    num_hidden_layers: 26,
    num_attention_heads: 10,
    max_position_embeddings: 8192,
    tie_word_embeddings: true,
  },
  {
    rms_norm_eps: normEpsilon(1e-6),
    lru_width: positiveInteger
      .nullable()
      .default(null)
      .describe('Width of the recurrence, a multiple of the heads; null: hidden_size'),
    block_types: z
      .array(z.enum(['recurrent', 'attention']))
      .min(1)
      .default([...KINDS])
      .describe('Kinds of the layers, repeated as often as necessary'),
    attention_window_size: count(2048, 'Keys that a position sees, its own included'),
    conv1d_width: count(4, 'Tokens that a convolution sees'),
    logits_soft_cap: z.number().positive().default(30).describe('Softcap of the logits'),
    partial_rotary_factor: partOfHead(0.5),
    attention_bias: attentionBias,
    hidden_activation: activationWord
      .default('gelu_pytorch_tanh')
      .describe('Activation of the gates'),
  },
);

type RecurrentGemmaConfig = z.output<typeof schema>['model'];

const BFLOAT16_STEP = 2 ** 8;

/** Nearest number of 8 significant bits, ties to even; the class holds its factor in bfloat16. */
function asBfloat16(value: number): number {
  const unit = 2 ** (Math.floor(Math.log2(value)) + 1) / BFLOAT16_STEP;
  const whole = Math.floor(value / unit);
  const rest = value / unit - whole;
  const isUp = rest > 0.5 || (rest === 0.5 && whole % 2 === 1);
  return (whole + (isUp ? 1 : 0)) * unit;
}

const lruWidth = ({ lru_width: width, hidden_size: hidden }: RecurrentGemmaConfig): number =>
  width ?? hidden;

/** Published files give the kinds of a model without a key for the rotated part. */
const moreIn = (config: JsonObject): JsonObject => {
  const { partial_rotary_factor: part } = partialFactorIn(config);
  return { partial_rotary_factor: part ?? config.partial_rotary_factor };
};

export const recurrentGemma = defineDecoder({
  title: 'RecurrentGemma: gated recurrences, and attention with a window',
  architecture: 'hybrid',
  schema,
  rules: defineRules<{ readonly model: RecurrentGemmaConfig }>([
    {
      severity: 'error',
      reads: ['model.lru_width', 'model.hidden_size', 'model.num_attention_heads'],
      check({ model }) {
        const [width, heads] = [lruWidth(model), model.num_attention_heads];
        return width % heads === 0
          ? undefined
          : {
              message: `${heads} heads do not divide a recurrence of ${width} values`,
              suggestion: `write lru_width: ${heads * Math.ceil(width / heads)}`,
            };
      },
    },
    {
      severity: 'error',
      reads: ['model.rope_scaling'],
      check: ({ model: { rope_scaling: scaling } }) =>
        scaling == null || scaling.rope_type === 'default'
          ? undefined
          : {
              message: `its class has no rotary scaling, found ${scaling.rope_type}`,
              suggestion: 'leave rope_scaling out',
            },
    },
    {
      severity: 'error',
      reads: ['model.block_types', 'model.num_hidden_layers'],
      check: ({ model: { block_types: kinds, num_hidden_layers: layers } }) =>
        layers <= MOST_REPETITIONS * kinds.length
          ? undefined
          : {
              message: `the class repeats ${kinds.length} block_types ${MOST_REPETITIONS} times, which is less than ${layers} layers`,
              suggestion: 'write a longer list',
            },
    },
  ]),
  dimensions: null,
  huggingFace: {
    names: { attention_window_size: ['sliding_window'] },
    more: moreIn,
    harmless: harmless('sets the initial weights', [
      'w_init_variance_scale',
      'final_w_init_variance_scale',
    ]),
    limited: {
      ...HIDDEN_ACT_UNREAD,
      ...unreadEach(['layers_block_type', '_block_types'], () => true),
    },
  },
  normOffset: 1,
  finalNorm: 'final_norm',
  embeddingSteps: ({ hidden_size: hidden }) => [
    scale('model.normalizer', asBfloat16(Math.sqrt(hidden))),
  ],
  logitSteps: ({ logits_soft_cap: cap }) => [softcap('logit_softcap', cap)],
  block: (name, { norm, attention, feedForward }) =>
    residualBlock(name, {
      temporal: [norm(`${name}.temporal_pre_norm`), attention],
      mlp: [norm(`${name}.channel_pre_norm`), feedForward],
    }),
  attentionLayer({ name: block, index, config, heads }) {
    const name = `${block}.temporal_block`;
    const { block_types: kinds } = config;
    if (kinds[index % kinds.length] === 'recurrent') {
      return griffinRecurrence(name, {
        hidden: config.hidden_size,
        width: lruWidth(config),
        heads: config.num_attention_heads,
        kernel: config.conv1d_width,
        activation: activationOf(config.hidden_activation),
      });
    }
    return separateAttention(name, {
      ...heads,
      bias: config.attention_bias,
      outBias: true,
      window: slidingWindow(config.attention_window_size),
      rotary: rotaryOf(block, config, heads.headDim, { part: config.partial_rotary_factor }),
    });
  },
  feedForward: ({ name, config }) =>
    separateMlp(`${name}.mlp_block`, {
      hidden: config.hidden_size,
      inner: Math.floor(config.intermediate_size / 2),
      activation: activationOf(config.hidden_activation),
      bias: true,
    }),
});
