import type {
  ClampedExperts,
  MixtureOfExperts,
  PackedExperts,
  Router,
} from '../../../model/architecture/layer.js';
import { isGatedPack, packedInner } from '../../../model/architecture/walk.js';
import { describedOnly } from '../../calls.js';
import { activate } from '../differentiable.js';
import type { Tensor2D, Tensor3D, Tf } from '../packages.js';
import type { ForwardRun } from '../run.js';
import { readValues } from '../run.js';
import { applySoftcap, asRows, gatedValues, matrixProduct } from './basic.js';

/**
 * x [B, T, H] → the weight of every expert, 0 for unselected ones: [B, T, experts]. The choice uses values read back
 * from the library. It is a step function without a gradient: the gradient of the weights ignores it.
 */
export function runRouter(run: ForwardRun, layer: Router, x: Tensor3D): Tensor3D {
  const { tf, weights } = run;
  const given = (layer.steps ?? []).reduce<Tensor3D>((value, step) => run.apply(step, value), x);
  const found = expertWeights(run, layer, given);
  return layer.expertScales ? tf.mul(found, weights.tensor(layer.expertScales)) : found;
}

/** Weights of the experts before their own factors, [B, T, experts]. */
function expertWeights(run: ForwardRun, layer: Router, x: Tensor3D): Tensor3D {
  const { tf, weights } = run;
  const products = matrixProduct(run, x, weights.transposed(layer.weight), layer.bias);
  const logits = layer.softcap === undefined ? products : applySoftcap(tf, products, layer.softcap);
  if (layer.scoring === 'described')
    throw describedOnly({ ...layer, title: 'the choice of experts' });
  if (layer.scoring === 'sparseMixer') return sparseMixerWeights(run, layer, logits);
  const scores: Tensor3D = layer.scoring === 'softmax' ? tf.softmax(logits) : tf.sigmoid(logits);
  const selectionScores = layer.correction
    ? tf.add(scores, weights.tensor(layer.correction))
    : scores;
  const chosen = tf.tensor3d(chosenExperts(readValues(selectionScores), layer), scores.shape);
  const kept: Tensor3D = tf.mul(scores, chosen);
  const shares: Tensor3D = layer.renormalised
    ? tf.div(kept, divisorOf(tf, tf.sum(kept, 2, true), layer.renormalised))
    : kept;
  return layer.scale === 1 ? shares : tf.mul(shares, layer.scale);
}

function divisorOf(
  tf: Tf,
  sum: Tensor3D,
  { eps, least = 0 }: NonNullable<Router['renormalised']>,
): Tensor3D {
  const raised: Tensor3D = tf.add(sum, eps);
  return least > 0 ? tf.maximum(raised, least) : raised;
}

/** Weights by the rule of `sparseMixer`, [B, T, experts]. */
function sparseMixerWeights({ tf }: ForwardRun, layer: Router, logits: Tensor3D): Tensor3D {
  const { expertsPerToken, nearness = 0, scale } = layer;
  const [experts = 1] = layer.weight.shape;
  const scores = readValues(logits);
  const steps = Array.from({ length: expertsPerToken }, () => ({
    far: new Float32Array(scores.length),
    chosen: new Float32Array(scores.length),
  }));
  for (let from = 0; from < scores.length; from += experts) {
    const own = scores.subarray(from, from + experts);
    const order = topIndices(own, expertsPerToken);
    for (const [index, { far, chosen }] of steps.entries()) {
      const taken = order.slice(0, index);
      const most = own[order[index] ?? 0] ?? 0;
      for (const [expert, score] of own.entries()) {
        const distance = (most - score) / Math.max(Math.abs(score), most);
        if (distance > nearness || taken.includes(expert)) {
          far[from + expert] = Number.NEGATIVE_INFINITY;
        }
      }
      chosen[from + (order[index] ?? 0)] = 1;
    }
  }
  const weights = steps
    .map(({ far, chosen }): Tensor3D => {
      const shares = tf.softmax(tf.add(logits, tf.tensor3d(far, logits.shape)));
      return tf.mul(shares, tf.tensor3d(chosen, logits.shape));
    })
    .reduce((a, b) => tf.add(a, b));
  return scale === 1 ? weights : tf.mul(weights, scale);
}

/** 1 for each selected expert of a token, else 0. Input and output are [tokens, experts]. */
function chosenExperts(selectionScores: Float32Array, layer: Router): Float32Array {
  const [experts = 1] = layer.weight.shape;
  const chosen = new Float32Array(selectionScores.length);
  for (let from = 0; from < selectionScores.length; from += experts) {
    const own = selectionScores.slice(from, from + experts);
    dropGroups(own, layer);
    for (const expert of topIndices(own, layer.expertsPerToken)) chosen[from + expert] = 1;
  }
  return chosen;
}

/** Overwrites the scores of experts outside the best groups. */
function dropGroups(selectionScores: Float32Array, { groups }: Router): void {
  if (!groups) return;
  const size = selectionScores.length / groups.count;
  const counted = groups.score === 'best' ? 1 : 2;
  const scores = Float32Array.from({ length: groups.count }, (_, group) => {
    const own = selectionScores.subarray(group * size, (group + 1) * size);
    return topIndices(own, counted).reduce((sum, at) => sum + (own[at] ?? 0), 0);
  });
  const kept = new Set(topIndices(scores, groups.kept));
  for (let group = 0; group < groups.count; group++) {
    if (!kept.has(group)) selectionScores.fill(groups.dropped, group * size, (group + 1) * size);
  }
}

/** Indices of the `count` largest values in descending order; of equal values the first. */
function topIndices(values: Float32Array, count: number): number[] {
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

/**
 * x [B, T, H] → [B, T, H]. Gathers the tokens of each expert, and computes only these. Their indices are read back from
 * the library; its operations do the rest.
 */
export function runMixtureOfExperts(
  run: ForwardRun,
  layer: MixtureOfExperts,
  x: Tensor3D,
): Tensor3D {
  const { tf } = run;
  const routed = tf.tidy((): Tensor3D => tf.reshape(routedExperts(run, layer, x), x.shape));
  if (layer.shared.length === 0) return routed;
  const sum = layer.shared.map((each) => run.apply(each, x)).reduce((a, b) => tf.add(a, b));
  if (!layer.sharedGate) return tf.add(routed, sum);
  const gate = tf.sigmoid(run.apply(layer.sharedGate, x)); // (B, T, 1)
  return tf.add(routed, tf.mul(sum, gate));
}

/** Σ of weight · output over the selected experts, [B·T, H]. */
function routedExperts(run: ForwardRun, layer: MixtureOfExperts, x: Tensor3D): Tensor2D {
  const { tf } = run;
  const [experts = 0] = layer.router.weight.shape;
  const computed = experts - (layer.zeroExperts ?? 0);
  const weights = run.apply(layer.router, x); // (B, T, experts)
  const { tokensOf, places } = routesOf(run, layer.router, weights);
  const flat: Tensor2D = tf.reshape(weights, [-1, 1]);
  const [into, outOf] = layer.latent;
  const read = layer.expertNorm ? run.apply(layer.expertNorm, x) : x;
  const rows = asRows(tf, into ? run.apply(into, read) : read);
  /** Weights of one expert for its tokens, [tokens, 1]. */
  const sharesOf = (tokens: readonly number[], expert: number): Tensor2D => {
    const places = tokens.map((at) => at * experts + expert);
    return tf.gather(flat, tf.tensor1d(places, 'int32'));
  };
  const outputs = tokensOf.flatMap((tokens, expert) => {
    if (tokens.length === 0) return [];
    const found: Tensor2D = tf.gather(rows, tf.tensor1d([...tokens], 'int32'));
    const own: Tensor2D = layer.weighsInputs ? tf.mul(found, sharesOf(tokens, expert)) : found;
    if (expert >= computed) return [own];
    return [tf.tidy(() => runExpert(run, layer.experts, expert, own))];
  });
  const all: Tensor2D = tf.concat(outputs, 0); // (B·T · expertsPerToken, H)
  const weighted: Tensor2D = layer.weighsInputs
    ? all
    : tf.mul(all, tf.concat(tokensOf.map(sharesOf), 0));
  const sum = places
    .map((each): Tensor2D => tf.gather(weighted, tf.tensor1d(each, 'int32')))
    .reduce((a, b) => tf.add(a, b));
  if (!outOf) return sum;
  return asRows(tf, run.apply(outOf, tf.expandDims(sum, 0) as Tensor3D));
}

export interface Routes {
  /** Tokens of each expert, in order. */
  readonly tokensOf: readonly (readonly number[])[];
  /** Pairs of each expert: token · experts of a token + place of the expert among them. */
  readonly pairsOf: readonly (readonly number[])[];
  /** Row of the first, second, … expert of each token, in the concatenated rows of all experts. */
  readonly places: readonly Int32Array[];
}

/** The experts of each token. @param weights [B, T, experts] */
export function routesOf({ noteSent }: ForwardRun, router: Router, weights: Tensor3D): Routes {
  const [experts = 0] = router.weight.shape;
  const found = routes(readValues(weights), experts, router.expertsPerToken);
  noteSent?.(
    router,
    found.tokensOf.map(({ length }) => length),
  );
  return found;
}

/** @param weights [tokens, experts] */
function routes(weights: Float32Array, experts: number, perToken: number): Routes {
  const tokensOf: number[][] = Array.from({ length: experts }, () => []);
  const pairsOf: number[][] = Array.from({ length: experts }, () => []);
  const tokens = weights.length / experts;
  const slots = Math.min(perToken, experts);
  const chosen = Array.from({ length: tokens }, (_, token) => {
    // A factor can be negative, and so can the weight of its expert.
    const own = weights.subarray(token * experts, (token + 1) * experts).map(Math.abs);
    return topIndices(own, perToken).map((expert, slot) => {
      const order = (tokensOf[expert] as number[]).push(token) - 1;
      (pairsOf[expert] as number[]).push(token * slots + slot);
      return { expert, order };
    });
  });
  let before = 0;
  const firstRow = tokensOf.map(({ length }) => {
    before += length;
    return before - length;
  });
  const places = Array.from({ length: slots }, (_, slot) =>
    Int32Array.from(chosen, (each) => {
      const { expert, order } = each[slot] as (typeof each)[number];
      return (firstRow[expert] ?? 0) + order;
    }),
  );
  return { tokensOf, pairsOf, places };
}

/** x [tokens, H] → [tokens, H]. */
function runExpert(
  run: ForwardRun,
  experts: MixtureOfExperts['experts'],
  expert: number,
  x: Tensor2D,
): Tensor2D {
  if ('kind' in experts) {
    return experts.kind === 'packedExperts'
      ? packedExpert(run, experts, expert, x)
      : clampedExpert(run, experts, expert, x);
  }
  const layer = experts[expert];
  if (!layer) throw new RangeError(`there is no expert ${expert}`);
  return asRows(run.tf, run.apply(layer, run.tf.expandDims(x, 0) as Tensor3D));
}

function packedExpert(
  { tf, weights }: ForwardRun,
  experts: PackedExperts,
  expert: number,
  x: Tensor2D,
): Tensor2D {
  const { gateUp, up: apart, down, activation } = experts;
  if (apart) {
    const inner = packedInner(experts);
    const [gate, up] = [gateUp, apart].map((weight) =>
      tf.matMul(x, tf.slice(weights.transposed(weight), [0, expert * inner], [-1, inner])),
    ) as [Tensor2D, Tensor2D];
    const rows = tf.slice(weights.factor(down), [expert * inner, 0], [inner, -1]);
    return tf.matMul(gatedValues(tf, experts, gate, up), rows);
  }
  const both = tf.matMul(x, weights.expert(gateUp, expert)); // (tokens, 2 · inner)
  if (!isGatedPack(experts)) {
    return tf.matMul(activate(tf, activation, both), weights.expert(down, expert));
  }
  const [gate, up] = tf.split(both, 2, 1) as [Tensor2D, Tensor2D];
  return tf.matMul(gatedValues(tf, experts, gate, up), weights.expert(down, expert));
}

function clampedExpert(
  { tf, weights }: ForwardRun,
  { gateUp, gateUpBias, down, downBias, activation, limit }: ClampedExperts,
  expert: number,
  x: Tensor2D,
): Tensor2D {
  const bias = (tensor: typeof downBias) =>
    tf.slice(weights.tensor(tensor) as Tensor2D, [expert, 0], [1, -1]);
  const both: Tensor2D = tf.add(tf.matMul(x, weights.expert(gateUp, expert)), bias(gateUpBias));
  const pairs: Tensor3D = tf.reshape(both, [x.shape[0], -1, 2]);
  const [gate, up] = tf.unstack(pairs, 2) as [Tensor2D, Tensor2D];
  const opened: Tensor2D = activate(tf, activation, tf.minimum(gate, limit));
  const raised: Tensor2D = tf.add(tf.clipByValue(up, -limit, limit), 1);
  return tf.add(tf.matMul(tf.mul(opened, raised), weights.expert(down, expert)), bias(downBias));
}
