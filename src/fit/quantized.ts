/**
 * What weights take as they are served: in 32, 16, 8 or 4 bits, with the scales of their groups, whole or cut for
 * several GPUs that share each layer.
 *
 * Quantised are the products with weights inside the blocks, experts included. Embedding, head, norms, routers,
 * convolutions, biases and other vectors stay in 16 bits, as GPTQ (arXiv 2210.17323), AWQ (arXiv 2306.00978),
 * LLM.int8() (arXiv 2208.07339) and DeepSeek-V3 in 8 bits (arXiv 2412.19437, section 3.3) leave them. A group is a run
 * of values within a row, which is what one output multiplies its inputs with; the last group of a row may be shorter
 * and has a scale of its own all the same. A row ends on a whole byte.
 *
 * Cut as Megatron-LM cuts (arXiv 1909.08053): what reads the residual stream by its outputs, what writes to it by its
 * inputs, heads whole, vocabularies by their rows. All else stands whole on each GPU.
 */
import {
  COMPONENTS,
  type Component,
  type LanguageModel,
  type Layer,
  type Projection,
  type Projections,
} from '../architecture/layer.js';
import type { Param } from '../architecture/param.js';
import {
  type OwnedTensor,
  ownedTensors,
  productsOf,
  tensorsOf,
  walk,
} from '../architecture/walk.js';
import { inputWidth, outputWidth } from '../architecture/widths.js';
import { type Figure, figure, sumFigure } from '../budget/figure.js';
import { bufferBytes } from '../budget/parameters.js';
import type { PeakDtype } from '../hardware/gpu.js';
import { DTYPES } from '../tensor/dtype.js';
import type { WeightDtype, WeightFormat } from './serving-setting.js';

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

/** How several GPUs share a matrix. */
interface Cut {
  readonly along: 'rows' | 'length';
  /** Neighbouring runs that are shared each for itself, in units that stay whole. */
  readonly runs: readonly Run[];
}

interface Run {
  readonly size: number;
  readonly unit: number;
}

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
  readonly quantised: ReadonlySet<Param>;
  readonly matrices: ReadonlyMap<Param, Matrix>;
  readonly cuts: ReadonlyMap<Param, Cut>;
}

/** Reads a model once; all else is asked of what this gives. */
export function weightLayout(model: LanguageModel): WeightLayout {
  const cuts = new Map(cutsOf(model));
  const matrices = new Map<Param, Matrix>();
  for (const { layer } of walk(model)) {
    for (const [weight, matrix] of matricesIn(layer)) matrices.set(weight, matrix);
  }
  const inBlocks = model.blocks.flatMap(walk).map(({ layer }) => layer);
  const mixtures = inBlocks.filter((layer) => layer.kind === 'mixtureOfExperts');
  // The gate of the shared experts is as small as a router, and left alone like it.
  const gates = new Set(mixtures.map(({ sharedGate }) => sharedGate?.weight));
  const quantised = inBlocks.flatMap(quantisableIn).filter((weight) => !gates.has(weight));
  const experts = mixtures.flatMap(({ experts }) =>
    ('kind' in experts ? [experts] : experts).flatMap(tensorsOf),
  );
  const { embedding, head } = model;
  const tied = embedding.weight === head.weight;
  return {
    owned: ownedTensors(model),
    lookups: new Set(tied ? [] : [embedding.weight]),
    experts: new Set(experts),
    quantised: new Set(quantised),
    matrices,
    cuts,
  };
}

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
    const { rows, length } = shareOf(tensor, layout, gpus);
    if (grouped && layout.quantised.has(tensor)) {
      rowsByLength.set(length, (rowsByLength.get(length) ?? 0) + rows);
    } else others += rows * length;
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

/** What one GPU has of a tensor, the fullest: as rows and their length. */
function shareOf(
  tensor: Param,
  { matrices, cuts }: WeightLayout,
  gpus: number,
): { readonly rows: number; readonly length: number } {
  const matrix = matrices.get(tensor) ?? { rows: 1, length: tensor.elements, copies: 1 };
  const cut = cuts.get(tensor);
  const share = cut
    ? cut.runs.reduce((total, { size, unit }) => total + unitsOf(size, unit, gpus), 0)
    : undefined;
  const rows = cut?.along === 'rows' && share !== undefined ? share : matrix.rows;
  const length = cut?.along === 'length' && share !== undefined ? share : matrix.length;
  return { rows: rows * matrix.copies, length };
}

/** The largest share of a run: its units are dealt out, and none is divided. */
const unitsOf = (size: number, unit: number, gpus: number) =>
  Math.min(size, unit * Math.ceil(size / unit / gpus));

/** The matrices that a layer itself holds, as they are stored. */
function matricesIn(layer: Layer): readonly (readonly [Param, Matrix])[] {
  const of = (weight: Param, rows = 1, length = 1, copies = 1) =>
    [weight, { rows, length, copies }] as const;
  switch (layer.kind) {
    case 'linear':
    case 'embedding':
    case 'router':
      return [of(layer.weight, ...layer.weight.shape)];
    case 'transposedLinear': {
      const [inputs, outputs] = layer.weight.shape;
      return [of(layer.weight, outputs, inputs)];
    }
    case 'packedExperts':
      return [layer.gateUp, layer.down].map((weight) => {
        const [experts, rows, length] = weight.shape;
        return of(weight, rows, length, experts);
      });
    case 'causalConv': {
      const [channels, , kernel] = layer.weight.shape;
      return [of(layer.weight, channels, kernel)];
    }
    case 'mamba':
      return [of(layer.stateLog, layer.innerSize, layer.stateSize)];
    case 'languageModel':
    case 'hybridBlock':
    case 'sequence':
    case 'residual':
    case 'fusedProjection':
    case 'gatedMlp':
    case 'mixtureOfExperts':
    case 'attention':
    case 'latentAttention':
    case 'layerNorm':
    case 'rmsNorm':
    case 'activation':
    case 'scale':
    case 'softcap':
    case 'learnedPositions':
    case 'rotary':
    case 'alibi':
    case 'srteTable':
    case 'srteLowRank':
    case 'srteSincos':
    case 'alignment':
    case 'gate':
      return [];
  }
}

/** The weights of a layer's own products. */
function quantisableIn(layer: Layer): readonly Param[] {
  if (layer.kind === 'packedExperts') return [layer.gateUp, layer.down];
  return layer.kind === 'linear' || layer.kind === 'transposedLinear' ? [layer.weight] : [];
}

type Cuts = readonly (readonly [Param, Cut])[];

const run = (size: number, unit = 1): Run => ({ size, unit });

const byOutputs = ({ weight }: Projection, runs: readonly Run[]) =>
  [weight, { along: 'rows', runs }] as const;

const byInputs = ({ weight }: Projection, runs: readonly Run[]) =>
  [weight, { along: 'length', runs }] as const;

/** Of several values of one input; each is shared for itself, in whole units. */
function inputCuts(inputs: Projections, unit = 1): Cuts {
  if ('kind' in inputs) {
    return [
      byOutputs(
        inputs.projection,
        inputs.widths.map((width) => run(width, unit)),
      ),
    ];
  }
  return productsOf(inputs).map((product) => byOutputs(product, [run(outputWidth(product), unit)]));
}

/** How the tensors below and with a layer are cut; those that are not named stand whole on each GPU. */
function cutsOf(layer: Layer): Cuts {
  const all = (layers: readonly Layer[]) => layers.flatMap(cutsOf);
  switch (layer.kind) {
    case 'languageModel': {
      const { embedding, head, blocks } = layer;
      const vocabulary = [run(embedding.weight.shape[0] ?? 1)];
      return [
        ...all(blocks),
        [embedding.weight, { along: 'rows', runs: vocabulary }],
        byOutputs(head, [run(outputWidth(head))]),
      ];
    }
    case 'hybridBlock':
      return all([layer.mamba, layer.attention, layer.gate, layer.mlp]);
    case 'residual':
      return all(layer.branches);
    case 'sequence':
      return [...all(layer.layers), ...pairCuts(layer.layers)];
    case 'attention': {
      const width = layer.heads * layer.headDim;
      return [
        ...inputCuts(layer.inputs, layer.headDim),
        byInputs(layer.out, [run(width, layer.headDim)]),
      ];
    }
    case 'latentAttention': {
      const { heads, nopeDim, valueDim, rotary, query } = layer;
      // What comes before the last product of the query is as wide for all heads together.
      const last = query.kind === 'sequence' ? query.layers.at(-1) : query;
      const queryDim = nopeDim + rotary.headDim;
      return [
        ...(last?.kind === 'linear' ? [byOutputs(last, [run(heads * queryDim, queryDim)])] : []),
        byOutputs(layer.keyValueUp, [run(heads * (nopeDim + valueDim), nopeDim + valueDim)]),
        byInputs(layer.out, [run(heads * valueDim, valueDim)]),
      ];
    }
    case 'mamba': {
      const inner = run(layer.innerSize);
      return [
        byOutputs(layer.inProj, [inner, inner]),
        byOutputs(layer.dtProj, [inner]),
        byInputs(layer.xProj, [inner]),
        byInputs(layer.outProj, [inner]),
        [layer.stateLog, { along: 'rows', runs: [inner] }],
        [layer.conv.weight, { along: 'rows', runs: [inner] }],
      ];
    }
    case 'gatedMlp':
      return [...inputCuts(layer.inputs), byInputs(layer.down, [run(inputWidth(layer.down))])];
    case 'mixtureOfExperts': {
      const { experts, shared } = layer;
      return all([...('kind' in experts ? [experts] : experts), ...shared]);
    }
    case 'packedExperts': {
      const inner = run(layer.down.shape[2] ?? 1);
      return [
        [layer.gateUp, { along: 'rows', runs: [inner, inner] }],
        [layer.down, { along: 'length', runs: [inner] }],
      ];
    }
    case 'gate':
      return pairCuts([layer.up, layer.down]);
    case 'embedding':
    case 'linear':
    case 'transposedLinear':
    case 'fusedProjection':
    case 'layerNorm':
    case 'rmsNorm':
    case 'activation':
    case 'scale':
    case 'softcap':
    case 'learnedPositions':
    case 'router':
    case 'causalConv':
    case 'rotary':
    case 'alibi':
    case 'srteTable':
    case 'srteLowRank':
    case 'srteSincos':
    case 'alignment':
      return [];
  }
}

/** Two products one after the other: the first by its outputs, the second by the same as its inputs. */
function pairCuts(layers: readonly Layer[]): Cuts {
  const products = layers.filter(
    (layer): layer is Projection => layer.kind === 'linear' || layer.kind === 'transposedLinear',
  );
  const [first, second] = products;
  if (products.length !== 2 || first === undefined || second === undefined) return [];
  return [byOutputs(first, [run(outputWidth(first))]), byInputs(second, [run(inputWidth(second))])];
}
