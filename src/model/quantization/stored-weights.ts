/** Size of a model's weights in a quantized checkpoint. */

import { sumOf } from '../../base/values.js';
import type { LanguageModel } from '../architecture/layer.js';
import type { Param } from '../architecture/param.js';
import {
  expertLayers,
  inputWidth,
  isProduct,
  isRouted,
  isTransposedPack,
  outputWidth,
  ownedTensors,
  packedMatrices,
  walk,
} from '../architecture/walk.js';
import { add, div, mul, v } from '../budget/expression.js';
import { type Figure, figure, sumFigure } from '../budget/figure.js';
import { PARTS, type WeightPart } from './layouts.js';
import type { Module, Quantization } from './quantization-config.js';

export interface StoredWeights {
  /** Value of `quant_method`. */
  readonly method: string;
  /** Description for people. */
  readonly label: string;
  /** Bytes by part. */
  readonly parts: readonly {
    /** Part of the stored weights. */
    readonly part: WeightPart | 'notQuantized';
    readonly bytes: Figure;
  }[];
  readonly total: Figure;
}

/** A module, its weight tensor, and the number of matrices in the tensor. */
interface ModuleWeight {
  readonly module: Module;
  readonly tensor: Param;
  readonly copies: number;
}

const isQuantizedBy = (quantization: Quantization, module: Module): boolean =>
  (module.isEmbedding !== true || quantization.takesEmbedding === true) &&
  quantization.isQuantized(module);

/** Bits of each quantized tensor, with its scales. */
export function storedBits(
  model: LanguageModel,
  quantization: Quantization,
): ReadonlyMap<Param, number> {
  const bitsOf = new Map<Param, number>();
  for (const { module, tensor, copies } of modulesOf(model)) {
    if (bitsOf.has(tensor) || !isQuantizedBy(quantization, module)) continue;
    const parts = quantization.layout(module);
    bitsOf.set(tensor, copies * sumOf(parts, ({ elements, bits }) => elements * bits));
  }
  return bitsOf;
}

/** Counts quantized values, scales and other tensors of a quantization, and the weights that stay unquantized. */
export function storedWeights(model: LanguageModel, quantization: Quantization): StoredWeights {
  const { method, label, layout, otherBits, otherType } = quantization;
  const quantized = new Set<Param>();
  const totals = new Map<WeightPart, Map<number, number>>();
  for (const { module, tensor, copies } of modulesOf(model)) {
    if (quantized.has(tensor) || !isQuantizedBy(quantization, module)) continue;
    quantized.add(tensor);
    for (const { part, elements, bits } of layout(module)) {
      if (elements === 0) continue;
      const ofPart = totals.get(part) ?? new Map<number, number>();
      totals.set(part, ofPart.set(bits, (ofPart.get(bits) ?? 0) + elements * copies));
    }
  }
  const left = sumOf(
    ownedTensors(model).filter(
      ({ tensor }) => tensor.role === 'parameter' && !quantized.has(tensor),
    ),
    ({ tensor: { elements } }) => elements,
  );
  const parts = [
    ...[...totals].map(([part, byBits]) => ({
      part,
      bytes: bytesFigure(PARTS[part], byBits, label),
    })),
    {
      part: 'notQuantized' as const,
      bytes: bytesFigure(`unquantized in ${otherType}`, new Map([[otherBits, left]]), otherType),
    },
  ];
  const total = sumFigure(
    'weights as stored',
    'bytes',
    Object.fromEntries(parts.map(({ part, bytes }) => [part, bytes])),
    'sum of the parts',
  );
  return { method, label, parts, total };
}

function bytesFigure(label: string, byBits: ReadonlyMap<number, number>, source: string): Figure {
  const sizes = [...byBits].map(([bits, elements]) =>
    div(mul(v({ [`in_${bits}_bits`]: elements }), bits), 8),
  );
  return figure({ label, unit: 'bytes', formula: add(...sizes), source });
}

/** The modules of each model: one with 256 experts in each of 60 layers has some 50,000, asked for several times. */
const modulesByModel = new WeakMap<LanguageModel, readonly ModuleWeight[]>();

/** Linear modules of a model, and its embedding of tokens. A tied head is that embedding. */
function modulesOf(model: LanguageModel): readonly ModuleWeight[] {
  const known = modulesByModel.get(model);
  if (known) return known;
  const modules = modulesIn(model);
  modulesByModel.set(model, modules);
  return modules;
}

function modulesIn(model: LanguageModel): ModuleWeight[] {
  const { head, embedding } = model;
  const layers = walk(model).map(({ layer }) => layer);
  const mixtures = layers.filter(isRouted);
  const ofExperts = new Set(
    mixtures
      .flatMap(({ experts }) => expertLayers(experts).flatMap(walk))
      .map(({ layer }) => layer),
  );
  const [rows = 0, length = 0] = embedding.weight.shape;
  const ofEmbedding: ModuleWeight = {
    module: {
      ...{ name: embedding.name, rows, length, isEmbedding: true },
      ...{ isTransposed: false, isHead: false, isExpert: false },
    },
    tensor: embedding.weight,
    copies: 1,
  };
  const ofLayers = layers.flatMap((layer): ModuleWeight[] => {
    const { name } = layer;
    const common = { isHead: layer === head, isExpert: ofExperts.has(layer) };
    if (!isProduct(layer)) {
      return packedMatrices(layer).map(({ tensor, copies, rows, length }) => {
        const isTransposed = 'gateUp' in layer && isTransposedPack(layer);
        const module = { name: tensor.name, rows, length, isTransposed, ...common };
        return { module, tensor, copies };
      });
    }
    if (layer.weight === embedding.weight) return [];
    const size = { rows: outputWidth(layer), length: inputWidth(layer) };
    const isTransposed = layer.kind === 'transposedLinear';
    return [
      { module: { name, ...size, isTransposed, ...common }, tensor: layer.weight, copies: 1 },
    ];
  });
  return [ofEmbedding, ...ofLayers];
}
