/**
 * Seeded random numbers. Each depends only on the seed, a name and its index, by integer arithmetic. Any part can
 * be generated in any order, with the same result on every machine.
 */

type Floats = Float32Array | Float64Array;

/** Fills with uniform numbers between −bound and bound, from index `first` on. */
export function fillKeyedUniform(key: number, first: number, target: Floats, bound: number): void {
  const step = bound * 2 ** -23;
  hashed(key, first, target.length, (hashes, at) => {
    // The 24 bits of a float32, centred between −bound and bound.
    for (let i = 0; i < hashes.length; i++) {
      target[at + i] = (((hashes[i] ?? 0) >>> 8) + 0.5) * step - bound;
    }
  });
}

/** Standard deviation of the sum of four bytes, each of 0 to 255. */
const DEVIATION_OF_BYTES = Math.sqrt((4 * (256 ** 2 - 1)) / 12);

/** Fills with approximately normal numbers from index `first` on: the sum of a hash's four bytes. */
export function fillNormal(key: number, first: number, target: Floats, deviation: number): void {
  const scale = deviation / DEVIATION_OF_BYTES;
  hashed(key, first, target.length, (hashes, at) => {
    for (let i = 0; i < hashes.length; i++) {
      const hash = hashes[i] ?? 0;
      const sum = (hash & 255) + ((hash >>> 8) & 255) + ((hash >>> 16) & 255) + (hash >>> 24);
      target[at + i] = (sum - 510) * scale;
    }
  });
}

const BLOCK = 4096;
const block = new Uint32Array(BLOCK);

/** Hashes of `count` indices from `first` on, in chunks that reuse one buffer. */
function hashed(
  key: number,
  first: number,
  count: number,
  take: (hashes: Uint32Array, at: number) => void,
): void {
  for (let at = 0; at < count; at += BLOCK) {
    const hashes = block.subarray(0, Math.min(BLOCK, count - at));
    fillHashes(key, first + at, hashes);
    take(hashes, at);
  }
}

/** Odd, and near 2^32 divided by the golden ratio, which separates adjacent indices. */
const STRIDE = 0x9e3779b1;

/** Fills with the hashes from index `first` on. */
export function fillHashes(key: number, first: number, target: Uint32Array): void {
  for (let i = 0; i < target.length; i++) {
    const index = first + i;
    // The index has 53 bits; its high part changes the key.
    const high = Math.floor(index / 2 ** 32);
    const own = high === 0 ? key : lowbias32(key ^ lowbias32(high));
    target[i] = lowbias32(own + Math.imul(index >>> 0, STRIDE));
  }
}

/** 32-bit hash (C. Wellons' lowbias32, https://github.com/skeeto/hash-prospector). */
function lowbias32(value: number): number {
  let x = value | 0;
  x = Math.imul(x ^ (x >>> 16), 0x21f0aaad);
  x = Math.imul(x ^ (x >>> 15), 0x735a2d97);
  return (x ^ (x >>> 15)) >>> 0;
}

/** Key of a seed and a name for all other functions: FNV-1a over both. */
export function streamKey(seed: number, name: string): number {
  let key = 0x811c9dc5;
  for (const character of `${seed} ${name}`) {
    key = Math.imul(key ^ (character.codePointAt(0) ?? 0), 0x01000193);
  }
  return lowbias32(key);
}
