/** Refusals of a conversion: their messages, and that no files remain. */
import fs from 'node:fs';
import path from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { UserError } from '../../../src/base/errors.js';
import { ruleOf } from '../../../src/checkpoint/checkpoint-rules.js';
import { folderOf } from '../../checkpoint/temp-folder.js';
import { convert, convertTo, digests, type Flags, refused, textOf } from './convert.js';
import { dictOf, layersOf, type Made, made, raw, safetensorsFile, torchFile } from './files.js';

const LAYERS = layersOf(3, [12, 8]);
const SHARED = { layout: 'shared' } as const;

const refusalOf = (run: Promise<unknown>): Promise<UserError> =>
  run.then(
    () => Promise.reject(new Error('not refused')),
    (error) => (error instanceof UserError ? error : Promise.reject(error)),
  );

describe('an impossible request', () => {
  it.each([
    [{ layout: 'low-rank' }, /requires a rank[^\0]*--rank/],
    [{ layout: 'low-rank', rank: 8 }, /rank 8 is too large for a table of 12 × 8[^\0]*from 1 to 7/],
    [{ layout: 'low-rank', rank: 1e9 }, /no such table has a rank above 8/],
    [
      { layout: 'low-rank', maxError: 1e-12 },
      /one table for all layers has an error of 0\.\d+ at any rank[^\0]*write --max-error 0\.\d+ for rank 4/,
    ],
    [{ layout: 'per-layer', maxError: 0.5 }, /one rank for all of them[^\0]*--rank/],
    [{ layout: 'shared', merge: { layer: 99 } }, /layer:99: there is no such layer[^\0]*layer:2/],
    [
      { layout: 'shared', maxPositions: 13 },
      /expected at most 12 rows, those of the tables, found 13[^\0]*--extend/,
    ],
    [
      { layout: 'shared', maxPositions: 2 ** 52, extend: 'zero' },
      /shared_srte\.freqs[^\0]*beyond the limit of a file[^\0]*fewer rows/,
    ],
    [{ layout: 'shared', maxPositions: 1e11, extend: 'zero' }, /3\.2 TB[^\0]*the disk has/],
    [{ layout: 'per-layer' }, /per-layer already/],
    [{ tie: 'embed' }, /expected an embedding and a head with known names, found none/],
    [{ layout: 'shared', maxMemory: 1e6 }, /takes at least \d+\.\d MB[^\0]*--max-memory \d+MB/],
    [{ layout: 'shared', shardSize: 100 }, /a PyTorch file has no shards/],
  ] as const satisfies readonly (readonly [Flags, RegExp])[])(
    'is refused: %j',
    async (flags, message) => {
      expect(textOf(await refused(await torchFile(LAYERS), flags))).toMatch(message);
    },
  );

  it('suggests the largest rank whose pair is smaller than the table', async () => {
    // A pair of rank 3 for 12 × 4 has 3 · (12 + 4) = 48 values, as many as the table; of rank 2, 32.
    const input = await torchFile(layersOf(3, [12, 4]));
    const error = await refused(input, { layout: 'low-rank', maxError: 1e-12 });
    expect(textOf(error)).toMatch(/write --max-error 0\.\d+ for rank 2/);
  });

  it('is refused with the required memory', async () => {
    const input = await torchFile(LAYERS);
    const text = textOf(await refused(input, { ...SHARED, maxMemory: 1e6 }));
    const least = Number(/--max-memory (\d+)MB/.exec(text)?.[1]) * 1e6;
    // The memory of this process grows, so it may take slightly more than the message says.
    const { memory } = await convertTo('out', input, { ...SHARED, maxMemory: least + 64e6 });
    expect(memory.predictedPeakBytes).toBeLessThanOrEqual(least + 64e6);
  });
});

describe('a conversion without --max-memory', () => {
  afterEach(() => {
    vi.restoreAllMocks();
  });

  it.each([
    [100e6, 512e6],
    // 48 MB for streaming and 64 MB for the largest blocks, rounded up.
    [900e6, 1016e6],
  ])('in a process of %d bytes has a limit of %d', async (resident, limit) => {
    vi.spyOn(process.memoryUsage, 'rss').mockReturnValue(resident);
    const job = { ...SHARED, maxMemory: undefined };
    const { memory } = await convertTo('out', await torchFile(LAYERS), job);
    expect(memory.limitBytes).toBe(limit);
    expect(memory.predictedPeakBytes).toBeLessThanOrEqual(limit);
  });
});

describe('a refused input', () => {
  const fp8 = raw('F8_E4M3', [1, 2, 2], [0x38, 0x40, 0x38, 0x40]);

  it('has tables of fp8, unless they become wider', async () => {
    const input = await safetensorsFile({
      'layers.0.srte.freqs': fp8,
      'layers.1.srte.freqs': { ...fp8 },
    });
    const error = await refused(input, SHARED, 'out');
    expect(textOf(error)).toMatch(/cannot be written as F8_E4M3[^\0]*--dtype/);
    await convertTo('out', input, { ...SHARED, dtype: 'F32' });
    await convertTo('out', input, { ...SHARED, merge: 'first' });
  });

  it('has dtypes that the output lacks, which is reported before writing', async () => {
    const input = await safetensorsFile({ ...LAYERS, x: raw('F4', [2], [0x21]) });
    expect(textOf(await refused(input, SHARED, 'out.pt'))).toMatch(
      /"x" has elements of type F4[^\0]*safetensors/,
    );
    const complex = await torchFile({ ...LAYERS, z: raw('C128', [1], new Array(16).fill(0)) });
    expect(textOf(await refused(complex, SHARED, 'out'))).toMatch(/C128[^\0]*PyTorch/);
  });

  it.each([
    ['a NaN', Number.NaN, /layers\.1\.srte\.freqs[^\0]*NaN[^\0]*row 1, column 0/],
    ['an infinity', Number.POSITIVE_INFINITY, /layers\.1\.srte\.freqs[^\0]*Infinity/],
  ])('has %s in a table', async (_, value, message) => {
    const broken = made([1, 2, 2], [0, 0, value, 0]);
    const input = await torchFile({
      'layers.0.srte.freqs': made([1, 2, 2], [1, 2, 3, 4]),
      'layers.1.srte.freqs': broken,
    });
    for (const flags of [SHARED, { layout: 'low-rank', rank: 1 }] as const) {
      const error = await refused(input, flags);
      expect(textOf(error)).toMatch(message);
      expect(ruleOf(error)).toBe('srte-finite');
    }
  });

  it.each([
    ['F16', 65520, 'layers.0.x.weight'],
    ['BF16', 3.4e38, 'layers.0.x.weight'],
    ['F16', -1e5, 'layers.0.srte.freqs'],
  ] as const)('has a value beyond %s: %d', async (dtype, value, name) => {
    const input = await torchFile({
      ...LAYERS,
      'layers.1.srte.freqs': LAYERS['layers.0.srte.freqs'] as Made,
      'layers.2.srte.freqs': LAYERS['layers.0.srte.freqs'] as Made,
      [name]: made([1, 12, 8], (at) => (at === 9 ? value : 0)),
    });
    const text = textOf(await refused(input, { dtype }));
    expect(text).toContain(`tensor "${name}"`);
    expect(text).toContain('value 9');
    await convertTo('out.pt', input, { dtype, saturate: true });
  });

  it('has no tensors', async () => {
    const input = await safetensorsFile({});
    expect(textOf(await refused(input, { container: 'pt' }))).toContain('holds no tensors');
  });

  it('changes during reading', async () => {
    const file = await torchFile(LAYERS);
    let time = 1;
    const touch = async () => fs.utimesSync(file, time, time++);
    const folder = folderOf({});
    for (const out of ['out.pt', 'out']) {
      const run = convert(file, path.join(folder, out), {
        ...SHARED,
        shardSize: out === 'out' ? 100 : undefined,
        warn: touch,
      });
      expect(textOf(await refusalOf(run))).toMatch(/was changed while it was read/);
    }
    expect(fs.readdirSync(folder)).toEqual([]);
  });
});

describe('an output', () => {
  const folder = folderOf({ 'mine/notes.md': 'keep', 'file.pt': 'old' });
  const input = torchFile(LAYERS, undefined, 'in.pt').then((file) => {
    const target = path.join(folder, 'in.pt');
    fs.copyFileSync(file, target);
    fs.symlinkSync('in.pt', path.join(folder, 'link.pt'));
    return target;
  });

  it.each([
    ['in.pt', /would replace the input /],
    ['link.pt', /would replace the input /],
    ['.', /would replace the input /],
    ['none/out.pt', /there is no such folder[^\0]*make the folder/],
    ['in.pt/out.pt', /would replace the input /],
    ['mine', /not a folder written by a conversion: it holds notes\.md/],
  ])('is refused even with --force: %s', async (name, message) => {
    const target = path.join(folder, name);
    const file = await input;
    const before = fs.readdirSync(folder, { recursive: true });
    const hash = digests(file);
    const run = convert(file, target, { ...SHARED, force: true });
    expect(textOf(await refusalOf(run))).toMatch(message);
    expect(fs.readdirSync(folder, { recursive: true })).toEqual(before);
    expect(digests(file)).toEqual(hash);
  });

  it('is replaced only with --force', async () => {
    const target = path.join(folder, 'file.pt');
    const refusal = await refusalOf(convert(await input, target, SHARED));
    expect(textOf(refusal)).toMatch(/exists already[^\0]*--force/);
    expect(fs.readFileSync(target, 'utf8')).toBe('old');
    await convert(await input, target, { ...SHARED, force: true });
    expect(digests(target)).toHaveProperty(['shared_srte.freqs']);
  });

  it('is refused in the folder of the input and in its parents', async () => {
    const model = folderOf({});
    fs.copyFileSync(await safetensorsFile(LAYERS), path.join(model, 'model.safetensors'));
    const expected = {
      '': 'would replace',
      out: 'outside',
      'out.pt': 'outside',
      '..': 'would replace',
    };
    for (const [name, text] of Object.entries(expected)) {
      const run = convert(model, path.join(model, name), { ...SHARED, force: true });
      expect(textOf(await refusalOf(run))).toContain(`${text} the input`);
    }
    expect(fs.readdirSync(model)).toEqual(['model.safetensors']);
  });
});

describe('a training checkpoint', () => {
  it('loses its optimizer with a warning, and keeps a config of another program', async () => {
    const state = (stateDict: unknown) =>
      dictOf([
        ['step', 7],
        ['model_state_dict', stateDict as never],
        ['optimizer_state_dict', dictOf([['state', dictOf([])]])],
        ['config', dictOf([['lr', { kind: 'float', value: 1 }]])],
      ]);
    const input = await torchFile(LAYERS, state);
    const { file, leftOut, warnings } = await convertTo('out.pt', input, SHARED);
    expect(leftOut).toContainEqual({
      pattern: 'optimizer_state_dict',
      names: ['optimizer_state_dict'],
      why: 'optimizer state applies only to the original tensors',
    });
    expect(warnings[0]?.message).toContain('by its names alone');
    expect(Object.keys(digests(file))).toContain('layers.2.srte.freqs');
  });
});
