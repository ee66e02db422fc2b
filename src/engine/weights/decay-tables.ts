/** Checks stored tables that the engines compute from the config. */
import { UserError } from '../../base/errors.js';
import type { Layer } from '../../model/architecture/layer.js';
import type { Param } from '../../model/architecture/param.js';
import { computedBuffers } from '../../model/architecture/rotary-scaling.js';
import { walk } from '../../model/architecture/walk.js';

/** Elements of a table to compare, from its start. */
const COMPARED = 4096;
/** Largest relative difference: more than that of bfloat16. */
const TOLERANCE = 2 ** -7;

/**
 * Compares the decays of lightning attention in a file with those of the config. The class reads the stored ones.
 * @param read Elements of a stored table from its start; undefined for a table that the file lacks.
 * @throws UserError where they differ by more than the rounding of a 16-bit type.
 */
export function checkDecayTables(
  layer: Layer,
  path: string,
  read: (tensor: Param, count: number) => Float32Array | undefined,
): void {
  const tables = walk(layer).flatMap((visit) =>
    visit.layer.kind === 'lightningAttention' ? visit.layer.tables : [],
  );
  if (tables.length === 0) return;
  const formulas = computedBuffers(layer);
  for (const tensor of tables) {
    const formula = formulas.get(tensor);
    const values = read(tensor, Math.min(COMPARED, tensor.elements));
    const wrong = values?.findIndex((value, index) => {
      const expected = formula?.(index) ?? value;
      return !(Math.abs(value - expected) <= TOLERANCE * expected + 1e-30);
    });
    if (values === undefined || wrong === undefined || wrong < 0) continue;
    throw new UserError(
      'refused-file',
      `${path} has ${values[wrong]} at ${wrong} of ${tensor.name}, and the config gives ${formula?.(wrong)}: other decays are not supported`,
      { suggestion: 'remove this buffer from the file: it follows from the config' },
    );
  }
}
