/** Table of all accelerators. */
import { nearest } from '../config/nearest.js';
import { quote } from '../config/quote.js';
import { UserError } from '../errors.js';
import { APPLE } from './apple.js';
import { GEFORCE } from './geforce.js';
import type { Gpu } from './gpu.js';
import { NVIDIA_DATA_CENTER } from './nvidia-data-center.js';
import { NVIDIA_WORKSTATION } from './nvidia-workstation.js';
import { OTHER_MAKERS } from './other-makers.js';

export const GPUS: readonly Gpu[] = [
  ...NVIDIA_DATA_CENTER,
  ...NVIDIA_WORKSTATION,
  ...GEFORCE,
  ...OTHER_MAKERS,
  ...APPLE,
];

/**
 * GPU by name; a user's file precedes the table.
 * @throws UserError with the nearest name if there is none.
 */
export function gpuNamed(name: string, more: readonly Gpu[] = []): Gpu {
  const found = [...more, ...GPUS].find((gpu) => gpu.name === name);
  if (found) return found;
  throw new UserError('usage', `${quote(name)} is no GPU that is known here`, {
    suggestion: nameSuggestion(name, [...more, ...GPUS]),
  });
}

/** Suggestion for an unknown name. */
export function nameSuggestion(name: string, among: readonly { readonly name: string }[]): string {
  const names = among.map((each) => each.name);
  // A prefix such as `h100` has several matches, none of them close in spelling.
  const longer = names.filter((each) => each.startsWith(`${name.toLowerCase()}-`));
  if (longer.length > 1) return `write one of ${longer.join(', ')}`;
  const [only = nearest(name, names)] = longer;
  return only ? `did you mean ${only}?` : 'see minimind fit --list-gpus';
}
