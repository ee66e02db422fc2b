import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { homeFolder } from '../../../src/base/files/file-system.js';
import {
  firstInFolder,
  firstOverlapping,
  identitiesAt,
} from '../../../src/base/files/input-registry.js';
import { folderOf } from '../../checkpoint/temp-folder.js';

const overlap = (one: string, other: string) => firstOverlapping([one], other) !== undefined;

afterEach(() => vi.restoreAllMocks());

const FILES = { 'a/in.pt': 'input', 'a/sub/x': '', 'b/y': '' };

describe('two paths', () => {
  const folder = folderOf(FILES);
  const at = (name: string) => `${folder}/${name}`;
  fs.linkSync(at('a/in.pt'), at('b/hard.pt'));
  fs.symlinkSync('../a', at('b/link'));
  fs.symlinkSync('../a/new.pt', at('b/dangling.pt'));
  fs.symlinkSync('loop', at('b/loop'));

  it.each([
    ['a/in.pt', 'a/in.pt'],
    ['a/in.pt', 'b/hard.pt'],
    ['a/in.pt', 'b/link/in.pt'],
    ['a', 'b/link'],
    ['a', 'a/sub/x'],
    ['a', 'b/link/sub/none/below'],
    ['a', 'b/dangling.pt'],
    ['a/in.pt', 'a/in.pt/below'],
    ['none', 'none'],
    ['none', 'none/below'],
    ['a/new.pt', 'b/dangling.pt'],
    // `..` is the parent of the link's target, not of the link.
    ['a/in.pt', 'b/link/../a/in.pt'],
    ['b/y', 'b/link/../b/y'],
    ['.', 'a/in.pt'],
  ])('overlap: %s and %s', (one, other) => {
    expect(overlap(at(one), at(other))).toBe(true);
    expect(overlap(at(other), at(one))).toBe(true);
  });

  it.each([
    ['a/in.pt', 'a/new.pt'],
    ['a/in.pt', 'b'],
    ['a', 'b'],
    ['a', 'ab'],
    ['none', 'nonesuch'],
    ['none/x', 'none/y'],
    ['a/in.pt', 'b/loop'],
  ])('do not overlap: %s and %s', (one, other) => {
    expect(overlap(at(one), at(other))).toBe(false);
    expect(overlap(at(other), at(one))).toBe(false);
  });

  it('are found in a folder, also through links', () => {
    expect(firstInFolder([at('none'), at('b/link/sub/x')], at('a'))).toBe(at('b/link/sub/x'));
    expect(firstInFolder([at('a')], at('a/sub'))).toBeUndefined();
  });
});

/** Imitates a file system that ignores case, with the given file numbers. */
function withoutCase(folder: string, numbers: (found: string, asked: string) => bigint): void {
  const { statSync } = fs;
  vi.spyOn(fs, 'statSync').mockImplementation(((file: string, options: fs.StatSyncOptions) => {
    const actual = path
      .relative(folder, file)
      .split(path.sep)
      .reduce((place, name) => {
        const names = fs.readdirSync(place);
        return path.join(place, names.find((each) => same(each, name)) ?? name);
      }, folder);
    const status = statSync(actual, options) as fs.BigIntStats;
    return Object.assign(status, { ino: numbers(actual, file) });
  }) as typeof fs.statSync);
  vi.spyOn(fs.realpathSync, 'native').mockImplementation(((file: string) => file) as never);
}

const same = (a: string, b: string) => a.toLowerCase() === b.toLowerCase();

describe.each<[string, (found: string, asked: string) => bigint]>([
  [
    'that numbers files',
    (found) => BigInt(Buffer.from(found).reduce((sum, each) => sum * 31 + each, 7)),
  ],
  [
    'that numbers names',
    (_, asked) => BigInt(Buffer.from(asked).reduce((sum, each) => sum * 31 + each, 7)),
  ],
  ['that has no numbers', () => 0n],
])('a case-insensitive file system %s', (_, numbers) => {
  const folder = folderOf({ 'Model.pt': 'x', 'Dir/model.pt': 'other', 'b.pt': 'third' });

  it.each<[string, string, boolean]>([
    ['Model.pt', 'model.PT', true],
    ['Dir', 'dir/out', true],
    ['Model.pt', 'Dir/model.pt', false],
    ['Model.pt', 'b.pt', false],
  ])('%s and %s overlap: %s', (one, other, expected) => {
    withoutCase(folder, numbers);
    expect(overlap(path.join(folder, one), path.join(folder, other))).toBe(expected);
  });
});

it('two files that differ in case only do not overlap', () => {
  const folder = folderOf({ 'Model.pt': 'one' });
  fs.writeFileSync(path.join(folder, 'model.pt'), 'two', { flag: 'a' });
  // Where case is ignored, this is one file with both texts.
  if (fs.readdirSync(folder).length === 1) return;
  expect(overlap(path.join(folder, 'Model.pt'), path.join(folder, 'model.pt'))).toBe(false);
});

it('a missing file has no identity', () => {
  expect(identitiesAt(path.join(folderOf({}), 'none'))).toEqual([]);
});

describe('the home folder', () => {
  afterEach(() => vi.unstubAllEnvs());

  it.each(['', '.', 'relative/home'])('is that of the account for HOME=%j', (home) => {
    vi.stubEnv('HOME', home);
    expect(homeFolder()).toBe(os.userInfo().homedir);
  });

  it('is a folder for temporary files where the account has none', () => {
    const missing = () => {
      throw new Error('ENOENT: no such user');
    };
    vi.spyOn(os, 'homedir').mockImplementation(missing);
    vi.spyOn(os, 'userInfo').mockImplementation(missing);
    expect(homeFolder()).toBe(os.tmpdir());
  });
});
