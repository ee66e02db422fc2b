/** Tests sweeps in parts with arbitrary values, numbers of parts and orders, and with two runners at once. */
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';

import { UserError } from '../../../src/base/errors.js';
import type { Sweep } from '../../../src/base/sweep.js';
import { equalRanges } from '../../../src/scale/equal-shares.js';
import { exactJson, fromExactJson } from '../../../src/scale/sweeps/exact-json.js';
import { SweepParts } from '../../../src/scale/sweeps/sweep.js';
import { folderOf } from '../../checkpoint/temp-folder.js';

const ODD = [
  ...[0, -0, 0.1 + 0.2, 5e-324, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY],
  ...[2n ** 70n, -1n, null, undefined, '', '\u2028\u2029\r\n"\\', true],
  ...[[], [undefined, [Number.NaN]], {}, { $: 'number', value: 1 }, { a: { $: undefined } }],
  new Map([
    ['__proto__', Number.NaN],
    ['$', -0],
  ]),
  JSON.parse('{"__proto__": {"x": 1}}'),
];

describe('exactJson', () => {
  it.each(ODD.map((value, index) => [index, value]))('restores value %i', (_, value) => {
    const text = exactJson({ value });
    expect(text.split(/[\n\r\u2028\u2029]/)).toHaveLength(1);
    expect(fromExactJson(text)).toStrictEqual({ value });
  });
});

describe('equalRanges', () => {
  it('gives each unit to one range, in order, with costs within one unit of the mean', () => {
    for (const count of [1, 2, 3, 7, 64]) {
      const costs = Array.from({ length: 41 }, (_, unit) => 1 + ((unit * 7919) % 13));
      const parts = equalRanges(costs, count);
      const units = parts.flatMap(({ first, end }) =>
        Array.from({ length: end - first }, (_, index) => first + index),
      );
      expect(units).toEqual([...costs.keys()]);
      const mean = parts.reduce((sum, { cost }) => sum + cost, 0) / count;
      for (const { cost } of parts) expect(Math.abs(cost - mean)).toBeLessThanOrEqual(13);
    }
  });
});

describe('equalRanges without costs', () => {
  it('gives all units to ranges', () => {
    const parts = equalRanges([0, 0, 0, 0], 2);
    expect(parts.map(({ first, end }) => [first, end])).toEqual([
      [0, 2],
      [2, 4],
    ]);
  });
});

type Odd = Sweep<unknown, string, string>;

/** A sweep over the odd values, whose fold depends on their order. */
const sweepOf = (count: number, changes: Partial<Odd> = {}): Odd => ({
  units: { name: 'values', count, costs: () => Array(count).fill(1), identity: () => count },
  memoryBytes: () => 1e6,
  backend: {
    here: async () => 'same',
    flags: () => ({}),
    isBackend: (value): value is string => typeof value === 'string',
  },
  compute: async (unit) => ({ unit, value: ODD[unit % ODD.length] }),
  async fold(value, backend) {
    const all: unknown[] = [backend];
    for (let unit = 0; unit < count; unit++) all.push(await value(unit));
    return exactJson(all);
  },
  ...changes,
});

const VERSION = '1.2.3';
const FAST = { times: { beat: 20, stale: 200 }, poll: 5 };

async function planned(sweep: Odd, parts: number, file = path.join(folderOf({}), 'sweep.json')) {
  const request = {
    command: 'compare',
    arguments: [],
    version: VERSION,
    parts,
    force: false,
    presets: '/none',
  };
  await SweepParts.make(file, sweep, await sweep.backend.here(), request);
  return SweepParts.open(file, VERSION, 'compare');
}

/** Pseudo-random order from a seed. */
const shuffled = (count: number, seed: number) =>
  Array.from({ length: count }, (_, index) => index + 1).toSorted(
    (a, b) => ((a * 7919 + seed * 104_729) % 1009) - ((b * 7919 + seed * 104_729) % 1009) || a - b,
  );

describe('a sweep in parts', () => {
  it.each([1, 2, 3, 5, 8, 13, 33, 64])('of %i gives the answer of a single run', async (count) => {
    const sweep = sweepOf(45);
    const single = await sweep.fold(sweep.compute, 'same');
    const parts = await planned(sweep, count);
    for (const part of shuffled(count, count)) {
      // Two runners at once, and a third afterwards.
      const [one, other] = await Promise.all([1, 2].map(() => parts.run(sweep, [part], FAST)));
      expect((one?.ran?.unitsThere ?? 0) + (other?.ran?.unitsThere ?? 0)).toBe(one?.ran?.units);
      const again = await parts.run(sweep, [part], FAST);
      expect(again.ran?.unitsThere).toBe(again.ran?.units);
    }
    expect(parts.missing).toEqual([]);
    expect(await parts.finish(sweep)).toBe(single);
    expect(parts.answer('status')).toMatchObject({ doneUnits: 45, missing: [], array: '' });
  });

  it('ends with the error of the same unit as a single run', async () => {
    const compute = async (unit: number) => {
      if (unit % 4 === 3) {
        throw new UserError('usage', `unit ${unit} is wrong`, { suggestion: 'take another' });
      }
      return unit;
    };
    const sweep = sweepOf(9, { compute });
    const parts = await planned(sweep, 3);
    for (const part of [3, 1, 2]) await parts.run(sweep, [part], FAST);
    await expect(parts.finish(sweep)).rejects.toMatchObject({
      ...{ code: 'usage', message: 'unit 3 is wrong', suggestion: 'take another' },
    });
  });

  it('writes no results of a part whose machine fails', async () => {
    const sweep = sweepOf(6);
    const parts = await planned(sweep, 2);
    const compute = async (unit: number) => {
      if (unit === 4) throw new UserError('system', 'disk full');
      return sweep.compute(unit);
    };
    await expect(parts.run({ ...sweep, compute }, [2], FAST)).rejects.toThrow('disk full');
    const { results } = parts.answer('status');
    expect(fs.readdirSync(results)).toEqual([]);
    expect(parts.missing).toEqual([1, 2]);
  });

  it('refuses another engine or other units', async () => {
    const sweep = sweepOf(6);
    const parts = await planned(sweep, 2);
    const backend = { ...sweep.backend, here: async () => 'other' };
    await expect(parts.run({ ...sweep, backend }, [1], FAST)).rejects.toThrow('the plan computes');
    await expect(parts.run(sweepOf(7), [1], FAST)).rejects.toThrow('values are not those of the');
    await expect(parts.finish(sweepOf(7))).rejects.toThrow('values are not those of the plan');
  });

  const line = (text: string, number: number) => text.split('\n')[number] ?? '';
  it.each<[string, (text: string) => string, string]>([
    ['an empty file', () => '', 'the file was cut'],
    ['a cut line', (text) => text.slice(0, -40), 'is not JSON: the file was cut or changed'],
    ['no end', (text) => text.split('\n').slice(0, -2).join('\n'), 'expected an end after line 4'],
    ['a garbled line', (text) => text.replace('"unit":1', '"unit":#'), 'line 3 is not JSON'],
    [
      'a unit twice',
      (text) => text.replace(line(text, 2), line(text, 1)),
      'line 3: expected the result of unit 1, found that of unit 0',
    ],
    [
      'a missing unit',
      (text) => text.replace(`${line(text, 2)}\n`, ''),
      'line 3: expected the result of unit 1, found that of unit 2',
    ],
    [
      'a line that is not of a unit',
      (text) => text.replace(line(text, 2), 'null'),
      'line 3: expected the result of unit 1, found another line',
    ],
    [
      'an error without a code',
      (text) => text.replace(line(text, 2), '{"unit":1,"error":{"message":"x"}}'),
      'line 3: expected the result of unit 1, found that of unit 1',
    ],
    ['another value', (text) => text.replace('0.30000000000000004', '0.4'), 'were changed'],
    ['lines after the end', (text) => `${text}${text}`, 'expected the end of the file'],
    ['another plan', (text) => text.replace(/"plan":"./, '"plan":"x'), 'results of another plan'],
    ['another part', (text) => text.replace('"part":1', '"part":2'), 'the results of part 2'],
  ])('refuses %s, and writes the part again', async (_, change, message) => {
    const sweep = sweepOf(6);
    const parts = await planned(sweep, 2);
    for (const part of [1, 2]) await parts.run(sweep, [part], FAST);
    const file = path.join(parts.answer('status').results, 'part-1.jsonl');
    const text = fs.readFileSync(file, 'utf8');
    fs.writeFileSync(file, change(text));
    await expect(parts.finish(sweep)).rejects.toMatchObject({
      code: 'refused-file',
      message: expect.stringContaining(message),
      suggestion: 'run the part again: --part 1',
    });
    expect((await parts.run(sweep, [1], FAST)).ran).toMatchObject({ units: 3, unitsThere: 0 });
    expect(await parts.finish(sweep)).toBe(await sweep.fold(sweep.compute, 'same'));
  });

  it('names all parts with broken or swapped results', async () => {
    const sweep = sweepOf(9);
    const parts = await planned(sweep, 4);
    for (const part of [1, 2, 3, 4]) await parts.run(sweep, [part], FAST);
    const file = (part: number) => path.join(parts.answer('status').results, `part-${part}.jsonl`);
    fs.renameSync(file(2), file(9));
    fs.renameSync(file(3), file(2));
    fs.renameSync(file(9), file(3));
    fs.writeFileSync(file(4), fs.readFileSync(file(4), 'utf8').slice(0, 200));
    await expect(parts.finish(sweep)).rejects.toMatchObject({
      code: 'refused-file',
      message: 'the results of 3 parts cannot be used',
      suggestion: 'run these parts again: --array=2-4',
      problems: [
        { file: file(2), message: 'these are the results of part 3' },
        { file: file(3), message: 'these are the results of part 2' },
        { file: file(4), message: expect.stringContaining('the file was cut') },
      ],
    });
    for (const part of [2, 3, 4]) {
      expect((await parts.run(sweep, [part], FAST)).ran?.unitsThere).toBe(0);
    }
    expect(await parts.finish(sweep)).toBe(await sweep.fold(sweep.compute, 'same'));
  });

  it('refuses results of another plan, and writes the part again', async () => {
    const [one, other] = [sweepOf(6), sweepOf(6, { compute: async () => 'other' })];
    const parts = await planned(one, 2);
    const more = sweepOf(6, { memoryBytes: () => 2e6 });
    const others = await planned({ ...other, memoryBytes: more.memoryBytes }, 2);
    for (const part of [1, 2]) {
      await parts.run(one, [part], FAST);
      await others.run(other, [part], FAST);
    }
    const [own, foreign] = [parts, others].map((each) => each.answer('status').results);
    fs.cpSync(foreign ?? '', own ?? '', { recursive: true });
    await expect(parts.finish(one)).rejects.toMatchObject({
      problems: Array(2).fill(
        expect.objectContaining({ message: expect.stringContaining('another plan') }),
      ),
    });
    await parts.run(one, [1], FAST);
    await parts.run(one, [2], FAST);
    expect(await parts.finish(one)).toBe(await one.fold(one.compute, 'same'));
  });
});
