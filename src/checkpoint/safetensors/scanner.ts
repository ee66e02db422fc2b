import type { UserError } from '../../errors.js';
import { refusal } from '../rules.js';

/** What helps when bytes are wrong. */
export const SAVE_AGAIN = 'download the file again, or save it again with the safetensors library';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const COMMA = 0x2c;
const ZERO = 0x30;
const NINE = 0x39;
const SPACE = 0x20;
const FIRST_BEYOND_ASCII = 0x80;
/** As long as `data_offsets`. */
const MAX_WORD_BYTES = 12;
const WORDS = 64;
/** Names have a few hundred at most. Whoever shows or sorts them takes many times their bytes. */
const MAX_KEY_BYTES = 2 ** 16;
/** No byte: beyond the end. */
const END = -1;

/** How a collection of members is written. */
interface Collection {
  readonly opening: number;
  readonly closing: number;
  readonly expected: { readonly atStart: string; readonly behindMember: string };
}

export const OBJECT: Collection = {
  opening: 0x7b,
  closing: 0x7d,
  expected: { atStart: '"{"', behindMember: '"," or "}"' },
};

export const ARRAY: Collection = {
  opening: 0x5b,
  closing: 0x5d,
  expected: { atStart: '"["', behindMember: '"," or "]"' },
};

/** The blanks of RFC 8259. */
const isBlank = (byte: number) => byte === SPACE || byte === 0x0a || byte === 0x0d || byte === 0x09;

/** What turns the integer that it follows into another number. */
const isFraction = (byte: number) => byte === 0x2e || byte === 0x45 || byte === 0x65;

/**
 * Reads the tokens of a header that the caller asks for, one after the other, and refuses all others:
 * strict JSON (RFC 8259) whose numbers are non-negative integers. It never reads a value of a kind that
 * the caller did not name, so no nesting in a header can make it recurse.
 *
 * It works on bytes: places are exact, and a name that is kept does not keep the header in memory.
 */
export class HeaderScanner {
  readonly #file: string;
  readonly #bytes: Buffer;
  #position = 0;
  /** Words by a hash of their bytes. */
  readonly #words = new Array<string | undefined>(WORDS);

  /**
   * @param file As the user wrote it.
   * @param bytes A header of valid UTF-8.
   */
  constructor(file: string, bytes: Buffer) {
    this.#file = file;
    this.#bytes = bytes;
  }

  /** Enters a collection. Returns whether it has a first member; if not, it is left again. */
  open({ opening, closing, expected }: Collection): boolean {
    this.#expect(opening, expected.atStart);
    if (this.#nextByte() !== closing) return true;
    this.#position++;
    return false;
  }

  /** Goes on behind a member. Returns whether another one follows; if not, the collection is left. */
  next({ closing, expected }: Collection): boolean {
    const hasNext = this.#nextByte() === COMMA;
    this.#expect(hasNext ? COMMA : closing, expected.behindMember);
    return hasNext;
  }

  /** The key of a member of an object. */
  key(): string {
    const key = this.string(MAX_KEY_BYTES);
    this.#expect(COLON, '":"');
    return key;
  }

  /** @param most Bytes between the quotes that there may be. Longer strings are refused as names. */
  string(most = Number.POSITIVE_INFINITY): string {
    this.#expect(QUOTE, 'a string');
    const bytes = this.#bytes;
    const start = this.#position;
    let position = start;
    let allBits = 0;
    let byte = bytes[position] ?? END;
    while (byte >= SPACE && byte !== QUOTE && byte !== BACKSLASH) {
      allBits |= byte;
      byte = bytes[++position] ?? END;
    }
    if (byte !== QUOTE) return this.#stringWithEscapes(start, position, most);
    if (position - start > most) throw this.#tooLong(start, position);
    this.#position = position + 1;
    if (allBits >= FIRST_BEYOND_ASCII) return bytes.toString('utf8', start, position);
    if (position - start > MAX_WORD_BYTES) return bytes.toString('latin1', start, position);
    return this.#word(start, position);
  }

  /** A non-negative integer that a double holds exactly. */
  integer(): number {
    let byte = this.#nextByte();
    const bytes = this.#bytes;
    const start = this.#position;
    let position = start;
    let value = 0;
    while (byte >= ZERO && byte <= NINE) {
      // Above 2^53 this may round, but it stays above.
      value = value * 10 + (byte - ZERO);
      byte = bytes[++position] ?? END;
    }
    const digits = position - start;
    const isCanonical = digits === 1 || (digits > 1 && bytes[start] !== ZERO);
    if (!isCanonical || value > Number.MAX_SAFE_INTEGER || isFraction(byte)) {
      throw refusal(this.#file, {
        rule: 'st-integer',
        place: place(start),
        message: `expected an integer from 0 to 2^53 − 1 in plain digits, found ${this.#found(start)}`,
        suggestion: SAVE_AGAIN,
      });
    }
    this.#position = position;
    return value;
  }

  /** Checks that only padding is left. */
  end(): void {
    const bytes = this.#bytes;
    let position = this.#position;
    while (bytes[position] === SPACE) position++;
    if (position < bytes.length) {
      throw refusal(this.#file, {
        rule: 'st-padding',
        place: place(position),
        message: `expected nothing but spaces after the closing brace, found ${this.#found(position)}`,
        suggestion: SAVE_AGAIN,
      });
    }
  }

  /** The next byte that is not blank; the position is moved to it. */
  #nextByte(): number {
    let byte = this.#bytes[this.#position] ?? END;
    while (isBlank(byte)) byte = this.#bytes[++this.#position] ?? END;
    return byte;
  }

  #expect(byte: number, wanted: string): void {
    if (this.#nextByte() !== byte) throw this.#unexpected(wanted);
    this.#position++;
  }

  /** A short ASCII string. Names of fields and dtypes come again and again; to find one is quicker than to make it. */
  #word(start: number, end: number): string {
    const bytes = this.#bytes;
    const slot = ((bytes[start] ?? 0) + (bytes[end - 1] ?? 0) * 3 + (end - start) * 5) % WORDS;
    const known = this.#words[slot];
    if (known !== undefined && this.#isAt(known, start, end)) return known;
    const word = bytes.toString('latin1', start, end);
    this.#words[slot] = word;
    return word;
  }

  #isAt(word: string, start: number, end: number): boolean {
    if (word.length !== end - start) return false;
    for (let i = 0; i < word.length; i++) {
      if (word.charCodeAt(i) !== this.#bytes[start + i]) return false;
    }
    return true;
  }

  /**
   * A string that the fast path gave up on.
   * @param start Behind its opening quote.
   * @param odd The first byte that is an escape, a control character or the end.
   */
  #stringWithEscapes(start: number, odd: number, most: number): string {
    const bytes = this.#bytes;
    let end = odd;
    for (let byte = bytes[end] ?? END; byte !== QUOTE; byte = bytes[end] ?? END) {
      if (byte === END) throw this.#unexpected('a closing quote', bytes.length);
      end += byte === BACKSLASH ? 2 : 1;
    }
    if (end - start > most) throw this.#tooLong(start, end);
    const text = unescaped(bytes.toString('utf8', start - 1, end + 1));
    if (text === undefined) {
      const message =
        'the string has a bare control character, or an escape that JSON does not know';
      throw this.#syntaxError(message, start - 1);
    }
    if (LONE_SURROGATE.test(text)) {
      throw refusal(this.#file, {
        rule: 'st-surrogate',
        place: place(start - 1),
        message: 'the string has an escape that is one half of a surrogate pair, without the other',
        suggestion: SAVE_AGAIN,
      });
    }
    this.#position = end + 1;
    return text;
  }

  #tooLong(start: number, end: number): UserError {
    return refusal(this.#file, {
      rule: 'st-name-length',
      place: place(start - 1),
      message: `expected a name of at most ${MAX_KEY_BYTES} bytes, found one of ${end - start}`,
      suggestion: SAVE_AGAIN,
    });
  }

  #unexpected(wanted: string, position = this.#position): UserError {
    return this.#syntaxError(`expected ${wanted}, found ${this.#found(position)}`, position);
  }

  #syntaxError(message: string, position: number): UserError {
    return refusal(this.#file, {
      rule: 'st-header-json',
      place: place(position),
      message,
      suggestion: SAVE_AGAIN,
    });
  }

  /** What stands at `position`: a word or a character. */
  #found(position: number): string {
    const ahead = this.#bytes.toString('utf8', position, position + EXCERPT_BYTES);
    const [found] = /^(?:[\w.+-]+|.)/su.exec(ahead) ?? [];
    return found === undefined ? 'the end of the header' : JSON.stringify(found);
  }
}

const EXCERPT_BYTES = 24;

const LONE_SURROGATE = /\p{Surrogate}/u;

const place = (position: number) => `header byte ${position}`;

/** The value of a JSON string that is given with its quotes; undefined when it is none. */
function unescaped(literal: string): string | undefined {
  try {
    return JSON.parse(literal) as string;
  } catch {
    return undefined;
  }
}
