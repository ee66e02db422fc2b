/** The decoder of TrOCR (arXiv 2109.10282): that of BART, with an attention to images of another width. */
import { harmless } from '../transformer/config-keys.js';
import {
  defineSeq2SeqDecoder,
  scaleSetting,
  seq2SeqDocument,
} from '../transformer/define-seq2seq-decoder.js';
import { positiveInteger, toggle } from '../transformer/settings.js';

export const trocr = defineSeq2SeqDecoder({
  title: 'The decoder of TrOCR',
  document: seq2SeqDocument(
    'trocr',
    { vocab_size: 50_265, positions: 512 },
    {
      ...scaleSetting(false),
      layernorm_embedding: toggle(true, 'A norm of the embeddings with their positions'),
      cross_attention_hidden_size: positiveInteger
        .nullable()
        .default(null)
        .describe('Width of what the attention to the image reads [d_model]'),
    },
  ),
  className: 'TrOCRForCausalLM',
  isAlone: true,
  embeddingNorm: ({ layernorm_embedding }) => (layernorm_embedding ? 'sum' : 'none'),
  firstRow: 2,
  encoderWidth: ({ cross_attention_hidden_size }) => cross_attention_hidden_size,
  head: 'output_projection',
  huggingFace: {
    names: {
      decoder_layers: ['num_hidden_layers'],
      decoder_attention_heads: ['num_attention_heads'],
    },
    limited: {
      use_learned_position_embeddings: {
        allows: (value) => value === true,
        why: 'positions are sines and cosines that skip padding tokens',
        severity: 'error',
      },
    },
    harmless: harmless('the class does not read it', ['decoder']),
  },
});
