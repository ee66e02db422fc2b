/** Random choices from a seed: the same seed gives the same mutation everywhere. */
export class Dice {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** From 0 up to 1, by the generator mulberry32. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let word = this.#state;
    word = Math.imul(word ^ (word >>> 15), word | 1);
    word ^= word + Math.imul(word ^ (word >>> 7), word | 61);
    return ((word ^ (word >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number from 0 up to `count`. */
  below(count: number): number {
    return Math.floor(this.next() * count);
  }

  happens(probability: number): boolean {
    return this.next() < probability;
  }

  /** @param items At least one. */
  pick<T>(items: readonly T[]): T {
    const item = items[this.below(items.length)];
    if (item === undefined) throw new RangeError('nothing to pick from');
    return item;
  }
}

type Mutation = (bytes: Buffer, dice: Dice, at: number) => void;

const EXTREMES = [0, 1, 0x7f, 0x80, 0xff] as const;

const IN_PLACE: readonly Mutation[] = [
  (bytes, dice, at) => bytes.writeUInt8(bytes.readUInt8(at) ^ (1 << dice.below(8)), at),
  (bytes, dice, at) => bytes.writeUInt8(dice.pick(EXTREMES), at),
  (bytes, dice, at) => bytes.writeUInt8((bytes.readUInt8(at) + dice.pick([1, 255])) % 256, at),
  (bytes, dice, at) => bytes.copy(bytes, dice.below(bytes.length), at, at + 1 + dice.below(16)),
  (bytes, dice, at) => bytes.subarray(at, at + 1 + dice.below(8)).fill(dice.pick(EXTREMES)),
];

/** The bytes with one small change: bytes changed in place, removed, repeated or cut off at the end. */
export function mutateBytes(bytes: Uint8Array, dice: Dice): Buffer {
  const copy = Buffer.from(bytes);
  if (copy.length === 0) return Buffer.from([dice.below(256)]);
  const at = dice.below(copy.length);
  if (dice.happens(0.8)) {
    dice.pick(IN_PLACE)(copy, dice, at);
    return copy;
  }
  const before = copy.subarray(0, at);
  const rest = copy.subarray(at);
  const length = 1 + dice.below(8);
  const from = dice.below(copy.length);
  return dice.pick([
    () => before,
    () => Buffer.concat([before, rest.subarray(length)]),
    () => Buffer.concat([before, copy.subarray(from, from + length), rest]),
  ])();
}
