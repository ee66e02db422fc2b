/** The decoder of PLBART (arXiv 2103.06333): that of BART with scaled embeddings. */
import {
  defineSeq2SeqDecoder,
  scaleSetting,
  seq2SeqDocument,
} from '../transformer/define-seq2seq-decoder.js';

export const plbart = defineSeq2SeqDecoder({
  title: 'The decoder of PLBART',
  document: seq2SeqDocument(
    'plbart',
    {
      vocab_size: 50_005,
      d_model: 768,
      decoder_layers: 6,
      decoder_ffn_dim: 3072,
      decoder_attention_heads: 12,
    },
    scaleSetting(true),
  ),
  className: 'PLBartForCausalLM',
  embeddingNorm: () => 'sum',
  firstRow: 2,
});
