/** Ways of running a model: each engine with each of its backends. */
import type { Engine, EngineName } from './engine.js';

/** A way of computing that a library offers. */
export interface Candidate {
  readonly engine: EngineName;
  /** The library's own word. */
  readonly backend: string;
  readonly package: string;
  /** Whether it loads drivers, which may write where they want, and take the process with them. */
  readonly usesDrivers: boolean;
  /** Whether it is taken without being asked for. */
  readonly isAutomatic: boolean;
  /** @param threads That one run may take, where the library lets one choose. */
  readonly open: (threads: number) => Promise<Engine>;
}

const onnx = (provider: 'cpu' | 'webgpu' | 'cuda'): Candidate => ({
  engine: 'onnx',
  backend: provider,
  package: 'onnxruntime-node',
  usesDrivers: provider !== 'cpu',
  isAutomatic: provider === 'cpu',
  open: async (threads) => (await import('./onnx/engine.js')).openOnnx({ threads, provider }),
});

const tfjs = (
  backend: 'node-gpu' | 'node' | 'wasm' | 'cpu',
  name: string,
  usesDrivers = false,
): Candidate => ({
  engine: 'tfjs',
  backend,
  package: name,
  usesDrivers,
  isAutomatic: true,
  open: async (threads) => (await import('./tfjs/engine.js')).openTfjs({ threads, backend }),
});

/** The fastest engine first, and of TensorFlow.js the fastest backend. */
export const CANDIDATES: readonly Candidate[] = [
  onnx('cpu'),
  onnx('webgpu'),
  onnx('cuda'),
  tfjs('node-gpu', '@tensorflow/tfjs-node-gpu', true),
  tfjs('node', '@tensorflow/tfjs-node', true),
  tfjs('wasm', '@tensorflow/tfjs-backend-wasm'),
  tfjs('cpu', '@tensorflow/tfjs-backend-cpu'),
];
