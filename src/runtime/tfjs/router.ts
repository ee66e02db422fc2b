import type { Router } from '../../architecture/layer.js';
import { product } from './basic.js';
import type { Tensor3D } from './library.js';
import { type Run, valuesOf } from './run.js';

/**
 * x [B, T, H] → the weight of every expert, 0 of those that are not chosen: [B, T, experts]. The choice is
 * made of values read back from the library. It is a step, which has no slope: the gradient of the weights
 * passes by it.
 */
export function router(run: Run, layer: Router, x: Tensor3D): Tensor3D {
  const { tf, weights } = run;
  const logits = product(run, x, weights.transposed(layer.weight), undefined);
  const scores: Tensor3D = layer.scoring === 'softmax' ? tf.softmax(logits) : tf.sigmoid(logits);
  const judged = layer.correction ? tf.add(scores, weights.tensor(layer.correction)) : scores;
  const chosen = tf.tensor3d(chosenExperts(valuesOf(judged), layer), scores.shape);
  const kept: Tensor3D = tf.mul(scores, chosen);
  const shares: Tensor3D = layer.renormalised
    ? tf.div(kept, tf.add(tf.sum(kept, 2, true), layer.renormalised.eps))
    : kept;
  return layer.scale === 1 ? shares : tf.mul(shares, layer.scale);
}

/** 1 for each expert that a token goes to, else 0. Both [tokens, experts]. */
function chosenExperts(judged: Float32Array, layer: Router): Float32Array {
  const [experts = 1] = layer.weight.shape;
  const chosen = new Float32Array(judged.length);
  for (let from = 0; from < judged.length; from += experts) {
    const own = judged.slice(from, from + experts);
    dropGroups(own, layer);
    for (const expert of largest(own, layer.expertsPerToken)) chosen[from + expert] = 1;
  }
  return chosen;
}

/** Changes what the experts of groups that are not among the best are judged by. */
function dropGroups(judged: Float32Array, { groups }: Router): void {
  if (!groups) return;
  const size = judged.length / groups.count;
  const counted = groups.score === 'best' ? 1 : 2;
  const scores = Float32Array.from({ length: groups.count }, (_, group) => {
    const own = judged.subarray(group * size, (group + 1) * size);
    return largest(own, counted).reduce((sum, at) => sum + (own[at] ?? 0), 0);
  });
  const kept = new Set(largest(scores, groups.kept));
  for (let group = 0; group < groups.count; group++) {
    if (!kept.has(group)) judged.fill(groups.dropped, group * size, (group + 1) * size);
  }
}

/** Where the `count` largest are, the largest first; of equal ones the first. */
export function largest(values: Float32Array, count: number): number[] {
  const found: number[] = [];
  while (found.length < Math.min(count, values.length)) {
    let best = -1;
    for (const [at, value] of values.entries()) {
      if (!found.includes(at) && (best < 0 || value > (values[best] ?? 0))) best = at;
    }
    found.push(best);
  }
  return found;
}
