/** Aria, the text part: Llama with experts in every layer, which are always gated by SiLU. */
import * as z from 'zod';
import { mixtureOfExperts, packedExperts, router } from '../constructors/feed-forward-layers.js';
import { jointExperts } from '../transformer/decoder-parts.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import { isHeldInMemory } from '../transformer/hugging-face.js';
import { expertRules } from '../transformer/rules.js';
import {
  activationOf,
  activationWord,
  attentionBias,
  count,
  decoderStored,
  LLAMA_SIZES,
  toggle,
} from '../transformer/settings.js';

/** Names of the two tensors of the experts: on disk, and as transformers 5 holds them. */
const EXPERT_NAMES = {
  fc1: ['fc1.weight', 'fc2.weight'],
  gate_up_proj: ['gate_up_proj', 'down_proj'],
} as const;

const STORED = ['fc1', 'gate_up_proj'] as const;

export const ariaText = defineDecoder({
  title: 'Aria, text only',
  architecture: 'mixture',
  schema: decoderDocument(
    'aria_text',
    { ...LLAMA_SIZES, intermediate_size: 4096, rms_norm_eps: 1e-6 },
    {
      moe_num_experts: count(8, 'Experts to choose from'),
      moe_topk: count(2, 'Experts that a token goes to'),
      moe_num_shared_experts: count(2, 'Experts for every token, as one network'),
      stored_experts: z
        .enum(STORED)
        .default('fc1')
        .describe('Name of the experts: on disk, or as transformers 5 holds them'),
      hidden_act: activationWord.default('silu').describe('Activation of the shared experts'),
      attention_bias: attentionBias,
      mlp_bias: toggle(false, 'Biases in the shared experts'),
    },
  ),
  rules: expertRules('moe_num_experts', 'moe_topk'),
  huggingFace: {
    more: (config) => ({ stored_experts: isHeldInMemory(config) ? 'gate_up_proj' : 'fc1' }),
  },
  storedSettings(stored) {
    const names = [...stored.names()];
    const found = STORED.find((each) =>
      names.some((name) => name.endsWith(`.experts.${EXPERT_NAMES[each][0]}`)),
    );
    return [
      ...decoderStored(stored),
      ...(found === undefined ? [] : [{ path: 'model.stored_experts', value: found }]),
    ];
  },
  feedForward({ name: block, config }) {
    const name = `${block}.mlp`;
    const { hidden_size: hidden, intermediate_size: inner, moe_num_experts: experts } = config;
    return mixtureOfExperts(name, {
      router: router(`${name}.router`, hidden, {
        experts,
        expertsPerToken: config.moe_topk,
        scoring: 'softmax',
        renormalised: { eps: 0 },
      }),
      experts: packedExperts(`${name}.experts`, { experts, hidden, inner }, 'silu', {
        leaves: EXPERT_NAMES[config.stored_experts],
        isTransposed: true,
      }),
      shared: jointExperts(`${name}.shared_experts`, config.moe_num_shared_experts, {
        hidden,
        inner,
        activation: activationOf(config.hidden_act),
        bias: config.mlp_bias,
      }),
    });
  },
});
