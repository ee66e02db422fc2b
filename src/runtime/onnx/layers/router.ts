/** Router: selects the experts of a token. Shapes: R rows, E experts, K of them for each token, G groups. */
import type { Router, RouterGroups } from '../../../architecture/layer.js';
import { type Context, scaledBy, weightOf } from '../context.js';
import type { GraphValue } from '../graph.js';
import { productParts } from './projections.js';

/** x [R, H] → the weight of each expert, 0 for unselected ones, [R, E]. */
export function emitRouter(context: Context, layer: Router, x: GraphValue): GraphValue {
  const { graph } = context;
  const scores = scoresOf(context, layer, x);
  const [, chosen] = best(context, choiceOf(context, layer, scores), layer.expertsPerToken);
  const weights = weightsOf(context, layer, graph.op('GatherElements', [scores, chosen], LAST));
  const none = graph.op('Mul', [scores, graph.float(0)]);
  return graph.op('ScatterElements', [none, chosen, weights], LAST);
}

const LAST = { attributes: { axis: 1 } };

/** The `count` largest of each row and their indices, [.., count] each. */
export function best(
  { graph }: Context,
  values: GraphValue,
  count: number,
): [GraphValue, GraphValue] {
  return graph.pair('TopK', [values, graph.ints(count)]);
}

/** [R, E] */
function scoresOf(context: Context, { weight, scoring }: Router, x: GraphValue): GraphValue {
  const { graph } = context;
  const logits = graph.joined(productParts(context, weight, x));
  switch (scoring) {
    case 'softmax':
      return graph.op('Softmax', [logits]);
    case 'sigmoid':
      return graph.op('Sigmoid', [logits]);
  }
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
  const divisor = renormalised.eps ? graph.op('Add', [sum, graph.float(renormalised.eps)]) : sum;
  return scaledBy(context, graph.op('Div', [scores, divisor]), scale);
}
