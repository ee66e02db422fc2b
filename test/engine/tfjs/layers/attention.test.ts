import { expect, it } from 'vitest';
import { fullForwardKeys } from '../../../../src/engine/calls.js';
import type { Values } from '../../../../src/engine/engine.js';
import { openTfjs } from '../../../../src/engine/tfjs/tfjs-engine.js';
import {
  attention,
  rotary,
} from '../../../../src/model/architecture/constructors/attention-layers.js';
import { linear } from '../../../../src/model/architecture/constructors/basic-layers.js';
import type {
  Attention,
  ProjectionLayer,
  Window,
} from '../../../../src/model/architecture/layer.js';
import { closingProduct, productsOf } from '../../../../src/model/architecture/walk.js';
import { largestDifference, weightsOf } from '../support.js';

const HIDDEN = 12;
const HEAD = 4;

/** Three query heads with one key-value head. The first sees four keys before its own. */
function groupedAttention(): Attention {
  const spans = [
    { heads: 1, window: { rule: 'local', tokens: 8 } as const },
    { heads: 2, window: undefined },
  ];
  const projection = (leaf: string, width: number) =>
    linear(`attention.${leaf}`, HIDDEN, width, { bias: false });
  return attention('attention', {
    inputs: [projection('q_proj', HIDDEN), projection('k_proj', HEAD), projection('v_proj', HEAD)],
    out: linear('attention.out_proj', HIDDEN, HIDDEN),
    rotary: rotary('attention.rope', { base: 10_000, headDim: HEAD }),
    heads: 3,
    keyValueHeads: 1,
    headDim: HEAD,
    spans,
  });
}

type Matrix = readonly (readonly number[])[];

const product = (row: readonly number[], weight: Matrix) =>
  weight.map((column) => column.reduce((sum, value, at) => sum + value * (row[at] ?? 0), 0));

function rotated(row: readonly number[], position: number): number[] {
  const half = row.length / 2;
  return row.map((value, at) => {
    const angle = position * 10_000 ** (-(at % half) / half);
    const other = at < half ? -(row[at + half] ?? 0) : (row[at - half] ?? 0);
    return value * Math.cos(angle) + other * Math.sin(angle);
  });
}

/** Attention of one sequence by definition, in float64. */
function naively(layer: Attention, x: Matrix): Matrix {
  const source = weightsOf(layer);
  const matrix = ({ weight }: ProjectionLayer): Matrix => {
    const [rows = 0, columns = 0] = weight.shape;
    const values = new Float32Array(rows * columns);
    source.read(weight, 0, values);
    return Array.from({ length: rows }, (_, row) => [
      ...values.subarray(row * columns, (row + 1) * columns),
    ]);
  };
  const bias = new Float32Array(HIDDEN);
  const last = closingProduct(layer.out);
  if (last.bias) source.read(last.bias, 0, bias);
  const [q, k, v, out] = [...productsOf(layer.inputs), last].map(matrix) as [
    Matrix,
    Matrix,
    Matrix,
    Matrix,
  ];
  const keys = x.map((row, position) => rotated(product(row, k), position));
  const values = x.map((row) => product(row, v));
  const windows = layer.spans.flatMap(({ heads, window }) => new Array(heads).fill(window));
  return x.map((row, position) => {
    const joined = windows.flatMap((window: Window | undefined, head) => {
      const query = rotated(product(row, q).slice(head * HEAD, (head + 1) * HEAD), position);
      const first = fullForwardKeys(x.length, window)[position] ?? 0;
      const seen = Array.from({ length: position - first + 1 }, (_, index) => first + index);
      const scores = seen.map((at) =>
        Math.exp((product(query, [keys[at] ?? []])[0] ?? 0) / Math.sqrt(HEAD)),
      );
      const total = scores.reduce((sum, score) => sum + score, 0);
      return Array.from({ length: HEAD }, (_, column) =>
        seen.reduce(
          (sum, at, index) => sum + ((scores[index] ?? 0) / total) * (values[at]?.[column] ?? 0),
          0,
        ),
      );
    });
    return product(joined, out).map((value, at) => value + (bias[at] ?? 0));
  });
}

it('attention with shared keys and several blocks of queries matches the definition', async () => {
  const layer = groupedAttention();
  // More than one block of queries, for two sequences.
  const [batch, tokens] = [2, 700];
  const data = Float32Array.from(
    { length: batch * tokens * HIDDEN },
    (_, at) => 3 * Math.sin(at * at),
  );
  const input: Values = { shape: [batch, tokens, HIDDEN], data };
  const engine = await openTfjs({ threads: 1, backend: 'wasm' });
  const program = await engine.load(layer, weightsOf(layer));
  const { output } = await program.run({ inputs: [input] });
  await program.release();
  const sequences = [0, 1].map((sequence) =>
    Array.from({ length: tokens }, (_, token) => {
      const from = (sequence * tokens + token) * HIDDEN;
      return [...data.subarray(from, from + HIDDEN)];
    }),
  );
  const expected = sequences.flatMap((sequence) => naively(layer, sequence)).flat();
  expect(largestDifference(output.data, expected)).toBeLessThan(2e-5);
});
