/**
 * The work of one forward pass, read off the description: what is computed, where and how large, but
 * not yet for how many tokens. FLOPs are figures made from it (flops.ts).
 */
import type { Component, HeadSpan, Layer, Linear, Srte } from '../architecture/layer.js';
import { projectionLayers } from '../architecture/walk.js';

interface Work<Kind extends string> {
  readonly kind: Kind;
  /** Name of the layer that does it. */
  readonly layer: string;
  /** What it is done for. */
  readonly component: Component;
}

/** A matrix product with a stored weight of `weights` values: 2 FLOP per weight and row. */
export interface Projection extends Work<'projection'> {
  readonly weights: number;
  /** A row for each token of the batch, or for each position once for the whole batch. */
  readonly rows: 'tokens' | 'positions';
}

/** Scores q·kᵀ of the query heads of each span, and their sums over v. */
export interface Scores extends Work<'scores'> {
  readonly headDim: number;
  readonly spans: readonly HeadSpan[];
}

/** Depthwise convolution over time. */
export interface Convolution extends Work<'convolution'> {
  readonly channels: number;
  readonly kernel: number;
}

/** Selective scan over a state [inner, state]. */
export interface Scan extends Work<'scan'> {
  readonly inner: number;
  readonly state: number;
}

export type Operation = Projection | Scores | Convolution | Scan;

/**
 * What `layer` computes, in the order in which it does. Left out are the lookups of the embedding and
 * all that is done value by value (norms, softmax, activations, gating, rotation): little at real sizes.
 */
export function operationsOf(layer: Layer, component: Component = 'other'): Operation[] {
  const own = layer.component ?? component;
  const all = (layers: readonly Layer[]) => layers.flatMap((child) => operationsOf(child, own));
  const name = layer.name;
  switch (layer.kind) {
    case 'languageModel':
      // What the blocks share is computed where they use it.
      return all([layer.embedding, ...layer.blocks, layer.norm, layer.head]);
    case 'hybridBlock':
      return [
        ...srteOperations(layer.srte),
        ...all([layer.mamba, layer.attention]),
        ...all(layer.alignment ? [layer.alignment] : []),
        ...all([layer.gate, layer.fusion, layer.mlp]),
      ];
    case 'mamba': {
      const { innerSize: inner, stateSize: state } = layer;
      return [
        ...all([layer.inProj, layer.conv, layer.xProj, layer.dtProj]),
        { kind: 'scan', layer: name, component: own, inner, state },
        ...all([layer.outProj]),
      ];
    }
    case 'attention': {
      const { headDim, spans } = layer;
      return [
        ...all(projectionLayers(layer.inputs)),
        { kind: 'scores', layer: name, component: own, headDim, spans },
        ...all([layer.out]),
      ];
    }
    case 'alignment':
      return all([layer.net, layer.residual]);
    case 'gate':
      return all([layer.up, layer.down]);
    case 'sequence':
      return all(layer.layers);
    case 'linear':
      return [projection(layer, own, 'tokens')];
    case 'causalConv': {
      const [channels = 0, , kernel = 0] = layer.weight.shape;
      return [{ kind: 'convolution', layer: name, component: own, channels, kernel }];
    }
    case 'srteTable':
    case 'srteLowRank':
    case 'srteSincos':
      return srteOperations(layer);
    case 'embedding':
    case 'layerNorm':
    case 'activation':
    case 'transposedLinear':
    case 'fusedProjection':
    case 'rmsNorm':
    case 'scale':
    case 'softcap':
    case 'learnedPositions':
    case 'residual':
    case 'gatedMlp':
    case 'router':
    case 'packedExperts':
    case 'mixtureOfExperts':
    case 'alibi':
    case 'latentAttention':
    case 'rotary':
      return [];
  }
}

/** The table is the same for all rows of a batch, so it is made for each position once per block. */
function srteOperations(srte: Srte): Operation[] {
  return srte.kind === 'srteLowRank'
    ? [projection(srte.projection, srte.component ?? 'srte', 'positions')]
    : [];
}

function projection(
  { name: layer, weight }: Linear,
  component: Component,
  rows: Projection['rows'],
): Projection {
  return { kind: 'projection', layer, component, weights: weight.elements, rows };
}
