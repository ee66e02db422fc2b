/**
 * Duplicates among texts, in one pass and bounded memory: equal ones by a hash, similar ones by MinHash (Broder 1997) with
 * locality-sensitive hashing (Leskovec, Rajaraman and Ullman, Mining of Massive Datasets, chapter 3).
 */
import { createHash } from 'node:crypto';

/** A text that repeats an earlier one. */
export interface Duplicate<Place> {
  readonly place: Place;
  readonly first: Place;
  /** Estimated Jaccard similarity; 1 for an equal text. */
  readonly similarity: number;
}

/** Hash values and rows of a band. 12 bands of 5 find 99% of pairs with a similarity of 0.8, 1 − (1 − 0.8⁵)¹². */
const [BANDS, ROWS] = [12, 5];
const HASHES = BANDS * ROWS;

/** Characters of a shingle. */
const SHINGLE = 5;

/**
 * Maximum number of texts whose hashes are kept: 32 bytes for exact duplicates, about 270 for near ones. Later texts
 * are only compared with them.
 */
const MOST_EXACT = 4_000_000;
const MOST_NEAR = 500_000;

/** Texts by 64 bits of a hash, with open addressing. */
class HashTable {
  #high = new Uint32Array(1024);
  #low = new Uint32Array(1024);
  #values = new Float64Array(1024).fill(-1);
  #count = 0;
  readonly #most: number;

  constructor(most: number) {
    this.#most = most;
  }

  get isFull(): boolean {
    return this.#count >= this.#most;
  }

  /** The value of a hash; -1 for a new one, which is kept with `value` unless the table is full. */
  findOrAdd(high: number, low: number, value: number): number {
    let at = this.#placeOf(high, low);
    const found = this.#values[at] as number;
    if (found >= 0 || this.isFull) return found;
    if (this.#count * 2 >= this.#values.length) {
      this.#grow();
      at = this.#placeOf(high, low);
    }
    this.#high[at] = high;
    this.#low[at] = low;
    this.#values[at] = value;
    this.#count++;
    return -1;
  }

  #placeOf(high: number, low: number): number {
    const mask = this.#values.length - 1;
    let at = low & mask;
    while (
      (this.#values[at] as number) >= 0 &&
      (this.#high[at] !== high || this.#low[at] !== low)
    ) {
      at = (at + 1) & mask;
    }
    return at;
  }

  #grow(): void {
    const [high, low, values] = [this.#high, this.#low, this.#values];
    this.#high = new Uint32Array(high.length * 2);
    this.#low = new Uint32Array(high.length * 2);
    this.#values = new Float64Array(high.length * 2).fill(-1);
    for (let index = 0; index < values.length; index++) {
      const value = values[index] as number;
      if (value < 0) continue;
      const at = this.#placeOf(high[index] as number, low[index] as number);
      this.#high[at] = high[index] as number;
      this.#low[at] = low[index] as number;
      this.#values[at] = value;
    }
  }
}

/** Finds equal and similar texts. */
export class DuplicateFinder<Place> {
  readonly #exact = new HashTable(MOST_EXACT);
  readonly #bands = Array.from({ length: BANDS }, () => new HashTable(MOST_NEAR));
  /** The low byte of each hash value of each kept text (b-bit minwise hashing, Li and König 2010). */
  #bytes = new Uint8Array(1024 * HASHES);
  readonly #kept: number[] = [];
  readonly #threshold: number;
  readonly #encode: (place: Place) => number;
  readonly #decode: (value: number) => Place;
  /** Texts that were compared with kept ones only. */
  unkept = 0;

  /** @param threshold Smallest similarity of near duplicates. @param encode A place as a number below 2^53. */
  constructor(
    threshold: number,
    encode: (place: Place) => number,
    decode: (value: number) => Place,
  ) {
    this.#threshold = threshold;
    this.#encode = encode;
    this.#decode = decode;
  }

  /** The earlier text that this one repeats. */
  add(text: string, place: Place): Duplicate<Place> | undefined {
    const digest = createHash('sha1').update(text, 'utf8').digest();
    const value = this.#encode(place);
    const equal = this.#exact.findOrAdd(digest.readUInt32LE(0), digest.readUInt32LE(4), value);
    if (equal >= 0) return { place, first: this.#decode(equal), similarity: 1 };
    if (text.length < SHINGLE) return undefined;
    return this.#addNear(text, place, value);
  }

  #addNear(text: string, place: Place, value: number): Duplicate<Place> | undefined {
    signatureOf(text);
    const isFull = this.#kept.length >= MOST_NEAR;
    if (isFull) this.unkept++;
    const own = this.#kept.length;
    let best = -1;
    let bestMatch = 0;
    for (let band = 0; band < BANDS; band++) {
      let [high, low] = [0, band];
      for (let row = 0; row < ROWS; row++) {
        const hash = signature[band * ROWS + row] as number;
        high = Math.imul(high ^ hash, 0x9e3779b1);
        low = Math.imul(low + hash, 0x85ebca6b) ^ (low >>> 13);
      }
      const found = (this.#bands[band] as HashTable).findOrAdd(high >>> 0, low >>> 0, own);
      if (found < 0 || found === own || found === best) continue;
      const match = this.#similarity(found);
      if (match > bestMatch) [best, bestMatch] = [found, match];
    }
    if (!isFull) this.#keep(value);
    if (bestMatch < this.#threshold) return undefined;
    return { place, first: this.#decode(this.#kept[best] as number), similarity: bestMatch };
  }

  #keep(value: number): void {
    const start = this.#kept.length * HASHES;
    if (start + HASHES > this.#bytes.length) {
      const larger = new Uint8Array(this.#bytes.length * 2);
      larger.set(this.#bytes);
      this.#bytes = larger;
    }
    for (let index = 0; index < HASHES; index++) {
      this.#bytes[start + index] = signature[index] as number;
    }
    this.#kept.push(value);
  }

  /** Jaccard similarity from the shares of equal bytes, without those that are equal by chance. */
  #similarity(kept: number): number {
    let equal = 0;
    for (let index = 0; index < HASHES; index++) {
      if (this.#bytes[kept * HASHES + index] === ((signature[index] as number) & 0xff)) equal++;
    }
    return Math.max(0, (equal / HASHES - 1 / 256) / (1 - 1 / 256));
  }
}

const signature = new Uint32Array(HASHES);
const EMPTY = 0xffffffff;

/** Order in which bins are tried to fill an empty bin, the same for all texts. */
const DONORS = Array.from({ length: HASHES }, (_, bin) =>
  Uint8Array.from({ length: 16 * HASHES }, (_, attempt) =>
    binOf(murmurMix(bin * 8191 + attempt + 1)),
  ),
);

/** Murmur3's final mix of 32 bits. */
function murmurMix(value: number): number {
  let hash = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

function binOf(hash: number): number {
  return Math.floor((hash / 2 ** 32) * HASHES);
}

/**
 * Writes the hash values of a text into `signature`: for each bin, the smallest hash of its shingles (one permutation
 * hashing, Li, Owen and Zhang 2012). An empty bin takes the value of another (Shrivastava 2017).
 */
function signatureOf(text: string): void {
  signature.fill(EMPTY);
  const last = text.length - SHINGLE;
  for (let at = 0; at <= last; at++) {
    let hash = 0;
    for (let unit = 0; unit < SHINGLE; unit++) {
      hash = Math.imul(hash ^ text.charCodeAt(at + unit), 0x01000193);
      hash ^= hash >>> 15;
    }
    hash = murmurMix(hash);
    const bin = binOf(hash);
    const value = Math.imul(hash, 0x9e3779b1) >>> 0;
    if (value < (signature[bin] as number)) signature[bin] = value;
  }
  const isFilled = Uint8Array.from(signature, (value) => (value === EMPTY ? 0 : 1));
  for (let bin = 0; bin < HASHES; bin++) {
    if (isFilled[bin] === 1) continue;
    const donor = (DONORS[bin] as Uint8Array).find((each) => isFilled[each] === 1) ?? 0;
    signature[bin] = signature[donor] as number;
  }
}
