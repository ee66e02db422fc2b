/** Building blocks of lowering: products, norms and elementwise work, with their cuts and collectives. */
import type {
  CausalConv,
  ClosingProjection,
  Component,
  GatedRmsNorm,
  HeadNorms,
  Layer,
  Linear,
  NormLayer,
  ProjectionLayer,
  Projections,
  RmsNorm,
} from '../architecture/layer.js';
import type { Param } from '../architecture/param.js';
import {
  inputWidth,
  normWidth,
  outputWidth,
  projectionLayers,
  sharedInputWidth,
  tensorsOf,
} from '../architecture/walk.js';
import type {
  Convolution,
  Cut,
  Elementwise,
  Lookup,
  Matmul,
  Norm,
  Primitive,
  Saved,
  Share,
  UnitRun,
  Vectors,
} from './primitive.js';
import { allReduce, runOf, vectors } from './primitive.js';

/** Context of a layer. */
export interface LoweringContext {
  /** Input values of the layer per token. */
  readonly width: number;
  /** Part of them on each GPU. */
  readonly share: Share;
  /** Default purpose of layers without their own. */
  readonly component: Component;
}

/** Lowers an inner layer. */
export type LowerLayer = (layer: Layer, around: LoweringContext) => Primitive[];

/** The rows of a vocabulary as units that GPUs share. */
export const vocabularyRun = (rows: number) => runOf('rows of the vocabulary', rows);

/** Tensors cut along their rows. */
export const byRows = (
  tensors: readonly Param[],
  of: string,
  ...runs: readonly UnitRun[]
): Primitive['cuts'] => tensors.map((tensor) => [tensor, { along: 'rows', runs, of }]);

/** A tensor cut along its length; its bias is whole, and added to the sum. */
export const byLength = (
  tensor: Param,
  of: string,
  run: UnitRun,
): readonly (readonly [Param, Cut])[] => [[tensor, { along: 'length', runs: [run], of }]];

export const paramsOf = ({
  weight,
  bias,
}: Pick<ProjectionLayer, 'weight' | 'bias'>): readonly Param[] =>
  bias ? [weight, bias] : [weight];

/** A primitive without tensors, saved values and cuts. */
export const ONE_KERNEL = { params: [], saved: [], cuts: [], launches: 1 } as const;

/** A product that saves nothing itself and is whole on every GPU, unless `more` changes that. */
export function matmul(
  product: ProjectionLayer,
  component: Component,
  more: Partial<Matmul> = {},
): Matmul {
  return {
    kind: 'matmul',
    layer: product.name,
    component: product.component ?? component,
    input: inputWidth(product),
    output: outputWidth(product),
    ...ONE_KERNEL,
    params: paramsOf(product),
    tensor: product.weight,
    weights: product.weight.elements,
    rows: 'tokens',
    ...more,
  };
}

/** A single product, cut by its outputs, which are gathered. */
export const gatheredMatmul = (
  product: ProjectionLayer,
  component: Component,
  more: Partial<Matmul> = {},
): Matmul =>
  matmul(product, component, {
    cuts: byRows(paramsOf(product), product.name, runOf('outputs', outputWidth(product))),
    forward: { kind: 'allGather', width: outputWidth(product) },
    backward: allReduce(inputWidth(product)),
    ...more,
  });

/** Products of one input, cut by their outputs: one run per value. The gradient of the input is summed. */
export function openingMatmuls(
  inputs: Projections,
  component: Component,
  { of, runs, saved }: { of: string; runs: readonly UnitRun[]; saved: readonly Saved[] },
): Primitive[] {
  let next = 0;
  return projectionLayers(inputs).flatMap((each, index) => {
    const [projection, values] =
      each.kind === 'fusedProjection' ? [each.projection, each.widths.length] : [each, 1];
    const own = runs.slice(next, next + values);
    next += values;
    const [product, adapter] = projection.kind === 'sum' ? projection.branches : [projection];
    const unread = projection.kind === 'sum' ? projection.unread : [];
    const opening = matmul(product, component, {
      cuts: byRows(paramsOf(product), of, ...own),
      ...(index === 0 && { saved, backward: allReduce(sharedInputWidth(inputs)) }),
    });
    return adapter
      ? [opening, ...adapterMatmuls(adapter.layers, component, { of, runs: own, unread })]
      : [opening];
  });
}

/** The low rank is whole on every GPU, so the gradient of the second product is summed. */
function adapterMatmuls(
  [down, up]: readonly [Linear, Linear],
  component: Component,
  {
    of,
    runs,
    unread = [],
  }: { of: string; runs: readonly UnitRun[]; unread: readonly Layer[] | undefined },
): Primitive[] {
  const rank = inputWidth(up);
  const saved: Saved = {
    part: component,
    vectors: [vectors(1, 'adapter_rank', rank)],
    source: 'the input of the second product of an adapter',
  };
  return [
    matmul(down, component),
    matmul(up, component, {
      cuts: byRows(paramsOf(up), of, ...runs),
      backward: allReduce(rank),
      saved: [saved],
    }),
    elementwise(up, component, outputWidth(up), { params: unread.flatMap(tensorsOf) }),
  ];
}

/** A product cut by its inputs; its outputs are summed. */
export const closingMatmul = (
  product: ProjectionLayer,
  component: Component,
  of: string,
  run: UnitRun,
  more: Partial<Matmul> = {},
): Matmul =>
  matmul(product, component, {
    cuts: byLength(product.weight, of, run),
    forward: allReduce(outputWidth(product)),
    ...more,
  });

/** The last product of a branch, with the norm before it. @param width Name of its inputs. */
export function closing(
  layer: ClosingProjection,
  component: Component,
  of: string,
  run: UnitRun,
  width: string,
): Primitive[] {
  if (layer.kind !== 'sequence') return [closingMatmul(layer, component, of, run)];
  const [before, product] = layer.layers;
  const input = vectors(1, width, before.size, 'width');
  return [
    norm(before, component, before.size, {
      saved: [
        { part: component, vectors: [input], source: `the input of ${before.name}` },
        unfusedNorm(before, input),
      ],
      cuts: byRows(tensorsOf(before), of, run),
    }),
    closingMatmul(product, component, of, run),
  ];
}

export const elementwise = (
  { name }: Pick<Layer, 'name'>,
  component: Component,
  width: number,
  more: Partial<Elementwise> = {},
): Elementwise => ({
  kind: 'elementwise',
  layer: name,
  component,
  input: width,
  output: width,
  ...ONE_KERNEL,
  ...more,
});

export const norm = (
  layer: NormLayer | HeadNorms | GatedRmsNorm,
  component: Component,
  width: number,
  more: Partial<Norm> = {},
): Norm => ({
  kind: 'norm',
  layer: layer.name,
  component: layer.component ?? component,
  input: width,
  output: width,
  ...ONE_KERNEL,
  params: tensorsOf(layer),
  size: layer.kind === 'gatedRmsNorm' ? layer.width / layer.groups : normWidth(layer),
  ...more,
});

/** @param cut The layer that its groups belong to, and their run; without it, the norm is whole on every GPU. */
export function gatedNorm(
  layer: GatedRmsNorm,
  component: Component,
  cut?: { readonly of: string; readonly run: UnitRun },
): Norm {
  const { weight, width } = layer;
  const values = (count: number) => vectors(count, 'inner', width, cut ? 'width' : 'tokens');
  const source = 'its input, the gate before and after its activation, and what they multiply';
  return norm(layer, component, width, {
    saved: [
      { part: layer.component ?? component, vectors: [values(1), values(3)], source },
      unfusedNorm({ offset: 0 }, values(1)),
    ],
    cuts: cut && weight.elements === width ? byRows([weight], cut.of, cut.run) : [],
  });
}

export const lookup = (
  layer: Layer,
  component: Component,
  width: number,
  table: Param,
  { by, rows }: Pick<Lookup, 'by' | 'rows'>,
  more: Partial<Lookup> = {},
): Lookup => ({
  kind: 'lookup',
  layer: layer.name,
  component: layer.component ?? component,
  input: 0,
  output: width,
  ...ONE_KERNEL,
  params: [table],
  by,
  rows,
  ...more,
});

export function convolution(
  layer: CausalConv,
  component: Component,
  width: number,
  of = layer.name,
): Convolution {
  const [channels = 0, , kernel = 0] = layer.weight.shape;
  const params = paramsOf(layer);
  return {
    kind: 'convolution',
    layer: layer.name,
    component: layer.component ?? component,
    input: width,
    output: width,
    ...ONE_KERNEL,
    params,
    cuts: byRows(params, of, runOf('channels', channels)),
    channels,
    kernel,
    cached: layer.cached,
  };
}

/** Statistics of a LayerNorm that PyTorch keeps in float32. */
export const normStatistics = (share: Share = 'tokens'): Saved => ({
  part: 'unfused',
  vectors: [{ ...vectors(2, 'statistic', 1, share), bytes: '4' }],
  source: 'mean and deviation of LayerNorm',
});

/** RMSNorm as in transformers: computed in float32, then the normalised input times the weight. */
export const unfusedNorm = ({ offset }: Pick<RmsNorm, 'offset'>, input: Vectors): Saved => ({
  part: 'unfused',
  vectors: [
    { ...input, bytes: '4 - bytes' },
    // With an offset, the product is in float32, too.
    offset === 0 ? input : { ...input, bytes: '4' },
    { ...vectors(1, 'statistic', 1, input.share), bytes: '4' },
  ],
  source: 'of RMSNorm its input in float32, the normalised input, and the deviation',
});
