/** Interrupted conversions, and the next run with their files. */
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import type { UserError } from '../../../src/base/errors.js';
import { systemError } from '../../base/files/faults.js';
import { folderOf } from '../../checkpoint/temp-folder.js';
import { inPackage } from '../../fixtures.js';
import { watchOperations } from '../../kill/operations.js';
import { convert, digests, type Flags, textOf } from './convert.js';

const inFixtures = (name: string) =>
  inPackage(`fixtures/old-checkpoint/${name}/checkpoint_step_30.pt`);
const CHECKPOINT = inFixtures('trained-same-start');
const OTHER = inFixtures('trained-random-start');

const SHARED: Flags = { layout: 'shared', shardSize: 15e3 };
const LOW_RANK: Flags = { layout: 'low-rank', rank: 3, shardSize: 15e3 };

/** Copy of the input, with the paths of its output and of its unfinished files. */
function prepared(files: Readonly<Record<string, string>> = {}) {
  const folder = folderOf({ 'in/old.pt': fs.readFileSync(CHECKPOINT), ...files });
  const at = (...names: string[]) => path.join(folder, ...names);
  const staged = (name: string) => inodesIn(at('.out.minimind', name));
  return { folder, at, input: at('in/old.pt'), out: at('out'), staged };
}

/** Inodes of complete files, which change if a file is written again. Empty without the folder. */
function inodesIn(folder: string): Record<string, bigint> {
  const all = fs.existsSync(folder) ? fs.readdirSync(folder).sort() : [];
  const names = all.filter((name) => !name.endsWith('.tmp'));
  return Object.fromEntries(
    names.map((name) => [name, fs.statSync(path.join(folder, name), { bigint: true }).ino]),
  );
}

/** Calls `act` before each write while `isTime`. */
async function atWrites<T>(isTime: () => boolean, act: () => void, run: () => Promise<T>) {
  const restore = await watchOperations({
    before: (operation) => {
      if (operation === 'write' && isTime()) act();
    },
  });
  try {
    return await run();
  } finally {
    restore();
  }
}

/** Error of a conversion for which the disk is full while `isTime`. */
function interrupted(isTime: () => boolean, run: () => Promise<unknown>): Promise<UserError> {
  const fill = () => {
    throw systemError('ENOSPC');
  };
  return atWrites(isTime, fill, () =>
    run().then(
      () => Promise.reject(new Error('not interrupted')),
      (error) => error,
    ),
  );
}

const countIn = (files: Readonly<Record<string, bigint>>) => Object.keys(files).length;

describe('an interrupted conversion', () => {
  it.each([
    ['shared', SHARED, 0],
    ['shared', SHARED, 2],
    ['low-rank', LOW_RANK, 0],
    ['low-rank', LOW_RANK, 3],
  ] as const)('to %s is resumed without repeating shards and tables', async (_, flags, files) => {
    const { folder, at, input, out, staged } = prepared();
    const parts = flags === SHARED ? 1 : 4;
    const isTime = () => countIn(staged('spool')) >= parts && countIn(staged('files')) === files;
    const error = await interrupted(isTime, () => convert(input, out, flags));
    expect(error.code).toBe('system');
    expect(textOf(error)).toMatch(
      /cannot write \S+\/out\/model-0000\d-of-\d+\.safetensors.*ENOSPC/,
    );
    expect(textOf(error)).toContain(
      'free some space, or write to another disk, then run again with --resume to continue',
    );
    const kept = staged('files');
    const scratch = staged('spool');
    expect([countIn(kept), countIn(scratch)]).toEqual([files, parts]);
    expect(fs.readdirSync(folder).sort()).toEqual(['.out.minimind', 'in']);

    const seen: Record<string, bigint>[] = [];
    const { run } = await atWrites(
      () => true,
      () => seen.push(staged('spool')),
      () => convert(input, out, { ...flags, resume: true }),
    );
    expect(run?.resumed).toBe(files > 0);
    expect(inodesIn(out)).toMatchObject(kept);
    expect(seen.length).toBeGreaterThan(0);
    for (const each of seen) expect(each).toEqual(scratch);
    await convert(input, at('whole'), flags);
    expect(digests(out)).toEqual(digests(at('whole')));
    expect(fs.readdirSync(folder).sort()).toEqual(['in', 'out', 'whole']);
  });

  it.each<[string, Flags, (input: string) => void]>([
    ['another layout', LOW_RANK, () => {}],
    ['another dtype', { ...SHARED, dtype: 'F16' }, () => {}],
    ['other shards', { ...SHARED, shardSize: 300e3 }, () => {}],
    ['another merge', { ...SHARED, merge: 'first' }, () => {}],
    ['a replaced input', SHARED, (input) => fs.copyFileSync(OTHER, input)],
    ['an input of another date', SHARED, (input) => fs.utimesSync(input, 1, 1)],
  ])('is neither resumed nor lost for %s', async (_, flags, change) => {
    const { input, out, staged } = prepared();
    const isTime = () => countIn(staged('files')) === 2;
    await interrupted(isTime, () => convert(input, out, SHARED));
    const kept = staged('files');
    change(input);
    await expect(convert(input, out, { ...flags, resume: true })).rejects.toMatchObject({
      code: 'usage',
      message: `the unfinished ${out} comes from another input or other settings`,
    });
    expect(staged('files')).toEqual(kept);
    const { run } = await convert(input, out, flags);
    expect(run?.resumed).toBe(false);
  });
});

describe('a conversion', () => {
  const OLD = { 'out/model.safetensors': 'old' };

  it.each<[string, (input: string) => void, RegExp]>([
    ['is modified', (input) => fs.utimesSync(input, 1, 1), /old\.pt was changed while it was read/],
    ['is truncated', (input) => fs.truncateSync(input, 100), /ends here; it had 330475 bytes/],
  ])('keeps the old output if the input %s', async (_, change, message) => {
    const { folder, at, input, out, staged } = prepared(OLD);
    const isTime = () => countIn(staged('files')) === 1;
    const error: UserError = await atWrites(
      isTime,
      () => change(input),
      () => convert(input, out, { ...SHARED, force: true }).catch((thrown) => thrown),
    );
    expect(error.code).toBe('refused-file');
    expect(textOf(error)).toMatch(message);
    // The unfinished output mixes two inputs.
    expect(textOf(error)).not.toContain('--resume');
    expect(fs.readdirSync(folder).sort()).toEqual(['in', 'out']);
    expect(fs.readFileSync(at('out/model.safetensors'), 'utf8')).toBe('old');
  });

  it('is refused while another run writes the same output', async () => {
    const { folder, input, out } = prepared();
    const ends = await Promise.allSettled([1, 2].map(() => convert(input, out, SHARED)));
    const failed = ends.flatMap((end) => (end.status === 'rejected' ? [end.reason] : []));
    expect(failed.map(textOf).join()).toMatch(
      /^\S+out is being written by another run: process \d+ on .*, started .* ago\nwait until it has ended; .* remove \S+lock$/,
    );
    expect(fs.readdirSync(folder).sort()).toEqual(['in', 'out']);
  });
});

describe('a config that is an input', () => {
  const CONFIG = fs.readFileSync(path.join(path.dirname(CHECKPOINT), 'config.yaml'), 'utf8');

  const { shardSize: _, ...flags } = SHARED;

  it.each(['config', 'target'] as const)(
    'with --%s is not replaced by the config of the output',
    async (flag) => {
      const { at, input } = prepared({ 'in/config.yaml': CONFIG, 'in/new.safetensors': '' });
      const to = flag === 'target' ? undefined : ('shared' as const);
      const config = flag === 'target' ? at('target.yaml') : at('in/config.yaml');
      fs.writeFileSync(at('target.yaml'), CONFIG.replace('layers: false', 'layers: true'));
      fs.copyFileSync(config, at('in/config.yaml'));
      const read = fs.readFileSync(at('in/config.yaml'), 'utf8');
      const request = { ...flags, to, [flag]: at('in/config.yaml'), force: true };
      await convert(input, at('in/new.safetensors'), request);
      expect(fs.readFileSync(at('in/config.yaml'), 'utf8')).toBe(read);
      expect(fs.existsSync(at('in/new.config.yaml'))).toBe(true);
    },
  );

  it('is not replaced even with --force', async () => {
    const files = { 'in/config.yaml': 'another', 'in/new.config.yaml': CONFIG };
    const { at, input } = prepared(files);
    const request = { ...flags, config: at('in/new.config.yaml'), force: true };
    await expect(convert(input, at('in/new.safetensors'), request)).rejects.toMatchObject({
      code: 'usage',
      message: `${at('in/new.config.yaml')} is an input and would be replaced`,
    });
    expect(fs.readFileSync(at('in/config.yaml'), 'utf8')).toBe('another');
  });
});
