/** Products between a tower and a language model, in the classes of transformers 5.18. */
import { asNumber, isRecord } from '../../../base/values.js';
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

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && asNumber(value) > 0;

/** A size of a config; its default where the config has none. */
export const sizeOrDefault = (value: unknown, byDefault: number): number =>
  isCount(value) ? asNumber(value) : byDefault;

const isSwitch = (value: unknown): boolean => typeof value === 'boolean';
/** One layer of a tower, or a list of them. */
const areLayers = (value: unknown): boolean => {
  const layers = [value].flat();
  return layers.length > 0 && layers.every(Number.isSafeInteger);
};
const isShare = (value: unknown): boolean => typeof value === 'number' && value > 0 && value <= 1;

/** A kind of value, and the keys of a whole config that hold it. */
type KeyKind = readonly [
  kind: string,
  isKind: (value: unknown) => boolean,
  names: readonly string[],
];

const sizes = (...names: readonly string[]): KeyKind => ['a positive whole number', isCount, names];

/** Keys that projectors read. */
const PROJECTOR_KEYS: readonly KeyKind[] = [
  sizes(
    ...['spatial_merge_size', 'downsample_factor', 'scale_factor', 'projection_dim'],
    ...['alignment_intermediate_size', 'projector_hidden_size', 'projection_hidden_size'],
  ),
  [
    'true or false',
    isSwitch,
    ['multimodal_projector_bias', 'projector_bias', 'projector_use_layernorm'],
  ],
  ['a number above 0, at most 1', isShare, ['downsample_ratio']],
  ['numbers of layers', areLayers, ['vision_feature_layer', 'vision_feature_layers']],
];

/** Keys that the embedding of image patches reads. */
export const PATCH_KEYS: readonly KeyKind[] = [sizes('patch_size', 'num_channels', 'hidden_size')];

/** The first key with a value of another kind, for which no class can be built; undefined without one. */
export function wrongKey(whole: JsonObject, kinds = PROJECTOR_KEYS): string | undefined {
  for (const [kind, isKind, names] of kinds) {
    const wrong = names.find((name) => whole[name] != null && !isKind(whole[name]));
    if (wrong !== undefined) return `${wrong}: expected ${kind}`;
  }
  return undefined;
}

/** Two products with an activation between them. */
const twoProducts = (
  { whole, hidden }: Parameters<Projector>[0],
  from: number,
  biasByDefault: boolean,
  name = NAME,
): Layer[] => {
  const bias =
    typeof whole.multimodal_projector_bias === 'boolean'
      ? whole.multimodal_projector_bias
      : biasByDefault;
  return [
    linear(`${name}.linear_1`, from, hidden, { bias }),
    linear(`${name}.linear_2`, hidden, hidden, { bias }),
  ];
};

/** Products with biases around an activation, behind a norm of merged patches where there is one. */
const throughInner = (
  { hidden }: Parameters<Projector>[0],
  sizes: { readonly from: number; readonly inner: number; readonly half?: true },
  { norm, bias = true }: { readonly norm: boolean; readonly bias?: boolean },
): Layer[] => [
  ...(norm
    ? [layerNormLayer(`${NAME}.${sizes.half ? 'layernorm' : 'layer_norm'}`, sizes.from, 1e-6)]
    : []),
  linear(`${NAME}.linear_1`, sizes.from, sizes.inner, { bias }),
  linear(`${NAME}.linear_2`, sizes.half ? Math.floor(sizes.inner / 2) : sizes.inner, hidden, {
    bias,
  }),
];

const merged = ({ whole, width }: Parameters<Projector>[0]): number =>
  width * sizeOrDefault(whole.downsample_factor, 2) ** 2;

/** A norm, patches merged by a product, and two products. */
const patchMerger = (at: Parameters<Projector>[0], from: number, name: string): Layer[] => {
  const patches = sizeOrDefault(at.whole.spatial_merge_size, 2) ** 2;
  return [
    rmsNormLayer(`${name}.norm`, at.width, 1e-5),
    linear(`${name}.patch_merger.merging_layer`, at.width * patches, at.width, { bias: false }),
    ...twoProducts(at, from, false, name),
  ];
};

const llava: Projector = (at) => twoProducts(at, at.width * featureLayers(at.whole), true);

export const PROJECTORS = {
  llava,
  llavaNext: (at) => [
    heldValues('model.newline', [['model.image_newline', [at.hidden]]], at.hidden),
    ...llava(at),
  ],
  vipLlava: ({ whole, hidden, width }) => {
    const { vision_feature_layers: layers } = whole;
    const read = Array.isArray(layers) ? layers.length : layers === undefined ? 5 : 1;
    return [
      layerNormLayer(`${NAME}.projector_layernorm`, read * width, 1e-5),
      linear(`${NAME}.linear_1`, read * width, hidden),
      linear(`${NAME}.linear_2`, hidden, hidden),
    ];
  },
  hyperclova: ({ whole, hidden }) => {
    const tower = isRecord(whole.vision_config) ? whole.vision_config : {};
    return [linear('model.projector', sizeOrDefault(tower.out_hidden_size, 3584), hidden)];
  },
  gemma3: ({ hidden, width }) => [
    heldValues(NAME, [[`${NAME}.mm_input_projection_weight`, [width, hidden]]], hidden),
    rmsNormLayer(`${NAME}.mm_soft_emb_norm`, width, 1e-6),
  ],
  paligemma: ({ whole, width }) => [
    linear(`${NAME}.linear`, width, sizeOrDefault(whole.projection_dim, 2048)),
  ],
  mistral3: (at) => patchMerger(at, at.width * featureLayers(at.whole), NAME),
  lightOn: ({ whole, ...at }) =>
    patchMerger(
      { ...at, whole: { spatial_merge_size: whole.spatial_merge_size ?? null } },
      at.width,
      'model.vision_projection',
    ),
  idefics3: ({ whole, hidden, width }) => [
    linear(
      'model.connector.modality_projection.proj',
      width * sizeOrDefault(whole.scale_factor, 2) ** 2,
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
  ayaVision: (at) =>
    throughInner(
      at,
      {
        from: merged(at),
        inner: sizeOrDefault(at.whole.alignment_intermediate_size, at.hidden),
        half: true,
      },
      { norm: true },
    ),
  cohere2Vision: (at) =>
    throughInner(
      at,
      {
        from: merged(at),
        inner: sizeOrDefault(at.whole.alignment_intermediate_size, 36_864),
        half: true,
      },
      { norm: false },
    ),
  lfm2Vl: (at) =>
    throughInner(
      at,
      { from: merged(at), inner: sizeOrDefault(at.whole.projector_hidden_size, 2560) },
      {
        norm: at.whole.projector_use_layernorm !== false,
        bias: at.whole.projector_bias !== false,
      },
    ),
  kimi: ({ whole }) => [
    layerNormLayer(
      'model.mm_projector.pre_norm',
      sizeOrDefault(whole.projection_hidden_size, 1152),
      1e-5,
    ),
  ],
  audioFlamingo: (at) => {
    const bias = at.whole.projector_bias !== false;
    return twoProducts({ ...at, whole: { multimodal_projector_bias: bias } }, at.width, bias);
  },
  qwen2Audio: ({ hidden, width }) => [linear(`${NAME}.linear`, width, hidden)],
} as const satisfies Record<string, Projector>;
