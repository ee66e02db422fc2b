/**
 * The decoder of Marian's translators (arXiv 1804.00344): that of BART without a norm of the embeddings. Positions are
 * sines and cosines in a table that the class stores with its weights.
 */
import type { JsonObject } from '../transformer/config-keys.js';
import {
  defineSeq2SeqDecoder,
  scaleSetting,
  seq2SeqDocument,
} from '../transformer/define-seq2seq-decoder.js';

/** The embedding, and a head that is tied to it, have a vocabulary of their own where the file gives one. */
const ownVocabulary = ({ decoder_vocab_size: own }: JsonObject): JsonObject =>
  own ? { vocab_size: own } : {};

export const marian = defineSeq2SeqDecoder({
  title: 'The decoder of Marian',
  document: seq2SeqDocument('marian', { vocab_size: 58_101 }, scaleSetting(false)),
  className: 'MarianForCausalLM',
  whole: 'marian-seq2seq',
  huggingFace: {
    more: ownVocabulary,
    limited: {
      decoder_vocab_size: {
        allows: (value, { vocab_size: whole = 58_101, tie_word_embeddings: tied }) =>
          !value || value === whole || tied !== false,
        why: 'the head has the rows of vocab_size, and the embedding those of decoder_vocab_size',
        severity: 'error',
      },
    },
  },
});
