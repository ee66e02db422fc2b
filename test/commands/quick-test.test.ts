import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CHECK_NAMES, checksFor } from '../../src/check/checks.js';
import { openCheckpoint } from '../../src/checkpoint/open.js';
import QuickTest from '../../src/commands/quick-test.js';
import { ENGINES as ENGINE_TITLES } from '../../src/engine/engine.js';
import { onnxVersion } from '../../src/engine/onnx/library.js';
import { differenceAt, valuesOf } from '../engine/fixture-models.js';
import { inPackage, readJson } from '../fixtures.js';
import { runHere } from '../run-here.js';

const TINY = 'configs/hybrid/tiny.yaml';
const CASE = 'fixtures/hybrid/shared-lowrank-tied';
const PLAIN = { isCrossChecked: false, isReduced: false, isQuantized: false };
/** The usual checks, without the time, which is not a verdict. */
const USUAL = checksFor(PLAIN).length - 1;

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
const inFolder = (name: string) => path.join(folder, name);
afterAll(() => fs.rmSync(folder, { recursive: true }));

const quickTest = (...args: string[]) => runHere(['quick-test', ...args]);

beforeAll(() => {
  const { input_ids } = readJson<{ input_ids: number[][] }>(CASE, 'case.json');
  fs.writeFileSync(inFolder('ids.json'), JSON.stringify(input_ids));
});

describe('quick-test', () => {
  it('runs every check', async () => {
    const { code, stdout, stderr } = await quickTest(TINY, '--device', 'cpu', '--details');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(new RegExp(`^tiny: ${USUAL} checks passed, [\\d,]+ tokens/s\n`));
    expect(stdout).toMatch(/^created +ok +the engine received 275,200 parameters, as described$/m);
    expect(stdout).toMatch(
      /^srte +ok +rows \[1, 256, 64\]; changing shared_srte\.lowrank changes layers\.0–1/m,
    );
    expect(stdout).toMatch(
      /^ {2}cache +32 tokens, 16 of them one by one \(no window is full\): \d/m,
    );
    expect(stdout).toMatch(/^ {2}cache +256 tokens, 32 of them one by one \(windows slide\): \d/m);
    expect(stdout).toMatch(/^layers\.\*\.mamba /m);
    expect(stdout).toMatch(/^ {2}memory +peak \d/m);
  });

  it('shows the times of each part where only they are asked for', async () => {
    const args = ['--device', 'cpu', '--context', '32', '--only', 'timing'];
    const { stdout } = await quickTest(TINY, ...args);
    expect(stdout).toMatch(/^part +each +count +total +share$/m);
    expect(stdout).toMatch(/^layers\.\*\.mamba +[\d.]+ m?s +2 +[\d.]+ m?s +[\d.]+%/m);
    expect(stdout).not.toMatch(/^check +result +finding$/m);
  });

  it.each(CHECK_NAMES.filter((each) => each !== 'timing'))(
    'has a finding on the first screen with --only %s',
    async (check) => {
      const args = ['--device', 'cpu', '--context', '32', '--only', check];
      const { stdout } = await quickTest(TINY, ...args);
      expect(stdout).toMatch(new RegExp(`^${check} +(?:ok|skipped) +\\S.*\\S$`, 'm'));
      expect(stdout.split('\n').length).toBeLessThan(24);
    },
  );

  it('generates the requested tokens, with a cache and without', async () => {
    const args = ['--device', 'cpu', '--only', 'cache', '--context', '24', '--details'];
    const { stdout } = await quickTest(TINY, ...args, '--output-tokens', '20');
    expect(stdout).toMatch(
      / ×, measured at 24 tokens\); counted for 20 tokens after 4: .* × fewer/,
    );
    const { code, stderr } = await quickTest(TINY, ...args, '--output-tokens', '24');
    expect(code).toBe(2);
    expect(stderr).toContain('expected fewer than the 24 tokens');
  });

  it('runs on TensorFlow.js, and compares with the other engine', async () => {
    const args = ['--engine', 'tfjs', '--context', '48', '--batch', '2', '--json'];
    const { code, stdout } = await quickTest(TINY, ...args, '--only', 'created,cross-check,cache');
    const result = JSON.parse(stdout);
    expect(code).toBe(0);
    expect(result).toMatchObject({ batch: 2, context: 48, engine: { name: 'tfjs' }, passed: true });
    expect(result.checks.map(({ check }: { check: string }) => check)).toEqual([
      'created',
      'cache',
      'cross-check',
    ]);
    // Without ONNX Runtime there is no second opinion.
    expect(result.checks[2].verdict).toBe(onnxVersion() === undefined ? 'skipped' : 'passed');
  });

  it.skipIf(onnxVersion() === undefined)('runs in float16, and measures its error', async () => {
    const args = ['--compute', 'f16', '--device', 'cpu', '--context', '16', '--json'];
    const result = JSON.parse((await quickTest(TINY, ...args)).stdout);
    expect(result).toMatchObject({ passed: true, engine: { compute: 'f16' } });
    const names = result.checks.map(({ check }: { check: string }) => check);
    expect(names).toEqual(checksFor({ ...PLAIN, isReduced: true }));
    const { measure, details } = result.checks.at(names.indexOf('float16'));
    expect(measure.value).toBe(details.float16.logits.relativeDifference);
    expect(measure.value).toBeGreaterThan(5e-5);
    expect(measure.value).toBeLessThan(5e-3);
    const only = JSON.parse((await quickTest(TINY, '--only', 'float16', ...args.slice(2))).stdout);
    expect(only.checks).toMatchObject([{ check: 'float16', verdict: 'skipped' }]);
  });

  it('refuses float16 with TensorFlow.js', async () => {
    const { code, stderr } = await quickTest(TINY, '--engine', 'tfjs', '--compute', 'f16');
    expect(code).toBe(2);
    expect(stderr).toBe('error: TensorFlow.js does not compute in f16\n  → --engine onnx does\n');
  });

  it('offers every check and every engine', () => {
    expect(QuickTest.flags.only.options).toEqual(CHECK_NAMES);
    expect(QuickTest.flags.engine.options).toEqual(['auto', ...Object.keys(ENGINE_TITLES)]);
  });

  it('runs layer by layer', async () => {
    const { code, stdout } = await quickTest(TINY, '--full', '--context', '40');
    expect(code).toBe(0);
    expect(stdout).toMatch(new RegExp(`^tiny: 3 checks passed, ${USUAL - 3} skipped\n`));
    expect(stdout).toContain('one layer in memory at a time');
  });

  it('runs a scaled-down proxy of a too large model, and reports it at the top', async () => {
    const huge = ['--set', 'model.num_layers=200', '--only', 'created,forward', '--context', '8'];
    const { code, stdout } = await quickTest('configs/hybrid/original.yaml', ...huge, '--details');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^original \(scaled-down proxy\): 2 checks passed\n/);
    expect(stdout).toMatch(/^model\.num_layers +200 +4$/m);
  });

  it('exits with 1 if a check fails', async () => {
    // This epsilon makes every logit zero, so no token has an effect.
    const { code, stdout } = await quickTest(
      TINY,
      '--set',
      'model.layer_norm_eps=1e80',
      '--only',
      'causality',
    );
    expect(code).toBe(1);
    expect(stdout).toMatch(/^tiny: FAILED causality\n/);
    expect(stdout).toContain('the model does not see it');
  });

  it('prints the trace of shapes without running the model', async () => {
    const { code, stdout } = await quickTest(
      'configs/hybrid/original.yaml',
      '--trace',
      '--context',
      '4096',
    );
    expect(code).toBe(0);
    expect(stdout).toMatch(/^ {2}attention\.heads +softmax.* \[1, 32, 4096, 4096\]$/m);
    expect(stdout).toMatch(/^layers\.1–31 +31 more blocks like layers\.0/m);
    expect(stdout).toMatch(/^cross entropy +−log softmax.* \[4096\]$/m);
    expect(stdout).toMatch(/^original: \d+ steps from ids to logits for 1 × 4,096 tokens, 22\.1B/);
  });
});

describe('a trace', () => {
  it('has the shapes of given ids', async () => {
    const { code, stdout } = await quickTest(TINY, '--trace', '--ids', inFolder('ids.json'));
    expect(code).toBe(0);
    expect(stdout).toMatch(/^ids +token ids +\[2, 20\]$/m);
  });

  it.each([
    ['--save', 'out.safetensors'],
    ['--checkpoint', 'no-such.pt'],
    ['--only', 'forward'],
    ['--engine', 'tfjs'],
    ['--repeat', '2'],
    ['--full'],
    ['--cross-check'],
  ])('cannot be combined with %s', async (...words) => {
    const { code, stderr } = await quickTest(TINY, '--trace', ...words);
    expect(stderr).toContain(`--trace and ${words[0]} cannot be used together`);
    expect(code).toBe(2);
  });
});

/** Checkpoints with known outputs: names in quick-test, and names in the fixture. */
const CASES = {
  'hybrid/shared-lowrank-tied': {
    file: 'model.safetensors',
    outputs: {
      logits: 'logits',
      'hidden.0': 'hidden.0',
      'hidden.1': 'hidden.1',
      'hidden.2': 'hidden.2',
    },
    limit: 2e-5,
  },
  'old-checkpoint/trained-random-start': {
    file: 'checkpoint_step_30.pt',
    outputs: { logits: 'logits.original' },
    limit: 1e-5,
  },
  'old-checkpoint/trained-same-start': {
    file: 'checkpoint_step_30.pt',
    outputs: { logits: 'logits.original' },
    limit: 1e-5,
  },
} as const;

const INSTALLED = ['onnx', 'tfjs'].filter(
  (engine) => engine === 'tfjs' || onnxVersion() !== undefined,
);

describe.each(Object.entries(CASES))('the checkpoint %s', (name, { file, outputs, limit }) => {
  const inCase = (each: string) => `fixtures/${name}/${each}`;
  const { input_ids, parameters } = readJson<{ input_ids: number[][]; parameters: number }>(
    inCase('case.json'),
  );
  const ids = inFolder('ids-of-case.json');
  const expected = openCheckpoint(inPackage(inCase('expected.safetensors')));
  beforeAll(() => fs.writeFileSync(ids, JSON.stringify(input_ids)));
  afterAll(() => expected.close());

  it.each(INSTALLED)('has the outputs of the original implementation, on %s', async (engine) => {
    const out = inFolder(`${name.replace('/', '-')}-${engine}.safetensors`);
    const args = [inCase('config.yaml'), '--checkpoint', inCase(file), '--ids', ids];
    const engineFlags = ['--engine', engine, '--device', 'cpu'];
    const words = [...args, ...engineFlags, '--only', 'created,forward', '--save', out];
    const { code, stdout, stderr } = await quickTest(...words);
    expect({ code, stderr }).toEqual({ code: 0, stderr: `wrote ${out}\n` });
    expect(stdout).toContain(`weights of ${inCase(file)}`);
    expect(stdout).toContain(`${parameters.toLocaleString('en-US')} parameters, as described`);
    const saved = openCheckpoint(out);
    for (const [here, there] of Object.entries(outputs)) {
      const [actual, known] = [saved.tensors.get(here), expected.tensors.get(there)];
      if (!actual || !known) throw new Error(here);
      expect(differenceAt(valuesOf(actual), valuesOf(known), 1), here).toBeLessThan(limit);
    }
    saved.close();
  });
});

describe('the device', () => {
  const only = ['--only', 'forward', '--context', '8'];
  const hasOnnx = onnxVersion() !== undefined;

  it.skipIf(!hasOnnx)(
    'is the CPU under auto without a usable GPU, which one line reports',
    async () => {
      const { code, stdout, stderr } = await quickTest(TINY, ...only, '--json');
      expect(code).toBe(0);
      const { engine, passedOver } = JSON.parse(stdout);
      const isOnCpu = engine.deviceKind === 'cpu';
      // The library of WebGPU writes to stderr itself.
      const own = stderr.replace(/^Warning: .*\n/gm, '');
      expect(own).toMatch(isOnCpu ? /^running on the CPU: .+\n$/ : /^(running on .+\n)?$/);
      const cards = passedOver.filter(({ device }: { device: string }) => device !== 'cpu');
      expect(cards.length > 0 || !isOnCpu).toBe(true);
      const quiet = await quickTest(TINY, ...only, '--json', '--quiet');
      expect(quiet.code).toBe(0);
      expect(quiet.stderr.replace(/^Warning: .*\n/gm, '')).toBe('');
    },
  );

  // A device of other systems, so it is always missing.
  const elsewhere = process.platform === 'darwin' ? 'directml' : 'coreml';
  const system = process.platform === 'darwin' ? 'Windows' : 'macOS';

  it.skipIf(!hasOnnx)('is an error with exit code 3 if a requested one is missing', async () => {
    const { code, stdout, stderr } = await quickTest(TINY, '--device', elsewhere);
    expect({ code, stdout }).toEqual({ code: 3, stdout: '' });
    expect(stderr).toMatch(/^error: no graphics card can be used here: ONNX Runtime \(/);
    expect(stderr).toContain(`exists on ${system}\n  → `);
    const json = await quickTest(TINY, '--device', elsewhere, '--json');
    expect(json.code).toBe(3);
    expect(JSON.parse(json.stdout)).toMatchObject({ schema: 'minimind/error@1', code: 'system' });
  });

  it('is refused if the engine does not support it', async () => {
    const { code, stderr } = await quickTest(TINY, '--engine', 'tfjs', '--device', 'webgpu');
    expect(code).toBe(2);
    expect(stderr).toBe('error: TensorFlow.js does not run on webgpu\n  → --engine onnx does\n');
  });

  it('must differ between two compared runs', async () => {
    const same = await quickTest(
      TINY,
      ...['--device', 'cpu', '--against', 'cpu', '--context', '8'],
    );
    expect(same.code).toBe(2);
    expect(same.stderr).toContain(
      'expected another engine or device than the CPU, which already runs the model',
    );
    expect(same.stderr).toContain('as in --device webgpu');
    const none = await quickTest(
      TINY,
      ...['--device', 'cpu', '--against', elsewhere, '--context', '8'],
    );
    expect(none.code).toBe(hasOnnx ? 3 : 2);
  });
});

describe('quick-test refuses', () => {
  it.each([
    [
      'an unknown check',
      [TINY, '--only', 'colour'],
      /--only: expected one of created, .*, found "colour"/,
    ],
    ['too many tokens', [TINY, '--context', '257'], /257 tokens are more than the 256 positions/],
    [
      'a missing file of ids',
      [TINY, '--ids', 'no-such.json'],
      /there is no file or folder no-such\.json/,
    ],
    [
      'ids and a size',
      [TINY, '--ids', inFolder('ids.json'), '--batch', '2'],
      /--ids says already how many/,
    ],
    [
      'zero threads',
      [TINY, '--threads', '0'],
      /^error: --threads: expected a positive whole number, found "0"\n/,
    ],
    [
      'more threads than processors',
      [TINY, '--threads', '99999'],
      /expected at most \d+, the processors here, found 99999/,
    ],
    [
      'a seed that is not exact',
      [TINY, '--seed', '9007199254740993'],
      /--seed: expected a whole number, found "9007199254740993"/,
    ],
    [
      'an empty batch',
      [TINY, '--batch', '0'],
      /^error: --batch: expected a positive whole number, found "0"\n/,
    ],
    ['a huge batch', [TINY, '--batch', '1000000000'], /GB for activations, .* with the weights/],
  ])('%s', async (_, args, message) => {
    const { code, stderr } = await quickTest(...args);
    expect(stderr).toMatch(message);
    expect(code).toBe(2);
  });

  it.each([
    ['out.pt', 'out.safetensors'],
    ['sub.d/out.json', 'sub.d/out.safetensors'],
  ])('to save logits to %s', async (file, suggested) => {
    const { code, stderr } = await quickTest(TINY, '--save', file);
    expect(stderr).toBe(
      `error: --save: expected a .safetensors file, found ${file}\n  → write minimind quick-test ${TINY} --save ${suggested}\n`,
    );
    expect(code).toBe(2);
  });

  it('to replace a file, before it runs the model', async () => {
    const file = inFolder('mine.safetensors');
    fs.writeFileSync(file, 'mine');
    // The ids are read later, so their fault is not reported.
    const args = [TINY, '--save', file, '--ids', file];
    expect(await quickTest(...args)).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^error: .*mine\.safetensors exists already\n/),
    });
    expect((await quickTest(...args, '--force')).stderr).toContain('is not JSON');
    expect(fs.readFileSync(file, 'utf8')).toBe('mine');
  });

  it('invalid ids, with all their faults', async () => {
    fs.writeFileSync(inFolder('wrong.json'), '[[1, 999], [3]]');
    const { code, stderr } = await quickTest(TINY, '--ids', inFolder('wrong.json'));
    expect(code).toBe(2);
    expect(stderr).toContain('id 1 of sequence 0 is 999, and ids go from 0 to 255');
    expect(stderr).toContain('sequence 1 has 1 ids, and the first 2');
  });
});
