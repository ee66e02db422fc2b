/**
 * Measures this machine's speed for models by running them: the bandwidth of weights outside the caches, products of
 * several sizes, elementwise layers, and the overhead per call and per layer.
 */

import type {
  MachineSpeed,
  MeasurementSpread,
  ProductRate,
} from '../estimate/hardware/machine-profile.js';
import {
  activation,
  linear,
  rmsNormLayer,
  sequence,
} from '../model/architecture/constructors/basic-layers.js';
import type { Layer } from '../model/architecture/layer.js';
import type { Engine, Values } from './engine.js';
import type { WeightSource } from './weights/weights.js';

export interface BenchmarkOptions {
  /** Called with each measurement before it begins. */
  readonly watch: (what: string) => void;
  /** Bytes that may be used: a small machine gets fewer weights. */
  readonly usableBytes: number;
}

/** Bytes of weights that exceed every cache: the largest processor cache has 1152 MB, most have 32 or fewer. */
const WEIGHT_BYTES = 256 * 2 ** 20;
/** Share of the usable bytes: the engine holds weights twice while it loads them. */
const WEIGHT_SHARE = 0.25;

/** Rows of decoding, a short prompt and a long one, by widths of small and large models. */
const PRODUCTS: readonly (readonly [rows: number, width: number])[] = [
  [1, 512],
  [16, 512],
  [128, 512],
  [512, 128],
  [512, 512],
  [512, 2048],
];

/**
 * Measures this machine. Takes about four seconds, and up to three times that on a machine that is slow to reach its
 * best.
 */
export async function measureMachine(
  engine: Engine,
  { watch, usableBytes }: BenchmarkOptions,
): Promise<MachineSpeed> {
  watch('memory bandwidth');
  const weightBandwidth = await measureWeights(engine, usableBytes);
  const products: ProductRate[] = [];
  for (const [rows, width] of PRODUCTS) {
    watch(`products of ${rows} × ${width} by ${width} × ${width}`);
    const seconds = await measuredSeconds(engine, linearOf(width, width), [1, rows, width]);
    products.push({ rows, width, flops: rates(2 * rows * width ** 2, seconds) });
  }
  watch('norms and activations');
  const valueBandwidth = await measureValues(engine);
  watch('calls');
  return { weightBandwidth, products, valueBandwidth, ...(await measureCalls(engine)) };
}

const linearOf = (from: number, to: number, name = 'product') =>
  linear(name, from, to, { bias: false });

const FLOAT_BYTES = 4;

/** Measures a product with one row, as in decoding: it reads all weights and computes little. */
async function measureWeights(engine: Engine, usableBytes: number): Promise<MeasurementSpread> {
  const bytes = Math.min(WEIGHT_BYTES, WEIGHT_SHARE * usableBytes);
  // A power of two, because engines split matrices into blocks.
  const width = 2 ** Math.floor(Math.log2(bytes / FLOAT_BYTES) / 2);
  const seconds = await measuredSeconds(engine, linearOf(width, width), [1, 1, width]);
  return rates(FLOAT_BYTES * width ** 2, seconds);
}

/** Tokens and widths of elementwise layers: sizes that fit partly into processors' caches. */
const VALUES = [1, 512, 1024] as const;
/** Pairs of a norm and an activation. */
const PAIRS = 4;

async function measureValues(engine: Engine): Promise<MeasurementSpread> {
  const [, tokens, width] = VALUES;
  const pair = (at: number) => [
    rmsNormLayer(`norm${at}`, width, 1e-6),
    activation(`activation${at}`, 'silu'),
  ];
  const pairs = (count: number) =>
    sequence('values', Array.from({ length: count }, (_, at) => pair(at)).flat());
  const seconds = await secondsMore(engine, pairs(1), pairs(1 + PAIRS), VALUES);
  // Each of the two reads and writes all values once.
  return rates(PAIRS * 2 * 2 * FLOAT_BYTES * tokens * width, seconds);
}

/** Layers of the longer call. */
const LAYERS = 65;

const perLayer = ({ fastest, mean }: Round): Round => ({
  fastest: fastest / (LAYERS - 1),
  mean: mean / (LAYERS - 1),
});

const SMALL = 16;

async function measureCalls(
  engine: Engine,
): Promise<Pick<MachineSpeed, 'callSeconds' | 'layerSeconds'>> {
  const layers = (count: number) =>
    sequence(
      'calls',
      Array.from({ length: count }, (_, at) => linearOf(SMALL, SMALL, `layer${at}`)),
    );
  const shape = [1, 1, SMALL];
  const callSeconds = spreadOf(await measuredSeconds(engine, layers(1), shape));
  const more = await secondsMore(engine, layers(1), layers(LAYERS), shape);
  return { callSeconds, layerSeconds: spreadOf(more.map(perLayer)) };
}

/** Minimum number of rounds, and of consecutive rounds without a better run. */
const ROUNDS = 5;
/** Share by which a run must be faster to count as better. */
const IMPROVEMENT = 0.02;
/** Seconds after which no further round begins, even if the best still improves. */
const MOST_SECONDS = 1;
const ROUND_SECONDS = 0.04;

/** Seconds per run in a round of several. */
interface Round {
  /** Speed of the machine: other load only causes delays. */
  readonly fastest: number;
  /** Speed including delays by other load. */
  readonly mean: number;
}

/**
 * Repeats rounds until the best no longer improves, for at most about a second: other programs may delay all of the
 * first ones.
 * @param seconds Returns the time of a run.
 */
export async function untilSteady(
  measure: () => Promise<Round>,
  seconds: () => number = () => performance.now() / 1000,
): Promise<readonly Round[]> {
  const rounds: Round[] = [];
  const end = seconds() + MOST_SECONDS;
  let best = Number.POSITIVE_INFINITY;
  let without = 0;
  while (rounds.length < ROUNDS || (without < ROUNDS && seconds() < end)) {
    const round = await measure();
    rounds.push(round);
    without = round.fastest < best * (1 - IMPROVEMENT) ? 0 : without + 1;
    best = Math.min(best, round.fastest);
  }
  return rounds;
}

/** Seconds of a run of one layer in each round. */
async function measuredSeconds(
  engine: Engine,
  layer: Layer,
  shape: readonly number[],
): Promise<readonly Round[]> {
  return withProgram(engine, layer, shape, async (run) => {
    return untilSteady(() => timed(run));
  });
}

/** Additional seconds of a run of `larger` in each round; both run alternately. */
async function secondsMore(
  engine: Engine,
  smaller: Layer,
  larger: Layer,
  shape: readonly number[],
): Promise<readonly Round[]> {
  return withProgram(engine, smaller, shape, (runSmaller) =>
    withProgram(engine, larger, shape, async (runLarger) => {
      return untilSteady(async () => {
        const less = await timed(runSmaller);
        const more = await timed(runLarger);
        return {
          fastest: excess(more.fastest, less.fastest),
          mean: excess(more.mean, less.mean),
        };
      });
    }),
  );
}

/** The difference of two times, or the larger one as an upper bound when the clock cannot resolve it. */
const excess = (more: number, less: number): number => (more > less ? more - less : more);

async function withProgram<T>(
  engine: Engine,
  layer: Layer,
  shape: readonly number[],
  use: (run: () => Promise<unknown>) => Promise<T>,
): Promise<T> {
  const program = await engine.load(layer, WEIGHTS);
  const size = shape.reduce((product, each) => product * each, 1);
  const input: Values = { shape: [...shape], data: new Float32Array(size).fill(0.5) };
  const run = () => program.run({ inputs: [input] });
  try {
    await run();
    return await use(run);
  } finally {
    await program.release();
  }
}

/** Weights that preserve the size of values: some processors are slow with tiny ones. */
const WEIGHTS: WeightSource = {
  rangeOf: () => undefined,
  read: ({ shape }, _first, target) => {
    const [, inputs = 1] = shape;
    target.fill(1 / inputs);
  },
};

async function timed(run: () => Promise<unknown>): Promise<Round> {
  let fastest = Number.POSITIVE_INFINITY;
  let spent = 0;
  let runs = 0;
  do {
    const start = performance.now();
    await run();
    const seconds = (performance.now() - start) / 1000;
    fastest = Math.min(fastest, seconds);
    spent += seconds;
    runs += 1;
  } while (spent < ROUND_SECONDS);
  return { fastest, mean: spent / runs };
}

/** Range from the fastest run of all to the slowest round. */
function spreadOf(rounds: readonly Round[]): MeasurementSpread {
  const means = rounds.map(({ mean }) => mean).toSorted((a, b) => a - b);
  const least = Math.min(...rounds.map(({ fastest }) => fastest), ...means);
  const median = means[Math.floor(means.length / 2)] ?? least;
  return { least, median, most: means.at(-1) ?? least };
}

function rates(amount: number, rounds: readonly Round[]): MeasurementSpread {
  const { least, median, most } = spreadOf(rounds);
  return { least: amount / most, median: amount / median, most: amount / least };
}
