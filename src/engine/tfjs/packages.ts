/** TensorFlow.js as the engine uses it, and its packages with native code, which users install. */

import { createRequire } from 'node:module';
import type * as operations from './operations.js';

export interface Packages {
  /** Loads a package, or a JSON file by its path. */
  load(name: string): unknown;
  /** Absolute path of a file of a package. */
  locate(name: string, file: string): string;
}

const require = createRequire(import.meta.url);

export const INSTALLED: Packages = {
  load: (name) => require(name),
  locate: (name, file) => require.resolve(`${name}/${file}`),
};

/** Version of an installed package, without loading it; undefined when it is not installed. */
export function versionOf(packages: Packages, name: string): string | undefined {
  let manifest: string;
  try {
    manifest = packages.locate(name, 'package.json');
  } catch {
    return undefined;
  }
  return (packages.load(manifest) as { version: string }).version;
}

export type { Tensor, Tensor1D, Tensor2D, Tensor3D, Tensor4D } from '@tensorflow/tfjs-core';

/**
 * The functions of one package of the library. The bundled part and each native package have a copy of their own, so
 * code takes them from its backend and never imports them.
 */
export type Tf = typeof operations;

/** Separate memory of a backend, with a limit. */
export interface Heap {
  readonly limitBytes: number;
  /**
   * Checks that a contiguous block can be allocated, and frees it.
   * @throws UserError when it cannot.
   */
  reserve(bytes: number): void;
}

/** A started backend of TensorFlow.js. */
export interface Backend {
  readonly tf: Tf;
  /** Name in the library. */
  readonly provider: 'tensorflow' | 'wasm' | 'cpu';
  /** Version of its package. */
  readonly version: string;
  /** `cpu`, or the known name of the graphics card. */
  readonly device: string;
  readonly threads: number;
  /** Set when the backend stores each weight of a product a second time in the heap, packed, from its first use on. */
  readonly heap?: Heap;
}

let turn: Promise<unknown> = Promise.resolve();

/** Runs `work` after all earlier work: a process has one current backend. */
export function runExclusively<T>(work: () => Promise<T>): Promise<T> {
  const result = turn.then(work);
  turn = result.catch(() => {});
  return result;
}

/** Runs synchronous `work` with `backend` as the current one. */
export function onBackend<T>({ tf, provider }: Backend, work: () => T): Promise<T> {
  return runExclusively(async () => {
    if (tf.getBackend() !== provider) await tf.setBackend(provider);
    return work();
  });
}

/** Disposes all tensors that `work` creates and does not keep, even when it throws. */
export function scoped<T>(tf: Tf, work: () => T): T {
  tf.engine().startScope();
  try {
    return work();
  } finally {
    tf.engine().endScope();
  }
}
