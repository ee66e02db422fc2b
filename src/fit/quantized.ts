/**
 * What weights take as they are served: in 32, 16, 8 or 4 bits, with the scales of their groups, whole or cut for
 * several GPUs that share each layer.
 *
 * Quantised are the products with weights inside the blocks, experts included. Embedding, head, norms, routers,
 * convolutions, biases and other vectors stay in 16 bits, as GPTQ (arXiv 2210.17323), AWQ (arXiv 2306.00978),
 * LLM.int8() (arXiv 2208.07339) and DeepSeek-V3 in 8 bits (arXiv 2412.19437, section 3.3) leave them. A group is a run
 * of values within a row, which is what one output multiplies its inputs with; the last group of a row may be shorter
 * and has a scale of its own all the same. A row ends on a whole byte.
 */
import {
  COMPONENTS,
  type Component,
  type LanguageModel,
  type Layer,
} from '../architecture/layer.js';
import type { Param } from '../architecture/param.js';
import { remembered } from '../architecture/remember.js';
import {
  expertLayers,
  isProduct,
  type OwnedTensor,
  ownedTensors,
  tensorsOf,
  walk,
} from '../architecture/walk.js';
import { inputWidth, outputWidth } from '../architecture/widths.js';
import { type Figure, figure, sumFigure } from '../budget/figure.js';
import { bufferBytes } from '../budget/parameters.js';
import type { PeakDtype } from '../hardware/gpu.js';
import { DTYPES } from '../tensor/dtype.js';
import type { WeightDtype, WeightFormat } from './serving-setting.js';
import { type Cut, elementsPerGpu, shareOf, tensorCuts } from './tensor-cuts.js';

interface WeightType {
  readonly bits: number;
  /** Of what is not quantised. */
  readonly otherBits: number;
  /** What the products are computed in. */
  readonly computes: PeakDtype;
  /** The format that is usual; nothing is grouped where weights are not quantised. */
  readonly usual: Omit<WeightFormat, 'dtype'> | undefined;
  readonly source: string;
}

export const WEIGHT_DTYPES: Readonly<Record<WeightDtype, WeightType>> = {
  f32: { bits: 32, otherBits: 32, computes: 'f32', usual: undefined, source: 'float32' },
  bf16: { bits: 16, otherBits: 16, computes: 'bf16', usual: undefined, source: 'bfloat16' },
  f16: { bits: 16, otherBits: 16, computes: 'f16', usual: undefined, source: 'float16' },
  f8: {
    bits: 8,
    otherBits: 16,
    computes: 'f8',
    usual: { groupSize: 'row', scaleDtype: 'f32', zeroPoints: false },
    source: 'a scale for each row, activations in 8 bits too (FP8 formats, arXiv 2209.05433)',
  },
  int8: {
    bits: 8,
    otherBits: 16,
    computes: 'int8',
    usual: { groupSize: 'row', scaleDtype: 'f32', zeroPoints: false },
    source: 'a scale for each row, activations in 8 bits too (LLM.int8(), arXiv 2208.07339)',
  },
  int4: {
    bits: 4,
    otherBits: 16,
    // Weights are widened to 16 bits before they are multiplied.
    computes: 'f16',
    usual: { groupSize: 128, scaleDtype: 'f16', zeroPoints: true },
    source:
      'groups of 128 with a float16 scale and a zero point of 4 bits (GPTQ, arXiv 2210.17323; AWQ, arXiv 2306.00978)',
  },
};

/** The usual format of a dtype. */
export const usualFormat = (dtype: WeightDtype): WeightFormat => ({
  dtype,
  ...(WEIGHT_DTYPES[dtype].usual ?? { groupSize: 'row', scaleDtype: 'f32', zeroPoints: false }),
});

/** A matrix as it is stored: so many rows, of so many values each. */
interface Matrix {
  readonly rows: number;
  readonly length: number;
  /** Matrices like it in the same tensor. */
  readonly copies: number;
}

/** A model's tensors with what serving needs to know of them. */
export interface WeightLayout {
  readonly owned: readonly OwnedTensor[];
  /** Tensors that a token looks up a row of and no product reads. */
  readonly lookups: ReadonlySet<Param>;
  /** Of the routed experts. */
  readonly experts: ReadonlySet<Param>;
  readonly quantised: ReadonlyMap<Param, Matrix>;
  readonly cuts: ReadonlyMap<Param, Cut>;
}

/** Reads a model once; all else is asked of what this gives. */
export const weightLayout: (model: LanguageModel) => WeightLayout = remembered((model) => {
  const inBlocks = model.blocks.flatMap(walk).map(({ layer }) => layer);
  const mixtures = inBlocks.filter((layer) => layer.kind === 'mixtureOfExperts');
  // The gate of the shared experts is as small as a router, and left alone like it.
  const gates = new Set(mixtures.map(({ sharedGate }) => sharedGate?.weight));
  const products = inBlocks.flatMap(productsIn).filter(([weight]) => !gates.has(weight));
  const experts = mixtures.flatMap(({ experts }) => expertLayers(experts).flatMap(tensorsOf));
  const { embedding, head } = model;
  const tied = embedding.weight === head.weight;
  return {
    owned: ownedTensors(model),
    lookups: new Set(tied ? [] : [embedding.weight]),
    experts: new Set(experts),
    quantised: new Map(products),
    cuts: tensorCuts(model),
  };
});

/** Bytes of the weights on the fullest of several GPUs, by what they are for. */
export interface ServedWeights {
  readonly parts: readonly { readonly part: string; readonly bytes: Figure }[];
  readonly total: Figure;
}

/** @param which Only these tensors, if given. */
export function servedWeights(
  layout: WeightLayout,
  format: WeightFormat,
  gpus: number,
  which: (tensor: Param) => boolean = () => true,
): ServedWeights {
  const byComponent = new Map<Component, Param[]>();
  let bufferValues = 0;
  for (const { tensor, component } of layout.owned) {
    if (!which(tensor)) continue;
    if (tensor.role === 'buffer') bufferValues += tensor.elements;
    else {
      const tensors = byComponent.get(component);
      if (tensors) tensors.push(tensor);
      else byComponent.set(component, [tensor]);
    }
  }
  const parts = [...byComponent].map(([component, tensors]) => ({
    part: component as string,
    bytes: componentBytes(COMPONENTS[component], tensors, layout, format, gpus),
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

/** Rows of the same length are one input. */
function componentBytes(
  label: string,
  tensors: readonly Param[],
  layout: WeightLayout,
  format: WeightFormat,
  gpus: number,
): Figure {
  const { bits, otherBits, source } = WEIGHT_DTYPES[format.dtype];
  const grouped = WEIGHT_DTYPES[format.dtype].usual !== undefined;
  const rowsByLength = new Map<number, number>();
  let others = 0;
  for (const tensor of tensors) {
    const cut = layout.cuts.get(tensor);
    const matrix = grouped ? layout.quantised.get(tensor) : undefined;
    if (matrix === undefined) others += elementsPerGpu(tensor.elements, cut, gpus);
    else {
      const { rows, length, copies } = matrixOfGpu(matrix, cut, gpus);
      rowsByLength.set(length, (rowsByLength.get(length) ?? 0) + rows * copies);
    }
  }
  const group_bits = DTYPES[format.scaleDtype].bits + (format.zeroPoints ? bits : 0);
  const terms = [...rowsByLength.keys()].map((length) => {
    const groups = format.groupSize === 'row' ? '1' : `ceildiv(${length}, ${format.groupSize})`;
    return `rows_of_${length} * ceildiv(${length} * bits + ${groups} * group_bits, 8)`;
  });
  return figure({
    label: `weights: ${label}`,
    unit: 'bytes',
    formula: [...terms, ...(others > 0 ? ['values * other_bits / 8'] : [])].join(' + ') || '0',
    inputs: {
      ...Object.fromEntries([...rowsByLength].map(([length, rows]) => [`rows_of_${length}`, rows])),
      ...(terms.length > 0 ? { bits, group_bits } : {}),
      ...(others > 0 ? { values: others, other_bits: otherBits } : {}),
    },
    source:
      terms.length > 0
        ? `${source}${others > 0 ? `; what is not quantised in ${otherBits} bits` : ''}`
        : `in ${otherBits} bits`,
  });
}

/** What the fullest GPU has of a matrix: as rows and their length. */
function matrixOfGpu({ rows, length, copies }: Matrix, cut: Cut | undefined, gpus: number): Matrix {
  switch (cut?.along) {
    case undefined:
      return { rows, length, copies };
    case 'rows':
      return { rows: shareOf(cut, gpus), length, copies };
    case 'length':
      return { rows, length: shareOf(cut, gpus), copies };
  }
}

/** The weights of a layer's own products. */
function productsIn(layer: Layer): readonly (readonly [Param, Matrix])[] {
  if (layer.kind === 'packedExperts') {
    return [layer.gateUp, layer.down].map((weight) => {
      const [copies = 1, rows = 1, length = 1] = weight.shape;
      return [weight, { rows, length, copies }];
    });
  }
  return isProduct(layer)
    ? [[layer.weight, { rows: outputWidth(layer), length: inputWidth(layer), copies: 1 }]]
    : [];
}
