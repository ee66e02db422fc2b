/** Uses of a model's matrices, as far as llama.cpp's mixtures of types depend on them. */
import type { MatrixRole, MixtureModel } from '../../../checkpoint/gguf/mixtures.js';
import type { LanguageModel, Layer } from '../../../model/architecture/layer.js';
import type { Param } from '../../../model/architecture/param.js';
import {
  closingProduct,
  isAttention,
  isProduct,
  isRouted,
  memoized,
  productsOf,
  queryHeads,
  walkCounted,
} from '../../../model/architecture/walk.js';

/** Use and place of a matrix; see `MixtureMatrix`. */
export interface MatrixPlace {
  readonly role: MatrixRole;
  readonly index: number;
}

/** The matrices of a model that mixtures treat in another way than the rest. */
export interface MatrixRoles {
  readonly model: MixtureModel;
  readonly places: ReadonlyMap<Param, MatrixPlace>;
}

/** Layers of Llama-2-70B and of other models of that size, whose values llama.cpp gives more bits. */
const LAYERS_OF_70B = 80;

/** Uses of the matrices of a model, and its sizes. */
export const matrixRoles: (model: LanguageModel) => MatrixRoles = memoized((model) => {
  const places = new Map<Param, MatrixPlace>();
  let attentions = 0;
  for (const [index, block] of model.blocks.entries()) {
    const found = walkCounted(block).flatMap(({ layer }) => rolesIn(layer));
    const hasValues = found.some(([, role]) => role === 'value');
    for (const [weight, role] of found) {
      places.set(weight, { role, index: role === 'value' ? attentions : index });
    }
    if (hasValues) attentions++;
  }
  const { embedding, head } = model;
  const isTied = embedding.weight === head.weight;
  places.set(embedding.weight, { role: isTied ? 'head' : 'embedding', index: 0 });
  places.set(head.weight, { role: 'head', index: 0 });
  const layers = model.blocks.flatMap(walkCounted).map(({ layer }) => layer);
  const queriesPerKey = queriesPerKeyOf(layers);
  const isLarge = model.blocks.length === LAYERS_OF_70B && queriesPerKey > 1;
  return {
    model: {
      layers: model.blocks.length,
      attentions,
      queriesPerKey,
      experts: layers.find(isRouted)?.router.weight.shape[0] ?? 0,
      is70B: isLarge,
    },
    places,
  };
});

function queriesPerKeyOf(layers: readonly Layer[]): number {
  const attention = layers.find(isAttention);
  if (attention === undefined) return 0;
  // All heads of a latent attention have keys of their own.
  const keys = attention.kind === 'latentAttention' ? attention.heads : attention.keyValueHeads;
  return Math.floor(queryHeads(attention) / keys);
}

type Found = readonly (readonly [Param, MatrixRole])[];

/** Matrices of a layer itself. */
function rolesIn(layer: Layer): Found {
  switch (layer.kind) {
    case 'attention':
    case 'differentialAttention':
      return [...inputRoles(layer), [closingProduct(layer.out).weight, 'attentionOutput']];
    case 'latentAttention':
      return [[layer.out.weight, 'attentionOutput']];
    case 'gatedMlp':
      return [[closingProduct(layer.down).weight, 'down']];
    case 'packedExperts':
    case 'clampedExperts':
      return [[layer.down, 'down']];
    case 'sequence':
      return downOfSequence(layer.layers);
    default:
      return [];
  }
}

/** Queries, keys and values; several of them in one product count as values. */
function inputRoles({
  inputs,
  ...attention
}: Extract<Layer, { kind: 'attention' | 'differentialAttention' }>): Found {
  const products = productsOf(inputs);
  const [first] = products;
  const last = products.at(-1);
  if (first === undefined || last === undefined) return [];
  if (first === last) return [[first.weight, 'value']];
  if ('valuesAreKeys' in attention && attention.valuesAreKeys) return [[last.weight, 'key']];
  const key = products.at(-2);
  return [
    [first.weight, 'query'],
    ...(key && key !== first ? [[key.weight, 'key'] as const] : []),
    [last.weight, 'value'],
  ];
}

/** The last of the products of a network without a gate. */
function downOfSequence(layers: readonly Layer[]): Found {
  const products = layers.filter(isProduct);
  const last = products.at(-1);
  const hasActivation = layers.some(({ kind }) => kind === 'activation');
  return last && products.length > 1 && hasActivation ? [[last.weight, 'down']] : [];
}
