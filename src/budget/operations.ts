/**
 * The work of one forward pass, read off the description: what is computed, where and how large, but
 * not yet for how many tokens. FLOPs are figures made from it (flops.ts).
 */
import type {
  Component,
  HeadSpan,
  Layer,
  MixtureOfExperts,
  Projection as Product,
  Srte,
} from '../architecture/layer.js';
import type { Param } from '../architecture/param.js';
import { projectionLayers, stagesOf } from '../architecture/walk.js';

interface Work<Kind extends string> {
  readonly kind: Kind;
  /** Name of the layer that does it. */
  readonly layer: string;
  /** What it is done for. */
  readonly component: Component;
}

/** A matrix product with a stored weight, of which each row takes `weights` values: 2 FLOP for each. */
export interface Projection extends Work<'projection'> {
  readonly weights: number;
  /** … of this one. */
  readonly tensor: Param;
  /** A row for each token of the batch, or for each position once for the whole batch. */
  readonly rows: 'tokens' | 'positions';
}

/** Scores q·kᵀ of the query heads of each span, and their sums over v. */
export interface Scores extends Work<'scores'> {
  /** Of a head's query and key. */
  readonly headDim: number;
  /** Of a head's value. */
  readonly valueDim: number;
  /** What a head multiplies of a kept token where latents are kept in place of keys and values. */
  readonly latentDim: number | undefined;
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
 * all that is done value by value (norms, softmax, activations, gating, rotation): little at real sizes. Of a
 * mixture's experts those are counted that one token goes to, whichever they are.
 */
export function operationsOf(layer: Layer, component: Component = 'other'): Operation[] {
  const own = layer.component ?? component;
  const all = (layers: readonly Layer[]) => layers.flatMap((child) => operationsOf(child, own));
  const name = layer.name;
  switch (layer.kind) {
    case 'languageModel':
      // What the blocks share is computed where they use it.
      return all(stagesOf(layer));
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
        {
          kind: 'scores',
          layer: name,
          component: own,
          headDim,
          valueDim: headDim,
          latentDim: undefined,
          spans,
        },
        ...all([layer.out]),
      ];
    }
    case 'latentAttention': {
      const { heads, nopeDim, valueDim, latentRank, rotary } = layer;
      const headDim = nopeDim + rotary.headDim;
      const spans = [{ heads, window: undefined }];
      return [
        ...all([layer.query, layer.keyValueDown, layer.keyValueUp]),
        {
          kind: 'scores',
          layer: name,
          component: own,
          headDim,
          valueDim,
          // Read twice, for its score and for its value.
          latentDim: 2 * latentRank + rotary.headDim,
          spans,
        },
        ...all([layer.out]),
      ];
    }
    case 'gatedMlp':
      return all([...projectionLayers(layer.inputs), layer.down]);
    case 'mixtureOfExperts':
      return [
        ...all([layer.router]),
        ...expertOperations(layer, own),
        ...all([...layer.shared, ...(layer.sharedGate ? [layer.sharedGate] : [])]),
      ];
    case 'router':
      return [projection(layer, own)];
    case 'residual':
      return all(layer.branches);
    case 'fusedProjection':
      return all([layer.projection]);
    case 'alignment':
      return all([layer.net, layer.residual]);
    case 'gate':
      return all([layer.up, layer.down]);
    case 'sequence':
      return all(layer.layers);
    case 'linear':
    case 'transposedLinear':
      return [projection(layer, own)];
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
    case 'rmsNorm':
    case 'scale':
    case 'softcap':
    case 'learnedPositions':
    case 'packedExperts':
    case 'alibi':
    case 'rotary':
      return [];
  }
}

/** The experts are alike, so that the first stand for those that a token goes to. */
function expertOperations(layer: MixtureOfExperts, component: Component): Operation[] {
  const { experts, router } = layer;
  const { expertsPerToken } = router;
  if (!('kind' in experts)) {
    return experts.slice(0, expertsPerToken).flatMap((each) => operationsOf(each, component));
  }
  const { gateUp, down } = experts;
  const [count = 1] = gateUp.shape;
  return [gateUp, down].map((tensor) => ({
    kind: 'projection',
    layer: tensor.name,
    tensor,
    component: experts.component ?? component,
    weights: (tensor.elements / count) * expertsPerToken,
    rows: 'tokens',
  }));
}

/** The table is the same for all rows of a batch, so it is made for each position once per block. */
function srteOperations(srte: Srte): Operation[] {
  return srte.kind === 'srteLowRank'
    ? [projection(srte.projection, srte.component ?? 'srte', 'positions')]
    : [];
}

function projection(
  { name: layer, weight: tensor }: Pick<Product, 'name' | 'weight'>,
  component: Component,
  rows: Projection['rows'] = 'tokens',
): Projection {
  return { kind: 'projection', layer, component, weights: tensor.elements, tensor, rows };
}
