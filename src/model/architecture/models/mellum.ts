/** Mellum 2: Qwen 3 with experts in some layers, and windows with a rotation of their own in others. */
import * as z from 'zod';
import { mlpOf, rotaryByKind, sparseMixture } from '../transformer/decoder-parts.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import { localRotarySettings, nestedRotary, OLDER_ROTARY_KEYS } from '../transformer/rotary.js';
import { layerListRules, localRotaryRules } from '../transformer/rules.js';
import {
  attentionBias,
  gateActivation,
  slidesAt,
  sparseSettings,
  toggle,
  windowAt,
  windowSettings,
} from '../transformer/settings.js';

const [BASE, LOCAL_BASE] = [500_000, 10_000];

const {
  decoder_sparse_step: _,
  mlp_only_layers: __,
  ...experts
} = sparseSettings({ experts: 64, expertsPerToken: 8, inner: 896 });

export const mellum = defineDecoder({
  title: 'Mellum 2',
  architecture: 'mixture',
  schema: decoderDocument(
    'mellum',
    {
      vocab_size: 98_304,
      hidden_size: 2304,
      intermediate_size: 7168,
      num_hidden_layers: 28,
      num_attention_heads: 32,
      num_key_value_heads: 4,
      head_dim: 128,
      max_position_embeddings: 131_072,
      rms_norm_eps: 1e-6,
      rope_theta: BASE,
    },
    {
      ...localRotarySettings(LOCAL_BASE),
      ...windowSettings(1024),
      ...experts,
      norm_topk_prob: toggle(true, 'Weights of the chosen experts sum to one'),
      mlp_layer_types: z
        .array(z.enum(['dense', 'sparse']))
        .nullish()
        .describe('Which layers have experts [all]'),
      attention_bias: attentionBias,
      hidden_act: gateActivation,
    },
  ),
  rules: [...localRotaryRules, ...layerListRules('mlp_layer_types')],
  dimensions: {
    headDim: ['head_dim'],
    feedForward: { key: 'moe_intermediate_size', perChannel: [1 / 4, 1] },
  },
  ignoredOnLoad: [],
  huggingFace: {
    names: { num_experts: ['num_local_experts'] },
    rotary: nestedRotary({ rope_theta: BASE, rope_local_base_freq: LOCAL_BASE }),
    limited: OLDER_ROTARY_KEYS,
  },
  queryKeyNorms: 'each head',
  attention({ name, config, index, heads: { headDim } }) {
    const slides = slidesAt(config, index, false);
    return {
      rotary: rotaryByKind(name, config, headDim, slides),
      window: windowAt(config, index, false),
    };
  },
  feedForward: ({ name, config, index }) =>
    (config.mlp_layer_types?.[index] === 'dense' ? mlpOf : sparseMixture)(`${name}.mlp`, config),
});
