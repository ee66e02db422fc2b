/**
 * MT19937: Matsumoto and Nishimura, Mersenne Twister, ACM TOMACS 8 (1998), 3–30; seeded as in their code of 2002.
 */

const WORDS = 624;
const MIDDLE = 397;
const UPPER = 0x80000000;
const LOWER = 0x7fffffff;
const MATRIX = 0x9908b0df;

/** Sequence of 32-bit draws. */
export class MersenneTwister {
  readonly #seed: number;
  readonly #state = new Int32Array(WORDS);
  /** Number of words drawn from the state. */
  #used = WORDS;
  #position = 0;

  /** @param seed Only its low 32 bits are used. */
  constructor(seed: number) {
    this.#seed = seed | 0;
    this.#restart();
  }

  /** Number of draws so far. */
  get position(): number {
    return this.#position;
  }

  /** Fills with the next draws, as signed words. */
  fill(target: Int32Array): void {
    for (let at = 0; at < target.length; ) {
      if (this.#used === WORDS) this.#twist();
      const count = Math.min(WORDS - this.#used, target.length - at);
      temper(this.#state, this.#used, count, target, at);
      this.#used += count;
      at += count;
    }
    this.#position += target.length;
  }

  /**
   * Moves to the draw at `position`. Skipping forward costs about a third of drawing; going back restarts from the
   * seed.
   */
  seek(position: number): void {
    if (position < this.#position) this.#restart();
    let rest = position - this.#position;
    while (rest > 0) {
      if (this.#used === WORDS) this.#twist();
      const count = Math.min(WORDS - this.#used, rest);
      this.#used += count;
      rest -= count;
    }
    this.#position = position;
  }

  #restart(): void {
    const state = this.#state;
    let word = this.#seed;
    state[0] = word;
    for (let i = 1; i < WORDS; i++) {
      word = (Math.imul(word ^ (word >>> 30), 1812433253) + i) | 0;
      state[i] = word;
    }
    this.#used = WORDS;
    this.#position = 0;
  }

  #twist(): void {
    const state = this.#state;
    let word = state[0] ?? 0;
    for (let i = 0; i < WORDS; i++) {
      const next = state[i + 1 < WORDS ? i + 1 : 0] ?? 0;
      const far = state[i < WORDS - MIDDLE ? i + MIDDLE : i + MIDDLE - WORDS] ?? 0;
      const mixed = (word & UPPER) | (next & LOWER);
      state[i] = far ^ (mixed >>> 1) ^ (-(next & 1) & MATRIX);
      word = next;
    }
    this.#used = 0;
  }
}

/** `count` tempered output words of the state, from `from` on. */
function temper(
  state: Int32Array,
  from: number,
  count: number,
  target: Int32Array,
  at: number,
): void {
  for (let i = 0; i < count; i++) {
    let word = state[from + i] ?? 0;
    word ^= word >>> 11;
    word ^= (word << 7) & 0x9d2c5680;
    word ^= (word << 15) & 0xefc60000;
    target[at + i] = word ^ (word >>> 18);
  }
}
