/** Phi 4 multimodal (arXiv 2503.01743), the language model: Phi 3. */

import { isRecord } from '../../../base/values.js';
import { harmless } from '../transformer/config-keys.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import { PHI3, phi3Settings } from './phi3.js';

const TOWERS = ['vision_config', 'audio_config'];

export const phi4Multimodal = defineDecoder({
  ...PHI3,
  title: 'Phi 4 multimodal, the language model',
  schema: decoderDocument(
    'phi4_multimodal',
    {
      vocab_size: 200_064,
      hidden_size: 3072,
      intermediate_size: 8192,
      num_hidden_layers: 32,
      num_attention_heads: 32,
      num_key_value_heads: 8,
      max_position_embeddings: 131_072,
      rms_norm_eps: 1e-5,
    },
    phi3Settings,
  ),
  ignored: ({ model: { stored_prefix: prefix } }) => [
    { pattern: `${prefix}embed_tokens_extend.**`, what: 'they embed images and sounds' },
  ],
  huggingFace: {
    ...PHI3.huggingFace,
    remarks: (config) => {
      const towers = TOWERS.filter((key) => isRecord(config[key]));
      return towers.length === 0
        ? []
        : [
            {
              path: towers.slice(0, 1),
              severity: 'warning' as const,
              why: 'the towers of images and sounds are left out, and only the language model is described',
              advice: 'give the checkpoint in place of its config to count what is left out',
            },
          ];
    },
    harmless: harmless('describes the towers of images and sounds', TOWERS),
  },
});
