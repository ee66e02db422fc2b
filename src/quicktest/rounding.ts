/**
 * How far rounding alone moves what a model computes. With large weights it can make much of the last bit of a
 * float32: then no two ways of computing it agree, and none of them is wrong.
 */
import type { Layer } from '../architecture/layer.js';
import type { Param } from '../architecture/param.js';
import type { RunOutput } from '../runtime/engine.js';
import { randomIntegers } from '../runtime/random-weights.js';
import type { Ids, Values } from '../runtime/values.js';
import type { WeightSource } from '../runtime/weights.js';
import { allowedDifference, largestDifference } from './compare.js';
import type { BlockDifference } from './finding.js';
import type { Subject } from './subject.js';

/** One nudge may happen to cancel itself. */
const NUDGES = ['up and down', 'down and up'] as const;

/**
 * Two ways of computing the same were up to 1.7 times as far apart as nudged inputs are, in blocks and whole
 * models with weights of 1 to 16 times the usual, but for one block of 24 models, where it was 23.5 times. A
 * state that is lost is thousands of times as far.
 */
const ROUNDING_FACTOR = 8;

/** How far values may be from these, when rounding alone moves them by `rounding`. */
const explainedDifference = (values: Float32Array, rounding: number): number =>
  Math.max(allowedDifference(values), ROUNDING_FACTOR * rounding);

/**
 * As much for the output of the whole model. Where rounding alone moves that by more than is usual it grows from
 * block to block, how far is a matter of chance, and no difference tells anything: see `eachBlock`.
 */
export const explainedInWhole = (values: Float32Array, rounding: number): number =>
  rounding > allowedDifference(values)
    ? Number.POSITIVE_INFINITY
    : explainedDifference(values, rounding);

/** Each value moved to the next float32, up or down as `seed` has it. Zeros stay. */
function nudged(values: Float32Array, seed: string, first = 0): Float32Array {
  const moved = values.slice();
  const bits = new Int32Array(moved.buffer);
  const directions = randomIntegers(first, seed, moved.length, 2);
  for (const [at, value] of values.entries()) {
    if (value !== 0) bits[at] = (bits[at] ?? 0) + (directions[at] === 0 ? -1 : 1);
  }
  return moved;
}

function nudgedWeights(weights: WeightSource, nudgedTensor: Param, seed: string): WeightSource {
  return {
    rangeOf: (tensor) => (tensor === nudgedTensor ? undefined : weights.rangeOf(tensor)),
    read(tensor, first, target) {
      weights.read(tensor, first, target);
      if (tensor === nudgedTensor) target.set(nudged(target, seed, first));
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
  subject: Subject,
  ids: Ids,
  { output, blocks }: Pick<RunOutput, 'output' | 'blocks'>,
): Promise<Rounding> {
  const { model, weights } = subject;
  await subject.unload();
  let logits = 0;
  const moves = new Map<string, number>();
  for (const seed of NUDGES) {
    const options = { weights: nudgedWeights(weights, model.embedding.weight, seed) };
    const moved = await subject.once(model, { ids }, options);
    logits = Math.max(logits, largestDifference(output.data, moved.output.data));
    for (const [name, value] of blocks) {
      const other = moved.blocks.get(name)?.data ?? new Float32Array(0);
      moves.set(name, Math.max(moves.get(name) ?? 0, largestDifference(value.data, other)));
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
  subject: Subject,
  layers: readonly Layer[],
  { ids, blocks }: Pick<RunOutput, 'blocks'> & { readonly ids: Ids },
  differenceOf: (block: Layer, input: Values, output: Values) => Promise<number>,
): Promise<BlockDifference[]> {
  const { model } = subject;
  await subject.unload();
  let input = (await subject.once(model.embedding, { ids })).output;
  const differences: BlockDifference[] = [];
  for (const block of layers) {
    const { output, rounding } = await alone(subject, block, input);
    const difference = await differenceOf(block, input, output);
    const limit = explainedDifference(output.data, rounding);
    differences.push({ block: block.name, difference, rounding, limit });
    input = blocks.get(block.name) ?? output;
  }
  return differences;
}

const alone = (subject: Subject, block: Layer, input: Values) =>
  subject.with(block, async (program) => {
    const { output } = await program.run({ inputs: [input] });
    let rounding = 0;
    for (const seed of NUDGES) {
      const moved = await program.run({ inputs: [{ ...input, data: nudged(input.data, seed) }] });
      rounding = Math.max(rounding, largestDifference(output.data, moved.output.data));
    }
    return { output, rounding };
  });

/** The first that rounding does not explain. */
export const unexplained = (differences: readonly BlockDifference[]): BlockDifference | undefined =>
  differences.find(({ difference, limit }) => !(difference <= limit));
