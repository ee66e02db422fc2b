import type { Engine, EngineInfo } from '../engine.js';
import { type BackendName, type BackendReport, openBackend } from './backends.js';
import { onBackend } from './library.js';
import type { Packages } from './packages.js';
import { TfjsProgram } from './program.js';
import { planWeights } from './weight-plan.js';
import { Weights } from './weights.js';

export interface TfjsOptions {
  /** A wish: wasm and cpu have one thread under Node. */
  readonly threads: number;
  /** `auto`, the default, is the fastest that can be used here. */
  readonly backend?: BackendName | 'auto';
}

export interface TfjsEngine extends Engine {
  /** Faster backends that cannot be used here, and why. */
  readonly passedOver: readonly BackendReport[];
}

/**
 * TensorFlow.js, which interprets the description. Loads the library, so import this lazily.
 * @throws UserError when the backend, or under `auto` any, cannot be used.
 */
export async function openTfjs(options: TfjsOptions, packages?: Packages): Promise<TfjsEngine> {
  const { threads, backend: choice = 'auto' } = options;
  const { backend, passedOver } = await openBackend(choice, threads, packages);
  const info: EngineInfo = {
    name: 'tfjs',
    version: backend.version,
    provider: backend.provider,
    device: backend.device,
    threads: backend.threads,
  };
  return {
    info,
    passedOver,
    load: (layer, source, loadOptions = {}) =>
      onBackend(backend, () => {
        const weights = new Weights(backend, planWeights(layer), source);
        return new TfjsProgram(backend, layer, weights, loadOptions);
      }),
    // A backend belongs to the process; what an engine holds are its programs.
    close: async () => {},
  };
}
