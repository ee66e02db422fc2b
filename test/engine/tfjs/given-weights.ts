import { openTfjs } from '../../../src/engine/tfjs/tfjs-engine.js';
import type { WeightSource } from '../../../src/engine/weights/weights.js';
import type { Layer } from '../../../src/model/architecture/layer.js';
import type { Param } from '../../../src/model/architecture/param.js';

/** Weights with values computed from tensor and position. */
export const weightsBy = (value: (tensor: Param, at: number) => number): WeightSource => ({
  rangeOf: () => undefined,
  read(tensor, first, target) {
    for (let at = 0; at < target.length; at++) target[at] = value(tensor, first + at);
  },
});

/** 1 on the diagonal of a matrix, 0 elsewhere; other tensors are zeros. */
export const identity = weightsBy(({ shape: [, columns] }, at) =>
  columns !== undefined && Math.floor(at / columns) === at % columns ? 1 : 0,
);

/** Output rows of a layer for rows of values: [1, rows, width]. */
export async function rowsThrough(
  layer: Layer,
  weights: WeightSource,
  rows: readonly (readonly number[])[],
): Promise<number[][]> {
  const engine = await openTfjs({ threads: 1, backend: 'wasm' });
  const program = await engine.load(layer, weights);
  const shape = [1, rows.length, rows[0]?.length ?? 0];
  const { output } = await program.run({
    inputs: [{ shape, data: Float32Array.from(rows.flat()) }],
  });
  await program.release();
  const width = output.data.length / rows.length;
  return rows.map((_, row) => [...output.data.subarray(row * width, (row + 1) * width)]);
}
