/** The backend of matrix products: an engine, or plain JavaScript. */
import os from 'node:os';
import { UserError } from '../errors.js';
import type { MatrixProducts } from '../linalg/product.js';
import { plainProducts } from '../linalg/product.js';
import type { EngineName } from '../runtime/engine.js';
import type { EngineChoice } from '../runtime/select/devices.js';

/** A backend of matrix products, and its name for the report. */
export interface Multiplier {
  readonly products: MatrixProducts;
  readonly name: string;
  /** Memory that it takes on top of the process. */
  readonly bytes: number;
  close(): Promise<void>;
}

/** Fewer multiplications than this are done sooner than an engine is loaded. */
const FEW_MULTIPLICATIONS = 1e9;
/** Memory of an engine and of its copies of blocks: measured. */
const ENGINE_BYTES = { onnx: 120e6, tfjs: 160e6 } as const satisfies Record<EngineName, number>;

export const PLAIN: Multiplier = {
  products: plainProducts,
  name: 'JavaScript',
  bytes: 0,
  close: async () => {},
};

/** An engine where there are many multiplications, and one is to be had. */
export async function multiplierFor(
  multiplications: number,
  { engine, threads }: { readonly engine: EngineChoice; readonly threads: number | undefined },
): Promise<Multiplier> {
  if (multiplications < FEW_MULTIPLICATIONS) return PLAIN;
  const { chooseProducts } = await import('../runtime/select/matmul-backends.js');
  const { ENGINES } = await import('../runtime/engine.js');
  const wish = { engine, threads: threads ?? os.availableParallelism() };
  try {
    const { products, engine: name, backend } = await chooseProducts(wish);
    const label = `${ENGINES[name]} (${backend})`;
    return { products, name: label, bytes: ENGINE_BYTES[name], close: () => products.close() };
  } catch (error) {
    // Slower, and as right.
    if (engine !== 'auto' || !(error instanceof UserError)) throw error;
    return PLAIN;
  }
}
