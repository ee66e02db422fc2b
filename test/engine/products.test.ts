import { describe, expect, it } from 'vitest';
import { UserError } from '../../src/base/errors.js';
import { lowRank } from '../../src/base/linalg/low-rank.js';
import type { Matrix } from '../../src/base/linalg/matrix.js';
import { plainProducts } from '../../src/base/linalg/matrix.js';
import type { EngineName } from '../../src/engine/engine.js';
import { type Float32Library, float32Products } from '../../src/engine/float32-products.js';
import { openOnnxProducts } from '../../src/engine/onnx/onnx-products.js';
import { type ClosableProducts, chooseProducts } from '../../src/engine/select/matmul-backends.js';
import { openTfjsProducts } from '../../src/engine/tfjs/tfjs-products.js';
import {
  generator,
  largestDifference,
  naiveProduct,
  norm,
  randomMatrix,
  sourceOf,
  transposed,
  withSingularValues,
} from '../base/linalg/matrices.js';
import { describeWithOnnx } from './onnx/support.js';

/** A matrix of a library that multiplies by definition. */
interface LibraryMatrix {
  readonly values: Float32Array;
  readonly rows: number;
  readonly columns: number;
}

/** A library that counts loaded and released matrices. */
function countingLibrary() {
  const counts = { loaded: 0, released: 0, closed: 0 };
  const matrix = ({ values, ...shape }: LibraryMatrix): Matrix => ({
    values: Float64Array.from(values),
    ...shape,
  });
  const library: Float32Library<LibraryMatrix> = {
    async load(values, rows, columns) {
      counts.loaded++;
      return { values, rows, columns };
    },
    times: async (a, b) => Float32Array.from(naiveProduct(matrix(a), transposed(matrix(b)))),
    timesTransposed: async (a, b) => Float32Array.from(naiveProduct(matrix(a), matrix(b))),
    release: () => void counts.released++,
    close: async () => void counts.closed++,
  };
  return { counts, products: float32Products(library) };
}

const times = (matrix: Matrix, factor: number): Matrix => ({
  ...matrix,
  values: matrix.values.map((value) => value * factor),
});

describe('products in float32', () => {
  const [a, b] = [randomMatrix(3, 5, generator(1)), randomMatrix(4, 5, generator(2))];

  it.each([
    [1, 1],
    [2 ** 100, 2 ** -100],
    [1e300, 1e-200],
    [1e-200, 1e-100],
    [2 ** -149, 2 ** 127],
  ])('are correct for values of about %d and %d', async (first, second) => {
    const { products } = countingLibrary();
    const target = new Float64Array(12);
    await products.timesTransposed(times(a, first), times(b, second), target);
    const scaledBack = target.map((value) => value / first / second);
    expect(largestDifference(scaledBack, naiveProduct(a, b))).toBeLessThan(1e-6);
  });

  it('preserve zeros and NaN', async () => {
    const { products } = countingLibrary();
    const target = new Float64Array(12).fill(7);
    await products.timesTransposed(times(a, 0), b, target);
    expect([...target].every((value) => value === 0)).toBe(true);
    const broken = { ...a, values: a.values.with(0, Number.NaN).with(7, Number.POSITIVE_INFINITY) };
    await products.timesTransposed(broken, b, target);
    expect([...target].map(Number.isFinite)).toEqual(
      Array.from({ length: 12 }, (_, at) => at >= 8),
    );
  });

  it('convert a held matrix once, and release it', async () => {
    const { counts, products } = countingLibrary();
    const target = new Float64Array(12);
    const release = products.hold(a);
    await products.timesTransposed(a, b, target);
    await products.timesTransposed(a, b, target);
    expect(counts).toMatchObject({ loaded: 3, released: 2 });
    release();
    expect(counts.released).toBe(3);
    // From now on it is converted for each product.
    await products.timesTransposed(a, b, target);
    expect(counts).toMatchObject({ loaded: 5, released: 5 });
  });

  it('free held matrices at the end', async () => {
    const { counts, products } = countingLibrary();
    products.hold(a);
    products.hold(b);
    await products.timesTransposed(a, b, new Float64Array(12));
    await products.close();
    expect(counts).toEqual({ loaded: 2, released: 2, closed: 1 });
  });
});

/** Tests that every engine must pass. */
function productTests(open: () => Promise<ClosableProducts>) {
  it.each([
    [1, 1, 1],
    [5, 3, 7],
    [3, 5, 7],
    [64, 64, 64],
    [17, 130, 300],
    [130, 17, 300],
  ])('are correct for [%d, k] and [%d, k], k = %d', async (m, n, k) => {
    const products = await open();
    const [a, b] = [randomMatrix(m, k, generator(m)), randomMatrix(n, k, generator(n + 1))];
    const target = new Float64Array(m * n + 1).fill(7);
    const expected = naiveProduct(a, b);
    for (const held of [a, b]) products.hold(held);
    await products.timesTransposed(a, b, target);
    expect(largestDifference(expected, target)).toBeLessThan(3e-5);
    await products.times(a, transposed(b), target);
    expect(largestDifference(expected, target)).toBeLessThan(3e-5);
    // Once more, with the matrices kept from the first time.
    await products.timesTransposed(a, b, target);
    expect(largestDifference(expected, target)).toBeLessThan(3e-5);
    expect(target[m * n]).toBe(7);
    await products.close();
  });

  it.each([1e-30, 1, 1e30])(
    'give a low-rank approximation for values of about %d',
    async (size) => {
      const products = await open();
      const singular = Array.from({ length: 140 }, (_, k) => size / (k + 1));
      const a = withSingularValues(160, 140, singular, generator(3));
      const factors = await lowRank(sourceOf(a), {
        want: { rank: 8 },
        seed: 1,
        products,
        blockRows: 50,
      });
      const left = { values: new Float64Array(160 * 8), rows: 160, columns: 8 };
      await factors.left(a, left.values);
      const product = naiveProduct(left, factors.projection);
      const error = norm(a.values.map((value, at) => (value - (product[at] ?? Number.NaN)) / size));
      const least = norm(Float64Array.from(singular.slice(8), (value) => value / size));
      expect(error / least).toBeLessThan(1.001);
      expect(factors.singularValues[0]).toBeCloseTo(size, Math.round(-Math.log10(size)) + 5);
      await products.close();
    },
  );

  it('find singular values far below the largest, within float32', async () => {
    const products = await open();
    const a = withSingularValues(150, 140, [1, 1e-2, 1e-4, 1e-5], generator(4));
    const { singularValues } = await lowRank(sourceOf(a), {
      want: { rank: 4 },
      seed: 1,
      products,
      blockRows: 64,
    });
    for (const [at, value] of [1, 1e-2, 1e-4, 1e-5].entries()) {
      expect(Math.abs((singularValues[at] ?? 0) - value)).toBeLessThan(3e-7);
    }
    await products.close();
  });
}

describe('the products of TensorFlow.js', () =>
  productTests(() => openTfjsProducts({ threads: 1, backend: 'wasm' })));

describeWithOnnx('the products of ONNX Runtime', () => {
  productTests(() => openOnnxProducts({ threads: 1 }));
});

describe('the chosen products', () => {
  const plain =
    (closed: EngineName[], name: EngineName) => async (): Promise<ClosableProducts> => ({
      ...plainProducts,
      close: async () => void closed.push(name),
    });
  const missing = async () => {
    throw new UserError('system', 'it is not installed', { suggestion: 'npm install it' });
  };
  const options = { engine: 'auto', threads: 1 } as const;
  const candidatesOf = (openers: Record<EngineName, () => Promise<ClosableProducts>>) =>
    (['onnx', 'tfjs'] as const).map((engine) => ({
      engine,
      backend: 'cpu',
      device: 'cpu' as const,
      open: openers[engine],
    }));

  it('are those of the first correct engine', async () => {
    const openers = { onnx: plain([], 'onnx'), tfjs: missing };
    expect(await chooseProducts(options, candidatesOf(openers))).toMatchObject({
      engine: 'onnx',
      passedOver: [],
    });
  });

  it('are not those of a missing engine', async () => {
    const openers = { onnx: missing, tfjs: plain([], 'tfjs') };
    expect(await chooseProducts(options, candidatesOf(openers))).toMatchObject({
      engine: 'tfjs',
      passedOver: [{ engine: 'onnx', why: 'it is not installed', suggestion: 'npm install it' }],
    });
  });

  it.each(['times', 'timesTransposed'] as const)(
    'are not those of an engine with wrong results (%s)',
    async (kind) => {
      const closed: EngineName[] = [];
      const wrong = async (): Promise<ClosableProducts> => ({
        ...(await plain(closed, 'onnx')()),
        async [kind](a: Matrix, b: Matrix, target: Float64Array) {
          await plainProducts[kind](a, b, target);
          target[77] = (target[77] ?? 0) + 1e-3;
        },
      });
      const chosen = await chooseProducts(
        options,
        candidatesOf({ onnx: wrong, tfjs: plain(closed, 'tfjs') }),
      );
      expect(chosen).toMatchObject({ engine: 'tfjs' });
      expect(chosen.passedOver[0]?.why).toMatch(
        /^its results are wrong: expected .*, found 1\.0e-3$/,
      );
      expect(closed).toEqual(['onnx']);
    },
  );

  it('are missing with a system error when no engine works', async () => {
    await expect(
      chooseProducts(options, candidatesOf({ onnx: missing, tfjs: missing })),
    ).rejects.toMatchObject({
      code: 'system',
      message: expect.stringMatching(
        /^no engine can run here: ONNX Runtime \(cpu\): it is not installed;/,
      ),
    });
  });

  it('are always available with TensorFlow.js', async () => {
    const { engine, products } = await chooseProducts({ engine: 'tfjs', threads: 1 });
    expect(engine).toBe('tfjs');
    expect(products.rounding).toBe(2 ** -24);
    await products.close();
  });
});
