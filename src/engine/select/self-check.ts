/** Small models that together contain every kind of layer. */
import {
  alibi,
  attention,
  latentAttention,
  rotary,
  slidingWindow,
} from '../../model/architecture/constructors/attention-layers.js';
import {
  activation,
  embedding,
  fusedProjection,
  head,
  languageModel,
  layerNormLayer,
  learnedPositions,
  linear,
  residual,
  rmsNormLayer,
  scale,
  sequence,
  softcap,
  transposedLinear,
} from '../../model/architecture/constructors/basic-layers.js';
import {
  gatedMlp,
  mixtureOfExperts,
  packedExperts,
  router,
} from '../../model/architecture/constructors/feed-forward-layers.js';
import type {
  ActivationName,
  GatedMlp,
  LanguageModel,
  Layer,
  Linear,
} from '../../model/architecture/layer.js';
import { alibiSlopes } from '../../model/architecture/masks.js';
import { hybrid } from '../../model/architecture/models/hybrid.js';
import { buffer } from '../../model/architecture/param.js';
import type { Engine, EngineInfo, Values } from '../engine.js';
import { randomWeights } from '../weights/weights.js';

/** Hybrid model. Its window is shorter than the input of the check. */
const hybridModel = (): LanguageModel =>
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
        max_position_embeddings: 48,
        srte_factorized_rank: 4,
      },
    }),
  );

const [VOCABULARY, HIDDEN, INNER, POSITIONS] = [8, 16, 24, 48];
const [HEADS, KEY_VALUE_HEADS, HEAD_DIM] = [4, 2, 8];
const EPS = 1e-6;
/** Inner width of an expert. */
const EXPERT = 8;

/** An artificial model: each block comes from another family. */
export function transformerModel(): LanguageModel {
  const embeddings = embedding('embed', VOCABULARY, HIDDEN);
  return languageModel({
    embedding: embeddings,
    embeddingSteps: [
      scale('embed_scale', 4),
      learnedPositions('positions', POSITIONS, HIDDEN),
      layerNormLayer('embed_norm', HIDDEN, EPS),
    ],
    blocks: [
      groupedBlock('blocks.0'),
      cappedBlock('blocks.1'),
      parallelBlock('blocks.2'),
      latentBlock('blocks.3'),
    ],
    norm: rmsNormLayer('norm', HIDDEN, EPS),
    head: head('head', HIDDEN, VOCABULARY, { tiedTo: embeddings }),
    logitSteps: [softcap('logit_cap', 3)],
    positions: POSITIONS,
  });
}

const biaslessLinear = (name: string, from: number, to: number): Linear =>
  linear(name, from, to, { bias: false });

/** x + mix(norm(x)), then x + feed(norm(x)). */
const checkedBlock = (name: string, mix: Layer, feed: Layer, offset = 0): Layer =>
  sequence(
    name,
    [mix, feed].map((layer) =>
      residual(
        `${layer.name}.residual`,
        sequence(`${layer.name}.branch`, [
          rmsNormLayer(`${layer.name}.norm`, HIDDEN, EPS, offset),
          layer,
        ]),
      ),
    ),
  );

/** Expert of a mixture. */
const expert = (name: string, fn: ActivationName): GatedMlp =>
  gatedMlp(name, {
    inputs: [
      biaslessLinear(`${name}.gate`, HIDDEN, EXPERT),
      biaslessLinear(`${name}.up`, HIDDEN, EXPERT),
    ],
    activation: fn,
    down: biaslessLinear(`${name}.down`, EXPERT, HIDDEN),
  });

/** Grouped keys, normed by head; YaRN; a window; experts in separate tensors and a gated shared one. */
function groupedBlock(name: string): Layer {
  const [queries, keys] = [HEADS * HEAD_DIM, KEY_VALUE_HEADS * HEAD_DIM];
  const mix = attention(`${name}.attention`, {
    inputs: [
      biaslessLinear(`${name}.attention.q`, HIDDEN, queries),
      biaslessLinear(`${name}.attention.k`, HIDDEN, keys),
      biaslessLinear(`${name}.attention.v`, HIDDEN, keys),
    ],
    out: biaslessLinear(`${name}.attention.out`, queries, HIDDEN),
    heads: HEADS,
    keyValueHeads: KEY_VALUE_HEADS,
    headDim: HEAD_DIM,
    queryNorm: rmsNormLayer(`${name}.attention.q_norm`, HEAD_DIM, EPS),
    keyNorm: rmsNormLayer(`${name}.attention.k_norm`, HEAD_DIM, EPS),
    rotary: rotary(`${name}.attention.rotary`, {
      base: 100,
      headDim: HEAD_DIM,
      scaling: {
        kind: 'yarn',
        factor: 4,
        originalPositions: 8,
        betaFast: 1,
        betaSlow: 0.1,
        truncate: true,
        lastDimension: HEAD_DIM - 1,
        inverted: 'backwards',
        amplitude: 1.1,
      },
    }),
    window: slidingWindow(3),
  });
  const feed = mixtureOfExperts(`${name}.mixture`, {
    router: router(`${name}.mixture.router`, HIDDEN, {
      experts: 4,
      expertsPerToken: 2,
      scoring: 'softmax',
      groups: { count: 2, kept: 1, score: 'best', dropped: 0 },
    }),
    experts: [0, 1, 2, 3].map((index) => expert(`${name}.mixture.experts.${index}`, 'silu')),
    shared: [expert(`${name}.mixture.shared`, 'relu')],
    sharedGate: biaslessLinear(`${name}.mixture.shared_gate`, HIDDEN, 1),
  });
  return checkedBlock(name, mix, feed);
}

/** One product for all inputs; part of each head rotated, by the input's length; capped scores. */
function cappedBlock(name: string): Layer {
  const [queries, keys] = [HEADS * HEAD_DIM, KEY_VALUE_HEADS * HEAD_DIM];
  const qkv = biaslessLinear(`${name}.attention.qkv`, HIDDEN, queries + 2 * keys);
  const mix = attention(`${name}.attention`, {
    inputs: fusedProjection(qkv, [queries, keys, keys]),
    out: biaslessLinear(`${name}.attention.out`, queries, HIDDEN),
    heads: HEADS,
    keyValueHeads: KEY_VALUE_HEADS,
    headDim: HEAD_DIM,
    keyNorm: rmsNormLayer(`${name}.attention.k_norm`, keys, EPS),
    rotary: rotary(`${name}.attention.rotary`, {
      base: 100,
      headDim: HEAD_DIM,
      rotatedDim: HEAD_DIM / 2,
      pairs: 'neighbours',
      scaling: { kind: 'dynamic', factor: 2, originalPositions: 4 },
    }),
    scale: 0.5,
    softcap: 1,
  });
  const feed = gatedMlp(`${name}.mlp`, {
    inputs: fusedProjection(biaslessLinear(`${name}.mlp.gate_up`, HIDDEN, 2 * INNER), [
      INNER,
      INNER,
    ]),
    activation: 'geluTanh',
    down: biaslessLinear(`${name}.mlp.down`, INNER, HIDDEN),
  });
  return checkedBlock(name, mix, feed, 1);
}

/** Two branches of the same x; ALiBi; one product by head; transposed weights. */
function parallelBlock(name: string): Layer {
  const width = HEADS * HEAD_DIM;
  const qkv = transposedLinear(`${name}.attention.qkv`, HIDDEN, 3 * width);
  const mix = attention(`${name}.attention`, {
    inputs: fusedProjection(qkv, [width, width, width], HEADS),
    out: transposedLinear(`${name}.attention.out`, width, HIDDEN),
    heads: HEADS,
    headDim: HEAD_DIM,
    alibi: alibi(`${name}.attention.alibi`, alibiSlopes(HEADS)),
  });
  return residual(
    name,
    sequence(`${name}.attention_branch`, [
      layerNormLayer(`${name}.attention_norm`, HIDDEN, EPS),
      mix,
    ]),
    sequence(`${name}.mlp_branch`, [
      transposedLinear(`${name}.mlp.in`, HIDDEN, INNER),
      activation(`${name}.mlp.quick`, 'quickGelu'),
      transposedLinear(`${name}.mlp.between`, INNER, INNER),
      activation(`${name}.mlp.squared`, 'reluSquared'),
      transposedLinear(`${name}.mlp.out`, INNER, HIDDEN),
    ]),
  );
}

/** Latent attention; experts in two tensors, selected by groups. */
function latentBlock(name: string): Layer {
  const [queryRank, latentRank, nopeDim, rotatedDim, valueDim] = [6, 10, 6, 4, 5];
  const at = `${name}.attention`;
  const mix = latentAttention(at, {
    query: sequence(`${at}.query`, [
      biaslessLinear(`${at}.query_down`, HIDDEN, queryRank),
      rmsNormLayer(`${at}.query_norm`, queryRank, EPS),
      biaslessLinear(`${at}.query_up`, queryRank, HEADS * (nopeDim + rotatedDim)),
    ]),
    keyValueDown: biaslessLinear(`${at}.down`, HIDDEN, latentRank + rotatedDim),
    latentNorm: rmsNormLayer(`${at}.latent_norm`, latentRank, EPS),
    keyValueUp: biaslessLinear(`${at}.up`, latentRank, HEADS * (nopeDim + valueDim)),
    rotary: rotary(`${at}.rotary`, { base: 100, headDim: rotatedDim, pairs: 'neighbours' }),
    out: biaslessLinear(`${at}.out`, HEADS * valueDim, HIDDEN),
    heads: HEADS,
    latentRank,
    nopeDim,
    valueDim,
    scale: 0.3,
  });
  const experts = 6;
  const feed = mixtureOfExperts(`${name}.mixture`, {
    router: router(`${name}.mixture.router`, HIDDEN, {
      experts,
      expertsPerToken: 3,
      scoring: 'sigmoid',
      correction: buffer(`${name}.mixture.router.correction`, [experts]),
      groups: { count: 3, kept: 2, score: 'bestTwo', dropped: Number.NEGATIVE_INFINITY },
      renormalised: { eps: 1e-20 },
      scale: 1.5,
    }),
    experts: packedExperts(
      `${name}.mixture.experts`,
      { experts, hidden: HIDDEN, inner: EXPERT },
      'gelu',
    ),
    shared: [expert(`${name}.mixture.shared`, 'silu')],
  });
  return checkedBlock(name, mix, feed);
}

// Self-check of an engine: correctness and speed.

export interface SelfCheck {
  /** Largest difference from the float64 result. Infinite for NaN. @real */
  readonly difference: number;
  /** Largest allowed difference. */
  readonly limit: number;
  /** Whether the difference is within the limit. */
  readonly passed: boolean;
}

const SELF_CHECK_SEED = 1;

/** Tokens of the check: enough rows for the kernels that graphics cards use for larger products and attention. */
const TOKENS = 40;
const SELF_CHECK_IDS = {
  batch: 1,
  tokens: TOKENS,
  data: Int32Array.from({ length: TOKENS }, (_, at) => (5 * at + (at >> 3)) % 8),
};

/** Models that together contain every kind of layer, and their logits of the last token. */
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
 * About ten times the rounding error of float32. Graphics cards have their own exponentials, and WebGPU allows errors
 * of several units in the last place (https://www.w3.org/TR/WGSL/#floating-point-accuracy). Products of float16 have 11
 * bits, and a graphics card that also adds in float16 loses some. 4e-4 was measured on the CPU and 1.1e-3 on a software
 * adapter by WebGPU; the limit is about four times that.
 */
const limitFor = ({ compute, deviceKind }: EngineInfo): number =>
  compute === 'f16' ? 5e-3 : deviceKind === 'cpu' ? 1e-5 : 1e-4;

/** Runs tiny models of random weights, whose logits are known from float64 arithmetic. */
export async function selfCheck(engine: Engine): Promise<SelfCheck> {
  let difference = 0;
  for (const { make, expected } of SELF_CHECKS) {
    difference = Math.max(difference, await outputDifference(engine, make(), expected));
  }
  const limit = limitFor(engine.info);
  return { difference, limit, passed: difference <= limit };
}

/** The largest difference from the expected logits. */
async function outputDifference(
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

/** Rows and columns of the timed product. */
const SIZE = 512;
/**
 * Rows of the run before the timed ones. On the CPU a few rows suffice to compile the code; a graphics card compiles
 * for the number of rows.
 */
const warmUpRows = ({ deviceKind }: EngineInfo): number => (deviceKind === 'cpu' ? SIZE / 8 : SIZE);
/** Seconds of timing. */
const TIMING_SECONDS = 0.25;

/** Floating-point operations per second of a product of two matrices of 512 × 512, the fastest of several. */
export async function productSpeed(engine: Engine): Promise<number> {
  const layer = linear('product', SIZE, SIZE, { bias: false });
  const weights = randomWeights(layer, SELF_CHECK_SEED);
  const inputOf = (rows: number): Values => ({
    shape: [1, rows, SIZE],
    data: new Float32Array(rows * SIZE).fill(0.5),
  });
  const program = await engine.load(layer, weights);
  await program.run({ inputs: [inputOf(warmUpRows(engine.info))] });
  const input = inputOf(SIZE);
  let fastest = Number.POSITIVE_INFINITY;
  const begin = performance.now();
  do {
    const start = performance.now();
    await program.run({ inputs: [input] });
    fastest = Math.min(fastest, (performance.now() - start) / 1000);
  } while ((performance.now() - begin) / 1000 < TIMING_SECONDS);
  await program.release();
  return (2 * SIZE ** 3) / fastest;
}
