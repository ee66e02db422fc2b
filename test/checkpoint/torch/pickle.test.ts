import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { UserError } from '../../../src/base/errors.js';
import { PICKLE_RULES } from '../../../src/checkpoint/checkpoint-rules.js';
import { readPickle } from '../../../src/checkpoint/torch/pickle/pickle.js';
import { PickleSource } from '../../../src/checkpoint/torch/pickle/pickle-machine.js';
import type { PickleValue } from '../../../src/checkpoint/torch/pickle/values.js';
import { Table } from '../../../src/checkpoint/torch/pickle/values.js';
import { fileOf, ruleBrokenBy } from '../byte-files.js';
import * as a from './assemble.js';

function read(bytes: Uint8Array): PickleValue {
  const file = fileOf(bytes);
  const source = new PickleSource(file, 0, file.size);
  return readPickle(source);
}

/** Entries of a dict. */
const entriesOf = (value: PickleValue) => [
  ...(value as Extract<PickleValue, { kind: 'dict' }>).entries,
];

const ruleOfBytes = (bytes: Uint8Array) => ruleBrokenBy(() => read(bytes));

const ODD_CALL = a.global('collections', 'OrderedDict');
const times = (count: number, part: Uint8Array) => Buffer.concat(new Array(count).fill(part));

const ATTACKS: readonly (readonly [keyof typeof PICKLE_RULES, string, () => Uint8Array])[] = [
  [
    'pickle-size',
    'a byte string that passes 64 MiB',
    () => a.pickle(0x42, a.u32(2 ** 26), Buffer.alloc(2 ** 26)),
  ],
  ['pickle-whole', 'no STOP', () => a.join(0x80, 2, a.NONE)],
  ['pickle-whole', 'nothing', () => a.join()],
  ['pickle-whole', 'a wrong length', () => a.pickle(0x8e, a.u64(2n ** 63n))],
  ['pickle-protocol', 'protocol 1', () => a.join(0x80, 1, a.NONE, a.STOP)],
  ['pickle-protocol', 'protocol 6', () => a.join(0x80, 6, a.NONE, a.STOP)],
  ['pickle-protocol', 'no PROTO', () => a.join('N.')],
  // torch.load(weights_only=True) also refuses POP and POP_MARK, which are the last two.
  ...[
    0x69, 0x6f, 0x82, 0x83, 0x84, 0x50, 0x32, 0x92, 0x97, 0x98, 0x49, 0x4c, 0x53, 0x56, 0x46, 0x30,
    0x31,
  ].map((opcode): (typeof ATTACKS)[number] => [
    'pickle-opcode',
    `opcode 0x${opcode.toString(16)}`,
    () => a.pickle(a.NONE, a.MARK, opcode),
  ]),
  [
    'pickle-memory',
    'two million lists',
    () => a.pickle(a.MARK, times(2_000_000, a.join(a.EMPTY_LIST)), a.TUPLE),
  ],
  ['pickle-frame', 'a frame beyond the end', () => a.pickle(0x95, a.u64(2n ** 64n - 1n), a.NONE)],
  ['pickle-frame', 'a frame of a byte too many', () => a.pickle(0x95, a.u64(3n), a.NONE)],
  [
    'pickle-memory',
    'half a million dicts',
    () => a.pickle(a.MARK, times(500_000, a.join(a.EMPTY_DICT)), a.TUPLE),
  ],
  [
    'pickle-memory',
    'six million numbers in a list',
    () =>
      a.pickle(a.EMPTY_LIST, times(6000, a.join(a.MARK, times(1000, a.join(0x4b, 7)), a.APPENDS))),
  ],
  [
    'pickle-memory',
    'a dict set repeatedly',
    () => a.pickle(a.EMPTY_DICT, times(4_500_000, a.join(a.NONE, a.NONE, a.SETITEM))),
  ],
  [
    'pickle-memory',
    'a set added to repeatedly',
    () => a.pickle(a.EMPTY_SET, times(3_500_000, a.join(a.MARK, a.NONE, a.ADDITEMS))),
  ],
  [
    'pickle-memory',
    'a long list made a dict repeatedly',
    () =>
      a.pickle(
        a.MARK,
        a.EMPTY_LIST,
        a.MARK,
        ...Array.from({ length: 1000 }, (_, index) => a.tuple(a.text(`k${index}`), a.NONE)),
        a.APPENDS,
        a.put(0),
        times(5000, a.call(ODD_CALL, a.get(0))),
        a.TUPLE,
      ),
  ],
  ...(
    [
      ['dict', a.global('collections', 'OrderedDict'), a.tuple(a.text('k'), a.NONE)],
      ['set', a.global('builtins', 'set'), a.NONE],
      ['frozenset', a.global('builtins', 'frozenset'), a.NONE],
    ] as const
  ).map(([kind, callee, item]): (typeof ATTACKS)[number] => [
    'pickle-memory',
    `a list that repeats one item, made a ${kind} repeatedly`,
    () =>
      a.pickle(
        ...[a.MARK, item, a.put(0), a.EMPTY_LIST, a.MARK, times(10_000, a.get(0)), a.APPENDS],
        ...[a.TUPLE1, a.put(1), callee, a.put(2)],
        times(500, a.join(a.get(2), a.get(1), a.REDUCE)),
        a.TUPLE,
      ),
  ]),
  [
    'pickle-memory',
    'a text copied into bytes repeatedly',
    () =>
      a.pickle(
        a.text('x'.repeat(2 ** 20)),
        a.put(0),
        a.text('latin1'),
        a.put(1),
        times(200, a.join(a.call(a.global('_codecs', 'encode'), a.get(0), a.get(1)))),
      ),
  ],
  ['pickle-stack', 'TUPLE1 of nothing', () => a.pickle(a.TUPLE1)],
  [
    'pickle-stack',
    'APPEND with a mark below',
    () => a.pickle(a.EMPTY_LIST, a.MARK, a.NONE, a.APPEND),
  ],
  ['pickle-mark', 'TUPLE without MARK', () => a.pickle(a.TUPLE)],
  ['pickle-marks', '201 marks', () => a.pickle(times(201, a.join(a.MARK)))],
  ['pickle-rest', 'two objects', () => a.pickle(a.NONE, a.NONE)],
  ['pickle-rest', 'no object', () => a.pickle()],
  ['pickle-rest', 'an open mark', () => a.pickle(a.MARK, a.NONE)],
  ['pickle-memo', 'an entry that was not set', () => a.pickle(a.get(5))],
  ['pickle-memo-index', 'entry two million', () => a.pickle(a.NONE, 0x72, a.u32(2_000_000))],
  [
    'pickle-text-length',
    'a text of more than 1 MiB',
    () => a.pickle(a.text('x'.repeat(2 ** 20 + 1))),
  ],
  ['pickle-utf8', 'a lone continuation byte', () => a.pickle(0x8c, 1, 0x80)],
  ['pickle-integer', 'an integer of 17 bytes', () => a.pickle(a.int(1, 17))],
  ['pickle-integer', 'a negative length', () => a.pickle(0x8b, a.u32(0xffffffff))],
  ['pickle-line', 'a module without an end', () => a.pickle(0x63, 'x'.repeat(1001))],
  ['pickle-key', 'a list as a key', () => a.pickle(a.dict(a.EMPTY_LIST, a.NONE))],
  ['pickle-integer-key', 'a key of 65 bits', () => a.pickle(a.dict(a.int(2n ** 64n, 9), a.NONE))],
  [
    'pickle-integer-key',
    'a negative key of 65 bits',
    () => a.pickle(a.dict(a.int(-(2n ** 63n) - 1n, 9), a.NONE)),
  ],
  [
    'pickle-integer-key',
    'a member of a set of 128 bits',
    () => a.pickle(a.EMPTY_SET, a.MARK, a.int(2n ** 100n, 16), a.ADDITEMS),
  ],
  [
    'pickle-memory',
    'a dict of 600,000 keys of 64 bits',
    () =>
      a.pickle(
        a.EMPTY_DICT,
        a.MARK,
        Buffer.concat(
          Array.from({ length: 600_000 }, (_, at) =>
            a.join(0x8a, 8, a.u64(2n ** 63n - BigInt(at + 1)), a.NONE),
          ),
        ),
        a.SETITEMS,
      ),
  ],
  ['pickle-key', 'a dict as a key', () => a.pickle(a.EMPTY_DICT, a.EMPTY_DICT, a.NONE, a.SETITEM)],
  [
    'pickle-key',
    'a list in a tuple as a key',
    () => a.pickle(a.dict(a.tuple(a.EMPTY_LIST), a.NONE)),
  ],
  ['pickle-key', 'a list in a set', () => a.pickle(a.EMPTY_SET, a.MARK, a.EMPTY_LIST, a.ADDITEMS)],
  ['pickle-key', 'a list in a frozenset', () => a.pickle(a.MARK, a.EMPTY_LIST, a.FROZENSET)],
  ['pickle-list', 'APPEND to a tuple', () => a.pickle(a.EMPTY_TUPLE, a.NONE, a.APPEND)],
  ['pickle-list', 'APPENDS to a dict', () => a.pickle(a.EMPTY_DICT, a.MARK, a.NONE, a.APPENDS)],
  ['pickle-dict', 'SETITEM of a list', () => a.pickle(a.EMPTY_LIST, a.NONE, a.NONE, a.SETITEM)],
  [
    'pickle-pairs',
    'three items',
    () => a.pickle(a.EMPTY_DICT, a.MARK, a.NONE, a.NONE, a.TRUE, a.SETITEMS),
  ],
  ['pickle-set', 'ADDITEMS to a list', () => a.pickle(a.EMPTY_LIST, a.MARK, a.NONE, a.ADDITEMS)],
  [
    'pickle-name',
    'STACK_GLOBAL of a number',
    () => a.pickle(a.text('torch'), a.int(1), a.STACK_GLOBAL),
  ],
  ...(
    [
      ['os', 'system'],
      ['builtins', 'eval'],
      ['torch', 'os'],
      ['torch.storage.UntypedStorage', ''],
      ['torch', 'storage.UntypedStorage'],
      ['collections\r', 'OrderedDict\r'],
      ['collections', 'OrderedDict '],
      ['collections OrderedDict', ''],
      ['torch._utils _rebuild_tensor_v2', ''],
      ['', 'collections OrderedDict'],
      ['torch', 'FloatStorage\0'],
      ['torch', 'FlоatStorage'],
      ['torch._utils', '_rebuild_tensor'],
      ['torch._utils', '_rebuild_qtensor'],
      ['torch._utils', '__class__'],
      ['__builtin__', 'getattr'],
      ['numpy', 'load'],
    ] as const
  ).map(([module, name]): (typeof ATTACKS)[number] => [
    'pickle-global',
    JSON.stringify([module, name]),
    () => a.pickle(a.global(module, name)),
  ]),
  [
    'pickle-global',
    'by STACK_GLOBAL',
    () => a.pickle(a.text('os'), a.text('system'), a.STACK_GLOBAL),
  ],
  ['pickle-call', 'calls a text', () => a.pickle(a.call(a.text('eval')))],
  ['pickle-call', 'calls the result of a call', () => a.pickle(a.call(a.call(ODD_CALL)))],
  [
    'pickle-call',
    'calls a storage class',
    () => a.pickle(a.call(a.global('torch', 'FloatStorage'), a.int(9))),
  ],
  [
    'pickle-call',
    'calls a built-in type',
    () => a.pickle(a.call(a.global('builtins', 'list'), a.int(9))),
  ],
  [
    'pickle-call-arguments',
    'a list of arguments',
    () => a.pickle(ODD_CALL, a.EMPTY_LIST, a.REDUCE),
  ],
  ...(
    [
      ['builtins', 'bytearray', a.int(2n ** 40n)],
      ['builtins', 'bytes', a.int(2n ** 40n)],
      ['collections', 'Counter', a.int(2n ** 40n)],
      ['collections', 'OrderedDict', a.int(1)],
      ['collections', 'OrderedDict', a.join(a.EMPTY_LIST, a.NONE, a.APPEND)],
      ['collections', 'defaultdict', a.int(1)],
      ['builtins', 'set', a.int(1)],
      ['builtins', 'set', a.join(a.EMPTY_LIST, a.EMPTY_LIST, a.APPEND)],
      ['_codecs', 'encode', a.join(a.text('x'), a.text('zlib'))],
      ['_codecs', 'encode', a.text('x')],
      ['_codecs', 'encode', a.join(a.text('\u0100'), a.text('latin1'))],
    ] as const
  ).map(([module, name, args]): (typeof ATTACKS)[number] => [
    'pickle-arguments',
    `${module}.${name} ${args.toString('latin1').replace(/[^\x20-\x7e]/g, '.')}`,
    () => a.pickle(a.call(a.global(module, name), args)),
  ]),
  ['pickle-new', 'NEWOBJ of an OrderedDict', () => a.pickle(ODD_CALL, a.EMPTY_TUPLE, a.NEWOBJ)],
  ['pickle-new', 'NEWOBJ of a text', () => a.pickle(a.text('x'), a.EMPTY_TUPLE, a.NEWOBJ)],
  ['pickle-state', 'BUILD on a dict', () => a.pickle(a.EMPTY_DICT, a.EMPTY_DICT, a.BUILD)],
  ['pickle-state', 'BUILD on a list', () => a.pickle(a.EMPTY_LIST, a.EMPTY_DICT, a.BUILD)],
  ...(
    [
      ['OrderedDict', 'keys', a.dict(a.text('keys'), a.int(1))],
      ['OrderedDict', '__class__', a.dict(a.text('__class__'), a.text('x'))],
      [
        'OrderedDict',
        '_metadata and items',
        a.dict(...['_metadata', 'items'].map((name) => a.join(a.text(name), a.NONE))),
      ],
      ['OrderedDict', 'a number', a.dict(a.int(1), a.NONE)],
      ['OrderedDict', 'None', a.join(a.NONE)],
      ['OrderedDict', 'an integer', a.int(5)],
      ['OrderedDict', 'a list', a.join(a.EMPTY_LIST)],
      ['Counter', 'keys', a.dict(a.text('keys'), a.int(1))],
    ] as const
  ).map(([type, what, state]): (typeof ATTACKS)[number] => [
    'pickle-attributes',
    `${what}, of a ${type}`,
    () => a.pickle(a.call(a.global('collections', type)), state, a.BUILD),
  ]),
  ['pickle-no-storage', 'a storage in a header', () => a.pickle(a.storage())],
  [
    'pickle-nesting',
    '201 lists',
    () => a.pickle(times(201, a.join(a.EMPTY_LIST)), times(200, a.join(a.APPEND))),
  ],
  ['pickle-nesting', '200,000 tuples', () => a.pickle(a.NONE, times(200_000, a.join(a.TUPLE1)))],
  [
    'pickle-nesting',
    'a deep list inside a deeper one',
    () => {
      const deep = a.join(times(150, a.join(a.EMPTY_LIST)), times(149, a.join(a.APPEND)));
      // [deep, [[… deep …]]]: each alone is allowed.
      return a.pickle(
        a.EMPTY_LIST,
        deep,
        a.put(0),
        a.APPEND,
        a.get(0),
        times(60, a.join(a.TUPLE1)),
        a.APPEND,
      );
    },
  ],
  ['pickle-cycle', 'a list in itself', () => a.pickle(a.EMPTY_LIST, a.put(0), a.get(0), a.APPEND)],
  [
    'pickle-cycle',
    'an object that is its own state',
    () => a.pickle(a.call(a.global('argparse', 'Namespace')), a.put(0), a.get(0), a.BUILD),
  ],
];

describe('a pickle', () => {
  it.each(ATTACKS)('is refused by %s: %s', (rule, _, bytes) => {
    expect(ruleOfBytes(bytes())).toBe(rule);
  });

  it('may use more memory in a large file, for the state of an optimizer', () => {
    const many = a.pickle(a.MARK, times(1_000_000, a.join(a.EMPTY_LIST)), a.TUPLE);
    expect(ruleOfBytes(many)).toBe('pickle-memory');
    expect(ruleOfBytes(Buffer.concat([many, Buffer.alloc(30_000_000)]))).toBeUndefined();
  });

  it('is read when it refers to one large dict many times', () => {
    const keys = Array.from({ length: 20_000 }, (_, at) => a.join(a.text(`layers.${at}`), a.NONE));
    const large = a.join(a.dict(...keys), a.put(0));
    // Copying the dict for each reference takes minutes.
    const many = a.pickle(a.MARK, large, times(100_000, a.get(0)), a.TUPLE);
    expect(ruleOfBytes(many)).toBeUndefined();
  });

  it('is tested against every rule', () => {
    expect(new Set(ATTACKS.map(([rule]) => rule))).toEqual(new Set(Object.keys(PICKLE_RULES)));
  });
});

describe('reading a pickle', () => {
  it.each([
    ['None', a.pickle(a.NONE), null],
    ['True', a.pickle(a.TRUE), true],
    ['a negative integer', a.pickle(a.int(-2)), -2],
    ['zero, of no bytes', a.pickle(a.int(0, 0)), 0],
    ['an integer beyond 2^53', a.pickle(a.int(2n ** 70n, 10)), 2n ** 70n],
    ['a small integer in 16 bytes', a.pickle(a.int(7, 16)), 7],
    ['BININT', a.pickle(0x4a, a.u32(0xfffffffe)), -2],
    ['BININT2', a.pickle(0x4d, 1, 2), 513],
    ['a float', a.pickle(a.float(0.5)), { kind: 'float', value: 0.5 }],
    ['a text', a.pickle(a.text('naïve 🙂')), 'naïve 🙂'],
    ['a string of Python 2', a.pickle(0x55, 2, 'hi'), 'hi'],
    ['bytes of Python 2', a.pickle(0x55, 1, 0xff), new Uint8Array([0xff])],
    ['bytes', a.pickle(0x43, 2, 1, 2), new Uint8Array([1, 2])],
    [
      'bytes of protocol 2',
      a.pickle(a.call(a.global('_codecs', 'encode'), a.text('\u00ff'), a.text('latin1'))),
      new Uint8Array([255]),
    ],
    [
      'a value of MEMOIZE',
      a.pickle(a.text('k'), a.MEMOIZE, a.get(0), a.TUPLE2),
      { kind: 'tuple', items: ['k', 'k'], hashable: true },
    ],
    ['a frame', a.pickle(0x95, a.u64(1n), a.NONE), null],
  ])('returns %s', (_, bytes, expected) => {
    expect(read(bytes)).toEqual(expected);
  });

  it('treats 1, 1.0 and True as one key', () => {
    const value = read(
      a.pickle(a.dict(a.TRUE, a.text('a'), a.int(1), a.text('b'), a.float(1), a.text('c'))),
    );
    expect(value).toMatchObject({ kind: 'dict' });
    expect(entriesOf(value)).toEqual([[1, 'c']]);
    const items = a.join(a.EMPTY_LIST, a.MARK, a.TRUE, a.int(1), a.float(1), a.APPENDS);
    const set = read(a.pickle(a.call(a.global('builtins', 'set'), items)));
    expect([...(set as Extract<PickleValue, { kind: 'set' }>).items]).toEqual([1]);
  });

  it('distinguishes numbers from equal texts as keys', () => {
    const keys = [7, '7', '#7', '$7', '$', '#', -1, 2n ** 70n, '', null];
    const table = new Table(keys.map((key) => [key, key]));
    expect([...table]).toEqual(keys.map((key) => [key, key]));
    expect(keys.map((key) => table.get(key))).toEqual(keys);
  });

  it('puts no numbers into a Map, because their hash is predictable', () => {
    const set = vi.spyOn(Map.prototype, 'set');
    const table = new Table([7, 2n ** 70n, '7', true].map((key) => [key, null]));
    const slots = set.mock.calls.map(([key]) => key);
    set.mockRestore();
    expect(table.size).toBe(4);
    expect(slots.filter((slot) => typeof slot !== 'string' || /^[0-9]/.test(slot))).toEqual([]);
  });

  it('keeps __proto__ as a name', () => {
    const value = read(a.pickle(a.dict(a.text('__proto__'), a.dict(a.text('polluted'), a.TRUE))));
    expect(entriesOf(value)).toMatchObject([['__proto__', { kind: 'dict' }]]);
    expect('polluted' in {}).toBe(false);
  });

  it('keeps shared objects shared', () => {
    const value = read(a.pickle(a.EMPTY_LIST, a.put(0), a.get(0), a.TUPLE2));
    expect(value).toMatchObject({ kind: 'tuple' });
    const { items } = value as Extract<PickleValue, { kind: 'tuple' }>;
    expect(items[0]).toBe(items[1]);
  });

  it('keeps an allowed object with its state', () => {
    const made = a.join(a.global('argparse', 'Namespace'), a.EMPTY_TUPLE, a.NEWOBJ);
    const value = read(a.pickle(made, a.dict(a.text('lr'), a.float(0.1)), a.BUILD));
    expect(value).toMatchObject({ kind: 'opaque', type: 'argparse.Namespace', made: 'newobj' });
    const { state = null } = value as Extract<PickleValue, { kind: 'opaque' }>;
    expect(entriesOf(state)).toMatchObject([['lr', { value: 0.1 }]]);
  });

  it.each([
    ['its metadata', a.dict(a.text('_metadata'), a.NONE)],
    ['nothing', a.dict()],
  ])('drops the attributes of a state dict: %s', (_, state) => {
    expect(read(a.pickle(a.call(ODD_CALL), state, a.BUILD))).toEqual({
      kind: 'dict',
      type: 'collections.OrderedDict',
      entries: new Table(),
    });
  });

  it('returns a value or refuses the file for any value of a byte', () => {
    const valid = a.pickle(
      a.dict(a.text('k'), a.tuple(a.int(1), a.float(2)), a.text('n'), a.call(ODD_CALL)),
      a.put(1),
    );
    fc.assert(
      fc.property(fc.nat(valid.length - 1), fc.nat(255), (position, byte) => {
        const bytes = Buffer.from(valid);
        bytes[position] = byte;
        try {
          read(bytes);
        } catch (error) {
          expect(error).toBeInstanceOf(UserError);
        }
      }),
    );
  });
});
