/** Figures and names of groups of tensors, in reports about weights. */
import { runsText } from '../../base/text/words.js';
import type { TensorGroup } from '../../checkpoint/summary.js';

/** Total of a figure over all layers of a group. */
export const groupTotal = (group: TensorGroup, figure: 'tensors' | 'elements' | 'bytes'): number =>
  group[figure] * Math.max(1, group.layers?.length ?? 1);

/** `layers.0–31`, `layers.0, 2–5`, `embed`. */
export function groupName({ name, layers }: TensorGroup): string {
  if (layers === undefined) return name;
  return `${name === '' ? '' : `${name}.`}${runsText(layers)}`;
}

/** The largest groups, in their own order. */
export function largestGroups(groups: readonly TensorGroup[], most: number): TensorGroup[] {
  const largest = groups.toSorted((a, b) => groupTotal(b, 'bytes') - groupTotal(a, 'bytes'));
  const shown = new Set(largest.slice(0, most));
  return groups.filter((group) => shown.has(group));
}
