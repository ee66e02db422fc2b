/** MiniMax-M2: experts with sigmoid scores, norms over all queries and all keys, and partly rotated heads. */
import { asNumber } from '../../../base/values.js';
import { mixtureOfExperts, router } from '../constructors/feed-forward-layers.js';
import { buffer } from '../param.js';
import type { JsonObject } from '../transformer/config-keys.js';
import { expertsOf } from '../transformer/decoder-parts.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import { partialFactorIn } from '../transformer/rotary.js';
import {
  activationOf,
  count,
  expertsStored,
  gateActivation,
  partOfHead,
} from '../transformer/settings.js';

const HEAD_DIM = 128;

/** Path of a mixture. */
const MIXTURE = { packed: 'mlp', separate: 'block_sparse_moe' } as const;

/** Published files give the number of rotated dimensions in place of their part. */
function rotatedPartIn(config: JsonObject): JsonObject {
  const { partial_rotary_factor: part } = partialFactorIn(config);
  const { rotary_dim: rotated, head_dim: width = HEAD_DIM } = config;
  if (part !== undefined || rotated == null) return { partial_rotary_factor: part };
  return {
    partial_rotary_factor: config.partial_rotary_factor ?? asNumber(rotated) / asNumber(width),
  };
}

export const minimaxM2 = defineDecoder({
  title: 'MiniMax-M2, with experts',
  architecture: 'mixture',
  schema: decoderDocument(
    'minimax_m2',
    {
      vocab_size: 200_064,
      hidden_size: 3072,
      intermediate_size: 1536,
      num_hidden_layers: 62,
      num_attention_heads: 48,
      num_key_value_heads: 8,
      head_dim: HEAD_DIM,
      max_position_embeddings: 196_608,
      rms_norm_eps: 1e-6,
      rope_theta: 5e6,
    },
    {
      partial_rotary_factor: partOfHead(1),
      num_local_experts: count(256, 'Experts to choose from'),
      num_experts_per_tok: count(8, 'Experts that a token goes to'),
      experts_stored: expertsStored,
      hidden_act: gateActivation,
    },
  ),
  dimensions: { feedForward: { key: 'intermediate_size', perChannel: [1 / 4, 1] } },
  huggingFace: {
    names: { num_local_experts: ['num_experts'] },
    more: rotatedPartIn,
    reads: ['rotary_dim'],
  },
  queryKeyNorms: 'all heads',
  feedForward({ name: block, config }) {
    const name = `${block}.${MIXTURE[config.experts_stored]}`;
    const { hidden_size: hidden, num_local_experts: experts } = config;
    return mixtureOfExperts(name, {
      router: router(`${name}.gate`, hidden, {
        experts,
        expertsPerToken: config.num_experts_per_tok,
        scoring: 'sigmoid',
        correction: buffer(`${name}.e_score_correction_bias`, [experts]),
        renormalised: { eps: 0 },
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
