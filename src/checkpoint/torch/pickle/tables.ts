import type { Entries, Items, Value } from './values.js';
import { isKind } from './values.js';

/**
 * Entries of a dict from a file. JavaScript hashes numbers and digit strings without a seed, so a file could
 * choose keys that collide and make every look-up slow. Such keys are stored here as strings with a prefix,
 * which are hashed with a seed.
 */
export class Table implements Entries {
  readonly #values = new Map<unknown, Value>();

  constructor(entries: Iterable<[Value, Value]> = []) {
    for (const [key, value] of entries) this.set(key, value);
  }

  get size(): number {
    return this.#values.size;
  }

  has(key: Value): boolean {
    return this.#values.has(slotOf(key));
  }

  get(key: Value): Value | undefined {
    return this.#values.get(slotOf(key));
  }

  set(key: Value, value: Value): void {
    this.#values.set(slotOf(key), value);
  }

  *keys(): Generator<Value> {
    for (const slot of this.#values.keys()) yield keyOf(slot);
  }

  values(): Iterable<Value> {
    return this.#values.values();
  }

  *[Symbol.iterator](): Generator<[Value, Value]> {
    for (const [slot, value] of this.#values) yield [keyOf(slot), value];
  }
}

/** Members of a set from a file. */
export class Members implements Items {
  readonly #table = new Table();

  constructor(items: Iterable<Value> = []) {
    for (const item of items) this.add(item);
  }

  get size(): number {
    return this.#table.size;
  }

  add(item: Value): void {
    this.#table.set(item, null);
  }

  [Symbol.iterator](): Iterator<Value> {
    return this.#table.keys()[Symbol.iterator]();
  }
}

const INTEGER = '#';
const TEXT = '$';

/** Key in the table: one string for all numbers that Python treats as equal (1, 1.0 and True), else the key itself. */
function slotOf(key: Value): unknown {
  if (typeof key === 'boolean') return INTEGER + Number(key);
  if (isKind(key, 'float') && Number.isSafeInteger(key.value)) return INTEGER + key.value;
  if (typeof key === 'number' || typeof key === 'bigint') return `${INTEGER}${key}`;
  return typeof key === 'string' && isSigned(key) ? TEXT + key : key;
}

/** Whether a text begins with one of the two prefixes or a digit. */
function isSigned(text: string): boolean {
  const first = text.charCodeAt(0);
  return first === 0x23 || first === 0x24 || (first >= 0x30 && first <= 0x39);
}

function keyOf(slot: unknown): Value {
  if (typeof slot !== 'string') return slot as Value;
  if (slot.startsWith(TEXT)) return slot.slice(1);
  if (!slot.startsWith(INTEGER)) return slot;
  const number = Number(slot.slice(1));
  return Number.isSafeInteger(number) ? number : BigInt(slot.slice(1));
}
