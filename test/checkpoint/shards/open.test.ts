import fs from 'node:fs';
import path from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { UserError } from '../../../src/base/errors.js';
import { readTensor } from '../../../src/checkpoint/view.js';
import { inPackage } from '../../fixtures.js';
import { errorOf, folderOf, opened, safetensors } from '../temp-folder.js';
import * as a from '../torch/assemble.js';
import {
  binFolder,
  FIRST,
  first,
  folderWith,
  hubCache,
  INDEX,
  legacy,
  outside,
  SECOND,
  second,
  shards,
  weightMap,
  withLink,
  withMap,
} from './folders.js';

afterEach(() => {
  vi.restoreAllMocks();
});

describe('a link that changes between its check and its opening', () => {
  const { openSync } = fs;
  const swap = (link: string, target: string) => {
    fs.rmSync(link);
    fs.symlinkSync(target, link);
  };

  it.each([
    ['is refused', 'shard-in-folder', () => undefined],
    ['is refused if it then changes back', 'file-stays', (link: string) => swap(link, 'other')],
  ])('%s', (_, rule, after) => {
    const folder = withLink('other', withMap(weightMap, { other: safetensors(second) }));
    const elsewhere = outside();
    const link = path.join(folder, SECOND);
    vi.spyOn(fs, 'openSync').mockImplementation((file, ...rest) => {
      if (file !== link) return openSync(file, ...rest);
      swap(link, elsewhere);
      const descriptor = openSync(file, ...rest);
      after(link);
      return descriptor;
    });
    expect(errorOf(folder)).toMatchObject({ problems: [{ rule }] });
  });
});

describe('joined shards', () => {
  it('hold the tensors of all files', () => {
    const folder = folderWith({ metadata: { total_size: 4 }, weight_map: weightMap });
    const routes = [folder, path.join(folder, INDEX)];
    for (const route of routes) {
      const checkpoint = opened(route);
      expect(checkpoint).toMatchObject({ path: route, format: 'safetensors', warnings: [] });
      expect(checkpoint.files.map((file) => file.path)).toEqual([
        path.join(folder, FIRST),
        path.join(folder, SECOND),
      ]);
      const values = [...checkpoint.tensors].map(([name, tensor]) => [name, ...readTensor(tensor)]);
      expect(values).toEqual([
        ['a.w', 1, 2],
        ['b.w', 3],
        ['c.w', 4],
      ]);
    }
  });

  it('are in the order of their numbers, for any order of the map', () => {
    const files = ['model-10', 'model-9', 'sub/model-8'].map((stem) => `${stem}.safetensors`);
    const folder = folderOf({
      ...Object.fromEntries(files.map((name) => [name, safetensors({ [`${name}.w`]: [1] })])),
      [INDEX]: JSON.stringify({
        weight_map: Object.fromEntries(files.map((name) => [`${name}.w`, name])),
      }),
    });
    expect([...opened(folder).tensors.keys()]).toEqual([
      'model-9.safetensors.w',
      'model-10.safetensors.w',
      'sub/model-8.safetensors.w',
    ]);
  });

  it('hold names that are special to JavaScript', () => {
    const names = ['__proto__', 'constructor', '0', 'ключ', 'a"b\\'];
    const tensors = names.map((name): [string, number[]] => [name, [1]]);
    const folder = folderOf({
      [FIRST]: safetensors(Object.fromEntries(tensors)),
      [INDEX]: JSON.stringify({
        weight_map: Object.fromEntries(names.map((name) => [name, FIRST])),
      }),
    });
    expect([...opened(folder).tensors.keys()].sort()).toEqual(names.toSorted());
  });

  it('can be shards of real files', () => {
    const source = inPackage('fixtures/checkpoints/hostile/sharded/path_nul');
    const map = {
      'embed.weight': FIRST,
      'layers.0.srte.freqs': FIRST,
      'layers.1.srte.freqs': SECOND,
      'head.weight': SECOND,
    };
    const read = (name: string) => fs.readFileSync(path.join(source, name));
    const checkpoint = opened(withMap(map, { [FIRST]: read(FIRST), [SECOND]: read(SECOND) }));
    expect([...checkpoint.tensors.keys()].sort()).toEqual(Object.keys(map).sort());
  });

  it('may be PyTorch files, with keys of their own', () => {
    const checkpoint = opened(binFolder(legacy('a.w', 'model'), legacy('b.w', 'model')));
    expect(checkpoint).toMatchObject({ format: 'torch-legacy', stateDict: ['model'] });
    expect([...checkpoint.tensors.keys()]).toEqual(['a.w', 'b.w']);
  });

  it('may have an index without an extension in its name', () => {
    const folder = folderOf({
      ...shards,
      'x.index.json': JSON.stringify({ weight_map: weightMap }),
    });
    expect(opened(path.join(folder, 'x.index.json')).tensors.size).toBe(3);
  });

  it('may be links within the folder, and in the cache of the Hugging Face hub', () => {
    const folder = withMap(weightMap, { other: safetensors(second) });
    expect(opened(withLink('other', folder)).tensors.size).toBe(3);
    const snapshot = hubCache('models--org--name/blobs');
    expect(opened(snapshot).tensors.size).toBe(3);
    expect(opened(path.join(snapshot, INDEX)).tensors.size).toBe(3);
  });

  it('may be in a folder that is itself a link', () => {
    const folder = folderWith({ weight_map: weightMap });
    fs.symlinkSync(folder, `${folder}-link`);
    expect(opened(`${folder}-link`).tensors.size).toBe(3);
  });

  it('keep their metadata and aliases, including those of the index and across shards', () => {
    const index = {
      metadata: { total_size: 4, tied: 'a.w', format: 'pt', note: 'none', 'b.w': 'a.w' },
      weight_map: weightMap,
    };
    const checkpoint = opened(
      folderWith(index, {
        [FIRST]: safetensors(first, { format: 'pt', own: 'a.w', cross: 'c.w' }),
        [SECOND]: safetensors(second, { format: 'tf', by: 'hand' }),
      }),
    );
    expect(Object.fromEntries(checkpoint.aliases)).toEqual({
      tied: 'a.w',
      own: 'a.w',
      cross: 'c.w',
    });
    expect(Object.fromEntries(checkpoint.metadata)).toEqual({
      format: 'pt',
      own: 'a.w',
      cross: 'c.w',
      by: 'hand',
    });
    expect(checkpoint.warnings).toEqual([
      `${SECOND}: has its own "format"; that of an earlier shard is taken`,
    ]);
  });

  it('keep values other than tensors', () => {
    const withStep = (name: string, step: number, own: string) =>
      a.legacy(
        a.pickle(
          a.dict(a.text(name), a.tensor(), a.text('step'), a.int(step), a.text(own), a.int(1)),
        ),
        ['0'],
        [a.legacyData(4n, 16)],
      );
    const alike = opened(binFolder(withStep('a.w', 7, 'one'), withStep('b.w', 7, 'two')));
    expect(Object.fromEntries(alike.content)).toEqual({ step: 7, one: 1, two: 1 });
    expect(alike.warnings).toEqual([]);
    const unlike = opened(binFolder(withStep('a.w', 7, 'one'), withStep('b.w', 8, 'two')));
    expect(unlike.content.get('step')).toBe(7);
    expect(unlike.warnings).toEqual([
      '2.bin: has its own "step"; that of an earlier shard is taken',
    ]);
  });

  it('may have another total size than the index', () => {
    const folder = folderWith({ metadata: { total_size: 5 }, weight_map: weightMap });
    expect(opened(folder).warnings).toEqual([
      'metadata.total_size of the index is 5, but the tensors have 4 bytes',
    ]);
    for (const metadata of [{ total_size: '5' }, {}, null, [], 'text']) {
      expect(opened(folderWith({ metadata, weight_map: weightMap })).warnings).toEqual([]);
    }
  });

  it('may count a shared storage once or for each tensor', () => {
    const shared = a.legacy(
      a.pickle(a.dict(a.text('a.w'), a.tensor(), a.text('b.w'), a.tensor())),
      ['0'],
      [a.legacyData(4n, 16)],
    );
    const warnings = (total: number) => {
      const index = {
        metadata: { total_size: total },
        weight_map: { 'a.w': '1.bin', 'b.w': '1.bin' },
      };
      return opened(folderOf({ '1.bin': shared, 'm.bin.index.json': JSON.stringify(index) }))
        .warnings;
    };
    expect([16, 32].map(warnings)).toEqual([[], []]);
    expect(warnings(24)).toHaveLength(1);
  });

  it('name the shard in its warnings', () => {
    // Shown as text, both keys are [1].
    const dict = a.dict(a.text('w'), a.tensor(), a.int(1), a.text('x'), a.text('[1]'), a.text('y'));
    const shard = a.legacy(a.pickle(dict), ['0'], [a.legacyData(4n, 16)]);
    const index = JSON.stringify({ weight_map: { w: '1.bin' } });
    const folder = folderOf({ '1.bin': shard, 'm.bin.index.json': index });
    expect(opened(folder).warnings).toEqual([expect.stringMatching(/^1\.bin: ./)]);
  });
});

describe('many shards', () => {
  const folder = () => {
    const names = Array.from({ length: 20 }, (_, at) => `m-${at}.safetensors`);
    return folderOf({
      ...Object.fromEntries(names.map((name) => [name, safetensors({ [name]: [1] })])),
      [INDEX]: JSON.stringify({
        weight_map: Object.fromEntries(names.map((name) => [name, name])),
      }),
    });
  };

  it('are closed if the system has no more descriptors', () => {
    const target = folder();
    const { openSync } = fs;
    const descriptors: number[] = [];
    vi.spyOn(fs, 'openSync').mockImplementation((...args) => {
      if (descriptors.length === 10)
        throw Object.assign(new Error('EMFILE: …'), { code: 'EMFILE' });
      descriptors.push(openSync(...args));
      return descriptors.at(-1) ?? -1;
    });
    const closeSync = vi.spyOn(fs, 'closeSync');
    expect(errorOf(target)).toMatchObject({
      code: 'system',
      message: expect.stringMatching(/m-9\.safetensors: EMFILE/),
      suggestion: expect.stringContaining('ulimit'),
    });
    expect(closeSync.mock.calls.flat().sort()).toEqual(descriptors.sort());
  });

  it('are all closed with the checkpoint', () => {
    const target = folder();
    const openSync = vi.spyOn(fs, 'openSync');
    const closeSync = vi.spyOn(fs, 'closeSync');
    opened(target).close();
    expect(openSync).toHaveBeenCalledTimes(21);
    expect(closeSync).toHaveBeenCalledTimes(21);
  });
});

describe('a shard with a path that cannot be resolved', () => {
  it('is a system error', () => {
    const target = folderWith({ weight_map: weightMap });
    const { realpathSync } = fs;
    const failing = (place: fs.PathLike) => {
      if (String(place).endsWith(SECOND))
        throw Object.assign(new Error('ELOOP'), { code: 'ELOOP' });
      return realpathSync(place);
    };
    vi.spyOn(fs, 'realpathSync').mockImplementation(failing as typeof realpathSync);
    const error = errorOf(target);
    expect(error).toBeInstanceOf(UserError);
    expect(error).toMatchObject({ code: 'system' });
  });
});
