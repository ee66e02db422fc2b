/** Runs of attention. */
import {
  groupedQueryAttention,
  onlineSoftmaxAttention,
  onlineSoftmaxSteps,
} from './attention-modules.js';
import {
  type BlockRun,
  type BlockSizes,
  CLOSE,
  done,
  Inputs,
  onesLike,
  same,
} from './block-run.js';
import { cast, type Tensor, tensor, toFloat32 } from './tensor.js';

function attentionInputs(sizes: BlockSizes) {
  const { batch, tokens, heads, keyHeads, headDim } = sizes;
  const inputs = new Inputs(sizes);
  inputs.seed(sizes.seed);
  const q = inputs.randn('q', [batch, tokens, heads, headDim]);
  const k = inputs.randn('k', [batch, tokens, keyHeads, headDim]);
  const v = inputs.randn('v', [batch, tokens, keyHeads, headDim]);
  return { inputs, q, k, v };
}

export function runGqa(sizes: BlockSizes): BlockRun {
  const { heads, keyHeads, headDim, causal } = sizes;
  const { inputs, q, k, v } = attentionInputs(sizes);
  const y = groupedQueryAttention(q, k, v, { causal });
  inputs.output('y', y);
  const repeated = (x: Tensor): Tensor => {
    const values = toFloat32(x);
    const [batch = 0, tokens = 0] = x.shape;
    const data = Float32Array.from({ length: batch * tokens * heads * headDim }, (_, at) => {
      const column = at % headDim;
      const head = Math.floor(at / headDim) % heads;
      const token = Math.floor(at / (headDim * heads));
      const from = Math.floor((head * keyHeads) / heads);
      return values[(token * keyHeads + from) * headDim + column] ?? 0;
    });
    return cast(tensor([batch, tokens, heads, headDim], data), x.dtype);
  };
  const plain = groupedQueryAttention(q, repeated(k), repeated(v), { causal });
  const ones = groupedQueryAttention(q, k, onesLike(v), { causal });
  return done(inputs, [
    same(`K and V repeated ${heads / keyHeads} times: plain attention`, y, plain, 0),
    same('values of one: weights sum to one', ones, onesLike(ones), CLOSE[sizes.dtype]),
  ]);
}

export function runOnlineSoftmax(sizes: BlockSizes): BlockRun {
  const { tokens, tile, causal, dtype } = sizes;
  const { inputs, q, k, v } = attentionInputs(sizes);
  const y = onlineSoftmaxAttention(q, k, v, { causal, tile });
  inputs.output('y', y);
  const steps = onlineSoftmaxSteps(
    q,
    k,
    v,
    { batch: 0, position: tokens - 1, head: 0 },
    { causal, tile },
  );
  const scores = steps.flatMap((step) => step.scores);
  const max = Math.max(...scores);
  const sum = scores.reduce((total, score) => total + Math.exp(score - max), 0);
  const last = steps.at(-1);
  return {
    ...done(inputs, [
      same('plain softmax', y, groupedQueryAttention(q, k, v, { causal }), CLOSE[dtype]),
      {
        check: 'last maximum = maximum of all scores',
        difference: Math.abs((last?.max ?? Number.NaN) - max),
        limit: 0,
      },
      {
        check: 'last sum = sum over all keys',
        difference: Math.abs((last?.sum ?? Number.NaN) / sum - 1),
        limit: 1e-12,
      },
    ]),
    steps,
  };
}
