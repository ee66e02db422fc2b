import type { Engine, EngineInfo } from '../engine.js';
import { type BackendName, openBackend } from './backends.js';
import { type Backend, onBackend } from './library.js';
import type { Packages } from './packages.js';
import { TfjsProgram } from './program.js';
import { planWeights } from './weight-plan.js';
import { Weights } from './weights.js';

interface TfjsOptions {
  /** A wish: wasm and cpu have one thread under Node. */
  readonly threads: number;
  readonly backend: BackendName;
}

/**
 * TensorFlow.js, which interprets the description, in float32: it knows nothing else. Loads the library, so import this lazily.
 * @throws UserError when the backend cannot be used here.
 */
export async function openTfjs(
  { threads, backend: name }: TfjsOptions,
  packages?: Packages,
): Promise<Engine> {
  const backend = await openBackend(name, threads, packages);
  return {
    info: infoOf(backend),
    load: (layer, source, loadOptions = {}) =>
      onBackend(backend, () => {
        const weights = new Weights(backend, planWeights(layer), source);
        return new TfjsProgram(backend, layer, weights, loadOptions);
      }),
    // A backend belongs to the process; what an engine holds are its programs.
    close: async () => {},
  };
}

export const infoOf = ({ version, provider, device, threads }: Backend): EngineInfo => ({
  name: 'tfjs',
  version,
  provider,
  device,
  deviceKind: device === 'cpu' ? 'cpu' : 'cuda',
  isSoftware: false,
  memoryBytes: null,
  threads,
  compute: 'f32',
});
