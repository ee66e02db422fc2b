import { expect, it } from 'vitest';
import { SrtePass } from '../../../src/conversion/srte/survey-srte.js';
import { GramAccumulator } from '../../../src/linalg/gram.js';
import { plainProduct } from '../../../src/linalg/matrix.js';

/** Two tables of four rows of two, and how often the mean is multiplied by itself. */
async function multiplied(values: readonly number[]): Promise<number> {
  let times = 0;
  const gram = new GramAccumulator(4, 2, (a, b, target) => {
    times++;
    return plainProduct(a, b, target);
  });
  const pass = new SrtePass(2, 2, 4, gram);
  await pass.add({ values: Float64Array.from(values), rows: 2, columns: 8 }, 0);
  return times;
}

it('does not go on with a mean that has no norm', async () => {
  const values = Array.from({ length: 16 }, (_, index) => index);
  expect(await multiplied(values)).toBe(1);
  expect(await multiplied(values.with(9, Number.NaN))).toBe(0);
});
