/** Jamba (arXiv 2403.19887): Mamba layers and attention without positions, and experts in some of them. */

import * as z from 'zod';
import { asNumber } from '../../../base/values.js';
import { rmsNormLayer } from '../constructors/basic-layers.js';
import { mambaLayer } from '../constructors/recurrent-layers.js';
import { unreadEach } from '../transformer/config-keys.js';
import {
  decoder,
  mixerBlock,
  mlpOf,
  separateAttention,
  softmaxMixture,
} from '../transformer/decoder-parts.js';
import { defineTransformer } from '../transformer/define-decoder.js';
import { expertRules, headRules, lengthRules } from '../transformer/rules.js';
import {
  activationOf,
  count,
  decoderSizes,
  expertsStored,
  gateActivation,
  headsOf,
  mixtureStored,
  normEpsilon,
  tiedHead,
  toggle,
  transformerDocument,
} from '../transformer/settings.js';
import { RECURRENT_HARMLESS, stepRank, stepRankOf } from '../transformer/state-space.js';

const period = (layers: number) => count(layers, 'Period of these layers');
const offset = (layer: number, what: string) =>
  z.int().min(0).default(layer).describe(`The first layer with ${what}`);

const schema = transformerDocument('jamba', {
  ...decoderSizes({
    vocab_size: 65_536,
    hidden_size: 4096,
    intermediate_size: 14_336,
    num_hidden_layers: 32,
    num_attention_heads: 32,
    num_key_value_heads: 8,
    max_position_embeddings: 262_144,
  }),
  rms_norm_eps: normEpsilon(1e-6),
  attn_layer_period: period(8),
  attn_layer_offset: offset(4, 'attention'),
  expert_layer_period: period(2),
  expert_layer_offset: offset(1, 'experts'),
  num_experts: z.int().min(0).default(16).describe('Experts to choose from; 0 and 1: none'),
  num_experts_per_tok: count(2, 'Experts that a token goes to'),
  experts_stored: expertsStored,
  mamba_d_state: count(16, 'Values of the state, a channel'),
  mamba_d_conv: count(4, 'Tokens that the convolution sees'),
  mamba_expand: count(2, 'Inner width of a Mamba layer, in widths of the model'),
  mamba_dt_rank: stepRank,
  mamba_conv_bias: toggle(true, 'Biases in the convolution'),
  mamba_proj_bias: toggle(false, 'Biases in in_proj and out_proj'),
  hidden_act: gateActivation,
  tie_word_embeddings: tiedHead(false),
});

export const jamba = defineTransformer({
  title: 'Jamba: Mamba, attention and experts',
  architecture: 'hybrid',
  schema,
  rules: [
    ...headRules,
    ...lengthRules('max_position_embeddings'),
    ...expertRules('num_experts').map((rule) => ({
      ...rule,
      check: (document: Parameters<typeof rule.check>[0]) =>
        (document.model as { num_experts?: number }).num_experts === 1
          ? undefined
          : rule.check(document),
    })),
    ...(['attn', 'expert'] as const).map((which) => ({
      severity: 'error' as const,
      reads: [`model.${which}_layer_offset`, `model.${which}_layer_period`] as const,
      check({ model }: { readonly model: Readonly<Record<string, unknown>> }) {
        const first = asNumber(model[`${which}_layer_offset`]);
        const every = asNumber(model[`${which}_layer_period`]);
        return first < every
          ? undefined
          : {
              message: `${which}_layer_offset ${first} is not below ${which}_layer_period ${every}`,
              suggestion: `write at most ${which}_layer_offset: ${every - 1}`,
            };
      },
    })),
  ],
  huggingFace: {
    names: { num_experts: ['num_local_experts'] },
    harmless: {
      ...RECURRENT_HARMLESS,
      layers_block_type: 'follows from attn_layer_period',
      layers_num_experts: 'follows from expert_layer_period',
      layer_types: 'follows from attn_layer_period',
      num_logits_to_keep: 'the logits of fewer tokens are the same',
      calc_logits_for_entire_prompt: 'the logits of fewer tokens are the same',
    },
    limited: unreadEach([
      'rope_parameters',
      'rope_scaling',
      'rope_theta',
      'attention_bias',
      'mlp_bias',
    ]),
  },
  storedSettings: mixtureStored,
  build({ model: config }) {
    const { hidden_size: hidden, rms_norm_eps: eps } = config;
    const norm = (name: string) => rmsNormLayer(name, hidden, eps);
    const kernel = config.mamba_d_conv;
    const rank = stepRankOf(config.mamba_dt_rank, hidden);
    const mixer = (name: string) =>
      mambaLayer(
        name,
        {
          hidden,
          inner: config.mamba_expand * hidden,
          state: config.mamba_d_state,
          kernel,
          stepRank: rank,
        },
        {
          bias: config.mamba_proj_bias,
          conv: { bias: config.mamba_conv_bias, cached: kernel },
          activation: activationOf(config.hidden_act),
          innerNorms: [
            rmsNormLayer(`${name}.dt_layernorm`, rank, eps),
            rmsNormLayer(`${name}.b_layernorm`, config.mamba_d_state, eps),
            rmsNormLayer(`${name}.c_layernorm`, config.mamba_d_state, eps),
          ],
          float32State: true,
        },
      );
    const isEvery = (index: number, first: number, every: number) => index % every === first;
    const feedForward = (name: string, index: number) =>
      config.num_experts > 1 &&
      isEvery(index, config.expert_layer_offset, config.expert_layer_period)
        ? softmaxMixture(name, {
            experts: config.num_experts,
            expertsPerToken: config.num_experts_per_tok,
            isNormed: false,
            stored: config.experts_stored,
            hidden,
            inner: config.intermediate_size,
            activation: activationOf(config.hidden_act),
            routerName: 'router',
          })
        : mlpOf(name, config);
    return decoder(config, {
      norm,
      finalNorm: 'final_layernorm',
      block: (name, index) =>
        mixerBlock(name, {
          norm,
          attention: isEvery(index, config.attn_layer_offset, config.attn_layer_period)
            ? separateAttention(`${name}.self_attn`, headsOf(config))
            : mixer(`${name}.mamba`),
          feedForward: feedForward(`${name}.feed_forward`, index),
        }),
    });
  },
});
