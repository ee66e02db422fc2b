/** Whether an engine computes what it should, and how fast. */

import { linear } from '../architecture/constructors.js';
import type { LanguageModel } from '../architecture/layer.js';
import { hybrid } from '../architecture/models/hybrid.js';
import type { Engine } from './engine.js';
import { randomWeights } from './random-weights.js';
import type { Values } from './values.js';

export interface SelfCheck {
  /** The largest, from what was computed in float64. Infinite for what is no number. */
  readonly difference: number;
  readonly limit: number;
  readonly passed: boolean;
}

/** A model with everything in it that models are made of: a window shorter than its input, too. */
const selfCheckModel = (): LanguageModel =>
  hybrid.build(
    hybrid.schema.parse({
      model: {
        vocab_size: 8,
        hidden_size: 16,
        num_layers: 2,
        num_heads: 2,
        window_size: 4,
        global_heads: 1,
        gate_rank: 4,
        max_position_embeddings: 16,
        srte_factorized_rank: 4,
      },
    }),
  );

const SELF_CHECK_SEED = 1;
const SELF_CHECK_IDS = { batch: 1, tokens: 8, data: Int32Array.of(5, 3, 0, 7, 1, 6, 2, 4) };

/** Logits of the last token. */
const EXPECTED = [
  -0.1659312409, 0.1090804452, -0.4528063061, -0.7470086745, 0.5079046512, 0.2399284073,
  1.1160895415, 0.6464423654,
];

/** Some ten times what rounding to float32 makes. */
const LIMIT = 1e-5;

/** Runs a tiny model of random weights, whose logits are known from float64 arithmetic. */
export async function selfCheck(engine: Engine): Promise<SelfCheck> {
  const model = selfCheckModel();
  const program = await engine.load(model, randomWeights(model, SELF_CHECK_SEED));
  const { output } = await program.run({ ids: SELF_CHECK_IDS });
  await program.release();
  const logits = output.data.subarray(-EXPECTED.length);
  const differences = EXPECTED.map((expected, at) =>
    Math.abs((logits[at] ?? Number.NaN) - expected),
  );
  const difference = differences.some(Number.isNaN)
    ? Number.POSITIVE_INFINITY
    : Math.max(...differences);
  return { difference, limit: LIMIT, passed: difference <= LIMIT };
}

/** Rows and columns of the product that is timed. */
const SIZE = 512;
/** Seconds. */
const PATIENCE = 0.25;

/** Floating-point operations per second of a product of two matrices of 512 × 512, the fastest of several. */
export async function productSpeed(engine: Engine): Promise<number> {
  const layer = linear('product', SIZE, SIZE, { bias: false });
  const weights = randomWeights(layer, SELF_CHECK_SEED);
  const input: Values = { shape: [1, SIZE, SIZE], data: new Float32Array(SIZE ** 2).fill(0.5) };
  const program = await engine.load(layer, weights);
  await program.run({ inputs: [input] });
  let fastest = Number.POSITIVE_INFINITY;
  const begin = performance.now();
  do {
    const start = performance.now();
    await program.run({ inputs: [input] });
    fastest = Math.min(fastest, (performance.now() - start) / 1000);
  } while ((performance.now() - begin) / 1000 < PATIENCE);
  await program.release();
  return (2 * SIZE ** 3) / fastest;
}
