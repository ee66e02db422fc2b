/** The decoder of Blenderbot (arXiv 2004.13637): norms before the branches. */
import {
  defineSeq2SeqDecoder,
  scaleSetting,
  seq2SeqDocument,
} from '../transformer/define-seq2seq-decoder.js';

export const blenderbot = defineSeq2SeqDecoder({
  title: 'The decoder of Blenderbot',
  document: seq2SeqDocument(
    'blenderbot',
    {
      vocab_size: 8008,
      positions: 128,
      d_model: 2560,
      decoder_layers: 24,
      decoder_ffn_dim: 10_240,
      decoder_attention_heads: 32,
    },
    scaleSetting(false),
  ),
  className: 'BlenderbotForCausalLM',
  isPreNorm: true,
  finalNorm: 'layer_norm',
});
