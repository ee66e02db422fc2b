import { describe, expect, it } from 'vitest';
import { type ContentEntry, describeContent } from '../../src/checkpoint/summary-content.js';
import type {
  Dict,
  Float,
  List,
  Opaque,
  PickleValue,
  Tuple,
} from '../../src/checkpoint/torch/pickle/values.js';
import { storageOf, tensorIn } from './stored-tensors.js';

const float = (value: number): Float => ({ kind: 'float', value });
const list = (...items: PickleValue[]): List => ({ kind: 'list', items });
const tuple = (...items: PickleValue[]): Tuple => ({ kind: 'tuple', items, hashable: true });
const dict = (...entries: [PickleValue, PickleValue][]): Dict => ({
  kind: 'dict',
  type: 'dict',
  entries: new Map(entries),
});
const opaque = (type: string, args: PickleValue[], state?: PickleValue): Opaque => ({
  kind: 'opaque',
  type,
  made: 'reduce',
  of: { kind: 'global', module: 'argparse', name: 'Namespace' },
  args: tuple(...args),
  state,
});
const data = storageOf(new Uint8Array(64));
const storage: PickleValue = {
  kind: 'storage',
  key: '3',
  dtype: 'F32',
  start: 0,
  length: 16,
  data,
};
const tensor = tensorIn(data, [2, 3]);

/** Description of one value. */
function describeOne(value: PickleValue): ContentEntry {
  const entry = describeContent(new Map([['it', value]])).get('it');
  if (!entry) throw new Error('the entry is missing');
  return entry;
}

describe('describeContent', () => {
  it.each<[string, PickleValue, unknown, string]>([
    ['None', null, null, 'None'],
    ['a truth value', true, true, 'bool'],
    ['an integer', 30, 30, 'int'],
    ['a large integer', 2n ** 70n, 2n ** 70n, 'int'],
    ['a float', float(0.5), 0.5, 'float'],
    ['a text', 'adamw', 'adamw', 'str'],
    ['bytes', new Uint8Array(7), { bytes: 7 }, 'bytes'],
    ['a list', list(1, 'a'), [1, 'a'], 'list'],
    ['a tuple', tuple(float(0.9), 2), [0.9, 2], 'tuple'],
    ['a set', { kind: 'set', type: 'frozenset', items: new Set([1]) }, [1], 'frozenset'],
    ['a dict', dict(['lr', float(0.1)], ['x', list()]), { lr: 0.1, x: [] }, 'dict'],
    ['a dict with numbers', dict([0, 'a'], [-1, 'b']), { 0: 'a', '-1': 'b' }, 'dict'],
    [
      'a class',
      { kind: 'global', module: 'torch', name: 'Size' },
      { global: 'torch.Size' },
      'type',
    ],
    ['a storage', storage, { storage: '3' }, 'torch.storage'],
    ['a tensor', tensor, { tensor: { dtype: 'F32', shape: [2, 3] } }, 'torch.Tensor'],
    [
      'an object with a state',
      opaque('argparse.Namespace', [], dict(['seed', 1])),
      { object: 'argparse.Namespace', state: { seed: 1 } },
      'argparse.Namespace',
    ],
    [
      'an object with arguments',
      opaque('pathlib.PosixPath', ['a', 'b']),
      { object: 'pathlib.PosixPath', args: ['a', 'b'] },
      'pathlib.PosixPath',
    ],
  ])('returns %s with its type', (_, value, plain, type) => {
    const entry = describeOne(value);
    expect(entry.value).toEqual(plain);
    expect(entry.type).toBe(type);
    expect(entry.truncated).toBeUndefined();
  });

  it('keeps keys that are special to JavaScript', () => {
    const { value } = describeOne(dict(['__proto__', 1], ['constructor', 2]));
    expect(JSON.stringify(value)).toBe('{"__proto__":1,"constructor":2}');
    const entries = describeContent(new Map([['__proto__', 1]]));
    expect(entries.get('__proto__')?.value).toBe(1);
  });

  it('lists pairs if keys are not names, or if two become one name', () => {
    expect(describeOne(dict([tuple(1, 2), 'a'])).value).toEqual([[[1, 2], 'a']]);
    expect(describeOne(dict([1, 'a'], ['1', 'b'])).value).toEqual([
      [1, 'a'],
      ['1', 'b'],
    ]);
  });

  it('counts nested tensors, each once', () => {
    const moments = dict(['exp_avg', tensor], ['exp_avg_sq', { ...tensor }], ['step', 1]);
    const state = dict(['state', dict([0, moments], [1, moments])], ['param_groups', list(tensor)]);
    expect(describeOne(state)).toMatchObject({ tensors: 2, tensorBytes: 48 });
    expect(describeOne(opaque('x', [tensor], tensor))).toMatchObject({ tensors: 1 });
    expect(describeOne(tensor)).toMatchObject({ tensors: 1, tensorBytes: 24 });
    expect(describeOne(dict(['lr', 1])).tensors).toBeUndefined();
  });
});

describe('a numpy scalar', () => {
  /** Scalar as pickled by numpy: its dtype, with the byte order in its state, and its bytes. */
  const scalar = (code: string, order: string, bytes: Uint8Array, core = 'core') =>
    opaque(`numpy.${core}.multiarray.scalar`, [
      opaque('numpy.dtype', [code, false, true], tuple(3, order, null, null, null, -1, -1, 0)),
      bytes,
    ]);
  const half = new Uint8Array(Float64Array.of(0.5).buffer);

  it.each<[string, PickleValue, number]>([
    ['f8', scalar('f8', '<', half), 0.5],
    ['f8 of numpy 2', scalar('f8', '<', half, '_core'), 0.5],
    ['f4', scalar('f4', '<', new Uint8Array(Float32Array.of(-2.5).buffer)), -2.5],
    ['i8', scalar('i8', '<', new Uint8Array(BigInt64Array.of(-30n).buffer)), -30],
    ['u1', scalar('u1', '|', Uint8Array.of(200)), 200],
    ['b1', scalar('b1', '|', Uint8Array.of(1)), 1],
  ])('of type %s becomes a number', (_, value, expected) => {
    expect(describeOne(value).value).toBe(expected);
  });

  it.each<[string, PickleValue]>([
    ['big-endian', scalar('f8', '>', half)],
    ['of another type', scalar('U8', '<', half)],
    ['of another size', scalar('f4', '<', half)],
    ['something else', opaque('numpy.core.multiarray._reconstruct', [half])],
    ['without its parts', opaque('numpy.core.multiarray.scalar', [])],
    ['without a dtype', opaque('numpy.core.multiarray.scalar', ['f8', half])],
  ])('stays an object if it is %s', (_, value) => {
    expect(describeOne(value).value).toHaveProperty('object');
  });
});

describe('the description of a hostile value', () => {
  /** List with 2^levels paths: each part is the same list twice. */
  const laughs = (levels: number): PickleValue => {
    let value: PickleValue = list('ha');
    for (let level = 0; level < levels; level++) value = list(value, value);
    return value;
  };

  const sizeOf = (value: unknown) => JSON.stringify(value).length;

  it('stays small for many paths', () => {
    const entry = describeOne(laughs(60));
    expect(entry.truncated).toBe(true);
    expect(sizeOf(entry)).toBeLessThan(10_000);
    expect(describeOne(laughs(5)).truncated).toBeUndefined();
  });

  it('ends for a list that contains itself', () => {
    const own = list();
    own.items.push(own, tensor);
    expect(describeOne(own)).toMatchObject({ truncated: true, tensors: 1 });
  });

  it('is truncated for deep values, without deep recursion', () => {
    let value: PickleValue = tensor;
    for (let depth = 0; depth < 100_000; depth++) value = list(value);
    const entry = describeOne(value);
    expect(entry).toMatchObject({ truncated: true, tensors: 1 });
    expect(sizeOf(entry.value)).toBeLessThan(100);
  });

  it('is truncated for long values', () => {
    const long = describeOne(list(...Array.from({ length: 5000 }, (_, n) => n)));
    expect(long.truncated).toBe(true);
    expect((long.value as unknown[]).slice(0, 3)).toEqual([0, 1, 2]);
    expect((long.value as unknown[]).length).toBeLessThan(1001);
    const text = describeOne('a'.repeat(5000));
    expect(text).toMatchObject({ truncated: true, value: 'a'.repeat(1000) });
    const key = describeOne(dict(['k'.repeat(5000), 1]));
    expect(key).toMatchObject({ truncated: true, value: { ['k'.repeat(1000)]: 1 } });
  });

  it('is truncated for many long entries', () => {
    const numbers = list(...Array.from({ length: 900 }, (_, n) => n));
    const content = new Map(
      Array.from({ length: 100 }, (_, n) => [`${n}`, numbers as PickleValue]),
    );
    const entries = [...describeContent(content).values()];
    expect(entries[0]?.truncated).toBeUndefined();
    expect(entries.at(-1)).toEqual({ type: 'list', value: [], truncated: true });
    expect(sizeOf(entries)).toBeLessThan(200_000);
  });

  it('counts tensors only up to a limit of steps', () => {
    const shared = list(...Array.from({ length: 10_000 }, () => tensor));
    const content = new Map(
      Array.from({ length: 1000 }, (_, n) => [`${n}`, list(shared) as PickleValue]),
    );
    const entries = [...describeContent(content).values()];
    expect(entries[0]?.tensors).toBe(1);
    expect(entries.at(-1)?.tensors).toBeUndefined();
  });
});
