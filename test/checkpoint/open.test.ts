import fs from 'node:fs';
import path from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { UserError } from '../../src/base/errors.js';
import { FILE_RULES, ruleOf } from '../../src/checkpoint/checkpoint-rules.js';
import { openCheckpoint } from '../../src/checkpoint/open.js';
import { readTensor } from '../../src/checkpoint/view.js';
import { inPackage } from '../fixtures.js';
import { errorOf, fileIn, folderOf, opened, ruleBrokenBy, safetensors } from './temp-folder.js';

afterEach(() => {
  vi.restoreAllMocks();
});

const fixture = (name: string) => inPackage('fixtures/checkpoints', name);
const good = safetensors({ a: [1, 2], b: [3] });
const index = (shard: string) => JSON.stringify({ weight_map: { a: shard } });
const single = safetensors({ a: [1] });

const problemOf = (target: string) => {
  const error = errorOf(target);
  return error instanceof UserError ? error.problems[0] : error;
};

describe('a file', () => {
  it('is opened by its content', () => {
    const target = fileIn('weights', good);
    const checkpoint = opened(target);
    expect(checkpoint).toMatchObject({ path: target, format: 'safetensors', warnings: [] });
    expect(checkpoint.files.map((file) => file.path)).toEqual([target]);
    expect([...checkpoint.tensors.keys()]).toEqual(['a', 'b']);
    expect(opened(fixture('valid/zip_proto5.pt')).format).toBe('torch-zip');
    expect(opened(fixture('valid/legacy_proto4.pth')).format).toBe('torch-legacy');
  });

  it('can be read until it is closed', () => {
    const checkpoint = openCheckpoint(fileIn('a.safetensors', good));
    const tensor = checkpoint.tensors.get('a');
    if (tensor === undefined) throw new Error('a is missing');
    expect([...readTensor(tensor)]).toEqual([1, 2]);
    checkpoint.close();
    checkpoint.close();
    expect(() => readTensor(tensor)).toThrow('after it was closed');
  });

  it('has the requested state dict', () => {
    const target = fixture('refuse/ambiguous_two.pt');
    expect(ruleBrokenBy(target)).toBe('state-dict-many');
    expect(opened(target, { stateDict: 'net_b' }).stateDict).toEqual(['net_b']);
  });

  it('has a warning if it is one of several shards', () => {
    const name = 'model-00002-of-00003.safetensors';
    expect(opened(fileIn(name, good)).warnings).toEqual([
      `${name} is shard 2 of 3, and the others were not opened: name the folder or the index`,
    ]);
    expect(opened(fileIn('model-00001-of-00001.safetensors', good)).warnings).toEqual([]);
    expect(opened(fileIn('out-of-2.safetensors', good)).warnings).toEqual([]);
  });

  it('that is missing is a usage error', () => {
    expect(errorOf('no/such/model.pt')).toMatchObject({
      code: 'usage',
      message: 'there is no file or folder no/such/model.pt',
    });
  });
});

describe('a folder', () => {
  it.each<[string, string, Readonly<Record<string, string | Uint8Array>>]>([
    ['model.safetensors', 'alone', { 'model.safetensors': single, 'config.json': '{}' }],
    ['final.ckpt', 'the only file of weights', { 'final.ckpt': single, 'README.md': '' }],
    ['A.PTH', 'in capitals', { 'A.PTH': single }],
    [
      'pytorch_model.bin',
      'next to the files of a trainer',
      {
        'pytorch_model.bin': single,
        'training_args.bin': '',
        'optimizer.pt': '',
        'scheduler.pt': '',
        'rng_state.pth': '',
        'rng_state_0.pth': '',
        'scaler.pt': '',
      },
    ],
    [
      'last.pt',
      'next to files of a trainer with other names',
      {
        'last.pt': single,
        'optimizer.bin': '',
        'optimizer_1.bin': '',
        'scheduler.bin': '',
        'sampler.bin': '',
      },
    ],
    [
      'model.safetensors',
      'next to weights in another format',
      { 'model.safetensors': single, 'consolidated.00.pth': '' },
    ],
    [
      'model.safetensors',
      'named by an index',
      { 'model.safetensors': single, 'model.safetensors.index.json': index('model.safetensors') },
    ],
    ['a.safetensors', 'next to hidden files', { 'a.safetensors': single, '._a.safetensors': '' }],
    ['a.bin', 'next to a folder', { 'a.bin': single, 'b.bin/c': '' }],
    ...['safetensors', 'bin', 'pt', 'pth'].map(
      (extension): [string, string, Record<string, Buffer>] => [
        `m-1.${extension}`,
        'named by an index',
        {
          [`m-1.${extension}`]: single,
          [`m.${extension}.index.json`]: Buffer.from(index(`m-1.${extension}`)),
        },
      ],
    ),
  ])('is opened by %s: %s', (name, _, files) => {
    const folder = folderOf(files);
    const checkpoint = opened(folder);
    expect(checkpoint.path).toBe(folder);
    expect(checkpoint.files.map((file) => file.path)).toEqual([path.join(folder, name)]);
  });

  it('is opened by any path to it', () => {
    const folder = folderOf({ 'model.safetensors': single });
    const link = `${folder}-link`;
    fs.symlinkSync(folder, link);
    for (const route of [`${folder}/`, path.relative('.', folder), link]) {
      expect(opened(route).tensors.size).toBe(1);
    }
  });

  it('may hold links to files', () => {
    const folder = folderOf({});
    fs.symlinkSync(fileIn('x', single), path.join(folder, 'model.safetensors'));
    expect(opened(folder).tensors.size).toBe(1);
  });

  it.each<[readonly string[], string, string]>([
    [
      ['model.safetensors.index.json', 'model.safetensors'],
      'an index, and a file that it does not name',
      'name one of them',
    ],
    [['a.safetensors.index.json', 'b.bin.index.json'], 'two indexes', 'name one of them'],
    [['model.safetensors', 'pytorch_model.bin'], 'two whole files', 'name one of them'],
    [['a.pt', 'b.safetensors'], 'two files', 'name one of them'],
    [
      ['model-1-of-2.bin', 'model-2-of-2.bin'],
      'shards without an index',
      'add the index of these shards (*.index.json), or name one of them',
    ],
  ])('is refused if it is ambiguous between %j: %s', (names, _, suggestion) => {
    const folder = folderOf(
      Object.fromEntries(names.map((name) => [name, index('x.safetensors')])),
    );
    expect(problemOf(folder)).toMatchObject({
      rule: 'folder-is-one',
      file: folder,
      message: `holds 2 possible checkpoints: ${names.map((name) => JSON.stringify(name)).join(', ')}`,
      suggestion,
    });
  });

  it('is refused with a list of at most ten files', () => {
    const names = Array.from({ length: 12 }, (_, at) => `${String.fromCharCode(97 + at)}.pt`);
    const folder = folderOf(Object.fromEntries(names.map((name) => [name, ''])));
    expect(problemOf(folder)).toMatchObject({
      message: expect.stringMatching(
        /^holds 12 possible checkpoints: "a\.pt", .*, "j\.pt" and 2 more$/,
      ),
    });
  });

  it.each<[readonly string[], RegExp]>([
    [[], /^name the folder/],
    [['config.json', 'optimizer.pt'], /^download the weights too: config\.json only/],
  ])('is refused with %j, without weights', (names, suggestion) => {
    const folder = folderOf(Object.fromEntries(names.map((name) => [name, ''])));
    expect(problemOf(folder)).toMatchObject({
      rule: 'folder-holds-weights',
      suggestion: expect.stringMatching(suggestion),
    });
  });

  it('that cannot be listed is a system error', () => {
    vi.spyOn(fs, 'readdirSync').mockImplementation(() => {
      throw Object.assign(new Error('EACCES: no'), { code: 'EACCES' });
    });
    expect(errorOf(folderOf({}))).toMatchObject({ code: 'system' });
  });
});

describe('an error', () => {
  it.each<[string, () => string]>([
    ['of an unknown format', () => fileIn('a.pt', 'no weights at all')],
    ['of a reader', () => fixture('hostile/zip/two_roots.pt')],
    ['of an index', () => fixture('hostile/sharded/path_nul')],
    ['of a later shard', () => fixture('hostile/sharded/shard_truncated')],
  ])('%s leaves no file open', (_, target) => {
    const place = target();
    const openSync = vi.spyOn(fs, 'openSync');
    const closeSync = vi.spyOn(fs, 'closeSync');
    expect(ruleBrokenBy(place)).toBeDefined();
    expect(openSync).toHaveBeenCalled();
    expect(closeSync.mock.calls.flat().sort()).toEqual(
      openSync.mock.results.map(({ value }) => value).sort(),
    );
  });
});

describe('the rules of files and folders', () => {
  const attacks = {
    'file-is-regular': () => ruleBrokenBy('/dev/null'),
    'file-is-whole': () => {
      const target = fileIn('a.safetensors', good);
      const [tensor] = opened(target).tensors.values();
      fs.truncateSync(target, good.length - 2);
      try {
        if (tensor) readTensor(tensor);
      } catch (error) {
        return ruleOf(error);
      }
      return undefined;
    },
    'file-stays': () => {
      const target = fileIn('a.safetensors', good);
      const [tensor] = opened(target).tensors.values();
      // Replaces the file by one of the same size.
      fs.renameSync(fileIn('b.safetensors', good), target);
      try {
        tensor?.storage.file.locate();
      } catch (error) {
        return ruleOf(error);
      }
      return undefined;
    },
    'file-kind': () => ruleBrokenBy(fileIn('a.pt', 'no weights at all')),
    'folder-holds-weights': () => ruleBrokenBy(folderOf({})),
    'folder-is-one': () => ruleBrokenBy(folderOf({ 'a.pt': good, 'b.pt': good })),
  };

  it.each(Object.entries(attacks))('%s is checked', (rule, attack) => {
    expect(attack()).toBe(rule);
  });

  it('are all tested', () => {
    // Tensors on paper need a checkpoint of many views: distributed/zero-rules.test.ts.
    const tested = [...Object.keys(attacks), 'files-hold-tensors'];
    expect(tested.sort()).toEqual(Object.keys(FILE_RULES).sort());
  });
});
