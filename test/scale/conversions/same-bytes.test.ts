/** The files of a conversion in parts are those of a single run, bit for bit, for any number of parts. */
import fs from 'node:fs';
import path from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { entry, older } from '../../checkpoint/gguf/imatrix-files.js';
import { fileIn, folderOf } from '../../checkpoint/temp-folder.js';
import { convert, type Flags } from '../../convert/conversion/convert.js';
import { inPackage } from '../../fixtures.js';
import { isWhole, sampled } from '../../sampled.js';
import { finish, hashes, plan, run } from './parts.js';

const OLD = inPackage('fixtures/old-checkpoint/trained-same-start/checkpoint_step_30.pt');
const LLAMA = inPackage('fixtures/hf/llama');
const HYBRID = inPackage('fixtures/hybrid/shared-lowrank-tied');
const DCP = inPackage('fixtures/distributed/world2-nested');
const ZERO = inPackage('fixtures/distributed/zero3-world3');
const IMATRIX = fileIn(
  'm.dat',
  older([
    entry(
      'blk.0.attn_q.weight',
      3,
      Array(32)
        .fill(0)
        .map((_, at) => at % 5),
    ),
  ]),
);
const byName: Flags = { noConfig: true };
const shards: Flags = { shardSize: 15e3 };

/** Every kind of conversion, into shards if the container supports them. */
const CONVERSIONS: Record<string, readonly [input: string, out: string, flags: Flags]> = {
  copied: [OLD, 'out', { ...byName, ...shards, container: 'safetensors' }],
  cast: [LLAMA, 'out', { ...shards, dtype: 'BF16' }],
  'cast and saturated': [LLAMA, 'out', { ...shards, dtype: 'F16', saturate: true }],
  tied: [LLAMA, 'out', { ...shards, tie: 'mean' }],
  int8: [LLAMA, 'out', { ...shards, quantize: 8 }],
  int4: [LLAMA, 'out', { ...shards, quantize: 4, group: 32 }],
  'mean of tables': [OLD, 'out', { ...byName, ...shards, layout: 'shared' }],
  'table of a layer': [OLD, 'out', { ...byName, ...shards, layout: 'shared', merge: { layer: 1 } }],
  'pair of all layers': [OLD, 'out', { ...byName, ...shards, layout: 'low-rank', rank: 3 }],
  'pair for an error': [OLD, 'out', { ...byName, ...shards, layout: 'low-rank', maxError: 0.5 }],
  'pair of each layer': [OLD, 'out', { ...byName, ...shards, layout: 'per-layer', rank: 3 }],
  'cut rows': [OLD, 'out', { ...byName, ...shards, maxPositions: 20 }],
  'more rows': [
    OLD,
    'out',
    { ...byName, ...shards, layout: 'shared', maxPositions: 99, extend: 'repeat' },
  ],
  sincos: [HYBRID, 'out', { ...shards, layout: 'sincos' }],
  'multiplied out': [HYBRID, 'out', { ...shards, layout: 'per-layer', dtype: 'BF16' }],
  'PyTorch file': [OLD, 'out.pt', { ...byName, layout: 'shared' }],
  'safetensors file': [OLD, 'out.safetensors', { ...byName, layout: 'low-rank', rank: 2 }],
  'distributed checkpoint': [DCP, 'out', { ...byName, shardSize: 300, dtype: 'BF16' }],
  'ZeRO checkpoint': [ZERO, 'out', { ...byName, shardSize: 300, dtype: 'BF16' }],
  GGUF: [LLAMA, 'out.gguf', { dtype: 'q8_0' }],
  'GGUF of a mixture': [LLAMA, 'out.gguf', { dtype: 'q4_k_m', imatrix: IMATRIX }],
};

const NUMBERS = isWhole ? [1, 2, 3, 7, 64] : [3];

/** Conversions in a single run, each done once. */
const singles = new Map<string, ReturnType<typeof convertSingle>>();

function single(name: string) {
  const made = singles.get(name) ?? convertSingle(name);
  singles.set(name, made);
  return made;
}

async function convertSingle(name: string) {
  const [input, out, flags] = CONVERSIONS[name] ?? expect.unreachable();
  const target = path.join(folderOf({}), out);
  const result = await convert(input, target, flags);
  return { result, hashes: hashes(target) };
}

/** Runs the parts in any order, and the finish. */
async function inParts(
  [input, out, flags]: (typeof CONVERSIONS)[string],
  parts: number,
  blockRows: number | undefined,
  order: (parts: number[]) => number[],
) {
  const target = path.join(folderOf({}), out);
  const planned = await plan(input, target, flags, parts, blockRows);
  const numbers = planned.plan.parts.map(({ part }) => part);
  for (const part of order(numbers)) await run(planned, part);
  const result = await finish(planned, true);
  return { planned, target, result };
}

describe('a conversion in parts', () => {
  it.each(sampled(Object.entries(CONVERSIONS), 3))(
    'writes the files of a single run: %s',
    async (name, each) => {
      const expected = await single(name);
      const { schema, srte, quantization, tie, gguf } = expected.result;
      for (const parts of NUMBERS) {
        const { target, result } = await inParts(each, parts, undefined, (all) => all.reverse());
        expect(hashes(target)).toEqual(expected.hashes);
        expect(result).toMatchObject({ schema, srte, quantization, tie, gguf });
        const left = fs.readdirSync(path.dirname(target));
        expect(left.filter((name) => !/^out|^\.out.*\.parts-/.test(name))).toEqual([]);
      }
    },
  );

  it('splits tables into rows with the same bits', async () => {
    const names = ['mean of tables', 'more rows', 'multiplied out', 'sincos', 'cast'];
    for (const name of sampled(names, 2)) {
      const each = CONVERSIONS[name] ?? expect.unreachable();
      const expected = await single(name);
      const { srte } = expected.result;
      for (const parts of isWhole ? [1, 2, 7, 64] : [7]) {
        const { target, planned, result } = await inParts(each, parts, 4, (all) => all);
        const slices = planned.plan.parts.flatMap((part) => part.slices);
        if (name === 'mean of tables' && parts > 1) expect(slices.length).toBe(Math.min(parts, 12));
        expect(hashes(target)).toEqual(expected.hashes);
        if (srte !== null && 'srte' in result) {
          expect(result.srte?.relativeError ?? 0).toBeCloseTo(srte.relativeError ?? 0, 12);
        }
      }
    }
  });

  it('has a pair that does not depend on the number of parts', async () => {
    const each = CONVERSIONS['pair of all layers'] ?? expect.unreachable();
    const seen = new Set<string>();
    for (const parts of sampled([1, 2, 5, 64], 3)) {
      const { target } = await inParts(each, parts, 8, (all) => all.reverse());
      seen.add(JSON.stringify(hashes(target)));
    }
    expect(seen.size).toBe(1);
  });

  it('writes the same files for any number of parts to 64, any order and any size of blocks', async () => {
    const names = ['mean of tables', 'int4', 'tied', 'pair of each layer'];
    const known = new Map<string, string>();
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...names),
        fc.integer({ min: 1, max: 64 }),
        fc.constantFrom(4, 12, 48, undefined),
        fc.integer(),
        async (name, parts, blockRows, seed) => {
          const each = CONVERSIONS[name] ?? expect.unreachable();
          const isPair = name === 'pair of each layer';
          const order = (all: number[]) =>
            all.toSorted((a, b) => Math.sin(a * seed) - Math.sin(b * seed));
          const { target } = await inParts(each, parts, isPair ? undefined : blockRows, order);
          const written = JSON.stringify(hashes(target));
          known.set(name, known.get(name) ?? written);
          expect(written).toBe(known.get(name));
        },
      ),
      { numRuns: isWhole ? 100 : 4 },
    );
  });
});
