import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { UserError } from '../../../src/base/errors.js';
import { STATE_DICT_RULES, TENSOR_RULES } from '../../../src/checkpoint/checkpoint-rules.js';
import { readTorchLegacy } from '../../../src/checkpoint/torch/read-torch.js';
import { readTensor } from '../../../src/checkpoint/view.js';
import { fileOf, ruleBrokenBy } from '../byte-files.js';
import * as a from './assemble.js';

/** Legacy file with one tensor `w`, on one storage of four floats. */
const fileWith = (tensor: Uint8Array, data = a.legacyData(4n, 16)) =>
  a.legacy(a.pickle(a.dict(a.text('w'), tensor)), ['0'], [data]);

const withObject = (...object: Uint8Array[]) => a.legacy(a.pickle(...object), [], []);

const ruleOfBytes = (bytes: Uint8Array, stateDict?: string) =>
  ruleBrokenBy(() => readTorchLegacy(fileOf(bytes), { stateDict }));

const DTYPE_V3 = a.global('torch._utils', '_rebuild_tensor_v3');
const BYTES = a.storage({ type: a.global('torch', 'ByteStorage'), length: a.int(16) });
/** Tensor of `dtype` on a view of two floats that begins at `start`. */
const onView = (dtype: string, start: number, count = 1) =>
  a.tensor({
    by: DTYPE_V3,
    storage: a.storage({ view: a.tuple(a.text('1'), a.int(start), a.int(2)) }),
    size: a.tuple(a.int(count)),
    rest: [a.global('torch', dtype)],
  });
/** Legacy file with tensors of two elements on these storages. */
const withStorages = (storages: readonly Uint8Array[], keys: readonly string[] = ['0', '1']) =>
  a.legacy(
    a.pickle(
      a.dict(
        ...storages.map((storage, index) =>
          a.join(a.text(`w${index}`), a.tensor({ storage, size: a.tuple(a.int(2)) })),
        ),
      ),
    ),
    keys,
    keys.map(() => a.legacyData(4n, 16)),
  );
/** Legacy file with views of storage 0: key, offset, length. */
const twoViews = (...views: readonly (readonly [string, number, number])[]) =>
  withStorages(
    views.map(([key, offset, length]) =>
      a.storage({ view: a.tuple(a.text(key), a.int(offset), a.int(length)) }),
    ),
    ['0'],
  );
const parameterWithState = (state: Uint8Array | number) =>
  a.call(
    a.global('torch._utils', '_rebuild_parameter_with_state'),
    a.tensor(),
    a.TRUE,
    a.dict(),
    state,
  );
const good = fileWith(a.tensor());
const odict = (...pairs: Uint8Array[]) => a.dict(...pairs);

type RuleId = keyof typeof TENSOR_RULES | keyof typeof STATE_DICT_RULES;
/** Rules for the records of an archive, tested in torch-zip.test.ts. */
const OF_ARCHIVES: readonly RuleId[] = ['storage-record', 'storage-size', 'storage-words'];

const ATTACKS: readonly (readonly [RuleId, string, () => Uint8Array])[] = [
  [
    'storage-id',
    'a module',
    () => fileWith(a.tensor({ storage: a.storage({ tag: a.text('module') }) })),
  ],
  [
    'storage-id',
    'no fields',
    () => fileWith(a.tensor({ storage: a.join(a.tuple(), a.BINPERSID) })),
  ],
  ...['02', '-1', '2/../2', '/etc/passwd', '2\0', '', '٣', '1'.repeat(40)].map(
    (key): (typeof ATTACKS)[number] => [
      'storage-key',
      JSON.stringify(key),
      () => fileWith(a.tensor({ storage: a.storage({ key: a.text(key) }) })),
    ],
  ),
  ['storage-key', 'a number', () => fileWith(a.tensor({ storage: a.storage({ key: a.int(0) }) }))],
  [
    'storage-location',
    'a number',
    () => fileWith(a.tensor({ storage: a.storage({ location: a.int(0) }) })),
  ],
  [
    'storage-device',
    'meta',
    () => fileWith(a.tensor({ storage: a.storage({ location: a.text('meta') }) })),
  ],
  ...['', 'blah', 'meta:0', 'CPU', 'cpu:0', 'cuda:', 'cuda:x', 'xcuda:0'].map(
    (location): (typeof ATTACKS)[number] => [
      'storage-location',
      JSON.stringify(location),
      () => fileWith(a.tensor({ storage: a.storage({ location: a.text(location) }) })),
    ],
  ),
  [
    'storage-length',
    'negative',
    () => fileWith(a.tensor({ storage: a.storage({ length: a.int(-4) }) })),
  ],
  [
    'storage-length',
    'a float',
    () => fileWith(a.tensor({ storage: a.storage({ length: a.float(4) }) })),
  ],
  ['storage-length', 'True', () => fileWith(a.tensor({ storage: a.storage({ length: a.TRUE }) }))],
  [
    'storage-length',
    '2^53 + 4',
    () => fileWith(a.tensor({ storage: a.storage({ length: a.int(2n ** 53n + 4n) }) })),
  ],
  [
    'storage-length',
    'bytes beyond 2^53',
    () => fileWith(a.tensor({ storage: a.storage({ length: a.int(2n ** 52n) }) })),
  ],
  [
    'storage-agrees',
    'another type for the same key',
    () =>
      a.legacy(
        a.pickle(
          odict(
            a.text('w'),
            a.tensor(),
            a.text('v'),
            a.tensor({ storage: a.storage({ type: a.global('torch', 'IntStorage') }) }),
          ),
        ),
        ['0'],
        [a.legacyData(4n, 16)],
      ),
  ],
  ...(
    [
      ['before its beginning', a.int(-1), a.int(4)],
      ['past its end', a.int(1), a.int(4)],
      ['of a negative length', a.int(0), a.int(-1)],
      ['of None', a.NONE, a.int(4)],
    ] as const
  ).map(([what, offset, length]): (typeof ATTACKS)[number] => [
    'storage-view',
    what,
    () =>
      fileWith(a.tensor({ storage: a.storage({ view: a.tuple(a.text('1'), offset, length) }) })),
  ]),
  ['tensor-arguments', 'a text for a storage', () => fileWith(a.tensor({ storage: a.text('0') }))],
  ['tensor-arguments', 'a list of sizes', () => fileWith(a.tensor({ size: a.join(a.EMPTY_LIST) }))],
  [
    'tensor-arguments',
    'too few',
    () =>
      fileWith(
        a.call(
          a.global('torch._utils', '_rebuild_tensor_v2'),
          a.storage(),
          a.int(0),
          a.tuple(),
          a.tuple(),
        ),
      ),
  ],
  ['tensor-arguments', 'too many', () => fileWith(a.tensor({ rest: [a.NONE, a.NONE] }))],
  ['tensor-numbers', 'a float size', () => fileWith(a.tensor({ size: a.tuple(a.float(4)) }))],
  ['tensor-numbers', 'a negative size', () => fileWith(a.tensor({ size: a.tuple(a.int(-4)) }))],
  ['tensor-numbers', 'a negative stride', () => fileWith(a.tensor({ stride: a.tuple(a.int(-1)) }))],
  [
    'tensor-numbers',
    'a stride that wraps at 2^64',
    () => fileWith(a.tensor({ stride: a.tuple(a.int(2n ** 62n)) })),
  ],
  ['tensor-numbers', 'a negative offset', () => fileWith(a.tensor({ offset: a.int(-1) }))],
  ['tensor-numbers', 'a stride too few', () => fileWith(a.tensor({ stride: a.tuple() }))],
  [
    'tensor-rank',
    'nine dimensions',
    () =>
      fileWith(
        a.tensor({
          size: a.tuple(...new Array(9).fill(a.int(1))),
          stride: a.tuple(...new Array(9).fill(a.int(1))),
        }),
      ),
  ],
  [
    'tensor-dtype',
    'a dtype that is not supported',
    () =>
      fileWith(a.tensor({ by: DTYPE_V3, storage: BYTES, rest: [a.global('torch', 'complex32')] })),
  ],
  [
    'tensor-dtype',
    'a text',
    () => fileWith(a.tensor({ by: DTYPE_V3, storage: BYTES, rest: [a.text('float32')] })),
  ],
  ['tensor-flags', 'neg', () => fileWith(a.tensor({ rest: [a.dict(a.text('neg'), a.TRUE)] }))],
  [
    'tensor-flags',
    'conj',
    () =>
      fileWith(
        a.tensor({
          by: DTYPE_V3,
          storage: BYTES,
          rest: [a.global('torch', 'float32'), a.dict(a.text('conj'), a.TRUE)],
        }),
      ),
  ],
  ...['neg', 'conj', 'x'].map((flag): (typeof ATTACKS)[number] => [
    'tensor-flags',
    `${flag}: False, which PyTorch also sets`,
    () => fileWith(a.tensor({ rest: [a.dict(a.text(flag), a.FALSE)] })),
  ]),
  [
    'tensor-flags',
    'three',
    () =>
      fileWith(
        a.tensor({
          rest: [a.dict(...['neg', 'conj', 'x'].flatMap((flag) => [a.text(flag), a.FALSE]))],
        }),
      ),
  ],
  [
    'tensor-elements',
    'a product beyond 2^53',
    () =>
      fileWith(
        a.tensor({
          size: a.tuple(a.int(2 ** 30), a.int(2 ** 30)),
          stride: a.tuple(a.int(0), a.int(0)),
        }),
      ),
  ],
  ['tensor-bounds', 'one element too many', () => fileWith(a.tensor({ size: a.tuple(a.int(5)) }))],
  ['tensor-bounds', 'an offset of one', () => fileWith(a.tensor({ offset: a.int(1) }))],
  [
    'tensor-bounds',
    'an offset, of a scalar',
    () => fileWith(a.tensor({ offset: a.int(4), size: a.tuple(), stride: a.tuple() })),
  ],
  [
    'tensor-bounds',
    'floats in bytes',
    () =>
      fileWith(
        a.tensor({
          by: DTYPE_V3,
          storage: BYTES,
          size: a.tuple(a.int(5)),
          rest: [a.global('torch', 'float32')],
        }),
      ),
  ],
  [
    'tensor-bounds',
    'the end of a view',
    () =>
      fileWith(
        a.tensor({ storage: a.storage({ view: a.tuple(a.text('1'), a.int(1), a.int(3)) }) }),
      ),
  ],
  [
    'tensor-amplification',
    '2^40 elements of one',
    () => fileWith(a.tensor({ size: a.tuple(a.int(2 ** 40)), stride: a.tuple(a.int(0)) })),
  ],
  ['tensor-flags', 'neg: 1', () => fileWith(a.tensor({ rest: [a.dict(a.text('neg'), a.int(1))] }))],
  ['tensor-arguments', 'a list of flags', () => fileWith(a.tensor({ rest: [a.EMPTY_LIST] }))],
  [
    'storage-view',
    'a key that is not text',
    () => fileWith(a.tensor({ storage: a.storage({ view: a.tuple(a.NONE, a.int(0), a.int(4)) }) })),
  ],
  [
    'storage-view',
    'too many fields',
    () =>
      fileWith(
        a.tensor({
          storage: a.storage({ view: a.tuple(a.text('1'), a.int(0), a.int(4), a.NONE) }),
        }),
      ),
  ],
  [
    'parameter-data',
    'no tensor',
    () =>
      fileWith(a.call(a.global('torch._utils', '_rebuild_parameter'), a.NONE, a.TRUE, a.dict())),
  ],
  ...(
    [
      ['too few arguments', '_rebuild_parameter', [a.tensor()]],
      ['too many', '_rebuild_parameter', [a.tensor(), a.TRUE, a.dict(), a.dict()]],
      ['no state', '_rebuild_parameter_with_state', [a.tensor(), a.TRUE, a.dict()]],
    ] as const
  ).map(([what, name, args]): (typeof ATTACKS)[number] => [
    'parameter-data',
    what,
    () => fileWith(a.call(a.global('torch._utils', name), ...args)),
  ]),
  ...(
    [
      ['other data', a.dict(a.text('data'), a.tensor())],
      ['slots', a.tuple(a.NONE, a.dict(a.text('data'), a.tensor()))],
      ['an attribute', a.dict(a.text('tag'), a.int(1))],
      ['a list with a tensor', a.join(a.EMPTY_LIST, a.tensor(), a.APPEND)],
      ['a number', a.int(1)],
      ['an empty tuple', a.EMPTY_TUPLE],
      ['three parts', a.tuple(a.NONE, a.NONE, a.NONE)],
    ] as const
  ).map(([what, state]): (typeof ATTACKS)[number] => [
    'parameter-state',
    what,
    () => fileWith(parameterWithState(state)),
  ]),
  ...(
    [
      ['1', a.int(1)],
      ['None', a.NONE],
      ['a text', a.text('True')],
    ] as const
  ).flatMap(([what, requiresGrad]): (typeof ATTACKS)[number][] => [
    ['tensor-gradient', what, () => fileWith(a.tensor({ requiresGrad }))],
    [
      'tensor-gradient',
      `${what}, of a parameter`,
      () =>
        fileWith(
          a.call(
            a.global('torch._utils', '_rebuild_parameter'),
            a.tensor(),
            requiresGrad,
            a.dict(),
          ),
        ),
    ],
  ]),
  [
    'tensor-gradient',
    'True for integers',
    () =>
      fileWith(
        a.tensor({
          requiresGrad: a.TRUE,
          storage: a.storage({ type: a.global('torch', 'IntStorage') }),
        }),
      ),
  ],
  [
    'tensor-gradient',
    'True for a parameter of integers',
    () =>
      fileWith(
        a.call(
          a.global('torch._utils', '_rebuild_parameter'),
          a.tensor({ storage: a.storage({ type: a.global('torch', 'IntStorage') }) }),
          a.TRUE,
          a.dict(),
        ),
      ),
  ],
  ['storage-view-key', 'two parts', () => twoViews(['1', 0, 2], ['1', 2, 2])],
  ['storage-view-key', 'two lengths', () => twoViews(['1', 0, 2], ['1', 0, 3])],
  ['storage-view-key', 'the key of its storage', () => twoViews(['0', 0, 4], ['2', 0, 2])],
  [
    'storage-view-key',
    'the key of an earlier storage',
    () =>
      withStorages([
        a.storage({ key: a.text('1') }),
        a.storage({ view: a.tuple(a.text('1'), a.int(0), a.int(4)) }),
      ]),
  ],
  [
    'storage-view-key',
    'the key of a later storage',
    () =>
      withStorages([
        a.storage({ view: a.tuple(a.text('1'), a.int(0), a.int(4)) }),
        a.storage({ key: a.text('1') }),
      ]),
  ],
  [
    'storage-view-key',
    'the key of a view of another storage',
    () =>
      withStorages([
        a.storage({ view: a.tuple(a.text('2'), a.int(0), a.int(4)) }),
        a.storage({ key: a.text('1'), view: a.tuple(a.text('2'), a.int(0), a.int(4)) }),
      ]),
  ],
  ...['torch', 'torch.storage'].map((module): (typeof ATTACKS)[number] => [
    'legacy-typed',
    `${module}.UntypedStorage`,
    () =>
      fileWith(
        a.tensor({
          by: DTYPE_V3,
          storage: a.storage({ type: a.global(module, 'UntypedStorage'), length: a.int(16) }),
          rest: [a.global('torch', 'float32')],
        }),
      ),
  ]),
  ['tensor-view', 'float64 from byte 4 on', () => fileWith(onView('float64', 1))],
  ['legacy-magic', 'another number', () => a.legacy(a.pickle(a.NONE), [], [], { magic: a.int(7) })],
  ['legacy-magic', 'a text', () => a.legacy(a.pickle(a.NONE), [], [], { magic: a.text('torch') })],
  [
    'legacy-protocol',
    'another protocol',
    () => a.legacy(a.pickle(a.NONE), [], [], { protocol: a.int(1000) }),
  ],
  [
    'legacy-protocol',
    'True',
    () => a.legacy(a.pickle(a.NONE), [], [], { protocol: Buffer.from([a.TRUE]) }),
  ],
  [
    'legacy-system',
    'big-endian',
    () => a.legacy(a.pickle(a.NONE), [], [], { system: a.dict(a.text('little_endian'), a.FALSE) }),
  ],
  [
    'legacy-system',
    'no byte order',
    () => a.legacy(a.pickle(a.NONE), [], [], { system: a.dict() }),
  ],
  ['legacy-keys', 'one missing', () => a.legacy(a.pickle(a.dict(a.text('w'), a.tensor())), [], [])],
  [
    'legacy-keys',
    'one too many',
    () => a.legacy(a.pickle(a.dict(a.text('w'), a.tensor())), ['0', '1'], []),
  ],
  [
    'legacy-keys',
    'one twice',
    () => a.legacy(a.pickle(a.dict(a.text('w'), a.tensor())), ['0', '0'], []),
  ],
  ['legacy-length', 'less than in the object', () => fileWith(a.tensor(), a.legacyData(3n, 12))],
  ['legacy-length', 'negative', () => fileWith(a.tensor(), a.legacyData(-4n, 16))],
  ['legacy-whole', 'inside the values', () => good.subarray(0, -1)],
  ['legacy-whole', 'inside the length', () => good.subarray(0, -17)],
  ['legacy-end', 'a byte too many', () => a.join(good, 0)],
  ['state-dict-missing', 'a list', () => withObject(a.join(a.EMPTY_LIST))],
  ['state-dict-missing', 'no tensors', () => withObject(a.dict(a.text('step'), a.int(1)))],
  [
    'state-dict-missing',
    'a tensor alone',
    () => a.legacy(a.pickle(a.tensor()), ['0'], [a.legacyData(4n, 16)]),
  ],
  [
    'state-dict-missing',
    'tensors in the state of an object',
    () =>
      a.legacy(
        a.pickle(
          a.call(a.global('argparse', 'Namespace')),
          a.dict(a.text('layers.0.w'), a.tensor()),
          a.BUILD,
        ),
        ['0'],
        [a.legacyData(4n, 16)],
      ),
  ],
  ['state-dict-missing', 'nine keys deep', () => withObject(nested(9))],
  [
    'state-dict-key',
    'a name of 65,537 characters',
    () => withObject(a.dict(a.text('w'.repeat(65_537)), a.tensor())),
  ],
  [
    'state-dict-key',
    'an outer key of 65,537 characters',
    () => withObject(a.dict(a.text('k'.repeat(65_537)), a.dict(a.text('w'), a.tensor()))),
  ],
  [
    'state-dict-content',
    '100,001 values',
    () =>
      withObject(
        a.dict(
          ...[a.text('w'), a.tensor()],
          Buffer.concat(numbered(100_001).map((at) => a.join(a.int(at), a.NONE))),
        ),
      ),
  ],
  [
    'state-dict-content',
    '300 names of 60,000 characters',
    () =>
      withObject(
        a.dict(
          a.text('k'.repeat(60_000)),
          a.dict(a.text('w'), a.tensor(), ...numbered(300).flatMap((at) => [a.int(at), a.NONE])),
        ),
      ),
  ],
  ['state-dict-views', '17 views of 2^20 numbers', () => fileOfViews(17)],
  // torch.load keeps a value per key. A program that writes keys as texts keeps one of 0 and '0'.
  ...(
    [
      ['0, next to "0"', a.int(0)],
      ['a number', a.int(7)],
      ['False', a.FALSE],
      ['None', a.NONE],
      ['a float', a.float(1.5)],
      ['a tuple', a.tuple(a.text('0'))],
      ['bytes', a.call(a.global('_codecs', 'encode'), a.text('0'), a.text('latin1'))],
    ] as const
  ).map(([what, key]): (typeof ATTACKS)[number] => [
    'state-dict-names',
    `a tensor under ${what}`,
    () => withObject(a.dict(a.text('0'), a.tensor(), key, a.tensor())),
  ]),
  [
    'state-dict-names',
    'state dicts under 0 and "0"',
    () =>
      withObject(
        a.dict(
          ...[a.int(0), a.dict(a.text('0.w'), a.tensor())],
          ...[a.text('0'), a.dict(a.text('0.w'), a.tensor())],
        ),
      ),
  ],
  [
    'state-dict-many',
    'two models',
    () =>
      a.legacy(
        a.pickle(
          a.dict(
            a.text('a'),
            a.dict(a.text('0.w'), a.tensor()),
            a.text('b'),
            a.dict(a.text('0.w'), a.tensor()),
          ),
        ),
        ['0'],
        [a.legacyData(4n, 16)],
      ),
  ],
];

const numbered = (count: number) => Array.from({ length: count }, (_, at) => at);

/** State dict under `depth` nested keys. */
function nested(depth: number): Buffer {
  const dict = a.dict(a.text('0.w'), a.tensor());
  return numbered(depth).reduce((inner) => a.dict(a.text('k'), inner), dict);
}

/** Legacy file of 25,000 numbers, with `count` tensors of 2^20 elements at different offsets. */
const fileOfViews = (count: number) =>
  a.legacy(
    a.pickle(
      a.dict(
        ...numbered(count).flatMap((at) => [
          a.text(`${at}.w`),
          a.tensor({
            storage: a.storage({ length: a.int(25_000) }),
            offset: a.int(at),
            size: a.tuple(a.int(2 ** 20)),
            stride: a.tuple(a.int(0)),
          }),
        ]),
      ),
    ),
    ['0'],
    [a.legacyData(25_000n, 100_000)],
  );

describe('a PyTorch file', () => {
  it('may have a state dict under eight keys, and expanded tensors of 2^24 elements', () => {
    const deep = a.legacy(a.pickle(nested(8)), ['0'], [a.legacyData(4n, 16)]);
    expect(ruleOfBytes(deep)).toBeUndefined();
    expect(ruleOfBytes(fileOfViews(16))).toBeUndefined();
  });

  it.each(ATTACKS)('is refused by %s: %s', (rule, _, bytes) => {
    expect(ruleOfBytes(bytes())).toBe(rule);
  });

  it('is refused by state-dict-choice: a missing key', () => {
    expect(ruleOfBytes(good)).toBeUndefined();
    expect(ruleOfBytes(good, 'ema')).toBe('state-dict-choice');
  });

  it('is tested against every rule', () => {
    const attacked = new Set<string>([
      ...ATTACKS.map(([rule]) => rule),
      'state-dict-choice',
      ...OF_ARCHIVES,
    ]);
    expect(attacked).toEqual(new Set(Object.keys({ ...TENSOR_RULES, ...STATE_DICT_RULES })));
  });
});

describe('a legacy file', () => {
  const floats = (...values: number[]) => {
    const bytes = Buffer.alloc(4 * values.length);
    for (const [index, value] of values.entries()) bytes.writeFloatLE(value, 4 * index);
    return bytes;
  };
  const fourFloats = a.join(a.u64(4n), floats(1, 2, 3, 4));
  const only = (bytes: Uint8Array) => {
    const { tensors } = readTorchLegacy(fileOf(bytes));
    const [tensor] = tensors.values();
    if (tensor === undefined) throw new Error('no tensor');
    return tensor;
  };
  const valuesOf = (bytes: Uint8Array) => [...new Float32Array(readTensor(only(bytes)).buffer)];

  it.each(['cpu', 'cuda', 'cuda:1', 'mps', 'npu:0', 'xla:0'])(
    'has the values of a storage on %s',
    (location) => {
      const tensor = a.tensor({ storage: a.storage({ location: a.text(location) }) });
      expect(valuesOf(fileWith(tensor, fourFloats))).toEqual([1, 2, 3, 4]);
    },
  );

  it('has its values', () => {
    expect(valuesOf(fileWith(a.tensor(), fourFloats))).toEqual([1, 2, 3, 4]);
  });

  it('returns a transposed tensor in row-major order', () => {
    const transposed = a.tensor({
      size: a.tuple(a.int(2), a.int(2)),
      stride: a.tuple(a.int(1), a.int(2)),
    });
    expect(valuesOf(fileWith(transposed, fourFloats))).toEqual([1, 3, 2, 4]);
  });

  it('returns all elements of an expanded tensor', () => {
    const expanded = a.tensor({
      size: a.tuple(a.int(3), a.int(2)),
      stride: a.tuple(a.int(0), a.int(1)),
      offset: a.int(2),
    });
    expect(valuesOf(fileWith(expanded, fourFloats))).toEqual([3, 4, 3, 4, 3, 4]);
  });

  it('returns the view of a storage', () => {
    const view = a.tensor({
      storage: a.storage({ view: a.tuple(a.text('1'), a.int(1), a.int(3)) }),
      size: a.tuple(a.int(2)),
      offset: a.int(1),
    });
    expect(valuesOf(fileWith(view, fourFloats))).toEqual([3, 4]);
  });

  it.each([
    ['None', a.NONE],
    ['an empty dict', a.dict()],
  ])('may have a tensor with flags that are %s', (_, flags) => {
    expect(valuesOf(fileWith(a.tensor({ rest: [flags] }), fourFloats))).toEqual([1, 2, 3, 4]);
  });

  it.each([
    ['int16', 2, 4, [5, 6, 7, 8]],
    ['int64', 2, 1, [5, 6, 7, 8]],
    ['float64', 1, 0, []],
  ] as const)('may have %s on a view of floats', (dtype, start, count, expected) => {
    const eight = Buffer.from(Int16Array.from([1, 2, 3, 4, 5, 6, 7, 8]).buffer);
    const file = fileWith(onView(dtype, start, count), a.join(a.u64(4n), eight));
    expect([...new Int16Array(readTensor(only(file)).buffer)]).toEqual(expected);
  });

  it('may have a tensor of a dtype on a storage of bytes', () => {
    const typed = a.tensor({
      by: DTYPE_V3,
      storage: BYTES,
      size: a.tuple(a.int(2)),
      rest: [a.global('torch', 'float32'), a.NONE],
    });
    const file = fileWith(typed, a.join(a.u64(16n), floats(1, 2, 3, 4)));
    expect(valuesOf(file)).toEqual([1, 2]);
  });

  it('returns a parameter as its tensor, also an empty one with huge sizes', () => {
    const parameter = a.call(
      a.global('torch._utils', '_rebuild_parameter'),
      a.tensor({
        size: a.tuple(a.int(2n ** 50n), a.int(2n ** 50n), a.int(0)),
        stride: a.tuple(a.int(0), a.int(0), a.int(1)),
      }),
      a.TRUE,
      a.dict(),
    );
    expect(only(fileWith(parameter))).toMatchObject({ elements: 0, bytes: 0 });
    expect(valuesOf(fileWith(parameter))).toEqual([]);
  });

  // torch/_utils.py, _set_obj_state: attributes are set only from what Python takes for true.
  it.each([
    ['None', a.NONE],
    ['False', a.FALSE],
    ['0', a.int(0)],
    ['0.0', a.float(0)],
    ['an empty text', a.text('')],
    ['no bytes', a.call(a.global('_codecs', 'encode'), a.text(''), a.text('latin1'))],
    ['an empty list', a.EMPTY_LIST],
    ['an empty set', a.call(a.global('builtins', 'set'))],
    ['an empty dict', a.dict()],
    ['an empty OrderedDict', a.call(a.global('collections', 'OrderedDict'))],
    ['an empty Counter', a.call(a.global('collections', 'Counter'))],
    ['an empty pair', a.tuple(a.dict(), a.NONE)],
    ['a pair of other empty values', a.tuple(a.EMPTY_LIST, a.EMPTY_TUPLE)],
  ])('returns a parameter with a state of %s as its tensor', (_, state) => {
    expect(valuesOf(fileWith(parameterWithState(state), fourFloats))).toEqual([1, 2, 3, 4]);
  });

  it('may have a tensor that requires gradients, and the same view twice', () => {
    expect(valuesOf(fileWith(a.tensor({ requiresGrad: a.TRUE }), fourFloats))).toEqual([
      1, 2, 3, 4,
    ]);
    const { tensors } = readTorchLegacy(fileOf(twoViews(['1', 2, 2], ['1', 2, 2], ['2', 0, 2])));
    expect([...tensors.values()].map(({ offset }) => offset)).toEqual([2, 2, 0]);
  });

  it('keeps the dict of a Counter unchanged', () => {
    const other = a.tensor({ size: a.tuple(a.int(2)) });
    const bytes = a.legacy(
      a.pickle(
        a.dict(
          a.text('model'),
          a.join(a.dict(a.text('0.w'), a.tensor()), a.put(1)),
          a.text('x'),
          a.join(
            a.EMPTY_LIST,
            a.call(a.global('collections', 'Counter'), a.get(1)),
            a.text('0.w'),
            other,
            a.SETITEM,
            a.APPEND,
          ),
        ),
      ),
      ['0'],
      [fourFloats],
    );
    expect(only(bytes).shape).toEqual([4]);
  });

  it('returns the dict of the layers, and keeps the other entries', () => {
    const bytes = a.legacy(
      a.pickle(
        a.dict(
          a.text('rng'),
          a.tensor(),
          a.text('step'),
          a.int(30),
          a.text('model'),
          a.dict(a.text('layers.0.w'), a.tensor(), a.text('note'), a.text('hi')),
          a.text('optimizer'),
          a.dict(a.text('state'), a.dict(a.int(0), a.dict(a.text('exp_avg'), a.tensor()))),
        ),
      ),
      ['0'],
      [fourFloats],
    );
    const { stateDict, tensors, content } = readTorchLegacy(fileOf(bytes));
    expect(stateDict).toEqual(['model']);
    expect([...tensors.keys()]).toEqual(['layers.0.w']);
    expect([...content.keys()]).toEqual(['model.note', 'rng', 'step', 'optimizer']);
    expect(content.get('step')).toBe(30);
  });

  it('suggests a flag for a choice of state dict, quoted for a shell', () => {
    const two = (first: string, second: string) =>
      a.legacy(
        a.pickle(
          a.dict(
            a.text(first),
            a.dict(a.text('0.w'), a.tensor()),
            a.text(second),
            a.dict(a.text('0.w'), a.tensor()),
          ),
        ),
        ['0'],
        [fourFloats],
      );
    const suggestionOf = (bytes: Uint8Array) => {
      try {
        readTorchLegacy(fileOf(bytes));
      } catch (error) {
        if (error instanceof UserError) return error.problems[0]?.suggestion;
      }
      return undefined;
    };
    expect(suggestionOf(two('model', 'ema'))).toBe('choose one: --state-dict model');
    expect(suggestionOf(two("it's; rm -rf", 'ema'))).toBe(
      "choose one: --state-dict 'it'\\''s; rm -rf'",
    );
    expect(suggestionOf(two('', 'ema'))).toBe("choose one: --state-dict ''");
    const dots = two('a.b', 'c');
    expect(suggestionOf(dots)).toBe("choose one: --state-dict 'a\\.b'");
    expect(readTorchLegacy(fileOf(dots), { stateDict: 'a\\.b' }).stateDict).toEqual(['a.b']);
  });

  it('finds its dict among 2^100 paths', () => {
    // Each dict holds the next one twice: 2^100 paths.
    const shared = Array.from({ length: 100 }, (_, index) =>
      a.join(
        a.int(index),
        a.dict(a.text('a'), a.get(index), a.text('b'), a.get(index)),
        ...[a.put(index + 1), a.SETITEM],
      ),
    );
    const bytes = a.legacy(
      a.pickle(
        ...[a.EMPTY_DICT, a.text('b'), a.dict(a.text('0.w'), a.tensor()), a.put(0), a.SETITEM],
        ...[...shared, a.text('a'), a.get(100), a.SETITEM],
      ),
      ['0'],
      [fourFloats],
    );
    const { tensors, stateDict } = readTorchLegacy(fileOf(bytes));
    expect([tensors.size, stateDict]).toEqual([1, ['b']]);
  });

  it('reports keys that read alike beside its state dict', () => {
    const bytes = a.legacy(
      a.pickle(a.dict(...[a.text('0.w'), a.tensor(), a.int(0), a.int(2), a.text('[0]'), a.int(1)])),
      ['0'],
      [fourFloats],
    );
    expect(readTorchLegacy(fileOf(bytes)).warnings).toEqual([
      'keys that read alike, of which the last is shown: "[0]"',
    ]);
  });

  it('may have untyped bytes and U8 on the same storage', () => {
    const asBytes = a.tensor({
      storage: a.storage({ type: a.global('torch', 'ByteStorage'), length: a.int(16) }),
      size: a.tuple(a.int(16)),
    });
    const asFloats = a.tensor({
      by: DTYPE_V3,
      storage: BYTES,
      rest: [a.global('torch', 'float32')],
    });
    const bytes = a.legacy(
      a.pickle(a.dict(a.text('u'), asBytes, a.text('f'), asFloats)),
      ['0'],
      [a.join(a.u64(16n), floats(1, 2, 3, 4))],
    );
    const { tensors } = readTorchLegacy(fileOf(bytes));
    expect([...tensors.values()].map(({ dtype }) => dtype)).toEqual(['U8', 'F32']);
  });

  it('has the requested state dict', () => {
    const bytes = a.legacy(
      a.pickle(
        a.dict(
          a.text('model'),
          a.dict(a.text('0.w'), a.tensor()),
          a.text('ema'),
          a.dict(a.text('0.v'), a.tensor()),
        ),
      ),
      ['0'],
      [fourFloats],
    );
    expect([...readTorchLegacy(fileOf(bytes), { stateDict: 'ema' }).tensors.keys()]).toEqual([
      '0.v',
    ]);
  });

  it('is refused, or has its tensors in the file, for any value of one byte', () => {
    const whole = fileWith(a.tensor(), fourFloats);
    fc.assert(
      fc.property(fc.nat(whole.length - 1), fc.nat(255), (position, byte) => {
        const bytes = Buffer.from(whole);
        bytes[position] = byte;
        try {
          for (const tensor of readTorchLegacy(fileOf(bytes)).tensors.values()) readTensor(tensor);
        } catch (error) {
          expect(error).toBeInstanceOf(UserError);
        }
      }),
      { numRuns: 500 },
    );
  });
});
