/** Parts of Gemma 3n and 4: inputs for each layer, and layers that read keys and values of others. */
import * as z from 'zod';
import { attention } from '../constructors/attention-layers.js';
import { embedding, linear, plainRmsNorm, rmsNormLayer } from '../constructors/basic-layers.js';
import { defineRules } from '../family.js';
import type {
  AltUpBlock,
  Attention,
  Embedding,
  Layer,
  Linear,
  PerLayerBranch,
  PerLayerInputs,
} from '../layer.js';
import { MAX_LAYERS, param } from '../param.js';
import { rotaryByKind } from './decoder-parts.js';
import type { RopeScaling } from './rotary.js';
import { count, windowAt } from './settings.js';

/** Keys of the inputs for each layer. @param least 0 where a model can be without them. */
export const perLayerSettings = (least: 0 | 1) => ({
  vocab_size_per_layer_input: count(262_144, 'Rows of the table of per-layer inputs'),
  hidden_size_per_layer_input: z
    .int()
    .min(least)
    .default(256)
    .describe(`Values of a token for each layer${least === 0 ? '; 0: none' : ''}`),
});

interface PerLayerSource {
  readonly hidden_size: number;
  readonly num_hidden_layers: number;
  readonly rms_norm_eps: number;
  readonly vocab_size_per_layer_input: number;
  readonly hidden_size_per_layer_input: number;
  readonly stored_prefix: string;
}

/** Inputs for each layer, or nothing. */
export function perLayerOf(config: PerLayerSource, tokens: Embedding): readonly PerLayerInputs[] {
  const { hidden_size: hidden, num_hidden_layers: layers, stored_prefix: prefix } = config;
  const width = config.hidden_size_per_layer_input;
  if (width === 0) return [];
  const table = `${prefix}embed_tokens_per_layer`;
  return [
    perLayerInputs(`${prefix}per_layer_inputs`, {
      embedding: tokens,
      table: {
        ...embedding(table, config.vocab_size_per_layer_input, layers * width),
        component: 'perLayerInputs',
      },
      projection: linear(`${prefix}per_layer_model_projection`, hidden, layers * width, {
        bias: false,
      }),
      norm: rmsNormLayer(`${prefix}per_layer_projection_norm`, width, config.rms_norm_eps),
      layers,
      width,
      embeddingScale: Math.sqrt(hidden),
      tableScale: Math.sqrt(width),
      projectionScale: 1 / Math.sqrt(hidden),
      scale: Math.SQRT1_2,
    }),
  ];
}

/** The inputs among the layers that blocks share. */
export const perLayerIn = (shared: readonly Layer[]): PerLayerInputs | undefined =>
  shared.find((layer) => layer.kind === 'perLayerInputs');

/** Key of layers that read the keys and values of others. */
export const sharedKeySettings = (count: number) => ({
  num_kv_shared_layers: z
    .int()
    .min(0)
    .default(count)
    .describe(
      'Number of last layers that read the keys and values of an earlier layer: the last of their kind that has its own',
    ),
});

interface SharingSource {
  readonly num_hidden_layers: number;
  readonly num_kv_shared_layers: number;
}

/** Whether a layer has a window: a layer reads keys and values of the last one of its kind. */
type Slides<Config> = (config: Config, index: number) => boolean;

/** Number of layers with keys and values of their own. */
export const ownKeyLayers = (config: SharingSource): number =>
  config.num_hidden_layers - config.num_kv_shared_layers;

/** Regular expressions for keys and values of the layers that read those of others, which old files have too. */
export const ignoredKeys = (config: SharingSource): readonly string[] =>
  Array.from({ length: config.num_hidden_layers }, (_, layer) => `layers.${layer}.self_attn.`)
    .slice(ownKeyLayers(config))
    .flatMap((path) => ['k_proj', 'v_proj', 'k_norm', 'v_norm'].map((leaf) => `${path}${leaf}`));

/** Last layer of a kind before those that share; −1 without one. */
function sourceOf<Config extends SharingSource>(
  config: Config,
  slides: Slides<Config>,
  kind: boolean,
): number {
  for (let index = ownKeyLayers(config) - 1; index >= 0; index--) {
    if (slides(config, index) === kind) return index;
  }
  return -1;
}

function sharingOf<Config extends SharingSource & { readonly stored_prefix: string }>(
  config: Config,
  index: number,
  slides: Slides<Config>,
): Attention['sharing'] {
  const first = ownKeyLayers(config);
  const kind = slides(config, index);
  const source = sourceOf(config, slides, kind);
  if (index >= first) return { from: `${config.stored_prefix}layers.${source}.self_attn` };
  const isRead = Array.from(
    { length: config.num_kv_shared_layers },
    (_, each) => first + each,
  ).some((each) => slides(config, each) === kind);
  return isRead && index === source ? 'lends' : undefined;
}

interface SharedKeySource extends SharingSource {
  readonly hidden_size: number;
  readonly rms_norm_eps: number;
  readonly attention_bias: boolean;
  readonly max_position_embeddings: number;
  readonly sliding_window: number | null;
  readonly rope_theta: number;
  readonly rope_scaling?: RopeScaling | null | undefined;
  readonly rope_local_base_freq: number;
  readonly rope_local_scaling?: RopeScaling | null | undefined;
  readonly stored_prefix: string;
}

/** Sizes of the heads of one layer. */
interface SharedKeyHeads {
  readonly heads: number;
  readonly keyValueHeads: number;
  readonly headDim: number;
  readonly valuesAreKeys?: boolean;
}

/** Attention with norms on queries, keys and values. A layer that reads the keys of another has none of its own. */
export function sharedKeyAttention<Config extends SharedKeySource>(
  block: string,
  index: number,
  config: Config,
  slides: Slides<Config>,
  { heads, keyValueHeads, headDim, valuesAreKeys = false }: SharedKeyHeads,
): Layer {
  const name = `${block}.self_attn`;
  const { hidden_size: hidden, rms_norm_eps: eps, attention_bias: bias } = config;
  const isSliding = slides(config, index);
  const sharing = sharingOf(config, index, slides);
  const reads = typeof sharing === 'object';
  const product = (leaf: string, count: number) =>
    linear(`${name}.${leaf}`, hidden, count * headDim, { bias });
  const norm = (leaf: string) => rmsNormLayer(`${name}.${leaf}`, headDim, eps);
  return attention(name, {
    inputs: [
      product('q_proj', heads),
      ...(reads ? [] : [product('k_proj', keyValueHeads)]),
      ...(reads || valuesAreKeys ? [] : [product('v_proj', keyValueHeads)]),
    ],
    out: linear(`${name}.o_proj`, heads * headDim, hidden, { bias }),
    queryNorm: norm('q_norm'),
    ...(!reads && {
      keyNorm: norm('k_norm'),
      valueNorm: plainRmsNorm(`${name}.v_norm`, headDim, eps),
      valuesAreKeys,
    }),
    sharing,
    rotary: rotaryByKind(block, config, headDim, isSliding),
    heads,
    keyValueHeads,
    headDim,
    scale: 1,
    window: windowAt({ ...config, layer_types: null }, index, isSliding),
  });
}

export const sharingRules = <Config extends SharingSource>(slides: Slides<Config>) =>
  defineRules<{ readonly model: Config }>([
    {
      severity: 'error',
      reads: ['model.num_kv_shared_layers', 'model.num_hidden_layers', 'model.layer_types'],
      check({ model }) {
        const { num_kv_shared_layers: shared, num_hidden_layers: layers } = model;
        // More layers are refused when the model is built.
        if (layers > MAX_LAYERS) return undefined;
        // One layer more than there are is enough to find a missing one.
        const last = Math.min(shared, layers + 1);
        const missing = Array.from({ length: last }, (_, each) => layers - 1 - each).find(
          (index) => index < 0 || sourceOf(model, slides, slides(model, index)) < 0,
        );
        return missing === undefined
          ? undefined
          : {
              message: `the last ${shared} of ${layers} layers read the keys of an earlier layer of their kind, but there is none`,
              suggestion: 'write a smaller num_kv_shared_layers',
            };
      },
    },
  ]);

// Constructors of the layers of Gemma 3n: inputs of each layer, and the streams of AltUp

function perLayerInputs(
  name: string,
  parts: Omit<PerLayerInputs, 'kind' | 'name' | 'component'>,
): PerLayerInputs {
  return { kind: 'perLayerInputs', name, component: 'perLayerInputs', ...parts };
}

interface PerLayerParts extends Pick<PerLayerBranch, 'activation' | 'inputs' | 'index'> {
  readonly hidden: number;
}

/** `per_layer_input_gate` and `per_layer_projection`. */
export function perLayerBranch(
  name: string,
  block: string,
  { hidden, inputs, ...rest }: PerLayerParts,
): PerLayerBranch {
  return {
    kind: 'perLayerBranch',
    name,
    component: 'perLayerInputs',
    gate: linear(`${block}.per_layer_input_gate`, hidden, inputs.width, { bias: false }),
    projection: linear(`${block}.per_layer_projection`, inputs.width, hidden, { bias: false }),
    inputs,
    ...rest,
  };
}

/** The ends of AltUp: from one value to its streams, and back. */
export function altUpEnd<Kind extends 'altUpSplit' | 'altUpMerge'>(
  kind: Kind,
  name: string,
  hidden: number,
  streams: number,
): { kind: Kind; name: string; component: 'altUp'; projections: Linear[] } {
  const projections = Array.from({ length: streams - 1 }, (_, index) =>
    linear(`${name}.${index}`, hidden, hidden, { bias: false }),
  );
  return { kind, name, component: 'altUp', projections };
}

interface AltUpParts extends Pick<AltUpBlock, 'active' | 'isScaled' | 'inner' | 'perLayer'> {
  readonly hidden: number;
  readonly streams: number;
  readonly eps: number;
}

/** The tensors of a block's `altup`. */
export function altUpBlock(name: string, parts: AltUpParts): AltUpBlock {
  const { hidden, streams, eps, active, isScaled, inner, perLayer } = parts;
  const own = `${name}.altup`;
  const product = (leaf: string, from: number, to: number) =>
    linear(`${own}.${leaf}`, from, to, { bias: false, component: 'altUp' });
  return {
    kind: 'altUpBlock',
    name,
    outputScale: param(`${own}.correct_output_scale`, [hidden]),
    correction: product('correction_coefs', streams, streams),
    prediction: product('prediction_coefs', streams, streams ** 2),
    router: product('modality_router', hidden, streams),
    routerNorm: rmsNormLayer(`${own}.router_norm`, hidden, eps),
    isScaled,
    active,
    inner,
    perLayer,
  };
}
