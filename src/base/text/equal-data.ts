import { isRecord } from './words.js';

/** Whether two values of plain data are equal: the same scalars in the same lists, and under the same keys in any order. */
export function isEqualData(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (Array.isArray(a)) {
    return (
      Array.isArray(b) && a.length === b.length && a.every((each, at) => isEqualData(each, b[at]))
    );
  }
  if (!isRecord(a) || !isRecord(b)) return false;
  const keys = Object.keys(a);
  return (
    keys.length === Object.keys(b).length &&
    keys.every((key) => Object.hasOwn(b, key) && isEqualData(a[key], b[key]))
  );
}
