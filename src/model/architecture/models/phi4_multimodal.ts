/** Phi 4 multimodal (arXiv 2503.01743), the language model: Phi 3. */

import { harmless } from '../transformer/config-keys.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import { PHI3, phi3Settings } from './phi3.js';

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
    harmless: harmless('describes the towers of images and sounds', [
      'audio_config',
      'vision_config',
    ]),
  },
});
