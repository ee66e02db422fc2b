/** Router: selects the experts of a token. Shapes: R rows, E experts, K of them for each token, G groups. */
import type {
  ClampedExperts,
  MixtureOfExperts,
  PackedExperts,
  Router,
  RouterGroups,
} from '../../../model/architecture/layer.js';
import type { Param } from '../../../model/architecture/param.js';
import {
  computingExperts,
  expertWidth,
  isGatedPack,
  packedInner,
} from '../../../model/architecture/walk.js';
import { describedOnly } from '../../calls.js';
import type { Context } from '../context.js';
import { scaledBy, sizeNames, weightOf } from '../context.js';
import type { GraphValue } from '../graph.js';
import { activated, capped, clipped, gated } from './elementwise.js';
import { productParts, transposedProduct } from './projections.js';

/** x [R, H] → the weight of each expert, 0 for unselected ones, [R, E]. */
export function emitRouter(context: Context, layer: Router, x: GraphValue): GraphValue {
  const { graph, apply } = context;
  const given = (layer.steps ?? []).reduce((value, step) => apply(step, value), x);
  const weights = expertWeights(context, layer, given);
  return layer.expertScales
    ? graph.op('Mul', [weights, weightOf(context, layer.expertScales)])
    : weights;
}

/** Weights of the experts before their own factors, [R, E]. */
function expertWeights(context: Context, layer: Router, x: GraphValue): GraphValue {
  const { graph } = context;
  if (layer.scoring === 'described')
    throw describedOnly({ ...layer, title: 'the choice of experts' });
  if (layer.scoring === 'sparseMixer') return sparseMixerWeights(context, layer, x);
  const scores = routerScores(context, layer, x);
  const [, chosen] = best(context, choiceOf(context, layer, scores), layer.expertsPerToken);
  const weights = weightsOf(context, layer, graph.op('GatherElements', [scores, chosen], LAST));
  const none = graph.op('Mul', [scores, graph.float(0)]);
  return graph.op('ScatterElements', [none, chosen, weights], LAST);
}

const LAST = { attributes: { axis: 1 } };

/** The `count` largest of each row and their indices, [.., count] each. */
function best({ graph }: Context, values: GraphValue, count: number): [GraphValue, GraphValue] {
  return graph.pair('TopK', [values, graph.ints(count)]);
}

/** [R, E] */
function logitsOf(context: Context, { weight, bias }: Router, x: GraphValue): GraphValue {
  return context.graph.joined(
    productParts(context, weight, x, { bias: bias && weightOf(context, bias) }),
  );
}

/** Weights by the rule of `sparseMixer`, [R, E]. */
function sparseMixerWeights(context: Context, layer: Router, x: GraphValue): GraphValue {
  const { graph } = context;
  const { expertsPerToken, nearness = 0 } = layer;
  const logits = logitsOf(context, layer, x);
  const sizes = graph.op('Abs', [logits]);
  const nothing = graph.float(Number.NEGATIVE_INFINITY);
  let left = logits;
  let weights = graph.op('Mul', [logits, graph.float(0)]);
  for (let taken = 0; taken < expertsPerToken; taken++) {
    const [most, chosen] = best(context, left, 1); // [R, 1]
    const distance = graph.op('Div', [
      graph.op('Sub', [most, logits]),
      graph.op('Max', [sizes, most]),
    ]);
    const isFar = graph.op('Greater', [distance, graph.float(nearness)]);
    const shares = graph.op('Softmax', [graph.op('Where', [isFar, nothing, left])]);
    const share = graph.op('GatherElements', [shares, chosen], LAST);
    weights = graph.op('ScatterElements', [weights, chosen, share], LAST);
    const none = graph.op('Expand', [nothing, graph.op('Shape', [chosen])]);
    left = graph.op('ScatterElements', [left, chosen, none], LAST);
  }
  return scaledBy(context, weights, layer.scale);
}

/** [R, E] */
function routerScores(context: Context, layer: Router, x: GraphValue): GraphValue {
  const { graph } = context;
  const logits = logitsOf(context, layer, x);
  const limited = layer.softcap === undefined ? logits : capped(context, logits, layer.softcap);
  return graph.op(layer.scoring === 'softmax' ? 'Softmax' : 'Sigmoid', [limited]);
}

/** Scores by which experts are selected, [R, E]. */
function choiceOf(
  context: Context,
  { correction, groups, weight }: Router,
  scores: GraphValue,
): GraphValue {
  const choice = correction
    ? context.graph.op('Add', [scores, weightOf(context, correction)])
    : scores;
  return groups ? inBestGroups(context, groups, choice, weight.shape[0] ?? 0) : choice;
}

/** Scores [R, E] with the experts outside the best groups set to `dropped`. */
function inBestGroups(
  context: Context,
  groups: RouterGroups,
  choice: GraphValue,
  experts: number,
): GraphValue {
  const { graph } = context;
  const grouped = graph.sized(
    graph.op('Reshape', [choice, graph.ints(0, groups.count, -1)]), // [R, G, E / G]
    ['', groups.count, experts / groups.count],
  );
  const [largest] = best(context, grouped, groups.score === 'best' ? 1 : 2);
  const scores = sumOfLast(context, largest); // [R, G]
  const [, kept] = best(context, scores, groups.kept);
  const every = graph.ints(...Array.from({ length: groups.count }, (_, group) => group));
  const column = graph.op('Unsqueeze', [every, graph.ints(1)]); // [G, 1]
  const isKept = graph.op('Equal', [graph.op('Unsqueeze', [kept, graph.ints(1)]), column]);
  const any = graph.op('ReduceMax', [graph.cast(isKept, 'f32'), graph.ints(2)]); // [R, G, 1]
  const dropped = graph.float(groups.dropped);
  const limited = graph.op('Where', [graph.op('Greater', [any, graph.float(0)]), grouped, dropped]);
  return graph.op('Flatten', [limited]);
}

/** [R, .., n] → [R, ..] */
const sumOfLast = ({ graph }: Context, values: GraphValue, keepdims = 0): GraphValue =>
  graph.op('ReduceSum', [values, graph.ints(-1)], { attributes: { keepdims } });

/** Weights of the selected experts from their scores, [R, K]. */
function weightsOf(
  context: Context,
  { renormalised, scale }: Router,
  scores: GraphValue,
): GraphValue {
  const { graph } = context;
  if (!renormalised) return scaledBy(context, scores, scale);
  const sum = sumOfLast(context, scores, 1);
  const { eps, least } = renormalised;
  const raised = eps ? graph.op('Add', [sum, graph.float(eps)]) : sum;
  const divisor = least ? graph.op('Max', [raised, graph.float(least)]) : raised;
  return scaledBy(context, graph.op('Div', [scores, divisor]), scale);
}

// Experts, each computed only for its own tokens. Shapes: R rows, H hidden, E experts, K of them for each token, N =
// R·K pairs of a token and one of its experts.

/** x [R, H] → [R, H]. */
export function emitMixtureOfExperts(
  context: Context,
  layer: MixtureOfExperts,
  x: GraphValue,
): GraphValue {
  const { graph } = context;
  const routed = routedOutput(context, layer, x);
  const shared = sharedOutput(context, layer, x);
  return shared === undefined ? routed : graph.op('Add', [routed, shared]);
}

function sharedOutput(
  context: Context,
  layer: MixtureOfExperts,
  x: GraphValue,
): GraphValue | undefined {
  const { graph, apply } = context;
  const [first, ...others] = layer.shared.map((expert) => apply(expert, x));
  if (first === undefined) return undefined;
  const sum = others.reduce((all, each) => graph.op('Add', [all, each]), first);
  if (!layer.sharedGate) return sum;
  return graph.op('Mul', [sum, graph.op('Sigmoid', [apply(layer.sharedGate, x)])]);
}

function routedOutput(context: Context, layer: MixtureOfExperts, x: GraphValue): GraphValue {
  const { graph, apply } = context;
  const routes = routesOf(context, layer.router, apply(layer.router, x));
  const { weights, order } = routes;
  const [into, outOf] = layer.latent;
  const read = layer.expertNorm ? apply(layer.expertNorm, x) : x;
  const given = into ? apply(into, read) : read;
  const sent = sentToExperts(context, layer.router, routes, given);
  const flat = () => graph.op('Reshape', [weights, graph.ints(-1, 1)]); // [N, 1]
  const expertInputs = layer.weighsInputs
    ? graph.op('Mul', [sent, graph.op('Gather', [flat(), order])])
    : sent;
  const computed = computingExperts(layer);
  const outputs = throughExperts(
    context,
    layer.router,
    routes,
    expertInputs,
    expertWidth(layer),
    (expert, share) =>
      expert < computed ? expertOutput(context, layer.experts, expert, share) : share,
  );
  const weighted = layer.weighsInputs
    ? outputs
    : graph.op('Mul', [outputs, graph.op('Unsqueeze', [weights, graph.ints(2)])]);
  const sum = graph.op('ReduceSum', [weighted, graph.ints(1)], { attributes: { keepdims: 0 } });
  return outOf ? apply(outOf, sum) : sum;
}

/** The experts of each token. */
interface Routes {
  /** Weight of each, [R, K]. */
  readonly weights: GraphValue;
  /** Pairs sorted by their expert, [N]. */
  readonly order: GraphValue;
  /** Pairs of each expert, [E]. */
  readonly counts: GraphValue;
}

/** @param weights Weight of each expert, 0 for unselected ones, [R, E]. */
export function routesOf(context: Context, router: Router, weights: GraphValue): Routes {
  const [chosen, experts] = chosenOf(context, router, weights); // [R, K] each
  const sorted = byExpert(context, router, experts);
  noteSent(context, router, sorted.counts);
  return { weights: chosen, ...sorted };
}

/** Adds the tokens of each expert to the outputs of the graph; a router that is used again adds to its own. */
function noteSent({ graph, outputs: { sent } }: Context, { name }: Router, counts: GraphValue) {
  if (!sent) return;
  const before = sent.get(name);
  const own = graph.cast(counts, 'f32');
  sent.set(name, before === undefined ? own : graph.op('Add', [before, own]));
}

/** A copy of its token's row for each pair, expert by expert: [R, width] → [N, width]. */
export function sentToExperts(
  { graph }: Context,
  { expertsPerToken }: Router,
  { order }: Routes,
  rows: GraphValue,
): GraphValue {
  return graph.op('Gather', [rows, graph.op('Div', [order, graph.int(expertsPerToken)])]);
}

/**
 * Rows of the pairs through their experts.
 * @param sent Expert by expert, [N, width].
 * @param width Of the results, [R, K, width].
 */
export function throughExperts(
  context: Context,
  router: Router,
  { order, counts }: Routes,
  sent: GraphValue,
  width: number,
  outputOf: (expert: number, share: GraphValue) => GraphValue,
): GraphValue {
  const { graph, sizes } = context;
  const found = expertOutputs(context, router, sent, counts, width, outputOf);
  const back = graph.op('Gather', [found, inverse(context, order)]);
  const shape = [router.expertsPerToken, width];
  return graph.sized(graph.op('Reshape', [back, graph.ints(-1, ...shape)]), [
    sizeNames(sizes).rows,
    ...shape,
  ]);
}

/** Product of one matrix of [experts, out, in] and the rows of its expert. */
export function expertProduct(
  context: Context,
  weight: Param,
  expert: number,
  share: GraphValue,
): GraphValue {
  const [, count = 0] = weight.shape;
  const rows = { first: expert * count, count };
  return context.graph.joined(productParts(context, weight, share, { rows }));
}

/** The weights of a token's experts and their indices, [R, K] each. @param weights [R, E] */
function chosenOf(
  context: Context,
  { expertScales, expertsPerToken }: Router,
  weights: GraphValue,
): [GraphValue, GraphValue] {
  const { graph } = context;
  if (!expertScales) return best(context, weights, expertsPerToken);
  // A factor can be negative, and so can the weight of its expert.
  const [, experts] = best(context, graph.op('Abs', [weights]), expertsPerToken);
  return [graph.op('GatherElements', [weights, experts], LAST), experts];
}

/** Name of the size N. */
const expertPairs = ({ sizes }: Context, router: Router): string =>
  `${sizeNames(sizes).rows}·${router.expertsPerToken}`;

const expertCount = ({ weight }: Router): number => weight.shape[0] ?? 0;

/** The pairs [N] sorted by expert, and the number of pairs per expert, [E]. @param experts [R, K] */
function byExpert(context: Context, router: Router, experts: GraphValue) {
  const { graph } = context;
  const pairs = expertPairs(context, router);
  const every = graph.ints(...Array.from({ length: expertCount(router) }, (_, expert) => expert));
  const isFor = graph.op('Equal', [
    graph.op('Unsqueeze', [every, graph.ints(1)]),
    graph.sized(graph.op('Reshape', [experts, graph.ints(1, -1)]), [1, pairs], 'i64'),
  ]); // [E, N]
  // Pairs in the order of the rows, hence expert by expert.
  const order = graph.sized(
    graph.op('Gather', [graph.op('NonZero', [isFor]), graph.int(1)]),
    [pairs],
    'i64',
  );
  const counts = graph.op('ReduceSum', [graph.cast(isFor, 'i64'), graph.ints(1)], {
    attributes: { keepdims: 0 },
  });
  return { order, counts };
}

/** Inverse permutation, [N]. */
function inverse({ graph }: Context, order: GraphValue): GraphValue {
  const places = graph.op('Range', [
    graph.int(0),
    graph.op('Squeeze', [graph.op('Shape', [order])]),
    graph.int(1),
  ]);
  return graph.op('ScatterElements', [order, order, places]);
}

/** Outputs of all experts for their rows, concatenated. @param sent [N, H] */
function expertOutputs(
  context: Context,
  router: Router,
  sent: GraphValue,
  counts: GraphValue,
  width: number,
  outputOf: (expert: number, share: GraphValue) => GraphValue,
): GraphValue {
  const { graph } = context;
  const shares = graph.splitBy(sent, counts, { parts: expertCount(router), axis: 0 });
  for (const share of shares) graph.sized(share, [`R:${share}`, '']);
  const outputs = shares.map((share, expert) => outputOf(expert, share));
  return graph.sized(graph.op('Concat', outputs, { attributes: { axis: 0 } }), [
    expertPairs(context, router),
    width,
  ]);
}

function expertOutput(
  context: Context,
  experts: MixtureOfExperts['experts'],
  index: number,
  share: GraphValue,
): GraphValue {
  if ('kind' in experts) {
    return experts.kind === 'packedExperts'
      ? packedOutput(context, experts, index, share)
      : clampedOutput(context, experts, index, share);
  }
  const expert = experts[index];
  if (!expert) throw new Error(`there is no expert ${index}`);
  return context.withSizes(oneSequence(context, share)).apply(expert, share);
}

/** 1 and the number of rows, [2]. */
function oneSequence({ graph }: Context, rows: GraphValue): GraphValue {
  const count = graph.op('Shape', [rows], { attributes: { end: 1 } });
  return graph.op('Concat', [graph.ints(1), count], { attributes: { axis: 0 } });
}

function packedOutput(
  context: Context,
  experts: PackedExperts,
  index: number,
  share: GraphValue,
): GraphValue {
  const { graph } = context;
  const { gateUp, up, down, activation, limits } = experts;
  if (up) {
    const count = packedInner(experts);
    const rows = { first: index * count, count };
    const both = [gateUp, up].map((weight) =>
      graph.joined(productParts(context, weight, share, { rows })),
    ) as [GraphValue, GraphValue];
    const inner = gated(context, activation, both, limits);
    return transposedProduct(context, down, inner, undefined, rows);
  }
  const times = (x: GraphValue, weight: typeof down) => {
    const [, count = 0] = weight.shape;
    const rows = { first: index * count, count };
    return experts.isTransposed
      ? transposedProduct(context, weight, x, undefined, rows)
      : graph.joined(productParts(context, weight, x, { rows }));
  };
  if (!isGatedPack(experts))
    return times(activated(context, activation, times(share, gateUp)), down);
  const inner = packedInner(experts);
  const both = graph.split(times(share, gateUp), [inner, inner]);
  return times(gated(context, activation, both, limits), down);
}

/** Output of an expert with interleaved columns of gate and up: every second row of the transposed columns. */
function clampedOutput(
  context: Context,
  { gateUp, gateUpBias, down, downBias, activation, limit }: ClampedExperts,
  index: number,
  share: GraphValue,
): GraphValue {
  const { graph } = context;
  const inner = down.shape[1] ?? 0;
  const biasOf = (tensor: Param) =>
    graph.op('Gather', [weightOf(context, tensor), graph.int(index)]);
  const times = (x: GraphValue, weight: Param, bias: Param) => {
    const [, count = 0] = weight.shape;
    return transposedProduct(context, weight, x, biasOf(bias), { first: index * count, count });
  };
  const both = graph.op('Reshape', [times(share, gateUp, gateUpBias), graph.ints(-1, inner, 2)]);
  const [gate, up] = graph
    .split(both, [1, 1])
    .map((each) => graph.op('Squeeze', [each, graph.ints(2)])) as [GraphValue, GraphValue];
  const opened = activated(context, activation, graph.op('Min', [gate, graph.float(limit)]));
  const raised = graph.op('Add', [clipped(graph, up, -limit, limit), graph.float(1)]);
  return times(graph.op('Mul', [opened, raised]), down, downBias);
}
