/**
 * The decoder of Whisper (arXiv 2212.04356), as `WhisperForCausalLM`: norms before the branches, and keys without
 * biases. The class does not scale embeddings, even where the config asks for it.
 */
import { harmless } from '../transformer/config-keys.js';
import {
  defineSeq2SeqDecoder,
  seq2SeqDocument,
  UNREAD_SCALE,
} from '../transformer/define-seq2seq-decoder.js';

export const whisper = defineSeq2SeqDecoder({
  title: 'The decoder of Whisper',
  document: seq2SeqDocument(
    'whisper',
    {
      vocab_size: 51_865,
      positions: 448,
      d_model: 384,
      decoder_layers: 4,
      decoder_ffn_dim: 1536,
      decoder_attention_heads: 6,
    },
    {},
    'max_target_positions',
  ),
  className: 'WhisperForCausalLM',
  whole: 'whisper-seq2seq',
  isPreNorm: true,
  finalNorm: 'layer_norm',
  keyBias: false,
  head: 'proj_out',
  huggingFace: {
    limited: UNREAD_SCALE,
    harmless: harmless('of the encoder, or of a classifier of sounds', [
      'num_mel_bins',
      'max_source_positions',
      'use_weighted_layer_sum',
      'classifier_proj_size',
      'apply_spec_augment',
      'mask_time_prob',
      'mask_time_length',
      'mask_time_min_masks',
      'mask_feature_prob',
      'mask_feature_length',
      'mask_feature_min_masks',
      'median_filter_width',
      'num_key_value_heads',
      'max_position_embeddings',
      'n_positions',
    ]),
  },
});
