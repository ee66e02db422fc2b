/** Products between a tower and a language model, in the classes of transformers 5.18. */
import { layerNormLayer, linear, rmsNormLayer } from '../constructors/basic-layers.js';
import type { Layer } from '../layer.js';
import type { JsonObject } from '../transformer/config-keys.js';
import { heldValues } from '../transformer/described/vision.js';

/** Layers of a projector, from the whole config and the widths of the language model and the tower. */
export type Projector = (at: {
  readonly whole: JsonObject;
  readonly hidden: number;
  readonly width: number;
}) => readonly Layer[];

const NAME = 'model.multi_modal_projector';

/** Layers of the tower that the projector reads side by side. */
const featureLayers = ({ vision_feature_layer: layers }: JsonObject): number =>
  Array.isArray(layers) ? layers.length : 1;

const integer = (value: unknown, byDefault: number): number =>
  Number.isSafeInteger(value) && Number(value) > 0 ? Number(value) : byDefault;

/** Two products with an activation between them. */
const twoProducts = (
  { whole, hidden }: Parameters<Projector>[0],
  from: number,
  biasByDefault: boolean,
): Layer[] => {
  const bias =
    typeof whole.multimodal_projector_bias === 'boolean'
      ? whole.multimodal_projector_bias
      : biasByDefault;
  return [
    linear(`${NAME}.linear_1`, from, hidden, { bias }),
    linear(`${NAME}.linear_2`, hidden, hidden, { bias }),
  ];
};

const llava: Projector = (at) => twoProducts(at, at.width * featureLayers(at.whole), true);

export const PROJECTORS = {
  llava,
  llavaNext: (at) => [
    heldValues('model.newline', [['model.image_newline', [at.hidden]]], at.hidden),
    ...llava(at),
  ],
  gemma3: ({ hidden, width }) => [
    heldValues(NAME, [[`${NAME}.mm_input_projection_weight`, [width, hidden]]], hidden),
    rmsNormLayer(`${NAME}.mm_soft_emb_norm`, width, 1e-6),
  ],
  paligemma: ({ whole, width }) => [
    linear(`${NAME}.linear`, width, integer(whole.projection_dim, 2048)),
  ],
  mistral3: (at) => {
    const merged = integer(at.whole.spatial_merge_size, 2) ** 2;
    return [
      rmsNormLayer(`${NAME}.norm`, at.width, 1e-5),
      linear(`${NAME}.patch_merger.merging_layer`, at.width * merged, at.width, { bias: false }),
      ...twoProducts(at, at.width * featureLayers(at.whole), false),
    ];
  },
  idefics3: ({ whole, hidden, width }) => [
    linear(
      'model.connector.modality_projection.proj',
      width * integer(whole.scale_factor, 2) ** 2,
      hidden,
      { bias: false },
    ),
  ],
  internvl: ({ whole, hidden, width }) => {
    const ratio = typeof whole.downsample_ratio === 'number' ? whole.downsample_ratio : 0.5;
    const from = width * Math.trunc(1 / ratio) ** 2;
    return [
      layerNormLayer(`${NAME}.layer_norm`, from, 1e-5),
      linear(`${NAME}.linear_1`, from, hidden),
      linear(`${NAME}.linear_2`, hidden, hidden),
    ];
  },
  qwen2Audio: ({ hidden, width }) => [linear(`${NAME}.linear`, width, hidden)],
} as const satisfies Record<string, Projector>;
