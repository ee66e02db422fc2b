import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { runHere } from '../run-here.js';

/** A folder without a model. */
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-all-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));

const asked = (...flags: string[]) => runHere(['fit', ...flags], { cwd: folder });

describe('fit with a GPU and without a model', () => {
  it('shows the largest published model for each use, which then fits', async () => {
    const { code, stdout, stderr } = await asked('--gpu', 'rtx-4090', '--json');
    expect(code, stderr).toBe(0);
    const { schema, uses } = JSON.parse(stdout);
    expect(schema).toBe('minimind/fit-models@1');
    const names = uses.map(({ use, dtype }: { use: string; dtype?: string }) => dtype ?? use);
    for (const name of ['bf16', 'int8', 'int4', 'lora', 'qlora', 'train']) {
      expect(names).toContain(name);
    }
    for (const { use, dtype, models } of uses) {
      const parameters = models.map((each: { parameters: number }) => each.parameters);
      expect(parameters).toEqual(parameters.toSorted((a: number, b: number) => b - a));
      const purpose = { serve: 'serving', lora: 'lora', qlora: 'qlora', train: 'training' }[
        use as 'serve'
      ];
      const [{ preset, memoryBytes, isAsPublished }] = models;
      const words = ['fit', preset, '--gpu', 'rtx-4090', '--for', purpose, '--check', '--json'];
      const detail = await runHere([
        ...words,
        ...(dtype && !isAsPublished ? ['--dtype', dtype] : []),
      ]);
      expect(detail.code, `${words.join(' ')} ${detail.stderr}`).toBe(0);
      if (use !== 'serve') continue;
      const { serving } = JSON.parse(detail.stdout);
      expect(serving.fit.total.expected.value).toBe(memoryBytes);
    }
  }, 120_000);

  it('lists models that generate text, the largest of each series first, and the first one fits', async () => {
    const { stdout } = await asked('--gpu', 'rtx-4060');
    expect(stdout).toMatch(/^model +parameters +type +longest context +tokens\/s +memory$/m);
    expect(stdout).not.toMatch(/flan|siglip|bert/);
    const rows = [
      ...stdout.matchAll(/^\S+ +([\d.]+)B +\S+ +[\d,]+ +([\d.]+) +[\d.]+ GB of 8\.3 GB$/gm),
    ];
    expect(rows.length).toBe(12);
    const sizes = rows.map(([, size]) => Number(size));
    expect(sizes).toEqual(sizes.toSorted((a, b) => b - a));
    expect(rows.every(([, , speed]) => Number(speed) >= 10)).toBe(true);
    const [, next = ''] = /^Next: minimind (.*?)(?: {2,}.*)?$/m.exec(stdout) ?? [];
    const { code, stderr } = await runHere([...next.split(' '), '--check']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  }, 120_000);

  it('says why where no model can be asked', async () => {
    const { code, stderr } = await asked('--gpu', 'rtx-4060', '--context', '10000000');
    expect(code).toBe(2);
    expect(stderr).toMatch(
      /no published model can be asked so; .* 10,000,000 tokens are more than/,
    );
  });

  it.each([
    ['a card and system memory', ['--gpu', 'rtx-4060', '--ram', '32GB']],
    ['a processor', ['--gpu', 'cpu', '--ram', '32GB']],
  ])(
    'lists models for %s',
    async (_, flags) => {
      const { stdout, code } = await asked(...flags);
      expect(code).toBe(0);
      expect(stdout).toMatch(/^[\w.-]+ +[\d.]+B +\S+ +(?:[\d,]+|–) +[\d.]+ +[\d.]+ GB/m);
      const [, next = ''] = /^Next: minimind (.*?)(?: {2,}.*)?$/m.exec(stdout) ?? [];
      expect((await runHere([...next.split(' '), '--check'])).code).toBe(0);
    },
    240_000,
  );

  it('proposes a line that runs', async () => {
    const { stdout } = await asked('--gpu', 't4', '--for', 'lora');
    const [, next = ''] = /^Next: minimind (.*?)(?: {2,}.*)?$/m.exec(stdout) ?? [];
    expect(next).toMatch(/^fit \S+ --gpu t4/);
    expect((await runHere(next.split(' '))).code).toBe(0);
  }, 60_000);

  it.each([
    ['a question about one model', ['--gpu', 'l4', '--qps', '10'], 'expected a model, found none'],
    [
      'a context that no model has',
      ['--gpu', 't4', '--for', 'lora', '--context', '99M'],
      'positions',
    ],
  ])(
    'refuses %s',
    async (_, flags, message) => {
      const { code, stderr } = await asked(...flags);
      expect(code).toBe(2);
      expect(stderr).toContain(message);
    },
    60_000,
  );
});
