/** Matrix products by the engines: the fastest whose results are right. */
import { type MatrixProducts, plainProducts } from '../linalg/product.js';
import { fillUniform, keyOf } from '../tensor/random.js';
import {
  type EngineChoice,
  type EngineOptions,
  firstUsable,
  type PassedOver,
  tryOpen,
} from './devices.js';
import type { EngineName } from './engine.js';
import type { ClosableProducts } from './float32-products.js';
import type { SelfCheck } from './self-check.js';

export type { ClosableProducts } from './float32-products.js';

type Open = (options: EngineOptions) => Promise<ClosableProducts>;

/** Each is loaded when it is wanted. */
const OPENERS = {
  onnx: async (options) => (await import('./onnx/products.js')).openOnnxProducts(options),
  tfjs: async (options) => (await import('./tfjs/products.js')).openTfjsProducts(options),
} as const satisfies Record<EngineName, Open>;

export interface ChosenProducts {
  readonly engine: EngineName;
  /** To be closed in the end. */
  readonly products: ClosableProducts;
  /** Engines that would have come first. */
  readonly passedOver: readonly PassedOver[];
}

/**
 * Products in float32 of the engine that is asked for, or under `auto` of the fastest that is right.
 * @throws UserError when there is none.
 */
export async function chooseProducts(
  { engine: choice, threads }: EngineOptions & { readonly engine: EngineChoice },
  openers: Readonly<Record<EngineName, Open>> = OPENERS,
): Promise<ChosenProducts> {
  const { found, passedOver } = await firstUsable(choice, async (engine) => {
    const tried = await tryOpen(engine, () => openers[engine]({ threads }), checkProducts);
    return 'why' in tried ? tried : { engine, products: tried.opened };
  });
  return { ...found, passedOver };
}

/** Of a result that is a sum of 300 products of numbers up to 1; some ten times what rounding makes. */
const LIMIT = 1e-4;

/** Compares with plain JavaScript in float64, for sizes that are no multiples of anything. */
async function checkProducts(products: MatrixProducts): Promise<SelfCheck> {
  const [m, n, k] = [37, 41, 300];
  const [a, b] = [randomMatrix(m, k, 'a'), randomMatrix(n, k, 'b')];
  const transposed = randomMatrix(k, n, 'b');
  let difference = 0;
  for (const [kind, right] of [
    ['timesTransposed', b],
    ['times', transposed],
  ] as const) {
    const [found, expected] = [new Float64Array(m * n), new Float64Array(m * n)];
    await products[kind](a, right, found);
    await plainProducts[kind](a, right, expected);
    for (const [at, value] of expected.entries()) {
      const own = Math.abs(value - (found[at] ?? 0));
      difference = Math.max(difference, Number.isNaN(own) ? Number.POSITIVE_INFINITY : own);
    }
  }
  return { difference, limit: LIMIT, passed: difference <= LIMIT };
}

function randomMatrix(rows: number, columns: number, name: string) {
  const values = new Float64Array(rows * columns);
  fillUniform(keyOf(1, name), 0, values, 1);
  return { values, rows, columns };
}
