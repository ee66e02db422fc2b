/** The decoder of BART (arXiv 1910.13461), as `BartForCausalLM`. */
import {
  defineSeq2SeqDecoder,
  scaleSetting,
  seq2SeqDocument,
} from '../transformer/define-seq2seq-decoder.js';

export const bart = defineSeq2SeqDecoder({
  title: 'The decoder of BART',
  document: seq2SeqDocument('bart', { vocab_size: 50_265 }, scaleSetting(false)),
  className: 'BartForCausalLM',
  whole: 'bart-seq2seq',
  embeddingNorm: () => 'sum',
  firstRow: 2,
  ignoredOnLoad: ['encoder.version', 'decoder.version'],
});
