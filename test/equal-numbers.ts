/** Faster comparison of bytes and lists of numbers, which `toEqual` compares element by element in microseconds each. */
import { expect } from 'vitest';

/**
 * Whether two values with many numbers are equal, for `expect.addEqualityTesters`.
 * @returns Undefined to leave the answer to the usual comparison, as for bits of floats that differ: NaN has several.
 */
export function equalNumbers(a: unknown, b: unknown): boolean | undefined {
  if (ArrayBuffer.isView(a) && ArrayBuffer.isView(b)) return equalBits(a, b) ? true : undefined;
  if (Array.isArray(a) && Array.isArray(b)) return equalLists(a, b) ? true : undefined;
  return undefined;
}

function equalBits(a: ArrayBufferView, b: ArrayBufferView): boolean {
  return a.constructor === b.constructor && bytesOf(a).equals(bytesOf(b));
}

const bytesOf = ({ buffer, byteOffset, byteLength }: ArrayBufferView) =>
  Buffer.from(buffer, byteOffset, byteLength);

/** Whether both lists have the same numbers and nothing else. */
function equalLists(a: readonly unknown[], b: readonly unknown[]): boolean {
  return (
    a.length === b.length &&
    a.constructor === b.constructor &&
    a.every((each, at) => typeof each === 'number' && Object.is(each, b[at])) &&
    hasOnlyItems(a) &&
    hasOnlyItems(b)
  );
}

/** Whether a list has no holes and no other properties. */
const hasOnlyItems = (list: readonly unknown[]) => Object.keys(list).length === list.length;

// Once in a process, whose files share this module and the list of testers.
expect.addEqualityTesters([equalNumbers]);
