/** Lowers layers with a state that are neither Mamba nor a gated delta rule. */
import type { Component, LightningAttention } from '../architecture/layer.js';
import { sharedInputWidth } from '../architecture/walk.js';
import { savedInput, scan } from './lower-recurrent.js';
import { closingMatmul, gatedNorm, openingMatmuls } from './lowering-blocks.js';
import { type Primitive, runOf, type Saved, vectors } from './primitive.js';

export function lowerLightningAttention(
  layer: LightningAttention,
  component: Component,
): Primitive[] {
  const { name, tables, inputs, norm, outProj, slopes, headDim } = layer;
  const inner = slopes.length * headDim;
  const run = runOf('heads', slopes.length, headDim);
  const saved: Saved = {
    part: component,
    vectors: [vectors(1, 'hidden', sharedInputWidth(inputs)), vectors(6, 'inner', inner, 'width')],
    source: 'its input; q, k and v before and after their activation',
  };
  return [
    ...openingMatmuls(inputs, component, { of: name, runs: [run, run, run, run], saved: [saved] }),
    {
      ...scan(name, component, [], runOf('heads', slopes.length), {
        inner,
        state: headDim,
        decays: 'fixed',
        inFloat32: false,
      }),
      params: tables,
    },
    gatedNorm(norm, component, { of: name, run }),
    closingMatmul(outProj, component, name, run, savedInput(component, inner)),
  ];
}
