/**
 * Bytes of served weights, including scales of groups or blocks, whole or cut for GPUs that share each layer.
 *
 * Quantised tensors are the products with weights inside the blocks, experts included. Embedding, head, norms, routers,
 * convolutions, biases and other vectors stay in 16 bits. This follows GPTQ (arXiv 2210.17323), AWQ (arXiv 2306.00978),
 * LLM.int8() (arXiv 2208.07339) and DeepSeek-V3 in 8 bits (arXiv 2412.19437, section 3.3). A group is a run of values
 * within a row, and a row holds the weights of one output. The last group of a row may be shorter and has its own
 * scale. A row ends on a whole byte.
 */

import { groupBy, sumOf } from '../../../base/values.js';
import { type MixtureName, mixtureType } from '../../../checkpoint/gguf/mixtures.js';
import { type MatrixRoles, matrixRoles } from '../../../input/model-input/gguf/matrix-roles.js';
import { COMPONENTS, type LanguageModel, type Layer } from '../../../model/architecture/layer.js';
import type { Param } from '../../../model/architecture/param.js';
import type { OwnedTensor } from '../../../model/architecture/walk.js';
import {
  countedTensors,
  expertTensors,
  inputWidth,
  isProduct,
  isRouted,
  memoized,
  memoizedBy,
  outputWidth,
  packedMatrices,
  walkCounted,
} from '../../../model/architecture/walk.js';
import { add, ceildiv, div, inputs, mul, v } from '../../../model/budget/expression.js';
import { type Figure, figure, sumFigure } from '../../../model/budget/figure.js';
import { bufferBytes } from '../../../model/budget/parameters.js';
import type { Cut } from '../../../model/operations/primitive.js';
import { dividedExperts } from '../parallelism/model-axes.js';
import { cutAmong, elementsPerGpu, rowsPerGpu } from '../parallelism/parallelism.js';
import { type ExpertSharing, shareOfExperts } from './serving-axes.js';
import {
  type BlockBits,
  bitsOfType,
  scaleBits,
  WEIGHT_DTYPES,
  type WeightFormat,
} from './weight-types.js';

interface QuantizedMatrix {
  readonly rows: number;
  readonly length: number;
  /** Matrices of the same shape in the same tensor. */
  readonly copies: number;
}

/** Tensors of a model with their roles in serving; one expert of each mixture represents all. */
export interface WeightLayout {
  readonly owned: readonly OwnedTensor[];
  /** Tensors read by row lookup only, never by a product. */
  readonly lookups: ReadonlySet<Param>;
  /** Tensors of routed experts. */
  readonly experts: ReadonlySet<Param>;
  /** Number of experts that all mixtures can be divided by; 0 without experts. */
  readonly expertCount: number;
  readonly quantised: ReadonlyMap<Param, QuantizedMatrix>;
  /** Embedding and head, which GGUF quantises; a tied weight counts as a head. */
  readonly tables: ReadonlyMap<Param, 'embedding' | 'head'>;
  /** See `cutAmong`. */
  readonly cutFor: (tensor: Param, gpus: number) => Cut | undefined;
  /** Uses of the matrices, which the types in a GGUF file depend on. */
  readonly roles: MatrixRoles;
  /** Bits of the tensors that the checkpoint stores quantized; undefined if it stores none so. */
  readonly storedBits: (() => ReadonlyMap<Param, number>) | undefined;
}

/** Roles of a model's tensors, computed once per model. */
export const weightLayout: (model: LanguageModel) => WeightLayout = memoized((model) => {
  const inBlocks = model.blocks.flatMap(walkCounted).map(({ layer }) => layer);
  const mixtures = inBlocks.filter(isRouted);
  // The gate of the shared experts is not quantised: it is as small as a router.
  const gates = new Set(
    mixtures.map((layer) => ('sharedGate' in layer ? layer.sharedGate?.weight : undefined)),
  );
  const products = inBlocks.flatMap(productsIn).filter(([weight]) => !gates.has(weight));
  const experts = mixtures.flatMap(expertTensors).map(({ tensor }) => tensor);
  const { embedding, head } = model;
  const tied = embedding.weight === head.weight;
  return {
    owned: countedTensors(model),
    lookups: new Set(tied ? [] : [embedding.weight]),
    experts: new Set(experts),
    expertCount: dividedExperts(model),
    quantised: new Map(products),
    tables: new Map([
      [embedding.weight, 'embedding'],
      [head.weight, 'head'],
    ]),
    cutFor: (tensor, gpus) => cutAmong(model, tensor, gpus),
    roles: matrixRoles(model),
    storedBits: model.storedBits,
  };
});

/** Bits of the whole tensor as the checkpoint stores it; undefined for other formats and unquantized tensors. */
export const storedBitsOf = (
  tensor: Param,
  { storedBits }: WeightLayout,
  { stored }: WeightFormat,
): number | undefined => (stored === undefined ? undefined : storedBits?.().get(tensor));

/** Bytes of the weights on the fullest GPU, by component. */
export interface ServedWeights {
  readonly parts: readonly { readonly part: string; readonly bytes: Figure }[];
  readonly total: Figure;
}

/** @param which Filter of tensors; all by default. */
export function servedWeights(
  layout: WeightLayout,
  format: WeightFormat,
  gpus: number,
  which: (tensor: Param) => boolean = () => true,
  experts: ExpertSharing = { tensor: gpus, whole: 1 },
): ServedWeights {
  const served = layout.owned.filter(({ tensor }) => which(tensor));
  const byComponent = groupBy(
    served.filter(({ tensor }) => tensor.role !== 'buffer'),
    ({ component }) => component,
  );
  const bufferValues = sumOf(
    served.filter(({ tensor }) => tensor.role === 'buffer'),
    ({ tensor, count }) => count * tensor.elements,
  );
  const parts = [...byComponent].map(([component, tensors]) => ({
    part: component as string,
    bytes: componentBytes(COMPONENTS[component], tensors, { layout, format, gpus, experts }),
  }));
  if (bufferValues > 0) parts.push({ part: 'buffers', bytes: bufferBytes(bufferValues) });
  const total = sumFigure(
    gpus === 1 ? 'weights' : `weights on one of ${gpus} GPUs`,
    'bytes',
    Object.fromEntries(parts.map(({ part, bytes }) => [part, bytes])),
    'sum of the parts',
  );
  return { parts, total };
}

/** Bytes of all parameters in a format with its scales, on one GPU. Buffers are not part of it. */
export const servedParameters: (model: LanguageModel, format: WeightFormat) => Figure = memoizedBy(
  (format) => JSON.stringify(format),
  (model: LanguageModel, format: WeightFormat) => {
    const isParameter = ({ role }: Param) => role === 'parameter';
    const { total } = servedWeights(weightLayout(model), format, 1, isParameter);
    return total.reworded({ label: `weights served in ${format.dtype}` });
  },
);

/** Form of the weights, and the GPUs that share them. */
interface ComponentSetting {
  readonly layout: WeightLayout;
  readonly format: WeightFormat;
  readonly gpus: number;
  readonly experts: ExpertSharing;
}

/** Bytes of a component; rows of the same length are one input. */
function componentBytes(
  label: string,
  tensors: readonly OwnedTensor[],
  { layout, format, gpus, experts }: ComponentSetting,
): Figure {
  const { bits, otherBits, blocks, usual, source } = WEIGHT_DTYPES[format.dtype];
  const rows = new Map<string, CountedRows>();
  let others = 0;
  let storedBits = 0;
  for (const { tensor, count: all } of tensors) {
    const isExpert = layout.experts.has(tensor);
    const sharing = isExpert ? experts.tensor : gpus;
    const cut = layout.cutFor(tensor, sharing);
    const count = isExpert ? all * shareOfExperts(layout.expertCount, experts) : all;
    const ofStored = storedBitsOf(tensor, layout, format);
    if (ofStored !== undefined) {
      storedBits +=
        (count * ofStored * elementsPerGpu(tensor.elements, cut, sharing)) / tensor.elements;
      continue;
    }
    const isCounted = format.stored === undefined && (usual || blocks);
    const matrix = isCounted ? quantisedMatrix(tensor, layout, blocks !== undefined) : undefined;
    if (matrix === undefined) others += count * elementsPerGpu(tensor.elements, cut, sharing);
    else {
      const { rows: own, length, copies } = matrixOfGpu(matrix, cut, sharing);
      const type = blocks && blockBits(tensor, matrix.length, layout, blocks);
      const name = `rows_of_${length}${type?.suffix ?? ''}`;
      const known = rows.get(name) ?? { length, bits: type?.bits, rows: 0 };
      rows.set(name, { ...known, rows: known.rows + Math.round(count * own * copies) });
    }
  }
  const perValue = v({ bits });
  const perGroup = v({
    group_bits: scaleBits(format.scaleDtype) + (format.zeroPoints ? bits : 0),
  });
  const bytesOfRow = ({ length, bits: ofBlocks }: CountedRows) => {
    // Blocks end with their row, and bits are per 10,000 weights.
    if (ofBlocks !== undefined) return ceildiv(mul(length, ofBlocks), 80000);
    const groups = typeof format.groupSize === 'number' ? ceildiv(length, format.groupSize) : 1;
    return ceildiv(add(mul(length, perValue), mul(groups, perGroup)), 8);
  };
  const counts = [...rows].map(([name, { rows: count }]) => [name, count] as const);
  const terms = [...rows].map(([name, each]) => mul(v({ [name]: each.rows }), bytesOfRow(each)));
  const unquantised = div(mul(v({ values: Math.round(others) }), v({ other_bits: otherBits })), 8);
  return figure({
    label: `weights: ${label}`,
    unit: 'bytes',
    formula: add(
      ...terms,
      ...(storedBits > 0 ? [ceildiv(v({ stored_bits: Math.ceil(storedBits) }), 8)] : []),
      ...(others > 0 ? [unquantised] : []),
    ),
    inputs: inputs(Object.fromEntries(counts)),
    source:
      storedBits > 0
        ? `as stored: ${format.stored}${others > 0 ? `; what is not quantised in ${otherBits} bits` : ''}`
        : terms.length > 0
          ? `${source}${others > 0 ? `; what is not quantised in ${otherBits} bits` : ''}`
          : `in ${otherBits} bits`,
  });
}

/** Rows of one length and type. */
interface CountedRows {
  readonly length: number;
  /** Bits of 10,000 weights in blocks; undefined for groups. */
  readonly bits: number | undefined;
  readonly rows: number;
}

/** Quantised tensor as rows; undefined for a tensor that is not quantised. */
function quantisedMatrix(
  tensor: Param,
  { quantised, tables }: WeightLayout,
  hasBlocks: boolean,
): QuantizedMatrix | undefined {
  const [rows = 1, length = 1] = tensor.shape;
  return hasBlocks && tables.has(tensor) ? { rows, length, copies: 1 } : quantised.get(tensor);
}

/** Bits of 10,000 weights of a matrix in a GGUF file, and the end of the name of its rows. */
export function blockBits(
  tensor: Param,
  columns: number,
  { roles, tables }: WeightLayout,
  blocks: MixtureName | BlockBits,
): { readonly bits: number; readonly suffix: string } {
  if (typeof blocks !== 'string') {
    const kind = tables.get(tensor) ?? 'products';
    return { bits: blocks[kind], suffix: kind === 'products' ? '' : `_of_${kind}` };
  }
  const place = roles.places.get(tensor) ?? { role: 'other', index: 0 };
  const type = mixtureType(blocks, { ...place, columns }, roles.model);
  return { bits: bitsOfType(type), suffix: `_in_${type.toLowerCase()}` };
}

/** Part of a matrix on the fullest GPU. */
function matrixOfGpu(
  { rows, length, copies }: QuantizedMatrix,
  cut: Cut | undefined,
  gpus: number,
): QuantizedMatrix {
  switch (cut?.along) {
    case undefined:
      return { rows, length, copies };
    case 'rows':
      return { rows: rowsPerGpu(cut, gpus), length, copies };
    case 'length':
      return { rows, length: rowsPerGpu(cut, gpus), copies };
  }
}

/** The weights of a layer's own products. */
function productsIn(layer: Layer): readonly (readonly [Param, QuantizedMatrix])[] {
  return isProduct(layer)
    ? [[layer.weight, { rows: outputWidth(layer), length: inputWidth(layer), copies: 1 }]]
    : packedMatrices(layer).map(({ tensor, ...matrix }) => [tensor, matrix]);
}
