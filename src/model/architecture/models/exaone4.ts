/**
 * EXAONE 4.0 (arXiv 2507.11407): norms after the branches; in models with windows, layers without one have no
 * positions.
 */
import * as z from 'zod';
import { defineRules } from '../family.js';
import { postNormBlock } from '../transformer/decoder-parts.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import {
  gateActivation,
  type SettingsOf,
  slidesAt,
  windowAt,
  windowSettings,
} from '../transformer/settings.js';

const DEFAULT_PATTERN = 4;

/** Default sizes, with or without experts. */
export const EXAONE_SIZES = {
  vocab_size: 102_400,
  hidden_size: 4096,
  intermediate_size: 16_384,
  num_hidden_layers: 32,
  num_attention_heads: 32,
  max_position_embeddings: 2048,
  rms_norm_eps: 1e-5,
};

export const exaoneSettings = {
  ...windowSettings(4096),
  sliding_window_pattern: z
    .union([z.int().min(0), z.string()])
    .nullish()
    .describe(`Without layer_types: period of the layers without a window [${DEFAULT_PATTERN}]`),
  hidden_act: gateActivation,
};

type ExaoneConfig = SettingsOf<typeof exaoneSettings>;

/** Attention, with or without experts. */
export const EXAONE = {
  rules: defineRules<{ readonly model: ExaoneConfig }>([
    {
      severity: 'error',
      reads: ['model.sliding_window_pattern', 'model.layer_types', 'model.sliding_window'],
      check: ({
        model: { sliding_window_pattern: pattern, layer_types: types, sliding_window },
      }) =>
        types == null && sliding_window !== null && (pattern === 0 || typeof pattern === 'string')
          ? {
              message: `sliding_window_pattern ${JSON.stringify(pattern)} is not a number of layers`,
              suggestion: 'give layer_types, or a period of 1 or more',
            }
          : undefined,
    },
  ]),
  slidesByRule: ({ sliding_window }: Pick<ExaoneConfig, 'sliding_window'>) =>
    sliding_window !== null,
  queryKeyNorms: 'each head',
  attention({ config, index }: { readonly config: ExaoneConfig; readonly index: number }) {
    const hasWindow = config.sliding_window !== null;
    const pattern = Number(config.sliding_window_pattern ?? DEFAULT_PATTERN);
    const slides = slidesAt(config, index, hasWindow && (index + 1) % pattern !== 0);
    return {
      ...(hasWindow && !slides && { rotary: undefined }),
      window: windowAt(config, index, slides),
    };
  },
} as const;

export const exaone4 = defineDecoder({
  ...EXAONE,
  title: 'EXAONE 4.0',
  schema: decoderDocument('exaone4', EXAONE_SIZES, exaoneSettings),
  block: postNormBlock,
});
