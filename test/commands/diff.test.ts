import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { inPackage } from '../fixtures.js';
import { runHere } from '../run-here.js';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-diff-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));

const diff = (...args: string[]) => runHere(['diff', ...args, '-q']);
const json = async (...args: string[]) => JSON.parse((await diff(...args, '--json')).stdout);

/** Safetensors file of these tensors; by default float32. */
function weights(
  name: string,
  tensors: Readonly<Record<string, { shape: number[]; dtype?: string; bytes: Uint8Array }>>,
): string {
  let end = 0;
  const header = Object.entries(tensors).map(([key, { shape, dtype = 'F32', bytes }]) => {
    const begin = end;
    end += bytes.length;
    return [key, { dtype, shape, data_offsets: [begin, end] }] as const;
  });
  const text = Buffer.from(JSON.stringify(Object.fromEntries(header)));
  const length = Buffer.alloc(8);
  length.writeUInt32LE(text.length);
  const file = path.join(folder, name);
  const data = Object.values(tensors).map(({ bytes }) => bytes);
  fs.writeFileSync(file, Buffer.concat([length, text, ...data]));
  return file;
}

const floats = (...values: number[]) => new Uint8Array(Float32Array.from(values).buffer);
const vector = (...values: number[]) => ({ shape: [values.length], bytes: floats(...values) });
/** bfloat16 vector: the high halves of float32 values. */
const bfloat16 = (...values: number[]) => {
  const words = new Uint16Array(Float32Array.from(values).buffer);
  const bytes = new Uint8Array(words.filter((_, index) => index % 2 === 1).buffer);
  return { shape: [values.length], dtype: 'BF16', bytes };
};

const STATE_DICTS = inPackage('fixtures/checkpoints/refuse/ambiguous_two.pt');

const PAIR = {
  a: weights('a.safetensors', {
    'layers.0.w': vector(3, 4),
    'layers.1.w': vector(1, 2),
    'norm.w': vector(1, Number.NaN),
    'old.w': vector(1),
    'wide.w': vector(1, 2),
  }),
  b: weights('b.safetensors', {
    'layers.0.w': vector(3, 4.5),
    'layers.1.w': bfloat16(1, 2),
    'norm.w': vector(1, Number.NaN),
    'new.w': vector(1),
    'wide.w': vector(1, 2, 3),
  }),
};

describe('two configs', () => {
  it('differ in keys with their lines, and in layers and tensors', async () => {
    const [a, b] = ['a.yaml', 'b.yaml'].map((name) => path.join(folder, name)) as [string, string];
    const text = fs.readFileSync(inPackage('configs/minimind/minimind2-small.yaml'), 'utf8');
    fs.writeFileSync(a, text);
    fs.writeFileSync(b, text.replace(/num_hidden_layers: 8/, 'num_hidden_layers: 10'));
    const line = text.split('\n').findIndex((each) => each.includes('num_hidden_layers')) + 1;
    const result = await json(a, b);
    expect(result.equal).toBe(false);
    expect(result.config).toEqual({
      compared: 'written',
      keys: [
        {
          change: 'changed',
          path: 'model.num_hidden_layers',
          before: { value: 8, line },
          after: { value: 10, line },
          isSameValue: false,
        },
      ],
    });
    expect(result.layers).toEqual([
      expect.objectContaining({ change: 'added', pattern: 'model.layers.{8–9}' }),
    ]);
    expect(result.tensors.map((each: { changes: string[] }) => each.changes)).toEqual(
      Array.from({ length: 9 }, () => ['added']),
    );
    expect(result.tensors.every(({ names }: { names: string[] }) => names.length === 2)).toBe(true);
  });

  it('have the same model if a key only states its default', async () => {
    const [a, b] = ['c.yaml', 'd.yaml'].map((name) => path.join(folder, name)) as [string, string];
    fs.writeFileSync(a, 'model:\n  family: hybrid\n');
    fs.writeFileSync(b, 'model:\n  family: hybrid\n  tie_word_embeddings: false\n');
    const result = await json(a, b);
    expect(result).toMatchObject({ equal: true, sameModel: true, layers: [], tensors: [] });
    expect(result.config.keys).toMatchObject([
      {
        change: 'added',
        path: 'model.tie_word_embeddings',
        before: { value: false, isDefault: true },
        after: { value: false, line: 3 },
        isSameValue: true,
      },
    ]);
  });

  it('have tied tensors if tables are shared', async () => {
    const { tensors, layers } = await json('hybrid/original', 'hybrid/shared');
    const tied = tensors.find(({ changes }: { changes: string[] }) => changes.includes('tied'));
    expect(tied).toMatchObject({
      pattern: 'layers.{1–31}.srte.freqs',
      before: { sharedWith: null },
      after: { sharedWith: 'layers.0.srte.freqs' },
    });
    expect(layers.map(({ change, pattern }: Record<string, string>) => [change, pattern])).toEqual([
      ['added', 'shared_srte'],
      ['removed', 'layers.{0–31}.srte'],
    ]);
  });

  it('are compared after reading if their formats differ', async () => {
    const { config, prefix } = await json('fixtures/hf-configs/llama-3.1-8b', 'hybrid/original');
    expect(config.compared).toBe('read');
    expect(prefix).toEqual({ side: 'a', prefix: 'model.' });
  });
});

describe('two checkpoints', () => {
  it('differ in added, removed, reshaped and retyped tensors', async () => {
    const { tensors, equal, config, values } = await json(PAIR.a, PAIR.b);
    expect({ equal, config, values }).toEqual({ equal: false, config: null, values: null });
    const changes = tensors.map(({ pattern, changes: some }: Record<string, unknown>) => [
      pattern,
      some,
    ]);
    expect(changes).toEqual([
      ['layers.1.w', ['retyped']],
      ['old.w', ['removed']],
      ['new.w', ['added']],
      ['wide.w', ['reshaped']],
    ]);
  });

  it('have exact differences of values', async () => {
    const { values } = await json(PAIR.a, PAIR.b, '--values');
    // ‖(0, 0.5)‖ / ‖(3, 4)‖. A NaN equals a NaN.
    expect(values.tensors).toEqual([
      {
        name: 'layers.0.w',
        types: { before: 'F32', after: 'F32' },
        ...{ elements: 2, equal: 1, largest: 0.5, relativeError: 0.1, limit: 0 },
        verdict: 'different',
      },
      {
        name: 'layers.1.w',
        types: { before: 'F32', after: 'BF16' },
        ...{ elements: 2, equal: 2, largest: 0, relativeError: 0, limit: 2 ** -8 },
        verdict: 'equal',
      },
      {
        name: 'norm.w',
        types: { before: 'F32', after: 'F32' },
        ...{ elements: 2, equal: 2, largest: 0, relativeError: 0, limit: 0 },
        verdict: 'equal',
      },
    ]);
    expect(values.total).toMatchObject({ tensors: 3, equalTensors: 2, differentTensors: 1 });
    expect(values.components[0]).toMatchObject({ name: 'layers.*.w', tensors: 2, elements: 4 });
  });

  it('agree within the rounding of their types', async () => {
    const gguf = path.join(folder, 'llama.gguf');
    await runHere(['convert-checkpoint', 'fixtures/hf/llama', gguf, '--dtype', 'q8_0', '-q']);
    const { values, sameModel } = await json('fixtures/hf/llama', gguf, '--values');
    expect(values.total.differentTensors).toBe(0);
    expect(
      values.tensors.filter(({ verdict }: { verdict: string }) => verdict === 'rounding').length,
    ).toBe(16);
    expect(sameModel).not.toBeNull();
  });

  it('have the same types in any order of their files', async () => {
    const single = vector(1);
    const half = bfloat16(1, 2);
    const [one, other] = [
      weights('one.safetensors', { single, half }),
      weights('other.safetensors', { half, single }),
    ];
    const { stdout } = await diff(one, other, '--values');
    expect(stdout).toMatch(/^equal in structure and values$/m);
    expect(stdout).toMatch(/^ {2}size +8 B \(BF16, F32\)$/m);
  });

  it('give exit code 1 only with --check and --max-error', async () => {
    expect((await diff(PAIR.a, PAIR.b)).code).toBe(0);
    expect((await diff(PAIR.a, PAIR.b, '--check')).code).toBe(1);
    expect((await diff(PAIR.a, PAIR.a, '--values', '--check')).code).toBe(0);
    const { code, stderr } = await diff(PAIR.a, PAIR.b, '--max-error', '0.05');
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: 'error: relative error 10.0% exceeds --max-error 5.00%: layers.0.w\n',
    });
    expect((await diff(PAIR.a, PAIR.b, '--max-error', '10.1%')).code).toBe(0);
  });

  it('have one row per difference and tensor in CSV', async () => {
    const { stdout } = await diff(PAIR.a, PAIR.b, '--values', '--format', 'csv');
    const lines = stdout.trim().split('\n');
    expect(lines[0]).toBe(
      'section,change,name,count,before,after,line_before,line_after,elements,equal_elements,largest_difference,relative_error,limit',
    );
    expect(lines).toHaveLength(1 + 4 + 3);
    expect(lines.at(-3)).toBe('values,different,layers.0.w,1,F32,F32,,,2,1,0.5,0.1,0');
  });
});

it.each([
  [STATE_DICTS, PAIR.b],
  [PAIR.b, STATE_DICTS],
])('one --state-dict applies to the side that has state dicts: %s, %s', async (a, b) => {
  const [key] = (await diff(a, b)).stderr.match(/(?<=--state-dict )\S+/) ?? [];
  const { code, stdout } = await diff(a, b, '--state-dict', `${key}`, '--json');
  expect([code, JSON.parse(stdout).equal]).toEqual([0, false]);
});

describe('diff', () => {
  it.each([
    [
      ['hybrid/tiny', 'fixtures/hf/llama/model.safetensors'],
      /expected two configs or two checkpoints.*write minimind verify/s,
    ],
    [['hybrid/tiny', 'hybrid/original', '--values'], /--values: expected two checkpoints/],
    [['-', '-'], /standard input can be read only once/],
    [['hybrid/tiny', 'hybrid/tiny', '--state-dict', 'model'], /--state-dict requires a checkpoint/],
    [['hybrid/tiny', 'nothing.yaml'], /expected a config, a checkpoint or a preset/],
    [[PAIR.a, PAIR.b, '--state-dict', 'model'], /b\.safetensors has no state dicts to choose from/],
    [
      [STATE_DICTS, PAIR.b, '--state-dict', 'net_a', '--state-dict', 'model'],
      /b\.safetensors has no state dicts to choose from/,
    ],
  ])('refuses %j', async (args, message) => {
    const { code, stderr, stdout } = await diff(...args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(message);
  });
});

it('diff names tensors with unreadable values, and compares the others', async () => {
  const file = 'fixtures/gguf/types.gguf';
  const { code, stdout, stderr } = await runHere(['diff', file, file, '--values', '--check']);
  const { equal, values } = await json(file, file, '--values');
  const skipped = values.skipped.map(({ name }: { name: string }) => name);
  expect(skipped).toContain('blk.0.iq4_nl.weight');
  expect([code, equal, values.total.equalTensors]).toEqual([1, false, values.total.tensors]);
  expect(values.total.tensors).toBeGreaterThan(10);
  expect(stdout).toContain(`${skipped.length} skipped`);
  expect(stderr).toContain('values were not compared, because a type cannot be read');
  const csv = (await diff(file, file, '--values', '--format', 'csv')).stdout;
  expect(csv).toContain('values,skipped,blk.0.iq4_nl.weight,1,IQ4_NL,IQ4_NL');
});
