/** How the tensors of a projector are named, and what shapes they have. */
import type { Shape } from '../tensor/shape.js';
import { type AdapterKind, BRANCHES, KINDS } from './projector.js';

export type Branch = (typeof BRANCHES)[number];

/** Sizes of an adapter that the shapes of its tensors are made of: d_t, d_s, and of an elastic one the hidden width. */
export type Size = 'teacher' | 'student' | 'hidden';

interface Part {
  readonly sizes: readonly Size[];
  readonly isOptional?: boolean;
}

/**
 * The tensors of an adapter, in the order of a state dict: v1 is a `Linear`, v2 a `Sequential` of which 0
 * is the norm, 1 and 4 the linear layers; 2 and 3, SiLU and dropout, have no tensors.
 */
export const ADAPTER_PARTS: Readonly<Record<AdapterKind, Readonly<Record<string, Part>>>> = {
  linear: {
    weight: { sizes: ['student', 'teacher'] },
    bias: { sizes: ['student'], isOptional: true },
  },
  elastic: {
    '0.weight': { sizes: ['teacher'] },
    '0.bias': { sizes: ['teacher'] },
    '1.weight': { sizes: ['hidden', 'teacher'] },
    '1.bias': { sizes: ['hidden'] },
    '4.weight': { sizes: ['student', 'hidden'] },
    '4.bias': { sizes: ['student'] },
  },
};

export interface PartName {
  /** The teacher's, with "_" for "." and "-". */
  readonly module: string;
  readonly branch: Branch;
  /** `weight`, `4.bias`. */
  readonly part: string;
  readonly kind: AdapterKind;
}

const NAME = /^projectors\.([^.]+)\.([KV])\.(.+)$/s;

/** What the name of a tensor says; undefined for one that no projector has. */
export function readPartName(name: string): PartName | undefined {
  const [, module, branch, part = ''] = NAME.exec(name) ?? [];
  const kind = KINDS.find((each) => Object.hasOwn(ADAPTER_PARTS[each], part));
  if (module === undefined || kind === undefined) return undefined;
  return { module, branch: BRANCHES.find((each) => each === branch) ?? 'K', part, kind };
}

export const partName = (module: string, branch: Branch, part: string): string =>
  `projectors.${module}.${branch}.${part}`;

/** The sizes that a tensor's shape states; undefined when it has other axes than its part. */
export function sizesIn(
  kind: AdapterKind,
  part: string,
  shape: Shape,
): ReadonlyMap<Size, number> | undefined {
  const sizes = ADAPTER_PARTS[kind][part]?.sizes ?? [];
  if (sizes.length !== shape.length) return undefined;
  return new Map(sizes.map((size, axis) => [size, shape[axis] ?? 0] as const));
}
