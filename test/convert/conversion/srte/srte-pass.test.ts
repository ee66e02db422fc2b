import { expect, it } from 'vitest';
import { GramAccumulator } from '../../../../src/base/linalg/gram.js';
import { plainProduct } from '../../../../src/base/linalg/matrix.js';
import { SrtePass } from '../../../../src/convert/conversion/srte/survey-srte.js';

/** Number of products for the Gram matrix of the mean of two tables of four rows of two. */
async function productsOf(values: readonly number[]): Promise<number> {
  let times = 0;
  const gram = new GramAccumulator(4, 2, (a, b, target) => {
    times++;
    return plainProduct(a, b, target);
  });
  const pass = new SrtePass(2, 2, 4, gram);
  await pass.add({ values: Float64Array.from(values), rows: 2, columns: 8 }, 0);
  return times;
}

it('a pass computes no product for a mean without a norm', async () => {
  const values = Array.from({ length: 16 }, (_, index) => index);
  expect(await productsOf(values)).toBe(1);
  expect(await productsOf(values.with(9, Number.NaN))).toBe(0);
});
