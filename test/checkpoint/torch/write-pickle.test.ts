import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readPickle } from '../../../src/checkpoint/torch/pickle/pickle.js';
import { PickleSource } from '../../../src/checkpoint/torch/pickle/pickle-machine.js';
import type { Writable } from '../../../src/checkpoint/torch/pickle/writable.js';
import { collectStorages } from '../../../src/checkpoint/torch/pickle/writable.js';
import { writePickle } from '../../../src/checkpoint/torch/pickle/write-pickle.js';
import { fileOf } from '../byte-files.js';
import * as a from './assemble.js';
import { comparable, dict, list, tensor, tuple } from './write-builder.js';

const written = (value: Writable) => Buffer.from(writePickle(value, collectStorages(value)));

const float = (value: number): Writable => ({ kind: 'float', value });
const global = (module: string, name: string) => ({ kind: 'global', module, name }) as const;

/** BININT1 */
const small = (value: number) => a.join(0x4b, value);
const TUPLE3 = 0x87;

/**
 * Opcodes of Python's Lib/pickletools.py. PyTorch 1.13.0 and 2.13.0 read files with each of these values, and returned
 * the same values.
 */
const CASES: readonly (readonly [string, Writable, Uint8Array])[] = [
  ['None', null, a.pickle(a.NONE)],
  ['True', true, a.pickle(a.TRUE)],
  ['False', false, a.pickle(a.FALSE)],
  ['0', 0, a.pickle(0x4b, 0)],
  ['255', 255, a.pickle(0x4b, 255)],
  ['256', 256, a.pickle(0x4d, 0, 1)],
  ['65535', 65535, a.pickle(0x4d, 255, 255)],
  ['65536', 65536, a.pickle(0x4a, 0, 0, 1, 0)],
  ['-1', -1, a.pickle(0x4a, 255, 255, 255, 255)],
  ['2^31 - 1', 2 ** 31 - 1, a.pickle(0x4a, 255, 255, 255, 127)],
  ['-2^31', -(2 ** 31), a.pickle(0x4a, 0, 0, 0, 128)],
  ['2^31', 2 ** 31, a.pickle(0x8a, 5, 0, 0, 0, 128, 0)],
  ['-2^31 - 1', -(2 ** 31) - 1, a.pickle(0x8a, 5, 255, 255, 255, 127, 255)],
  ['2^40', 2 ** 40, a.pickle(0x8a, 6, 0, 0, 0, 0, 0, 1)],
  ['-2^39', -(2n ** 39n), a.pickle(0x8a, 5, 0, 0, 0, 0, 128)],
  ['2^63', 2n ** 63n, a.pickle(0x8a, 9, 0, 0, 0, 0, 0, 0, 0, 128, 0)],
  ['a small bigint', 7n, a.pickle(0x4b, 7)],
  ['0.5', float(0.5), a.pickle(a.float(0.5))],
  ['-0.0', float(-0), a.pickle(0x47, 128, 0, 0, 0, 0, 0, 0, 0)],
  ['a text', 'größe', a.pickle(a.text('größe'), a.put(0))],
  ['a long text', 'x'.repeat(1001), a.pickle(a.text('x'.repeat(1001)))],
  ['[]', list(), a.pickle(a.EMPTY_LIST, a.put(0))],
  ['[1]', list(1), a.pickle(a.EMPTY_LIST, small(1), a.APPEND, a.put(0))],
  ['[1, 2]', list(1, 2), a.pickle(a.EMPTY_LIST, a.MARK, small(1), small(2), a.APPENDS, a.put(0))],
  ['()', tuple(), a.pickle(a.EMPTY_TUPLE, a.put(0))],
  ['(1,)', tuple(1), a.pickle(small(1), a.TUPLE1, a.put(0))],
  ['(1, 2)', tuple(1, 2), a.pickle(small(1), small(2), a.TUPLE2, a.put(0))],
  ['(1, 2, 3)', tuple(1, 2, 3), a.pickle(small(1), small(2), small(3), TUPLE3, a.put(0))],
  [
    '(1, 2, 3, 4)',
    tuple(1, 2, 3, 4),
    a.pickle(a.tuple(small(1), small(2), small(3), small(4)), a.put(0)),
  ],
  ['{}', dict('dict'), a.pickle(a.EMPTY_DICT, a.put(0))],
  ['{1: 2}', dict('dict', [1, 2]), a.pickle(a.EMPTY_DICT, small(1), small(2), a.SETITEM, a.put(0))],
  [
    'OrderedDict of two',
    dict('collections.OrderedDict', [1, 2], [3, 4]),
    a.pickle(
      a.global('collections', 'OrderedDict'),
      a.put(0),
      a.EMPTY_TUPLE,
      a.REDUCE,
      a.MARK,
      ...[1, 2, 3, 4].map(small),
      a.SETITEMS,
      a.put(1),
    ),
  ],
  [
    '{1}',
    { kind: 'set', type: 'set', items: new Set([1]) },
    a.pickle(
      a.global('__builtin__', 'set'),
      a.put(0),
      a.EMPTY_LIST,
      small(1),
      a.APPEND,
      a.put(1),
      a.TUPLE1,
      a.REDUCE,
      a.put(2),
    ),
  ],
  [
    "b'\\x00\\xff'",
    Uint8Array.of(0, 255),
    a.pickle(
      a.global('_codecs', 'encode'),
      a.put(0),
      a.text('\0\xff'),
      a.put(1),
      a.text('latin1'),
      a.put(2),
      a.TUPLE2,
      a.REDUCE,
      a.put(3),
    ),
  ],
  ['a dtype', global('torch', 'float32'), a.pickle(a.global('torch', 'float32'), a.put(0))],
  [
    'an object made by NEWOBJ, with a state',
    {
      kind: 'opaque',
      made: 'newobj',
      of: global('argparse', 'Namespace'),
      args: tuple(),
      state: dict('dict'),
    },
    a.pickle(
      a.global('argparse', 'Namespace'),
      a.put(0),
      a.EMPTY_TUPLE,
      a.put(1),
      a.NEWOBJ,
      a.EMPTY_DICT,
      a.put(2),
      a.BUILD,
      a.put(3),
    ),
  ],
  [
    'an object made by a call',
    { kind: 'opaque', made: 'reduce', of: global('torch', 'device'), args: tuple('cpu') },
    a.pickle(
      a.global('torch', 'device'),
      a.put(0),
      a.text('cpu'),
      a.put(1),
      a.TUPLE1,
      a.put(2),
      a.REDUCE,
      a.put(3),
    ),
  ],
];

/** `('storage', class, key, 'cpu', length)`. Its memo entries begin at 1. */
const storageId = (module: string, name: string, length: number) => [
  a.MARK,
  a.text('storage'),
  a.put(1),
  a.global(module, name),
  a.put(2),
  a.text('0'),
  a.put(3),
  a.text('cpu'),
  a.put(4),
  small(length),
  a.TUPLE,
  a.BINPERSID,
];
const NO_HOOKS = [a.global('collections', 'OrderedDict'), a.put(5), a.EMPTY_TUPLE, a.REDUCE];

describe('the written pickle', () => {
  it.each(CASES)('has the opcodes of %s', (_, value, expected) => {
    expect(written(value)).toEqual(expected);
  });

  it('has a tensor on a typed storage', () => {
    expect(written(tensor({ shape: [2, 2], strides: [1, 2], offset: 1 }))).toEqual(
      a.pickle(
        a.global('torch._utils', '_rebuild_tensor_v2'),
        a.put(0),
        a.MARK,
        ...storageId('torch', 'FloatStorage', 6),
        small(1),
        small(2),
        small(2),
        a.TUPLE2,
        small(1),
        small(2),
        a.TUPLE2,
        a.FALSE,
        ...NO_HOOKS,
        a.TUPLE,
        a.REDUCE,
        a.put(6),
      ),
    );
  });

  /** PyTorch 2.13.0 reads it; 1.13.0 lacks this dtype. */
  it('has a tensor on an untyped storage, if its dtype has no storage class', () => {
    const value = tensor({ dtype: 'F8_E4M3', shape: [24], strides: [1] });
    expect(written(value)).toEqual(
      a.pickle(
        a.global('torch._utils', '_rebuild_tensor_v3'),
        a.put(0),
        a.MARK,
        ...storageId('torch.storage', 'UntypedStorage', 24),
        small(0),
        small(24),
        a.TUPLE1,
        small(1),
        a.TUPLE1,
        a.FALSE,
        ...NO_HOOKS,
        a.global('torch', 'float8_e4m3fn'),
        a.put(6),
        a.TUPLE,
        a.REDUCE,
        a.put(7),
      ),
    );
  });

  it('has a reference to a value that was written before', () => {
    const shared = list();
    const [first, second] = [a.text('a'), a.text('b')];
    expect(written(dict('dict', ['a', shared], ['b', shared], ['c', 'a']))).toEqual(
      a.pickle(
        a.EMPTY_DICT,
        a.MARK,
        ...[first, a.put(0), a.EMPTY_LIST, a.put(1)],
        ...[second, a.put(2), a.get(1)],
        ...[a.text('c'), a.put(3), a.get(0)],
        a.SETITEMS,
        a.put(4),
      ),
    );
  });

  it('distinguishes a name from a text with the same letters', () => {
    const value = list('torch float32', 'float32', global('torch', 'float32'));
    expect(written(value).includes(a.global('torch', 'float32'))).toBe(true);
  });

  it('has long references after the first 256', () => {
    const bytes = written(list(...Array.from({ length: 300 }, (_, i) => `${i}`), '299'));
    expect(bytes.includes(a.join(a.text('255'), a.put(255), a.text('256'), 0x72, a.u32(256)))).toBe(
      true,
    );
    expect(bytes.includes(a.join(0x6a, a.u32(299), a.APPENDS))).toBe(true);
  });

  it('has batches of a thousand', () => {
    const bytes = written(list(...new Array<null>(2001).fill(null)));
    const thousand = a.join(a.MARK, Buffer.alloc(1000, a.NONE), a.APPENDS);
    expect(bytes).toEqual(a.pickle(a.EMPTY_LIST, thousand, thousand, a.NONE, a.APPEND, a.put(0)));
  });
});

describe('writing a pickle', () => {
  it('refuses a value that contains itself', () => {
    const items: Writable[] = [];
    const self = { kind: 'list', items } as const;
    items.push(self);
    expect(() => written(self)).toThrow('nested deeper than 500 levels');
  });

  it('refuses a number that is not an integer', () => {
    expect(() => written(0.5)).toThrow(RangeError);
    expect(() => written(Number.NaN)).toThrow(RangeError);
    expect(() => written(2n ** 2040n)).toThrow(RangeError);
  });
});

describe('a written pickle', () => {
  it('is short if a value is repeated', () => {
    const deep = Array.from({ length: 400 }).reduce<Writable>((inner) => list(inner, inner), null);
    expect(written(deep).length).toBeLessThan(10_000);
  });

  const read = (bytes: Uint8Array) => {
    const file = fileOf(bytes);
    const source = new PickleSource(file, 0, file.size);
    return readPickle(source);
  };

  const { tree } = fc.letrec<{ tree: Writable }>((tie) => {
    const items = fc.array(tie('tree'), { maxLength: 5 });
    const keys = fc.oneof(fc.string({ unit: 'binary' }), fc.integer());
    return {
      tree: fc.oneof(
        { maxDepth: 5 },
        fc.constantFrom(null, true, false),
        fc.maxSafeInteger(),
        fc.bigInt({ min: 2n ** 53n, max: 2n ** 126n }),
        fc.bigInt({ min: -(2n ** 126n), max: -(2n ** 53n) }),
        fc.string({ unit: 'binary' }),
        fc.double().map(float),
        fc.uint8Array(),
        items.map((all) => list(...all)),
        fc
          .tuple(fc.constantFrom('dict', 'collections.OrderedDict', 'collections.Counter'), items)
          .chain(([type, values]) =>
            fc
              .uniqueArray(keys, { minLength: values.length, maxLength: values.length })
              .map((names) =>
                dict(
                  type,
                  ...names.map((name, i): [Writable, Writable] => [name, values[i] ?? null]),
                ),
              ),
          ),
        fc.uniqueArray(keys).map(
          (all): Writable => ({
            kind: 'set',
            type: 'frozenset',
            items: new Set(all),
          }),
        ),
      ),
    };
  });

  it('is read with the same values', () => {
    fc.assert(
      fc.property(tree, (value) => {
        expect(comparable(read(written(value)))).toEqual(comparable(value));
      }),
      { numRuns: 200 },
    );
  });

  it('is read with a hundred thousand names', () => {
    const names = Array.from({ length: 100_000 }, (_, i): [string, number] => [`n${i}`, i]);
    expect(comparable(read(written(dict('dict', ...names))))).toEqual(dict('dict', ...names));
  });
});
