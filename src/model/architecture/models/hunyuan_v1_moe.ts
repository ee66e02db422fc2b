/** Hunyuan with experts: attention of the dense model, and a shared expert in every layer. */
import * as z from 'zod';
import { defineRules } from '../family.js';
import { harmless, type JsonObject, unreadBut, unreadEach } from '../transformer/config-keys.js';
import { separateMlp, softmaxMixture } from '../transformer/decoder-parts.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import { layerListRules } from '../transformer/rules.js';
import {
  activationOf,
  attentionBias,
  count,
  expertsStored,
  gateActivation,
  LLAMA_SIZES,
  positiveInteger,
} from '../transformer/settings.js';
import { hunyuanNorms, hunyuanRotary } from './hunyuan_v1_dense.js';

/** Limit of a key that files give for all layers at once, or for each. */
const unreadInEach = (isAllowed: (value: unknown, config: JsonObject) => boolean) =>
  unreadBut((value, config) => [value].flat().every((each) => isAllowed(each, config)));

export const hunyuanV1Moe = defineDecoder({
  title: 'Hunyuan, with experts',
  architecture: 'mixture',
  schema: decoderDocument(
    'hunyuan_v1_moe',
    { ...LLAMA_SIZES, vocab_size: 290_943, rms_norm_eps: 1e-5 },
    {
      num_experts: count(1, 'Experts to choose from'),
      moe_topk: z
        .union([positiveInteger, z.array(positiveInteger)])
        .default(1)
        .describe('Experts that a token goes to: a number, or one for each layer'),
      experts_stored: expertsStored,
      hidden_act: gateActivation,
      attention_bias: attentionBias,
    },
  ),
  rules: [
    ...layerListRules('moe_topk'),
    ...defineRules<{
      readonly model: {
        readonly num_experts: number;
        readonly moe_topk: number | readonly number[];
      };
    }>([
      {
        severity: 'error',
        reads: ['model.moe_topk', 'model.num_experts'],
        check: ({ model: { num_experts: there, moe_topk: taken } }) =>
          Math.max(...[taken].flat()) > there
            ? {
                message: `${Math.max(...[taken].flat())} experts for a token are more than the ${there} there are`,
                suggestion: `write at most ${there}`,
              }
            : undefined,
      },
    ]),
  ],
  dimensions: null,
  huggingFace: {
    names: { num_experts: ['num_local_experts'], moe_topk: ['num_experts_per_tok'] },
    rotary: hunyuanRotary,
    limited: {
      moe_intermediate_size: unreadInEach(
        (width, { intermediate_size: inner = LLAMA_SIZES.intermediate_size }) =>
          width === null || width === inner,
      ),
      num_shared_expert: unreadInEach((number) => number === null || number === 1),
      ...unreadEach(['use_qk_norm', 'use_mixed_mlp_moe', 'norm_topk_prob'], [true]),
      ...unreadEach(['use_cla', 'mlp_bias'], [false]),
      ...unreadEach(['moe_layer_num_skipped'], [0]),
    },
    harmless: {
      eod_token_id: 'names a token',
      ...harmless('used in training only', ['moe_drop_tokens', 'moe_random_routing_dropped_token']),
    },
  },
  attention: hunyuanNorms,
  feedForward({ name: block, config, index }) {
    const name = `${block}.mlp`;
    const { hidden_size: hidden, intermediate_size: inner, moe_topk: taken } = config;
    const activation = activationOf(config.hidden_act);
    return softmaxMixture(
      name,
      {
        routerName: 'gate.wg',
        experts: config.num_experts,
        expertsPerToken: typeof taken === 'number' ? taken : (taken[index] ?? 1),
        isNormed: true,
        stored: config.experts_stored,
        hidden,
        inner,
        activation,
      },
      {
        shared: [
          separateMlp(`${name}.shared_mlp`, {
            hidden,
            inner,
            activation,
            component: 'sharedExperts',
          }),
        ],
      },
    );
  },
});
