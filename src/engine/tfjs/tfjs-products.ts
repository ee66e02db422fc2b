/** Matrix products by TensorFlow.js. */
import type { ClosableProducts } from '../float32-products.js';
import { float32Products } from '../float32-products.js';
import type { BackendName } from './backends.js';
import { openBackend } from './backends.js';
import type { Backend, Packages, Tensor2D } from './packages.js';
import { onBackend, scoped } from './packages.js';
import { readValues } from './run.js';

/** A matrix on a backend, and its transpose once it is needed. */
interface Loaded {
  readonly tensor: Tensor2D;
  transposed?: Tensor2D;
}

/** @throws UserError when the backend cannot be used here. */
export async function openTfjsProducts(
  { threads, backend: name }: { readonly threads: number; readonly backend: BackendName },
  packages?: Packages,
): Promise<ClosableProducts> {
  const backend = await openBackend(name, threads, packages);
  const { tf } = backend;
  // Uses scopes instead of `tidy`, which searches the returned value for tensors, number by number.
  return float32Products<Loaded>({
    load: (values, rows, columns) =>
      onBackend(backend, () => ({ tensor: tf.tensor2d(values, [rows, columns], 'float32') })),
    times: (a, b) =>
      onBackend(backend, () => scoped(tf, () => readValues(tf.matMul(a.tensor, b.tensor)))),
    timesTransposed: (a, b) =>
      onBackend(backend, () => scoped(tf, () => readValues(timesTransposed(backend, a, b)))),
    release({ tensor, transposed }) {
      tensor.dispose();
      transposed?.dispose();
    },
    // The backend belongs to the process.
    close: async () => {},
  });
}

/**
 * a · bᵀ as a product of two matrices, neither transposed, the only fast form on wasm. The smaller one is transposed
 * beforehand and cached; for a, the result is the transpose of b · aᵀ.
 */
function timesTransposed({ tf }: Backend, a: Loaded, b: Loaded): Tensor2D {
  const transposedOf = (x: Loaded) => {
    x.transposed ??= tf.keep(tf.transpose(x.tensor));
    return x.transposed;
  };
  return a.tensor.size < b.tensor.size
    ? tf.transpose(tf.matMul(b.tensor, transposedOf(a)))
    : tf.matMul(a.tensor, transposedOf(b));
}
