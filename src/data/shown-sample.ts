/** Samples as they are shown: padded ids, inputs, targets, mask and the text of each token. */
import type { TextTokenizer } from '../tokenizer/tokenizer.js';
import type { Place } from './data-statistics.js';
import type { Sample, SampleMaker } from './recipes.js';

/** A sample as the model sees it. Padding has the id of the padding, or 0. */
export interface ShownSample extends Place {
  /** Answer of a pair; null for other samples. */
  readonly side: 'chosen' | 'rejected' | null;
  readonly ids: readonly number[];
  readonly x: readonly number[];
  readonly y: readonly number[];
  readonly mask: readonly (0 | 1)[];
  /** Tokens without padding. */
  readonly tokens: number;
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
