/** Falcon Mamba (arXiv 2410.05355): Mamba with norms without weights on the steps, B and C. */
import { defineTransformer } from '../transformer/define-decoder.js';
import { lengthRules } from '../transformer/rules.js';
import {
  epsilon,
  flag,
  positiveInteger,
  prefixStoredIn,
  transformerDocument,
} from '../transformer/settings.js';
import {
  NO_ATTENTION_KEYS,
  RECURRENT_HARMLESS,
  recurrentMamba,
  recurrentModel,
  recurrentSizes,
  stepRank,
} from '../transformer/state-space.js';

const schema = transformerDocument('falcon_mamba', {
  ...recurrentSizes({
    vocab_size: 50_280,
    hidden_size: 768,
    num_hidden_layers: 32,
    state_size: 16,
  }),
  expand: positiveInteger.default(2).describe('Inner width, in widths of the model'),
  time_step_rank: stepRank,
  mixer_rms_eps: epsilon.default(1e-6).describe('Epsilon of the norms on the steps, B and C'),
  tie_word_embeddings: flag.default(true).describe('The head reads the embedding'),
});

export const falconMamba = defineTransformer({
  title: 'Falcon Mamba',
  schema,
  rules: lengthRules('seq_length'),
  huggingFace: {
    harmless: { ...RECURRENT_HARMLESS, intermediate_size: 'follows from expand' },
    limited: NO_ATTENTION_KEYS,
  },
  storedSettings: (stored) => prefixStoredIn(stored, 'backbone.', 'embeddings.weight'),
  build: ({ model: config }) =>
    recurrentModel(config, (name) =>
      recurrentMamba(name, config, { innerNormEps: config.mixer_rms_eps }),
    ),
});
