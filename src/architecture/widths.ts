/** How wide values are on their way through a description. */
import type { Layer, MixtureOfExperts, Projection, Projections } from './layer.js';
import { productsOf } from './walk.js';

/** Values that a product reads of each token. */
export const inputWidth = ({ kind, weight }: Projection): number =>
  weight.shape[kind === 'linear' ? 1 : 0] ?? 0;

/** Values that a product gives of each token. */
export const outputWidth = ({ kind, weight }: Projection): number =>
  weight.shape[kind === 'linear' ? 0 : 1] ?? 0;

/** Values that all products of one input read of each token. */
export function sharedInputWidth(inputs: Projections): number {
  const [first] = productsOf(inputs);
  return first ? inputWidth(first) : 0;
}

/** Width between the two products of an expert; experts are alike. */
export function expertInner({ experts }: MixtureOfExperts): number {
  if ('kind' in experts) return experts.down.shape[2] ?? 0;
  const [first] = experts;
  return first ? inputWidth(first.down) : 0;
}

/** Values of each token that a layer gives, of so many that it is given. */
export function widthAfter(layer: Layer, width: number): number {
  switch (layer.kind) {
    case 'languageModel':
      return widthAfter(layer.head, layer.norm.weight.elements);
    case 'sequence':
      return layer.layers.reduce((before, each) => widthAfter(each, before), width);
    case 'linear':
    case 'transposedLinear':
      return outputWidth(layer);
    case 'fusedProjection':
      return outputWidth(layer.projection);
    case 'gatedMlp':
      return outputWidth(layer.down);
    case 'attention':
    case 'latentAttention':
      return outputWidth(layer.out);
    case 'mamba':
      return outputWidth(layer.outProj);
    case 'alignment':
      return outputWidth(layer.residual);
    case 'gate':
      return outputWidth(layer.down);
    case 'router':
      return layer.weight.shape[0] ?? 0;
    case 'embedding':
      return layer.weight.shape[1] ?? 0;
    case 'srteTable':
      return layer.table.shape[2] ?? 0;
    case 'srteLowRank':
      return outputWidth(layer.projection);
    case 'srteSincos':
      return 2 * layer.inverseFrequencies.elements;
    case 'hybridBlock':
    case 'layerNorm':
    case 'rmsNorm':
    case 'activation':
    case 'scale':
    case 'softcap':
    case 'learnedPositions':
    case 'residual':
    case 'packedExperts':
    case 'mixtureOfExperts':
    case 'causalConv':
    case 'rotary':
    case 'alibi':
      return width;
  }
}
