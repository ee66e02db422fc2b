import util from 'node:util';
import type { KernelBackend } from '@tensorflow/tfjs-core';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { UserError } from '../../../src/errors.js';
import { findBackends, openBackend } from '../../../src/runtime/tfjs/backends.js';
import { openTfjs } from '../../../src/runtime/tfjs/engine.js';
import { INSTALLED, type Packages } from '../../../src/runtime/tfjs/packages.js';
import { differenceAt, fixtureModel } from '../fixture-models.js';
import { tf } from './support.js';

const GPU = '@tensorflow/tfjs-node-gpu';
const NODE = '@tensorflow/tfjs-node';
const WASM = '@tensorflow/tfjs-backend-wasm';
const CPU = '@tensorflow/tfjs-backend-cpu';

/** What loading a package does; null when it is not installed. */
type Fakes = Readonly<Record<string, (() => unknown) | null>>;

/** The packages that are installed, but for these. */
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

/** What the native packages do when they are loaded; the arithmetic is that of the cpu backend. */
function nativeModule(isUsingGpuDevice: boolean, madeBy = NODE) {
  return () => {
    INSTALLED.load(CPU);
    const make = () =>
      Object.assign(tf.findBackendFactory('cpu')() as KernelBackend, { isUsingGpuDevice, madeBy });
    tf.registerBackend('tensorflow', make);
    for (const kernel of tf.getKernelsForBackend('cpu')) {
      if (!tf.getKernel(kernel.kernelName, 'tensorflow')) {
        tf.registerKernel({ ...kernel, backendName: 'tensorflow' });
      }
    }
    return tf;
  };
}

const broken = () => {
  throw new Error('The addon (tfjs_binding.node) can not be found at: x.\nPlease run npm rebuild');
};

afterEach(() => {
  if (tf.findBackendFactory('tensorflow')) tf.removeBackend('tensorflow');
});

const problems = async (packages: Packages) =>
  (await findBackends(1, packages)).map(({ backend, problem }) => [backend, problem]);

describe('findBackends', () => {
  it('tells of each backend whether it can be used, and how to install it', async () => {
    expect(await findBackends(2, packagesWith({}))).toEqual([
      {
        backend: 'node-gpu',
        package: GPU,
        version: undefined,
        problem: 'it is not installed',
        install: `npm install ${GPU}@4.22.0`,
      },
      {
        backend: 'node',
        package: NODE,
        version: undefined,
        problem: 'it is not installed',
        install: `npm install ${NODE}@4.22.0`,
      },
      {
        backend: 'wasm',
        package: WASM,
        version: '4.22.0',
        problem: undefined,
        install: `npm install ${WASM}@4.22.0`,
      },
      {
        backend: 'cpu',
        package: CPU,
        version: '4.22.0',
        problem: undefined,
        install: `npm install ${CPU}@4.22.0`,
      },
    ]);
  });

  it('says why one that is installed cannot be used', async () => {
    const packages = packagesWith({ [GPU]: nativeModule(false), [NODE]: broken, [WASM]: broken });
    expect(await problems(packages)).toEqual([
      ['node-gpu', 'it found no GPU that it can use (it needs CUDA 11.2 and cuDNN 8.1)'],
      ['node', 'The addon (tfjs_binding.node) can not be found at: x.'],
      ['wasm', 'The addon (tfjs_binding.node) can not be found at: x.'],
      ['cpu', undefined],
    ]);
  });
});

describe('auto takes the fastest that can be used', () => {
  const infoWith = async (fakes: Fakes) => {
    const { info, passedOver } = await openTfjs({ threads: 1 }, packagesWith(fakes));
    return { info, passed: passedOver.map(({ backend }) => backend) };
  };

  it('tfjs-node-gpu with a GPU', async () => {
    expect(await infoWith({ [GPU]: nativeModule(true), [NODE]: broken })).toEqual({
      info: {
        name: 'tfjs',
        version: '4.22.0-fake',
        provider: 'tensorflow',
        device: 'GPU (CUDA)',
        threads: 1,
      },
      passed: [],
    });
  });

  it('tfjs-node where tfjs-node-gpu finds no GPU', async () => {
    const { info, passed } = await infoWith({
      [GPU]: nativeModule(false, GPU),
      [NODE]: nativeModule(false),
    });
    expect(tf.backend()).toMatchObject({ madeBy: NODE });
    expect(info).toMatchObject({ provider: 'tensorflow', device: 'cpu' });
    expect(passed).toEqual(['node-gpu']);
  });

  it('wasm where neither can be loaded', async () => {
    const { info, passed } = await infoWith({ [GPU]: broken, [NODE]: broken });
    expect(info).toMatchObject({ provider: 'wasm', version: '4.22.0', device: 'cpu', threads: 1 });
    expect(passed).toEqual(['node-gpu', 'node']);
  });

  it('cpu where wasm cannot be loaded', async () => {
    const { info, passed } = await infoWith({ [WASM]: broken });
    expect(info).toMatchObject({ provider: 'cpu' });
    expect(passed).toEqual(['node-gpu', 'node', 'wasm']);
  });

  it('none where there is none, and says why of each', async () => {
    const packages = packagesWith({ [WASM]: null, [CPU]: broken });
    const error = await openBackend('auto', 1, packages).catch((thrown: UserError) => thrown);
    expect(error).toMatchObject({
      name: 'UserError',
      code: 'system',
      message:
        'TensorFlow.js cannot run here: @tensorflow/tfjs-node-gpu: it is not installed; ' +
        '@tensorflow/tfjs-node: it is not installed; @tensorflow/tfjs-backend-wasm: it is not installed; ' +
        '@tensorflow/tfjs-backend-cpu: The addon (tfjs_binding.node) can not be found at: x.',
    });
  });
});

describe('a backend that is asked for', () => {
  it('is not replaced by another', async () => {
    const opened = openTfjs({ threads: 1, backend: 'node' }, packagesWith({}));
    await expect(opened).rejects.toMatchObject({
      message: 'TensorFlow.js cannot run here: @tensorflow/tfjs-node: it is not installed',
      suggestion: 'npm install @tensorflow/tfjs-node@4.22.0',
    });
  });

  it('is loaded once', async () => {
    const load = vi.fn(nativeModule(false));
    const packages = packagesWith({ [NODE]: load });
    await Promise.all([1, 2].map(() => openTfjs({ threads: 1, backend: 'node' }, packages)));
    await findBackends(1, packages);
    expect(load).toHaveBeenCalledTimes(1);
  });
});

it('gives the native packages what Node 24 no longer has', async () => {
  const legacy = util as { isNullOrUndefined?: (value: unknown) => boolean };
  const original = legacy.isNullOrUndefined;
  delete legacy.isNullOrUndefined;
  try {
    await openTfjs({ threads: 1, backend: 'node' }, packagesWith({ [NODE]: nativeModule(false) }));
    expect([null, undefined, 0, ''].map((value) => legacy.isNullOrUndefined?.(value))).toEqual([
      true,
      true,
      false,
      false,
    ]);
  } finally {
    if (original) legacy.isNullOrUndefined = original;
  }
});

it('runs models on several backends in turn', async () => {
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
