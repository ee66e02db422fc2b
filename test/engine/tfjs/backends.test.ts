import type { KernelBackend } from '@tensorflow/tfjs-core';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { cudaCard } from '../../../src/engine/adapters/adapters.js';
import { type BackendName, nativeSuggestion } from '../../../src/engine/tfjs/backends.js';
import { INSTALLED, type Packages } from '../../../src/engine/tfjs/packages.js';
import { openTfjs } from '../../../src/engine/tfjs/tfjs-engine.js';
import { differenceAt, fixtureModel } from '../fixture-models.js';
import { type NativePackage, SURFACE } from './native-surface.js';
import { tf } from './support.js';

const GPU = '@tensorflow/tfjs-node-gpu' as const;
const NODE = '@tensorflow/tfjs-node' as const;

/** Functions that load packages; null for one that is not installed. */
type Fakes = Readonly<Record<string, (() => unknown) | null>>;

/** The installed packages, with these replaced. */
function packagesWith(fakes: Fakes): Packages {
  const all: Fakes = { [GPU]: null, [NODE]: null, ...fakes };
  return {
    load(name) {
      if (name.startsWith('manifest of ')) return { version: '4.22.0-fake' };
      return (all[name] ?? (() => INSTALLED.load(name)))();
    },
    locate(name, file) {
      if (all[name] === null) throw new Error(`Cannot find module '${name}/${file}'`);
      return all[name] ? `manifest of ${name}` : INSTALLED.locate(name, file);
    },
  };
}

/** Imitates a native package: its recorded functions and no others, with the arithmetic of the cpu backend. */
function nativeModule(isUsingGpuDevice: boolean, madeBy: NativePackage = NODE) {
  return () => {
    INSTALLED.load('@tensorflow/tfjs-backend-cpu');
    const make = () =>
      Object.assign(tf.findBackendFactory('cpu')() as KernelBackend, { isUsingGpuDevice, madeBy });
    tf.registerBackend('tensorflow', make);
    for (const kernel of tf.getKernelsForBackend('cpu')) {
      if (!tf.getKernel(kernel.kernelName, 'tensorflow')) {
        tf.registerKernel({ ...kernel, backendName: 'tensorflow' });
      }
    }
    const all: Readonly<Record<string, unknown>> = { ...tf };
    return Object.fromEntries(SURFACE[madeBy].functions.map((name) => [name, all[name]]));
  };
}

/** How to run models without a package, on this Node. */
const installed = (name: NativePackage) =>
  nativeSuggestion(name, process.versions.node) ?? `npm install --no-save ${name}@4.22.0`;

const BROKEN = 'The addon (tfjs_binding.node) can not be found at: x.';
const broken = () => {
  throw new Error(`${BROKEN}\nPlease run npm rebuild`);
};

afterEach(() => {
  if (tf.findBackendFactory('tensorflow')) tf.removeBackend('tensorflow');
});

describe('an unusable backend gives the reason:', () => {
  it.each([
    ['node-gpu', {}, 'it is not installed', installed(GPU)],
    ['node', {}, 'it is not installed', installed(NODE)],
    ['node', { [NODE]: broken }, BROKEN, nativeSuggestion(NODE, process.versions.node)],
    [
      'node-gpu',
      { [GPU]: nativeModule(false) },
      'it found no GPU that it can use (it needs CUDA 11.2 and cuDNN 8.1)',
      nativeSuggestion(GPU, process.versions.node),
    ],
  ] as const)('%s', async (backend, fakes, message, suggestion) => {
    const opened = openTfjs({ threads: 1, backend }, packagesWith(fakes));
    await expect(opened).rejects.toMatchObject({
      name: 'UserError',
      code: 'system',
      message,
      suggestion,
    });
  });
});

describe('a usable backend', () => {
  const infoWith = async (backend: BackendName, fakes: Fakes = {}) =>
    (await openTfjs({ threads: 1, backend }, packagesWith(fakes))).info;

  it('is tfjs-node-gpu with a GPU', async () => {
    expect(await infoWith('node-gpu', { [GPU]: nativeModule(true) })).toEqual({
      name: 'tfjs',
      version: '4.22.0-fake',
      provider: 'tensorflow',
      device: await cudaCard(),
      deviceKind: 'cuda',
      isSoftware: false,
      memoryBytes: null,
      threads: 1,
      compute: 'f32',
    });
  });

  it('is tfjs-node after tfjs-node-gpu found no GPU', async () => {
    const fakes = { [GPU]: nativeModule(false, GPU), [NODE]: nativeModule(false) };
    await expect(infoWith('node-gpu', fakes)).rejects.toThrow('no GPU');
    expect(await infoWith('node', fakes)).toMatchObject({ provider: 'tensorflow', device: 'cpu' });
    expect(tf.backend()).toMatchObject({ madeBy: NODE });
  });

  it.each(['wasm', 'cpu'] as const)('is %s', async (backend) => {
    const info = { provider: backend, version: '4.22.0', device: 'cpu', threads: 1 };
    expect(await infoWith(backend)).toMatchObject(info);
  });

  it('is loaded once', async () => {
    const load = vi.fn(nativeModule(false));
    const packages = packagesWith({ [NODE]: load });
    await Promise.all([1, 2].map(() => openTfjs({ threads: 1, backend: 'node' }, packages)));
    await openTfjs({ threads: 2, backend: 'node' }, packages);
    expect(load).toHaveBeenCalledTimes(1);
  });
});

it('models run on several backends by turns', async () => {
  const packages = packagesWith({ [NODE]: nativeModule(false) });
  const { model, weights, ids, expected, every } = fixtureModel('shared-learnable');
  const logits = expected.get('logits');
  if (!logits) throw new Error('no logits');
  const engines = await Promise.all(
    (['node', 'wasm', 'cpu'] as const).map((backend) =>
      openTfjs({ threads: 1, backend }, packages),
    ),
  );
  const programs = await Promise.all(engines.map((engine) => engine.load(model, weights)));
  const runs = [...programs, ...programs].map((program) => program.run({ ids }));
  for (const { output } of await Promise.all(runs)) {
    expect(differenceAt(output, logits, every)).toBeLessThan(2e-5);
  }
  for (const [index, program] of programs.entries()) {
    await program.run({ ids });
    expect(tf.getBackend()).toBe(engines[index]?.info.provider);
  }
  for (const program of programs) await program.release();
});
