/** Text of tokens that arrive one by one: no half characters, and nothing of a stop string. */
import type { TextTokenizer } from './tokenizer.js';

/** A character whose bytes are not all there yet, or never come. */
const INCOMPLETE = '\ufffd';

/** A character has at most four bytes, and a token at least one: more tokens cannot complete it. */
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

  /** Text that cannot be part of a stop string. */
  #released(): string {
    const held = this.#isStopped
      ? 0
      : Math.max(0, ...this.#stops.map((stop) => this.#overlap(stop)));
    const end = Math.max(this.#given, this.#text.length - held);
    const part = this.#text.slice(this.#given, end);
    this.#given = end;
    return part;
  }

  /** Length of the longest end of the text with which the stop string begins. */
  #overlap(stop: string): number {
    for (let length = Math.min(stop.length - 1, this.#text.length); length > 0; length--) {
      if (this.#text.endsWith(stop.slice(0, length))) return length;
    }
    return 0;
  }
}
