/** Lowers layers of Gemma 3n: inputs of each layer, and the streams of AltUp. */
import type {
  AltUpBlock,
  AltUpMerge,
  AltUpSplit,
  Component,
  PerLayerBranch,
} from '../architecture/layer.js';
import { inputWidth } from '../architecture/walk.js';
import {
  byRows,
  elementwise,
  gatheredMatmul,
  type LoweringContext,
  type LowerLayer,
  lookup,
  matmul,
  norm,
  vocabularyRun,
} from './lowering-blocks.js';
import { allReduce, type Primitive, type Saved, vectors } from './primitive.js';

/**
 * Lowers the branch of one block, with its equal part of the table and product that all blocks share. As in vLLM, the
 * table is cut by its rows and the product for all blocks by its outputs. The products of the block read or add to
 * whole per-layer inputs: they are whole on every GPU.
 */
export function lowerPerLayerBranch(layer: PerLayerBranch, component: Component): Primitive[] {
  const { gate, projection, inputs } = layer;
  const { width, layers, table, norm: values } = inputs;
  const [rows = 1] = table.weight.shape;
  const made: Saved = {
    part: component,
    vectors: [vectors(1, 'hidden', inputWidth(inputs.projection)), vectors(2, 'per_layer', width)],
    source: 'the embedding; the product before and after its norm',
  };
  const branch: Saved = {
    part: component,
    vectors: [vectors(1, 'hidden', inputWidth(gate)), vectors(4, 'per_layer', width)],
    source: 'the input; the gate before and after its activation, the values, and their product',
  };
  return [
    matmul(gate, component, { saved: [branch] }),
    lookup(
      layer,
      component,
      width,
      table.weight,
      { by: 'ids', rows },
      {
        cuts: byRows([table.weight], table.name, vocabularyRun(rows)),
        forward: allReduce(width),
      },
    ),
    gatheredMatmul(inputs.projection, component, {
      forward: { kind: 'allGather', width },
      output: width,
      weights: inputs.projection.weight.elements / layers,
      saved: [made],
    }),
    norm(values, component, width),
    elementwise(layer, component, width, { launches: 3 }),
    matmul(projection, component),
  ];
}

/** Each product is cut by its outputs, as in vLLM. */
export function lowerAltUpEnd(layer: AltUpSplit | AltUpMerge, component: Component): Primitive[] {
  const { kind, projections } = layer;
  const [first] = projections;
  if (!first) return [];
  const hidden = inputWidth(first);
  const all = (projections.length + 1) * hidden;
  const products: Saved = {
    part: component,
    vectors: [vectors(1, 'hidden', hidden), vectors(2 * projections.length, 'hidden', hidden)],
    source: 'the input; each product before and after its scaling',
  };
  return [
    ...projections.map((each, index) =>
      gatheredMatmul(each, component, { saved: index === 0 ? [products] : [] }),
    ),
    elementwise(layer, component, kind === 'altUpSplit' ? all : hidden, {
      launches: 4 * projections.length,
    }),
  ];
}

/**
 * The streams are mixed value by value: work that FLOPs of products do not count. The products are small, and whole on
 * every GPU.
 */
export function lowerAltUpBlock(
  layer: AltUpBlock,
  around: LoweringContext,
  lower: LowerLayer,
): Primitive[] {
  const { routerNorm, router, prediction, correction, inner, perLayer } = layer;
  const { component } = around;
  const hidden = inputWidth(router);
  const streams = inputWidth(correction);
  const all = streams * hidden;
  const own = router.component ?? component;
  const mixed = (count: number, source: string): Saved => ({
    part: own,
    vectors: [vectors(count * streams, 'hidden', hidden), vectors(2, 'streams', streams)],
    source,
  });
  const routed = [
    ...lower(routerNorm, { ...around, width: hidden, component: own }),
    matmul(router, own),
  ];
  const inside = { ...around, width: hidden };
  return [
    ...routed,
    matmul(prediction, own, { saved: [mixed(1, 'the streams; the router before and after tanh')] }),
    elementwise(layer, own, all, { launches: 3 }),
    ...lower(inner, inside),
    ...routed,
    matmul(correction, own, {
      saved: [mixed(1, 'the predicted streams; the router before and after tanh')],
    }),
    elementwise(layer, own, all, { params: [layer.outputScale], launches: 4 }),
    ...lower(perLayer, inside),
    elementwise(layer, own, all, { launches: 1 }),
  ];
}
