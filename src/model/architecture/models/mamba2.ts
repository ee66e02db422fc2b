/** Mamba-2 (arXiv 2405.21060): state space duals, without attention. */
import { gatedRmsNorm } from '../constructors/basic-layers.js';
import { stateSpaceDual } from '../constructors/recurrent-layers.js';
import { defineTransformer } from '../transformer/define-decoder.js';
import { groupRules, lengthRules } from '../transformer/rules.js';
import {
  activationOf,
  count,
  prefixStoredIn,
  tiedHead,
  transformerDocument,
} from '../transformer/settings.js';
import {
  NO_ATTENTION_KEYS,
  RECURRENT_HARMLESS,
  RECURRENT_PREFIX,
  recurrentModel,
  recurrentSizes,
  stepLimit,
  stepLimitIn,
  timeStepRange,
} from '../transformer/state-space.js';

const { head_dim: _, ...withoutRotation } = NO_ATTENTION_KEYS;

const schema = transformerDocument('mamba2', {
  ...recurrentSizes({
    vocab_size: 32_768,
    hidden_size: 4096,
    num_hidden_layers: 64,
    state_size: 128,
  }),
  num_heads: count(128, 'Heads of a layer'),
  head_dim: count(64, 'Width of a head'),
  n_groups: count(8, 'Groups of heads with the same B and C'),
  expand: count(2, 'Inner width, in widths of the model'),
  time_step_limit: stepLimit,
  tie_word_embeddings: tiedHead(false),
});

export const mamba2 = defineTransformer({
  title: 'Mamba-2',
  architecture: 'recurrent',
  schema,
  rules: [
    {
      severity: 'error',
      reads: ['model.num_heads', 'model.head_dim', 'model.expand', 'model.hidden_size'],
      check: ({ model: { num_heads: heads, head_dim: headDim, expand, hidden_size: hidden } }) =>
        heads * headDim === expand * hidden
          ? undefined
          : {
              message: `expected heads for ${expand * hidden} inner values of a layer, found ${heads} heads of ${headDim}`,
              suggestion: `write num_heads: ${(expand * hidden) / headDim}, or another head_dim`,
            },
    },
    ...groupRules('n_groups', 'num_heads'),
    ...lengthRules('seq_length'),
  ],
  huggingFace: {
    more: ({ time_step_limit: limit }) => ({ time_step_limit: stepLimitIn(limit) }),
    harmless: {
      ...RECURRENT_HARMLESS,
      time_step_rank: 'the steps of Mamba-2 have no rank',
    },
    limited: withoutRotation,
  },
  storedSettings: (stored) => prefixStoredIn(stored, RECURRENT_PREFIX, 'embeddings.weight'),
  build: ({ model: config }) =>
    recurrentModel(config, (name) => {
      const { num_heads: heads, head_dim: headDim, conv_kernel: kernel } = config;
      return stateSpaceDual(
        name,
        {
          hidden: config.hidden_size,
          heads,
          headDim,
          state: config.state_size,
          groups: config.n_groups,
          kernel,
        },
        {
          bias: config.use_bias,
          conv: { bias: config.use_conv_bias, cached: kernel },
          norm: gatedRmsNorm(`${name}.norm`, {
            eps: config.layer_norm_epsilon,
            width: heads * headDim,
            gated: 'before',
          }),
          activation: activationOf(config.hidden_act),
          stepLimits: timeStepRange(config.time_step_limit),
        },
      );
    }),
});
