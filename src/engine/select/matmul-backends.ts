/** Matrix products by the engines: the fastest that passes its check. */

import type { MatrixProducts } from '../../base/linalg/matrix.js';
import { plainProducts } from '../../base/linalg/matrix.js';
import { fillKeyedUniform, streamKey } from '../../base/tensor/random.js';
import type { EngineName } from '../engine.js';
import type { ClosableProducts } from '../float32-products.js';
import type { BackendName } from '../tfjs/backends.js';
import type { Trainer } from '../trainer.js';
import type { EngineChoice, EngineChoiceKey, SkippedEngine } from './devices.js';
import { firstUsable } from './devices.js';
import type { SelfCheck } from './self-check.js';

export type { ClosableProducts } from '../float32-products.js';

interface MatmulCandidate extends EngineChoiceKey {
  readonly open: (threads: number) => Promise<ClosableProducts>;
}

/** The fastest first; plain JavaScript is faster than TensorFlow.js without a native part. */
const CANDIDATES: readonly MatmulCandidate[] = [
  {
    engine: 'onnx',
    backend: 'cpu',
    device: 'cpu',
    open: async (threads) =>
      (await import('../onnx/onnx-products.js')).openOnnxProducts({ threads }),
  },
  ...(['node-gpu', 'node', 'wasm'] as const).map((backend) => ({
    engine: 'tfjs' as const,
    backend,
    device: backend === 'node-gpu' ? ('cuda' as const) : ('cpu' as const),
    open: async (threads: number) =>
      (await import('../tfjs/tfjs-products.js')).openTfjsProducts({ threads, backend }),
  })),
];

export interface ChosenProducts {
  readonly engine: EngineName;
  readonly backend: string;
  /** The caller closes them. */
  readonly products: ClosableProducts;
  /** Skipped candidates of higher priority. */
  readonly passedOver: readonly SkippedEngine[];
}

/**
 * Products in float32 of the requested engine, or under `auto` of the fastest that passes its check.
 * @throws UserError when there is none.
 */
export async function chooseProducts(
  { engine: choice, threads }: { readonly engine: EngineChoice; readonly threads: number },
  candidates: readonly MatmulCandidate[] = CANDIDATES,
): Promise<ChosenProducts> {
  const { opened, way, passedOver } = await firstUsable<ClosableProducts, MatmulCandidate>(
    candidates.filter(({ engine }) => choice === 'auto' || engine === choice),
    ({ open }) => open(threads),
    checkProducts,
  );
  const { engine, backend } = way;
  return { engine, backend, products: opened, passedOver };
}

/** Error limit of a sum of 300 products of numbers up to 1: about ten times the rounding error. */
const LIMIT = 1e-4;

/** Compares products with plain JavaScript in float64, for odd sizes. */
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
  fillKeyedUniform(streamKey(1, name), 0, values, 1);
  return { values, rows, columns };
}

/**
 * A trainer on the fastest backend of TensorFlow.js that passes its check.
 * @throws UserError when there is none.
 */
export async function chooseTrainer(
  threads: number,
): Promise<{ readonly trainer: Trainer; readonly passedOver: readonly SkippedEngine[] }> {
  const { backend, products, passedOver } = await chooseProducts({ engine: 'tfjs', threads });
  await products.close();
  const { openTrainer } = await import('../tfjs/training/tfjs-trainer.js');
  return { trainer: await openTrainer(threads, backend as BackendName), passedOver };
}
