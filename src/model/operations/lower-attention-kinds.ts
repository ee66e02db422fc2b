/** Other kinds of attention as primitives. */
import type {
  Component,
  DifferentialAttention,
  DynamicMask,
  ExpertAttention,
  ProductKeyExperts,
} from '../architecture/layer.js';
import { expertHeads } from '../architecture/layer.js';
import type { Param } from '../architecture/param.js';
import { productsOf, sharedInputWidth } from '../architecture/walk.js';
import { lowerAttention } from './lower-attention.js';
import {
  byLength,
  byRows,
  elementwise,
  type LoweringContext,
  type LowerLayer,
  matmul,
  norm,
  ONE_KERNEL,
  openingMatmuls,
  paramsOf,
  unfusedNorm,
} from './lowering-blocks.js';
import type { Matmul, Primitive, Saved, Scores } from './primitive.js';
import { allReduce, runOf, vectors } from './primitive.js';

export function lowerExpertAttention(
  layer: ExpertAttention,
  around: LoweringContext,
  lower: LowerLayer,
): Primitive[] {
  const { component } = around;
  const { name, router, experts, bias, keyValues, rotary, keyValueHeads, headDim } = layer;
  const [count = 0, hidden = 0] = router.weight.shape;
  const [chosen, width, heads] = [
    router.expertsPerToken,
    keyValueHeads * headDim,
    expertHeads(layer),
  ];
  const run = runOf('key-value heads', keyValueHeads, headDim);
  const part = experts.component ?? component;
  const routed: Saved = {
    part,
    vectors: [
      vectors(2 * chosen, 'hidden', hidden, 'whole'),
      vectors(2 * chosen, 'key_width', width, 'width'),
    ],
    source:
      'of each expert that a token goes to: its copy of the input and its output; its queries, and what they see',
  };
  const shared: Saved = {
    part: component,
    vectors: [vectors(1, 'hidden', hidden), vectors(2, 'key_width', width, 'width')],
    source: 'the input; k and v',
  };
  const ofExperts = (
    tensor: Param,
    input: number,
    output: number,
    cuts: Primitive['cuts'],
  ): Matmul => ({
    kind: 'matmul',
    layer: experts.name,
    component: part,
    input,
    output,
    ...ONE_KERNEL,
    launches: 0,
    params: [tensor],
    cuts,
    tensor,
    weights: (tensor.elements / count) * chosen,
    rows: 'tokens',
  });
  return [
    ...lower(router, { ...around, width: hidden }),
    ...openingMatmuls(keyValues, component, { of: name, runs: [run, run], saved: [shared] }),
    {
      kind: 'dispatch',
      layer: name,
      component,
      input: hidden,
      output: hidden,
      ...ONE_KERNEL,
      saved: [routed],
      launches: 0,
      copies: chosen,
    },
    ofExperts(experts.gateUp, hidden, width, byRows([experts.gateUp], name, run)),
    elementwise(rotary, component, width + chosen * width, { params: rotary.tables }),
    plainScores(layer, component, heads),
    ofExperts(experts.down, width, hidden, byLength(experts.down, name, run)),
    elementwise(layer, component, hidden, {
      params: [bias],
      forward: allReduce(hidden),
      launches: 1 + EXPERT_LAUNCHES,
    }),
  ];
}

/** Kernels of the experts: into their queries, and out of their heads. */
const EXPERT_LAUNCHES = 2;

/** Softmax attention of heads to all earlier tokens. */
function plainScores(
  {
    name,
    keyValueHeads,
    headDim,
  }: Pick<DifferentialAttention, 'name' | 'keyValueHeads' | 'headDim'>,
  component: Component,
  heads: number,
): Scores {
  return {
    kind: 'scores',
    layer: name,
    component,
    input: 0,
    ...ONE_KERNEL,
    heads,
    output: heads * headDim,
    keyValueHeads,
    headDim,
    valueDim: headDim,
    spans: [{ heads, window: undefined }],
    latent: undefined,
    capped: false,
    inFloat32: true,
  };
}

/** Two passes over the scores, one for each half of the values, as in transformers. */
export function lowerDifferentialAttention(
  layer: DifferentialAttention,
  component: Component,
): Primitive[] {
  const { name, inputs, out, lambdas, norm: pairNorm, rotary } = layer;
  const { heads, keyValueHeads, headDim } = layer;
  const [queries, keys] = [heads * headDim, keyValueHeads * headDim];
  const hidden = sharedInputWidth(inputs);
  // A GPU needs both heads of a pair.
  const halves = (unit: 'heads' | 'key-value heads', count: number) => {
    const half = runOf(unit, count / 2, headDim);
    return [half, half] as const;
  };
  const saved: Saved = {
    part: component,
    vectors: [
      vectors(1, 'hidden', hidden),
      vectors(5, 'query_width', queries, 'width'),
      vectors(3, 'key_width', keys, 'width'),
    ],
    source:
      'the input; q, what the heads see of both halves of the values, the differences, and their norms; k, and v for both halves of the heads',
  };
  const input = vectors(1, 'query_width', queries, 'width');
  const [q, ...others] = productsOf(inputs);
  const scores = plainScores(layer, component, heads);
  const pair = runOf('heads', heads / 2, 2 * headDim);
  return [
    ...(q
      ? [
          matmul(q, component, {
            cuts: byRows(paramsOf(q), name, ...halves('heads', heads)),
            saved: [saved],
            backward: allReduce(hidden),
          }),
        ]
      : []),
    ...others.map((product) =>
      matmul(product, component, {
        cuts: byRows(paramsOf(product), name, ...halves('key-value heads', keyValueHeads)),
      }),
    ),
    elementwise(rotary, component, queries + keys, { params: rotary.tables }),
    scores,
    { ...scores, keeps: 'nothing' },
    elementwise(layer, component, queries, { params: lambdas }),
    norm(pairNorm, component, queries, { saved: [unfusedNorm(pairNorm, input)] }),
    matmul(out, component, {
      cuts: byLength(out.weight, name, pair),
      forward: allReduce(hidden),
    }),
  ];
}

export function lowerDynamicMask(layer: DynamicMask, component: Component): Primitive[] {
  const { attention, rates, steps } = layer;
  const { name, keyValueHeads } = attention;
  const scores: Saved = {
    part: component,
    vectors: [vectors(3, 'key_heads', keyValueHeads, 'width')],
    source: 'what the scores of each key gain: before and after softplus, and its exponential',
  };
  const primitives = lowerAttention(attention, component);
  return [
    ...primitives.slice(0, -1),
    // Each of its outputs needs the values of all heads.
    matmul(steps, component),
    elementwise(layer, component, keyValueHeads, {
      params: [rates],
      saved: [scores],
      cuts: byRows([rates], name, runOf('key-value heads', keyValueHeads)),
    }),
    ...primitives.slice(-1),
  ];
}

export function lowerProductKeyExperts(
  layer: ProductKeyExperts,
  around: LoweringContext,
  lower: LowerLayer,
): Primitive[] {
  const { component } = around;
  const { name, shared, scores, down, up, expertsPerToken: chosen } = layer;
  const hidden = down.shape[1] ?? 0;
  const saved: Saved = {
    part: component,
    vectors: [vectors(2 * chosen, 'hidden', hidden, 'whole'), vectors(4 * chosen, 'chosen', 1)],
    source: 'the rows of both tables for the experts of a token, and their inner values',
  };
  const table = (tensor: Param, input: number, output: number): Matmul => ({
    kind: 'matmul',
    layer: name,
    component,
    input,
    output,
    ...ONE_KERNEL,
    params: [tensor],
    tensor,
    weights: chosen * hidden,
    rows: 'tokens',
  });
  return [
    matmul(scores, component),
    { ...table(down, hidden, chosen), saved: [saved] },
    table(up, chosen, hidden),
    ...lower(shared, { ...around, width: hidden }),
  ];
}
