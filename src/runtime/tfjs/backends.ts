/** The backends of TensorFlow.js: what each needs, and how it is started. */
import util from 'node:util';
import { UserError } from '../../errors.js';
import { type Backend, inTurn, type Tf } from './library.js';
import { INSTALLED, type Packages, versionOf } from './packages.js';
import { startWasm } from './wasm.js';

const CORE = '@tensorflow/tfjs-core';
/** The release that this is written for; its packages go together only when they are the same. */
const RELEASE = '4.22.0';

type Started = Omit<Backend, 'version'>;

interface BackendKind {
  /** What it needs to be installed. */
  readonly package: string;
  start(packages: Packages, threads: number): Promise<Started>;
}

/** The fastest first. */
const BACKENDS = {
  'node-gpu': {
    package: '@tensorflow/tfjs-node-gpu',
    start: async (packages, threads) => {
      const started = await startNode(packages, '@tensorflow/tfjs-node-gpu', threads);
      if (started.device !== 'cpu') return started;
      // Its processor backend has the name that tfjs-node's would get.
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

const NAMES = Object.keys(BACKENDS) as BackendName[];

/** Without the checks of a debug build, and so without advice on the console. */
function loadCore(packages: Packages): Tf {
  const tf = packages.load(CORE) as Tf;
  tf.enableProdMode();
  return tf;
}

/** What is used of the native backend beyond what all have. */
interface NativeBackend {
  readonly isUsingGpuDevice: boolean;
}

async function startNode(packages: Packages, name: string, threads: number): Promise<Started> {
  // Called by these packages, and gone from Node 24.
  if (!('isNullOrUndefined' in util)) {
    Object.assign(util, { isNullOrUndefined: (value: unknown) => value == null });
  }
  // Read by TensorFlow when it is loaded: no notices on stderr, and the number of threads.
  process.env.TF_CPP_MIN_LOG_LEVEL ??= '2';
  process.env.TF_NUM_INTRAOP_THREADS ??= String(threads);
  const tf = packages.load(name) as Tf;
  tf.enableProdMode();
  if (!(await tf.setBackend('tensorflow'))) throw new Error('its native backend did not start');
  const { isUsingGpuDevice } = tf.backend() as unknown as NativeBackend;
  return {
    tf,
    provider: 'tensorflow',
    device: isUsingGpuDevice ? 'GPU (CUDA)' : 'cpu',
    threads: Number(process.env.TF_NUM_INTRAOP_THREADS),
  };
}

/** Whether a backend can be used here. */
export interface BackendReport {
  readonly backend: BackendName;
  readonly package: string;
  /** Of the package, when it is installed. */
  readonly version: string | undefined;
  /** Why it cannot be used; undefined when it can. */
  readonly problem: string | undefined;
  /** What installs the package. */
  readonly install: string;
}

/** Tries every backend, the fastest first. Needs no model. */
export async function findBackends(
  threads: number,
  packages = INSTALLED,
): Promise<BackendReport[]> {
  const reports: BackendReport[] = [];
  for (const name of NAMES) reports.push((await tryBackend(name, threads, packages)).report);
  return reports;
}

interface Opened {
  readonly backend: Backend;
  /** Faster ones that cannot be used here. */
  readonly passedOver: readonly BackendReport[];
}

/**
 * The backend that is asked for; `auto` is the fastest that can be used here.
 * @throws UserError when it cannot be used.
 */
export async function openBackend(
  choice: BackendName | 'auto',
  threads: number,
  packages = INSTALLED,
): Promise<Opened> {
  const passedOver: BackendReport[] = [];
  for (const name of choice === 'auto' ? NAMES : [choice]) {
    const { backend, report } = await tryBackend(name, threads, packages);
    if (backend) return { backend, passedOver };
    passedOver.push(report);
  }
  throw noBackend(passedOver);
}

interface Attempt {
  readonly backend?: Backend;
  readonly report: BackendReport;
}

const attempts = new WeakMap<Packages, Map<BackendName, Promise<Attempt>>>();

/** Tries a backend once in a process: the first to ask chooses its threads. */
function tryBackend(name: BackendName, threads: number, packages: Packages): Promise<Attempt> {
  const made = attempts.get(packages) ?? new Map<BackendName, Promise<Attempt>>();
  attempts.set(packages, made);
  const attempt = made.get(name) ?? startBackend(name, threads, packages);
  made.set(name, attempt);
  return attempt;
}

async function startBackend(
  backend: BackendName,
  threads: number,
  packages: Packages,
): Promise<Attempt> {
  const kind: BackendKind = BACKENDS[backend];
  const version = versionOf(packages, kind.package);
  const report = {
    backend,
    package: kind.package,
    version,
    problem: undefined,
    install: `npm install ${kind.package}@${RELEASE}`,
  };
  if (version === undefined) return { report: { ...report, problem: 'it is not installed' } };
  try {
    const started = await inTurn(() => kind.start(packages, threads));
    return { backend: { ...started, version }, report };
  } catch (error) {
    return { report: { ...report, problem: firstLine(error) } };
  }
}

const firstLine = (error: unknown) =>
  (error instanceof Error ? error.message : String(error)).split('\n', 1)[0]?.trim() ?? '';

function noBackend(reports: readonly BackendReport[]): UserError {
  const reasons = reports.map(({ package: name, problem }) => `${name}: ${problem}`);
  const missing = reports.find(({ version }) => version === undefined);
  return new UserError('system', `TensorFlow.js cannot run here: ${reasons.join('; ')}`, {
    suggestion: missing ? missing.install : 'use --engine onnx',
  });
}
