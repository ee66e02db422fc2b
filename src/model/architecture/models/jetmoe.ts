/** JetMoe (arXiv 2404.07413): experts in the feed-forward network, and in attention with keys and values for all. */
import { expertAttention } from '../constructors/attention-kinds.js';
import { rotary } from '../constructors/attention-layers.js';
import {
  fusedProjection,
  linear,
  rmsNormLayer,
  sequence,
  shift,
} from '../constructors/basic-layers.js';
import { mixtureOfExperts, packedExperts, router } from '../constructors/feed-forward-layers.js';
import { param } from '../param.js';
import { decoder, preNormBlock } from '../transformer/decoder-parts.js';
import { defineTransformer } from '../transformer/define-decoder.js';
import { rotarySettings, scalingOf } from '../transformer/rotary.js';
import { expertRules, lengthRules, rotationRules, scalingRules } from '../transformer/rules.js';
import {
  activationOf,
  activationWord,
  count,
  decoderSizes,
  decoderStored,
  normEpsilon,
  type SettingsOf,
  tiedHead,
  transformerDocument,
} from '../transformer/settings.js';

const {
  num_attention_heads: _,
  head_dim: __,
  ...sizes
} = decoderSizes({
  vocab_size: 32_000,
  hidden_size: 2048,
  intermediate_size: 5632,
  num_hidden_layers: 12,
  num_attention_heads: 32,
  max_position_embeddings: 4096,
});

const settings = {
  ...sizes,
  num_key_value_heads: count(16, 'Key and value heads, and query heads of each expert'),
  kv_channels: count(128, 'Width of a head'),
  num_local_experts: count(8, 'Experts to choose from, in attention and in the network'),
  num_experts_per_tok: count(2, 'Experts that a token goes to'),
  activation_function: activationWord.default('silu').describe('Activation of the gate'),
  rms_norm_eps: normEpsilon(1e-6).describe('Epsilon of the final norm'),
  ...rotarySettings(10_000),
  tie_word_embeddings: tiedHead(true),
};

type JetMoe = SettingsOf<typeof settings>;

/** Epsilon of the norms in the blocks, whatever the config says. */
const BLOCK_EPS = 1e-6;

const wholeHead = {
  reads: ['model.kv_channels'],
  of: ({ kv_channels }: Pick<JetMoe, 'kv_channels'>) => kv_channels,
  suggestion: 'write an even kv_channels',
} as const;

const routerOf = (name: string, config: JetMoe) =>
  router(`${name}.router.layer`, config.hidden_size, {
    experts: config.num_local_experts,
    expertsPerToken: config.num_experts_per_tok,
    scoring: 'softmax',
    renormalised: { eps: 0 },
  });

const LEAVES = ['input_linear.weight', 'output_linear.weight'] as const;

function jetMoeAttention(block: string, config: JetMoe) {
  const name = `${block}.self_attention`;
  const { hidden_size: hidden, num_key_value_heads: keyValueHeads, kv_channels: headDim } = config;
  const width = keyValueHeads * headDim;
  const experts = { experts: config.num_local_experts, hidden, inner: width };
  return expertAttention(name, {
    router: routerOf(`${name}.experts`, config),
    experts: packedExperts(`${name}.experts`, experts, 'identity', {
      leaves: LEAVES,
      gated: false,
    }),
    bias: param(`${name}.experts.bias`, [hidden]),
    keyValues: fusedProjection(linear(`${name}.kv_proj`, hidden, 2 * width, { bias: false }), [
      width,
      width,
    ]),
    rotary: rotary(`${block}.rotary`, {
      base: config.rope_theta,
      headDim,
      scaling: scalingOf(config.rope_scaling, config.max_position_embeddings, headDim),
    }),
    keyValueHeads,
    headDim,
  });
}

function networkOf(block: string, config: JetMoe) {
  const name = `${block}.mlp`;
  const { hidden_size: hidden, intermediate_size: inner, num_local_experts: experts } = config;
  return sequence(`${name}.shifted`, [
    mixtureOfExperts(name, {
      router: routerOf(name, config),
      experts: packedExperts(
        name,
        { experts, hidden, inner },
        activationOf(config.activation_function),
        { leaves: LEAVES },
      ),
    }),
    shift(`${name}.shift`, param(`${name}.bias`, [hidden])),
  ]);
}

export const jetmoe = defineTransformer({
  title: 'JetMoe',
  architecture: 'mixture',
  schema: transformerDocument('jetmoe', settings),
  rules: [
    ...rotationRules(wholeHead),
    ...scalingRules(wholeHead),
    ...lengthRules('max_position_embeddings'),
    ...expertRules('num_local_experts'),
  ],
  storedSettings: decoderStored,
  huggingFace: {
    names: { kv_channels: ['head_dim'] },
    harmless: {
      num_attention_heads: 'num_key_value_heads for each of the experts of a token',
      aux_loss_coef: 'used in training only',
    },
  },
  build({ model: config }) {
    return decoder(config, {
      norm: (name) => rmsNormLayer(name, config.hidden_size, config.rms_norm_eps),
      block: (name) =>
        preNormBlock(name, {
          norm: (path) => rmsNormLayer(path, config.hidden_size, BLOCK_EPS),
          attention: jetMoeAttention(name, config),
          feedForward: networkOf(name, config),
        }),
    });
  },
});
