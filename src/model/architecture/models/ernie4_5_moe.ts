/** ERNIE 4.5 with experts: a softmax with a correction for the choice of experts. */
import * as z from 'zod';
import { mixtureOfExperts, router } from '../constructors/feed-forward-layers.js';
import type { MixtureOfExperts } from '../layer.js';
import { param } from '../param.js';
import { expertsOf, jointExperts, separateMlp } from '../transformer/decoder-parts.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import { ROTARY_BUFFERS } from '../transformer/ignored-tensors.js';
import { expertRules } from '../transformer/rules.js';
import {
  type ActivationWord,
  activationOf,
  count,
  expertsStored,
  gateActivation,
  toggle,
} from '../transformer/settings.js';

interface ErnieExperts {
  readonly hidden_size: number;
  readonly moe_num_experts: number;
  readonly moe_k: number;
  readonly moe_norm_min: number;
  readonly experts_stored: Parameters<typeof expertsOf>[1]['stored'];
  readonly hidden_act: ActivationWord;
  readonly use_bias: boolean;
}

/**
 * Experts of a layer with their router, and the experts for every token as one network, of which none is left out.
 * @param at Path of the correction, number and width of the experts for every token, and path of the layer's network.
 */
export function ernieExperts(
  name: string,
  config: ErnieExperts,
  at: {
    readonly statics: string;
    readonly width: number;
    readonly shared: number;
    readonly sharedWidth: number;
    readonly network?: string;
  },
): MixtureOfExperts {
  const { hidden_size: hidden, moe_num_experts: experts, use_bias: bias } = config;
  const activation = activationOf(config.hidden_act);
  return mixtureOfExperts(name, {
    router: router(`${name}.gate`, hidden, {
      experts,
      expertsPerToken: config.moe_k,
      scoring: 'softmax',
      correction: param(`${at.statics}.e_score_correction_bias`, [1, experts]),
      renormalised: { eps: 0, least: config.moe_norm_min },
    }),
    experts: expertsOf(`${name}.experts`, {
      experts,
      hidden,
      inner: at.width,
      activation,
      stored: config.experts_stored,
    }),
    shared: jointExperts(`${at.network ?? name}.shared_experts`, at.shared, {
      hidden,
      inner: at.sharedWidth,
      activation,
      bias,
    }),
  });
}

/** Settings of the experts that both families have. */
export const ERNIE_EXPERTS = {
  moe_num_shared_experts: z
    .int()
    .min(0)
    .default(2)
    .describe('Experts for every token, as one network of their joint width'),
  moe_norm_min: z
    .number()
    .min(0)
    .default(1e-12)
    .describe("Least sum that the chosen experts' weights are divided by"),
  experts_stored: expertsStored,
  hidden_act: gateActivation,
};

/** Names of a file for settings of both families. */
export const ERNIE_NAMES = { moe_num_experts: ['num_experts'], moe_k: ['num_experts_per_tok'] };

export const ernie45Moe = defineDecoder({
  title: 'ERNIE 4.5 with experts',
  architecture: 'mixture',
  schema: decoderDocument(
    'ernie4_5_moe',
    {
      vocab_size: 103_424,
      hidden_size: 2560,
      intermediate_size: 12_288,
      num_hidden_layers: 28,
      num_attention_heads: 20,
      num_key_value_heads: 4,
      max_position_embeddings: 131_072,
      rms_norm_eps: 1e-5,
      rope_theta: 500_000,
      tie_word_embeddings: true,
    },
    {
      use_bias: toggle(false, 'Biases in all products but those of the routed experts'),
      moe_num_experts: count(64, 'Experts to choose from'),
      moe_k: count(6, 'Experts that a token goes to'),
      moe_intermediate_size: count(1536, 'Width inside an expert'),
      moe_layer_start_index: z.int().min(0).default(1).describe('The first layer with experts'),
      moe_layer_end_index: z
        .int()
        .min(-1)
        .default(-1)
        .describe('The last layer with experts; -1: the last of all'),
      moe_layer_interval: count(1, 'Period of the layers with experts, between these two'),
      ...ERNIE_EXPERTS,
    },
  ),
  rules: [...expertRules('moe_num_experts', 'moe_k')],
  dimensions: null,
  ignoredOnLoad: ['mtp', ROTARY_BUFFERS],
  huggingFace: { names: ERNIE_NAMES },
  headBias: ({ use_bias }) => use_bias,
  rotaryPairs: 'neighbours',
  attention: ({ config }) => ({ bias: config.use_bias, outBias: config.use_bias }),
  feedForward({ name: block, config, index }) {
    const name = `${block}.mlp`;
    const { hidden_size: hidden, use_bias: bias } = config;
    const { moe_layer_start_index: start, moe_layer_end_index: end } = config;
    const activation = activationOf(config.hidden_act);
    const last = end === -1 ? config.num_hidden_layers - 1 : end;
    const isSparse =
      (index + 1) % config.moe_layer_interval === 0 && index >= start && index <= last;
    if (!isSparse) {
      return separateMlp(name, { hidden, inner: config.intermediate_size, activation, bias });
    }
    const inner = config.moe_intermediate_size;
    const statics =
      config.experts_stored === 'packed' ? `${name}.gate.moe_statics` : `${name}.moe_statics`;
    return ernieExperts(name, config, {
      statics,
      width: inner,
      shared: config.moe_num_shared_experts,
      sharedWidth: inner,
    });
  },
});
