/** Every tensor of a checkpoint that is not as a description says. */
import type { LanguageModel } from '../architecture/layer.js';
import type { Param } from '../architecture/param.js';
import { tensorsOf } from '../architecture/walk.js';
import type { Sameness } from '../checkpoint/sameness.js';
import {
  numbersUnder,
  numberUnder,
  type StoredName,
  type StoredNames,
} from '../checkpoint/stored-names.js';
import { isSameView, type StoredTensor } from '../checkpoint/stored-tensor.js';
import { viewsOf } from '../checkpoint/summary-sharing.js';
import { isSameShape } from '../tensor/shape.js';
import { STORED_DTYPES } from '../tensor/stored-dtype.js';
import type { Fault, FaultKind, Said } from './fault.js';

/** Every tensor of `stored` that is not as `model` describes. */
export function faultsOf(model: LanguageModel, stored: StoredNames, sameness: Sameness): Fault[] {
  const expected = expectedNames(model);
  const layers = new Layers(model, stored);
  return [
    ...tensorsOf(model).flatMap((tensor) => faultsOfTensor(tensor, stored, sameness, layers)),
    ...extras(stored, expected, layers),
    ...wronglyTied(expected, stored),
  ];
}

/** Every name that a state dict of the model may have, aliases included. */
function expectedNames(model: LanguageModel): Map<string, Param> {
  const names = new Map<string, Param>();
  for (const tensor of tensorsOf(model)) {
    for (const name of namesOf(tensor)) names.set(name, tensor);
  }
  return names;
}

export const namesOf = ({ name, aliases }: Param): string[] => [name, ...aliases];

const saidOf = ({ dtype, shape }: StoredTensor): Said => ({ dtype, shape });

function faultsOfTensor(
  tensor: Param,
  stored: StoredNames,
  sameness: Sameness,
  layers: Layers,
): Fault[] {
  const present = namesOf(tensor).flatMap((name) => {
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

/** @param views Those of the right shape. */
function notTied(tensor: Param, views: readonly Present[], sameness: Sameness): Fault[] {
  const [first, ...others] = views;
  if (!first) return [];
  const expected = { shape: tensor.shape, sameAs: first.own };
  return others
    .filter((each) => sameness(first.tensor, each.tensor) === false)
    .map((each) => ({ ...named(each), kind: 'not-tied', expected, found: saidOf(each.tensor) }));
}

interface Present extends StoredName {
  readonly name: string;
}

const named = ({ name, own }: Present) => ({ name, own });

/** Buffers follow from the configuration, and may be left out. */
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
  const found = saidOf(present.tensor);
  const fault = (kind: FaultKind, expected: Said): Fault => ({
    ...named(present),
    kind,
    expected,
    found,
  });
  return [
    ...(isSameShape(shape, tensor.shape) ? [] : [fault('misshapen', { shape: tensor.shape })]),
    ...(STORED_DTYPES[dtype].kind === 'float'
      ? []
      : [fault('wrong-dtype', { shape: tensor.shape, dtype: 'float' })]),
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

/** Whole layers that only one of the two sides has. */
class Layers {
  /** What the names of all layers begin with: `layers`. */
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

  /** The fault of a tensor that is missing with its whole layer. */
  missing(name: string): Fault | undefined {
    const number = this.#numberOf(name);
    if (number === undefined || this.#stored.has(number)) return undefined;
    const kind = number < this.#last ? 'layer-gap' : 'missing-layers';
    return { kind, name, own: name, ...this.#said() };
  }

  /** The fault of a tensor in a layer that is not described. */
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
 * Parameters that the description keeps apart, and that are one storage in the file. Equal values in
 * places of their own are no tie: each layer may start from a copy.
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
