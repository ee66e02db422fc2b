/** What can be wrong between a description and a checkpoint. */
import type { Shape } from '../tensor/shape.js';
import type { StoredDtype } from '../tensor/stored-dtype.js';

/** In the order in which they are told. */
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

/** What one side says of a tensor. */
export interface Said {
  readonly shape?: Shape;
  readonly dtype?: StoredDtype | 'float';
  /** Another tensor that has the same values. */
  readonly sameAs?: string;
  /** How many layers there are. */
  readonly layers?: number;
}

/** One tensor that is not as described. */
export interface Fault {
  readonly kind: FaultKind;
  /** Without prefixes of wrappers. */
  readonly name: string;
  /** As the file names it; as the description does when it is missing. */
  readonly own: string;
  /** What the description says; null when it does not know the tensor. */
  readonly expected: Said | null;
  /** What the checkpoint says; null when it does not have the tensor. */
  readonly found: Said | null;
}
