import { formatInteger } from '../../base/text/units.js';
import { counted } from '../../base/text/words.js';
import { neededTensors, parameterElements } from '../../engine/memory.js';
import type { Layer } from '../../model/architecture/layer.js';
import type { Param } from '../../model/architecture/param.js';
import { idleExpertElements } from '../../model/budget/parameters.js';
import type { CheckFinding } from '../finding.js';
import type { TestContext } from '../test-context.js';

/** Checks that the engine received every shared tensor only once. */
export async function checkCreated(context: TestContext): Promise<CheckFinding> {
  const { elements } = await context.program();
  return judgeElements(context.model, elements);
}

/** @param elements Number of elements that the engine received for `layer`. */
export function judgeElements(layer: Layer, elements: number): CheckFinding {
  const needed = neededTensors(layer);
  const [parameters, buffers] = (['parameter', 'buffer'] as const).map((role) =>
    parameterElements(needed.filter((tensor) => tensor.role === role)),
  ) as [number, number];
  const described = parameters + buffers;
  const measure = { what: 'elements', value: elements, limit: described };
  // An engine may leave out the rows of experts that compute nothing.
  const idle = idleExpertElements(layer);
  if (elements === described || elements === described - idle) {
    const more = buffers > 0 ? `, and ${formatInteger(buffers)} of a buffer` : '';
    const left =
      elements === described
        ? ''
        : ` without the ${formatInteger(idle)} of experts that compute nothing`;
    const received = parameters - (described - elements);
    return {
      verdict: 'passed',
      finding: `the engine received ${counted(received, 'parameter')}${more}, as described${left}`,
      measure,
    };
  }
  const extra = elements - described;
  return {
    verdict: 'failed',
    finding:
      `the engine received ${counted(elements, 'element')}: ${formatInteger(Math.abs(extra))} ` +
      `${extra > 0 ? 'more' : 'fewer'} than the ${formatInteger(described)} described`,
    measure,
    remarks: extra > 0 ? copied(needed, extra) : [],
  };
}

/** Shared tensors whose copies would add this number of elements. */
function copied(tensors: readonly Param[], extra: number): string[] {
  const byHolders = new Map<number, Param[]>();
  for (const tensor of tensors.filter(({ aliases }) => aliases.length > 0)) {
    const { length } = tensor.aliases;
    byHolders.set(length, [...(byHolders.get(length) ?? []), tensor]);
  }
  // Tensors with the same number of other names belong to one layer, and are copied together.
  const groups = [...byHolders.values(), ...tensors.map((tensor) => [tensor])];
  const group = groups.find((each) => {
    const copies = extra / parameterElements(each);
    return Number.isInteger(copies) && copies <= (each[0]?.aliases.length ?? 0);
  });
  if (!group) return [];
  const copies = extra / parameterElements(group);
  const names = group.map(({ name }) => name).join(' and ');
  return [
    `the engine copied ${names}${copies === 1 ? '' : ` ${formatInteger(copies)} times`} instead of sharing`,
  ];
}
