/**
 * Baichuan 1 and 2 (arXiv 2309.10305): Llama with one product for queries, keys and values. Models of 7B rotate positions,
 * those of 13B have ALiBi. Heads of Baichuan 2 divide each row by its length: these are described, not run. Sources: the
 * authors' modeling_baichuan.py (github.com/jrd77/Baichuan2-13B-Chat 35e3d5a, Mrgengli/baichuan_python c3b700b), and
 * vllm/model_executor/models/baichuan.py.
 */

import * as z from 'zod';
import { asNumber } from '../../../base/values.js';
import { alibi } from '../constructors/attention-layers.js';
import { described } from '../constructors/described-layer.js';
import type { KeyRemark } from '../family.js';
import { alibiSlopes } from '../masks.js';
import { type JsonObject, unreadEach } from '../transformer/config-keys.js';
import { defineTransformer } from '../transformer/define-decoder.js';
import { remoteDecoder, remoteFusedAttention } from '../transformer/remote-decoder.js';
import { NO_ROTARY } from '../transformer/rotary.js';
import { headsDivide } from '../transformer/rules.js';
import {
  count,
  gateActivation,
  normEpsilon,
  toggle,
  transformerDocument,
} from '../transformer/settings.js';

/** Rows of the vocabulary of Baichuan 2, by which programs tell it from Baichuan 1. */
const ROWS_OF_2 = 125_696;

/** Width of the models of 7B. */
const WIDTH_OF_7B = 4096;

const LENGTHS = ['max_position_embeddings', 'model_max_length'] as const;

const schema = transformerDocument('baichuan', {
  vocab_size: count(64_000, 'Rows of the embedding and of the head'),
  hidden_size: count(WIDTH_OF_7B, 'Width of the residual stream'),
  intermediate_size: count(11_008, 'Width inside the feed-forward network'),
  num_hidden_layers: count(32, 'Number of blocks'),
  num_attention_heads: count(32, 'Heads, a divisor of hidden_size'),
  max_position_embeddings: count(4096, 'Length of the training'),
  position_embedding: z
    .enum(['rope', 'alibi'])
    .default('rope')
    .describe('Positions: rotated as in the models of 7B, or ALiBi as in those of 13B'),
  norm_head: toggle(false, 'Rows of the head are divided by their lengths, as in Baichuan 2'),
  rms_norm_eps: normEpsilon(1e-6),
  hidden_act: gateActivation,
  tie_word_embeddings: z.literal(false).default(false).describe('The head has its own weight'),
});

/** The code of 7B reads `max_position_embeddings`, that of 13B only `model_max_length`. */
function positionsIn(config: JsonObject): 'rope' | 'alibi' {
  const [ofRotation, ofAlibi] = LENGTHS.map((key) => config[key] != null);
  if (ofRotation || !ofAlibi) {
    return ofRotation || (config.hidden_size ?? WIDTH_OF_7B) === WIDTH_OF_7B ? 'rope' : 'alibi';
  }
  return 'alibi';
}

/** A file that its keys and its width describe differently. */
function doubtOf(config: JsonObject): KeyRemark[] {
  const ofWidth = (config.hidden_size ?? WIDTH_OF_7B) === WIDTH_OF_7B ? 'rope' : 'alibi';
  const ofKeys = positionsIn(config);
  return ofWidth === ofKeys || ![4096, 5120].includes(asNumber(config.hidden_size))
    ? []
    : [
        {
          path: [config.max_position_embeddings != null ? LENGTHS[0] : LENGTHS[1]],
          severity: 'warning',
          why: `it is read as a sign of ${ofKeys === 'rope' ? 'rotated positions' : 'ALiBi'}; programs that go by the width read ${ofWidth}`,
        },
      ];
}

export const baichuan = defineTransformer({
  title: 'Baichuan 1 and 2; Baichuan 2 described, not run',
  schema,
  rules: headsDivide('num_attention_heads', 'hidden_size'),
  huggingFace: {
    names: { max_position_embeddings: ['model_max_length', 'max_position_embeddings'] },
    more: (config) => ({
      tie_word_embeddings: false,
      position_embedding: positionsIn(config),
      // Files of Baichuan 1 do not have the key.
      norm_head: config.vocab_size === ROWS_OF_2 || Object.hasOwn(config, 'z_loss_weight'),
    }),
    rotary: { ...NO_ROTARY, remarks: doubtOf },
    harmless: { z_loss_weight: 'used in training only' },
    limited: {
      ...unreadEach(['rope_parameters', 'rope_scaling', 'rope_theta', 'head_dim']),
      ...unreadEach(['num_key_value_heads', 'attention_bias', 'mlp_bias'], [false]),
      ...unreadEach(['tie_word_embeddings'], [false], 'the class has a head of its own'),
    },
  },
  ignoredOnLoad: ['decoder\\.version', '.*rotary_emb.inv_freq'],
  build({ model: config }) {
    const { num_attention_heads: heads, vocab_size: rows } = config;
    const llama = { ...config, rope_theta: 10_000, tie_word_embeddings: false };
    const model = remoteDecoder(llama, {
      names: {
        embedding: 'model.embed_tokens',
        blocks: 'model.layers',
        norm: 'model.norm',
        head: 'lm_head',
        attention: 'self_attn',
        norms: ['input_layernorm', 'post_attention_layernorm'],
        feedForward: 'mlp',
      },
      attention(name, rotary) {
        const { rotary: rotation, ...fused } = remoteFusedAttention(name, llama, rotary, {
          leaves: ['W_pack', 'o_proj'],
          bias: false,
          outBias: false,
          isGrouped: false,
        });
        return config.position_embedding === 'rope'
          ? { ...fused, rotary: rotation }
          : { ...fused, rotary: undefined, alibi: alibi(`${name}.alibi`, alibiSlopes(heads)) };
      },
    });
    return config.norm_head
      ? {
          ...model,
          logitSteps: [
            described('lm_head_lengths', {
              title: 'logits divided by the lengths of the rows of the head',
              component: 'head',
              output: rows,
            }),
          ],
        }
      : model;
  },
});
