/**
 * Measures how far rounding alone changes a model's output. Large weights can amplify the last bit of a float32: then
 * no two computations agree, and none of them is wrong.
 */

import type { Arithmetic } from '../engine/compare/differences.js';
import { allowedDifference, largestDifference } from '../engine/compare/differences.js';
import type { Compute, RunOutput, TokenIds, Values } from '../engine/engine.js';
import type { WeightSource } from '../engine/weights/weights.js';
import { randomIntegers } from '../engine/weights/weights.js';
import type { Layer } from '../model/architecture/layer.js';
import type { Param } from '../model/architecture/param.js';
import { isRouted, walk } from '../model/architecture/walk.js';
import type { BlockDifference } from './finding.js';
import type { TestContext } from './test-context.js';

/**
 * Whether the layer contains experts. Then the rows that an expert computes together depend on all tokens, and so does
 * the order of its sums. Where two experts score almost the same, rounding decides.
 */
export const hasMixture = (layer: Layer): boolean =>
  walk(layer).some(({ layer: each }) => isRouted(each));

/** Perturbation of values in their last bits, up or down by a seed. */
interface Perturbation {
  readonly seed: string;
  /** Distance in representable numbers of the products' number type. */
  readonly steps: number;
  /** −1 reverses the direction of every value. */
  readonly direction: 1 | -1;
}

const perturbation = (
  seed: string,
  steps: number,
  direction: Perturbation['direction'] = 1,
): Perturbation => ({
  seed,
  steps,
  direction,
});

/** Usual perturbations: two, because a single one may cancel itself by chance. */
const PERTURBATIONS: readonly Perturbation[] = [
  perturbation('up and down', 1),
  perturbation('down and up', 1),
];

/**
 * Allowed multiple of the effect of perturbed inputs. Two correct computations differed by up to 1.7 times that effect,
 * in blocks and whole models with 1 to 16 times the usual weights. One block of 24 models differed by 23.5 times. A
 * lost state differs by thousands of times.
 */
const ROUNDING_FACTOR = 8;

/**
 * Larger perturbations for ties. Where two experts score almost the same for a token, another computation may choose
 * the other one, even if the usual perturbations do not. These are as large as rounding may be, each in both
 * directions, so that one of the two crosses the tie.
 */
const TIE_PERTURBATIONS: readonly Perturbation[] = ['first', 'second', 'third'].flatMap((seed) => [
  perturbation(seed, ROUNDING_FACTOR),
  perturbation(seed, ROUNDING_FACTOR, -1),
]);

const perturbationsFor = (layer: Layer): readonly Perturbation[] =>
  hasMixture(layer) ? [...PERTURBATIONS, ...TIE_PERTURBATIONS] : PERTURBATIONS;

/** Allowed difference from these values when rounding alone changes them by `rounding`. */
const explainedDifference = (
  values: Float32Array,
  rounding: number,
  arithmetic: Arithmetic,
): number => Math.max(allowedDifference(values, arithmetic), ROUNDING_FACTOR * rounding);

/**
 * Allowed difference of the output of the whole model. If rounding alone changes it by more than usual, the change
 * grows from block to block at random, and a difference proves nothing: see `compareEachBlock`.
 */
export const isExplainedByRounding = (
  values: Float32Array,
  rounding: number,
  arithmetic: Arithmetic,
): number =>
  rounding > allowedDifference(values, arithmetic)
    ? Number.POSITIVE_INFINITY
    : explainedDifference(values, rounding, arithmetic);

/** Number of float32 values per step of the number type: float32 has 24 bits, float16 has 11, a quantized input has 8. */
const FLOATS: Readonly<Record<Compute, number>> = { f32: 1, f16: 2 ** 13 };
const QUANTIZED_FLOATS = 2 ** 16;

/** Perturbed values, except zeros and their neighbours. */
function perturbed(
  values: Float32Array,
  { seed, steps, direction }: Perturbation,
  { compute, weightForm }: Arithmetic,
  first = 0,
): Float32Array {
  const far = steps * (weightForm ? QUANTIZED_FLOATS : FLOATS[compute]);
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
  perturbedTensor: Param,
  by: Perturbation,
  arithmetic: Arithmetic,
): WeightSource {
  return {
    rangeOf: (tensor) => (tensor === perturbedTensor ? undefined : weights.rangeOf(tensor)),
    read(tensor, first, target) {
      weights.read(tensor, first, target);
      if (tensor === perturbedTensor) target.set(perturbed(target, by, arithmetic, first));
    },
  };
}

/** Changes of the logits for some ids, and of the block outputs by their names. */
export interface Rounding {
  readonly logits: number;
  readonly blocks: ReadonlyMap<string, number>;
}

/** Runs the whole model with perturbed embeddings. */
export async function roundingOf(
  context: TestContext,
  ids: TokenIds,
  { output, blocks }: Pick<RunOutput, 'output' | 'blocks'>,
): Promise<Rounding> {
  const { model, weights, engine } = context;
  await context.unload();
  let logits = 0;
  const moves = new Map<string, number>();
  for (const by of perturbationsFor(model)) {
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
 * Checks each layer separately, with its input from the whole model, so that rounding does not accumulate.
 * @param layers The blocks, and the layers after them.
 * @param differenceOf Difference of another computation of a layer from its output.
 */
export async function compareEachBlock(
  context: TestContext,
  layers: readonly Layer[],
  { ids, blocks }: Pick<RunOutput, 'blocks'> & { readonly ids: TokenIds },
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
    for (const by of perturbationsFor(block)) {
      const data = perturbed(input.data, by, context.engine.info);
      const moved = await program.run({ inputs: [{ ...input, data }] });
      rounding = Math.max(rounding, largestDifference(output.data, moved.output.data) / by.steps);
    }
    return { output, rounding };
  });

/** The first difference beyond the rounding error. */
export const firstUnexplained = (
  differences: readonly BlockDifference[],
): BlockDifference | undefined =>
  differences.find(({ difference, limit }) => !(difference <= limit));
