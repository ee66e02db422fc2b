import { dirname, sep } from 'node:path';
import type * as wasmPackage from '@tensorflow/tfjs-backend-wasm';
import { UserError } from '../../errors.js';
import type { Heap, Packages, Tf } from './library.js';

const PACKAGE = '@tensorflow/tfjs-backend-wasm';

/** Addresses of WebAssembly have 32 bits. */
const HEAP_BYTES = 2 ** 32;
/** Always kept free for allocations of a running kernel: if one fails, its result is garbage. */
const HEADROOM_BYTES = 64 * 2 ** 20;

/** Used part of the module behind the backend. */
interface WasmModule {
  /** Returns 0 when memory is exhausted. */
  _malloc(bytes: number): number;
  _free(address: number): void;
}

const heaps = new WeakMap<Tf, Heap>();

/** Makes wasm the current backend, from the file in its package and so without a network. */
export async function startWasm(
  packages: Packages,
  tf: Tf,
  wishedThreads: number,
): Promise<{ heap: Heap; threads: number }> {
  const wasm = packages.load(PACKAGE) as typeof wasmPackage;
  const heap = heaps.get(tf) ?? (await initialise(packages, tf, wasm, wishedThreads));
  heaps.set(tf, heap);
  return { heap, threads: wasm.getThreadsCount() };
}

async function initialise(
  packages: Packages,
  tf: Tf,
  wasm: typeof wasmPackage,
  threads: number,
): Promise<Heap> {
  wasm.setWasmPaths(dirname(packages.locate(PACKAGE, 'dist/tfjs-backend-wasm-simd.wasm')) + sep);
  wasm.setThreadsCount(threads);
  const started = await quietly(() => withoutNewListeners(() => tf.setBackend('wasm')));
  if (!started) throw new Error('its WebAssembly module did not start');
  const backend = tf.backend() as wasmPackage.BackendWasm;
  return guardHeap(backend.wasm as unknown as WasmModule);
}

/**
 * A failed start, such as without address space, prints lines of the library; the error that follows reports it once.
 */
async function quietly<T>(work: () => Promise<T>): Promise<T> {
  const { warn, error } = console;
  const ignore = () => {};
  Object.assign(console, { warn: ignore, error: ignore });
  try {
    return await work();
  } finally {
    Object.assign(console, { warn, error });
  }
}

/** The module's start-up code handles uncaught errors of the whole process; this restores the listeners. */
async function withoutNewListeners<T>(work: () => Promise<T>): Promise<T> {
  const events = ['uncaughtException', 'unhandledRejection'];
  const before = new Set(events.flatMap((event) => process.rawListeners(event)));
  try {
    return await work();
  } finally {
    for (const event of events) {
      for (const listener of process.rawListeners(event)) {
        if (!before.has(listener)) process.off(event, listener as () => void);
      }
    }
  }
}

/** Makes a failed allocation an error. The backend treats its address, 0, as valid, and overwrites its own data. */
export function guardHeap(module: WasmModule): Heap {
  const allocate = module._malloc;
  const reserve = (bytes: number) => {
    const address = allocate(bytes);
    if (address === 0) throw outOfMemory(bytes);
    module._free(address);
  };
  module._malloc = (bytes) => {
    reserve(bytes + HEADROOM_BYTES);
    return allocate(bytes);
  };
  return { limitBytes: HEAP_BYTES, reserve: (bytes) => reserve(bytes + HEADROOM_BYTES) };
}

function outOfMemory(bytes: number): UserError {
  return new UserError(
    'system',
    `the memory of TensorFlow.js's wasm backend, at most 4 GiB, has no room for another ${Math.ceil(bytes / 2 ** 20)} MiB`,
    { suggestion: 'use --engine onnx, a smaller batch or a shorter context' },
  );
}
