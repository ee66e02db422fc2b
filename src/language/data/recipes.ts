/**
 * Training samples as made by the dataset classes of MiniMind (`lm_dataset.py` in jingyaogong/minimind). Their random
 * parts are fixed to the likelier case: no system prompt is added, and empty thinking is removed.
 */
import { UserError, usageError } from '../../base/errors.js';
import { setting } from '../../base/text/setting.js';
import { counted, joined } from '../../base/text/words.js';
import type { ModelText } from '../tokenizer/model-text.js';
import type { TextTokenizer } from '../tokenizer/tokenizer.js';
import type { Place } from './lines.js';

/** Rules of the dataset classes of one period. */
interface Recipe {
  readonly source: string;
  /** Whether a text gets the tokens of its beginning and end. */
  readonly addsEnds: boolean;
  /** Whether the end token stays when a text is cut. */
  readonly keepsEnd: boolean;
  /** Whether the empty thinking of a chat template is removed. */
  readonly removesEmptyThinking: boolean;
  /** Whether the marks of answers include the line break after them. */
  readonly marksHaveBreak: boolean;
}

export const RECIPES = {
  minimind3: {
    source: 'lm_dataset.py at 101d7df, 2026-03',
    addsEnds: true,
    keepsEnd: true,
    removesEmptyThinking: true,
    marksHaveBreak: true,
  },
  minimind2: {
    source: 'lm_dataset.py at 4a7c1c4, 2025-04',
    addsEnds: true,
    keepsEnd: false,
    removesEmptyThinking: false,
    marksHaveBreak: false,
  },
  plain: {
    source: 'lm_dataset.py at 7d877db, 2025-10',
    addsEnds: false,
    keepsEnd: false,
    removesEmptyThinking: false,
    marksHaveBreak: false,
  },
} as const satisfies Record<string, Recipe>;

export type RecipeName = keyof typeof RECIPES;

/** A range of positions, without its end. */
export type Span = readonly [from: number, end: number];

/** Token ids of one sequence, and those of them that the loss counts. */
export interface Sample {
  /** Without padding, at most `length`. */
  readonly ids: readonly number[];
  /** Tokens before the cut. */
  readonly fullLength: number;
  /** Positions of targets in the padded ids; position 0 is never a target. Can reach into the padding. */
  readonly counted: readonly Span[];
  /** First ids that the sequence before has too, in a stream. */
  readonly repeated?: number;
}

/** Special tokens of a sequence; undefined where the tokenizer has none. */
export interface SpecialIds {
  /** Id of the beginning of a sequence; null if there is none. @integer */
  readonly bos: number | undefined;
  /** Id of the end of a sequence; null if there is none. @integer */
  readonly eos: number | undefined;
  /** Id of padding; null if there is none. @integer */
  readonly pad: number | undefined;
}

/** Texts before and after an answer in published chat templates, each with a text that identifies the template. */
const ANSWER_MARKS: readonly (readonly [has: string, start: string, end: string])[] = [
  ['<|start_header_id|>', '<|start_header_id|>assistant<|end_header_id|>\n\n', '<|eot_id|>'],
  ['<|im_start|>', '<|im_start|>assistant\n', '<|im_end|>\n'],
  ['<start_of_turn>', '<start_of_turn>model\n', '<end_of_turn>'],
  ['<|assistant|>', '<|assistant|>\n', '<|end|>'],
  ['[/INST]', '[/INST]', '</s>'],
];

/** Texts before and after an answer. */
interface AnswerMarks {
  readonly start: string;
  readonly end: string;
}

/** Texts around an answer that the user names. */
export interface GivenMarks {
  readonly start?: string | undefined;
  readonly end?: string | undefined;
}

/** Makes samples of one length. */
export class SampleMaker {
  readonly length: number;
  readonly special: SpecialIds;
  readonly recipe: Recipe;
  readonly #marks:
    | { readonly start: readonly number[]; readonly end: readonly number[] }
    | undefined;

  constructor(
    recipe: RecipeName,
    length: number,
    tokenizer: TextTokenizer | undefined,
    text: Pick<ModelText, 'specialTokens' | 'template'>,
    marks: GivenMarks = {},
  ) {
    const { specialTokens } = text;
    const idOf = (name: string) => {
      const token = specialTokens[name];
      return token === undefined ? undefined : tokenizer?.idOf(token);
    };
    this.length = length;
    this.recipe = RECIPES[recipe];
    this.special = { bos: idOf('bos_token'), eos: idOf('eos_token'), pad: idOf('pad_token') };
    const found = answerMarks(this.recipe, text, marks);
    if (found && tokenizer) {
      const [start = [], end = []] = tokenizer.encodeAll([found.start, found.end]);
      this.#marks = { start, end };
    }
  }

  /** Number of tokens that a text gets in addition to its own. */
  get added(): number {
    const { bos, eos } = this.special;
    if (!this.recipe.addsEnds) return 0;
    return (bos === undefined ? 0 : 1) + (eos === undefined ? 0 : 1);
  }

  /** A text for pre-training: all targets count, except those with the id of the padding. */
  text(content: readonly number[]): Sample {
    const { bos, eos } = this.special;
    const { addsEnds, keepsEnd } = this.recipe;
    const before = addsEnds && bos !== undefined ? [bos] : [];
    const after = addsEnds && eos !== undefined ? [eos] : [];
    const fullLength = content.length + this.added;
    const room = Math.max(0, this.length - this.added);
    const ids = keepsEnd
      ? [...before, ...content.slice(0, room), ...after]
      : [...before, ...content.slice(0, this.length), ...after].slice(0, this.length);
    return { ids, fullLength, counted: this.#withoutPadding(ids) };
  }

  /** Token ids without additional tokens. */
  ids(content: readonly number[]): Sample {
    const ids = content.slice(0, this.length);
    return { ids, fullLength: content.length, counted: this.#withoutPadding(ids) };
  }

  /** A rendered chat: the answers count, with their end marks. */
  chat(content: readonly number[]): Sample {
    const ids = content.slice(0, this.length);
    return { ids, fullLength: content.length, counted: this.#answers(ids) };
  }

  #withoutPadding(ids: readonly number[]): Span[] {
    const { pad } = this.special;
    const spans: [number, number][] = [];
    for (let at = 1; at < ids.length; at++) {
      if (ids[at] === pad) continue;
      const last = spans.at(-1);
      if (last && last[1] === at) last[1] = at + 1;
      else spans.push([at, at + 1]);
    }
    return spans;
  }

  #answers(ids: readonly number[]): Span[] {
    if (this.#marks === undefined) return [];
    const { start: begin, end: close } = this.#marks;
    const { length } = this;
    // The older classes do not count the line break after the role's name, but count the one after the end mark.
    const shift = this.recipe.marksHaveBreak ? 0 : 1;
    const spans: Span[] = [];
    // MiniMind's classes search the padded ids. This matters where padding is the end token.
    const at = (position: number) => (position < ids.length ? ids[position] : this.special.pad);
    const isHere = (mark: readonly number[], from: number) =>
      from + mark.length <= length && mark.every((id, index) => at(from + index) === id);
    let position = 0;
    while (position < ids.length) {
      if (!isHere(begin, position)) {
        position++;
        continue;
      }
      const from = position + begin.length;
      let end = from;
      while (end < length && !isHere(close, end)) end++;
      const span: Span = [from + shift, Math.min(end + close.length + shift, length)];
      if (span[0] < span[1]) spans.push(span);
      position = end < length ? end + close.length : length;
    }
    return spans;
  }
}

function answerMarks(
  recipe: Recipe,
  { specialTokens, template }: Pick<ModelText, 'specialTokens' | 'template'>,
  given: GivenMarks,
): AnswerMarks | undefined {
  const { bos_token: bos, eos_token: eos } = specialTokens;
  const { start, end } = given;
  if (start !== undefined && end !== undefined) return { start, end };
  if (template === undefined) return undefined;
  const lineBreak = recipe.marksHaveBreak ? '\n' : '';
  const own =
    bos !== undefined &&
    eos !== undefined &&
    template.text.includes(`${bos}`) &&
    template.text.includes(eos)
      ? { start: `${bos}assistant${lineBreak}`, end: `${eos}${lineBreak}` }
      : undefined;
  const isChat =
    own !== undefined && /^<.*>$/.test(bos ?? '') && !template.text.includes('[/INST]');
  const known = ANSWER_MARKS.find(([has]) => template.text.includes(has));
  const found = isChat ? own : known && { start: known[1], end: known[2] };
  return found && { start: start ?? found.start, end: end ?? found.end };
}

/** @throws UserError when chats cannot be rendered, or the answers in them not found. */
export function requireChat(
  text: Pick<ModelText, 'specialTokens' | 'template'>,
  file: string,
  marks: GivenMarks,
): void {
  if (text.template === undefined) {
    throw usageError(
      `expected a chat template next to ${file}, found none`,
      'put tokenizer_config.json or chat_template.jinja of the model into its folder',
    );
  }
  if (answerMarks(RECIPES.minimind3, text, marks) !== undefined) return;
  throw usageError(
    `${text.template.file}: expected a template with ${joined(ANSWER_MARKS.map(([has]) => has))}, found none of these`,
    `name the texts around an answer: ${setting('answerStart', 'TEXT')} ${setting('answerEnd', 'TEXT')}`,
  );
}

// Streams of token ids in binary form, as nanoGPT's prepare.py writes them.

/** A window of a stream: its last id is the first of the next, so that each id is a target once. */
interface StreamWindow {
  readonly ids: readonly number[];
  /** Number of the window, from 1. */
  readonly line: number;
  readonly fullLength: number;
}

const BYTES = { uint16: 2, uint32: 4 } as const;

/** Windows of `length` ids; the last one may be shorter. @throws UserError when bytes are left over. */
export async function* streamWindows(
  file: string,
  chunks: AsyncIterable<Buffer>,
  kind: keyof typeof BYTES,
  length: number,
): AsyncGenerator<StreamWindow> {
  const size = BYTES[kind];
  let rest: Buffer = Buffer.alloc(0);
  let ids: number[] = [];
  let line = 0;
  for await (const chunk of chunks) {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    const end = bytes.length - (bytes.length % size);
    for (let at = 0; at < end; at += size) {
      ids.push(size === 2 ? bytes.readUInt16LE(at) : bytes.readUInt32LE(at));
      if (ids.length < length) continue;
      line++;
      yield { ids, line, fullLength: ids.length };
      ids = ids.slice(-1);
    }
    rest = bytes.subarray(end);
  }
  if (rest.length > 0) {
    throw new UserError(
      'refused-file',
      `${file}: expected ids of ${size} bytes, found ${counted(rest.length, 'byte')} left over`,
      {
        suggestion:
          size === 4
            ? `write ${setting('recordKind', 'uint16')}`
            : `copy the file again, or name its kind with ${setting('recordKind')}`,
      },
    );
  }
  if (ids.length > (line === 0 ? 0 : 1)) yield { ids, line: line + 1, fullLength: ids.length };
}

// Samples as they are shown: padded ids, inputs, targets, mask and the text of each token.

/** A sample as the model sees it. Padding has the id of the padding, or 0. */
export interface ShownSample extends Place {
  /** Answer of a pair; null for other samples. */
  readonly side: 'chosen' | 'rejected' | null;
  /** Token ids. @integer */
  readonly ids: readonly number[];
  /** Inputs of the model. @integer */
  readonly x: readonly number[];
  /** Targets. @integer */
  readonly y: readonly number[];
  /** 1 for targets of the loss. */
  readonly mask: readonly (0 | 1)[];
  /** Tokens without padding. @integer */
  readonly tokens: number;
  /** Tokens before the cut. @integer */
  readonly uncut: number;
  /** Texts of the tokens without padding; null without a tokenizer. */
  readonly texts: readonly string[] | null;
}

export function shownSample(
  place: Place,
  side: ShownSample['side'],
  { ids, fullLength, counted }: Sample,
  { length, special }: SampleMaker,
  tokenizer: TextTokenizer | undefined,
): ShownSample {
  const size = Math.max(length, ids.length);
  const padded = [...ids, ...new Array<number>(size - ids.length).fill(special.pad ?? 0)];
  const mask = new Array<0 | 1>(Math.max(0, size - 1)).fill(0);
  for (const [from, end] of counted) mask.fill(1, Math.max(0, from - 1), end - 1);
  return {
    ...place,
    side,
    ids: padded,
    x: padded.slice(0, -1),
    y: padded.slice(1),
    mask,
    tokens: ids.length,
    uncut: fullLength,
    texts: tokenizer ? tokenTexts(tokenizer, ids) : null,
  };
}

/** Characters with which byte-level tokenizers write bytes, from `bytes_to_unicode` of GPT-2. */
const BYTE_OF = new Map<string, number>();
for (let byte = 0, more = 0; byte < 256; byte++) {
  const isOwn = (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte !== 0xad);
  BYTE_OF.set(String.fromCharCode(isOwn ? byte : 256 + more), byte);
  if (!isOwn) more++;
}

/** Text of each token; bytes in hexadecimal for a part of a character. */
const tokenTexts = (tokenizer: TextTokenizer, ids: readonly number[]): string[] =>
  tokenizer
    .decodeEach(ids, { special: true })
    .map((text, at) => withBytes(text, tokenizer.tokenOf(ids[at] ?? 0)));

function withBytes(text: string, token: string | undefined): string {
  if (!text.includes('\ufffd')) return text;
  const bytes = Array.from(token ?? '', (each) => BYTE_OF.get(each));
  if (bytes.length === 0 || bytes.includes(undefined)) return text;
  return bytes.map((byte) => `<${(byte ?? 0).toString(16).padStart(2, '0')}>`).join('');
}
