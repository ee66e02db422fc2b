/** Lowers layers with a state that are neither Mamba nor a gated delta rule. */
import type { Component, KimiDelta, LightningAttention } from '../architecture/layer.js';
import { sharedInputWidth } from '../architecture/walk.js';
import { savedInput, scan } from './lower-recurrent.js';
import {
  byRows,
  closingMatmul,
  convolution,
  gatedNorm,
  matmul,
  openingMatmuls,
  paramsOf,
} from './lowering-blocks.js';
import { allReduce, type Primitive, runOf, type Saved, vectors } from './primitive.js';

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

/** Heads are whole on a GPU; the low ranks of decays and gate are whole on every GPU. */
export function lowerKimiDelta(layer: KimiDelta, component: Component): Primitive[] {
  const { name, inputs, convs, stepBias, stateLog, forget, beta, gate, norm, outProj } = layer;
  const { heads, headDim } = layer;
  const inner = heads * headDim;
  const run = runOf('heads', heads, headDim);
  const ranks = [forget, gate].map(({ layers: [down] }) => down.weight.shape[0] ?? 0);
  const saved: Saved = {
    part: component,
    vectors: [
      vectors(1, 'hidden', sharedInputWidth(inputs)),
      vectors(13, 'inner', inner, 'width'),
      vectors(2, 'heads', heads, 'width'),
      ...ranks.map((rank) => vectors(1, 'rank', rank)),
    ],
    source:
      'its input; q and k before and after convolution, activation and division by their length; v before and after ' +
      'convolution and activation; decays before and after their functions; β before and after its function; the low ' +
      'ranks of decays and gate',
  };
  const lowRank = ({ layers: [down, up] }: KimiDelta['gate']): Primitive[] => [
    matmul(down, component),
    matmul(up, component, {
      cuts: byRows(paramsOf(up), name, run),
      backward: allReduce(down.weight.shape[0] ?? 0),
    }),
  ];
  return [
    ...openingMatmuls(inputs, component, { of: name, runs: [run, run, run], saved: [saved] }),
    ...convs.map((conv) => {
      const lowered = convolution(conv, component, conv.weight.shape[0] ?? 0, name);
      const runs = convs.length === 1 ? [run, run, run] : [run];
      return { ...lowered, cuts: byRows(lowered.params, name, ...runs) };
    }),
    ...lowRank(forget),
    matmul(beta, component, { cuts: byRows(paramsOf(beta), name, runOf('heads', heads)) }),
    {
      ...scan(name, component, [stepBias], run, {
        inner,
        state: headDim,
        decays: 'delta',
        inFloat32: true,
      }),
      params: [stepBias, stateLog],
    },
    ...lowRank(gate),
    gatedNorm(norm, component, { of: name, run }),
    closingMatmul(outProj, component, name, run, savedInput(component, inner)),
  ];
}
