/** Granite 3 with experts: all experts in two tensors. */
import * as z from 'zod';
import { fusedProjection, linear } from '../constructors/basic-layers.js';
import {
  gatedMlp,
  mixtureOfExperts,
  packedExperts,
  router,
} from '../constructors/feed-forward-layers.js';
import type { StoredShapes } from '../family.js';
import type { GatedMlp, MixtureOfExperts } from '../layer.js';
import type { JsonObject } from '../transformer/config-keys.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import { isHeldInMemory } from '../transformer/hugging-face.js';
import {
  type ActivationWord,
  activationOf,
  attentionBias,
  count,
  decoderStored,
  gateActivation,
  LLAMA_SIZES,
} from '../transformer/settings.js';
import { GRANITE, graniteSettings } from './granite.js';

/** Names of the router and of the two tensors: on disk, and as transformers 5 holds them. */
export const EXPERT_NAMES = {
  input_linear: ['router.layer', 'input_linear.weight', 'output_linear.weight'],
  gate_up_proj: ['router', 'experts.gate_up_proj', 'experts.down_proj'],
} as const;

interface ExpertSettings {
  readonly hidden_size: number;
  readonly intermediate_size: number;
  readonly num_local_experts: number;
  readonly num_experts_per_tok: number;
  readonly hidden_act: ActivationWord;
}

/**
 * Experts weighted by a softmax over the chosen scores, which equals one over all scores, divided by the sum of the
 * chosen.
 */
export function graniteExperts(
  name: string,
  config: ExpertSettings,
  [gate, ...leaves]: readonly [router: string, gateUp: string, down: string],
): MixtureOfExperts {
  const { hidden_size: hidden, intermediate_size: inner, num_local_experts: experts } = config;
  return mixtureOfExperts(name, {
    router: router(`${name}.${gate}`, hidden, {
      experts,
      expertsPerToken: config.num_experts_per_tok,
      scoring: 'softmax',
      renormalised: { eps: 0 },
    }),
    experts: packedExperts(name, { experts, hidden, inner }, activationOf(config.hidden_act), {
      leaves,
    }),
  });
}

/** Network for every token, with gate and up as one product. */
export function sharedMlp(
  name: string,
  hidden: number,
  inner: number,
  word: ActivationWord,
): GatedMlp {
  const both = linear(`${name}.input_linear`, hidden, 2 * inner, { bias: false });
  return gatedMlp(name, {
    inputs: fusedProjection(both, [inner, inner]),
    activation: activationOf(word),
    down: linear(`${name}.output_linear`, inner, hidden, { bias: false }),
    component: 'sharedExperts',
  });
}

const STORED = ['input_linear', 'gate_up_proj'] as const;

/** Keys of the mixtures. */
export const graniteExpertSettings = {
  ...graniteSettings,
  num_local_experts: count(8, 'Experts to choose from'),
  num_experts_per_tok: count(2, 'Experts that a token goes to'),
  stored_experts: z
    .enum(STORED)
    .default('input_linear')
    .describe('Name of the experts: on disk, or as transformers 5 holds them'),
  hidden_act: gateActivation,
  attention_bias: attentionBias,
};

/** Parts of the mixtures. */
export const GRANITE_MIXTURE = {
  ...GRANITE,
  architecture: 'mixture',
  huggingFace: {
    more: (config: JsonObject) => ({
      stored_experts: isHeldInMemory(config) ? 'gate_up_proj' : 'input_linear',
    }),
  },
  storedSettings(stored: StoredShapes) {
    const found = STORED.find((each) =>
      [...stored.names()].some((name) =>
        name.includes(`.block_sparse_moe.${EXPERT_NAMES[each][1]}`),
      ),
    );
    return [
      ...decoderStored(stored),
      ...(found === undefined ? [] : [{ path: 'model.stored_experts', value: found }]),
    ];
  },
} as const;

export const granitemoe = defineDecoder({
  ...GRANITE_MIXTURE,
  title: 'Granite 3 with experts',
  schema: decoderDocument(
    'granitemoe',
    { ...LLAMA_SIZES, rms_norm_eps: 1e-6 },
    graniteExpertSettings,
  ),
  feedForward: ({ name, config }) =>
    graniteExperts(`${name}.block_sparse_moe`, config, EXPERT_NAMES[config.stored_experts]),
});
