/** Ways of running a model: each engine with each of its backends. */
import { createRequire } from 'node:module';
import type { Engine, EngineName } from './engine.js';
import type { Provider } from './onnx/engine.js';
import type { BackendName } from './tfjs/backends.js';

/** A way of computing that a library offers. */
export interface Candidate {
  /** `onnx:cpu`, `tfjs:wasm`, … */
  readonly name: `${EngineName}:${string}`;
  readonly engine: EngineName;
  /** The library's own word. */
  readonly backend: string;
  readonly package: string;
  /** Whether it loads drivers, which may write where they want, and take the process with them. */
  readonly usesDrivers: boolean;
  /** Whether it is for the user to want: that it is not installed is no news. */
  readonly isOptional: boolean;
  /** Whether it is taken without being asked for. */
  readonly isAutomatic: boolean;
  /** @param threads That one run may take, where the library lets one choose. */
  readonly open: (threads: number) => Promise<Engine>;
}

const onnx = <const Name extends Provider>(provider: Name) => ({
  name: `onnx:${provider}` as const,
  engine: 'onnx' as const,
  backend: provider,
  package: 'onnxruntime-node',
  usesDrivers: provider !== 'cpu',
  isOptional: false,
  isAutomatic: provider === 'cpu',
  open: async (threads: number) =>
    (await import('./onnx/engine.js')).openOnnx({ threads, provider }),
});

const tfjs = <const Name extends BackendName>(
  backend: Name,
  packageName: string,
  { isNative = false }: { readonly isNative?: boolean } = {},
) => ({
  name: `tfjs:${backend}` as const,
  engine: 'tfjs' as const,
  backend,
  package: packageName,
  usesDrivers: isNative,
  isOptional: isNative,
  isAutomatic: true,
  open: async (threads: number) =>
    (await import('./tfjs/engine.js')).openTfjs({ threads, backend }),
});

/** The fastest engine first, and of TensorFlow.js the fastest backend. */
export const CANDIDATES = [
  onnx('cpu'),
  onnx('webgpu'),
  onnx('cuda'),
  tfjs('node-gpu', '@tensorflow/tfjs-node-gpu', { isNative: true }),
  tfjs('node', '@tensorflow/tfjs-node', { isNative: true }),
  tfjs('wasm', '@tensorflow/tfjs-backend-wasm'),
  tfjs('cpu', '@tensorflow/tfjs-backend-cpu'),
] as const satisfies readonly Candidate[];

export type CandidateName = (typeof CANDIDATES)[number]['name'];

/** Of the package of a candidate, without loading it; null when it is not installed. */
export function installedVersion({ package: name }: Pick<Candidate, 'package'>): string | null {
  try {
    const manifest: unknown = createRequire(import.meta.url)(`${name}/package.json`);
    return (manifest as { readonly version: string }).version;
  } catch {
    return null;
  }
}
