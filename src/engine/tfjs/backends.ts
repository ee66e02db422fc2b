/** The backends of TensorFlow.js: their packages and how to start them. */

import { dirname, sep } from 'node:path';
import util from 'node:util';
import type * as wasmPackage from '@tensorflow/tfjs-backend-wasm';
import { UserError } from '../../base/errors.js';
import { setting } from '../../base/text/setting.js';
import { cudaCard } from '../adapters/adapters.js';
import { installCommand } from '../select/installation.js';
import type { Backend, Heap, Packages, Tf } from './packages.js';
import { INSTALLED, runExclusively, versionOf } from './packages.js';

const CORE = '@tensorflow/tfjs-core';
/** The supported release; all packages must have the same version. */
const RELEASE = '4.22.0';

type Started = Omit<Backend, 'version'>;

interface BackendKind {
  readonly package: string;
  start(packages: Packages, threads: number): Promise<Started>;
}

const BACKENDS = {
  'node-gpu': {
    package: '@tensorflow/tfjs-node-gpu',
    start: async (packages, threads) => {
      const started = await startNode(packages, '@tensorflow/tfjs-node-gpu', threads);
      if (started.device !== 'cpu') return started;
      // Its processor backend has the name that tfjs-node's would have.
      started.tf.removeBackend('tensorflow');
      throw new Error('it found no GPU that it can use (it needs CUDA 11.2 and cuDNN 8.1)');
    },
  },
  node: {
    package: '@tensorflow/tfjs-node',
    start: (packages, threads) => startNode(packages, '@tensorflow/tfjs-node', threads),
  },
  wasm: {
    package: '@tensorflow/tfjs-backend-wasm',
    start: async (packages, wishedThreads) => {
      const tf = loadCore(packages);
      const { heap, threads } = await startWasm(packages, tf, wishedThreads);
      return { tf, provider: 'wasm', device: 'cpu', threads, heap };
    },
  },
  cpu: {
    package: '@tensorflow/tfjs-backend-cpu',
    start: async (packages) => {
      const tf = loadCore(packages);
      packages.load('@tensorflow/tfjs-backend-cpu');
      await tf.setBackend('cpu');
      return { tf, provider: 'cpu', device: 'cpu', threads: 1 };
    },
  },
} as const satisfies Record<string, BackendKind>;

export type BackendName = keyof typeof BACKENDS;

/** Loads TensorFlow.js without the checks of a debug build and its advice on the console. */
function loadCore(packages: Packages): Tf {
  const tf = packages.load(CORE) as Tf;
  tf.enableProdMode();
  return tf;
}

/** Additional functions of the native backend. */
interface NativeBackend {
  readonly isUsingGpuDevice: boolean;
}

async function startNode(packages: Packages, name: string, threads: number): Promise<Started> {
  // These packages call it, but Node 24 removed it.
  if (!('isNullOrUndefined' in util)) {
    Object.assign(util, { isNullOrUndefined: (value: unknown) => value == null });
  }
  // TensorFlow reads it when it is loaded: no notices on stderr, and the number of threads.
  process.env.TF_CPP_MIN_LOG_LEVEL ??= '2';
  process.env.TF_NUM_INTRAOP_THREADS ??= String(threads);
  const tf = packages.load(name) as Tf;
  tf.enableProdMode();
  if (!(await tf.setBackend('tensorflow'))) throw new Error('its native backend did not start');
  const { isUsingGpuDevice } = tf.backend() as unknown as NativeBackend;
  return {
    tf,
    provider: 'tensorflow',
    device: isUsingGpuDevice ? await cudaCard() : 'cpu',
    threads: Number(process.env.TF_NUM_INTRAOP_THREADS),
  };
}

const attempts = new WeakMap<Packages, Map<BackendName, Promise<Backend>>>();

/**
 * Starts a backend, once in a process: the first call sets its threads.
 * @throws UserError when it cannot be used here.
 */
export function openBackend(
  name: BackendName,
  threads: number,
  packages = INSTALLED,
): Promise<Backend> {
  const made = attempts.get(packages) ?? new Map<BackendName, Promise<Backend>>();
  attempts.set(packages, made);
  const attempt = made.get(name) ?? startBackend(name, threads, packages);
  made.set(name, attempt);
  return attempt;
}

async function startBackend(
  backend: BackendName,
  threads: number,
  packages: Packages,
): Promise<Backend> {
  const kind: BackendKind = BACKENDS[backend];
  const version = versionOf(packages, kind.package);
  if (version === undefined) {
    throw new UserError('system', 'it is not installed', {
      suggestion: installCommand(`${kind.package}@${RELEASE}`),
    });
  }
  try {
    return { ...(await runExclusively(() => kind.start(packages, threads))), version };
  } catch (error) {
    throw new UserError('system', firstLine(error), { cause: error });
  }
}

const firstLine = (error: unknown) =>
  (error instanceof Error ? error.message : String(error)).split('\n', 1)[0]?.trim() ?? '';

const PACKAGE = '@tensorflow/tfjs-backend-wasm';

/** Addresses of WebAssembly have 32 bits. */
const HEAP_BYTES = 2 ** 32;
/** Memory always kept free for the allocations of a running kernel: if one fails, its result is garbage. */
const HEADROOM_BYTES = 64 * 2 ** 20;

/** Used part of the module behind the backend. */
interface WasmModule {
  /** Returns 0 when memory is exhausted. */
  _malloc(bytes: number): number;
  _free(address: number): void;
}

const heaps = new WeakMap<Tf, Heap>();

/** Makes wasm the current backend. It is read from the file in its package, so no network is needed. */
async function startWasm(
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
 * Runs `work` without the lines that the library prints when a start fails, for example without address space. The
 * error that follows reports the failure once.
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

/**
 * Turns a failed allocation into an error. The backend treats its address, 0, as valid, and overwrites its own data.
 */
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
    { suggestion: `use ${setting('engine', 'onnx')}, a smaller batch or a shorter context` },
  );
}
