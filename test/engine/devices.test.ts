import { describe, expect, it } from 'vitest';
import { UserError } from '../../src/base/errors.js';
import type { GraphicsAdapter } from '../../src/engine/adapters/adapters.js';
import type { DeviceName, Engine, EngineName } from '../../src/engine/engine.js';
import { onnxVersion } from '../../src/engine/onnx/library.js';
import {
  chooseEngine,
  crossCheckTarget,
  type DeviceChoice,
  type EngineChoice,
  engineNotice,
  isRequestedEngine,
  matchesRequest,
} from '../../src/engine/select/devices.js';
import { CANDIDATES, type EngineOptions } from '../../src/engine/select/engine-candidates.js';
import { surveyEngine, surveyEngines } from '../../src/engine/select/survey.js';
import { type Faults, referenceEngine } from './reference-engine.js';

const working = async () => referenceEngine({}, { name: 'tfjs' });
const missing = async (): Promise<Engine> => {
  throw new UserError('system', 'it is not installed\nat all', { suggestion: 'npm install it' });
};

/** An engine with a fault, which records that it was closed. */
function faulty(faults: Faults, closed: string[]): () => Promise<Engine> {
  const engine = referenceEngine(faults);
  return async () => ({ ...engine, close: async () => void closed.push('closed') });
}

const noMask: Faults = { noMask: true };

type Open = () => Promise<Engine>;

/** Candidates: one of ONNX Runtime, any number of TensorFlow.js. */
const candidatesOf = (onnx: Open, ...tfjs: readonly Open[]) => [
  { ...NEEDED, engine: 'onnx', backend: 'cpu', open: onnx } as const,
  ...tfjs.map((open, at) => ({ ...TFJS, backend: `backend ${at}`, open })),
];
const NEEDED = {
  device: 'cpu',
  isOptional: false,
  isAutomatic: true,
  package: 'no-such-package',
} as const;
const TFJS = { ...NEEDED, engine: 'tfjs' } as const;

describe('the chosen engine', () => {
  const auto = { engine: 'auto', device: 'auto', compute: 'f32', threads: 1 } as const;

  it('is the first correct one', async () => {
    const first = async () => referenceEngine();
    const { engine, selfCheck, passedOver } = await chooseEngine(
      auto,
      candidatesOf(first, working),
    );
    expect(engine.info.name).toBe('onnx');
    expect(selfCheck.passed).toBe(true);
    expect(passedOver).toEqual([]);
  });

  it('is the next one when others are missing, with a reason for each skipped backend', async () => {
    const broken = async () => {
      throw new UserError('system', 'its driver is too old');
    };
    const { engine, passedOver } = await chooseEngine(auto, candidatesOf(missing, broken, working));
    expect(engine.info.name).toBe('tfjs');
    expect(passedOver).toEqual([
      {
        engine: 'onnx',
        backend: 'cpu',
        device: 'cpu',
        why: 'it is not installed',
        suggestion: 'npm install it',
      },
      { engine: 'tfjs', backend: 'backend 0', device: 'cpu', why: 'its driver is too old' },
    ]);
  });

  it('is the next one when others give wrong results, and those are closed', async () => {
    const closed: string[] = [];
    const wrong = faulty(noMask, closed);
    const { engine, passedOver } = await chooseEngine(auto, candidatesOf(wrong, wrong, working));
    expect(engine.info.name).toBe('tfjs');
    expect(passedOver.map(({ engine: name, backend }) => [name, backend])).toEqual([
      ['onnx', 'cpu'],
      ['tfjs', 'backend 0'],
    ]);
    for (const { why } of passedOver) {
      expect(why).toMatch(
        /^its results are wrong: expected a difference of at most 0.00001, found \d\.\de[+-]\d$/,
      );
    }
    expect(closed).toEqual(['closed', 'closed']);
  });

  it.each([
    ['an engine on the processor', 'cpu', undefined, [1, 1, 2], [true, false, true]],
    ['a graphics card, which can be lost', 'webgpu', undefined, [1, 1], [true, true]],
    ['an engine that failed', 'cpu', missing, [1, 1], [true, true]],
  ] as const)(
    'is checked again only where the result can differ: %s',
    async (_, device, failing, threads, expected) => {
      const engine = referenceEngine();
      let loads = 0;
      const open = async (): Promise<Engine> => ({
        ...engine,
        load: async (...words) => {
          loads++;
          if (failing) await failing();
          return engine.load(...words);
        },
      });
      const candidates = [{ ...NEEDED, device, engine: 'onnx', backend: 'own', open } as const];
      const checked: boolean[] = [];
      for (const each of threads) {
        loads = 0;
        await chooseEngine({ ...auto, device, threads: each }, candidates).catch(() => {});
        checked.push(loads > 0);
      }
      expect(checked).toEqual(expected);
    },
  );

  it('omits optional packages that are not installed', async () => {
    const optional = (name: string) => ({
      ...TFJS,
      isOptional: true,
      package: name,
      backend: name,
    });
    const absent = { ...optional('no-such-package'), open: missing };
    // A package that is installed but fails is reported.
    const broken = { ...optional('vitest'), open: missing };
    const { passedOver } = await chooseEngine(auto, [
      absent,
      broken,
      ...candidatesOf(missing, working),
    ]);
    expect(passedOver.map(({ backend }) => backend)).toEqual(['vitest', 'cpu']);
  });

  it('is the requested one, with its threads', async () => {
    let asked = 0;
    const open = async ({ threads }: EngineOptions) => {
      asked = threads;
      return working();
    };
    const candidate = { ...TFJS, backend: 'wasm', open };
    const request = { ...auto, engine: 'tfjs', threads: 3 } as const;
    const { engine } = await chooseEngine(request, [...candidatesOf(missing), candidate]);
    expect(engine.info.name).toBe('tfjs');
    expect(asked).toBe(3);
  });

  it.each([
    ['onnx', /^no engine can run here: ONNX Runtime \(cpu\): it is not installed$/],
    [
      'auto',
      /^no engine can run here: ONNX Runtime \(cpu\): it is not installed; TensorFlow.js \(backend 0\): its results are wrong: /,
    ],
  ] as const)(
    'is missing with a system error when no engine works (%s)',
    async (engine, message) => {
      const candidates = candidatesOf(missing, faulty(noMask, []));
      const error = await chooseEngine({ ...auto, engine }, candidates).catch((each) => each);
      expect(error).toBeInstanceOf(UserError);
      expect(error).toMatchObject({ code: 'system', suggestion: 'npm install it' });
      expect(error.message).toMatch(message);
    },
  );

  it('is cross-checked on the processor, or there with the other engine', () => {
    const other = (name: EngineName, deviceKind: DeviceName) =>
      crossCheckTarget({ ...referenceEngine().info, name, deviceKind });
    expect(other('onnx', 'cpu')).toEqual({ engine: 'tfjs', device: 'cpu' });
    expect(other('tfjs', 'cpu')).toEqual({ engine: 'onnx', device: 'cpu' });
    expect(other('onnx', 'webgpu')).toEqual({ engine: 'auto', device: 'cpu' });
  });
});

describe('the chosen device', () => {
  const request = (device: DeviceChoice, engine: EngineChoice = 'auto') =>
    ({ engine, device, compute: 'f32', threads: 1 }) as const;

  const adapter = (name: string, isSoftware = false): GraphicsAdapter => ({
    name,
    vendor: null,
    isSoftware,
    memoryBytes: null,
    maxBufferBytes: null,
    maxBindingBytes: null,
    hasFloat16: null,
    source: 'a test',
  });
  const H200 = adapter('NVIDIA H200');

  const onCard =
    (name: string, faults: Faults = {}) =>
    async () =>
      referenceEngine(faults, { deviceKind: 'webgpu', device: name });
  const cpu = {
    ...NEEDED,
    engine: 'onnx',
    backend: 'cpu',
    open: async () => referenceEngine(),
  } as const;
  const webgpu = {
    ...cpu,
    backend: 'webgpu',
    device: 'webgpu',
    adapter: async () => H200 as GraphicsAdapter | null,
    open: onCard('NVIDIA H200') as Open,
  } as const;
  const cuda = {
    ...webgpu,
    backend: 'cuda',
    device: 'cuda',
    platforms: ['linux', 'win32'],
  } as const;
  const withoutLibraries = async (): Promise<Engine> => {
    throw new UserError('system', 'CUDA 12 is not installed', { suggestion: 'npm rebuild' });
  };
  const software = {
    ...webgpu,
    adapter: async () => adapter('llvmpipe', true),
    open: async () =>
      referenceEngine({}, { deviceKind: 'webgpu', device: 'llvmpipe', isSoftware: true }),
  };
  const noCard = { ...webgpu, adapter: async () => null, open: missing };

  const chosenFrom = (
    candidates: Parameters<typeof chooseEngine>[1],
    device: DeviceChoice,
    engine?: EngineChoice,
  ) => chooseEngine(request(device, engine), candidates, 'linux');

  it.each(['auto', 'gpu', 'webgpu'] as const)(
    'is a graphics card if there is one (%s)',
    async (device) => {
      const chosen = await chosenFrom([cpu, webgpu], device);
      expect(chosen.engine.info.device).toBe('NVIDIA H200');
      expect(engineNotice(request(device), chosen)).toBeNull();
    },
  );

  it('is the processor on request', async () => {
    const chosen = await chosenFrom([webgpu, cpu], 'cpu');
    expect(chosen).toMatchObject({ engine: { info: { deviceKind: 'cpu' } }, passedOver: [] });
    expect(engineNotice(request('cpu'), chosen)).toBeNull();
  });

  it.each([
    ['there is no graphics card', noCard, 'running on the CPU: no graphics card was found'],
    [
      'an obstacle blocks the graphics card',
      {
        ...noCard,
        obstacle: async () => ({
          message: 'NVIDIA L4 has no Vulkan driver',
          suggestion: 'install it',
        }),
      },
      'running on the CPU: ONNX Runtime (webgpu): NVIDIA L4 has no Vulkan driver; to fix it: install it',
    ],
    [
      'the libraries are missing',
      { ...cuda, open: withoutLibraries },
      'running on the CPU: ONNX Runtime (cuda): CUDA 12 is not installed; to fix it: npm rebuild',
    ],
    [
      'the engine throws at its start',
      {
        ...webgpu,
        open: async () => Promise.reject(new Error('vkCreateInstance: −9\n  at native')),
      },
      'running on the CPU: ONNX Runtime (webgpu): vkCreateInstance: −9',
    ],
    [
      'the results are wrong',
      { ...webgpu, open: onCard('NVIDIA H200', noMask) },
      /^running on the CPU: ONNX Runtime \(webgpu\): its results are wrong: expected a difference of at most 0\.0001, found \d\.\de[+-]\d$/,
    ],
    [
      'the adapter is software',
      software,
      'running on the CPU: ONNX Runtime (webgpu): llvmpipe is a software adapter, not a graphics card; to fix ' +
        'it: write --device webgpu to use it anyway',
    ],
  ])('is the processor with auto where %s, with one line as notice', async (_, card, line) => {
    const chosen = await chosenFrom([card, cpu], 'auto');
    expect(chosen.engine.info.deviceKind).toBe('cpu');
    expect(engineNotice(request('auto'), chosen)).toMatch(line);
  });

  it('is the next card when the first cannot be used', async () => {
    const { engine, passedOver } = await chosenFrom(
      [{ ...cuda, open: missing }, webgpu, cpu],
      'auto',
    );
    expect(engine.info.deviceKind).toBe('webgpu');
    expect(passedOver.map(({ backend }) => backend)).toEqual(['cuda']);
  });

  it('has a notice when another card was skipped', async () => {
    const candidates = [{ ...cuda, open: withoutLibraries }, webgpu, cpu];
    for (const device of ['auto', 'gpu'] as const) {
      expect(engineNotice(request(device), await chosenFrom(candidates, device))).toBe(
        'running on WebGPU: ONNX Runtime (cuda): CUDA 12 is not installed; to fix it: npm rebuild',
      );
    }
  });

  it.each([
    ['auto', false],
    ['gpu', false],
    ['webgpu', true],
  ] as const)('may be software only when requested by name (%s: %s)', async (device, accepted) => {
    let asked: boolean | undefined;
    const open = async ({ acceptsSoftware }: EngineOptions) => {
      asked = acceptsSoftware;
      return onCard('NVIDIA H200')();
    };
    await chosenFrom([{ ...webgpu, open }], device);
    expect(asked).toBe(accepted);
  });

  it('matches every request that means the same', () => {
    const info = { ...referenceEngine().info, deviceKind: 'webgpu' } as const;
    const same = (engine: EngineChoice, device: DeviceChoice) =>
      isRequestedEngine(info, { engine, device, compute: 'f32' });
    expect([same('auto', 'gpu'), same('auto', 'webgpu'), same('onnx', 'auto')]).toEqual([
      true,
      true,
      true,
    ]);
    expect(isRequestedEngine(info, { engine: 'auto', device: 'gpu', compute: 'f16' })).toBe(false);
    expect([same('auto', 'cpu'), same('auto', 'cuda'), same('tfjs', 'gpu')]).toEqual([
      false,
      false,
      false,
    ]);
  });

  it.each([
    [
      'gpu',
      [cpu, noCard],
      'ONNX Runtime (webgpu): no graphics card that it can use',
      'run minimind doctor to see the engines',
    ],
    [
      'gpu',
      [cpu, software],
      'llvmpipe is a software adapter',
      'write --device webgpu to use it anyway',
    ],
    [
      'gpu',
      [cpu, { ...cuda, open: withoutLibraries }, noCard],
      'ONNX Runtime (cuda): CUDA 12 is not installed; ONNX Runtime (webgpu): no graphics card that it can use',
      'npm rebuild',
    ],
    ['webgpu', [cpu, { ...webgpu, open: missing }], 'it is not installed', 'npm install it'],
    [
      'cuda',
      [cpu, { ...cuda, platforms: ['win32'] as const }],
      'CUDA exists on Windows',
      'minimind doctor',
    ],
  ] as const)(
    'is missing with a system error when %s cannot be used',
    async (device, candidates, message, suggestion) => {
      const error = await chosenFrom(candidates, device).catch((each) => each);
      expect(error).toBeInstanceOf(UserError);
      expect(error.code).toBe('system');
      expect(error.message).toMatch(/^no graphics card can be used here: /);
      expect(error.message).toContain(message);
      expect(error.suggestion).toContain(suggestion);
    },
  );

  it('is skipped where float16 is requested and missing', async () => {
    const old = { ...webgpu, adapter: async () => ({ ...H200, hasFloat16: false }) };
    const half = (device: DeviceChoice) => ({ ...request(device), compute: 'f16' }) as const;
    const chosen = await chooseEngine(half('auto'), [old, cpu], 'linux');
    expect(chosen.engine.info.deviceKind).toBe('cpu');
    expect(engineNotice(half('auto'), chosen)).toBe(
      'running on the CPU: ONNX Runtime (webgpu): NVIDIA H200 does not compute in float16; to fix it: ' +
        '--compute f32',
    );
    for (const device of ['gpu', 'webgpu'] as const) {
      await expect(chooseEngine(half(device), [old, cpu], 'linux')).rejects.toMatchObject({
        code: 'system',
        message:
          'no graphics card can be used here: ONNX Runtime (webgpu): NVIDIA H200 does not compute in float16',
        suggestion: '--compute f32',
      });
    }
    // In float32 the card is used. A card with unknown support for float16 is tried.
    expect((await chosenFrom([old, cpu], 'auto')).engine.info.deviceKind).toBe('webgpu');
    const { engine } = await chooseEngine(half('auto'), [webgpu, cpu], 'linux');
    expect(engine.info.deviceKind).toBe('webgpu');
  });

  it('is a software adapter when requested, with a notice', async () => {
    const chosen = await chosenFrom([cpu, software], 'webgpu');
    expect(chosen.engine.info.isSoftware).toBe(true);
    expect(engineNotice(request('webgpu'), chosen)).toBe(
      'WebGPU has only a software adapter here (llvmpipe): it computes on the CPU, slowly',
    );
  });

  it('must be supported by the engine', async () => {
    const error = await chosenFrom(
      [cpu, webgpu, { ...TFJS, backend: 'wasm', open: working }],
      'webgpu',
      'tfjs',
    ).catch((each) => each);
    expect(error).toMatchObject({
      code: 'usage',
      message: 'TensorFlow.js does not run on webgpu',
      suggestion: '--engine onnx does',
    });
  });
});

describe('the engines of this package', () => {
  it('always include TensorFlow.js', async () => {
    const request = { engine: 'tfjs', device: 'cpu', compute: 'f32', threads: 1 } as const;
    const { engine, selfCheck } = await chooseEngine(request);
    expect(engine.info).toMatchObject({ name: 'tfjs', version: '4.22.0', deviceKind: 'cpu' });
    expect(selfCheck.difference).toBeLessThan(1e-6);
    await engine.close();
  });

  it('are tried in this order', () => {
    const automatic = CANDIDATES.filter(({ isAutomatic }) => isAutomatic);
    expect(automatic.map(({ name }) => name)).toEqual([
      'onnx:cuda',
      'onnx:webgpu',
      'onnx:dml',
      'onnx:cpu',
      'tfjs:node-gpu',
      'tfjs:node',
      'tfjs:wasm',
      'tfjs:cpu',
    ]);
    const optional = CANDIDATES.filter(({ isOptional }) => isOptional);
    expect(optional.map(({ name }) => name)).toEqual(['tfjs:node-gpu', 'tfjs:node']);
  });
});

describe('a survey', () => {
  it('tries every backend, those with drivers in a separate process', async () => {
    const watched: string[] = [];
    const entries = await surveyEngines({
      threads: 1,
      watch: (name) => watched.push(name),
      apart: async () => {
        throw new Error('it crashed');
      },
    });
    const here = CANDIDATES.filter((each) => matchesRequest(each, process.platform));
    expect(watched).toEqual(here.map(({ name }) => name));
    expect(watched).toContain('onnx:webgpu');
    expect(entries.map(({ engine, backend }) => `${engine}:${backend}`)).toEqual(watched);
    const webgpu = entries.find(({ backend }) => backend === 'webgpu');
    expect(webgpu).toMatchObject({
      problem: webgpu?.version === null ? 'it is not installed' : 'it crashed',
      info: null,
      selfCheck: null,
      productFlops: null,
    });
    const wasm = entries.find(({ backend }) => backend === 'wasm');
    expect(wasm).toMatchObject({ version: '4.22.0', problem: null, info: { provider: 'wasm' } });
    expect(wasm?.selfCheck?.passed).toBe(true);
    expect(wasm?.productFlops).toBeGreaterThan(1e8);
  });

  it('names the command that installs a missing package', async () => {
    const entry = await surveyEngine('tfjs:node-gpu', 1);
    if (entry.version !== null) return;
    expect(entry).toMatchObject({
      problem: 'it is not installed',
      remedy: expect.stringMatching(
        /^npm install --no-save @tensorflow\/tfjs-node-gpu@4\.22\.0$|Node 22: @tensorflow\/tfjs-node-gpu@/,
      ),
    });
  });

  it.skipIf(onnxVersion() === undefined).each([
    [
      'an entry',
      '{"schema": "minimind/doctor@1", "engines": [{"engine": "onnx", "backend": "webgpu"}]}',
      { engine: 'onnx', backend: 'webgpu' },
    ],
    [
      'an error',
      '{"schema": "minimind/error@1", "code": "system", "message": "no room", "suggestion": "make some"}',
      { backend: 'webgpu', version: '1.30.0', problem: 'no room', remedy: 'make some' },
    ],
    ['nonsense', 'Segmentation fault }', { problem: 'its answer is not valid JSON', remedy: null }],
  ])('accepts %s from a separate process', async (_, answer, expected) => {
    const risky = CANDIDATES.filter(({ name }) => name === 'onnx:webgpu');
    const options = { threads: 1, watch: () => {}, apart: async () => answer };
    expect(await surveyEngines(options, risky)).toEqual([expect.objectContaining(expected)]);
  });
});
