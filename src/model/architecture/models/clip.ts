/**
 * CLIP (arXiv 2103.00020), SigLIP (arXiv 2303.15343) and SigLIP 2: their towers of texts and images, and both together.
 * Described, not run. Source: models/clip, siglip and siglip2 of transformers 5.18.
 */
import * as z from 'zod';
import {
  blockNames,
  embedding,
  layerNormLayer,
  linear,
  stack,
} from '../constructors/basic-layers.js';
import { described } from '../constructors/described-layer.js';
import type { Family } from '../family.js';
import type { Layer } from '../layer.js';
import { param } from '../param.js';
import { harmless } from '../transformer/config-keys.js';
import {
  defineEncoder,
  ENCODER_VALUES,
  type EncoderBody,
  type EncoderClasses,
  type EncoderSettings,
} from '../transformer/described/define-encoder.js';
import {
  type BlockLeaves,
  encoderBlock,
  onceForInput,
  patchProduct,
  rowsAdded,
} from '../transformer/described/encoder-parts.js';
import { partsReading } from '../transformer/described/parts-of-whole.js';
import {
  bodyLayers,
  heldValues,
  imageBody,
  patchesOf,
  pixels,
  type TowerSizes,
  towerSizes,
} from '../transformer/described/vision.js';
import { POSITION_IDS } from '../transformer/ignored-tensors.js';
import { headsDivide } from '../transformer/rules.js';
import { count } from '../transformer/settings.js';
import { tensorsOf } from '../walk.js';

const EPS = 1e-5;

/** Leaves of a block, as in many towers. */
export const CLIP_BLOCK: BlockLeaves = {
  attention: ['self_attn.q_proj', 'self_attn.k_proj', 'self_attn.v_proj', 'self_attn.out_proj'],
  feedForward: ['mlp.fc1', 'mlp.fc2'],
  norms: ['layer_norm1', 'layer_norm2'],
};

const DEPTH = 'num_hidden_layers';

const clipBlocks = (prefix: string, config: TowerSizes, key: string) =>
  stack(
    blockNames(`${prefix}encoder.layers`, config.num_hidden_layers, `model.${key}`),
    `model.${key}`,
    (name) =>
      encoderBlock(name, CLIP_BLOCK, {
        hidden: config.hidden_size,
        heads: config.num_attention_heads,
        inner: config.intermediate_size,
      }),
  );

// ── Towers of texts ──────────────────────────────────────────────────────────────────────────────

interface TextConfig extends TowerSizes {
  readonly vocab_size: number;
  readonly max_position_embeddings: number;
  readonly projection_dim?: number;
  readonly projection_size?: number | null;
}

const textKeys = (isClip: boolean): z.ZodRawShape => {
  const { num_channels: _, ...sizes } = isClip
    ? towerSizes({ hidden: 512, inner: 2048, layers: 12, heads: 8 })
    : towerSizes({ hidden: 768, inner: 3072, layers: 12, heads: 12 });
  return {
    ...sizes,
    vocab_size: count(isClip ? 49_408 : 32_000, 'Rows of the embedding'),
    max_position_embeddings: count(isClip ? 77 : 64, 'Longest input, in tokens'),
    ...(isClip
      ? { projection_dim: count(512, 'Width of the space of texts and images') }
      : {
          projection_size: z
            .int()
            .min(1)
            .nullable()
            .default(null)
            .describe('Width of the space of texts and images; null: hidden_size'),
        }),
  };
};

function textBody(prefix: string, config: TextConfig, isClip: boolean, depth = DEPTH): EncoderBody {
  const { hidden_size: hidden, max_position_embeddings: positions } = config;
  return {
    embedding: embedding(`${prefix}embeddings.token_embedding`, config.vocab_size, hidden),
    steps: [rowsAdded(`${prefix}embeddings.position_embedding`, positions, hidden, 'positions')],
    blocks: clipBlocks(prefix, config, depth),
    after: [
      layerNormLayer(`${prefix}final_layer_norm`, hidden, EPS),
      ...(isClip
        ? []
        : [
            onceForInput(
              `${prefix}pooled`,
              [linear(`${prefix}head`, hidden, config.projection_size ?? hidden)],
              hidden,
            ),
          ]),
    ],
    hidden,
    positions,
  };
}

// ── Towers of images ─────────────────────────────────────────────────────────────────────────────

type Flavour = 'clip' | 'siglip' | 'siglip2';

interface VisionConfig extends TowerSizes {
  readonly image_size: number;
  readonly patch_size: number;
  readonly num_patches: number;
  readonly projection_dim: number;
  readonly vision_use_head: boolean;
}

/** Settings of a vision tower. */
export const visionKeys = (flavour: Flavour): z.ZodRawShape => ({
  ...towerSizes({ hidden: 768, inner: 3072, layers: 12, heads: 12 }),
  patch_size: pixels(flavour === 'clip' ? 32 : 16, 'Side of a patch'),
  ...(flavour === 'siglip2'
    ? { num_patches: count(256, 'Rows of the table of positions, which is resized to an image') }
    : { image_size: pixels(224, 'Side of an image') }),
  ...(flavour === 'clip'
    ? { projection_dim: count(512, 'Width of the space of texts and images') }
    : { vision_use_head: z.boolean().default(true).describe('Attention that pools the patches') }),
});

/** The body of a vision tower. */
export function visionBody(
  prefix: string,
  config: VisionConfig,
  flavour: Flavour,
  depth = DEPTH,
): EncoderBody {
  const { hidden_size: hidden, patch_size: patch, num_channels: channels } = config;
  const patches = flavour === 'siglip2' ? config.num_patches : patchesOf(config.image_size, patch);
  const isClip = flavour === 'clip';
  const positions = patches + (isClip ? 1 : 0);
  const at = `${prefix}embeddings`;
  const shape =
    flavour === 'siglip2' ? [hidden, channels * patch ** 2] : [hidden, channels, patch, patch];
  return imageBody({
    steps: [
      ...(isClip ? [heldValues(at, [[`${at}.class_embedding`, [hidden]]], hidden)] : []),
      patchProduct(`${at}.patch_embedding`, shape, { bias: !isClip, component: 'embedding' }),
      rowsAdded(`${at}.position_embedding`, positions, hidden, 'positions'),
      ...(isClip ? [layerNormLayer(`${prefix}pre_layrnorm`, hidden, EPS)] : []),
    ],
    blocks: clipBlocks(prefix, config, depth),
    after: [
      layerNormLayer(`${prefix}post_layernorm`, hidden, EPS),
      ...(isClip || !config.vision_use_head ? [] : [attentionPool(`${prefix}head`, config)]),
    ],
    hidden,
    positions,
  });
}

/** A query that reads all patches, and a network behind it. */
function attentionPool(
  name: string,
  { hidden_size: hidden, intermediate_size }: VisionConfig,
): Layer {
  return described(name, {
    title: 'attention that pools the patches',
    component: 'head',
    held: [
      param(`${name}.probe`, [1, 1, hidden]),
      param(`${name}.attention.in_proj_weight`, [3 * hidden, hidden]),
      param(`${name}.attention.in_proj_bias`, [3 * hidden]),
      ...[
        linear(`${name}.attention.out_proj`, hidden, hidden),
        layerNormLayer(`${name}.layernorm`, hidden, EPS),
        linear(`${name}.mlp.fc1`, hidden, intermediate_size),
        linear(`${name}.mlp.fc2`, intermediate_size, hidden),
      ].flatMap(tensorsOf),
    ],
    output: hidden,
  });
}

// ── Families ─────────────────────────────────────────────────────────────────────────────────────

const UNREAD = {
  ...ENCODER_VALUES,
  ...harmless('changes values only, which are described and not computed', [
    'logit_scale_init_value',
  ]),
};

const project = (name: string, from: number, to: number): Layer =>
  onceForInput('projection', [linear(name, from, to, { bias: false })], from, 'projector');

const HEADS = headsDivide('num_attention_heads', 'hidden_size');

export const clipTextModel = defineEncoder<TextConfig & EncoderSettings>('clip_text_model', {
  title: 'The text tower of CLIP',
  keys: textKeys(true),
  classes: {
    CLIPTextModel: { prefix: '', of: () => ({ layers: [] }) },
    CLIPTextModelWithProjection: {
      prefix: 'text_model.',
      of: ({ hidden_size, projection_dim = 512 }) => ({
        layers: [project('text_projection', hidden_size, projection_dim)],
      }),
    },
  },
  rules: HEADS,
  body: (prefix, config) => textBody(prefix, config, true),
  huggingFace: { harmless: UNREAD },
  ignored: POSITION_IDS,
});

export const siglipTextModel = defineEncoder<TextConfig & EncoderSettings>('siglip_text_model', {
  title: 'The text tower of SigLIP',
  keys: textKeys(false),
  classes: { SiglipTextModel: { prefix: '', of: () => ({ layers: [] }) } },
  basePrefix: 'text_model.',
  rules: HEADS,
  body: (prefix, config) => textBody(prefix, config, false),
  huggingFace: { harmless: UNREAD },
  ignored: POSITION_IDS,
});

const visionTower = (
  name: string,
  title: string,
  flavour: Flavour,
  classes: EncoderClasses<VisionConfig & EncoderSettings>,
): Family =>
  defineEncoder<VisionConfig & EncoderSettings>(name, {
    title,
    keys: visionKeys(flavour),
    classes,
    basePrefix: 'vision_model.',
    rules: HEADS,
    ignored: POSITION_IDS,
    body: (prefix, config) => visionBody(prefix, config, flavour),
    huggingFace: {
      harmless: {
        ...UNREAD,
        ...harmless('of the text tower, or of the space that the tower does not read', [
          ...(flavour === 'clip' ? [] : ['projection_dim']),
          'vocab_size',
        ]),
      },
    },
  });

export const clipVisionModel = visionTower(
  'clip_vision_model',
  'The vision tower of CLIP',
  'clip',
  {
    CLIPVisionModel: { prefix: '', of: () => ({ layers: [] }) },
    CLIPVisionModelWithProjection: {
      prefix: 'vision_model.',
      of: ({ hidden_size, projection_dim }) => ({
        layers: [project('visual_projection', hidden_size, projection_dim)],
      }),
    },
  },
);

export const siglipVisionModel = visionTower(
  'siglip_vision_model',
  'The vision tower of SigLIP',
  'siglip',
  { SiglipVisionModel: { prefix: '', of: () => ({ layers: [] }) } },
);

export const siglip2VisionModel = visionTower(
  'siglip2_vision_model',
  'The vision tower of SigLIP 2',
  'siglip2',
  { Siglip2VisionModel: { prefix: '', of: () => ({ layers: [] }) } },
);

/** Settings of both towers. */
interface BothConfig extends EncoderSettings {
  readonly text: TextConfig;
  readonly vision: VisionConfig;
  readonly projection_dim: number;
}

function bothTowers(name: string, kind: string, title: string, flavour: Flavour): Family {
  const isClip = flavour === 'clip';
  const parts = partsReading({
    text: { keys: ['text_config', 'text_config_dict'], shape: textKeys(isClip), harmless: UNREAD },
    vision: {
      keys: ['vision_config', 'vision_config_dict'],
      shape: visionKeys(flavour),
      harmless: UNREAD,
    },
  });
  return defineEncoder<BothConfig>(name, {
    title,
    keys: {
      ...parts.shape,
      ...(isClip && { projection_dim: count(512, 'Width of the space of texts and images') }),
    },
    classes: {
      [`${kind}Model`]: {
        prefix: '',
        of: ({ text, vision, projection_dim }) => ({
          layers: [
            scales(isClip),
            ...(isClip
              ? [
                  onceForInput(
                    'projections',
                    [
                      linear('visual_projection', vision.hidden_size, projection_dim, {
                        bias: false,
                      }),
                      linear('text_projection', text.hidden_size, projection_dim, { bias: false }),
                    ],
                    text.hidden_size,
                    'projector',
                  ),
                ]
              : []),
          ],
        }),
      },
      [`${kind}ForImageClassification`]: {
        prefix: 'vision_model.',
        of: ({ vision: { hidden_size: hidden }, num_labels }) => ({
          layers: [
            onceForInput(
              'classifier_of_images',
              [linear('classifier', hidden, num_labels)],
              hidden,
            ),
          ],
        }),
      },
    },
    ignored: POSITION_IDS,
    body(prefix, { text, vision }) {
      const inVision = `vision.${DEPTH}`;
      if (prefix !== '') return visionBody(prefix, vision, flavour, inVision);
      const images = visionBody('vision_model.', vision, flavour, inVision);
      const texts = textBody('text_model.', text, isClip, `text.${DEPTH}`);
      return {
        ...texts,
        steps: [
          onceForInput('vision_tower', bodyLayers(images), texts.hidden, 'visionTower'),
          ...texts.steps,
        ],
      };
    },
    huggingFace: {
      ...parts.special,
      harmless: {
        ...UNREAD,
        ...harmless('used in training only', ['initializer_factor']),
        ...harmless('follows from the parts', ['projection_size']),
      },
    },
  });
}

/** Factor and bias of the products of texts and images. */
const scales = (isClip: boolean): Layer =>
  described('logits', {
    title: 'scale of the products of texts and images',
    component: 'head',
    held: isClip
      ? [param('logit_scale', [])]
      : [param('logit_scale', [1]), param('logit_bias', [1])],
    output: 1,
  });

export const clip = bothTowers('clip', 'CLIP', 'CLIP, both towers', 'clip');
export const siglip = bothTowers('siglip', 'Siglip', 'SigLIP, both towers', 'siglip');
export const siglip2 = bothTowers('siglip2', 'Siglip2', 'SigLIP 2, both towers', 'siglip2');
