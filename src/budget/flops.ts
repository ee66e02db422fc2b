/**
 * FLOPs of a forward pass and of a training step, with formulas. 1 multiply-accumulate (MAC) is 2 FLOP. Sums can
 * exceed 2^53 − 1 and stay exact.
 */
import type { Component, Layer, Window } from '../architecture/layer.js';
import { COMPONENTS } from '../architecture/layer.js';
import { reachOf, visiblePairs, windowKey } from '../architecture/masks.js';
import { memoized } from '../architecture/walk.js';
import { primitivesOf } from '../operations/lower.js';
import type { Primitive, Scan } from '../operations/primitive.js';
import { add, ceildiv, div, type Expression, type Input, min, mul, sub, v } from './expression.js';
import type { Exact, Figure } from './figure.js';
import { exact, figure, sumFigure } from './figure.js';

/** Work repeated in the backward pass to save memory. */
export type Recompute = 'none' | 'selective' | 'full';

/** Counted primitives and their kind of work. The others need few FLOPs at real sizes. */
const WORK = {
  matmul: 'projection',
  router: 'projection',
  scores: 'scores',
  convolution: 'convolution',
  scan: 'scan',
} as const satisfies Partial<Record<Primitive['kind'], string>>;

export type Operation = Extract<Primitive, { kind: keyof typeof WORK }>;

type WorkKind = (typeof WORK)[Operation['kind']];

const isOperation = (primitive: Primitive): primitive is Operation => primitive.kind in WORK;

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
  readonly component: Component;
  readonly kind: WorkKind;
  readonly flops: Figure;
}

/** FLOPs by component and kind of work, in model order. */
export interface ForwardBudget {
  readonly parts: readonly ComponentFlops[];
  readonly total: Figure;
  /** Multiply-accumulates of matrix products only: projections and attention scores. */
  readonly macs: Figure;
}

/** One forward and one backward pass, without the optimizer. */
export interface TrainingFlopsBudget {
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
      'with the delta rule, per state value 7: S·, k·S, +, k·, +, q·S, +; per channel v −, β·',
  },
} as const satisfies Record<WorkKind, { label: string; source: string }>;

/** Counted work: a whole layer, or selected operations. */
export type Work = Layer | readonly Operation[];

export const operationsIn = memoized((work: Work): readonly Operation[] =>
  'kind' in work ? primitivesOf(work).filter(isOperation) : work,
);

/** Counts one forward pass over batch × context tokens. */
export function forwardFlopsOf(work: Work, setting: ForwardSetting): ForwardBudget {
  const parts = groupsOf(work).map((operations): ComponentFlops => {
    const { component, kind } = operations[0];
    return { component, kind: WORK[kind], flops: forwardFigure(operations, setting) };
  });
  const products = parts.filter(({ kind }) => kind === 'projection' || kind === 'scores');
  return { parts, total: sumOf('forward pass', parts), macs: macs(products) };
}

/** Counts one training step over batch × context tokens. */
export function trainingFlopsOf(work: Work, setting: TrainingFlopsSetting): TrainingFlopsBudget {
  const parts = forwardFlopsOf(work, setting).parts.map((part): ComponentFlops => {
    return { ...part, flops: trainingFigure(part, setting.recompute) };
  });
  return { parts, total: sumOf('training step', parts) };
}

const named = (parts: readonly ComponentFlops[]) =>
  Object.fromEntries(parts.map(({ component, kind, flops }) => [`${component}_${kind}`, flops]));

const sumOf = (label: string, parts: readonly ComponentFlops[]) =>
  sumFigure(label, 'FLOP', named(parts), 'sum of the parts');

type OperationGroup = readonly [Operation, ...Operation[]];

const groupsOf = memoized((work: Work) => grouped(operationsIn(work)));

/** Groups operations by component and kind, in order of first appearance. */
function grouped(operations: readonly Operation[]): OperationGroup[] {
  const groups = new Map<string, [Operation, ...Operation[]]>();
  for (const operation of operations) {
    const key = `${operation.component} ${WORK[operation.kind]}`;
    const group = groups.get(key);
    if (group) group.push(operation);
    else groups.set(key, [operation]);
  }
  return [...groups.values()];
}

function forwardFigure(
  operations: OperationGroup,
  { batch, context, causal }: ForwardSetting,
): Figure {
  const { component } = operations[0];
  const kind = WORK[operations[0].kind];
  const { label, source } = KINDS[kind];
  const [batches, tokens] = [v({ batch }), v({ context })];
  const base = { label: `${COMPONENTS[component]}: ${label}`, unit: 'FLOP', source } as const;
  const sum = (of: (operation: Operation) => number) =>
    operations.reduce((total, operation) => total + of(operation), 0);
  switch (kind) {
    case 'projection': {
      const weights = (rows: 'tokens' | 'positions') =>
        sum((each) => ('weights' in each && each.rows === rows ? each.weights : 0));
      // Work per position costs the same for any batch.
      const [perToken, perPosition] = [weights('tokens'), weights('positions')];
      const ofTokens = v({ weights: perToken });
      if (perPosition === 0) {
        return figure({ ...base, formula: mul(2, batches, tokens, ofTokens) });
      }
      const products = add(mul(batches, ofTokens), v({ weights_per_position: perPosition }));
      return figure({
        ...base,
        formula: mul(2, tokens, products),
        inputs: { batch: batches, context: tokens },
      });
    }
    case 'scores':
      return figure({ ...base, formula: scoresFormula(operations, batch, context, causal) });
    case 'convolution': {
      const weights = sum((each) =>
        each.kind === 'convolution' ? each.channels * each.kernel : 0,
      );
      return figure({ ...base, formula: mul(2, batches, tokens, v({ weights })) });
    }
    case 'scan': {
      const of = (decays: Scan['decays'], size: (scan: Scan) => number) =>
        sum((each) => (each.kind === 'scan' && each.decays === decays ? size(each) : 0));
      const ofValues = of('values', ({ inner, state }) => inner * state);
      const ofHeads = of('heads', ({ inner, state }) => inner * state);
      const ofDelta = of('delta', ({ inner, state }) => inner * state);
      const channels = of('values', ({ inner }) => inner);
      const perToken = [
        ...(ofValues > 0 ? [mul(8, v({ state_values: ofValues })), mul(2, v({ channels }))] : []),
        ...(ofHeads > 0
          ? [
              mul(5, v({ state_values_of_heads: ofHeads })),
              mul(3, v({ channels_of_heads: of('heads', ({ inner }) => inner) })),
            ]
          : []),
        ...(ofDelta > 0
          ? [
              mul(7, v({ state_values_of_delta: ofDelta })),
              mul(2, v({ channels_of_delta: of('delta', ({ inner }) => inner) })),
            ]
          : []),
      ];
      return figure({ ...base, formula: mul(batches, tokens, add(...perToken)) });
    }
  }
}

/** One MAC per pair for each value of a query and of v; heads with the same window together. */
function scoresFormula(
  operations: OperationGroup,
  batch: number,
  context: number,
  causal: boolean,
): Expression {
  const spans = new Map<string, SpanWidths>();
  for (const operation of operations) {
    if (operation.kind !== 'scores') continue;
    for (const { heads, window } of operation.spans) {
      const key = windowKey(window);
      const before = spans.get(key) ?? { queries: 0, values: 0 };
      spans.set(key, {
        window,
        queries: before.queries + heads * operation.headDim,
        values: before.values + heads * operation.valueDim,
      });
    }
  }
  const sum = (of: keyof Omit<SpanWidths, 'window'>) =>
    [...spans.values()].reduce((total, each) => total + each[of], 0);
  if (!causal) {
    const widths = add(v({ query_width: sum('queries') }), v({ value_width: sum('values') }));
    return mul(2, v({ batch }), v({ context }), v({ context }), widths);
  }
  const terms = [...spans].map(([suffix, { window, queries, values }]) =>
    mul(
      add(v({ [`query_width_${suffix}`]: queries }), v({ [`value_width_${suffix}`]: values })),
      v({ [`pairs_${suffix}`]: exact(visiblePairs(context, window)) }),
    ),
  );
  return mul(2, v({ batch }), add(...terms));
}

/** Total width of the heads with one window, in all layers: their number times the width of one. */
interface SpanWidths {
  readonly window?: Window | undefined;
  readonly queries: number;
  readonly values: number;
}

function macs(products: readonly ComponentFlops[]): Figure {
  const flops = Object.entries(named(products)).map(([name, { value }]) => v({ [name]: value }));
  const source = 'matrix products alone; 1 MAC is 2 FLOP';
  return figure({ label: 'matrix products', unit: 'MAC', formula: div(add(...flops), 2), source });
}

/** Work repeated by selective recomputation: its results are large to keep and cheap to compute. */
const RECOMPUTED: readonly WorkKind[] = ['scores', 'scan'];

/** A backward pass costs two forward passes: gradients of the inputs and of the weights. */
function trainingFigure({ kind, flops: forward }: ComponentFlops, recompute: Recompute): Figure {
  const again = recompute === 'full' || (recompute === 'selective' && RECOMPUTED.includes(kind));
  return figure({
    label: forward.label,
    unit: 'FLOP',
    formula: mul(again ? 4 : 3, v({ forward: forward.value })),
    source: again
      ? 'backward = 2 × forward, and the forward pass once more (arXiv 2205.05198)'
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
    perToken: sumFigure(
      'a token, without scores',
      'FLOP',
      Object.fromEntries(
        others.map(({ component, kind, flops }) => [`${component}_${kind}`, flops]),
      ),
      'sum of the parts of a forward pass over one token',
    ),
    scores: scoresFigure(work, context),
  };
}

/** FLOPs of scores alone, without their formulas, for sums over many contexts. */
export interface ScoresByContext {
  /** A masked forward pass over one sequence. */
  readonly forward: (context: number) => bigint;
  /** One more token. @param context Cached tokens, including the new one. */
  readonly decoding: (context: number) => bigint;
}

/** The same counts as those of `forwardFlopsOf` and `decodingFlopsOf`. */
export function scoresByContext(work: Work): ScoresByContext {
  const widths = new Map<string, { window: Window | undefined; forward: number; step: number }>();
  for (const operation of operationsIn(work)) {
    if (operation.kind !== 'scores') continue;
    const whole = operation.headDim + operation.valueDim;
    for (const { heads, window } of operation.spans) {
      const key = windowKey(window);
      const before = widths.get(key) ?? { forward: 0, step: 0 };
      widths.set(key, {
        window,
        forward: before.forward + heads * whole,
        step: before.step + heads * (operation.latent?.multiplied ?? whole),
      });
    }
  }
  const all = [...widths.values()];
  const sum = (values: readonly bigint[]) => 2n * values.reduce((total, each) => total + each, 0n);
  return {
    forward: (context) =>
      sum(all.map(({ window, forward }) => BigInt(forward) * visiblePairs(context, window))),
    decoding: (context) =>
      sum(all.map(({ window, step }) => BigInt(step) * BigInt(seenFrom(context, window)))),
  };
}

/** The value of `keysSeen`. */
function seenFrom(context: number, window: Window | undefined): number {
  if (window === undefined) return context;
  if (window.rule !== 'chunked') return Math.min(context, reachOf(window) + 1);
  return context - window.tokens * (Math.ceil(context / window.tokens) - 1);
}

/** Keys that the last of `tokens` tokens sees. */
function keysSeen(window: Window | undefined, tokens: Input): Expression {
  if (window === undefined) return tokens;
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
  for (const operation of operationsIn(work)) {
    if (operation.kind !== 'scores') continue;
    const { spans, headDim, valueDim, latent } = operation;
    for (const { heads, window } of spans) {
      const seen = keysSeen(window, tokens);
      if (latent !== undefined) widen('latent_width', heads * latent.multiplied, seen);
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
