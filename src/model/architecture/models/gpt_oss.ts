/** gpt-oss (arXiv 2508.10925): attention sinks, a window in every other layer, and experts with biases and limits. */
import { clampedExperts, mixtureOfExperts, router } from '../constructors/feed-forward-layers.js';
import { unreadBut } from '../transformer/config-keys.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import { rotaryIn, rotaryReading, scalingIn } from '../transformer/rotary.js';
import { count, toggle, windowAt, windowSettings } from '../transformer/settings.js';

/** Limit of the gate and of the values that it multiplies. */
const LIMIT = 7;

/** YaRN, unless a file has other settings. */
const DEFAULT_ROTARY = {
  rope_type: 'yarn',
  factor: 32,
  beta_fast: 32,
  beta_slow: 1,
  truncate: false,
  original_max_position_embeddings: 4096,
} as const;

const reading = rotaryReading({});

export const gptOss = defineDecoder({
  title: 'gpt-oss: attention sinks, and experts with biases',
  architecture: 'mixture',
  schema: decoderDocument(
    'gpt_oss',
    {
      vocab_size: 201_088,
      hidden_size: 2880,
      intermediate_size: 2880,
      num_hidden_layers: 36,
      num_attention_heads: 64,
      num_key_value_heads: 8,
      head_dim: 64,
      max_position_embeddings: 131_072,
      rms_norm_eps: 1e-5,
      rope_theta: 150_000,
    },
    {
      ...windowSettings(128),
      num_local_experts: count(128, 'Experts to choose from'),
      num_experts_per_tok: count(4, 'Experts that a token goes to'),
      attention_bias: toggle(true, 'Biases in all four products of attention'),
    },
  ),
  slidesByRule: ({ sliding_window: tokens }) => tokens !== null,
  dimensions: { feedForward: { key: 'intermediate_size', perChannel: [1 / 4, 4] } },
  huggingFace: {
    names: { num_local_experts: ['num_experts'] },
    rotary: {
      ...reading,
      settings(config) {
        if (Object.keys(rotaryIn(config)).length > 0) return reading.settings(config);
        const { original_max_position_embeddings: trained } = config;
        return {
          ...reading.settings(config),
          rope_scaling: scalingIn(DEFAULT_ROTARY, trained),
        };
      },
    },
    limited: {
      hidden_act: unreadBut(['silu'], 'its gates are always x · σ(1.702 x)'),
      swiglu_limit: unreadBut([LIMIT], 'the limit is always 7'),
      experts_per_token: unreadBut(
        (count, { num_experts_per_tok: read = 4 }) => count === null || count === read,
      ),
      initial_context_length: unreadBut(
        (length, config) =>
          length === null ||
          length === (rotaryIn(config).original_max_position_embeddings ?? length),
      ),
    },
  },
  attention: ({ name, config, index }) => ({
    sinks: `${name}.self_attn.sinks`,
    ownTypeSoftmax: true,
    window: windowAt(config, index, index % 2 === 0),
  }),
  feedForward({ name: block, config }) {
    const name = `${block}.mlp`;
    const { hidden_size: hidden, num_local_experts: experts, intermediate_size: inner } = config;
    return mixtureOfExperts(name, {
      router: router(`${name}.router`, hidden, {
        experts,
        expertsPerToken: config.num_experts_per_tok,
        scoring: 'softmax',
        bias: true,
        renormalised: { eps: 0 },
      }),
      experts: clampedExperts(`${name}.experts`, { experts, hidden, inner }, 'quickGelu', LIMIT),
    });
  },
});
