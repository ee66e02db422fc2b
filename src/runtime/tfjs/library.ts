/**
 * What is used of TensorFlow.js, whichever package it comes from: `@tensorflow/tfjs-node` and its GPU
 * sibling export all that `@tensorflow/tfjs-core` does. Types only, so nothing is loaded by naming them.
 */
import { createRequire } from 'node:module';
import type * as core from '@tensorflow/tfjs-core';

/** Where packages come from. */
export interface Packages {
  /** Loads a package, or a JSON file by its path. */
  load(name: string): unknown;
  /** Absolute path of a file of a package. */
  locate(name: string, file: string): string;
}

const require = createRequire(import.meta.url);

/**
 * The packages installed beside this one, by `require`: to import TensorFlow.js as ES modules takes twice
 * as long.
 */
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

export type Tf = typeof core;

/** Memory of its own that a backend has, and that ends. */
export interface Heap {
  readonly limitBytes: number;
  /**
   * Makes sure that so much can be had in one piece, and gives it back.
   * @throws UserError when it cannot.
   */
  reserve(bytes: number): void;
}

/** A backend of TensorFlow.js that has been started. */
export interface Backend {
  readonly tf: Tf;
  /** The library's own word for it. */
  readonly provider: 'tensorflow' | 'wasm' | 'cpu';
  /** Of its package. */
  readonly version: string;
  /** `cpu`, or what is known of the graphics card. */
  readonly device: string;
  readonly threads: number;
  /** With one, each weight of a product is kept a second time, packed, from its first use on. */
  readonly heap?: Heap;
}

let turn: Promise<unknown> = Promise.resolve();

/** Runs `work` after all that was handed in before: a process has one current backend, for everybody. */
export function inTurn<T>(work: () => Promise<T>): Promise<T> {
  const result = turn.then(work);
  turn = result.catch(() => {});
  return result;
}

/** Runs `work`, which waits for nothing, with `backend` as the current one. */
export function onBackend<T>({ tf, provider }: Backend, work: () => T): Promise<T> {
  return inTurn(async () => {
    if (tf.getBackend() !== provider) await tf.setBackend(provider);
    return work();
  });
}

/** Disposes all tensors that `work` makes and does not keep, also when it throws. */
export function scoped<T>(tf: Tf, work: () => T): T {
  tf.engine().startScope();
  try {
    return work();
  } finally {
    tf.engine().endScope();
  }
}
