/** Towers of images and sounds, in the classes of transformers 5.18. */
import * as z from 'zod';
import { layerNormLayer, linear, rmsNormLayer } from '../constructors/basic-layers.js';
import type { Layer } from '../layer.js';
import { CLIP_BLOCK, visionBody, visionKeys } from '../models/clip.js';
import { type HarmlessKeys, harmless } from '../transformer/config-keys.js';
import {
  type BlockLeaves,
  biaslessLeaf,
  patchProduct,
  rowsAdded,
} from '../transformer/described/encoder-parts.js';
import { type SoundSizes, soundEncoder } from '../transformer/described/sound.js';
import {
  bodyLayers,
  bothSides,
  heldValues,
  patchesOf,
  pixels,
  type Sides,
  sides,
  type TowerSizes,
  towerSizes,
} from '../transformer/described/vision.js';
import { count, positiveInteger, toggle } from '../transformer/settings.js';
import {
  gemma4Vision,
  glm4vVision,
  kimiVision,
  llama4Vision,
  mllamaVision,
} from './image-towers.js';
import { audioFlamingoEncoder, gemma4Audio, voxtralEncoder } from './sound-towers.js';
import { blocks, type Tower, vision } from './tower.js';

const likeClip = (flavour: 'clip' | 'siglip' | 'siglip2'): Tower =>
  vision<Parameters<typeof visionBody>[1]>(visionKeys(flavour), (prefix, config) => ({
    layers: bodyLayers(visionBody(prefix, config, flavour)),
    width: config.hidden_size,
  }));

// ── Qwen VL ──────────────────────────────────────────────────────────────────────────────────────

interface QwenConfig {
  readonly depth: number;
  readonly embed_dim: number;
  readonly hidden_size: number;
  readonly out_hidden_size: number;
  readonly intermediate_size: number;
  readonly mlp_ratio: number;
  readonly num_heads: number;
  readonly in_channels: number;
  readonly patch_size: Sides;
  readonly spatial_merge_size: number;
  readonly temporal_patch_size: number;
  readonly num_position_embeddings: number;
  readonly deepstack_visual_indexes: readonly number[];
}

const qwenKeys = (patch: number): z.ZodRawShape => ({
  num_heads: count(16, 'Heads'),
  in_channels: count(3, 'Channels of an image'),
  patch_size: sides(patch, 'Side of a patch'),
  spatial_merge_size: count(2, 'Patches of a side that one token has'),
  temporal_patch_size: count(2, 'Images of a patch'),
});

const QWEN_UNREAD: HarmlessKeys = {
  ...harmless('changes what is read, and no sizes', [
    'window_size',
    'fullatt_block_indexes',
    'tokens_per_second',
    'spatial_patch_size',
  ]),
  ...harmless('the class reads in_channels', ['in_chans']),
};

const qkv = (feedForward: BlockLeaves['feedForward']): BlockLeaves => ({
  attention: ['attn.qkv', 'attn.proj'],
  feedForward,
  norms: ['norm1', 'norm2'],
});

const qwenPatch = (prefix: string, config: QwenConfig, width: number, bias: boolean): Layer => {
  const patch = bothSides(config.patch_size);
  const shape = [width, config.in_channels, config.temporal_patch_size, ...patch];
  return patchProduct(`${prefix}patch_embed.proj`, shape, { bias });
};

const qwenBlocks = (
  prefix: string,
  { depth, num_heads: heads }: QwenConfig,
  leaves: BlockLeaves,
  sizes: { readonly hidden: number; readonly inner: number; readonly norm?: 'rms' },
): Layer[] => blocks(depth, (index) => `${prefix}blocks.${index}`, leaves, { heads, ...sizes });

/** Products of merged patches, as Qwen2-VL names them. */
const merger = (prefix: string, norm: Layer, merged: number, out: number): Layer[] => [
  norm,
  linear(`${prefix}merger.mlp.0`, merged, merged),
  linear(`${prefix}merger.mlp.2`, merged, out),
];

const qwen2Vl = vision<QwenConfig>(
  {
    depth: count(32, 'Number of blocks'),
    embed_dim: count(1280, 'Width of the tower'),
    hidden_size: count(3584, 'Width of the language model'),
    mlp_ratio: count(4, 'Width inside the network, by that of the tower'),
    ...qwenKeys(14),
  },
  (prefix, config) => {
    const { embed_dim: width, spatial_merge_size: side } = config;
    return {
      layers: [
        qwenPatch(prefix, config, width, false),
        ...qwenBlocks(prefix, config, qkv(['mlp.fc1', 'mlp.fc2']), {
          hidden: width,
          inner: width * config.mlp_ratio,
        }),
      ],
      projector: merger(
        prefix,
        layerNormLayer(`${prefix}merger.ln_q`, width, 1e-6),
        width * side ** 2,
        config.hidden_size,
      ),
      width,
    };
  },
  QWEN_UNREAD,
);

const qwen25Vl = vision<QwenConfig>(
  {
    depth: count(32, 'Number of blocks'),
    hidden_size: count(3584, 'Width of the tower'),
    intermediate_size: count(3420, 'Width inside the network'),
    out_hidden_size: count(3584, 'Width of the language model'),
    ...qwenKeys(14),
  },
  (prefix, config) => {
    const { hidden_size: width, spatial_merge_size: side } = config;
    return {
      layers: [
        qwenPatch(prefix, config, width, false),
        ...qwenBlocks(prefix, config, qkv(['mlp.gate_proj', 'mlp.up_proj', 'mlp.down_proj']), {
          hidden: width,
          inner: config.intermediate_size,
          norm: 'rms',
        }),
      ],
      projector: merger(
        prefix,
        rmsNormLayer(`${prefix}merger.ln_q`, width, 1e-6),
        width * side ** 2,
        config.out_hidden_size,
      ),
      width,
    };
  },
  QWEN_UNREAD,
);

const qwen3Vl = (isDeep: boolean): Tower =>
  vision<QwenConfig>(
    {
      depth: count(27, 'Number of blocks'),
      hidden_size: count(1152, 'Width of the tower'),
      intermediate_size: count(4304, 'Width inside the network'),
      out_hidden_size: count(3584, 'Width of the language model'),
      num_position_embeddings: count(2304, 'Rows of the table of positions'),
      ...(isDeep && {
        deepstack_visual_indexes: z
          .array(z.int().min(0))
          .default([8, 16, 24])
          .describe('Blocks whose output the language model reads, too'),
      }),
      ...qwenKeys(16),
    },
    (prefix, config) => {
      const { hidden_size: width, spatial_merge_size: side, out_hidden_size: out } = config;
      const merged = width * side ** 2;
      const mergerOf = (name: string, normed: number) => [
        layerNormLayer(`${name}.norm`, normed, 1e-6),
        linear(`${name}.linear_fc1`, merged, merged),
        linear(`${name}.linear_fc2`, merged, out),
      ];
      return {
        layers: [
          qwenPatch(prefix, config, width, true),
          rowsAdded(`${prefix}pos_embed`, config.num_position_embeddings, width),
          ...qwenBlocks(prefix, config, qkv(['mlp.linear_fc1', 'mlp.linear_fc2']), {
            hidden: width,
            inner: config.intermediate_size,
          }),
        ],
        projector: [
          ...mergerOf(`${prefix}merger`, width),
          ...(isDeep ? config.deepstack_visual_indexes : []).flatMap((_, index) =>
            mergerOf(`${prefix}deepstack_merger_list.${index}`, merged),
          ),
        ],
        width,
      };
    },
    {
      ...QWEN_UNREAD,
      ...(!isDeep && harmless('the class does not read it', ['deepstack_visual_indexes'])),
    },
  );

// ── Pixtral, Idefics 3 and InternVL ──────────────────────────────────────────────────────────────

interface ImageConfig extends TowerSizes {
  readonly image_size: Sides;
  readonly patch_size: Sides;
  readonly attention_bias: boolean;
  readonly use_qk_norm: boolean;
  readonly use_mask_token: boolean;
  readonly use_absolute_position_embeddings: boolean;
  readonly norm_type: 'layer_norm' | 'rms_norm';
  readonly head_dim: number | null;
}

const pixtral = vision<ImageConfig>(
  {
    ...towerSizes({ hidden: 1024, inner: 4096, layers: 24, heads: 16 }),
    patch_size: pixels(16, 'Side of a patch'),
    image_size: sides(1024, 'Side of the largest image'),
  },
  (prefix, config) => {
    const { hidden_size: hidden, num_channels, patch_size: patch } = config;
    const name = (index: number) => `${prefix}transformer.layers.${index}`;
    const leaves: BlockLeaves = {
      attention: [
        biaslessLeaf('attention.q_proj'),
        biaslessLeaf('attention.k_proj'),
        biaslessLeaf('attention.v_proj'),
        biaslessLeaf('attention.o_proj'),
      ],
      feedForward: [
        biaslessLeaf('feed_forward.gate_proj'),
        biaslessLeaf('feed_forward.up_proj'),
        biaslessLeaf('feed_forward.down_proj'),
      ],
      norms: ['attention_norm', 'ffn_norm'],
    };
    return {
      layers: [
        patchProduct(`${prefix}patch_conv`, [hidden, num_channels, ...bothSides(patch)], {
          bias: false,
        }),
        rmsNormLayer(`${prefix}ln_pre`, hidden, 1e-5),
        ...blocks(config.num_hidden_layers, name, leaves, {
          hidden,
          heads: config.num_attention_heads,
          inner: config.intermediate_size,
          norm: 'rms',
        }),
      ],
      width: hidden,
    };
  },
  harmless('the class has it from hidden_size', ['head_dim']),
);

const idefics3 = vision<ImageConfig>(
  {
    ...towerSizes({ hidden: 1152, inner: 3072, layers: 12, heads: 16 }),
    patch_size: pixels(32, 'Side of a patch'),
    image_size: pixels(224, 'Side of an image'),
  },
  (prefix, config) => {
    const { hidden_size: hidden, num_channels, patch_size: patch } = config;
    const at = `${prefix}embeddings`;
    return {
      layers: [
        patchProduct(`${at}.patch_embedding`, [hidden, num_channels, ...bothSides(patch)], {
          bias: true,
        }),
        rowsAdded(`${at}.position_embedding`, patchesOf(config.image_size, patch), hidden),
        ...blocks(
          config.num_hidden_layers,
          (index) => `${prefix}encoder.layers.${index}`,
          CLIP_BLOCK,
          {
            hidden,
            heads: config.num_attention_heads,
            inner: config.intermediate_size,
          },
        ),
        layerNormLayer(`${prefix}post_layernorm`, hidden, 1e-6),
      ],
      width: hidden,
    };
  },
  harmless('the classes do not read it', [
    'size',
    'max_image_size',
    'tie_word_embeddings',
    'use_base_siglip',
  ]),
);

const internVl = vision<ImageConfig>(
  {
    ...towerSizes({ hidden: 1024, inner: 4096, layers: 24, heads: 16 }),
    patch_size: sides(14, 'Side of a patch'),
    image_size: sides(448, 'Side of an image'),
    attention_bias: toggle(false, 'Biases of queries, keys and values'),
    use_qk_norm: toggle(false, 'Norms of queries and keys'),
    use_mask_token: toggle(false, 'Values of a masked patch'),
    use_absolute_position_embeddings: toggle(true, 'A table of positions'),
    norm_type: z.enum(['layer_norm', 'rms_norm']).default('layer_norm').describe('Kind of norms'),
  },
  (prefix, config) => {
    const { hidden_size: hidden, patch_size: patch, attention_bias: bias } = config;
    const isRms = config.norm_type === 'rms_norm';
    const at = `${prefix}embeddings`;
    const positions = patchesOf(config.image_size, patch) + 1;
    const leaf = (name: string) => [`attention.${name}`, bias] as const;
    const leaves: BlockLeaves = {
      attention: [leaf('q_proj'), leaf('k_proj'), leaf('v_proj'), 'attention.projection_layer'],
      feedForward: ['mlp.fc1', 'mlp.fc2'],
      norms: ['layernorm_before', 'layernorm_after'],
    };
    return {
      layers: [
        heldValues(
          at,
          [
            [`${at}.cls_token`, [1, 1, hidden]],
            ...(config.use_mask_token ? [[`${at}.mask_token`, [1, 1, hidden]] as const] : []),
            ...(config.use_absolute_position_embeddings
              ? [[`${at}.position_embeddings`, [1, positions, hidden]] as const]
              : []),
          ],
          hidden,
        ),
        patchProduct(
          `${at}.patch_embeddings.projection`,
          [hidden, config.num_channels, ...bothSides(patch)],
          { bias: true },
        ),
        ...blocks(config.num_hidden_layers, (index) => `${prefix}encoder.layer.${index}`, leaves, {
          hidden,
          heads: config.num_attention_heads,
          inner: config.intermediate_size,
          ...(isRms && { norm: 'rms' }),
          more: (name) => [
            heldValues(
              name,
              [
                [`${name}.lambda_1`, [hidden]],
                [`${name}.lambda_2`, [hidden]],
              ],
              hidden,
            ),
            ...(config.use_qk_norm
              ? ['q_norm', 'k_norm'].map((norm) =>
                  rmsNormLayer(`${name}.attention.${norm}`, hidden, 1e-6),
                )
              : []),
          ],
        }),
      ],
      width: hidden,
    };
  },
  harmless('changes values only, which are described and not computed', [
    'layer_scale_init_value',
    'use_mean_pooling',
    'projection_dropout',
  ]),
);

// ── Sounds ───────────────────────────────────────────────────────────────────────────────────────

const qwen2Audio: Tower = {
  component: 'audioTower',
  shape: {
    num_mel_bins: count(128, 'Bands of the spectrum'),
    encoder_layers: count(32, 'Number of blocks'),
    encoder_attention_heads: count(20, 'Heads'),
    encoder_ffn_dim: count(5120, 'Width inside the network'),
    d_model: count(1280, 'Width of the encoder'),
    max_source_positions: positiveInteger.default(1500).describe('Positions'),
  },
  harmless: harmless('changes values only, or is used in training', [
    'encoder_layerdrop',
    'activation_function',
    'activation_dropout',
    'scale_embedding',
    'init_std',
  ]),
  build: (prefix, settings) => {
    const sizes = settings as unknown as SoundSizes;
    return { layers: soundEncoder(prefix, sizes), width: sizes.d_model };
  },
};

/** Towers by the `model_type` of their section. */
export const TOWERS = {
  clip_vision_model: likeClip('clip'),
  siglip_vision_model: likeClip('siglip'),
  siglip2_vision_model: likeClip('siglip2'),
  pixtral,
  idefics3_vision: idefics3,
  internvl_vision: internVl,
  qwen2_vl_vision: qwen2Vl,
  qwen2_5_vl_vision: qwen25Vl,
  qwen3_vl_vision: qwen3Vl(true),
  qwen3_5_vision: qwen3Vl(false),
  glm4v_vision: glm4vVision,
  glm4v_moe_vision: glm4vVision,
  llama4_vision_model: llama4Vision,
  mllama_vision_model: mllamaVision,
  kimi_k25_vision: kimiVision,
  gemma4_vision: gemma4Vision,
  gemma4_audio: gemma4Audio,
  qwen2_audio_encoder: qwen2Audio,
  audioflamingo3_encoder: audioFlamingoEncoder,
  voxtral_encoder: voxtralEncoder,
} as const satisfies Record<string, Tower>;

export type TowerKind = keyof typeof TOWERS;
