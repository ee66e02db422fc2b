/** Other kinds of attention. Shapes: B batch, T tokens, K experts of a token, G key-value heads, d width of a head. */
import {
  type DifferentialAttention,
  type DynamicMask,
  differentialCore,
  type ExpertAttention,
  expertCore,
} from '../../../model/architecture/layer.js';
import type { Param } from '../../../model/architecture/param.js';
import type { Tensor, Tensor1D, Tensor2D, Tensor3D, Tf } from '../packages.js';
import type { ForwardRun } from '../run.js';
import type { HeadKeys } from './attend.js';
import { asRows, runProjections, runRotary } from './basic.js';
import { routesOf } from './mixture.js';
import { attendHeads, runAttention } from './run-attention.js';

/** u [B, T, H] → [B, T, H]. The choice of experts is a step function without a gradient, as in `runRouter`. */
export function runExpertAttention(run: ForwardRun, layer: ExpertAttention, u: Tensor3D): Tensor3D {
  const { tf, weights: held } = run;
  const { router, experts, keyValueHeads, headDim, rotary } = layer;
  const [count = 0] = router.weight.shape;
  const [batch, tokens] = u.shape;
  const weights = run.apply(router, u); // (B, T, experts)
  const { tokensOf, pairsOf, places } = routesOf(run, router, weights);
  /** Products of the given rows of each expert, expert by expert. */
  const through = (weight: Param, rows: Tensor2D, rowsOf: readonly (readonly number[])[]) =>
    tf.concat(
      rowsOf.flatMap((own, expert) =>
        own.length === 0
          ? []
          : [tf.matMul(gathered(tf, rows, own), held.expert(weight, expert)) as Tensor2D],
      ),
      0,
    );
  const [chosen, width] = [places.length, keyValueHeads * headDim];
  const asked = through(experts.gateUp, asRows(tf, u), tokensOf); // (N, G · d)
  const queries: Tensor3D = tf.reshape(
    tf.concat(
      places.map((each) => gathered(tf, asked, each)),
      1,
    ),
    [batch, tokens, chosen * width],
  );
  const [k, v] = runProjections(run, layer.keyValues, u) as [Tensor3D, Tensor3D];
  const rotated = regroupedHeads(tf, runRotary(run, rotary, queries), [
    chosen,
    keyValueHeads,
    headDim,
  ]);
  const seen = attendHeads(run, expertCore(layer), {
    queries: tf.mul(rotated, layer.scale),
    keys: runRotary(run, rotary, k),
    values: v,
  });
  const pairs: Tensor2D = tf.reshape(regroupedHeads(tf, seen, [keyValueHeads, chosen, headDim]), [
    -1,
    width,
  ]);
  const shares = tokensOf.flatMap((own, expert) => own.map((token) => token * count + expert));
  const factors = gathered(tf, tf.reshape(weights, [-1, 1]) as Tensor2D, shares);
  const outputs: Tensor2D = tf.mul(through(experts.down, pairs, pairsOf), factors);
  const sum = places
    .map((each) => gathered(tf, outputs, each))
    .reduce((a, b): Tensor2D => tf.add(a, b));
  return tf.reshape(tf.add(sum, held.tensor(layer.bias)), u.shape);
}

const gathered = (tf: Tf, rows: Tensor2D, at: readonly number[] | Int32Array): Tensor2D =>
  tf.gather(rows, tf.tensor1d(Int32Array.from(at), 'int32'));

/** Heads [B, T, a · b · d] in the order of b, then a. */
function regroupedHeads(
  tf: Tf,
  x: Tensor3D,
  [a, b, d]: readonly [number, number, number],
): Tensor3D {
  return tf.reshape(tf.transpose(tf.reshape(x, [-1, a, b, d]), [0, 2, 1, 3]), x.shape);
}

/** u [B, T, H] → [B, T, H]. */
export function runDifferentialAttention(
  run: ForwardRun,
  layer: DifferentialAttention,
  u: Tensor3D,
): Tensor3D {
  const { tf } = run;
  const { heads, keyValueHeads, headDim, rotary, initial } = layer;
  const [q, k, v] = runProjections(run, layer.inputs, u) as [Tensor3D, Tensor3D, Tensor3D];
  const seen = attendHeads(
    run,
    differentialCore(layer),
    {
      queries: tf.mul(runRotary(run, rotary, q), layer.scale),
      keys: runRotary(run, rotary, k),
      values: v,
    },
    { formed: (keys) => withPairedValues(tf, keys, keyValueHeads) },
  ); // (B, T, heads · 2d)
  const half = heads * headDim;
  const [first, second] = tf.split(seen, [half, half], 2) as [Tensor3D, Tensor3D];
  const difference: Tensor3D = tf.sub(first, tf.mul(second, lambdaOf(run, layer)));
  return run.apply(layer.out, tf.mul(run.apply(layer.norm, difference), 1 - initial));
}

/** Keys with the values of two heads side by side: head g of the first half has those of g and g + half. */
const withPairedValues = (tf: Tf, keys: readonly HeadKeys[], count: number): HeadKeys[] =>
  keys.map((own, index) => {
    const [sequence, head] = [index - (index % count), index % (count / 2)];
    const values = [head, head + count / 2].map((each) => keys[sequence + each]?.values);
    return { ...own, values: tf.concat(values as [Tensor2D, Tensor2D], 1) };
  });

/** λ, [] */
function lambdaOf({ tf, weights }: ForwardRun, layer: DifferentialAttention): Tensor {
  const [q1, k1, q2, k2] = layer.lambdas.map((each) => weights.tensor(each)) as [
    Tensor,
    Tensor,
    Tensor,
    Tensor,
  ];
  const exponential = (q: Tensor, k: Tensor) => tf.exp(tf.sum(tf.mul(q, k)));
  return tf.add(tf.sub(exponential(q1, k1), exponential(q2, k2)), layer.initial);
}

/** u [B, T, H] → [B, T, H]. The choice of keys is a step function without a gradient. */
export function runDynamicMask(run: ForwardRun, layer: DynamicMask, u: Tensor3D): Tensor3D {
  const { tf, weights } = run;
  const { attention, steps, rates, kept } = layer;
  const count = attention.keyValueHeads;
  return runAttention(run, attention, u, (keys) =>
    Array.from({ length: keys.length / count }, (_, sequence) => {
      const own = keys.slice(sequence * count, (sequence + 1) * count);
      const values = tf.expandDims(
        tf.concat(
          own.map((head) => head.values),
          1,
        ),
        0,
      ) as Tensor3D;
      const dt = tf.softplus(run.apply(steps, values)); // (1, S, G)
      const gains: Tensor3D = tf.exp(tf.mul(dt, weights.tensor(rates)));
      const ofHeads = tf.unstack(gains, 2).map((each) => tf.reshape(each, [-1]) as Tensor1D);
      return own.map((head, at) => ({
        ...head,
        gains: { ofKeys: ofHeads[at] as Tensor1D, kept },
      }));
    }).flat(),
  );
}
