/** The decoder of Blenderbot 90M (arXiv 2004.13637): that of BART with a norm of the tokens before their positions. */
import {
  defineSeq2SeqDecoder,
  seq2SeqDocument,
  UNREAD_SCALE,
} from '../transformer/define-seq2seq-decoder.js';

export const blenderbotSmall = defineSeq2SeqDecoder({
  title: 'The decoder of Blenderbot 90M',
  document: seq2SeqDocument(
    'blenderbot-small',
    {
      vocab_size: 50_265,
      positions: 512,
      d_model: 512,
      decoder_layers: 8,
      decoder_ffn_dim: 2048,
    },
    {},
  ),
  className: 'BlenderbotSmallForCausalLM',
  embeddingNorm: () => 'tokens',
  huggingFace: { limited: UNREAD_SCALE },
});
