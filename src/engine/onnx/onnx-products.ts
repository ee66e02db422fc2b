/** Matrix products by ONNX Runtime. */
import type { ClosableProducts } from '../float32-products.js';
import { float32Products } from '../float32-products.js';
import { GraphBuilder } from './graph.js';
import type { OrtTensor, Require, Session, SessionOptions } from './library.js';
import { loadLibrary } from './library.js';
import { engineError } from './program.js';
import { encodeModel } from './proto.js';

interface ProductOptions {
  /** Threads of one product, at most. */
  readonly threads: number;
  /** Finds the library; by default the package's own `require`. */
  readonly require?: Require;
}

/** @throws UserError when the library is not installed or does not load. */
export async function openOnnxProducts(options: ProductOptions): Promise<ClosableProducts> {
  const { InferenceSession, Tensor } = loadLibrary(options.require);
  const settings: SessionOptions = {
    executionProviders: ['cpu'],
    intraOpNumThreads: options.threads,
    logSeverityLevel: 4,
    // Disables busy waiting of threads, which would slow down the work between products.
    extra: { session: { intra_op: { allow_spinning: '0' } } },
  };
  const times = await InferenceSession.create(productModel(0), settings);
  const timesTransposed = await InferenceSession.create(productModel(1), settings);
  return float32Products<OrtTensor>({
    load: async (values, rows, columns) => new Tensor('float32', values, [rows, columns]),
    times: (a, b) => run(times, a, b),
    timesTransposed: (a, b) => run(timesTransposed, a, b),
    // Its memory belongs to the caller.
    release: () => {},
    async close() {
      await times.release();
      await timesTransposed.release();
    },
  });
}

/** a · b, or a · bᵀ, of any sizes. */
function productModel(transB: 0 | 1): Uint8Array {
  const graph = new GraphBuilder();
  const inputs = [
    graph.input('a', 'f32', ['rows', 'inner']),
    graph.input('b', 'f32', transB ? ['columns', 'inner'] : ['inner', 'columns']),
  ];
  graph.output(graph.op('Gemm', inputs, { attributes: { transB } }));
  return encodeModel(graph.build('product'));
}

async function run(session: Session, a: OrtTensor, b: OrtTensor): Promise<Float32Array> {
  try {
    const [product] = Object.values(await session.run({ a, b }));
    return product?.data as Float32Array;
  } catch (error) {
    throw engineError(error, 'multiply matrices');
  }
}
