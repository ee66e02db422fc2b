/** The backends of TensorFlow.js and how to start them. */

import util from 'node:util';
import type { BackendWasm } from '@tensorflow/tfjs-backend-wasm';
import { UserError } from '../../base/errors.js';
import { setting } from '../../base/text/setting.js';
import { cudaCard } from '../adapters/adapters.js';
import type { EnginePackage } from '../package-releases.js';
import { RELEASES, releaseOf } from '../package-releases.js';
import { installCommand } from '../select/installation.js';
import type { Backend, Heap, Packages, Tf } from './packages.js';
import { INSTALLED, runExclusively, versionOf } from './packages.js';

type Started = Omit<Backend, 'version'>;

interface BackendKind {
  readonly package: EnginePackage;
  /** Whether it is part of every installation. */
  readonly isBundled: boolean;
  start(packages: Packages, threads: number): Promise<Started>;
}

const BACKENDS = {
  'node-gpu': {
    package: '@tensorflow/tfjs-node-gpu',
    isBundled: false,
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
    isBundled: false,
    start: (packages, threads) => startNode(packages, '@tensorflow/tfjs-node', threads),
  },
  wasm: {
    package: '@tensorflow/tfjs-backend-wasm',
    isBundled: true,
    start: async () => {
      const portable = await loadPortable();
      const heap = await startWasm(portable);
      // The module for threads does not run in Node.
      return { tf: portable.tf, provider: 'wasm', device: 'cpu', threads: 1, heap };
    },
  },
  cpu: {
    package: '@tensorflow/tfjs-backend-cpu',
    isBundled: true,
    start: async () => {
      const { tf } = await loadPortable();
      await tf.setBackend('cpu');
      return { tf, provider: 'cpu', device: 'cpu', threads: 1 };
    },
  },
} as const satisfies Record<string, BackendKind>;

export type BackendName = keyof typeof BACKENDS;

type Portable = typeof import('./portable.js');

/** Loads the bundled part without the checks of a debug build and its advice on the console. */
async function loadPortable(): Promise<Portable> {
  const portable = await import('./portable.js');
  portable.tf.enableProdMode();
  return portable;
}

/** Functions of `node:util` that these packages call. Node 22 warns of the first one, Node 23 removed the second. */
export const LEGACY_FUNCTIONS = {
  isArray: Array.isArray,
  isNullOrUndefined: (value: unknown) => value == null,
};

/** Last line of Node that the release of the native packages is for. */
const LAST_NODE = 22;

/**
 * How to run models where a native package does not start or is not installed.
 * @param node Version of Node.
 */
export function nativeSuggestion(name: EnginePackage, node: string): string | undefined {
  if (Number.parseInt(node, 10) <= LAST_NODE) return undefined;
  const better = `use ${setting('engine', 'onnx')}, or Node ${LAST_NODE}`;
  return `${better}: ${releaseOf(name)} is not made for Node ${node}`;
}

/** Additional functions of the native backend. */
interface NativeBackend {
  readonly isUsingGpuDevice: boolean;
}

async function startNode(packages: Packages, name: string, threads: number): Promise<Started> {
  Object.assign(util, LEGACY_FUNCTIONS);
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
  const { package: name } = kind;
  const ofNode = kind.isBundled ? undefined : nativeSuggestion(name, process.versions.node);
  const version = kind.isBundled ? RELEASES[name] : versionOf(packages, name);
  if (version === undefined) {
    throw new UserError('system', 'it is not installed', {
      suggestion: ofNode ?? installCommand(releaseOf(name)),
    });
  }
  try {
    return { ...(await runExclusively(() => kind.start(packages, threads))), version };
  } catch (error) {
    throw new UserError('system', firstLine(error), {
      ...(ofNode !== undefined && { suggestion: ofNode }),
      cause: error,
    });
  }
}

const firstLine = (error: unknown) =>
  (error instanceof Error ? error.message : String(error)).split('\n', 1)[0]?.trim() ?? '';

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

/** Makes wasm the current backend. Its module is a file, so no network is needed. */
async function startWasm(portable: Portable): Promise<Heap> {
  const heap = heaps.get(portable.tf) ?? (await initialise(portable));
  heaps.set(portable.tf, heap);
  return heap;
}

async function initialise(portable: Portable): Promise<Heap> {
  portable.setWasmPaths(portable.moduleFolder());
  const { tf } = portable;
  const started = await quietly(() => withoutNewListeners(() => tf.setBackend('wasm')));
  if (!started) throw new Error('its WebAssembly module did not start');
  const backend = tf.backend() as BackendWasm;
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
