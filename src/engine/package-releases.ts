/** Releases of the packages that run models: those that the tests use. package.json has the same. */
const TFJS = '4.22.0';

export const RELEASES = {
  'onnxruntime-node': '1.30.0',
  '@tensorflow/tfjs-node-gpu': TFJS,
  '@tensorflow/tfjs-node': TFJS,
  '@tensorflow/tfjs-backend-wasm': TFJS,
  '@tensorflow/tfjs-backend-cpu': TFJS,
  webgpu: '0.6.2',
} as const;

export type EnginePackage = keyof typeof RELEASES;

/** A package and its release, as npm takes them. */
export const releaseOf = (name: EnginePackage): string => `${name}@${RELEASES[name]}`;
