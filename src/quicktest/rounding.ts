/**
 * How far rounding alone moves what a model computes. With large weights it can make much of the last bit of a
 * float32: then no two ways of computing it agree, and none of them is wrong.
 */
import type { Layer } from '../architecture/layer.js';
import type { Param } from '../architecture/param.js';
import { walk } from '../architecture/walk.js';
import type { Compute, Ids, RunOutput, Values } from '../runtime/engine.js';
import type { WeightSource } from '../runtime/weights.js';
import { randomIntegers } from '../runtime/weights.js';
import type { Arithmetic } from './differences.js';
import { allowedDifference, largestDifference } from './differences.js';
import type { BlockDifference } from './finding.js';
import type { TestContext } from './test-context.js';

// What is different about models with mixtures of experts.

/**
 * Whether tokens are sent to experts. Then the rows that an expert computes together depend on all tokens, and with
 * their number the order of its sums; and where two experts are nearly as good, rounding decides.
 */
export const hasExperts = (layer: Layer): boolean =>
  walk(layer).some(({ layer: each }) => each.kind === 'mixtureOfExperts');

/** Values moved by some of the last bit, up or down as a seed has it. */
interface Nudge {
  readonly seed: string;
  /** How many numbers further, of those that products are computed with. */
  readonly steps: number;
  /** −1 moves every value the other way. */
  readonly direction: 1 | -1;
}

const nudge = (seed: string, steps: number, direction: Nudge['direction'] = 1): Nudge => ({
  seed,
  steps,
  direction,
});

/** One nudge may happen to cancel itself. */
const NUDGES: readonly Nudge[] = [nudge('up and down', 1), nudge('down and up', 1)];

/**
 * Two ways of computing the same were up to 1.7 times as far apart as nudged inputs are, in blocks and whole
 * models with weights of 1 to 16 times the usual, but for one block of 24 models, where it was 23.5 times. A
 * state that is lost is thousands of times as far.
 */
const ROUNDING_FACTOR = 8;

/**
 * Where two experts are nearly as good for a token, another way of computing may choose the other one, though the
 * usual nudges do not: these go as far as rounding may, each there and back, and one of the two crosses the tie.
 */
const TIE_NUDGES: readonly Nudge[] = ['first', 'second', 'third'].flatMap((seed) => [
  nudge(seed, ROUNDING_FACTOR),
  nudge(seed, ROUNDING_FACTOR, -1),
]);

const nudgesFor = (layer: Layer): readonly Nudge[] =>
  hasExperts(layer) ? [...NUDGES, ...TIE_NUDGES] : NUDGES;

/** How far values may be from these, when rounding alone moves them by `rounding`. */
const explainedDifference = (
  values: Float32Array,
  rounding: number,
  arithmetic: Arithmetic,
): number => Math.max(allowedDifference(values, arithmetic), ROUNDING_FACTOR * rounding);

/**
 * As much for the output of the whole model. Where rounding alone moves that by more than is usual it grows from
 * block to block, how far is a matter of chance, and no difference tells anything: see `eachBlock`.
 */
export const explainedInWhole = (
  values: Float32Array,
  rounding: number,
  arithmetic: Arithmetic,
): number =>
  rounding > allowedDifference(values, arithmetic)
    ? Number.POSITIVE_INFINITY
    : explainedDifference(values, rounding, arithmetic);

/** How many float32 lie from one number to the next: float32 has 24 bits, float16 has 11. */
const FLOATS: Readonly<Record<Compute, number>> = { f32: 1, f16: 2 ** 13 };

/** Each value moved by a nudge. Zeros stay, and what is next to them. */
function nudged(
  values: Float32Array,
  { seed, steps, direction }: Nudge,
  { compute }: Arithmetic,
  first = 0,
): Float32Array {
  const far = steps * FLOATS[compute];
  const moved = values.slice();
  const bits = new Int32Array(moved.buffer);
  const directions = randomIntegers(first, seed, moved.length, 2);
  for (const [at, own] of bits.entries()) {
    const step = directions[at] === 0 ? -far : far;
    if ((own & 0x7fff_ffff) >= far) bits[at] = own + direction * step;
  }
  return moved;
}

function nudgedWeights(
  weights: WeightSource,
  nudgedTensor: Param,
  by: Nudge,
  arithmetic: Arithmetic,
): WeightSource {
  return {
    rangeOf: (tensor) => (tensor === nudgedTensor ? undefined : weights.rangeOf(tensor)),
    read(tensor, first, target) {
      weights.read(tensor, first, target);
      if (tensor === nudgedTensor) target.set(nudged(target, by, arithmetic, first));
    },
  };
}

/** How far the logits of some ids move, and the outputs of the blocks, by their names. */
export interface Rounding {
  readonly logits: number;
  readonly blocks: ReadonlyMap<string, number>;
}

/** Runs the whole model with its embeddings nudged. */
export async function roundingOf(
  context: TestContext,
  ids: Ids,
  { output, blocks }: Pick<RunOutput, 'output' | 'blocks'>,
): Promise<Rounding> {
  const { model, weights, engine } = context;
  await context.unload();
  let logits = 0;
  const moves = new Map<string, number>();
  for (const by of nudgesFor(model)) {
    const options = { weights: nudgedWeights(weights, model.embedding.weight, by, engine.info) };
    const moved = await context.once(model, { ids }, options);
    logits = Math.max(logits, largestDifference(output.data, moved.output.data) / by.steps);
    for (const [name, value] of blocks) {
      const other = moved.blocks.get(name)?.data ?? new Float32Array(0);
      const move = largestDifference(value.data, other) / by.steps;
      moves.set(name, Math.max(moves.get(name) ?? 0, move));
    }
  }
  return { logits, blocks: moves };
}

/**
 * Each layer by itself, from what it is given in the whole: what one makes of rounding does not grow in the
 * next.
 * @param layers The blocks, and what follows them.
 * @param differenceOf How far another way of computing a layer of that input is from its output.
 */
export async function eachBlock(
  context: TestContext,
  layers: readonly Layer[],
  { ids, blocks }: Pick<RunOutput, 'blocks'> & { readonly ids: Ids },
  differenceOf: (block: Layer, input: Values, output: Values) => Promise<number>,
): Promise<BlockDifference[]> {
  await context.unload();
  let input = await context.embedded(ids);
  const differences: BlockDifference[] = [];
  for (const block of layers) {
    const { output, rounding } = await alone(context, block, input);
    const difference = await differenceOf(block, input, output);
    const limit = explainedDifference(output.data, rounding, context.engine.info);
    differences.push({ block: block.name, difference, rounding, limit });
    input = blocks.get(block.name) ?? output;
  }
  return differences;
}

const alone = (context: TestContext, block: Layer, input: Values) =>
  context.with(block, async (program) => {
    const { output } = await program.run({ inputs: [input] });
    let rounding = 0;
    for (const by of nudgesFor(block)) {
      const data = nudged(input.data, by, context.engine.info);
      const moved = await program.run({ inputs: [{ ...input, data }] });
      rounding = Math.max(rounding, largestDifference(output.data, moved.output.data) / by.steps);
    }
    return { output, rounding };
  });

/** The first that rounding does not explain. */
export const unexplained = (differences: readonly BlockDifference[]): BlockDifference | undefined =>
  differences.find(({ difference, limit }) => !(difference <= limit));
