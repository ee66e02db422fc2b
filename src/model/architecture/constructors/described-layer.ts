/** Constructor of layers that are described and not run. */
import type { Component, Described, DescribedWork, Layer } from '../layer.js';
import { type Param, param } from '../param.js';

interface DescribedParts {
  readonly title: string;
  readonly output: number;
  /** Names and shapes of its own tensors: `sinks`. */
  readonly tensors?: Readonly<Record<string, readonly number[]>>;
  /** Further tensors of its own, with names that do not begin with its path. */
  readonly held?: readonly Param[];
  readonly parts?: readonly Layer[];
  /** Those of its own tensors that are matrices of a product, with the widths of input and output. */
  readonly products?: Readonly<Record<string, readonly [input: number, output: number]>>;
  readonly works?: readonly DescribedWork[];
  readonly component?: Component;
}

/** @throws TypeError for a product of a tensor that it does not hold. */
export function described(name: string, given: DescribedParts): Described {
  const { title, output, tensors = {}, held = [], parts = [], products = {} } = given;
  const own = new Map(
    Object.entries(tensors).map(([leaf, shape]) => [leaf, param(`${name}.${leaf}`, shape)]),
  );
  const multiplied = Object.entries(products).map(([leaf, [input, output]]): DescribedWork => {
    const tensor = own.get(leaf);
    if (tensor === undefined) throw new TypeError(`${name} has no tensor ${leaf}`);
    return { work: 'product', tensor, input, output };
  });
  return {
    kind: 'described',
    name,
    ...(given.component && { component: given.component }),
    title,
    tensors: [...own.values(), ...held],
    parts,
    works: [...multiplied, ...(given.works ?? [])],
    output,
  };
}
