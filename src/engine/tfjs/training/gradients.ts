/**
 * Gradients of the library's kernels that the interpreter uses. The library's package for Node registers none, and the
 * library's own gradients need kernels that the wasm backend lacks. Here products are of two plain matrices, and what
 * no kernel does fast on every backend is computed on values read back.
 */

import type { GradConfig } from '@tensorflow/tfjs-core';
import type { Tensor, Tensor2D, Tensor4D, Tf } from '../packages.js';
import { readValues } from '../run.js';

type Attributes = Readonly<Record<string, unknown>>;

/** Gradient of a kernel with one input: from that of its value, its input and its value. */
type Unary = (
  tf: Tf,
  dy: Tensor,
  kept: { readonly x: Tensor; readonly y: Tensor },
  attributes: Attributes,
) => Tensor;

/** 1 where a condition holds. */
const where = (tf: Tf, condition: Tensor): Tensor => tf.cast(condition, 'float32');

/** 2 / √π, the slope of erf at 0. */
const ERF_SLOPE = 2 / Math.sqrt(Math.PI);

/** Derivatives at a kink are those of PyTorch. */
const ELEMENTWISE: Readonly<Record<string, Unary>> = {
  Neg: (tf, dy) => tf.neg(dy),
  Square: (tf, dy, { x }) => tf.mul(dy, tf.mul(x, 2)),
  Sqrt: (tf, dy, { y }) => tf.div(dy, tf.mul(y, 2)),
  Rsqrt: (tf, dy, { y }) => tf.mul(dy, tf.mul(tf.mul(y, tf.square(y)), -0.5)),
  Exp: (tf, dy, { y }) => tf.mul(dy, y),
  Sigmoid: (tf, dy, { y }) => tf.mul(dy, tf.mul(y, tf.sub(1, y))),
  Tanh: (tf, dy, { y }) => tf.mul(dy, tf.sub(1, tf.square(y))),
  Softplus: (tf, dy, { x }) => tf.mul(dy, tf.sigmoid(x)),
  Erf: (tf, dy, { x }) => tf.mul(dy, tf.mul(tf.exp(tf.neg(tf.square(x))), ERF_SLOPE)),
  Relu: (tf, dy, { x }) => tf.mul(dy, where(tf, tf.greater(x, 0))),
  Relu6: (tf, dy, { x }) => tf.mul(dy, where(tf, tf.logicalAnd(tf.greater(x, 0), tf.less(x, 6)))),
  Step: (tf, dy) => tf.zerosLike(dy),
  LeakyRelu: (tf, dy, { x }, { alpha }) => {
    const above = where(tf, tf.greater(x, 0));
    const slope = Number(alpha);
    return tf.mul(dy, tf.add(tf.mul(above, 1 - slope), slope));
  },
  ClipByValue: (tf, dy, { x }, { clipValueMin, clipValueMax }) =>
    tf.mul(
      dy,
      where(
        tf,
        tf.logicalAnd(
          tf.greaterEqual(x, Number(clipValueMin)),
          tf.lessEqual(x, Number(clipValueMax)),
        ),
      ),
    ),
  Softmax: (tf, dy, { y }) => {
    const weighted = tf.mul(dy, y);
    return tf.sub(weighted, tf.mul(tf.sum(weighted, -1, true), y));
  },
};

/** Gradients that need only shapes, of kernels with one input. */
const SHAPES: Readonly<Record<string, Unary>> = {
  Reshape: (tf, dy, { x }) => tf.reshape(dy, x.shape),
  ExpandDims: (tf, dy, { x }) => tf.reshape(dy, x.shape),
  Cast: (tf, dy) => tf.clone(dy),
  Identity: (tf, dy) => tf.clone(dy),
  Transpose: (tf, dy, _, { perm }) => {
    const order = perm as readonly number[];
    return tf.transpose(
      dy,
      order.map((_each, axis) => order.indexOf(axis)),
    );
  },
  Slice: (tf, dy, { x }, { begin }) => {
    const first = begin as readonly number[];
    return tf.pad(
      dy,
      x.shape.map((size, axis): [number, number] => {
        const before = first[axis] ?? 0;
        return [before, size - before - (dy.shape[axis] ?? 1)];
      }),
    );
  },
  Sum: (tf, dy, { x }, attributes) => spreadOver(tf, dy, x, attributes),
  Mean: (tf, dy, { x }, attributes) => tf.mul(spreadOver(tf, dy, x, attributes), dy.size / x.size),
  Tile: (tf, dy, { x }, { reps }) => {
    // Each axis as repetitions times the axis, of which the repetitions are summed.
    const times = reps as readonly number[];
    const axes = x.shape.flatMap((size, axis) => [times[axis] ?? 1, size]);
    return x.shape.reduce<Tensor>((value, _, axis) => tf.sum(value, axis), tf.reshape(dy, axes));
  },
};

/** Repeats the gradient of a reduced tensor over the axes that were reduced. */
function spreadOver(tf: Tf, dy: Tensor, x: Tensor, { axis }: Attributes): Tensor {
  const given = axis === null || axis === undefined ? x.shape.map((_, at) => at) : [axis].flat();
  const reduced = given.map((at) => (Number(at) + x.rank) % x.rank);
  const kept = x.shape.map((size, at) => (reduced.includes(at) ? 1 : size));
  return tf.mul(tf.reshape(dy, kept), tf.ones(x.shape));
}

/** Sums the gradient of a broadcast input over the axes along which it was repeated. */
function unbroadcast(tf: Tf, dy: Tensor, shape: readonly number[]): Tensor {
  const offset = dy.rank - shape.length;
  const axes = dy.shape.flatMap((size, axis) =>
    axis < offset || (shape[axis - offset] === 1 && size > 1) ? [axis] : [],
  );
  return tf.reshape(axes.length === 0 ? dy : tf.sum(dy, axes), [...shape]);
}

type Binary = (tf: Tf, dy: Tensor, a: Tensor, b: Tensor) => readonly [() => Tensor, () => Tensor];

/** Gradients of the two inputs before broadcasts are summed. Equal inputs of a maximum share it, as in PyTorch. */
const BINARY: Readonly<Record<string, Binary>> = {
  Add: (_tf, dy) => [() => dy, () => dy],
  Sub: (tf, dy) => [() => dy, () => tf.neg(dy)],
  Multiply: (tf, dy, a, b) => [() => tf.mul(dy, b), () => tf.mul(dy, a)],
  RealDiv: (tf, dy, a, b) => [
    () => tf.div(dy, b),
    // In PyTorch's order of operations: with a = b the two cancel exactly.
    () => tf.neg(tf.mul(dy, tf.div(tf.div(a, b), b))),
  ],
  Maximum: (tf, dy, a, b) => [
    () => tf.mul(dy, exceeds(tf, a, b)),
    () => tf.mul(dy, exceeds(tf, b, a)),
  ],
  Minimum: (tf, dy, a, b) => [
    () => tf.mul(dy, exceeds(tf, b, a)),
    () => tf.mul(dy, exceeds(tf, a, b)),
  ],
};

/** 1 where a is greater than b, ½ where they are equal. */
const exceeds = (tf: Tf, a: Tensor, b: Tensor): Tensor =>
  tf.mul(tf.add(where(tf, tf.greater(a, b)), where(tf, tf.greaterEqual(a, b))), 0.5);

/** Σ of the rows of dy that were gathered from each row of x: [rows of x, …]. */
function scattered(tf: Tf, dy: Tensor, indices: Tensor, shape: readonly number[]): Tensor {
  const [rows = 1] = shape;
  const size = shape.reduce((product, each) => product * each, 1);
  const width = size / rows;
  const result = new Float32Array(size);
  const values = readValues(dy);
  const places = indices.dataSync<'int32'>();
  for (const [row, place] of places.entries()) {
    for (let column = 0; column < width; column++) {
      const at = place * width + column;
      result[at] = (result[at] as number) + (values[row * width + column] as number);
    }
  }
  return tf.tensor(result, [...shape], 'float32');
}

/** Gradients of a convolution over time, [B, T + kernel − 1, 1, C] with [kernel, 1, C, 1] → [B, T, 1, C]. */
function convolved(tf: Tf, dy: Tensor4D, x: Tensor4D, filter: Tensor4D) {
  const [kernel = 1, , channels = 1] = filter.shape;
  const [batch, tokens] = dy.shape;
  const taps = Array.from({ length: kernel }, (_, tap) => tap);
  return {
    x: () =>
      taps
        .map((tap): Tensor => {
          const factor = tf.reshape(tf.slice(filter, [tap, 0, 0, 0], [1, 1, channels, 1]), [
            channels,
          ]);
          const rest = kernel - 1 - tap;
          return tf.pad(tf.mul(dy, factor), [
            [0, 0],
            [tap, rest],
            [0, 0],
            [0, 0],
          ]);
        })
        .reduce((a, b) => tf.add(a, b)),
    filter: () => {
      const rows = taps.map((tap) => {
        const seen = tf.slice(x, [0, tap, 0, 0], [batch, tokens, 1, channels]);
        return tf.sum(tf.mul(seen, dy), [0, 1, 2]); // (C)
      });
      return tf.reshape(tf.stack(rows), filter.shape);
    },
  };
}

/** Names of the inputs of kernels with one input, where it is not `x`. */
const INPUTS: Readonly<Record<string, string>> = {
  ExpandDims: 'input',
  Softmax: 'logits',
};

function configs(tf: Tf): GradConfig[] {
  const single = Object.entries({ ...ELEMENTWISE, ...SHAPES }).map(
    ([kernelName, gradient]): GradConfig => {
      const input = INPUTS[kernelName] ?? 'x';
      return {
        kernelName,
        inputsToSave: [input],
        outputsToSave: [true],
        gradFunc: (dy, [x, y], attributes) => ({
          [input]: () => gradient(tf, dy as Tensor, { x: x as Tensor, y: y as Tensor }, attributes),
        }),
      };
    },
  );
  const pairs = Object.entries(BINARY).map(
    ([kernelName, gradients]): GradConfig => ({
      kernelName,
      inputsToSave: ['a', 'b'],
      gradFunc: (dy, saved) => {
        const [a, b] = saved as [Tensor, Tensor];
        const [ofA, ofB] = gradients(tf, dy as Tensor, a, b);
        return {
          a: () => unbroadcast(tf, ofA(), a.shape),
          b: () => unbroadcast(tf, ofB(), b.shape),
        };
      },
    }),
  );
  return [...single, ...pairs, ...others(tf)];
}

/** Index of each of several inputs as the library names them, with its gradient. */
const eachInput = (count: number, gradient: (index: number) => Tensor) =>
  Object.fromEntries(
    Array.from({ length: count }, (_, index) => [String(index), () => gradient(index)]),
  );

const others = (tf: Tf): GradConfig[] => [
  {
    kernelName: 'BatchMatMul',
    inputsToSave: ['a', 'b'],
    gradFunc: (dy, saved, { transposeA, transposeB }) => {
      if (transposeA || transposeB) throw new TypeError('a transposed product has no gradient');
      const [a, b] = saved as [Tensor2D, Tensor2D];
      const flipped = (x: Tensor) => tf.transpose(x, swapped(x.rank));
      return {
        a: () => tf.matMul(dy as Tensor2D, flipped(b) as Tensor2D),
        b: () => tf.matMul(flipped(a) as Tensor2D, dy as Tensor2D),
      };
    },
  },
  {
    kernelName: 'Concat',
    saveAllInputs: true,
    gradFunc: (dy, saved, { axis }) => {
      const at = (Number(axis) + (dy as Tensor).rank) % (dy as Tensor).rank;
      const sizes = saved.map(({ shape }) => shape[at] ?? 0);
      const parts = tf.split(dy as Tensor, sizes, at);
      return eachInput(saved.length, (index) => parts[index] as Tensor);
    },
  },
  {
    kernelName: 'Pack',
    saveAllInputs: true,
    gradFunc: (dy, saved, { axis }) => {
      const parts = tf.unstack(dy as Tensor, Number(axis));
      return eachInput(saved.length, (index) => parts[index] as Tensor);
    },
  },
  {
    kernelName: 'Unpack',
    gradFunc: (dy, _, { axis }) => ({
      value: () => tf.stack(dy as Tensor[], Number(axis)),
    }),
  },
  {
    kernelName: 'SplitV',
    // The gradient of a split into one part is not a list.
    gradFunc: (dy, _, { axis }) => ({ x: () => tf.concat([dy].flat(), Number(axis)) }),
  },
  {
    kernelName: 'GatherV2',
    inputsToSave: ['x', 'indices'],
    gradFunc: (dy, saved, { axis }) => {
      if (Number(axis) !== 0) throw new TypeError('only gathered rows have a gradient');
      const [x, indices] = saved as [Tensor, Tensor];
      return { x: () => scattered(tf, dy as Tensor, indices, x.shape) };
    },
  },
  {
    kernelName: 'DepthwiseConv2dNative',
    inputsToSave: ['x', 'filter'],
    gradFunc: (dy, saved) => {
      const [x, filter] = saved as [Tensor4D, Tensor4D];
      return convolved(tf, dy as Tensor4D, x, filter);
    },
  },
];

/** Axes with the last two exchanged. */
function swapped(rank: number): number[] {
  const axes = Array.from({ length: rank }, (_, axis) => axis);
  return [...axes.slice(0, -2), rank - 1, rank - 2];
}

const prepared = new WeakSet<Tf>();

/** Registers the gradients with the library, once. */
export function registerGradients(tf: Tf): void {
  if (prepared.has(tf)) return;
  prepared.add(tf);
  for (const config of configs(tf)) tf.registerGradient(config);
}
