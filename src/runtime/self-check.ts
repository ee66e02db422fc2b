/** Whether an engine computes what it should, and how fast. */

import { linear } from '../architecture/constructors.js';
import type { LanguageModel } from '../architecture/layer.js';
import type { Engine, EngineInfo } from './engine.js';
import { randomWeights } from './random-weights.js';
import { hybridModel, transformerModel } from './self-check-models.js';
import type { Values } from './values.js';

export interface SelfCheck {
  /** The largest, from what was computed in float64. Infinite for what is no number. */
  readonly difference: number;
  readonly limit: number;
  readonly passed: boolean;
}

const SELF_CHECK_SEED = 1;

/** From some number of rows on, graphics cards compute products and attention in another way. */
const TOKENS = 40;
const SELF_CHECK_IDS = {
  batch: 1,
  tokens: TOKENS,
  data: Int32Array.from({ length: TOKENS }, (_, at) => (5 * at + (at >> 3)) % 8),
};

/** Models with everything in them that models are made of, and their logits of the last token. */
const SELF_CHECKS: readonly {
  readonly make: () => LanguageModel;
  readonly expected: readonly number[];
}[] = [
  {
    make: hybridModel,
    expected: [
      -0.2669156622, -0.1916017054, 0.0706002155, 0.0505364276, -0.3973763922, -0.6521989741,
      0.2128973646, 0.3829068888,
    ],
  },
  {
    make: transformerModel,
    expected: [
      0.0294883203, -0.0816502964, -0.1380067341, 0.1058817525, 0.0785233229, -0.0026118737,
      -0.0077908112, 0.3022113191,
    ],
  },
];

/**
 * Some ten times what rounding to float32 makes. Graphics cards have exponentials of their own, and WebGPU lets
 * them be off by several units in the last place (https://www.w3.org/TR/WGSL/#floating-point-accuracy). Products
 * of float16 have 11 bits, of which a graphics card loses some when it adds them up in float16, too: 4e-4 was
 * measured on the CPU and 1.1e-3 on a software adapter by WebGPU, and some four times that is allowed.
 */
const limitFor = ({ compute, deviceKind }: EngineInfo): number =>
  compute === 'f16' ? 5e-3 : deviceKind === 'cpu' ? 1e-5 : 1e-4;

/** Runs tiny models of random weights, whose logits are known from float64 arithmetic. */
export async function selfCheck(engine: Engine): Promise<SelfCheck> {
  let difference = 0;
  for (const { make, expected } of SELF_CHECKS) {
    difference = Math.max(difference, await differenceOf(engine, make(), expected));
  }
  const limit = limitFor(engine.info);
  return { difference, limit, passed: difference <= limit };
}

/** The largest difference from the expected logits. */
async function differenceOf(
  engine: Engine,
  model: LanguageModel,
  expected: readonly number[],
): Promise<number> {
  const program = await engine.load(model, randomWeights(model, SELF_CHECK_SEED));
  const { output } = await program.run({ ids: SELF_CHECK_IDS });
  await program.release();
  const logits = output.data.subarray(-expected.length);
  const differences = expected.map((value, at) => Math.abs((logits[at] ?? Number.NaN) - value));
  return differences.some(Number.isNaN) ? Number.POSITIVE_INFINITY : Math.max(...differences);
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
