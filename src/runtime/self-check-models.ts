/** Small models that have between them everything that models are made of. */
import {
  activation,
  alibi,
  attention,
  embedding,
  fusedProjection,
  gatedMlp,
  head,
  languageModel,
  latentAttention,
  layerNorm,
  learnedPositions,
  linear,
  mixtureOfExperts,
  packedExperts,
  residual,
  rmsNorm,
  rotary,
  router,
  scale,
  sequence,
  slidingWindow,
  softcap,
  transposedLinear,
} from '../architecture/constructors.js';
import type {
  ActivationName,
  GatedMlp,
  LanguageModel,
  Layer,
  Linear,
} from '../architecture/layer.js';
import { hybrid } from '../architecture/models/hybrid.js';
import { buffer } from '../architecture/param.js';

/** With a window that is shorter than the input of the check. */
export const hybridModel = (): LanguageModel =>
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

/** No model at all: each block is made as those of another family are. */
export function transformerModel(): LanguageModel {
  const embeddings = embedding('embed', VOCABULARY, HIDDEN);
  return languageModel({
    embedding: embeddings,
    embeddingSteps: [
      scale('embed_scale', 4),
      learnedPositions('positions', POSITIONS, HIDDEN),
      layerNorm('embed_norm', HIDDEN, EPS),
    ],
    blocks: [
      groupedBlock('blocks.0'),
      cappedBlock('blocks.1'),
      parallelBlock('blocks.2'),
      latentBlock('blocks.3'),
    ],
    norm: rmsNorm('norm', HIDDEN, EPS),
    head: head('head', HIDDEN, VOCABULARY, embeddings),
    logitSteps: [softcap('logit_cap', 3)],
    positions: POSITIONS,
  });
}

const product = (name: string, from: number, to: number): Linear =>
  linear(name, from, to, { bias: false });

/** x + mix(norm(x)), then x + feed(norm(x)). */
const block = (name: string, mix: Layer, feed: Layer, offset = 0): Layer =>
  sequence(
    name,
    [mix, feed].map((layer) =>
      residual(
        `${layer.name}.residual`,
        sequence(`${layer.name}.branch`, [
          rmsNorm(`${layer.name}.norm`, HIDDEN, EPS, offset),
          layer,
        ]),
      ),
    ),
  );

const mlp = (name: string, fn: ActivationName, inner = INNER): GatedMlp =>
  gatedMlp(name, {
    inputs: [product(`${name}.gate`, HIDDEN, inner), product(`${name}.up`, HIDDEN, inner)],
    activation: fn,
    down: product(`${name}.down`, inner, HIDDEN),
  });

/** Grouped keys, normed by head; YaRN; a window; experts of their own tensors and a gated one for all. */
function groupedBlock(name: string): Layer {
  const [queries, keys] = [HEADS * HEAD_DIM, KEY_VALUE_HEADS * HEAD_DIM];
  const mix = attention(`${name}.attention`, {
    inputs: [
      product(`${name}.attention.q`, HIDDEN, queries),
      product(`${name}.attention.k`, HIDDEN, keys),
      product(`${name}.attention.v`, HIDDEN, keys),
    ],
    out: product(`${name}.attention.out`, queries, HIDDEN),
    heads: HEADS,
    keyValueHeads: KEY_VALUE_HEADS,
    headDim: HEAD_DIM,
    queryNorm: rmsNorm(`${name}.attention.q_norm`, HEAD_DIM, EPS),
    keyNorm: rmsNorm(`${name}.attention.k_norm`, HEAD_DIM, EPS),
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
    experts: [0, 1, 2, 3].map((expert) => mlp(`${name}.mixture.experts.${expert}`, 'silu', 8)),
    shared: [mlp(`${name}.mixture.shared`, 'relu', 8)],
    sharedGate: product(`${name}.mixture.shared_gate`, HIDDEN, 1),
  });
  return block(name, mix, feed);
}

/** One product for all inputs; part of each head turned, by the input's length; capped scores. */
function cappedBlock(name: string): Layer {
  const [queries, keys] = [HEADS * HEAD_DIM, KEY_VALUE_HEADS * HEAD_DIM];
  const qkv = product(`${name}.attention.qkv`, HIDDEN, queries + 2 * keys);
  const mix = attention(`${name}.attention`, {
    inputs: fusedProjection(qkv, [queries, keys, keys]),
    out: product(`${name}.attention.out`, queries, HIDDEN),
    heads: HEADS,
    keyValueHeads: KEY_VALUE_HEADS,
    headDim: HEAD_DIM,
    keyNorm: rmsNorm(`${name}.attention.k_norm`, keys, EPS),
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
    inputs: fusedProjection(product(`${name}.mlp.gate_up`, HIDDEN, 2 * INNER), [INNER, INNER]),
    activation: 'geluTanh',
    down: product(`${name}.mlp.down`, INNER, HIDDEN),
  });
  return block(name, mix, feed, 1);
}

/** Two branches of the same x; ALiBi; one product by head; weights that lie the other way. */
function parallelBlock(name: string): Layer {
  const width = HEADS * HEAD_DIM;
  const qkv = transposedLinear(`${name}.attention.qkv`, HIDDEN, 3 * width);
  const mix = attention(`${name}.attention`, {
    inputs: fusedProjection(qkv, [width, width, width], HEADS),
    out: transposedLinear(`${name}.attention.out`, width, HIDDEN),
    heads: HEADS,
    headDim: HEAD_DIM,
    alibi: alibi(`${name}.attention.alibi`, HEADS),
  });
  return residual(
    name,
    sequence(`${name}.attention_branch`, [layerNorm(`${name}.attention_norm`, HIDDEN, EPS), mix]),
    sequence(`${name}.mlp_branch`, [
      transposedLinear(`${name}.mlp.in`, HIDDEN, INNER),
      activation(`${name}.mlp.quick`, 'quickGelu'),
      transposedLinear(`${name}.mlp.between`, INNER, INNER),
      activation(`${name}.mlp.squared`, 'reluSquared'),
      transposedLinear(`${name}.mlp.out`, INNER, HIDDEN),
    ]),
  );
}

/** Latent attention; experts in two tensors, the best groups of them. */
function latentBlock(name: string): Layer {
  const [queryRank, latentRank, nopeDim, turnedDim, valueDim] = [6, 10, 6, 4, 5];
  const at = `${name}.attention`;
  const mix = latentAttention(at, {
    query: sequence(`${at}.query`, [
      product(`${at}.query_down`, HIDDEN, queryRank),
      rmsNorm(`${at}.query_norm`, queryRank, EPS),
      product(`${at}.query_up`, queryRank, HEADS * (nopeDim + turnedDim)),
    ]),
    keyValueDown: product(`${at}.down`, HIDDEN, latentRank + turnedDim),
    latentNorm: rmsNorm(`${at}.latent_norm`, latentRank, EPS),
    keyValueUp: product(`${at}.up`, latentRank, HEADS * (nopeDim + valueDim)),
    rotary: rotary(`${at}.rotary`, { base: 100, headDim: turnedDim, pairs: 'neighbours' }),
    out: product(`${at}.out`, HEADS * valueDim, HIDDEN),
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
      { experts, hidden: HIDDEN, inner: 8 },
      'gelu',
    ),
    shared: [mlp(`${name}.mixture.shared`, 'silu', 8)],
  });
  return block(name, mix, feed);
}
