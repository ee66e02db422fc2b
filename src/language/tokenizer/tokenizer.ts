/** A Hugging Face tokenizer.json: text to token ids, and back. */

import path from 'node:path';
import { Tokenizer } from '@huggingface/tokenizers';
import { UserError } from '../../base/errors.js';
import { isFolder } from '../../base/files/file-system.js';
import { readText } from '../../base/files/read-file.js';
import { TimeLimit, TimeLimitExceeded } from '../../base/files/time-limit.js';
import { setting } from '../../base/text/setting.js';
import { parseTokenizer } from './parse.js';
import { rememberWords } from './remembered-words.js';

/** Maximum bytes of a tokenizer.json. The largest in use have 250,000 tokens in 35 MB. */
const MAX_TOKENIZER_BYTES = 100_000_000;

/**
 * Limits in milliseconds of processor time: about ten times the need of the library on one slow core, for each million
 * characters of a text and of the file. Only a pattern with exponential backtracking takes longer.
 */
const BASE_LIMIT = 1500;
const PER_MILLION = { text: 10_000, file: 500 } as const;

/** Shortest limit for many texts, because short texts take longer per character. */
const MANY_LIMIT = 60_000;

const SUGGESTION = 'give the tokenizer.json of a model';

export interface TokenizerOptions {
  /** Parsed tokenizer_config.json. */
  readonly config?: Readonly<Record<string, unknown>>;
  /** Whether only text is tokenized. Special tokens, decoding and their parts of the file are then skipped. */
  readonly isPlain?: boolean;
  /** Whether the file was found in a folder, as for `readFileAtMost`. */
  readonly isFound?: boolean;
  /** Milliseconds of processor time for each call, instead of the limit by size. */
  readonly limit?: number | undefined;
}

export class TextTokenizer {
  readonly file: string;
  /** Number of tokens, added ones included. */
  readonly vocabulary: number;
  readonly #tokenizer: Tokenizer;
  readonly #checkText: (text: string) => void;
  /** Parsed tokenizer_config.json. */
  readonly config: Readonly<Record<string, unknown>>;
  readonly #run: Runner;

  private constructor(
    file: string,
    vocabulary: number,
    tokenizer: Tokenizer,
    checkText: (text: string) => void,
    { config = {} }: TokenizerOptions,
    run: Runner,
  ) {
    this.file = file;
    this.vocabulary = vocabulary;
    this.#tokenizer = tokenizer;
    this.#checkText = checkText;
    this.config = config;
    this.#run = run;
  }

  /**
   * @param named A tokenizer.json, or its folder.
   * @throws UserError if the file cannot be read, is too large, or is not a tokenizer.
   */
  static async open(named: string, options: TokenizerOptions = {}): Promise<TextTokenizer> {
    const file = tokenizerFile(named);
    const json = await readText(file, {
      most: MAX_TOKENIZER_BYTES,
      isFound: options.isFound ?? file !== named,
      suggestion: SUGGESTION,
      missing: `${SUGGESTION}, or its folder`,
    });
    const { content, vocabulary, checkText } = parseTokenizer(json, file, options.isPlain);
    const run = runnerFor(file, json.length, options.limit);
    const own = options.isPlain ? { ...content, post_processor: null, decoder: null } : content;
    const tokenizer = run(0, () => new Tokenizer(own, options.config ?? {}));
    rememberWords(tokenizer);
    return new TextTokenizer(file, vocabulary, tokenizer, checkText, options, run);
  }

  /**
   * Token ids of a text.
   * @param special Whether to add the tokens of its beginning and end.
   * @throws UserError if it takes too long, or if the tokenizer has no token for a part of the text.
   */
  encode(text: string, { special }: { readonly special: boolean }): number[] {
    if (text === '' && !special) return [];
    this.#checkText(text);
    const ids = this.#run(
      text.length,
      () => this.#tokenizer.encode(text, { add_special_tokens: special }).ids,
    );
    this.#refuseMissing(ids);
    return [...ids];
  }

  /**
   * Token ids of many texts, without tokens for their beginning and end. They share one time limit, because
   * setting one takes longer than tokenizing a short text.
   * @throws UserError as `encode`.
   */
  encodeAll(texts: readonly string[]): number[][] {
    if (texts.length === 0) return [];
    let length = 0;
    for (const text of texts) {
      this.#checkText(text);
      length += text.length;
    }
    const encoded = this.#run(
      length,
      () =>
        texts.map((text) =>
          text === '' ? [] : this.#tokenizer.encode(text, { add_special_tokens: false }).ids,
        ),
      MANY_LIMIT,
    );
    for (const ids of encoded) this.#refuseMissing(ids);
    return encoded;
  }

  /** @throws UserError when a part of a text has no token. */
  #refuseMissing(ids: readonly (number | undefined)[]): void {
    if (!ids.includes(undefined)) return;
    throw new UserError('refused-file', `${this.file} has no token for a part of the text`, {
      suggestion: 'give the tokenizer.json that the model was trained with',
    });
  }

  /**
   * Text of token ids. Ids without a token have no text.
   * @param special Whether to keep special tokens.
   */
  decode(ids: readonly number[], { special }: { readonly special: boolean }): string {
    const known = ids.filter((id) => this.tokenOf(id) !== undefined);
    if (known.length === 0) return '';
    return this.#run(known.length, () => this.#textOf(known, special));
  }

  /** Texts of token ids, each by itself. As with `encodeAll`, they share one time limit. */
  decodeEach(ids: readonly number[], { special }: { readonly special: boolean }): string[] {
    return this.#run(
      ids.length,
      () => ids.map((id) => (this.tokenOf(id) === undefined ? '' : this.#textOf([id], special))),
      MANY_LIMIT,
    );
  }

  #textOf(ids: number[], special: boolean): string {
    return this.#tokenizer.decode(ids, {
      skip_special_tokens: !special,
      clean_up_tokenization_spaces: this.config.clean_up_tokenization_spaces === true,
    });
  }

  /** Token as the file writes it. */
  tokenOf(id: number): string | undefined {
    return this.#tokenizer.id_to_token(id);
  }

  idOf(token: string): number | undefined {
    return this.#tokenizer.token_to_id(token);
  }
}

/** Runs a task of the library within the time limit for a number of characters. */
type Runner = <Result>(characters: number, work: () => Result, least?: number) => Result;

/** The file contains regular expressions, so each use of them has a limit. */
function runnerFor(file: string, size: number, fixed: number | undefined): Runner {
  const timeLimit = new TimeLimit();
  return (characters, work, least = 0) => {
    const usual =
      BASE_LIMIT + Math.ceil((PER_MILLION.text * characters + PER_MILLION.file * size) / 1e6);
    const limit = fixed ?? Math.max(least, usual);
    try {
      return timeLimit.run(limit, work);
    } catch (cause) {
      throw failure(file, cause, limit);
    }
  };
}

function failure(file: string, cause: unknown, limit: number): UserError {
  if (cause instanceof TimeLimitExceeded) {
    const message = `${file} takes more than ${Math.ceil(limit / 100) / 10} s for the text`;
    return new UserError('refused-file', message, {
      cause,
      suggestion: 'give a shorter text, or check the regular expressions in the file',
    });
  }
  // The library throws errors of any kind if a field is missing.
  const why = cause instanceof Error ? cause.message : String(cause);
  return new UserError('refused-file', `${file} is not a tokenizer: ${why}`, {
    suggestion: SUGGESTION,
  });
}

/** Path of a tokenizer.json, given by itself or by its folder. */
export const tokenizerFile = (named: string): string =>
  isFolder(named) ? path.join(named, 'tokenizer.json') : named;

// Text of tokens that arrive one by one, without incomplete characters and stop strings.

/** Replacement for a character whose bytes are incomplete or invalid. */
const INCOMPLETE = '\ufffd';

/** Maximum tokens to wait for: a character has at most four bytes, and a token at least one. */
const MOST_HELD_BACK = 4;

export class TextStream {
  readonly #tokenizer: TextTokenizer;
  readonly #special: boolean;
  readonly #stops: readonly string[];
  readonly #ids: number[];
  /** Tokens from here on are decoded together: some decoders drop the space before the first token. */
  #from: number;
  /** Tokens up to here have been turned into text. */
  #read: number;
  #text = '';
  /** Length of the text that was returned. */
  #given = 0;
  #isStopped = false;

  /**
   * @param before Last tokens before the stream, whose text is not part of it.
   * @param special Whether to keep special tokens.
   * @param stops Strings that end the text.
   */
  constructor(
    tokenizer: TextTokenizer,
    {
      before = [],
      special = false,
      stops = [],
    }: {
      readonly before?: readonly number[];
      readonly special?: boolean;
      readonly stops?: readonly string[];
    } = {},
  ) {
    this.#tokenizer = tokenizer;
    this.#special = special;
    this.#stops = stops.filter((stop) => stop !== '');
    this.#ids = [...before];
    this.#from = 0;
    this.#read = before.length;
  }

  /** All text so far, without a stop string. */
  get text(): string {
    return this.#text;
  }

  /** Whether a stop string was found. Later tokens add nothing. */
  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** Adds a token and returns the text that is certain. */
  add(id: number): string {
    if (this.#isStopped) return '';
    this.#ids.push(id);
    const more = this.#decodedAfter();
    const isHalf = more.endsWith(INCOMPLETE) && this.#ids.length - this.#read < MOST_HELD_BACK;
    if (more === '' || isHalf) return '';
    this.#take(more);
    return this.#released();
  }

  /** Returns the rest of the text. */
  end(): string {
    if (!this.#isStopped) this.#take(this.#decodedAfter());
    const rest = this.#text.slice(this.#given);
    this.#given = this.#text.length;
    return rest;
  }

  #decodedAfter(): string {
    const decode = (end: number) =>
      this.#tokenizer.decode(this.#ids.slice(this.#from, end), { special: this.#special });
    return decode(this.#ids.length).slice(decode(this.#read).length);
  }

  #take(more: string): void {
    this.#from = this.#read;
    this.#read = this.#ids.length;
    // A stop string can begin in the text before.
    const longest = Math.max(0, ...this.#stops.map((stop) => stop.length));
    const searched = Math.max(0, this.#text.length - longest);
    this.#text += more;
    const found = this.#stops
      .map((stop) => this.#text.indexOf(stop, searched))
      .filter((at) => at >= 0);
    if (found.length === 0) return;
    this.#isStopped = true;
    this.#text = this.#text.slice(0, Math.min(...found));
  }

  /** Returns new text that cannot be part of a stop string. */
  #released(): string {
    const held = this.#isStopped
      ? 0
      : Math.max(0, ...this.#stops.map((stop) => this.#overlap(stop)));
    const end = Math.max(this.#given, this.#text.length - held);
    const part = this.#text.slice(this.#given, end);
    this.#given = end;
    return part;
  }

  /** Length of the longest end of the text that is a beginning of the stop string. */
  #overlap(stop: string): number {
    for (let length = Math.min(stop.length - 1, this.#text.length); length > 0; length--) {
      if (this.#text.endsWith(stop.slice(0, length))) return length;
    }
    return 0;
  }
}

// Counts the tokens of a text with a Hugging Face tokenizer.json.

export interface TextMeasure {
  readonly tokenizer: string;
  /** Size of the vocabulary, added tokens included. */
  readonly vocabulary: number;
  readonly tokens: number;
  /** Unicode code points. */
  readonly characters: number;
  /** In UTF-8. */
  readonly bytes: number;
}

/**
 * Maximum bytes of a text. The library tokenizes about 1 MB per second; a part of a longer text gives the same ratio.
 */
const MAX_TEXT_BYTES = 4_000_000;

/**
 * Counts the tokens of a text per tokenizer, without tokens for its beginning and end.
 * @param files Paths of tokenizer.json files.
 * @param limit Milliseconds of processor time per tokenizer, instead of the limit by size of file and text.
 * @throws UserError if a file cannot be read, is too large, or is not a tokenizer, or if the text is empty.
 */
export async function measureText(
  files: readonly string[],
  text: string,
  limit?: number,
): Promise<TextMeasure[]> {
  const read = await readText(text, { most: MAX_TEXT_BYTES, suggestion: 'measure a part of it' });
  const characters = codePointsOf(read);
  if (characters === 0) {
    throw new UserError('refused-file', `${text} is empty`, {
      suggestion: `name a text with ${setting('text')}`,
    });
  }
  const bytes = Buffer.byteLength(read);
  const measures: TextMeasure[] = [];
  for (const file of files) {
    const tokenizer = await TextTokenizer.open(file, { isPlain: true, limit });
    const tokens = tokenizer.encode(read, { special: false }).length;
    const { vocabulary } = tokenizer;
    measures.push({ tokenizer: file, vocabulary, tokens, characters, bytes });
  }
  return measures;
}

function codePointsOf(text: string): number {
  let count = 0;
  for (const _ of text) count++;
  return count;
}
