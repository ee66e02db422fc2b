/** Command A with experts: attention and experts of one norm, and dense networks in the first layers. */
import * as z from 'zod';
import { layerNormLayer, rmsNormLayer } from '../constructors/basic-layers.js';
import { mixtureOfExperts, router } from '../constructors/feed-forward-layers.js';
import type { JsonObject } from '../transformer/config-keys.js';
import {
  expertsOf,
  jointExperts,
  scaledBranch,
  separateMlp,
} from '../transformer/decoder-parts.js';
import { falseForNull } from '../transformer/deepseek.js';
import { defineDecoder, plainDecoderDocument } from '../transformer/define-decoder.js';
import { type RotaryReading, rotaryReading } from '../transformer/rotary.js';
import {
  activationOf,
  count,
  epsilon,
  expertsStored,
  mlpLayerTypes,
  positiveInteger,
  slidesAt,
  toggle,
  windowAt,
  windowSettings,
} from '../transformer/settings.js';
import { COHERE, COHERE_SIZES, cohereSettings } from './cohere.js';

const plain = rotaryReading({});

/** The class reads `rope_parameters` as they are, or `rope_theta`, and no `rope_scaling`. */
const rotary: RotaryReading = {
  keys: plain.keys,
  settings: ({ rope_scaling: _, ...config }: JsonObject) => plain.settings(config),
  remarks: ({ rope_scaling: scaling, ...config }) => [
    ...plain.remarks(config),
    ...(scaling == null
      ? []
      : [
          {
            path: ['rope_scaling'],
            severity: 'warning',
            why: 'the class reads rope_parameters only',
          } as const,
        ]),
  ],
};

export const cohere2Moe = defineDecoder({
  ...COHERE,
  title: 'Command A with experts',
  architecture: 'mixture',
  schema: plainDecoderDocument(
    'cohere2_moe',
    { ...COHERE_SIZES, head_dim: 128 },
    {
      ...cohereSettings,
      rms_norm_eps: epsilon
        .nullable()
        .default(null)
        .describe('Epsilon of RMSNorms; null: LayerNorms, with layer_norm_eps'),
      ...windowSettings(4096),
      sliding_window_pattern: count(
        4,
        'Without layer_types: period of the layers without a window, after the first ones',
      ),
      first_k_dense_replace: z
        .int()
        .min(0)
        .default(0)
        .describe('Without mlp_layer_types: so many first layers have no experts'),
      prefix_dense_sliding_window_pattern: count(
        1,
        'The same of these first layers; with 1, dense layers have positions without a window, too',
      ),
      mlp_layer_types: mlpLayerTypes,
      prefix_dense_intermediate_size: positiveInteger
        .nullable()
        .default(null)
        .describe('Width inside a dense network; null: intermediate_size'),
      num_experts: count(8, 'Experts to choose from'),
      num_experts_per_tok: count(2, 'Experts that a token goes to'),
      num_shared_experts: z
        .int()
        .min(0)
        .default(0)
        .describe('Experts for every token, as one network of their joint width'),
      shared_expert_combination_strategy: z
        .enum(['average', 'sum'])
        .default('average')
        .describe('Whether a layer gives the sum of both kinds of experts, or half of it'),
      expert_selection_fn: z
        .enum(['softmax', 'sigmoid'])
        .default('softmax')
        .describe('How experts are scored'),
      norm_topk_prob: toggle(true, 'Sigmoid weights of the chosen experts sum to one'),
      experts_stored: expertsStored,
    },
  ),
  rules: [
    {
      severity: 'error',
      reads: ['model.first_k_dense_replace', 'model.num_hidden_layers'],
      check: ({ model: { first_k_dense_replace: dense, num_hidden_layers: layers } }) =>
        dense > layers
          ? {
              message: `the first ${dense} of ${layers} layers would be dense`,
              suggestion: `write first_k_dense_replace: ${layers} or less`,
            }
          : undefined,
    },
  ],
  dimensions: null,
  huggingFace: { more: falseForNull, rotary },
  norm: (name, { hidden_size: hidden, rms_norm_eps: eps, layer_norm_eps }) =>
    eps === null
      ? layerNormLayer(name, hidden, layer_norm_eps, { holds: 'weight' })
      : rmsNormLayer(name, hidden, eps),
  slidesByRule: () => true,
  attention({ config, index }) {
    const { prefix_dense_sliding_window_pattern: densePeriod } = config;
    const { first_k_dense_replace: dense, sliding_window_pattern: period } = config;
    const slidesByPeriod =
      index < dense ? (index + 1) % densePeriod !== 0 : (index - dense + 1) % period !== 0;
    const slides = slidesAt(config, index, slidesByPeriod);
    const isRotated =
      (slides && config.sliding_window !== null) || (isDenseAt(config, index) && densePeriod === 1);
    return {
      ...(!isRotated && { rotary: undefined }),
      window: windowAt(config, index, slides),
    };
  },
  feedForward({ name: block, config, index }) {
    const name = `${block}.mlp`;
    const { hidden_size: hidden, intermediate_size: inner, num_experts: experts } = config;
    const activation = activationOf(config.hidden_act);
    if (isDenseAt(config, index)) {
      const width = config.prefix_dense_intermediate_size ?? inner;
      return separateMlp(name, { hidden, inner: width, activation });
    }
    const scoring = config.expert_selection_fn;
    const isNormed = scoring === 'softmax' || config.norm_topk_prob;
    const shared = config.num_shared_experts;
    const isHalf = shared > 0 && config.shared_expert_combination_strategy === 'average';
    const mixture = mixtureOfExperts(name, {
      router: router(`${name}.gate`, hidden, {
        experts,
        expertsPerToken: config.num_experts_per_tok,
        scoring,
        renormalised: isNormed ? { eps: 0 } : undefined,
      }),
      experts: expertsOf(`${name}.experts`, {
        experts,
        stored: config.experts_stored,
        hidden,
        inner,
        activation,
      }),
      shared: jointExperts(`${name}.shared_experts`, shared, { hidden, inner, activation }),
    });
    return scaledBranch(mixture, isHalf ? 0.5 : 1);
  },
});

interface DenseLayers {
  readonly first_k_dense_replace: number;
  readonly mlp_layer_types?: readonly string[] | null | undefined;
}

const isDenseAt = (
  { mlp_layer_types: types, first_k_dense_replace: dense }: DenseLayers,
  index: number,
): boolean => (types ? types[index] === 'dense' : index < dense);
