/** Layers that are described and not run, as primitives. */
import type { Component, Described, DescribedWork } from '../architecture/layer.js';
import {
  elementwise,
  type LoweringContext,
  type LowerLayer,
  ONE_KERNEL,
} from './lowering-blocks.js';
import { type Primitive, type Saved, vectors } from './primitive.js';

/** Parts in order, then the layer's own work; its tensors are whole on every GPU. */
export function lowerDescribed(
  layer: Described,
  around: LoweringContext,
  lower: LowerLayer,
): Primitive[] {
  const { component } = around;
  const multiplied = new Set(
    layer.works.flatMap((each) => (each.work === 'product' ? [each.tensor] : [])),
  );
  return [
    ...layer.parts.flatMap((part) => lower(part, around)),
    ...layer.works.map((work) => lowerWork(layer.name, work, component)),
    elementwise(layer, component, layer.output, {
      params: layer.tensors.filter((tensor) => !multiplied.has(tensor)),
    }),
  ];
}

function lowerWork(layer: string, work: DescribedWork, component: Component): Primitive {
  const base = { layer, component, ...ONE_KERNEL };
  const saved = (width: number, source: string): Saved[] => [
    { part: component, vectors: [vectors(1, 'width', width)], source },
  ];
  switch (work.work) {
    case 'product':
      return {
        ...base,
        kind: 'matmul',
        input: work.input,
        output: work.output,
        params: [work.tensor],
        saved: saved(work.input, 'the input of a product'),
        tensor: work.tensor,
        weights: work.tensor.elements,
        rows: 'tokens',
      };
    case 'rows': {
      const [output = 1] = work.tensor.shape;
      const weights = work.tensor.elements;
      return {
        ...base,
        kind: 'matmul',
        input: weights / output,
        output,
        params: [work.tensor],
        tensor: work.tensor,
        weights,
        rows: work.rows,
      };
    }
    case 'attention': {
      const { heads, keyValueHeads, headDim, valueDim, window, cached } = work;
      const keys = keyValueHeads * (headDim + valueDim);
      return {
        ...base,
        kind: 'scores',
        input: heads * headDim,
        output: heads * valueDim,
        saved: saved(heads * (headDim + valueDim) + keys, 'q, k, v and the output of the heads'),
        heads,
        keyValueHeads,
        headDim,
        valueDim,
        spans: [{ heads, window }],
        ...(work.isUncached && { keeps: 'nothing' }),
        latent:
          cached === undefined
            ? undefined
            : { cached, multiplied: work.multiplied ?? headDim + valueDim, expanded: 0 },
        capped: false,
        inFloat32: true,
      };
    }
    case 'index':
      return {
        ...base,
        kind: 'indexScores',
        component: 'indexer',
        input: work.heads * work.headDim,
        output: work.heads,
        heads: work.heads,
        headDim: work.headDim,
        valueDim: 1,
        spans: [{ heads: work.heads, window: work.window }],
      };
    case 'state':
      return {
        ...base,
        kind: 'scan',
        input: work.inner,
        output: work.inner,
        saved: saved(2 * work.inner, 'the input and the output of the recurrence'),
        inner: work.inner,
        state: work.state,
        decays: 'heads',
        inFloat32: work.inFloat32 ?? false,
      };
    case 'buffer':
      return {
        ...base,
        kind: 'convolution',
        input: work.channels,
        output: work.channels,
        channels: work.channels,
        kernel: work.macs,
        cached: work.tokens,
        isBuffer: true,
      };
  }
}
