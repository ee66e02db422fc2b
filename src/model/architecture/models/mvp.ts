/** The decoder of MVP (arXiv 2206.12131): that of BART. Its class has no prompts, even where the config asks for them. */
import { harmless } from '../transformer/config-keys.js';
import {
  defineSeq2SeqDecoder,
  scaleSetting,
  seq2SeqDocument,
} from '../transformer/define-seq2seq-decoder.js';

export const mvp = defineSeq2SeqDecoder({
  title: 'The decoder of MVP',
  document: seq2SeqDocument('mvp', { vocab_size: 50_267 }, scaleSetting(false)),
  className: 'MvpForCausalLM',
  embeddingNorm: () => 'sum',
  firstRow: 2,
  huggingFace: {
    harmless: harmless('of prompts, which the class of the decoder alone does not have', [
      'use_prompt',
      'prompt_length',
      'prompt_mid_dim',
    ]),
  },
});
