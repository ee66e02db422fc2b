/** A Hugging Face tokenizer.json: text to token ids, and back. */
import path from 'node:path';
import vm from 'node:vm';
import { Tokenizer } from '@huggingface/tokenizers';
import { UserError } from '../errors.js';
import { isFolder } from '../files/missing-path.js';
import { readText } from '../files/read-file.js';
import { parseTokenizer } from './parse.js';

/** The largest tokenizers in use have 250,000 tokens, in 35 MB. */
const MAX_TOKENIZER_BYTES = 100_000_000;

/**
 * Time limits in milliseconds: about ten times the need of the library on one slow core, for each million characters
 * of a text and of the file. Only a pattern with exponential backtracking takes longer.
 */
const BASE_LIMIT = 1500;
const PER_MILLION = { text: 10_000, file: 500 } as const;

/** Shortest limit for many texts: in a long run a busy machine can stop the process for seconds. */
const MANY_LIMIT = 60_000;

const SUGGESTION = 'give the tokenizer.json of a model';

export interface TokenizerOptions {
  /** Parsed tokenizer_config.json. */
  readonly config?: Readonly<Record<string, unknown>>;
  /** Whether only text is tokenized: special tokens and decoding are left out, with what a file can do in them. */
  readonly isPlain?: boolean;
  /** Time limit of each call in milliseconds, instead of the one by size. */
  readonly limit?: number | undefined;
}

export class TextTokenizer {
  readonly file: string;
  /** Number of tokens, added ones included. */
  readonly vocabulary: number;
  readonly #tokenizer: Tokenizer;
  readonly #checkText: (text: string) => void;
  readonly #cleansUp: boolean;
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
    this.#cleansUp = config.clean_up_tokenization_spaces === true;
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
      suggestion: SUGGESTION,
      missing: `${SUGGESTION}, or its folder`,
    });
    const { content, vocabulary, checkText } = parseTokenizer(json, file);
    const run = runnerFor(file, json.length, options.limit);
    const own = options.isPlain ? { ...content, post_processor: null, decoder: null } : content;
    const tokenizer = run(0, () => new Tokenizer(own, options.config ?? {}));
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
   * Token ids of many texts, without tokens for their beginning and end. A call for each would spend more time on its time limit than on
   * short texts.
   * @throws UserError as `encode`.
   */
  encodeAll(texts: readonly string[]): number[][] {
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
    return this.#run(known.length, () =>
      this.#tokenizer.decode(known, {
        skip_special_tokens: !special,
        clean_up_tokenization_spaces: this.#cleansUp,
      }),
    );
  }

  /** Text of each token id alone, special tokens included. All are decoded in one call, which starts one timer. */
  decodeEach(ids: readonly number[]): string[] {
    const options = { skip_special_tokens: false, clean_up_tokenization_spaces: this.#cleansUp };
    return this.#run(
      ids.length,
      () =>
        ids.map((id) =>
          this.tokenOf(id) === undefined ? '' : this.#tokenizer.decode([id], options),
        ),
      MANY_LIMIT,
    );
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

/** The file contains regular expressions, and only in a `vm` context can a match be stopped. */
function runnerFor(file: string, size: number, fixed: number | undefined): Runner {
  const context = vm.createContext({ work: undefined });
  const script = new vm.Script('work()');
  return (characters, work, least = 0) => {
    const usual =
      BASE_LIMIT + Math.ceil((PER_MILLION.text * characters + PER_MILLION.file * size) / 1e6);
    const limit = fixed ?? Math.max(least, usual);
    context.work = work;
    try {
      return script.runInContext(context, { timeout: limit });
    } catch (cause) {
      throw failure(file, cause, limit);
    } finally {
      context.work = undefined;
    }
  };
}

function failure(file: string, cause: unknown, limit: number): UserError {
  // An error of the other context is not an instance of this context's Error.
  if ((cause as { code?: unknown } | null)?.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') {
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

/** A tokenizer.json, also where its folder is named. */
export const tokenizerFile = (named: string): string =>
  isFolder(named) ? path.join(named, 'tokenizer.json') : named;
