import { type LanguageModel, walk } from '../architecture/layer.js';
import { decodingKeys, fullForwardKeys } from '../runtime/attention-rules.js';
import type { State } from '../runtime/engine.js';
import type { Ids, Values } from '../runtime/values.js';
import { allowedDifference, largestDifference, positions } from './compare.js';
import { type Decoding, type Finding, skipped } from './finding.js';
import { firstTokens, span } from './ids.js';
import type { Subject } from './subject.js';
import { counted, differenceText, integer } from './wording.js';

/** Most tokens that are decoded one by one; the others are given at once before. */
const MOST_STEPS = 32;

/**
 * Keys and values, the inputs of the convolution, the state of the scan and the rows of the SRTE are
 * continued: decoding a sequence step by step gives the logits of the full forward pass, on both sides of
 * the window, wherever a cache can.
 */
export async function checkCache(subject: Subject): Promise<Finding> {
  const { ids, model } = subject;
  const windows = windowsOf(model);
  const lengths = lengthsToTry(ids.tokens, windows);
  if (lengths.length === 0) return skipped('one token has nothing to continue');
  const whole: Whole[] = [];
  for (const tokens of lengths) {
    const part = firstTokens(ids, tokens);
    const { output } = await (tokens === ids.tokens ? subject.base() : subject.forward(part));
    whole.push({ ids: part, logits: output });
  }
  await subject.unload();
  const decoded: Decoding[] = [];
  for (const each of whole) decoded.push(await decode(subject, each, windows));
  return judge(decoded, remarksOn(ids.tokens, lengths, windows));
}

/** A sequence and its full forward pass. */
interface Whole {
  readonly ids: Ids;
  readonly logits: Values;
}

/** Of the local heads, each once. */
function windowsOf(model: LanguageModel): number[] {
  const windows = new Set<number>();
  for (const { layer } of model.blocks.flatMap(walk)) {
    if (layer.kind !== 'attention') continue;
    for (const { heads, window } of layer.spans) {
      if (window !== undefined && heads > 0) windows.add(window);
    }
  }
  return [...windows];
}

/** As many tokens as no window cuts off, and as many as there are and a cache can follow. */
function lengthsToTry(tokens: number, windows: readonly number[]): number[] {
  const longest = longestFollowed(tokens, windows);
  const within = Math.min(longest, ...windows);
  return [...new Set([within, longest])].filter((each) => each > 1);
}

/** The mask of a full forward pass may depend on its length in ways that decoding cannot foresee. */
function longestFollowed(tokens: number, windows: readonly number[]): number {
  let length = tokens;
  while (!windows.every((window) => isFollowed(length, window))) {
    length = 2 ** (Math.ceil(Math.log2(length)) - 1);
  }
  return length;
}

function isFollowed(tokens: number, window: number): boolean {
  const keys = decodingKeys(0, tokens, window, tokens);
  return fullForwardKeys(tokens, window).every((first, position) => first === keys[position]);
}

async function decode(
  subject: Subject,
  { ids, logits }: Whole,
  windows: readonly number[],
): Promise<Decoding> {
  const { tokens } = ids;
  const prefill = tokens - Math.min(MOST_STEPS, Math.ceil(tokens / 2));
  const difference = await subject.with(
    subject.model,
    async (program) => {
      let largest = 0;
      let state: State | undefined;
      for (let from = 0; from < tokens; ) {
        const count = from === 0 ? Math.max(1, prefill) : 1;
        const step = await program.run({ ids: span(ids, from, count), state });
        const expected = positions(logits, from, from + count);
        largest = Math.max(largest, largestDifference(step.output.data, expected));
        state = step.state;
        from += count;
      }
      return largest;
    },
    { decoding: { totalTokens: tokens } },
  );
  const rule = windows.some((window) => window < tokens) ? 'sliding window' : 'everything';
  const limit = allowedDifference(logits.data);
  return { tokens, prefill, rule, difference, limit };
}

const RULES = {
  everything: 'local heads see everything',
  'sliding window': 'local heads slide their window',
} as const satisfies Record<Decoding['rule'], string>;

const decodingText = ({ tokens, prefill, rule, difference }: Decoding) =>
  `${counted(tokens, 'token')}, ${integer(tokens - prefill)} of them one by one (${RULES[rule]}): ${differenceText(difference)}`;

function judge(decoded: readonly Decoding[], remarks: readonly string[]): Finding {
  const wrong = decoded.filter(({ difference, limit }) => !(difference <= limit));
  const told = wrong.length > 0 ? wrong : decoded;
  const worst = told.reduce((a, b) => (b.difference > a.difference ? b : a));
  return {
    verdict: wrong.length > 0 ? 'failed' : 'passed',
    finding:
      wrong.length > 0
        ? `decoding differs from the full forward pass by up to ${differenceText(worst.difference)}: a state is not continued`
        : `decoding gives the full forward pass within ${differenceText(worst.difference)}`,
    measure: { what: 'largest difference', value: worst.difference, limit: worst.limit },
    remarks: [...decoded.map(decodingText), ...remarks],
    details: { decoding: decoded },
  };
}

function remarksOn(
  tokens: number,
  lengths: readonly number[],
  windows: readonly number[],
): string[] {
  const longest = lengths.at(-1) ?? tokens;
  const smallest = Math.min(...windows);
  return [
    ...(longest < tokens
      ? [
          `at ${integer(tokens)} tokens the full forward pass moves its window block by block, which no cache can follow: decoding slides it there too`,
        ]
      : []),
    ...(windows.length > 0 && tokens <= smallest
      ? [
          `all tokens lie within the window of ${integer(smallest)}; a longer --context tests beyond it`,
        ]
      : []),
  ];
}
