/**
 * FLOPs of a forward pass and of a training step, with formulas. 1 multiply-accumulate (MAC) is 2 FLOP. Sums can
 * exceed 2^53 − 1 and stay exact.
 */

import { groupBy, sumOf } from '../../base/values.js';
import type { Component, Layer, Window } from '../architecture/layer.js';
import { COMPONENTS } from '../architecture/layer.js';
import { reachOf, sumByWindow, visiblePairs, windowKey } from '../architecture/masks.js';
import { memoized, memoizedBy } from '../architecture/walk.js';
import { countedParts, primitivesOf } from '../operations/lower.js';
import type { IndexScores, Primitive, Scan, Scores } from '../operations/primitive.js';
import {
  add,
  ceildiv,
  div,
  type Expression,
  floordiv,
  type Input,
  inputNamed,
  min,
  mul,
  sub,
  v,
} from './expression.js';
import type { Figure } from './figure.js';
import { type Exact, exact, figure } from './figure.js';

/** Policies of recomputation in the backward pass, which saves memory. */
export const RECOMPUTES = {
  none: { again: () => 0, source: 'nothing is computed again' },
  selective: {
    again: (kind) => (kind === 'scores' || kind === 'scan' ? 1 : 0),
    source: 'the insides of attention and scans are computed again (arXiv 2205.05198)',
  },
  operations: {
    again: (kind) => (kind === 'projection' ? 0.5 : kind === 'scores' ? 0 : 1),
    source:
      'attention and every second product are kept, and all other operations computed again (torchtitan, ' +
      'activation_checkpoint.py, selective AC per op)',
  },
  compiled: {
    again: () => 0,
    source:
      'products and attention are kept, and norms and activations computed again inside fused kernels (PyTorch, ' +
      'torch.compile, min-cut partitioner)',
  },
  full: {
    again: () => 1,
    source: 'the forward pass of every block is computed again (arXiv 2205.05198)',
  },
} as const satisfies Record<string, RecomputePolicy>;

interface RecomputePolicy {
  /** Share of the FLOPs of the forward pass that the backward pass computes again. */
  readonly again: (kind: WorkKind) => number;
  readonly source: string;
}

/** Work repeated in the backward pass to save memory. */
export type Recompute = keyof typeof RECOMPUTES;

export const RECOMPUTE_NAMES = Object.keys(RECOMPUTES) as readonly Recompute[];

/** Counted primitives and their kind of work. The others need few FLOPs at real sizes. */
const WORK = {
  matmul: 'projection',
  router: 'projection',
  scores: 'scores',
  indexScores: 'scores',
  convolution: 'convolution',
  scan: 'scan',
} as const satisfies Partial<Record<Primitive['kind'], string>>;

export type Operation = Extract<Primitive, { kind: keyof typeof WORK }>;

type WorkKind = (typeof WORK)[Operation['kind']];

const isOperation = (primitive: Primitive): primitive is Operation => primitive.kind in WORK;

/** Operations on pairs of a query and a key. */
type Scored = Scores | IndexScores;

const isScored = (operation: Operation): operation is Scored => WORK[operation.kind] === 'scores';

const latentOf = (scored: Scored): Scores['latent'] =>
  scored.kind === 'scores' ? scored.latent : undefined;

export interface ForwardSetting {
  /** Sequences, B. */
  readonly batch: number;
  /** Tokens per sequence, T. */
  readonly context: number;
  /** Count only unmasked pairs of query and key instead of the whole square. */
  readonly causal: boolean;
}

export interface TrainingFlopsSetting extends ForwardSetting {
  readonly recompute: Recompute;
}

export interface ComponentFlops {
  /** Component of the model. */
  readonly component: Component;
  /** Kind of the operations. */
  readonly kind: WorkKind;
  readonly flops: Figure;
}

/** FLOPs by component and kind of work, in model order. */
export interface ForwardBudget {
  /** FLOPs by component and kind. */
  readonly parts: readonly ComponentFlops[];
  readonly total: Figure;
  /** Multiply-accumulates of matrix products only: projections and attention scores. */
  readonly macs: Figure;
}

/** One forward and one backward pass, without the optimizer. */
export interface TrainingFlopsBudget {
  /** FLOPs by component and kind. */
  readonly parts: readonly ComponentFlops[];
  readonly total: Figure;
}

/** Names and sources of each kind of work. */
const KINDS = {
  projection: { label: 'projections', source: '2 FLOP per multiply-accumulate with a weight' },
  scores: {
    label: 'scores and values',
    source:
      'q·kᵀ and its sum over v: per pair and head a multiply-accumulate for each value of the query, and of v',
  },
  convolution: {
    label: 'convolution',
    source: 'depthwise: kernel multiply-accumulates per channel and token',
  },
  scan: {
    label: 'scan',
    source:
      'per state value 7 multiplications and additions and 1 exponential: Δ·A, exp, h·, Δ·B, ·x, +, C·h, +; per channel D·x, +; ' +
      'with a decay per head, per state value 5: h·, B·, +, C·h, +; per channel Δ·x, D·x, +; ' +
      'with the delta rule, per state value 7: S·, k·S, +, k·, +, q·S, +; per channel v −, β·; ' +
      'with a fixed decay per head, per state value 5: S·, k·, +, q·S, +; ' +
      'with one state value per channel, 9: r·, exp, a·, a², 1 −, √, i·, ·, +; ' +
      'with a weighted mean per channel, 23: k + u; twice a maximum, 2 differences and exponentials, and 2 products and sums of ' +
      'numerator and denominator; m + w; a quotient',
  },
} as const satisfies Record<WorkKind, { label: string; source: string }>;

/** FLOPs of a scan per value of its state and per channel, as `KINDS` lists them; the suffix names its inputs. */
const SCANS = [
  { decays: 'values', suffix: '', perValue: 8, perChannel: 2 },
  { decays: 'heads', suffix: '_of_heads', perValue: 5, perChannel: 3 },
  { decays: 'delta', suffix: '_of_delta', perValue: 7, perChannel: 2 },
  { decays: 'fixed', suffix: '_of_fixed_decays', perValue: 5, perChannel: 0 },
  { decays: 'rwkv', suffix: '_of_means', perValue: 0, perChannel: 23 },
  { decays: 'channels', suffix: '_of_channels', perValue: 0, perChannel: 9 },
] as const;

/** Counted work: a whole layer, or selected operations. */
export type Work = Layer | readonly Operation[];

export const operationsIn = memoized((work: Work): readonly Operation[] =>
  'kind' in work ? primitivesOf(work).filter(isOperation) : work,
);

/** Operations for counts, in the parts of a model, whose blocks other models can have too. */
const countedOperations = (work: Work): readonly (readonly Operation[])[] =>
  'kind' in work ? countedParts(work).map(operationsOfPart) : [work];

const operationsOfPart = memoized((part: readonly Primitive[]) => part.filter(isOperation));

/** Counts one forward pass over batch × context tokens. A training step and decoding count it again. */
export const forwardFlopsOf: (work: Work, setting: ForwardSetting) => ForwardBudget = memoizedBy(
  forwardIdentity,
  (work, setting) => {
    const parts = operationGroups(work).map((group) => {
      const [first, ...others] = group;
      // The work of blocks that several models have in common is one group.
      return others.length === 0 ? flopsAlone(first, setting) : flopsOfGroup(group, setting);
    });
    const products = parts.filter(({ kind }) => kind === 'projection' || kind === 'scores');
    return { parts, total: partsTotal('forward pass', parts), macs: macs(products) };
  },
);

function forwardIdentity({ batch, context, causal }: ForwardSetting): string {
  return `${batch} ${context} ${causal}`;
}

function flopsOfGroup(group: PartedGroup, setting: ForwardSetting): ComponentFlops {
  const { component, kind } = group[0][0];
  return { component, kind: WORK[kind], flops: forwardFigure(group, setting) };
}

const flopsAlone = memoizedBy(forwardIdentity, (only: OperationGroup, setting: ForwardSetting) =>
  flopsOfGroup([only], setting),
);

/** Counts one training step over batch × context tokens. */
export function trainingFlopsOf(work: Work, setting: TrainingFlopsSetting): TrainingFlopsBudget {
  const parts = forwardFlopsOf(work, setting).parts.map((part) =>
    trainingPart(part, setting.recompute),
  );
  return { parts, total: partsTotal('training step', parts) };
}

const trainingPart = memoizedBy(
  (recompute: Recompute) => recompute,
  (part: ComponentFlops, recompute): ComponentFlops => ({
    ...part,
    flops: trainingFigure(part, recompute),
  }),
);

/** Inputs of a sum of parts. */
const partInputs = (parts: readonly ComponentFlops[]): readonly Input[] =>
  parts.map(({ component, kind, flops }) => inputNamed(`${component}_${kind}`, flops.value));

const partsTotal = (label: string, parts: readonly ComponentFlops[], source = 'sum of the parts') =>
  figure({ label, unit: 'FLOP', formula: add(...partInputs(parts)), source });

type OperationGroup = readonly [Operation, ...Operation[]];

/** Operations of one component and kind, part by part. */
type PartedGroup = readonly [OperationGroup, ...OperationGroup[]];

/** Groups operations by component and kind, in order of first appearance. */
const operationGroups = memoized((work: Work): readonly PartedGroup[] => {
  const groups = new Map<string, [OperationGroup, ...OperationGroup[]]>();
  for (const part of countedOperations(work)) {
    for (const [key, operations] of groupsOfPart(part)) {
      const group = groups.get(key);
      if (group) group.push(operations);
      else groups.set(key, [operations]);
    }
  }
  return [...groups.values()];
});

const groupsOfPart = memoized((operations: readonly Operation[]) =>
  groupBy(operations, ({ component, kind }) => `${component} ${WORK[kind]}`),
);

/** Sums over operations of one component and kind. */
interface Sums {
  /** Weights that each token is multiplied with. */
  readonly tokens: number;
  /** Weights that each position of a batch is multiplied with. */
  readonly positions: number;
  /** Multiply-accumulates of products with a fixed number of rows in a pass. */
  readonly fixed: number;
  /** Weights of convolutions. */
  readonly kernels: number;
  /** State values and channels of scans, by their decays. */
  readonly scans: ReadonlyMap<Scan['decays'], { readonly values: number; readonly inner: number }>;
}

const sumsOf = memoized((operations: OperationGroup): Sums => {
  let [tokens, positions, fixed, kernels] = [0, 0, 0, 0];
  const scans = new Map<Scan['decays'], { values: number; inner: number }>();
  for (const each of operations) {
    const { times = 1 } = each;
    if (each.kind === 'convolution') kernels += times * each.channels * each.kernel;
    else if (each.kind === 'scan') {
      const sums = scans.get(each.decays) ?? { values: 0, inner: 0 };
      sums.values += times * each.inner * each.state;
      sums.inner += times * each.inner;
      scans.set(each.decays, sums);
    } else if ('weights' in each) {
      const weights = times * each.weights;
      if (each.rows === 'tokens') tokens += weights;
      else if (typeof each.rows === 'number') fixed += each.rows * weights;
      else positions += weights;
    }
  }
  return { tokens, positions, fixed, kernels, scans };
});

function forwardFigure(group: PartedGroup, { batch, context, causal }: ForwardSetting): Figure {
  const { component } = group[0][0];
  const kind = WORK[group[0][0].kind];
  const { label, source } = KINDS[kind];
  const [batches, tokens] = [v({ batch }), v({ context })];
  const base = { label: `${COMPONENTS[component]}: ${label}`, unit: 'FLOP', source } as const;
  const sum = (of: (sums: Sums) => number) => sumOf(group, (each) => of(sumsOf(each)));
  switch (kind) {
    case 'projection': {
      // Work per position, and of fixed rows, costs the same for any batch.
      const [perToken, perPosition] = [sum(({ tokens }) => tokens), sum((all) => all.positions)];
      const fixed = sum((all) => all.fixed);
      const ofTokens = v({ weights: perToken });
      if (perPosition === 0 && fixed === 0) {
        return figure({ ...base, formula: mul(2, batches, tokens, ofTokens) });
      }
      const ofPositions = v({ weights_per_position: perPosition });
      const products =
        perPosition === 0 ? mul(batches, ofTokens) : add(mul(batches, ofTokens), ofPositions);
      const formula =
        fixed === 0
          ? mul(2, tokens, products)
          : mul(2, add(mul(tokens, products), v({ weights_of_fixed_rows: fixed })));
      return figure({ ...base, formula, inputs: { batch: batches, context: tokens } });
    }
    case 'scores':
      return figure({ ...base, formula: scoresFormula(group.flat(), batch, context, causal) });
    case 'convolution': {
      const weights = sum(({ kernels }) => kernels);
      return figure({ ...base, formula: mul(2, batches, tokens, v({ weights })) });
    }
    case 'scan': {
      const perToken = SCANS.flatMap(({ decays, suffix, perValue, perChannel }) => {
        const values = sum(({ scans }) => scans.get(decays)?.values ?? 0);
        if (values === 0) return [];
        const channels = sum(({ scans }) => scans.get(decays)?.inner ?? 0);
        return [
          mul(perValue, v({ [`state_values${suffix}`]: values })),
          mul(perChannel, v({ [`channels${suffix}`]: channels })),
        ];
      });
      return figure({ ...base, formula: mul(batches, tokens, add(...perToken)) });
    }
  }
}

/** One MAC per pair for each value of a query and of v; heads with the same window together. */
function scoresFormula(
  operations: readonly Operation[],
  batch: number,
  context: number,
  causal: boolean,
): Expression {
  const scores = operations.filter(isScored);
  const queries = sumByWindow(scores, ({ headDim, times = 1 }, heads) => times * heads * headDim);
  const values = sumByWindow(scores, ({ valueDim, times = 1 }, heads) => times * heads * valueDim);
  if (!causal) {
    const entries = [
      ...new Set([...queries.values()].flatMap(({ window }) => compressionOf(window))),
    ];
    const terms = [undefined, ...entries].map((compression) => {
      const widthOf = (sums: typeof queries) =>
        sumOf(sums.values(), ({ window, size }) =>
          compressionOf(window)[0] === compression ? size : 0,
        );
      const suffix = compression === undefined ? '' : `_compressed_${compression}`;
      const widths = add(
        v({ [`query_width${suffix}`]: widthOf(queries) }),
        v({ [`value_width${suffix}`]: widthOf(values) }),
      );
      const keys = v({ context });
      return mul(keys, compression === undefined ? keys : floordiv(keys, compression), widths);
    });
    return mul(2, v({ batch }), terms.length === 1 ? (terms[0] ?? 0) : add(...terms));
  }
  const terms = [...queries].map(([suffix, { window, size }]) =>
    mul(
      add(
        v({ [`query_width_${suffix}`]: size }),
        v({ [`value_width_${suffix}`]: values.get(suffix)?.size ?? 0 }),
      ),
      v({ [`pairs_${suffix}`]: exact(visiblePairs(context, window)) }),
    ),
  );
  return mul(2, v({ batch }), add(...terms));
}

function macs(products: readonly ComponentFlops[]): Figure {
  const formula = div(add(...partInputs(products)), 2);
  const source = 'matrix products alone; 1 MAC is 2 FLOP';
  return figure({ label: 'matrix products', unit: 'MAC', formula, source });
}

/** A backward pass costs two forward passes: gradients of the inputs and of the weights. An indexer has none. */
function trainingFigure(
  { component, kind, flops: forward }: ComponentFlops,
  recompute: Recompute,
): Figure {
  const again = RECOMPUTES[recompute].again(kind);
  if (component === 'indexer') {
    return figure({
      label: forward.label,
      unit: 'FLOP',
      formula: mul(1, v({ forward: forward.value })),
      source: 'keys are chosen once, without a gradient',
    });
  }
  return figure({
    label: forward.label,
    unit: 'FLOP',
    // FLOPs are even, so half of them is exact.
    formula: Number.isInteger(again)
      ? mul(3 + again, v({ forward: forward.value }))
      : div(mul(2 * (3 + again), v({ forward: forward.value })), 2),
    source: again
      ? `backward = 2 × forward; ${RECOMPUTES[recompute].source}`
      : 'backward = 2 × forward (arXiv 2204.02311, appendix B)',
  });
}

/**
 * FLOPs under common conventions: forward or training, full or masked attention, with or without work other than
 * matrix products.
 */
export function flopsByConvention(
  layer: Layer,
  forward: ForwardSetting,
  training: TrainingFlopsSetting,
): Record<string, Exact> {
  const counts: Record<string, Exact> = {};
  for (const causal of [false, true]) {
    const attention = causal ? ', attention as masked' : '';
    const pass = forwardFlopsOf(layer, { ...forward, causal });
    const step = trainingFlopsOf(layer, { ...training, causal });
    counts[`a forward pass${attention}`] = pass.total.value;
    counts[`the matrix products of a forward pass${attention}`] = exact(
      2n * BigInt(pass.macs.value),
    );
    counts[`a training step${attention}`] = step.total.value;
  }
  return counts;
}

// Cached decoding: FLOPs of one more token, with cached keys, values and states

export interface DecodingFlops {
  /** Cost per token independent of the context: products with weights, convolutions, scans. */
  readonly perToken: Figure;
  /** Cost of the keys and values of the context. */
  readonly scores: Figure;
}

/** @param context Cached tokens, including the new one. */
export function decodingFlopsOf(work: Work, context: number): DecodingFlops {
  const { parts } = forwardFlopsOf(work, { batch: 1, context: 1, causal: true });
  const others = parts.filter(({ kind }) => kind !== 'scores');
  return {
    perToken: partsTotal(
      'a token, without scores',
      others,
      'sum of the parts of a forward pass over one token',
    ),
    scores: scoresFigure(work, context),
  };
}

/** FLOPs of scores alone, without their formulas, for sums over many contexts. */
interface ScoresByContext {
  /** A masked forward pass over one sequence. */
  readonly forward: (context: number) => bigint;
  /** One more token. @param context Cached tokens, including the new one. */
  readonly decoding: (context: number) => bigint;
}

/** The same counts as those of `forwardFlopsOf` and `decodingFlopsOf`. */
function scoresByContext(work: Work): ScoresByContext {
  const scores = countedOperations(work).flat().filter(isScored);
  const perPair = ({ headDim, valueDim }: Scored) => headDim + valueDim;
  const forward = sumByWindow(
    scores,
    (layer, heads) => (layer.times ?? 1) * heads * perPair(layer),
  );
  const step = sumByWindow(
    scores,
    (layer, heads) => (layer.times ?? 1) * heads * (latentOf(layer)?.multiplied ?? perPair(layer)),
  );
  const flops = (
    sums: typeof forward,
    pairsOf: (window: Window | undefined) => number | bigint,
  ): bigint =>
    [...sums.values()].reduce(
      (total, { window, size }) => total + 2n * BigInt(size) * BigInt(pairsOf(window)),
      0n,
    );
  return {
    forward: (context) => flops(forward, (window) => visiblePairs(context, window)),
    decoding: (context) => flops(step, (window) => seenFrom(context, window)),
  };
}

/** Positions of each compressed entry; none of a head that sees keys. */
const compressionOf = (window: Window | undefined): readonly number[] =>
  window?.rule === 'compressed' ? [window.tokens] : [];

/** The value of `keysSeen`. */
function seenFrom(context: number, window: Window | undefined): number {
  if (window === undefined) return context;
  if (window.rule === 'compressed') return Math.floor(context / window.tokens);
  if (window.rule !== 'chunked') return Math.min(context, reachOf(window) + 1);
  return context - window.tokens * (Math.ceil(context / window.tokens) - 1);
}

const latentName = (window: Window | undefined): string =>
  window === undefined ? 'latent_width' : `latent_width_${windowKey(window)}`;

/** Keys that the last of `tokens` tokens sees. */
function keysSeen(window: Window | undefined, tokens: Input): Expression {
  if (window === undefined) return tokens;
  if (window.rule === 'compressed') return floordiv(tokens, window.tokens);
  if (window.rule !== 'chunked') return min(tokens, reachOf(window) + 1);
  // Those of its chunk: all but the full chunks before it.
  return sub(tokens, mul(window.tokens, sub(ceildiv(tokens, window.tokens), 1)));
}

/**
 * Queries read a sliding window. With latents, heads multiply the latents directly. The projection to keys and
 * values is merged into the query and the output (arXiv 2405.04434, section 2.1.2), at the same cost per token.
 */
function scoresFigure(work: Work, context: number): Figure {
  const tokens = v({ context });
  const widths = new Map<string, { readonly width: number; readonly seen: Expression }>();
  const widen = (name: string, width: number, seen: Expression) =>
    widths.set(name, { width: (widths.get(name)?.width ?? 0) + width, seen });
  for (const operation of countedOperations(work).flat()) {
    if (!isScored(operation)) continue;
    const { spans, headDim, valueDim, times = 1 } = operation;
    const latent = latentOf(operation);
    for (const { heads: each, window } of spans) {
      const seen = keysSeen(window, tokens);
      const heads = times * each;
      if (latent !== undefined) widen(latentName(window), heads * latent.multiplied, seen);
      else widen(`query_and_value_width_${windowKey(window)}`, heads * (headDim + valueDim), seen);
    }
  }
  const terms = [...widths].map(([name, { width, seen }]) => mul(v({ [name]: width }), seen));
  return figure({
    label: 'scores and values of a token',
    unit: 'FLOP',
    formula: mul(2, add(...terms)),
    inputs: { context: tokens },
    source:
      'q·kᵀ and its sum over v: per kept token and head a multiply-accumulate for each value of the query, and of v; ' +
      'latents are read as they are',
  });
}

// FLOPs of generating tokens one by one: with a cache of the tokens before, and computing all of them again each time

export interface GenerationSetting {
  /** Tokens of the prompt, P. @integer @minimum 1 */
  readonly prompt: number;
  /** Generated tokens, N. The last one is not computed with. @integer @minimum 1 */
  readonly generated: number;
}

export interface GenerationFlops extends GenerationSetting {
  /** A forward pass over the prompt, and a step for each generated token but the last. */
  readonly cached: Exact;
  /** Forward passes over P, P + 1, …, P + N − 1 tokens. */
  readonly recomputed: Exact;
  /** The second divided by the first. */
  readonly ratio: number;
}

/** One sequence; scores are counted as masked. */
export function generationFlopsOf(work: Work, setting: GenerationSetting): GenerationFlops {
  const { prompt, generated } = setting;
  // All other parts cost the same for each token, at any position.
  const perToken = BigInt(decodingFlopsOf(work, 1).perToken.value);
  const scores = scoresByContext(work);
  const forward = (context: number) => BigInt(context) * perToken + scores.forward(context);
  let cached = forward(prompt);
  let recomputed = cached;
  for (let context = prompt + 1; context < prompt + generated; context++) {
    cached += perToken + scores.decoding(context);
    recomputed += forward(context);
  }
  return {
    ...setting,
    cached: exact(cached),
    recomputed: exact(recomputed),
    ratio: Number(recomputed) / Number(cached),
  };
}

/** Generated tokens that a report counts, at most. */
const GENERATED = 128;

/** Counts the first tokens of an answer. Undefined without a prompt or an answer. */
export const answerFlopsOf = (
  work: Work,
  { prompt, generated }: GenerationSetting,
): GenerationFlops | undefined =>
  prompt < 1 || generated < 1
    ? undefined
    : generationFlopsOf(work, { prompt, generated: Math.min(GENERATED, generated) });

/** Counts the last tokens of a context, generated after those before. Undefined for a context without room for both. */
export function lastTokensFlopsOf(work: Work, context: number): GenerationFlops | undefined {
  const generated = Math.min(GENERATED, Math.floor(context / 2));
  return answerFlopsOf(work, { prompt: context - generated, generated });
}
