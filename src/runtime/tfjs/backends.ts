/** The backends of TensorFlow.js: their packages and how to start them. */
import util from 'node:util';
import { UserError } from '../../errors.js';
import { cudaCard } from '../adapters/adapters.js';
import { installCommand } from '../select/installation.js';
import type { Backend, Packages, Tf } from './library.js';
import { INSTALLED, inTurn, versionOf } from './library.js';
import { startWasm } from './wasm.js';

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

/** Disables the checks of a debug build, and so advice on the console. */
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
    return { ...(await inTurn(() => kind.start(packages, threads))), version };
  } catch (error) {
    throw new UserError('system', firstLine(error), { cause: error });
  }
}

const firstLine = (error: unknown) =>
  (error instanceof Error ? error.message : String(error)).split('\n', 1)[0]?.trim() ?? '';
