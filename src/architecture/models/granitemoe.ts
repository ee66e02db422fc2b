/** Granite 3 with experts: all experts in two tensors. */
import * as z from 'zod';
import { mixtureOfExperts, packedExperts, router } from '../constructors/feed-forward-layers.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import { isHeldInMemory } from '../transformer/hugging-face.js';
import {
  activationOf,
  attentionBias,
  count,
  decoderStored,
  gateActivation,
  LLAMA_SIZES,
} from '../transformer/settings.js';
import { GRANITE, graniteSettings } from './granite.js';

/** Names of the router and of the two tensors: on disk, and as transformers 5 holds them. */
const NAMES = {
  input_linear: ['router.layer', 'input_linear.weight', 'output_linear.weight'],
  gate_up_proj: ['router', 'experts.gate_up_proj', 'experts.down_proj'],
} as const;

const STORED = ['input_linear', 'gate_up_proj'] as const;

export const granitemoe = defineDecoder({
  ...GRANITE,
  title: 'Granite 3 with experts',
  architecture: 'mixture',
  schema: decoderDocument(
    'granitemoe',
    {
      ...LLAMA_SIZES,
      rms_norm_eps: 1e-6,
    },
    {
      ...graniteSettings,
      num_local_experts: count(8, 'Experts to choose from'),
      num_experts_per_tok: count(2, 'Experts that a token goes to'),
      stored_experts: z
        .enum(STORED)
        .default('input_linear')
        .describe('Name of the experts: on disk, or as transformers 5 holds them'),
      hidden_act: gateActivation,
      attention_bias: attentionBias,
    },
  ),
  huggingFace: {
    more: (config) => ({
      stored_experts: isHeldInMemory(config) ? 'gate_up_proj' : 'input_linear',
    }),
  },
  storedSettings(stored) {
    const found = STORED.find((each) =>
      [...stored.names()].some((name) => name.includes(`.block_sparse_moe.${NAMES[each][1]}`)),
    );
    return [
      ...decoderStored(stored),
      ...(found === undefined ? [] : [{ path: 'model.stored_experts', value: found }]),
    ];
  },
  feedForward({ name: block, config }) {
    const name = `${block}.block_sparse_moe`;
    const [gate, gateUp, down] = NAMES[config.stored_experts];
    const sizes = {
      experts: config.num_local_experts,
      hidden: config.hidden_size,
      inner: config.intermediate_size,
    };
    return mixtureOfExperts(name, {
      router: router(`${name}.${gate}`, config.hidden_size, {
        experts: config.num_local_experts,
        expertsPerToken: config.num_experts_per_tok,
        scoring: 'softmax',
        renormalised: { eps: 0 },
      }),
      experts: packedExperts(name, sizes, activationOf(config.hidden_act), {
        leaves: [gateUp, down],
      }),
    });
  },
});
