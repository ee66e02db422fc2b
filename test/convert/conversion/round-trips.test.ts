/** Chains of conversions that must end with the tensors of the beginning. */
import fs from 'node:fs';
import path from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { inPackage } from '../../fixtures.js';
import { convertTo, digestOf, digests, type Flags, numbersOf } from './convert.js';
import { layersOf, type Made, made, raw, safetensorsFile, torchFile } from './files.js';

/** Converts each output again, and returns the last. */
async function chain(input: string, ...steps: readonly (readonly [string, Flags])[]) {
  let file = input;
  for (const [name, flags] of steps) ({ file } = await convertTo(name, file, flags));
  return file;
}

const NONE = new Float64Array();
const largestDifference = (a: Float64Array, b: Float64Array) =>
  a.reduce((most, value, at) => Math.max(most, Math.abs(value - (b[at] ?? Number.NaN))), 0);

const table = made([1, 6, 4], (index) => Math.cos(index));
/** Three layers with equal tables, each stored separately. */
const EQUAL_TABLES = {
  'embed_tokens.weight': made([5, 4], (index) => index / 3),
  'layers.0.srte.freqs': table,
  'layers.0.ln.weight': made([4], () => 1),
  'layers.1.srte.freqs': { ...table },
  'layers.2.srte.freqs': { ...table },
  'lm_head.weight': made([5, 4], (index) => -index),
};

/** Odd tensors of a state dict: scalars, integers, empty tensors, special names. */
const ODD = {
  ...layersOf(2, [4, 4]),
  scalar: made([], [1.5]),
  'bn.num_batches_tracked': raw('I64', [], [7, 0, 0, 0, 0, 0, 0, 0]),
  position_ids: raw('I32', [1, 2], [0, 0, 0, 0, 1, 0, 0, 0]),
  mask: raw('BOOL', [3], [1, 0, 1]),
  empty: made([0, 3], []),
  bytes: raw('U8', [2, 2], [1, 2, 3, 255]),
  wide: made([3], [Math.PI, -0, 5e-324], 'F64'),
  half: made([2], [1, 6e-8], 'F16'),
  ['__proto__']: made([1], [3]),
  constructor: made([1], [4]),
  '0': made([1], [5]),
} satisfies Record<string, Made>;

describe('a conversion to shared and back', () => {
  it.each(['out.pt', 'out.safetensors', 'out'])(
    'keeps equal tables of all layers, in %s',
    async (out) => {
      const input = await torchFile(EQUAL_TABLES);
      const back = await chain(
        input,
        [out, { layout: 'shared' }],
        ['back.pt', { layout: 'per-layer' }],
      );
      expect(digests(back)).toEqual(digests(input));
    },
  );

  it.each(['F64', 'F32', 'F16', 'BF16'] as const)(
    'keeps the table of one layer bit for bit, as %s',
    async (dtype) => {
      const input = await torchFile(layersOf(3, [5, 4], dtype));
      for (const layer of [0, 1, 2]) {
        const { file } = await convertTo('out', input, { layout: 'shared', merge: { layer } });
        const back = await chain(file, ['back.pt', { layout: 'per-layer' }]);
        const expected = digestOf(input, `layers.${layer}.srte.freqs`);
        expect(digestOf(file, 'shared_srte.freqs')).toBe(expected);
        for (const each of [0, 1, 2]) {
          expect(digestOf(back, `layers.${each}.srte.freqs`)).toBe(expected);
        }
      }
    },
  );

  it('keeps a pair unchanged, and multiplies it out', async () => {
    const pair = await chain(await torchFile(layersOf(3, [12, 8])), [
      'a.pt',
      { layout: 'low-rank', rank: 3 },
    ]);
    const shared = digestOf(pair, 'shared_srte.lowrank');
    // First as pairs of layers, then as their table, which has rank 3 and so gives the same pair.
    const layers = await chain(pair, ['b.pt', { layout: 'per-layer', rank: 3 }]);
    for (const layer of [0, 1, 2]) {
      expect(digestOf(layers, `layers.${layer}.srte.lowrank`)).toBe(shared);
    }
    const full = await chain(pair, ['c', { layout: 'per-layer' }]);
    const again = await chain(
      full,
      ['d', { layout: 'low-rank', rank: 3 }],
      ['e.pt', { layout: 'shared' }],
    );
    const [before, after] = [full, again].map((file) => numbersOf(file, 'layers.0.srte.freqs'));
    expect(largestDifference(before ?? NONE, after ?? NONE)).toBeLessThan(1e-6);
  });

  it('computes sines and cosines of a table in float32', async () => {
    const input = await torchFile(layersOf(2, [5, 8]));
    const sincos = await chain(input, ['a.pt', { layout: 'sincos' }]);
    const full = await chain(sincos, ['b.pt', { layout: 'shared', maxPositions: 3000 }]);
    const values = numbersOf(full, 'shared_srte.freqs');
    const frequencies = numbersOf(sincos, 'shared_srte.inv_freq');
    for (const row of [0, 1, 2, 2999]) {
      for (const [j, frequency] of frequencies.entries()) {
        const angle = Math.fround(row * frequency);
        expect(values[row * 8 + 2 * j]).toBe(Math.fround(Math.sin(angle)));
        expect(values[row * 8 + 2 * j + 1]).toBe(Math.fround(Math.cos(angle)));
      }
    }
    const back = await chain(full, ['c', { layout: 'sincos' }]);
    expect(digestOf(back, 'shared_srte.inv_freq')).toBe(digestOf(sincos, 'shared_srte.inv_freq'));
  });
});

describe('rows', () => {
  const input = torchFile({
    'layers.0.srte.freqs': made([1, 3, 2], [1, 2, 3, 4, 5, 6]),
    'layers.1.srte.freqs': made([1, 3, 2], [3, 4, 5, 6, 7, 8]),
  });
  it.each([
    [1, undefined, [2, 3]],
    [2, undefined, [2, 3, 4, 5]],
    [5, 'repeat', [2, 3, 4, 5, 6, 7, 2, 3, 4, 5]],
    [7, 'repeat', [2, 3, 4, 5, 6, 7, 2, 3, 4, 5, 6, 7, 2, 3]],
    [4, 'zero', [2, 3, 4, 5, 6, 7, 0, 0]],
  ] as const)('become %i, extended with %s', async (rows, extend, expected) => {
    const flags = { maxPositions: rows, extend, layout: 'shared' } as const;
    const { file } = await convertTo('out.pt', await input, flags);
    expect([...numbersOf(file, 'shared_srte.freqs')]).toEqual(expected);
  });
});

describe('dtypes', () => {
  // Values as rounded by PyTorch 1.13 to bfloat16 and float16.
  const ROUNDED = [
    [1.00390625, 1, 1.00390625],
    [1.01171875, 1.015625, 1.01171875],
    [3.1415927410125732, 3.140625, 3.140625],
    [-0, -0, -0],
    [65504, 65536, 65504],
    [65519.99609375, 65536, 65504],
    [1e-40, 9.183549615799121e-41, 0],
    [2 ** -24, 2 ** -24, 2 ** -24],
    [2 ** -25, 2 ** -25, 0],
  ] as const;
  const input = torchFile({
    x: made(
      [ROUNDED.length],
      ROUNDED.map(([value]) => value),
    ),
  });

  it.each([
    ['BF16', 1],
    ['F16', 2],
  ] as const)('are rounded like PyTorch, to %s', async (dtype, column) => {
    const { file } = await convertTo('out', await input, { dtype });
    expect([...numbersOf(file, 'x')]).toEqual(ROUNDED.map((row) => row[column]));
  });

  it('change for floats, not for integers and buffers', async () => {
    const tensors = { ...ODD, 'layers.0.attention.rope.inv_freq': made([2], [1, 0.1]) };
    const input = await torchFile(tensors);
    const cast = digests((await convertTo('out.pt', input, { dtype: 'BF16' })).file);
    for (const [name, { dtype }] of Object.entries(tensors)) {
      const stays = !dtype.startsWith('F') || name.endsWith('inv_freq');
      expect(cast[name]?.startsWith(stays ? dtype : 'BF16')).toBe(true);
    }
  });
});

describe('containers', () => {
  const folder = { container: 'safetensors', shardSize: 100 } as const;

  it.each([
    ['tables', EQUAL_TABLES],
    ['odd tensors', ODD],
    ['a tensor with two names', { a: table, b: table, c: { ...table } }],
  ])('have the same tensors after a chain: %s', async (_, tensors) => {
    const input = await torchFile(tensors);
    const back = await chain(
      input,
      ['a.safetensors', { container: 'safetensors' }],
      ['b.pt', { container: 'pt' }],
      ['c', folder],
      ['d.pt', { container: 'pt' }],
    );
    expect(digests(back)).toEqual(digests(input));
  });

  it.each([
    'legacy_proto4.pth',
    'legacy_shapes_dtypes.pth',
    'zip_big_endian.pt',
    'nested_train_proto4.pt',
    'zip_odd_names.pt',
    'zip_shapes_dtypes.pt',
    'st_nan_inf.safetensors',
    'st_zero_size.safetensors',
  ])('keep every tensor of %s', async (name) => {
    const input = inPackage('fixtures/checkpoints/valid', name);
    const zip = await chain(input, ['a.pt', { container: 'pt' }]);
    expect(digests(zip)).toEqual(digests(input));
  });

  it('have the number of shards for their size', async () => {
    const { file, output } = await convertTo('out', await torchFile(ODD), folder);
    expect(output.files.length).toBeGreaterThan(3);
    expect(fs.readdirSync(file).sort()).toEqual(output.files.map(({ name }) => name).sort());
    for (const { name, bytes } of output.files) {
      expect(fs.statSync(path.join(file, name)).size).toBe(bytes);
    }
  });
});

const anyCheckpoint = fc.record({
  layers: fc.integer({ min: 1, max: 4 }),
  rows: fc.integer({ min: 1, max: 9 }),
  columns: fc.constantFrom(2, 4, 6),
  dtype: fc.constantFrom('F32', 'F16', 'BF16', 'F64'),
  prefix: fc.constantFrom('', 'module.', 'model.', 'module._orig_mod.', 'module.model.'),
  isZip: fc.boolean(),
});
const anyFlags = fc.record({
  layout: fc.constantFrom('shared', 'low-rank', 'per-layer', 'sincos'),
  rank: fc.constantFrom(undefined, 1),
  maxPositions: fc.constantFrom(undefined, 1, 12),
  extend: fc.constantFrom('repeat', 'zero'),
  dtype: fc.constantFrom(undefined, 'F32', 'BF16'),
});

describe('any checkpoint', () => {
  it('is converted as planned, without other changes', () =>
    fc.assert(
      fc.asyncProperty(
        anyCheckpoint,
        anyFlags,
        fc.constantFrom('out', 'out.pt', 'out.safetensors'),
        async ({ layers, rows, columns, dtype, prefix, isZip }, request, out) => {
          const tensors = Object.entries(layersOf(layers, [rows, columns], dtype as 'F32')).map(
            ([name, tensor]): [string, Made] => [prefix + name, tensor],
          );
          const input = await (isZip ? torchFile : safetensorsFile)(new Map(tensors));
          const isPair = request.layout === 'low-rank' || request.layout === 'per-layer';
          const { maxPositions: positions, extend, ...others } = request;
          const flags = {
            ...others,
            rank: isPair ? 1 : undefined,
            ...(positions !== undefined && { maxPositions: positions, extend }),
          } as Flags;
          const { file, ...result } = await convertTo(out, input, flags);
          const written = digests(file);
          const planned = result.tensors.flatMap(({ name, aliases, dtype: type, shape }) =>
            [name, ...aliases].map((each) => [each, `${type} [${shape}]`] as const),
          );
          expect(Object.keys(written)).toEqual(planned.map(([name]) => name).sort());
          for (const [name, size] of planned) expect(written[name]).toContain(size);
          const kept = prefix.replace('module.', '').replace('_orig_mod.', '');
          if (request.dtype === undefined) {
            expect(written[`${kept}embed.weight`]).toBe(digestOf(input, `${prefix}embed.weight`));
          }
          for (const { name, bytes } of result.output.files) {
            const target =
              result.output.files.length === 1 && out !== 'out' ? file : path.join(file, name);
            expect(fs.statSync(target).size).toBe(bytes);
          }
        },
      ),
      { numRuns: 60 },
    ));
});
