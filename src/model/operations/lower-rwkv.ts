/** Lowers the layers of RWKV-4. */
import type { Component, Layer, RwkvChannelMix, RwkvTimeMix } from '../architecture/layer.js';
import type { Param } from '../architecture/param.js';
import { outputWidth } from '../architecture/walk.js';
import { savedInput, scan } from './lower-recurrent.js';
import {
  byRows,
  closingMatmul,
  elementwise,
  matmul,
  ONE_KERNEL,
  paramsOf,
} from './lowering-blocks.js';
import { type Convolution, type Primitive, runOf, type Saved, vectors } from './primitive.js';

/** Mixes with the token before, which the cache keeps. They are elementwise work, without a kernel over time. */
const shift = (
  { name }: Pick<Layer, 'name'>,
  component: Component,
  hidden: number,
  params: readonly Param[],
  saved: Saved,
): Convolution => ({
  kind: 'convolution',
  layer: name,
  component,
  input: hidden,
  output: hidden,
  ...ONE_KERNEL,
  params,
  saved: [saved],
  channels: hidden,
  kernel: 0,
  cached: 1,
});

/** Channels are whole on a GPU. */
export function lowerRwkvTimeMix(layer: RwkvTimeMix, component: Component): Primitive[] {
  const { name, mixes, hidden, key, value, receptance, output, timeDecay, timeFirst } = layer;
  const width = outputWidth(key);
  const channels = runOf('channels', width);
  const saved: Saved = {
    part: component,
    vectors: [
      vectors(1, 'hidden', hidden),
      vectors(3, 'hidden', hidden),
      vectors(5, 'inner', width, 'width'),
    ],
    source: 'its input; three mixes; key, value and receptance, its sigmoid, and the mean',
  };
  return [
    shift(layer, component, hidden, mixes, saved),
    ...[key, value, receptance].map((product) =>
      matmul(product, component, { cuts: byRows(paramsOf(product), name, channels) }),
    ),
    scan(name, component, [timeDecay, timeFirst], channels, {
      inner: width,
      state: 3,
      decays: 'rwkv',
      inFloat32: true,
    }),
    elementwise(layer, component, width),
    closingMatmul(output, component, name, channels, savedInput(component, width)),
  ];
}

/** The receptance is whole on every GPU: it multiplies the sum over all. */
export function lowerRwkvChannelMix(layer: RwkvChannelMix, component: Component): Primitive[] {
  const { name, mixes, hidden, key, receptance, value } = layer;
  const inner = outputWidth(key);
  const run = runOf('inner values', inner);
  const saved: Saved = {
    part: component,
    vectors: [
      vectors(1, 'hidden', hidden),
      vectors(4, 'hidden', hidden),
      vectors(2, 'inner', inner, 'width'),
    ],
    source:
      'its input; two mixes, the sigmoid and the output of the values; keys before and after the square',
  };
  return [
    shift(layer, component, hidden, mixes, saved),
    matmul(key, component, { cuts: byRows(paramsOf(key), name, run) }),
    elementwise(layer, component, inner),
    closingMatmul(value, component, name, run, savedInput(component, inner)),
    matmul(receptance, component),
    elementwise(layer, component, hidden),
  ];
}
