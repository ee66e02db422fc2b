/**
 * The decoder of PEGASUS (arXiv 1912.08777): norms before the branches. Positions are sines and cosines in a table that
 * the class stores with its weights.
 */
import {
  defineSeq2SeqDecoder,
  scaleSetting,
  seq2SeqDocument,
} from '../transformer/define-seq2seq-decoder.js';

export const pegasus = defineSeq2SeqDecoder({
  title: 'The decoder of PEGASUS',
  document: seq2SeqDocument('pegasus', { vocab_size: 50_265 }, scaleSetting(false)),
  className: 'PegasusForCausalLM',
  whole: 'pegasus-seq2seq',
  isPreNorm: true,
  finalNorm: 'layer_norm',
});
