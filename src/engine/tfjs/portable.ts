/** TensorFlow.js in WebAssembly and in plain JavaScript. The build bundles it, so it is part of every installation. */
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import '@tensorflow/tfjs-backend-cpu';

export { setWasmPaths } from '@tensorflow/tfjs-backend-wasm';
export * as tf from './operations.js';

/**
 * The WebAssembly module with SIMD, which Node runs in one thread. Processors without SIMD use plain JavaScript.
 * `scripts/build.js` copies the file.
 */
const MODULE = 'tfjs-backend-wasm-simd.wasm';

/** Folder with the WebAssembly module: above each built module, or for the sources in the package of the library. */
export function moduleFolder(): string {
  const file = import.meta.url.endsWith('.ts')
    ? createRequire(import.meta.url).resolve(`@tensorflow/tfjs-backend-wasm/dist/${MODULE}`)
    : fileURLToPath(new URL(`../${MODULE}`, import.meta.url));
  return path.dirname(file) + path.sep;
}
