/** Compares the tensors of a checkpoint with a model description and lists every difference. */

import type { Shape, StoredDtype } from '../../base/tensor/dtype.js';
import { isSameShape, STORED_DTYPES } from '../../base/tensor/dtype.js';
import type { StoredShapes } from '../../model/architecture/family.js';
import type { LanguageModel } from '../../model/architecture/layer.js';
import type { Param } from '../../model/architecture/param.js';
import { tensorsOf } from '../../model/architecture/walk.js';
import type { StoredName, StoredNames } from '../names.js';
import { numbersUnder, numberUnder } from '../names.js';
import type { TensorEquality } from '../sharing.js';
import { viewsOf } from '../sharing.js';
import type { StoredTensor } from '../stored-tensor.js';
import { isSameView } from '../stored-tensor.js';

// Kinds of differences between a description and a checkpoint.

/** Fault kinds, in the order of the report. */
export const FAULT_KINDS = [
  'missing-layers',
  'layer-gap',
  'extra-layers',
  'missing',
  'extra',
  'misshapen',
  'wrong-dtype',
  'not-tied',
  'tied',
] as const;

export type FaultKind = (typeof FAULT_KINDS)[number];

/** Properties of a tensor on one side, description or checkpoint. */
export interface TensorProperties {
  /** Sizes of the dimensions. @count */
  readonly shape?: Shape;
  /** Element type in the file; `float` where any floating type is meant. */
  readonly dtype?: StoredDtype | 'float' | 'integer';
  /** Another tensor with the same values. */
  readonly sameAs?: string;
  /** Number of layers. @count */
  readonly layers?: number;
}

/** A tensor that differs from its description. */
export interface Fault {
  readonly kind: FaultKind;
  /** Name without wrapper prefixes. */
  readonly name: string;
  /** Name in the file; in the description if the tensor is missing. */
  readonly own: string;
  /** Properties in the description; null if it does not contain the tensor. */
  readonly expected: TensorProperties | null;
  /** Properties in the checkpoint; null if it does not contain the tensor. */
  readonly found: TensorProperties | null;
}

// Shapes and ties found in the tensors of a checkpoint.

/** @param areEqual Whether two tensors hold the same values. */
export function shapesOf(
  stored: StoredNames,
  areEqual: (a: StoredTensor, b: StoredTensor) => boolean,
): StoredShapes {
  return {
    size: stored.size,
    names: () => stored.keys(),
    shapeOf: (name) => stored.get(name)?.tensor.shape,
    numbersUnder: (prefix) => numbersUnder(prefix, stored.keys()),
    areOne: (names) => {
      const first = stored.get(names[0] ?? '')?.tensor;
      return names.every((name) => {
        const tensor = stored.get(name)?.tensor;
        return first !== undefined && tensor !== undefined && areEqual(first, tensor);
      });
    },
  };
}

// Extra tensors of quantized checkpoints.

/** Maps several names to one purpose. */
const purposeOf = (what: string, leaves: readonly string[]): Record<string, string> =>
  Object.fromEntries(leaves.map((leaf) => [leaf, what]));

/** Quantization schemes, by the last name part of a tensor that only these files contain. */
const SCHEMES: Readonly<Record<string, string>> = {
  weight_scale_inv: 'scales of 8-bit floating-point weights',
  ...purposeOf('scales of quantized weights', [
    'weight_scale',
    'weight_scales',
    'weight_scale_2',
    'weight_global_scale',
  ]),
  ...purposeOf('scales of the inputs of quantized weights', [
    'input_scale',
    'input_scale_ub',
    'input_global_scale',
    'activation_scale',
  ]),
  ...purposeOf('scales of a quantized key-value cache', ['k_scale', 'v_scale']),
  SCB: 'scales of 8-bit integer weights (bitsandbytes)',
  weight_format: 'layout of 8-bit integer weights (bitsandbytes)',
  ...purposeOf('scales of 4-bit weights (bitsandbytes)', ['absmax', 'nested_absmax']),
  ...purposeOf('code table of 4-bit weights (bitsandbytes)', ['quant_map', 'nested_quant_map']),
  ...purposeOf('description of 4-bit weights (bitsandbytes)', [
    'bitsandbytes__nf4',
    'bitsandbytes__fp4',
  ]),
  qweight: 'packed weights of GPTQ or AWQ',
  qzeros: 'zero points of GPTQ or AWQ',
  scales: 'scales of GPTQ, AWQ or MLX',
  biases: 'zero points of MLX',
  g_idx: 'groups of GPTQ',
  weight_packed: 'packed weights of compressed-tensors',
  weight_shape: 'shape of packed weights of compressed-tensors',
  weight_g_idx: 'groups of compressed-tensors',
  ...purposeOf('zero points of compressed-tensors', ['weight_zero_point', 'input_zero_point']),
  q_weight: 'packed weights of EXL2',
  ...purposeOf('scales and order of EXL2', [
    ...['q_scale', 'q_scale_max', 'q_groups', 'q_perm', 'q_invperm'],
  ]),
  trellis: 'packed weights of EXL3',
  ...purposeOf('signs and scales of EXL3', ['su', 'sv', 'suh', 'svh', 'mcg', 'mul1']),
  ...purposeOf('codes of AQLM', ['codes', 'codebooks']),
  W_q: 'packed weights of HQQ',
  _weight_qdata: 'quantized weights of torchao',
  _weight_scale: 'scales of torchao',
  _weight_zero_point: 'zero points of torchao',
};

/** Suffixes of names that are not a name part of their own. */
const SUFFIXES: Readonly<Record<string, string>> = {
  _blocks: 'packed weights of MXFP4',
  _scales: 'E8M0 scales of MXFP4',
};

/** Purpose of a tensor in a quantized checkpoint; undefined for others. */
export function quantizedPart(name: string): string | undefined {
  const leaf = name.slice(name.lastIndexOf('.') + 1);
  if (Object.hasOwn(SCHEMES, leaf)) return SCHEMES[leaf];
  const suffix = Object.keys(SUFFIXES).find((each) => leaf.endsWith(each));
  return suffix && SUFFIXES[suffix];
}

/** All tensors in `stored` that differ from the description in `model`. */
export function faultsOf(
  model: LanguageModel,
  stored: StoredNames,
  sameness: TensorEquality,
): Fault[] {
  const expected = expectedNames(model);
  const layers = new Layers(model, stored);
  return [
    ...tensorsOf(model).flatMap((tensor) => faultsOfTensor(tensor, stored, sameness, layers)),
    ...extras(stored, expected, layers),
    ...wronglyTied(expected, stored),
  ];
}

/** All names that a state dict of the model may contain, aliases included. */
function expectedNames(model: LanguageModel): Map<string, Param> {
  const names = new Map<string, Param>();
  for (const tensor of tensorsOf(model)) {
    for (const name of parameterNames(tensor)) names.set(name, tensor);
  }
  return names;
}

export const parameterNames = ({ name, aliases }: Param): string[] => [name, ...aliases];

const saidOf = ({ dtype, shape }: StoredTensor): TensorProperties => ({ dtype, shape });

function faultsOfTensor(
  tensor: Param,
  stored: StoredNames,
  sameness: TensorEquality,
  layers: Layers,
): Fault[] {
  const present = parameterNames(tensor).flatMap((name) => {
    const found = stored.get(name);
    return found ? [{ name, ...found }] : [];
  });
  const [first] = present;
  if (!first) return missing(tensor, layers);
  const views = present.filter((each) => each === first || !isSameView(each.tensor, first.tensor));
  const fitting = views.filter((each) => isSameShape(each.tensor.shape, tensor.shape));
  return [
    ...views.flatMap((each) => formFaults(tensor, each)),
    ...notTied(tensor, fitting, sameness),
  ];
}

/** @param views The views with the right shape. */
function notTied(tensor: Param, views: readonly Present[], sameness: TensorEquality): Fault[] {
  const [first, ...others] = views;
  if (!first) return [];
  const expected = { shape: tensor.shape, sameAs: first.own };
  return others
    .filter((each) => sameness(first.tensor, each.tensor) === false)
    .map((each) => ({
      ...nameFields(each),
      kind: 'not-tied',
      expected,
      found: saidOf(each.tensor),
    }));
}

interface Present extends StoredName {
  readonly name: string;
}

const nameFields = ({ name, own }: Present) => ({ name, own });

/** Buffers are computed from the configuration, so they may be missing. */
function missing(tensor: Param, layers: Layers): Fault[] {
  if (tensor.role === 'buffer') return [];
  const { name, shape } = tensor;
  return [
    layers.missing(name) ?? {
      kind: 'missing',
      name,
      own: name,
      expected: { shape },
      found: null,
    },
  ];
}

function formFaults(tensor: Param, present: Present): Fault[] {
  const { shape, dtype } = present.tensor;
  const kind = tensor.isInteger ? 'integer' : 'float';
  const found = saidOf(present.tensor);
  const fault = (kind: FaultKind, expected: TensorProperties): Fault => ({
    ...nameFields(present),
    kind,
    expected,
    found,
  });
  return [
    ...(isSameShape(shape, tensor.shape) ? [] : [fault('misshapen', { shape: tensor.shape })]),
    ...(STORED_DTYPES[dtype].kind === kind
      ? []
      : [fault('wrong-dtype', { shape: tensor.shape, dtype: kind })]),
  ];
}

function extras(
  stored: StoredNames,
  expected: ReadonlyMap<string, Param>,
  layers: Layers,
): Fault[] {
  return [...stored].flatMap(([name, { own, tensor }]): Fault[] => {
    if (expected.has(name)) return [];
    const found = saidOf(tensor);
    return [layers.extra(name, own) ?? { kind: 'extra', name, own, expected: null, found }];
  });
}

/** Complete layers that only one of the two sides contains. */
class Layers {
  /** Common prefix of all layer names: `layers`. */
  readonly #prefix: string | undefined;
  readonly #described: ReadonlySet<number>;
  readonly #stored: ReadonlySet<number>;
  readonly #last: number;

  constructor(model: LanguageModel, stored: StoredNames) {
    const [first] = model.blocks;
    this.#prefix = first?.name.slice(0, first.name.lastIndexOf('.'));
    const numbers = numbersUnder(this.#prefix ?? '', stored.keys());
    this.#described = new Set(model.blocks.keys());
    this.#stored = new Set(numbers);
    this.#last = numbers.at(-1) ?? -1;
  }

  /** Fault of a tensor whose complete layer is missing. */
  missing(name: string): Fault | undefined {
    const number = this.#numberOf(name);
    if (number === undefined || this.#stored.has(number)) return undefined;
    const kind = number < this.#last ? 'layer-gap' : 'missing-layers';
    return { kind, name, own: name, ...this.#said() };
  }

  /** Fault of a tensor in a layer that is not described. */
  extra(name: string, own: string): Fault | undefined {
    const number = this.#numberOf(name);
    if (number === undefined || this.#described.has(number)) return undefined;
    return { kind: 'extra-layers', name, own, ...this.#said() };
  }

  #numberOf(name: string): number | undefined {
    return this.#prefix === undefined ? undefined : numberUnder(this.#prefix, name);
  }

  #said() {
    return { expected: { layers: this.#described.size }, found: { layers: this.#stored.size } };
  }
}

/**
 * Parameters that are separate in the description and share a storage in the file. Equal values in separate
 * storages are not a tie: each layer may start from a copy.
 */
function wronglyTied(expected: ReadonlyMap<string, Param>, stored: StoredNames): Fault[] {
  const described = [...stored].filter(([name]) => expected.get(name)?.role === 'parameter');
  const views = viewsOf(new Map(described.map(([name, { tensor }]) => [name, tensor])));
  return views.flatMap(({ names: [first, ...others] }) => {
    const sameAs = stored.get(first)?.own;
    return others.flatMap((name): Fault[] => {
      const [other, found] = [expected.get(name), stored.get(name)];
      if (!sameAs || !other || !found || other === expected.get(first)) return [];
      const { own, tensor } = found;
      const said = { ...saidOf(tensor), sameAs };
      return [{ kind: 'tied', name, own, expected: { shape: other.shape }, found: said }];
    });
  });
}
