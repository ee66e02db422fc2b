/** The encoder of Whisper (arXiv 2212.04356), which is described and not run: models/whisper of transformers 5.18. */
import { layerNormLayer } from '../../constructors/basic-layers.js';
import type { Layer } from '../../layer.js';
import { type BlockLeaves, encoderBlock, patchProduct, rowsAdded } from './encoder-parts.js';

/** Sizes of an encoder of sounds. */
export interface SoundSizes {
  readonly num_mel_bins: number;
  readonly encoder_layers: number;
  readonly encoder_attention_heads: number;
  readonly encoder_ffn_dim: number;
  readonly d_model: number;
  readonly max_source_positions: number;
}

const LEAVES: BlockLeaves = {
  attention: [
    'self_attn.q_proj',
    ['self_attn.k_proj', false],
    'self_attn.v_proj',
    'self_attn.out_proj',
  ],
  feedForward: ['fc1', 'fc2'],
  norms: ['self_attn_layer_norm', 'final_layer_norm'],
};

/** Two convolutions over a spectrum, a table of positions, blocks and a norm, with names below a prefix. */
export const soundEncoder = (prefix: string, sizes: SoundSizes): Layer[] => {
  const { d_model: hidden } = sizes;
  return [
    patchProduct(`${prefix}conv1`, [hidden, sizes.num_mel_bins, 3], { bias: true }),
    patchProduct(`${prefix}conv2`, [hidden, hidden, 3], { bias: true }),
    rowsAdded(`${prefix}embed_positions`, sizes.max_source_positions, hidden),
    ...Array.from({ length: sizes.encoder_layers }, (_, index) =>
      encoderBlock(`${prefix}layers.${index}`, LEAVES, {
        hidden,
        heads: sizes.encoder_attention_heads,
        inner: sizes.encoder_ffn_dim,
      }),
    ),
    layerNormLayer(`${prefix}layer_norm`, hidden, 1e-5),
  ];
};
