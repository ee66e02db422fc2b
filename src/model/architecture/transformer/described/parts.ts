/** Parts of models that are described, not run. Shapes and names follow transformers 5.18. */
import { linear, rmsNormLayer, sequence } from '../../constructors/basic-layers.js';
import { described } from '../../constructors/described-layer.js';
import type { Component, Described, Layer, Linear, Router, Sequence } from '../../layer.js';
import type { Param } from '../../param.js';
import { param } from '../../param.js';
import { type HarmlessKeys, harmless } from '../config-keys.js';

/** Keys of a config that change values, and neither sizes nor caches. */
export const valueKeys = (...keys: readonly string[]): HarmlessKeys =>
  harmless('changes values only, which are described and not computed', keys);

/** Keys of rotary positions. */
export const ROTARY_VALUES = valueKeys(
  'rope_parameters',
  'rope_theta',
  'rope_scaling',
  'partial_rotary_factor',
  'rope_interleave',
);

/** A product without a bias, unless `bias` says so. */
export const product = (
  name: string,
  from: number,
  to: number,
  { bias = false, component }: { readonly bias?: boolean; readonly component?: Component } = {},
): Linear => linear(name, from, to, { bias, ...(component && { component }) });

interface Streams {
  readonly hidden: number;
  readonly streams: number;
}

/**
 * Weights that join the streams of a residual into the input of a branch and spread its output (manifold-constrained
 * hyper-connections, arXiv 2512.24880).
 * @param outputs Weights for a token.
 * @param scales Groups of these weights, with a scale each.
 */
export const hyperConnection = (
  name: string,
  { hidden, streams }: Streams,
  outputs: number,
  scales: number,
): Described =>
  described(name, {
    title: 'hyper-connection',
    component: 'other',
    tensors: { fn: [outputs, streams * hidden], base: [outputs], scale: [scales] },
    products: { fn: [streams * hidden, outputs] },
    output: hidden,
  });

/** Weights that join the streams into one before the final norm. */
const hyperHead = (name: string, { hidden, streams }: Streams): Described =>
  described(name, {
    title: 'join of the residual streams',
    component: 'other',
    tensors: { hc_fn: [streams, streams * hidden], hc_base: [streams], hc_scale: [1] },
    products: { hc_fn: [streams * hidden, streams] },
    output: hidden,
  });

/** The final norm, and `hyperHead` before it, which comes after it in the state dict. */
export const normOfStreams = (norm: string, head: string, sizes: Streams, eps: number): Sequence =>
  sequence(`${norm}_of_streams`, [rmsNormLayer(norm, sizes.hidden, eps), hyperHead(head, sizes)]);

/** Copies of the embedding, one for each stream. */
export const splitStreams = ({ hidden, streams }: Streams): Described =>
  described('streams', {
    title: 'copies for the residual streams',
    component: 'other',
    output: streams * hidden,
  });

/** A router whose choice is described. */
export const describedRouter = (
  name: string,
  parts: { readonly weight: Param; readonly expertsPerToken: number } & Partial<
    Pick<Router, 'correction' | 'table' | 'steps' | 'bias'>
  >,
): Router => ({
  kind: 'router',
  name,
  component: 'router',
  ...(parts.steps && { steps: parts.steps }),
  weight: parts.weight,
  ...(parts.bias && { bias: parts.bias }),
  correction: parts.correction,
  ...(parts.table && { table: parts.table }),
  scoring: 'described',
  expertsPerToken: parts.expertsPerToken,
  groups: undefined,
  renormalised: undefined,
  scale: 1,
});

/** Depthwise convolution [channels, 1, kernel] over time. */
export const shortConvolution = (
  name: string,
  channels: number,
  kernel: number,
  cached = kernel - 1,
): Layer => ({
  kind: 'causalConv',
  name,
  weight: param(`${name}.weight`, [channels, 1, kernel]),
  bias: undefined,
  cached,
});
