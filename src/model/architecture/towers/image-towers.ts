/** Vision towers of GLM-V, Llama 4, Llama 3.2 Vision, Kimi K2.5 and Gemma 4, in the classes of transformers 5.18. */
import * as z from 'zod';
import { layerNormLayer, linear, rmsNormLayer } from '../constructors/basic-layers.js';
import type { Layer } from '../layer.js';
import { type HarmlessKeys, harmless } from '../transformer/config-keys.js';
import {
  type BlockLeaves,
  biaslessLeaf,
  patchProduct,
  rowsAdded,
} from '../transformer/described/encoder-parts.js';
import {
  bothSides,
  heldValues,
  patchesOf,
  pixels,
  type Sides,
  sides,
  type TowerSizes,
  towerSizes,
} from '../transformer/described/vision.js';
import { count, toggle } from '../transformer/settings.js';
import { blocks, clampLimits, heldBuffers, vision } from './tower.js';

/** Values without a product, such as positions, below the name of a tower. */
const values = (
  prefix: string,
  width: number,
  shapes: Readonly<Record<string, readonly number[]>>,
): Layer =>
  heldValues(
    prefix,
    Object.entries(shapes).map(([name, shape]) => [`${prefix}${name}`, shape] as const),
    width,
  );

// ── GLM-4.1V, 4.5V and 4.6V ──────────────────────────────────────────────────────────────────────

interface GlmConfig {
  readonly depth: number;
  readonly hidden_size: number;
  readonly out_hidden_size: number;
  readonly intermediate_size: number;
  readonly num_heads: number;
  readonly in_channels: number;
  readonly image_size: number;
  readonly patch_size: Sides;
  readonly spatial_merge_size: number;
  readonly temporal_patch_size: number;
  readonly attention_bias: boolean;
}

/** The width of the language model is that inside the networks; `intermediate_size` is that of the merger alone. */
export const glm4vVision = vision<GlmConfig>(
  {
    depth: count(24, 'Number of blocks'),
    hidden_size: count(1536, 'Width of the tower'),
    out_hidden_size: count(4096, 'Width of the language model, and inside the networks'),
    intermediate_size: count(13_696, 'Width inside the network of the merger'),
    num_heads: count(12, 'Heads'),
    in_channels: count(3, 'Channels of an image'),
    image_size: pixels(336, 'Side of an image that the table of positions has'),
    patch_size: sides(14, 'Side of a patch'),
    spatial_merge_size: count(2, 'Patches of a side that one token has'),
    temporal_patch_size: count(2, 'Images of a patch'),
    attention_bias: toggle(false, 'Biases of queries, keys and values'),
  },
  (prefix, config) => {
    const { hidden_size: hidden, out_hidden_size: out, patch_size: patch } = config;
    const { spatial_merge_size: side, image_size: image, intermediate_size: merged } = config;
    const shape = [hidden, config.in_channels, config.temporal_patch_size, ...bothSides(patch)];
    const leaves: BlockLeaves = {
      attention: [['attn.qkv', config.attention_bias], biaslessLeaf('attn.proj')],
      feedForward: [
        biaslessLeaf('mlp.gate_proj'),
        biaslessLeaf('mlp.up_proj'),
        biaslessLeaf('mlp.down_proj'),
      ],
      norms: ['norm1', 'norm2'],
    };
    const at = `${prefix}merger`;
    return {
      layers: [
        rowsAdded(`${prefix}embeddings.position_embedding`, patchesOf(image, patch), hidden),
        patchProduct(`${prefix}patch_embed.proj`, shape, { bias: true }),
        rmsNormLayer(`${prefix}post_conv_layernorm`, hidden, 1e-5),
        ...blocks(config.depth, (index) => `${prefix}blocks.${index}`, leaves, {
          hidden,
          heads: config.num_heads,
          inner: out,
          norm: 'rms',
        }),
        rmsNormLayer(`${prefix}post_layernorm`, hidden, 1e-5),
      ],
      projector: [
        patchProduct(`${prefix}downsample`, [out, hidden, side, side], { bias: true }),
        linear(`${at}.proj`, out, out, { bias: false }),
        layerNormLayer(`${at}.post_projection_norm`, out, 1e-5),
        linear(`${at}.gate_proj`, out, merged, { bias: false }),
        linear(`${at}.up_proj`, out, merged, { bias: false }),
        linear(`${at}.down_proj`, merged, out, { bias: false }),
      ],
      width: hidden,
    };
  },
  harmless('changes values only, which are described and not computed', ['rms_norm_eps']),
);

// ── Llama ────────────────────────────────────────────────────────────────────────────────────────

interface LlamaConfig extends TowerSizes {
  readonly image_size: number;
  readonly patch_size: number;
  readonly vision_output_dim: number;
  readonly projector_input_dim: number;
  readonly projector_output_dim: number;
  readonly num_global_layers: number;
  readonly max_num_tiles: number;
  readonly supported_aspect_ratios: readonly unknown[];
}

const OUTPUT = count(7680, 'Width that the projector reads');

const LLAMA_UNREAD: HarmlessKeys = harmless('changes values only, or what is read', [
  'norm_eps',
  'pixel_shuffle_ratio',
  'projector_dropout',
  'vision_feature_layer',
  'vision_feature_select_strategy',
  'multi_modal_projector_bias',
  'intermediate_layers_indices',
]);

const LLAMA_LEAVES: BlockLeaves = {
  attention: ['self_attn.q_proj', 'self_attn.k_proj', 'self_attn.v_proj', 'self_attn.o_proj'],
  feedForward: ['mlp.fc1', 'mlp.fc2'],
  norms: ['input_layernorm', 'post_attention_layernorm'],
};

export const llama4Vision = vision<LlamaConfig>(
  {
    ...towerSizes({ hidden: 768, inner: 5632, layers: 34, heads: 16 }),
    image_size: pixels(448, 'Side of an image'),
    patch_size: pixels(14, 'Side of a patch'),
    vision_output_dim: OUTPUT,
    projector_input_dim: count(4096, 'Rows of the first product of the adapter'),
    projector_output_dim: count(4096, 'Width of the second product of the adapter'),
  },
  (prefix, config, width) => {
    const { hidden_size: hidden, intermediate_size: inner, patch_size: patch } = config;
    const { projector_input_dim: first, projector_output_dim: second } = config;
    const positions = patchesOf(config.image_size, patch) + 1;
    const adapter = `${prefix}vision_adapter.mlp`;
    return {
      layers: [
        values(prefix, hidden, {
          class_embedding: [hidden],
          positional_embedding_vlm: [positions, hidden],
        }),
        linear(`${prefix}patch_embedding.linear`, config.num_channels * patch ** 2, hidden, {
          bias: false,
        }),
        layerNormLayer(`${prefix}layernorm_pre`, hidden, 1e-5),
        ...blocks(
          config.num_hidden_layers,
          (index) => `${prefix}model.layers.${index}`,
          LLAMA_LEAVES,
          { hidden, heads: config.num_attention_heads, inner },
        ),
        layerNormLayer(`${prefix}layernorm_post`, hidden, 1e-5),
        linear(`${adapter}.fc1`, inner, first, { bias: false }),
        linear(`${adapter}.fc2`, second, second, { bias: false }),
      ],
      projector: [
        linear('multi_modal_projector.linear_1', config.vision_output_dim, width, { bias: false }),
      ],
      width: hidden,
    };
  },
  LLAMA_UNREAD,
);

/** Ratios of the tiles of an image that Llama 3.2 Vision has by default. */
const RATIOS = [
  [1, 1],
  [1, 2],
  [1, 3],
  [1, 4],
  [2, 1],
  [2, 2],
  [3, 1],
  [4, 1],
];

export const mllamaVision = vision<LlamaConfig>(
  {
    ...towerSizes({ hidden: 1280, inner: 5120, layers: 32, heads: 16 }),
    num_global_layers: count(8, 'Blocks behind the others, with gates'),
    image_size: pixels(448, 'Side of a tile'),
    patch_size: pixels(14, 'Side of a patch'),
    vision_output_dim: OUTPUT,
    max_num_tiles: count(4, 'Tiles of an image'),
    supported_aspect_ratios: z
      .array(z.tuple([z.int(), z.int()]))
      .default(RATIOS as [number, number][])
      .describe('Tiles in height and width; tables have a row for each, and one more'),
  },
  (prefix, config, width) => {
    const { hidden_size: hidden, patch_size: patch, max_num_tiles: tiles } = config;
    const positions = patchesOf(config.image_size, patch) + 1;
    const ratios = config.supported_aspect_ratios.length + 1;
    const leaves: BlockLeaves = {
      ...LLAMA_LEAVES,
      attention: [
        biaslessLeaf('self_attn.q_proj'),
        biaslessLeaf('self_attn.k_proj'),
        biaslessLeaf('self_attn.v_proj'),
        biaslessLeaf('self_attn.o_proj'),
      ],
    };
    const sizes = {
      hidden,
      heads: config.num_attention_heads,
      inner: config.intermediate_size,
    };
    const gated = 'gated_positional_embedding';
    return {
      layers: [
        patchProduct(`${prefix}patch_embedding`, [hidden, config.num_channels, patch, patch], {
          bias: false,
        }),
        values(prefix, hidden, {
          class_embedding: [hidden],
          [`${gated}.gate`]: [1],
          [`${gated}.embedding`]: [positions, hidden],
          [`${gated}.tile_embedding.weight`]: [ratios, tiles * positions * hidden],
          'pre_tile_positional_embedding.gate': [1],
          'pre_tile_positional_embedding.embedding.weight': [ratios, tiles * hidden],
          'post_tile_positional_embedding.gate': [1],
          'post_tile_positional_embedding.embedding.weight': [ratios, tiles * hidden],
        }),
        layerNormLayer(`${prefix}layernorm_pre`, hidden, 1e-5),
        ...blocks(
          config.num_hidden_layers,
          (index) => `${prefix}transformer.layers.${index}`,
          leaves,
          sizes,
        ),
        layerNormLayer(`${prefix}layernorm_post`, hidden, 1e-5),
        ...blocks(
          config.num_global_layers,
          (index) => `${prefix}global_transformer.layers.${index}`,
          leaves,
          {
            ...sizes,
            more: (name) => [values(`${name}.`, hidden, { gate_attn: [1], gate_ffn: [1] })],
          },
        ),
      ],
      projector: [linear('model.multi_modal_projector', config.vision_output_dim, width)],
      width: hidden,
    };
  },
  LLAMA_UNREAD,
  { num_attention_heads: ['attention_heads'] },
);

// ── Kimi K2.5 ────────────────────────────────────────────────────────────────────────────────────

interface KimiConfig extends TowerSizes {
  readonly patch_size: number;
  readonly pos_emb_height: number;
  readonly pos_emb_width: number;
  readonly merge_kernel_size: readonly [number, number];
}

const { num_channels: _, ...KIMI_SIZES } = towerSizes({
  hidden: 1152,
  inner: 4304,
  layers: 27,
  heads: 16,
});

/** MoonViT (arXiv 2504.07491). The other names are those of the files that moonshotai published. */
export const kimiVision = vision<KimiConfig>(
  {
    ...KIMI_SIZES,
    patch_size: pixels(14, 'Side of a patch'),
    pos_emb_height: count(64, 'Rows of the table of positions'),
    pos_emb_width: count(64, 'Columns of the table of positions'),
    merge_kernel_size: z
      .tuple([z.int().min(1), z.int().min(1)])
      .default([2, 2])
      .describe('Patches in height and width that one token has'),
  },
  (prefix, config, width) => {
    const { hidden_size: hidden, patch_size: patch, merge_kernel_size: merge } = config;
    const merged = hidden * merge[0] * merge[1];
    const leaves: BlockLeaves = {
      attention: ['attn.q_proj', 'attn.k_proj', 'attn.v_proj', 'attn.proj'],
      feedForward: ['mlp.fc1', 'mlp.fc2'],
      norms: ['norm1', 'norm2'],
    };
    return {
      layers: [
        patchProduct(`${prefix}patch_embed.proj`, [hidden, 3, patch, patch], { bias: true }),
        values(`${prefix}patch_embed.`, hidden, {
          'pos_emb.position_embeddings': [config.pos_emb_height, config.pos_emb_width, hidden],
        }),
        ...blocks(config.num_hidden_layers, (index) => `${prefix}layers.${index}`, leaves, {
          hidden,
          heads: config.num_attention_heads,
          inner: config.intermediate_size,
        }),
        layerNormLayer(`${prefix}final_layernorm`, hidden, 1e-5),
      ],
      projector: [
        linear('model.mm_projector.in_proj', merged, merged),
        linear('model.mm_projector.out_proj', merged, width),
      ],
      width: hidden,
    };
  },
  harmless('changes values only, or what is read', [
    'pos_emb_time',
    'init_pos_emb_time',
    'pos_emb_type',
    'merge_type',
    'video_attn_type',
    'mm_projector_type',
    'projector_ln_eps',
    'text_hidden_size',
  ]),
  {
    hidden_size: ['vt_hidden_size'],
    intermediate_size: ['vt_intermediate_size'],
    num_attention_heads: ['vt_num_attention_heads'],
    num_hidden_layers: ['vt_num_hidden_layers'],
    pos_emb_height: ['init_pos_emb_height'],
    pos_emb_width: ['init_pos_emb_width'],
  },
);

// ── Gemma 4 ──────────────────────────────────────────────────────────────────────────────────────

interface GemmaConfig extends TowerSizes {
  readonly num_key_value_heads: number;
  readonly head_dim: number;
  readonly patch_size: number;
  readonly position_embedding_size: number;
  readonly use_clipped_linears: boolean;
  readonly standardize: boolean;
}

const GEMMA_ATTENTION = ['q_proj', 'k_proj', 'v_proj', 'o_proj'].map((leaf) => `self_attn.${leaf}`);
const GEMMA_NETWORK = ['gate_proj', 'up_proj', 'down_proj'].map((leaf) => `mlp.${leaf}`);

const products = (leaves: readonly string[]) =>
  leaves.map((leaf) => biaslessLeaf(`${leaf}.linear`));

const { num_channels: __, ...GEMMA_SIZES } = towerSizes({
  hidden: 768,
  inner: 3072,
  layers: 16,
  heads: 12,
});

export const gemma4Vision = vision<GemmaConfig>(
  {
    ...GEMMA_SIZES,
    num_key_value_heads: count(12, 'Heads of keys and values'),
    head_dim: count(64, 'Width of a head'),
    patch_size: pixels(16, 'Side of a patch'),
    position_embedding_size: count(10_240, 'Rows of each of two tables of positions'),
    use_clipped_linears: toggle(false, 'Limits of the values of products'),
    standardize: toggle(false, 'Scale and shift of the output'),
  },
  (prefix, config, width) => {
    const { hidden_size: hidden, patch_size: patch, head_dim: headDim } = config;
    const leaves: BlockLeaves = {
      attention: products(GEMMA_ATTENTION) as unknown as BlockLeaves['attention'],
      feedForward: products(GEMMA_NETWORK) as unknown as BlockLeaves['feedForward'],
      norms: [
        'input_layernorm',
        'post_attention_layernorm',
        'pre_feedforward_layernorm',
        'post_feedforward_layernorm',
      ],
    };
    const limited = config.use_clipped_linears ? [...GEMMA_ATTENTION, ...GEMMA_NETWORK] : [];
    return {
      layers: [
        values(`${prefix}patch_embedder.`, hidden, {
          position_embedding_table: [2, config.position_embedding_size, hidden],
        }),
        linear(`${prefix}patch_embedder.input_proj`, 3 * patch ** 2, hidden, { bias: false }),
        ...blocks(config.num_hidden_layers, (index) => `${prefix}encoder.layers.${index}`, leaves, {
          hidden,
          heads: config.num_attention_heads,
          keyValueHeads: config.num_key_value_heads,
          headDim,
          inner: config.intermediate_size,
          norm: 'rms',
          more: (name) => [
            rmsNormLayer(`${name}.self_attn.q_norm`, headDim, 1e-6),
            rmsNormLayer(`${name}.self_attn.k_norm`, headDim, 1e-6),
            clampLimits(name, limited, hidden),
          ],
        }),
        ...(config.standardize
          ? [heldBuffers(prefix, { std_bias: [hidden], std_scale: [hidden] }, hidden)]
          : []),
      ],
      projector: [
        linear('model.embed_vision.embedding_projection', hidden, width, { bias: false }),
      ],
      width: hidden,
    };
  },
  harmless('changes values only, or what is read', [
    'rms_norm_eps',
    'hidden_activation',
    'attention_bias',
    'pooling_kernel_size',
    'default_output_length',
    'max_position_embeddings',
    'layer_types',
  ]),
);
