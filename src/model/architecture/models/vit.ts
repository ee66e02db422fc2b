/**
 * ViT (arXiv 2010.11929) and DINOv2 (arXiv 2304.07193): encoders of images. Described, not run. Source: models/vit and
 * dinov2 of transformers 5.18.
 */
import * as z from 'zod';
import { blockNames, layerNormLayer, linear, stack } from '../constructors/basic-layers.js';
import { harmless } from '../transformer/config-keys.js';
import {
  defineEncoder,
  type EncoderClasses,
  type EncoderSettings,
} from '../transformer/described/define-encoder.js';
import {
  type BlockLeaves,
  encoderBlock,
  onceForInput,
  patchProduct,
} from '../transformer/described/encoder-parts.js';
import {
  bothSides,
  heldValues,
  imageBody,
  patchesOf,
  type Sides,
  sides,
  type TowerSizes,
  towerSizes,
} from '../transformer/described/vision.js';
import { headsDivide } from '../transformer/rules.js';
import { count, positiveInteger, toggle } from '../transformer/settings.js';

interface Config extends TowerSizes, EncoderSettings {
  readonly image_size: Sides;
  readonly patch_size: Sides;
  readonly qkv_bias: boolean;
  readonly pooler_output_size: number | null;
  readonly mlp_ratio: number;
  readonly use_swiglu_ffn: boolean;
  readonly use_mask_token: boolean;
}

const EPS = 1e-6;

const vitLeaves = (
  bias: boolean,
  feedForward: BlockLeaves['feedForward'],
  norms: readonly string[],
): BlockLeaves => ({
  attention: [
    ['attention.q_proj', bias],
    ['attention.k_proj', bias],
    ['attention.v_proj', bias],
    'attention.o_proj',
  ],
  feedForward,
  norms,
});

/** Names of files, which the classes of transformers 5 change when they load them (conversion_mapping.py). */
const OUTPUTS = [
  [/attention\.output\.dense/, 'attention.o_proj'],
  [/intermediate\.dense/, 'mlp.fc1'],
  [/output\.dense/, 'mlp.fc2'],
] as const;
const PROJECTIONS = [
  [/attention\.attention\.query/, 'attention.q_proj'],
  [/attention\.attention\.key/, 'attention.k_proj'],
  [/attention\.attention\.value/, 'attention.v_proj'],
] as const;

/** Patches, and the values that are added to them. */
function patchSteps(prefix: string, config: Config, hasMask: boolean) {
  const { hidden_size: hidden, num_channels, patch_size: patch } = config;
  const at = `${prefix}embeddings`;
  const positions = patchesOf(config.image_size, patch) + 1;
  return {
    positions,
    steps: [
      heldValues(
        at,
        [
          [`${at}.cls_token`, [1, 1, hidden]],
          ...(hasMask ? [[`${at}.mask_token`, [1, hidden]] as const] : []),
          [`${at}.position_embeddings`, [1, positions, hidden]],
        ],
        hidden,
      ),
      patchProduct(
        `${at}.patch_embeddings.projection`,
        [hidden, num_channels, ...bothSides(patch)],
        { bias: true, component: 'embedding' },
      ),
    ],
  };
}

const classifierOf = (
  prefix: string,
  width: (config: Config) => number,
): EncoderClasses<Config>[string] => ({
  prefix,
  of: (config) => ({
    layers: [
      onceForInput(
        'classifier_of_images',
        [linear('classifier', width(config), config.num_labels)],
        config.hidden_size,
      ),
    ],
  }),
});

const sizes = { hidden: 768, inner: 3072, layers: 12, heads: 12 };

export const vit = defineEncoder<Config>('vit', {
  title: 'ViT',
  namesOnLoad: [[/encoder\.layer\./, 'layers.'], ...PROJECTIONS, ...OUTPUTS],
  keys: {
    ...towerSizes(sizes),
    image_size: sides(224, 'Side of an image'),
    patch_size: sides(16, 'Side of a patch'),
    qkv_bias: toggle(true, 'Biases of queries, keys and values'),
    pooler_output_size: positiveInteger
      .nullable()
      .default(null)
      .describe('Width of the pooled output; null: hidden_size'),
  },
  classes: {
    ViTModel: {
      prefix: '',
      of: ({ hidden_size, pooler_output_size }) => ({
        layers: [
          onceForInput(
            'pooled',
            [linear('pooler.dense', hidden_size, pooler_output_size ?? hidden_size)],
            hidden_size,
          ),
        ],
      }),
    },
    ViTForImageClassification: classifierOf('vit.', ({ hidden_size }) => hidden_size),
  },
  rules: headsDivide('num_attention_heads', 'hidden_size'),
  body(prefix, config) {
    const { hidden_size: hidden } = config;
    const leaves = vitLeaves(
      config.qkv_bias,
      ['mlp.fc1', 'mlp.fc2'],
      ['layernorm_before', 'layernorm_after'],
    );
    return imageBody({
      ...patchSteps(prefix, config, false),
      blocks: stack(
        blockNames(`${prefix}layers`, config.num_hidden_layers, 'model.num_hidden_layers'),
        'model.num_hidden_layers',
        (name) =>
          encoderBlock(name, leaves, {
            hidden,
            heads: config.num_attention_heads,
            inner: config.intermediate_size,
          }),
      ),
      after: [layerNormLayer(`${prefix}layernorm`, hidden, EPS)],
      hidden,
    });
  },
  huggingFace: {
    harmless: harmless('of a class that paints masked patches, which is not described', [
      'encoder_stride',
    ]),
  },
});

/** Width inside a gated network: two thirds of the usual one, in steps of 8. */
const gatedWidth = (inner: number): number => Math.trunc((Math.trunc((inner * 2) / 3) + 7) / 8) * 8;

const { intermediate_size: _, ...dinoSizes } = towerSizes(sizes);

export const dinov2 = defineEncoder<Config>('dinov2', {
  title: 'DINOv2',
  namesOnLoad: [...PROJECTIONS, OUTPUTS[0]],
  keys: {
    ...dinoSizes,
    mlp_ratio: count(4, 'Width inside the network, by hidden_size'),
    image_size: sides(224, 'Side of an image'),
    patch_size: sides(14, 'Side of a patch'),
    qkv_bias: toggle(true, 'Biases of queries, keys and values'),
    use_swiglu_ffn: toggle(false, 'Networks with a gate'),
    use_mask_token: z.boolean().default(true).describe('Values of a masked patch'),
  },
  classes: {
    Dinov2Model: { prefix: '', of: () => ({ layers: [] }) },
    Dinov2ForImageClassification: classifierOf('dinov2.', ({ hidden_size }) => 2 * hidden_size),
  },
  rules: headsDivide('num_attention_heads', 'hidden_size'),
  body(prefix, config) {
    const { hidden_size: hidden, use_swiglu_ffn: isGated } = config;
    const inner = hidden * config.mlp_ratio;
    const leaves = vitLeaves(
      config.qkv_bias,
      isGated ? ['mlp.gate_proj', 'mlp.up_proj', 'mlp.down_proj'] : ['mlp.fc1', 'mlp.fc2'],
      ['norm1', 'norm2'],
    );
    return imageBody({
      ...patchSteps(prefix, config, config.use_mask_token),
      blocks: stack(
        blockNames(`${prefix}encoder.layer`, config.num_hidden_layers, 'model.num_hidden_layers'),
        'model.num_hidden_layers',
        (name) =>
          encoderBlock(name, leaves, {
            hidden,
            heads: config.num_attention_heads,
            inner: isGated ? gatedWidth(inner) : inner,
            more: () => [
              heldValues(
                name,
                [
                  [`${name}.layer_scale1.lambda1`, [hidden]],
                  [`${name}.layer_scale2.lambda1`, [hidden]],
                ],
                hidden,
              ),
            ],
          }),
      ),
      after: [layerNormLayer(`${prefix}layernorm`, hidden, EPS)],
      hidden,
    });
  },
  huggingFace: {
    harmless: harmless('changes values, or which of them are returned', [
      'layerscale_value',
      'out_features',
      'out_indices',
      '_out_features',
      '_out_indices',
      'stage_names',
      'apply_layernorm',
      'reshape_hidden_states',
    ]),
  },
});
