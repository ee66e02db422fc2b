/**
 * A strict JSON reader (RFC 8259) for safetensors headers, shard indexes and adapter configs. It works on bytes, so that errors
 * have exact positions and a name does not keep the text in memory.
 */
import type { UserError } from '../base/errors.js';
import { parseJson } from '../base/text/json.js';
import type { CheckpointRule } from './checkpoint-rules.js';
import { quoted, refusal } from './checkpoint-rules.js';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const COMMA = 0x2c;
const ZERO = 0x30;
const NINE = 0x39;
const SPACE = 0x20;
const FIRST_BEYOND_ASCII = 0x80;
/** Length of `data_offsets`, the longest word to cache. */
const MAX_WORD_BYTES = 12;
const WORDS = 64;
/** Not a byte: the end of the text. */
const END = -1;

/** Rules of a file format; absent ones do not apply. */
export interface JsonRules {
  readonly syntax: CheckpointRule;
  readonly integer?: CheckpointRule;
  /** Only spaces may follow the value; without this rule, any whitespace. */
  readonly padding?: CheckpointRule;
  readonly loneSurrogate?: CheckpointRule;
  readonly keyBytes?: { readonly rule: CheckpointRule; readonly most: number };
  readonly depth?: {
    readonly rule: CheckpointRule;
    readonly most: number;
    readonly message: string;
  };
  readonly keys?: { readonly rule: CheckpointRule; readonly most: number };
  readonly repeatedKey?: CheckpointRule;
  /** Whether numbers can be words, as Python writes them: NaN, Infinity, -Infinity. */
  readonly hasNumberWords?: true;
}

export interface JsonText {
  /** The path as the user wrote it. */
  readonly file: string;
  /** Valid UTF-8. */
  readonly bytes: Buffer;
  /** Prefix of positions in errors: `header` gives `header byte 312`. */
  readonly part?: string;
  readonly rules: JsonRules;
  /** Suggestion when the text is not valid; by default the one of the rule. */
  readonly suggestion?: string;
  /** Suggestion when the text nests too deep or has too many keys. */
  readonly otherFile?: string;
}

/** A JSON value; objects are maps. */
export type JsonValue =
  | null
  | boolean
  | number
  | string
  | readonly JsonValue[]
  | ReadonlyMap<string, JsonValue>;

/** Syntax of an array or object. */
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

/** Whitespace of RFC 8259. */
const isBlank = (byte: number) => byte === SPACE || byte === 0x0a || byte === 0x0d || byte === 0x09;

/** Whether the byte continues an integer as a fraction or exponent. */
const isFraction = (byte: number) => byte === 0x2e || byte === 0x45 || byte === 0x65;

/**
 * Reads the tokens that the caller expects, one after the other, and rejects all others. Only `value` reads any
 * JSON value, with a limit on the depth.
 */
export class JsonScanner {
  readonly #text: JsonText;
  readonly #bytes: Buffer;
  #position = 0;
  #keys = 0;
  /** Cache of words by a hash of their bytes. */
  readonly #words = new Array<string | undefined>(WORDS);

  constructor(text: JsonText) {
    this.#text = text;
    this.#bytes = text.bytes;
  }

  /** Enters a collection. Returns whether it has a member; if not, leaves it. */
  open({ opening, closing, expected }: Collection): boolean {
    this.#expect(opening, expected.atStart);
    if (this.#nextByte() !== closing) return true;
    this.#position++;
    return false;
  }

  /** Moves past a member. Returns whether another one follows; if not, leaves the collection. */
  next({ closing, expected }: Collection): boolean {
    const hasNext = this.#nextByte() === COMMA;
    this.#expect(hasNext ? COMMA : closing, expected.behindMember);
    return hasNext;
  }

  key(): string {
    const key = this.string(this.#text.rules.keyBytes?.most);
    this.#expect(COLON, '":"');
    return key;
  }

  /** @param most Maximum bytes between the quotes; a longer string is rejected as a name. */
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

  /** Reads any JSON value. */
  value(depth = 0): JsonValue {
    const byte = this.#nextByte();
    if (byte === QUOTE) return this.string();
    if (byte === OBJECT.opening) return this.#object(depth + 1);
    if (byte === ARRAY.opening) return this.#array(depth + 1);
    const { hasNumberWords } = this.#text.rules;
    const ahead = this.#bytes.toString('latin1', this.#position, this.#position + LONGEST_NUMBER);
    const [word] = WORD.exec(ahead) ?? (hasNumberWords && NUMBER_WORD.exec(ahead)) ?? [];
    if (word === undefined) throw this.#unexpected('a value');
    this.#position += word.length;
    return parseJson(word) as null | boolean | number;
  }

  #object(depth: number): ReadonlyMap<string, JsonValue> {
    this.#checkDepth(depth);
    const { keys, repeatedKey } = this.#text.rules;
    const members = new Map<string, JsonValue>();
    for (let more = this.open(OBJECT); more; more = this.next(OBJECT)) {
      this.#nextByte();
      const start = this.#position;
      const key = this.key();
      if (keys && ++this.#keys > keys.most) {
        throw this.#refusal(
          keys.rule,
          start,
          `has more than ${keys.most} keys`,
          this.#text.otherFile,
        );
      }
      if (repeatedKey && members.has(key)) {
        throw this.#refusal(repeatedKey, start, `has the key ${quoted(key)} twice in one object`);
      }
      members.set(key, this.value(depth));
    }
    return members;
  }

  #array(depth: number): readonly JsonValue[] {
    this.#checkDepth(depth);
    const members: JsonValue[] = [];
    for (let more = this.open(ARRAY); more; more = this.next(ARRAY))
      members.push(this.value(depth));
    return members;
  }

  #checkDepth(reached: number): void {
    const { depth } = this.#text.rules;
    if (depth === undefined || reached <= depth.most) return;
    throw this.#refusal(depth.rule, this.#position, depth.message, this.#text.otherFile);
  }

  /** Reads a non-negative integer that a double represents exactly. */
  integer(): number {
    let byte = this.#nextByte();
    const bytes = this.#bytes;
    const start = this.#position;
    let position = start;
    let value = 0;
    while (byte >= ZERO && byte <= NINE) {
      // Above 2^53 this may round, but it stays above 2^53.
      value = value * 10 + (byte - ZERO);
      byte = bytes[++position] ?? END;
    }
    const digits = position - start;
    const isCanonical = digits === 1 || (digits > 1 && bytes[start] !== ZERO);
    if (!isCanonical || value > Number.MAX_SAFE_INTEGER || isFraction(byte)) {
      throw this.#refusal(
        this.#text.rules.integer,
        start,
        `expected an integer from 0 to 2^53 − 1 in plain digits, found ${this.#found(start)}`,
      );
    }
    this.#position = position;
    return value;
  }

  /** Checks that only padding is left. */
  end(): void {
    const { padding } = this.#text.rules;
    const bytes = this.#bytes;
    if (padding === undefined) this.#nextByte();
    else while (bytes[this.#position] === SPACE) this.#position++;
    const position = this.#position;
    if (position === bytes.length) return;
    const expected = padding
      ? 'nothing but spaces after the closing brace'
      : 'nothing after the value';
    throw this.#refusal(padding, position, `expected ${expected}, found ${this.#found(position)}`);
  }

  /** Skips whitespace and returns the next byte. */
  #nextByte(): number {
    let byte = this.#bytes[this.#position] ?? END;
    while (isBlank(byte)) byte = this.#bytes[++this.#position] ?? END;
    return byte;
  }

  #expect(byte: number, expected: string): void {
    if (this.#nextByte() !== byte) throw this.#unexpected(expected);
    this.#position++;
  }

  /** A short ASCII string. Field names and dtypes repeat, and a cache hit is faster than a new string. */
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
   * Reads a string that the fast path cannot read.
   * @param start Position after its opening quote.
   * @param odd Position of the first byte that is an escape, a control character or the end.
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
    const { loneSurrogate } = this.#text.rules;
    if (loneSurrogate && LONE_SURROGATE.test(text)) {
      throw this.#refusal(
        loneSurrogate,
        start - 1,
        'the string has an escape that is one half of a surrogate pair, without the other',
      );
    }
    this.#position = end + 1;
    return text;
  }

  #tooLong(start: number, end: number): UserError {
    const { rule, most } = this.#text.rules.keyBytes ?? {};
    return this.#refusal(
      rule,
      start - 1,
      `expected a name of at most ${most} bytes, found one of ${end - start}`,
    );
  }

  #unexpected(expected: string, position = this.#position): UserError {
    return this.#syntaxError(`expected ${expected}, found ${this.#found(position)}`, position);
  }

  #syntaxError(message: string, position: number): UserError {
    return this.#refusal(undefined, position, message);
  }

  /** @param rule The syntax rule, unless another rule is violated. */
  #refusal(
    rule: CheckpointRule | undefined,
    position: number,
    message: string,
    suggestion = this.#text.suggestion,
  ) {
    const { file, part, rules } = this.#text;
    const place = `${part === undefined ? '' : `${part} `}byte ${position}`;
    return refusal(file, { rule: rule ?? rules.syntax, place, message, suggestion });
  }

  /** The word or character at `position`, for errors. */
  #found(position: number): string {
    const ahead = this.#bytes.toString('utf8', position, position + EXCERPT_BYTES);
    const [found] = /^(?:[\w.+-]+|.)/su.exec(ahead) ?? [];
    return found === undefined
      ? `the end of the ${this.#text.part ?? 'text'}`
      : JSON.stringify(found);
  }
}

const EXCERPT_BYTES = 24;

/** Far longer than any number that a program writes. */
const LONGEST_NUMBER = 400;

/** A literal, or a number of RFC 8259. */
const WORD = /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?)(?![\w.+-])/;

const NUMBER_WORD = /^(?:NaN|-?Infinity)(?![\w.+-])/;

const LONE_SURROGATE = /\p{Surrogate}/u;

/** Decodes a JSON string given with its quotes; undefined if it is not valid. */
function unescaped(literal: string): string | undefined {
  try {
    return JSON.parse(literal) as string;
  } catch {
    return undefined;
  }
}
