/**
 * The decoder of BigBird-PEGASUS (arXiv 2007.14062): norms before the branches, and products without biases. Its
 * attention is full, and its head is never tied.
 */
import { harmless, unreadBut } from '../transformer/config-keys.js';
import {
  defineSeq2SeqDecoder,
  scaleSetting,
  seq2SeqDocument,
} from '../transformer/define-seq2seq-decoder.js';
import { toggle } from '../transformer/settings.js';

export const bigbirdPegasus = defineSeq2SeqDecoder({
  title: 'The decoder of BigBird-PEGASUS',
  document: seq2SeqDocument(
    'bigbird_pegasus',
    {
      vocab_size: 96_103,
      positions: 4096,
      decoder_layers: 16,
      activation_function: 'gelu_new',
      tie_word_embeddings: false,
    },
    { ...scaleSetting(true), use_bias: toggle(false, 'Biases in the products of attention') },
  ),
  className: 'BigBirdPegasusForCausalLM',
  isPreNorm: true,
  finalNorm: 'layernorm_embedding',
  bias: ({ use_bias }) => use_bias,
  huggingFace: {
    more: () => ({ tie_word_embeddings: false }),
    limited: {
      tie_word_embeddings: unreadBut([false, true], 'the class has a head of its own'),
    },
    harmless: harmless('of the attention in the encoder', [
      'attention_type',
      'block_size',
      'num_random_blocks',
    ]),
  },
});
