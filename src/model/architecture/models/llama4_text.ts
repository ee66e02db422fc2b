/**
 * Llama 4, the text part: chunks in layers with RoPE, a temperature in those without, weights of experts applied to
 * their input.
 */

import * as z from 'zod';
import { asNumber } from '../../../base/values.js';
import { chunkWindow } from '../constructors/attention-layers.js';
import { plainRmsNorm } from '../constructors/basic-layers.js';
import { mixtureOfExperts, packedExperts, router } from '../constructors/feed-forward-layers.js';
import { defineRules } from '../family.js';
import { MAX_LAYERS } from '../param.js';
import { unreadBut } from '../transformer/config-keys.js';
import { separateMlp } from '../transformer/decoder-parts.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import {
  activationOf,
  attentionBias,
  count,
  gateActivation,
  positiveInteger,
  toggle,
  unrotatedLayers,
} from '../transformer/settings.js';

const DEFAULT_LAYERS = 48;

const llama4Schema = decoderDocument(
  'llama4_text',
  {
    vocab_size: 202_048,
    hidden_size: 5120,
    intermediate_size: 8192,
    num_hidden_layers: DEFAULT_LAYERS,
    num_attention_heads: 40,
    num_key_value_heads: 8,
    head_dim: 128,
    max_position_embeddings: 131_072,
    rms_norm_eps: 1e-5,
    rope_theta: 500_000,
  },
  {
    intermediate_size_mlp: count(16_384, 'Width inside the network of a layer without experts'),
    num_local_experts: count(16, 'Experts to choose from'),
    num_experts_per_tok: count(1, 'Experts that a token goes to'),
    moe_layers: z.array(z.int().min(0)).nullish().describe('Layers with experts'),
    interleave_moe_layer_step: count(1, 'Without moe_layers: one layer in this many has experts'),
    use_qk_norm: toggle(true, 'Norms without weights on queries and keys that are rotated'),
    ...unrotatedLayers,
    attention_chunk_size: positiveInteger
      .nullable()
      .default(8192)
      .describe('Positions of a chunk, beyond which its tokens do not see'),
    layer_types: z
      .array(z.enum(['chunked_attention', 'full_attention']))
      .nullish()
      .describe('Which layers attend to chunks; by default those that rotate'),
    attn_temperature_tuning: toggle(
      true,
      'Queries of layers without positions grow with their position',
    ),
    floor_scale: z
      .number()
      .positive()
      .default(8192)
      .describe('Positions after which they grow by one step'),
    attn_scale: z.number().default(0.1).describe('How much they grow'),
    attention_bias: attentionBias,
    hidden_act: gateActivation,
  },
);

type Llama4 = z.output<typeof llama4Schema>['model'];

const rotates = (config: Llama4, index: number): boolean =>
  config.no_rope_layers
    ? config.no_rope_layers[index] === 1
    : (index + 1) % config.no_rope_layer_interval !== 0;

const isChunked = (config: Llama4, index: number): boolean =>
  config.layer_types ? config.layer_types[index] === 'chunked_attention' : rotates(config, index);

const chunkRules = defineRules<{ readonly model: Llama4 }>([
  {
    severity: 'error',
    reads: ['model.attention_chunk_size', 'model.layer_types', 'model.no_rope_layers'],
    check: ({ model }) => {
      // More layers are refused when the model is built.
      if (model.num_hidden_layers > MAX_LAYERS) return undefined;
      const chunked = Array.from({ length: model.num_hidden_layers }, (_, index) =>
        isChunked(model, index),
      );
      return model.attention_chunk_size === null && chunked.includes(true)
        ? {
            message: 'layers attend to chunks, but attention_chunk_size is null',
            suggestion: 'write attention_chunk_size: N, or full_attention for all layers',
          }
        : undefined;
    },
  },
]);

export const llama4Text = defineDecoder({
  title: 'Llama 4, text only',
  architecture: 'mixture',
  schema: llama4Schema,
  rules: chunkRules,
  dimensions: null,
  huggingFace: {
    limited: { text_config: unreadBut([]) },
    // transformers reads an empty list as none, and ignores entries beyond the number of layers.
    more: ({
      no_rope_layers: list,
      num_hidden_layers: layers = DEFAULT_LAYERS,
      attn_temperature_tuning: tuned,
    }) => ({
      // transformers only asks whether it is true; the first published files have a number.
      attn_temperature_tuning: typeof tuned === 'number' ? tuned !== 0 : undefined,
      no_rope_layers: Array.isArray(list)
        ? list.length === 0
          ? null
          : list.slice(0, asNumber(layers))
        : undefined,
    }),
  },
  rotaryPairs: 'neighbours',
  attention({ name: block, config, index, heads: { headDim } }) {
    const { attention_chunk_size: chunk, attn_temperature_tuning: tuned } = config;
    const window = isChunked(config, index) && chunk !== null ? chunkWindow(chunk) : undefined;
    if (!rotates(config, index)) {
      const { floor_scale: tokens, attn_scale: strength } = config;
      return {
        rotary: undefined,
        window,
        ownTypeSoftmax: true,
        ...(tuned && { temperature: { tokens, strength, offset: 1 } }),
      };
    }
    const norm = (leaf: string) =>
      plainRmsNorm(`${block}.self_attn.${leaf}`, headDim, config.rms_norm_eps);
    return {
      window,
      ownTypeSoftmax: true,
      ...(config.use_qk_norm && {
        queryNorm: norm('q_norm'),
        keyNorm: norm('k_norm'),
        normsAfterRotation: true,
      }),
    };
  },
  feedForward({ name: block, config, index }) {
    const name = `${block}.feed_forward`;
    const { hidden_size: hidden, intermediate_size: inner, moe_layers: listed } = config;
    const { num_local_experts: experts, interleave_moe_layer_step: step } = config;
    const activation = activationOf(config.hidden_act);
    if (!(listed ? listed.includes(index) : (index + 1) % step === 0)) {
      return separateMlp(name, { hidden, inner: config.intermediate_size_mlp, activation });
    }
    return mixtureOfExperts(name, {
      experts: packedExperts(`${name}.experts`, { experts, hidden, inner }, activation, {
        isTransposed: true,
      }),
      weighsInputs: true,
      router: router(`${name}.router`, hidden, {
        experts,
        expertsPerToken: config.num_experts_per_tok,
        scoring: 'sigmoid',
      }),
      shared: [
        separateMlp(`${name}.shared_expert`, {
          hidden,
          inner,
          activation,
          component: 'sharedExperts',
        }),
      ],
    });
  },
});
