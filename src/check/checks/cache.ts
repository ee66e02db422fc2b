import { setting } from '../../base/text/setting.js';
import { formatFlops, formatInteger } from '../../base/text/units.js';
import { counted } from '../../base/text/words.js';
import { attentionWindows, isFollowedByCache } from '../../engine/calls.js';
import {
  allowedDifference,
  differenceText,
  largestDifference,
  positions,
  roundingText,
} from '../../engine/compare/differences.js';
import type {
  Program,
  RunInput,
  RunOutput,
  StateHandle,
  TokenIds,
  Values,
} from '../../engine/engine.js';
import { firstTokens, idSpan } from '../../engine/token-ids.js';
import type { Layer, Window } from '../../model/architecture/layer.js';
import { generationFlopsOf } from '../../model/budget/flops.js';
import type { CheckFinding, StepwiseDecoding } from '../finding.js';
import { skipped } from '../finding.js';
import {
  compareEachBlock,
  firstUnexplained,
  isExplainedByRounding,
  roundingOf,
} from '../rounding.js';
import type { TestContext } from '../test-context.js';

/** Maximum tokens decoded one by one unless a number is given; the earlier ones are processed in one call. */
const MOST_STEPS = 32;

/**
 * Checks the states of decoding: keys and values, inputs of the convolution, state of the scan and rows of the SRTE.
 * Decoding step by step must give the logits of the full forward pass, inside and beyond the window, as far as a cache
 * supports it.
 */
export async function checkCache(context: TestContext): Promise<CheckFinding> {
  const { ids, model } = context;
  const windows = attentionWindows(model);
  const lengths = lengthsToTry(ids.tokens, windows);
  if (lengths.length === 0) return skipped('one token: nothing to decode');
  const wholes: Whole[] = [];
  for (const tokens of lengths) {
    const part = firstTokens(ids, tokens);
    const full = await (tokens === ids.tokens ? context.base() : context.forward(part));
    wholes.push({ ids: part, full });
  }
  await context.unload();
  const decoded: StepwiseDecoding[] = [];
  for (const whole of wholes) decoded.push(await decode(context, whole, windows));
  return judgeCache(decoded, ids.batch, remarksOn(ids.tokens, lengths, windows));
}

/** A sequence and its full forward pass. */
interface Whole {
  readonly ids: TokenIds;
  readonly full: Pick<RunOutput, 'output' | 'blocks'>;
}

const windowTokens = ({ tokens }: Window) => tokens;

/** Two lengths: the longest within all windows, and the longest that a cache supports. */
function lengthsToTry(tokens: number, windows: readonly Window[]): number[] {
  const longest = longestFollowed(tokens, windows);
  const within = Math.min(longest, ...windows.map(windowTokens));
  return [...new Set([within, longest])].filter((each) => each > 1);
}

/**
 * The longest sequence that a cache can follow: the mask of a full forward pass may depend on its length in ways that
 * decoding cannot predict.
 */
function longestFollowed(tokens: number, windows: readonly Window[]): number {
  let length = tokens;
  while (!windows.every((window) => isFollowedByCache(length, window))) {
    length = 2 ** (Math.ceil(Math.log2(length)) - 1);
  }
  return length;
}

async function decode(
  context: TestContext,
  whole: Whole,
  windows: readonly Window[],
): Promise<StepwiseDecoding> {
  const { ids, full } = whole;
  const { tokens } = ids;
  const prefill = prefillOf(tokens, context.outputTokens);
  const { difference, speed } = await context.with(
    context.model,
    async (program) => {
      const inputOf = (from: number, count: number) => ({ ids: idSpan(ids, from, count) });
      const steps = await inSteps(program, full.output, prefill, inputOf);
      const start = performance.now();
      await program.run({ ids, lastTokens: 1 });
      return { ...steps, speed: decodingTimes(steps.seconds, (performance.now() - start) / 1000) };
    },
    { decoding: { totalTokens: tokens }, blocks: false },
  );
  const setting = { prompt: prefill, generated: tokens - prefill };
  const { cached, recomputed, ratio } = generationFlopsOf(context.model, setting);
  const rule = windows.some((window) => window.tokens < tokens) ? 'sliding window' : 'everything';
  const decoding = {
    tokens,
    prefill,
    rule,
    difference,
    speed: { ...speed, flops: { cached, recomputed, ratio } },
  } as const;
  const limit = allowedDifference(full.output.data, context.engine.info);
  if (difference <= limit) return { ...decoding, limit };
  return { ...decoding, ...(await explainedDifference(context, whole)) };
}

/** @param recomputingSeconds Time of one call with all tokens. */
const decodingTimes = (seconds: readonly number[], recomputingSeconds: number) => ({
  stepSeconds: seconds.toSorted((a, b) => a - b)[Math.floor(seconds.length / 2)] ?? 0,
  recomputingSeconds,
});

/** Number of tokens before the steps; at least one. */
const prefillOf = (tokens: number, asked: number | undefined) =>
  Math.max(1, tokens - (asked ?? Math.min(MOST_STEPS, Math.ceil(tokens / 2))));

interface Steps {
  /** Largest difference from the output of one call. */
  readonly difference: number;
  /** Time of each call but the first. */
  readonly seconds: readonly number[];
}

/**
 * Runs a layer step by step.
 * @param expected Output of one call, [B, T, …].
 * @param prefill Tokens of the first call.
 * @param inputOf Input of a range of tokens.
 */
async function inSteps(
  program: Program,
  expected: Values,
  prefill: number,
  inputOf: (from: number, count: number) => RunInput,
): Promise<Steps> {
  const [, tokens = 0] = expected.shape;
  const seconds: number[] = [];
  let difference = 0;
  let state: StateHandle | undefined;
  for (let from = 0; from < tokens; ) {
    const count = from === 0 ? prefill : 1;
    const start = performance.now();
    const step = await program.run({ ...inputOf(from, count), state });
    if (from > 0) seconds.push((performance.now() - start) / 1000);
    const full = positions(expected, from, from + count);
    difference = Math.max(difference, largestDifference(step.output.data, full));
    if (state) program.discard?.(state);
    state = step.state;
    from += count;
  }
  return { difference, seconds };
}

/** Expected rounding error, and the first block that differs by more. */
async function explainedDifference(context: TestContext, { ids, full }: Whole) {
  const { logits: rounding } = await roundingOf(context, ids, full);
  const { blocks: layers } = context.model;
  const given = { ids, blocks: full.blocks };
  const blocks = await compareEachBlock(context, layers, given, (block, input, output) =>
    decodedBlockDifference(context, block, { input, output }),
  );
  const limit = isExplainedByRounding(full.output.data, rounding, context.engine.info);
  const block = firstUnexplained(blocks);
  return { limit, rounding, ...(block && { block }) };
}

async function decodedBlockDifference(
  context: TestContext,
  block: Layer,
  { input, output }: { readonly input: Values; readonly output: Values },
): Promise<number> {
  const [batch = 1, tokens = 0, size = 1] = input.shape;
  const inputOf = (from: number, count: number) => ({
    inputs: [{ shape: [batch, count, size], data: positions(input, from, from + count) }],
  });
  const prefill = prefillOf(tokens, context.outputTokens);
  const { difference } = await context.with(
    block,
    (program) => inSteps(program, output, prefill, inputOf),
    {
      decoding: { totalTokens: tokens },
    },
  );
  return difference;
}

const RULES = {
  everything: 'no window is full',
  'sliding window': 'windows slide',
} as const satisfies Record<StepwiseDecoding['rule'], string>;

const decodingText = ({ tokens, prefill, rule, difference, rounding }: StepwiseDecoding) =>
  `${counted(tokens, 'token')}, ${formatInteger(tokens - prefill)} of them one by one (${RULES[rule]}): ` +
  `${differenceText(difference)}${roundingText(rounding)}`;

/** `310`, `2.4`. */
const formatRate = (value: number) =>
  value < 10 ? value.toPrecision(2) : formatInteger(Math.round(value));

/** `310 tokens/s with a cache, 38 tokens/s without; …`. */
function speedText({ prefill, tokens, speed }: StepwiseDecoding, batch: number): string {
  const { stepSeconds, recomputingSeconds, flops } = speed;
  return (
    `decoding: ${formatRate(batch / stepSeconds)} tokens/s with a cache, ${formatRate(batch / recomputingSeconds)} tokens/s without ` +
    `(${formatRate(recomputingSeconds / stepSeconds)} ×, measured at ${formatInteger(tokens)} tokens); ` +
    `counted for ${formatInteger(tokens - prefill)} tokens after ${formatInteger(prefill)}: ` +
    `${formatFlops(flops.cached)} with, ${formatFlops(flops.recomputed)} without, ${flops.ratio.toPrecision(3)} × fewer`
  );
}

const isWrong = ({ difference, limit, block }: StepwiseDecoding) => block || !(difference <= limit);

function judgeCache(
  decoded: readonly StepwiseDecoding[],
  batch: number,
  remarks: readonly string[],
): CheckFinding {
  const wrong = decoded.filter(isWrong);
  const shown = wrong.length > 0 ? wrong : decoded;
  const worst = shown.reduce((a, b) => (b.difference > a.difference ? b : a));
  const found = `${differenceText(worst.difference)}${roundingText(worst.rounding)}`;
  return {
    verdict: wrong.length > 0 ? 'failed' : 'passed',
    finding:
      wrong.length > 0
        ? `decoding with a cache differs from the full forward pass by up to ${found}${blockText(worst)}`
        : `decoding with a cache equals the full pass within ${found}`,
    measure: { what: 'largest difference', value: worst.difference, limit: worst.limit },
    remarks: [
      ...decoded.map(decodingText),
      ...decoded.slice(-1).map((each) => speedText(each, batch)),
      ...remarks,
    ],
    details: { decoding: decoded },
  };
}

/** Text about the first block that differs: a lost state is reported only when a single block shows it. */
const blockText = ({ block }: StepwiseDecoding) =>
  block
    ? `; ${block.block} alone, with equal inputs, by ${differenceText(block.difference)} (rounding: ` +
      `${differenceText(block.rounding)}): a state is lost between steps`
    : '';

function remarksOn(
  tokens: number,
  lengths: readonly number[],
  windows: readonly Window[],
): string[] {
  const longest = lengths.at(-1) ?? tokens;
  const smallest = Math.min(...windows.map(windowTokens));
  return [
    ...(longest < tokens
      ? [
          `at ${formatInteger(tokens)} tokens the full forward pass moves its window block by block; decoding slides it`,
        ]
      : []),
    ...(windows.length > 0 && tokens <= smallest
      ? [
          `all tokens lie within the window of ${formatInteger(smallest)}; a longer ${setting('context')} tests beyond it`,
        ]
      : []),
  ];
}
