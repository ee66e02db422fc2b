/** Mistral 4: latent attention with queries that grow with their position, and experts with softmax scores. */
import { asNumber } from '../../../base/values.js';
import { type JsonObject, unreadBut } from '../transformer/config-keys.js';
import {
  BEST_TWO_RULES,
  DEEPSEEK_RULES,
  deepseekAttention,
  deepseekFeedForward,
  deepseekSettings,
  falseForNull,
  interleaved,
  MLA_KEYS,
  RENORMALISE_EPS,
  rotaryPairs,
} from '../transformer/deepseek.js';
import { defineDecoder } from '../transformer/define-decoder.js';
import {
  rotaryIn,
  temperatureOf,
  temperatureSettings,
  temperedReading,
} from '../transformer/rotary.js';
import { expertsStored, transformerDocument } from '../transformer/settings.js';

/** Dimensions of a head that are not rotated, and that are. */
const [STILL, TURNED] = [64, 64];

const settings = deepseekSettings({
  latent: { q_lora_rank: 1024, kv_lora_rank: 256, qk_nope_head_dim: STILL },
  sizes: {
    vocab_size: 131_072,
    hidden_size: 4096,
    intermediate_size: 12_288,
    num_hidden_layers: 36,
    num_attention_heads: 32,
    max_position_embeddings: 1_048_576,
    rms_norm_eps: 1e-6,
  },
  moe_intermediate_size: 2048,
  n_routed_experts: 128,
  n_shared_experts: 1,
  num_experts_per_tok: 4,
  first_k_dense_replace: 0,
  routed_scaling_factor: 1,
  norm_topk_prob: true,
  n_group: 1,
  topk_group: 1,
});

const reading = temperedReading(
  {
    rope_type: 'yarn',
    rope_theta: 10_000,
    factor: 128,
    original_max_position_embeddings: 8192,
    beta_fast: 32,
    beta_slow: 1,
    mscale_all_dim: 1,
    mscale: 1,
    llama_4_scaling_beta: 0.1,
  },
  ({ partial_rotary_factor: part, ...rotary }, config) => {
    const { qk_rope_head_dim: turned = TURNED, qk_nope_head_dim: still = STILL } = config;
    const known = asNumber(turned) / (asNumber(turned) + asNumber(still));
    return part === known ? rotary : { ...rotary, partial_rotary_factor: part };
  },
);

const isWholeHead = (
  width: unknown,
  { qk_nope_head_dim: still = STILL, qk_rope_head_dim: turned = TURNED }: JsonObject,
) => width === asNumber(still) + asNumber(turned);

export const mistral4 = defineDecoder({
  title: 'Mistral 4: latent attention, experts',
  architecture: 'mixture',
  schema: transformerDocument('mistral4', {
    ...settings,
    experts_stored: expertsStored.default('packed'),
    ...temperatureSettings,
    rope_interleave: interleaved,
  }),
  headRules: DEEPSEEK_RULES,
  rules: BEST_TWO_RULES,
  dimensions: null,
  huggingFace: {
    names: { n_routed_experts: ['num_local_experts'] },
    rotary: {
      ...reading,
      remarks(config) {
        const { rope_type, type = 'default' } = rotaryIn(config);
        const isPlain = config.rope_parameters != null && (rope_type ?? type) === 'default';
        return [
          ...reading.remarks(config),
          ...(isPlain
            ? [
                {
                  path: ['rope_parameters'],
                  severity: 'error',
                  why: 'transformers then rotates whole heads, of which only qk_rope_head_dim dimensions are for it',
                } as const,
              ]
            : []),
        ];
      },
    },
    more: (config) => ({ experts_stored: 'packed', ...falseForNull(config) }),
    limited: {
      ...MLA_KEYS,
      qk_head_dim: unreadBut(isWholeHead, 'it is the sum of qk_nope_head_dim and qk_rope_head_dim'),
      head_dim: {
        allows: isWholeHead,
        why: 'its rotated part is taken for the number of dimensions that are rotated',
        severity: 'error',
      },
    },
  },
  attentionLayer: ({ name, config }) =>
    deepseekAttention(`${name}.self_attn`, config, rotaryPairs(config), {
      temperature: temperatureOf(config),
    }),
  feedForward({ name, index, config }) {
    const { n_group: count, topk_group: kept } = config;
    return deepseekFeedForward(`${name}.mlp`, index, config, {
      routing: () => ({
        scoring: 'softmax',
        correction: undefined,
        groups:
          count !== null && kept !== null && count > 1
            ? { count, kept, score: 'bestTwo', dropped: 0 }
            : undefined,
        renormalised: config.norm_topk_prob ? { eps: RENORMALISE_EPS } : undefined,
      }),
    });
  },
});
