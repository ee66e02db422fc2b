import type { PropertyPath } from '../errors.js';
import { quote } from './quote.js';

/** Keys that a dotted path has as they are; every other key is written `["…"]`. */
const PLAIN_SEGMENT = /^[\p{L}\p{N}_-]+$/u;

/** `model.layers.0.kind`, with odd keys in brackets: `model["a.b"]`. What `--set` accepts. */
export function formatPath(path: PropertyPath): string {
  let text = '';
  for (const segment of path) {
    const key = String(segment);
    if (!PLAIN_SEGMENT.test(key) || key.length > 100) text += `[${quote(key)}]`;
    else text += text === '' ? key : `.${key}`;
  }
  return text;
}

/** The path that a `Rule` or a `Confusion` names; no key of a schema has a dot in it. */
export function splitDotted(dotted: string): string[] {
  return dotted.split('.');
}

/** Whether one of the two paths is above the other, or they are the same. */
export function areRelated(a: PropertyPath, b: PropertyPath): boolean {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) if (String(a[i]) !== String(b[i])) return false;
  return true;
}

/** A key for sets of paths: two paths have the same one when they name the same place. */
export function pathKey(path: PropertyPath): string {
  return JSON.stringify(path.map(String));
}

/** Whether a parsed value is a mapping. */
export function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The value below `value` at `path`, or undefined where the document has none. Own properties only. */
export function valueAt(value: unknown, path: PropertyPath): unknown {
  let at = value;
  for (const segment of path) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, segment)) return undefined;
    at = Reflect.get(at, segment);
  }
  return at;
}

/** Sets an own property, also when its name is `__proto__`. */
export function setOwn(target: object, key: string, value: unknown): void {
  // Plain assignment would call the setter of Object.prototype.
  Object.defineProperty(target, key, {
    value,
    writable: true,
    enumerable: true,
    configurable: true,
  });
}
