import { isKind } from './pickle-machine.js';
import type { PickleSource } from './pickle-source.js';
import type { Value } from './values.js';

const MAX_NESTING = 200;

/** A container on the way from the root, and how far its parts have been looked at. */
interface Step {
  readonly container: Value;
  readonly parts: readonly Value[];
  next: number;
  /** Containers on the longest way down from here, itself included. */
  height: number;
}

/**
 * Checks that no container holds itself and that none is nested too deep, so that whoever walks the value
 * later comes to an end. Looks at each container once, however often it is held.
 */
export function checkStructure(root: Value, source: PickleSource): void {
  const heights = new Map<Value, number>();
  const open = new Set<Value>();
  const path: Step[] = [];
  const enter = (container: Value) => {
    const parts = partsOf(container);
    if (parts === undefined) return;
    const known = heights.get(container);
    if (open.has(container)) throw source.refusal('pickle-cycle', 'holds a container in itself');
    if (path.length + (known ?? 1) > MAX_NESTING) {
      throw source.refusal('pickle-nesting', `is nested more than ${MAX_NESTING} deep`);
    }
    if (known === undefined) {
      open.add(container);
      path.push({ container, parts, next: 0, height: 1 });
    } else {
      grow(path.at(-1), known);
    }
  };
  enter(root);
  for (let step = path.at(-1); step; step = path.at(-1)) {
    const part = step.parts[step.next++];
    if (part !== undefined) {
      enter(part);
      continue;
    }
    path.pop();
    open.delete(step.container);
    heights.set(step.container, step.height);
    grow(path.at(-1), step.height);
  }
}

function grow(step: Step | undefined, below: number): void {
  if (step) step.height = Math.max(step.height, below + 1);
}

/** What a container holds; undefined for what is none. */
function partsOf(value: Value): readonly Value[] | undefined {
  if (isKind(value, 'list') || isKind(value, 'tuple')) return value.items;
  if (isKind(value, 'dict')) return [...value.entries.keys(), ...value.entries.values()];
  if (isKind(value, 'set')) return [...value.items];
  if (isKind(value, 'opaque')) return [value.args, value.state ?? null];
  return undefined;
}
