/** Mamba (arXiv 2312.00752): selective state spaces, without attention. */
import type { StoredShapes } from '../family.js';
import { defineTransformer } from '../transformer/define-decoder.js';
import { lengthRules } from '../transformer/rules.js';
import { count, prefixStoredIn, tiedHead, transformerDocument } from '../transformer/settings.js';
import {
  NO_ATTENTION_KEYS,
  RECURRENT_HARMLESS,
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
  time_step_rank: stepRank,
};

/** Parts of both. */
export const MAMBA = {
  architecture: 'recurrent',
  rules: lengthRules('seq_length'),
  huggingFace: {
    harmless: { ...RECURRENT_HARMLESS, intermediate_size: 'follows from expand' },
    limited: NO_ATTENTION_KEYS,
  },
  storedSettings: (stored: StoredShapes) =>
    prefixStoredIn(stored, 'backbone.', 'embeddings.weight'),
} as const;

const schema = transformerDocument('mamba', {
  ...mambaSettings,
  tie_word_embeddings: tiedHead(true),
});

export const mamba = defineTransformer({
  ...MAMBA,
  title: 'Mamba',
  schema,
  presets: {
    'mamba-130m': {
      title: 'Mamba-130M',
      model: {
        vocab_size: 50280,
        hidden_size: 768,
        num_hidden_layers: 24,
        state_size: 16,
      },
    },
  },
  build: ({ model: config }) => recurrentModel(config, (name) => recurrentMamba(name, config)),
});
