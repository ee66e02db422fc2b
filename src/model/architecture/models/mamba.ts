/** Mamba (arXiv 2312.00752): selective state spaces, without attention. */
import type { StoredShapes } from '../family.js';
import { defineRules } from '../family.js';
import { defineTransformer } from '../transformer/define-decoder.js';
import { lengthRules } from '../transformer/rules.js';
import {
  count,
  positiveInteger,
  prefixStoredIn,
  tiedHead,
  transformerDocument,
} from '../transformer/settings.js';
import {
  NO_ATTENTION_KEYS,
  RECURRENT_HARMLESS,
  RECURRENT_PREFIX,
  recurrentMamba,
  recurrentModel,
  recurrentSizes,
  stepRank,
} from '../transformer/state-space.js';

/** Keys of Mamba and Falcon Mamba. */
export const mambaSettings = {
  ...recurrentSizes({
    vocab_size: 50_280,
    hidden_size: 768,
    num_hidden_layers: 32,
    state_size: 16,
  }),
  expand: count(2, 'Inner width, in widths of the model'),
  intermediate_size: positiveInteger.nullish().describe('Inner width [expand · hidden_size]'),
  time_step_rank: stepRank,
};

/** A warning for an inner width that contradicts the factor: transformers' class then ignores the factor. */
const innerWidthRules = defineRules<{
  readonly model: {
    readonly hidden_size: number;
    readonly expand: number;
    readonly intermediate_size?: number | null | undefined;
  };
}>([
  {
    severity: 'warning',
    reads: ['model.expand', 'model.intermediate_size', 'model.hidden_size'],
    check: ({ model: { hidden_size: hidden, expand, intermediate_size: inner } }) =>
      inner != null && inner !== expand * hidden
        ? {
            message: `the inner width is intermediate_size ${inner}, and not expand ${expand} · hidden_size ${hidden}`,
            suggestion: `write intermediate_size: ${expand * hidden}, if that is meant`,
          }
        : undefined,
  },
]);

/** Parts of Mamba and Falcon Mamba. */
export const MAMBA = {
  architecture: 'recurrent',
  rules: [...lengthRules('seq_length'), ...innerWidthRules],
  huggingFace: {
    harmless: RECURRENT_HARMLESS,
    limited: NO_ATTENTION_KEYS,
  },
  storedSettings: (stored: StoredShapes) =>
    prefixStoredIn(stored, RECURRENT_PREFIX, 'embeddings.weight'),
} as const;

const schema = transformerDocument('mamba', {
  ...mambaSettings,
  tie_word_embeddings: tiedHead(true),
});

export const mamba = defineTransformer({
  ...MAMBA,
  title: 'Mamba',
  schema,
  build: ({ model: config }) => recurrentModel(config, (name) => recurrentMamba(name, config)),
});
