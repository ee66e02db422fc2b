import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { readDcpMetadata } from '../../../src/checkpoint/distributed/dcp-metadata.js';
import { PickleBudget } from '../../../src/checkpoint/torch/pickle/pickle-machine.js';
import { readTensor } from '../../../src/checkpoint/view.js';
import { inPackage } from '../../fixtures.js';
import { isWhole } from '../../sampled.js';
import { errorOf, folderOf, opened, ruleBrokenBy } from '../temp-folder.js';
import * as a from '../torch/assemble.js';
import { dcpFolder, item, type PartSpec, type TensorSpec } from './dcp-folder.js';
import { expectSameValues } from './same-values.js';

const CASES = ['world1', 'world2-nested', 'world3', 'world4-tp', 'world8'];
const fixture = (name: string) => inPackage('fixtures/distributed', name);

describe('a checkpoint of torch.distributed.checkpoint', () => {
  it.each(CASES)('has the values of the state dict: %s', async (name) => {
    const read = opened(fixture(name));
    const saved = opened(fixture(`${name}.safetensors`));
    expect(read.format).toBe('dcp');
    await expectSameValues(read, saved, 96);
  });

  it('has the model of a nested state dict, and its small objects', () => {
    const { stateDict, content } = opened(fixture('world2-nested'));
    expect(stateDict).toEqual(['model']);
    expect([...content.keys()]).toEqual(['optimizer', 'step']);
    expect(content.get('step')).toBe(7);
  });

  it.each(['.metadata', '__0_0.distcp'])('is opened by the name of its file %s', (name) => {
    expect(opened(path.join(fixture('world3'), name)).tensors.size).toBe(12);
  });
});

const whole = (shape: readonly number[]): PartSpec => ({
  offsets: shape.map(() => 0),
  sizes: shape,
});
const folder = (tensor: Partial<TensorSpec>, rest: Record<string, TensorSpec> = {}) =>
  dcpFolder({ w: { shape: [4, 2], parts: [whole([4, 2])], ...tensor }, ...rest });
const half = (row: number, changes: Partial<PartSpec> = {}): PartSpec => ({
  offsets: [row, 0],
  sizes: [2, 2],
  ...changes,
});

it('may have thousands of parts only if its files are large, in folders below it too', () => {
  const [count, file] = [2900, 'rank0/__0_0.distcp'];
  const parts = Array.from({ length: count }, (_, at) => ({ offsets: [at], sizes: [1], file }));
  const small = folderOf(dcpFolder({ w: { shape: [count], parts } }));
  expect(ruleBrokenBy(small)).toBe('pickle-memory');
  fs.truncateSync(path.join(small, file), 2 ** 25);
  expect(opened(small).tensors.get('w')?.shape).toEqual([count]);
});

it('has the values in the middle of a large part', () => {
  const { tensors } = opened(folderOf(folder({ shape: [50_000], parts: [whole([50_000])] })));
  const tensor = tensors.get('w') ?? expect.unreachable();
  const values = new Float32Array(readTensor(tensor).slice().buffer);
  expect(values).toEqual(Float32Array.from({ length: 50_000 }, (_, index) => index));
});

describe('metadata', () => {
  const metadata = (content: Uint8Array) =>
    path.join(folderOf({ '.metadata': content }), '.metadata');

  it('of many parts is read', () => {
    const parts = isWhole ? 30_000 : 10_000;
    const content = dcpFolder({
      w: {
        shape: [2 * parts],
        parts: Array.from({ length: parts }, (_, index) => ({
          offsets: [2 * index],
          sizes: [2],
          item: new Uint8Array(0),
        })),
      },
    })['.metadata'];
    // Each part takes a kilobyte or more of another file.
    const budget = new PickleBudget(() => 1000 * parts);
    const { entries, places } = readDcpMetadata(metadata(content ?? expect.fail()), budget);
    expect(entries.get('w')?.tensor?.boxes.length).toBe(parts);
    expect(places.get('w')?.size).toBe(parts);
  });

  // Files that reach the limit within two thirds of their length: tuples take 47 bytes for each byte, and lists 120.
  it.each([
    ['dicts', 2 ** 21, [a.EMPTY_DICT]],
    ['lists', 2 ** 21, [a.EMPTY_LIST]],
    ['sets', 2 ** 21, [a.EMPTY_SET]],
    ['tuples', 2 ** 23, [0x4b, 1, a.TUPLE1]],
  ])('is refused if its %s take too much memory', (_, length, opcodes) => {
    const bytes = Buffer.alloc(length, Uint8Array.from(opcodes));
    const target = metadata(Buffer.concat([Buffer.from([0x80, 4]), bytes]));
    let message = '';
    try {
      readDcpMetadata(target);
    } catch (error) {
      message = JSON.stringify(error);
    }
    expect(message).toContain('pickle-memory');
  });
});

describe('a distributed checkpoint', () => {
  const second = { v: { shape: [2], parts: [whole([2])] } };
  const length = item([4, 2]).length;

  it('is read if it follows all rules', () => {
    const read = opened(folderOf(folder({ parts: [half(2), half(0)] }, second)));
    const values = new Float32Array(readTensor(read.tensors.get('w') ?? expect.fail()).buffer);
    expect([...values]).toEqual([100, 101, 102, 103, 0, 1, 2, 3]);
  });

  it.each<[rule: string, what: string, files: Record<string, Uint8Array>]>([
    ['part-overlap', 'parts that overlap', folder({ parts: [half(0), half(1), half(2)] })],
    ['part-missing', 'a missing part', folder({ parts: [half(0)] })],
    ['part-missing', 'no parts', folder({ parts: [] }, second)],
    ['dcp-part-inside', 'a part beyond the tensor', folder({ parts: [half(0), half(3)] })],
    [
      'dcp-part-inside',
      'a part of one dimension',
      folder({ parts: [{ offsets: [0], sizes: [4] }] }),
    ],
    [
      'dcp-part-stored',
      'a part without a place',
      folder({ parts: [half(0), half(2, { isUnplaced: true })] }),
    ],
    ['dcp-part-once', 'two places of a part', folder({ parts: [half(0), half(0)] })],
    [
      'dcp-part-bytes',
      'a part beyond its file',
      folder({ parts: [{ ...whole([4, 2]), length: length + 1 }] }),
    ],
    ['dcp-part-apart', 'two parts at one place', folder({ parts: [half(0), half(2, { at: 10 })] })],
    [
      'zip-end',
      'a part that is cut short',
      folder({ parts: [{ ...whole([4, 2]), length: length - 1 }] }),
    ],
    [
      'dcp-part-plain',
      'compressed parts',
      folder({
        parts: [
          {
            ...whole([4, 2]),
            extra: [
              a.text('transform_descriptors'),
              a.join(a.EMPTY_LIST, a.text('zstd'), a.APPEND),
            ],
          },
        ],
      }),
    ],
    [
      'dcp-part-tensor',
      'a part of another type',
      folder({ parts: [{ ...whole([4, 2]), item: item([4, 2], 0, 'IntStorage') }] }),
    ],
    [
      'dcp-part-tensor',
      'a part of other sizes',
      folder({ parts: [{ ...whole([4, 2]), item: item([2, 4]) }] }),
    ],
    [
      'dcp-shape',
      'too many dimensions',
      folder({ shape: Array(9).fill(1), parts: [whole(Array(9).fill(1))] }),
    ],
    ['dcp-shape', 'too many elements', folder({ shape: [2 ** 40, 2 ** 40], parts: [] })],
    ['dcp-dtype', 'a type without values', folder({ dtype: a.global('torch', 'complex32') })],
    ['dcp-dtype', 'a sparse tensor', folder({ layout: 'torch.sparse_coo' })],
    ['dcp-record', 'another object for a tensor', folder({ record: a.int(3) })],
    [
      'dcp-keys',
      'two values at one place',
      folder({}, { v: { ...second.v, path: a.tuple(a.text('w')) } }),
    ],
    [
      'dcp-keys',
      'a value in a tensor',
      folder({}, { v: { ...second.v, path: a.tuple(a.text('w'), a.text('v')) } }),
    ],
    [
      'dcp-file-name',
      'a path that goes up',
      folder({ parts: [{ ...whole([4, 2]), file: '../part.distcp' }] }),
    ],
    [
      'dcp-file-name',
      'an absolute path',
      folder({ parts: [{ ...whole([4, 2]), file: '/part.distcp' }] }),
    ],
    ['dcp-file-exists', 'a missing file', omit(folder({}), '__0_0.distcp')],
    ['dcp-metadata', 'no metadata', omit(folder({}), '.metadata')],
    [
      'pickle-global',
      'a pickle that calls a function',
      { ...folder({}), '.metadata': a.pickle(a.call(a.global('os', 'system'), a.text('true'))) },
    ],
  ])('is refused by %s: %s', (rule, _, files) => {
    expect(ruleBrokenBy(folderOf(files))).toBe(rule);
  });

  it('is refused if a file is a link to outside the folder', () => {
    const files = folder({});
    const target = folderOf(omit(files, '__0_0.distcp'));
    const other = path.join(folderOf({ part: files['__0_0.distcp'] ?? '' }), 'part');
    fs.symlinkSync(other, path.join(target, '__0_0.distcp'));
    expect(ruleBrokenBy(target)).toBe('part-in-folder');
  });

  it('is refused in a parent folder, with a suggestion of the subfolder', () => {
    const files = Object.entries(folder({})).map(([name, bytes]) => [`step-7/${name}`, bytes]);
    const error = errorOf(folderOf(Object.fromEntries(files)));
    expect(JSON.stringify(error)).toContain('name a folder of a training step in it: \\"step-7\\"');
  });

  it('is refused with the tensor and the byte of the part', () => {
    const error = errorOf(folderOf(folder({ parts: [{ ...whole([4, 2]), length: length - 1 }] })));
    expect(JSON.stringify(error)).toContain('tensor \\"w\\", part at byte 0');
  });
});

const omit = (files: Record<string, Uint8Array>, name: string): Record<string, Uint8Array> =>
  Object.fromEntries(Object.entries(files).filter(([each]) => each !== name));
