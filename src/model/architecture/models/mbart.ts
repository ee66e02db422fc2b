/** The decoder of mBART (arXiv 2001.08210): that of BART with norms before the branches, and one behind the blocks. */
import {
  defineSeq2SeqDecoder,
  scaleSetting,
  seq2SeqDocument,
} from '../transformer/define-seq2seq-decoder.js';

export const mbart = defineSeq2SeqDecoder({
  title: 'The decoder of mBART',
  document: seq2SeqDocument('mbart', { vocab_size: 50_265 }, scaleSetting(false)),
  className: 'MBartForCausalLM',
  whole: 'mbart-seq2seq',
  isPreNorm: true,
  embeddingNorm: () => 'sum',
  finalNorm: 'layer_norm',
  firstRow: 2,
});
