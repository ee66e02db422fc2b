import type { PropertyPath } from '../errors.js';
import { quote } from './quote.js';

/** Keys written plainly in a dotted path; others are written `["…"]`. */
const PLAIN_SEGMENT = /^[\p{L}\p{N}_-]+$/u;

/** `model.layers.0.kind`, with unusual keys in brackets: `model["a.b"]`. `--set` accepts this form. */
export function formatPath(path: PropertyPath): string {
  let text = '';
  for (const segment of path) {
    const key = String(segment);
    if (!PLAIN_SEGMENT.test(key) || key.length > 100) text += `[${quote(key)}]`;
    else text += text === '' ? key : `.${key}`;
  }
  return text;
}

/** Path named by a `Rule` or `Confusion`; schema keys contain no dots. */
export function splitDotted(dotted: string): string[] {
  return dotted.split('.');
}

/** Whether the paths are equal, or one is above the other. */
export function areRelated(a: PropertyPath, b: PropertyPath): boolean {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) if (String(a[i]) !== String(b[i])) return false;
  return true;
}

/** Key for sets of paths; equal for equal paths. */
export function pathKey(path: PropertyPath): string {
  return JSON.stringify(path.map(String));
}

/** Value at `path` below `value`, or undefined if missing. Own properties only. */
export function valueAt(value: unknown, path: PropertyPath): unknown {
  let at = value;
  for (const segment of path) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, segment)) return undefined;
    at = Reflect.get(at, segment);
  }
  return at;
}

/** Sets an own property, even `__proto__`. */
export function setOwn(target: object, key: string, value: unknown): void {
  // Plain assignment would call the setter of Object.prototype.
  Object.defineProperty(target, key, {
    value,
    writable: true,
    enumerable: true,
    configurable: true,
  });
}
