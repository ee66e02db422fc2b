import type { Router, RouterGroups } from '../../src/model/architecture/layer.js';
import { sigmoid, sumOf, type Tensor } from './reference-values.js';

/** logits [.., experts] → the weight of each expert, 0 if it is not chosen. */
export function route(
  { shape, data }: Tensor,
  router: Router,
  correction: Float64Array | undefined,
): Tensor {
  const experts = shape.at(-1) ?? 0;
  const weights = new Float64Array(data.length);
  if (router.scoring === 'described') throw new Error(`${router.name} is described, not run`);
  if (router.scoring === 'sparseMixer') {
    for (let from = 0; from < data.length; from += experts) {
      mixSparsely(data.subarray(from, from + experts), router, weights.subarray(from));
    }
    return { shape, data: weights };
  }
  for (let from = 0; from < data.length; from += experts) {
    const { softcap: cap } = router;
    const logits = data.subarray(from, from + experts);
    const limited = cap === undefined ? logits : logits.map((each) => cap * Math.tanh(each / cap));
    const scores = scoresOf(limited, router.scoring);
    const choice = scores.map((score, expert) => score + (correction?.[expert] ?? 0));
    if (router.groups) dropOthers(choice, router.groups);
    const chosen = bestOf(choice, router.expertsPerToken);
    const sum = sumOf(chosen.map((expert) => scores[expert] ?? 0));
    const { eps, least = 0 } = router.renormalised ?? { eps: 1 - sum };
    const divisor = Math.max(sum + eps, least);
    for (const expert of chosen) {
      weights[from + expert] = (router.scale * (scores[expert] ?? 0)) / divisor;
    }
  }
  return { shape, data: weights };
}

function scoresOf(logits: Float64Array, scoring: Router['scoring']): Float64Array {
  if (scoring === 'sigmoid') return logits.map(sigmoid);
  const powers = logits.map((logit) => Math.exp(logit - Math.max(...logits)));
  return powers.map((power) => power / sumOf(powers));
}

function mixSparsely(scores: Float64Array, router: Router, into: Float64Array): void {
  const { expertsPerToken, nearness = 0, scale } = router;
  const left = new Set(scores.keys());
  for (const expert of bestOf(scores, expertsPerToken)) {
    const most = scores[expert] ?? 0;
    const near = [...left].filter((other) => {
      const score = scores[other] ?? 0;
      return !((most - score) / Math.max(Math.abs(score), most) > nearness);
    });
    const sum = sumOf(near.map((other) => Math.exp((scores[other] ?? 0) - most)));
    into[expert] = scale / sum;
    left.delete(expert);
  }
}

function dropOthers(choice: Float64Array, { count, kept, score, dropped }: RouterGroups): void {
  const size = choice.length / count;
  const groups = Array.from({ length: count }, (_, group) =>
    choice.subarray(group * size, (group + 1) * size),
  );
  const scores = groups.map((group) =>
    sumOf([...group].sort((a, b) => b - a).slice(0, { best: 1, bestTwo: 2 }[score])),
  );
  const best = bestOf(scores, kept);
  for (const [index, group] of groups.entries()) if (!best.includes(index)) group.fill(dropped);
}

/** Places of the `count` largest. */
const bestOf = (values: ArrayLike<number>, count: number): number[] =>
  Array.from(values, (value, place) => ({ value, place }))
    .sort((a, b) => b.value - a.value)
    .slice(0, count)
    .map(({ place }) => place);
