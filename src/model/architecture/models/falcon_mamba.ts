/** Falcon Mamba (arXiv 2410.05355): Mamba with norms without weights on the steps, B and C. */
import { defineTransformer } from '../transformer/define-decoder.js';
import { epsilon, tiedHead, transformerDocument } from '../transformer/settings.js';
import { recurrentMamba, recurrentModel } from '../transformer/state-space.js';
import { MAMBA, mambaSettings } from './mamba.js';

const schema = transformerDocument('falcon_mamba', {
  ...mambaSettings,
  mixer_rms_eps: epsilon.default(1e-6).describe('Epsilon of the norms on the steps, B and C'),
  tie_word_embeddings: tiedHead(true),
});

export const falconMamba = defineTransformer({
  ...MAMBA,
  title: 'Falcon Mamba',
  schema,
  build: ({ model: config }) =>
    recurrentModel(config, (name) =>
      recurrentMamba(name, config, { innerNormEps: config.mixer_rms_eps }),
    ),
});
