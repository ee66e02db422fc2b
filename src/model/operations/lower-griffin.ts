/** Lowers the recurrent block of Griffin. */
import type { BlockDiagonal, Component, GriffinRecurrence } from '../architecture/layer.js';
import { inputWidth, outputWidth } from '../architecture/walk.js';
import { savedInput, scan } from './lower-recurrent.js';
import {
  byRows,
  closingMatmul,
  convolution,
  elementwise,
  ONE_KERNEL,
  openingMatmuls,
} from './lowering-blocks.js';
import { type Matmul, type Primitive, runOf, type Saved, vectors } from './primitive.js';

/** One matrix per head, in one kernel. @param of Layer whose heads GPUs share; undefined for a layer alone. */
export function lowerBlockDiagonal(
  { name, weight, bias }: BlockDiagonal,
  component: Component,
  of?: string,
): Matmul {
  const [heads = 0, size = 0] = weight.shape;
  return {
    kind: 'matmul',
    layer: name,
    component,
    input: heads * size,
    output: heads * size,
    ...ONE_KERNEL,
    params: [weight, bias],
    cuts: of === undefined ? [] : byRows([weight, bias], of, runOf('heads', heads, size)),
    tensor: weight,
    weights: weight.elements,
    rows: 'tokens',
  };
}

/** Heads are whole on a GPU: each has a matrix of both gates, and its channels. */
export function lowerGriffin(layer: GriffinRecurrence, component: Component): Primitive[] {
  const { name, y, x, out, conv, decay, inputGate, recurrentGate } = layer;
  const width = outputWidth(x);
  const [heads = 1, size = width] = inputGate.weight.shape;
  const run = runOf('heads', heads, size);
  const saved: Saved = {
    part: component,
    vectors: [vectors(1, 'hidden', inputWidth(x)), vectors(11, 'inner', width, 'width')],
    source:
      'its input; y before and after its activation; x before and after the convolution; both gates after σ, decays, ' +
      'the root, the gated input, and h twice',
  };
  return [
    ...openingMatmuls([y, x], component, { of: name, runs: [run, run], saved: [saved] }),
    convolution(conv, component, width, name),
    lowerBlockDiagonal(inputGate, component, name),
    lowerBlockDiagonal(recurrentGate, component, name),
    scan(name, component, [decay], run, {
      inner: width,
      state: 1,
      decays: 'channels',
      inFloat32: true,
    }),
    elementwise(layer, component, width),
    closingMatmul(out, component, name, run, savedInput(component, width)),
  ];
}
