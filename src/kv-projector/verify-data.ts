/** What the two adapters are to learn, and what they begin with. */
import type { Generator } from '../random/index.js';
import type { Values } from '../runtime/engine.js';
import type { ChainLayer, Task, Trainer } from '../runtime/trainer.js';
import { type AdapterKind, NORM_EPSILON } from './projector.js';

export type DataKind = 'published' | 'linear' | 'shifted';

/** What is told of each kind of data. */
export const DATA = {
  published:
    'X = 3·randn + 1.5, Y = tanh(randn): what comes out has nothing to do with what goes in',
  linear: 'X = randn, Y = X·W + 0.1·randn: a linear relation, which the linear adapter can state',
  shifted: 'X = 6·randn + 3, Y = tanh(randn): as published, with twice the scale and the shift',
} as const satisfies Record<DataKind, string>;

export interface VerifySize {
  readonly teacherWidth: number;
  readonly studentWidth: number;
  /** Of the elastic adapter. */
  readonly hidden: number;
  /** Sequences. */
  readonly batch: number;
  /** Tokens of each. */
  readonly context: number;
}

/** Tokens of all sequences. */
export const rowsOf = ({ batch, context }: VerifySize) => batch * context;

/** X [tokens, d_t] and Y [tokens, d_s]; draws X, then W (of linear data), then Y or its noise. */
export async function dataFor(
  kind: DataKind,
  size: VerifySize,
  random: Generator,
  trainer: Pick<Trainer, 'product'>,
): Promise<Task> {
  const { teacherWidth, studentWidth } = size;
  const rows = rowsOf(size);
  const normal = (count: number, columns: number, mean = 0, deviation = 1): Values => ({
    shape: [count, columns],
    data: random.normal(new Float32Array(count * columns), mean, deviation),
  });
  const unrelated = () => {
    const y = normal(rows, studentWidth);
    return { ...y, data: y.data.map((value) => Math.tanh(value)) };
  };
  switch (kind) {
    case 'published':
      return { x: normal(rows, teacherWidth, 1.5, 3), y: unrelated() };
    case 'shifted':
      return { x: normal(rows, teacherWidth, 3, 6), y: unrelated() };
    case 'linear': {
      const x = normal(rows, teacherWidth);
      const relation = normal(studentWidth, teacherWidth, 0, 1 / Math.sqrt(teacherWidth));
      const { data } = normal(rows, studentWidth, 0, 0.1);
      const exact = await trainer.product(x, relation);
      return { x, y: { ...exact, data: data.map((noise, at) => noise + (exact.data[at] ?? 0)) } };
    }
  }
}

/**
 * An adapter that has learned nothing. Draws the values of the matrices in their order, and the linear one's bias;
 * then, with each step of its training, a mask.
 */
export function freshAdapter(
  kind: AdapterKind,
  { teacherWidth, studentWidth, hidden }: VerifySize,
  random: Generator,
  dropout: number,
): ChainLayer[] {
  switch (kind) {
    case 'linear': {
      const [weight, bias] = [zeros(studentWidth, teacherWidth), zeros(studentWidth)];
      random.linearDefault(weight.data, weight.shape, bias.data);
      return [{ kind: 'linear', weight, bias }];
    }
    case 'elastic': {
      const xavier = (outputs: number, inputs: number): ChainLayer => {
        const weight = zeros(outputs, inputs);
        random.xavierUniform(weight.data, weight.shape);
        return { kind: 'linear', weight, bias: zeros(outputs) };
      };
      const ones = { shape: [teacherWidth], data: new Float32Array(teacherWidth).fill(1) };
      return [
        { kind: 'layerNorm', epsilon: NORM_EPSILON, weight: ones, bias: zeros(teacherWidth) },
        xavier(hidden, teacherWidth),
        { kind: 'silu' },
        { kind: 'dropout', maskOf: (count) => random.dropoutMask(count, dropout) },
        xavier(studentWidth, hidden),
      ];
    }
  }
}

const zeros = (...shape: readonly number[]): Values => ({
  shape,
  data: new Float32Array(shape.reduce((product, each) => product * each, 1)),
});
