import { describe, expect, it } from 'vitest';
import { UserError } from '../../src/errors.js';
import { CANDIDATES } from '../../src/runtime/candidates.js';
import { chooseEngine, otherThan } from '../../src/runtime/devices.js';
import type { Engine } from '../../src/runtime/engine.js';
import { onnxVersion } from '../../src/runtime/onnx/library.js';
import { surveyEngine, surveyEngines } from '../../src/runtime/survey.js';
import { type Faults, referenceEngine } from './reference-engine.js';

const working = async () => referenceEngine({}, { name: 'tfjs' });
const missing = async (): Promise<Engine> => {
  throw new UserError('system', 'it is not installed\nat all', { suggestion: 'npm install it' });
};

/** An engine with a fault, which notes that it was closed. */
function faulty(faults: Faults, closed: string[]): () => Promise<Engine> {
  const engine = referenceEngine(faults);
  return async () => ({ ...engine, close: async () => void closed.push('closed') });
}

const noMask: Faults = { noMask: true };

type Open = () => Promise<Engine>;

/** Ways of running a model: one of ONNX Runtime, any number of TensorFlow.js. */
const ways = (onnx: Open, ...tfjs: readonly Open[]) => [
  { ...NEEDED, engine: 'onnx', backend: 'cpu', open: onnx } as const,
  ...tfjs.map((open, at) => ({ ...TFJS, backend: `backend ${at}`, open })),
];
const NEEDED = { isOptional: false, package: 'no-such-package' } as const;
const TFJS = { ...NEEDED, engine: 'tfjs' } as const;

describe('the engine that is chosen', () => {
  const auto = { engine: 'auto', threads: 1 } as const;

  it('is the first that computes what it should', async () => {
    const first = async () => referenceEngine();
    const { engine, selfCheck, passedOver } = await chooseEngine(auto, ways(first, working));
    expect(engine.info.name).toBe('onnx');
    expect(selfCheck.passed).toBe(true);
    expect(passedOver).toEqual([]);
  });

  it('is another when that is missing, and it is said why of every backend', async () => {
    const broken = async () => {
      throw new UserError('system', 'its driver is too old');
    };
    const { engine, passedOver } = await chooseEngine(auto, ways(missing, broken, working));
    expect(engine.info.name).toBe('tfjs');
    expect(passedOver).toEqual([
      {
        engine: 'onnx',
        backend: 'cpu',
        why: 'it is not installed',
        suggestion: 'npm install it',
      },
      { engine: 'tfjs', backend: 'backend 0', why: 'its driver is too old' },
    ]);
  });

  it('is another when that gives wrong results, and is closed then', async () => {
    const closed: string[] = [];
    const wrong = faulty(noMask, closed);
    const { engine, passedOver } = await chooseEngine(auto, ways(wrong, wrong, working));
    expect(engine.info.name).toBe('tfjs');
    expect(passedOver.map(({ engine: name, backend }) => [name, backend])).toEqual([
      ['onnx', 'cpu'],
      ['tfjs', 'backend 0'],
    ]);
    for (const { why } of passedOver) {
      expect(why).toMatch(/^its results are wrong: \d\.\de[+-]\d off, where 0.00001 is/);
    }
    expect(closed).toEqual(['closed', 'closed']);
  });

  it("says nothing of what is the user's to want and is not installed", async () => {
    const optional = (name: string) => ({
      ...TFJS,
      isOptional: true,
      package: name,
      backend: name,
    });
    const absent = { ...optional('no-such-package'), open: missing };
    // What is installed and fails is worth a word.
    const broken = { ...optional('vitest'), open: missing };
    const { passedOver } = await chooseEngine(auto, [absent, broken, ...ways(missing, working)]);
    expect(passedOver.map(({ backend }) => backend)).toEqual(['vitest', 'cpu']);
  });

  it('is the one that is asked for, with its threads', async () => {
    let asked = 0;
    const open = async (threads: number) => {
      asked = threads;
      return working();
    };
    const candidate = { ...TFJS, backend: 'wasm', open };
    const wish = { engine: 'tfjs', threads: 3 } as const;
    const { engine } = await chooseEngine(wish, [...ways(missing), candidate]);
    expect(engine.info.name).toBe('tfjs');
    expect(asked).toBe(3);
  });

  it.each([
    ['onnx', /^no engine can run here: ONNX Runtime \(cpu\): it is not installed$/],
    [
      'auto',
      /^no engine can run here: ONNX Runtime \(cpu\): it is not installed; TensorFlow.js \(backend 0\): its results are wrong: /,
    ],
  ] as const)('is none, and that is an error of the system (%s)', async (engine, message) => {
    const candidates = ways(missing, faulty(noMask, []));
    const error = await chooseEngine({ engine, threads: 1 }, candidates).catch((each) => each);
    expect(error).toBeInstanceOf(UserError);
    expect(error).toMatchObject({ code: 'system', suggestion: 'npm install it' });
    expect(error.message).toMatch(message);
  });

  it('has another for a second opinion', () => {
    expect([otherThan('onnx'), otherThan('tfjs')]).toEqual(['tfjs', 'onnx']);
  });
});

describe('the engines of this package', () => {
  it('are there: TensorFlow.js always is', async () => {
    const { engine, selfCheck } = await chooseEngine({ engine: 'tfjs', threads: 1 });
    expect(engine.info).toMatchObject({ name: 'tfjs', version: '4.22.0' });
    expect(selfCheck.difference).toBeLessThan(1e-6);
    await engine.close();
  });

  it('are taken in this order; those on a graphics card of ONNX Runtime must be asked for', () => {
    const automatic = CANDIDATES.filter(({ isAutomatic }) => isAutomatic);
    expect(automatic.map(({ engine, backend }) => `${engine}:${backend}`)).toEqual([
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
  it('tries every backend, those with drivers apart', async () => {
    const watched: string[] = [];
    const entries = await surveyEngines({
      threads: 1,
      watch: (name) => watched.push(name),
      apart: async () => {
        throw new Error('it crashed');
      },
    });
    expect(watched).toEqual([
      'onnx:cpu',
      'onnx:webgpu',
      'onnx:cuda',
      'tfjs:node-gpu',
      'tfjs:node',
      'tfjs:wasm',
      'tfjs:cpu',
    ]);
    expect(entries.map(({ engine, backend }) => `${engine}:${backend}`)).toEqual(watched);
    const webgpu = entries[1];
    expect(webgpu).toMatchObject({
      problem: webgpu?.version === null ? 'it is not installed' : 'it crashed',
      info: null,
      selfCheck: null,
      productFlops: null,
    });
    const wasm = entries[5];
    expect(wasm).toMatchObject({ version: '4.22.0', problem: null, info: { provider: 'wasm' } });
    expect(wasm?.selfCheck?.passed).toBe(true);
    expect(wasm?.productFlops).toBeGreaterThan(1e8);
  });

  it('of what is not installed says what would install it', async () => {
    const entry = await surveyEngine('tfjs:node-gpu', 1);
    if (entry.version !== null) return;
    expect(entry).toMatchObject({
      problem: 'it is not installed',
      remedy: 'npm install @tensorflow/tfjs-node-gpu@4.22.0',
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
    ['nonsense', 'Segmentation fault }', { problem: 'its answer makes no sense', remedy: null }],
  ])('takes %s from a process of its own', async (_, answer, expected) => {
    const risky = CANDIDATES.filter(({ name }) => name === 'onnx:webgpu');
    const options = { threads: 1, watch: () => {}, apart: async () => answer };
    expect(await surveyEngines(options, risky)).toEqual([expect.objectContaining(expected)]);
  });
});
