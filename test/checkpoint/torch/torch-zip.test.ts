import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { PickleValue } from '../../../src/checkpoint/torch/pickle/values.js';
import { readTorchZip } from '../../../src/checkpoint/torch/read-torch.js';
import { readTensor } from '../../../src/checkpoint/view.js';
import { fileOf, ruleBrokenBy } from '../byte-files.js';
import { MemorySink } from '../safetensors/tensors.js';
import { tensorOf } from '../stored-tensors.js';
import * as a from './assemble.js';
import { comparable, writeTorch } from './write-builder.js';
import { archive, inFolder } from './zip-builder.js';

const FLOATS = new Uint8Array(Float32Array.of(1, 2, 3, 4).buffer);

/** File with a tensor `w` on storage 0, with `data` as its record. */
const fileWith = (data: Uint8Array | undefined, byteorder = 'little', tensor = a.tensor()) =>
  archive({
    entries: inFolder({
      'data.pkl': a.pickle(a.dict(a.text('w'), tensor)),
      version: '3\n',
      byteorder,
      ...(data && { 'data/0': data }),
    }),
  });

/** Tensor of a dtype on a storage of a class, of `length` elements. */
const typed = (type: Uint8Array, length: number, dtype: string) =>
  a.tensor({
    by: a.global('torch._utils', '_rebuild_tensor_v3'),
    storage: a.storage({ type, length: a.int(length) }),
    rest: [a.global('torch', dtype)],
  });

const ruleOfBytes = (bytes: Uint8Array) => ruleBrokenBy(() => readTorchZip(fileOf(bytes)));

const valuesOf = (bytes: Uint8Array) => {
  const tensor = readTorchZip(fileOf(bytes)).tensors.get('w');
  return tensor && [...new Float32Array(readTensor(tensor).buffer)];
};

describe('a PyTorch archive', () => {
  it('has its values in either byte order', () => {
    expect(valuesOf(fileWith(FLOATS))).toEqual([1, 2, 3, 4]);
    const turned = Buffer.from(FLOATS).swap32();
    expect(valuesOf(fileWith(turned, 'big'))).toEqual([1, 2, 3, 4]);
    const sameWords = typed(a.global('torch', 'IntStorage'), 4, 'float32');
    expect(valuesOf(fileWith(turned, 'big', sameWords))).toEqual([1, 2, 3, 4]);
  });

  it.each([
    ['storage-record', 'no record', fileWith(undefined)],
    ['storage-size', 'a record too short', fileWith(FLOATS.subarray(0, 15))],
    ['storage-size', 'a record too long', fileWith(Buffer.concat([FLOATS, FLOATS]))],
    [
      'storage-id',
      'a view, allowed only in legacy files',
      fileWith(FLOATS, 'little', a.tensor({ storage: a.storage({ view: a.NONE }) })),
    ],
    [
      'tensor-dtype',
      'an untyped storage without a dtype',
      fileWith(
        FLOATS,
        'little',
        a.tensor({
          storage: a.storage({
            type: a.global('torch.storage', 'UntypedStorage'),
            length: a.int(16),
          }),
        }),
      ),
    ],
    [
      'storage-id',
      'another tag',
      fileWith(FLOATS, 'little', a.tensor({ storage: a.storage({ tag: a.text('xstorage') }) })),
    ],
    [
      'storage-id',
      'another class',
      fileWith(
        FLOATS,
        'little',
        a.tensor({ storage: a.storage({ type: a.global('collections', 'OrderedDict') }) }),
      ),
    ],
    [
      'storage-id',
      'a text',
      fileWith(FLOATS, 'little', a.tensor({ storage: a.join(a.text('0'), a.BINPERSID) })),
    ],
    [
      'storage-words',
      'floats on bytes of a big-endian file',
      fileWith(FLOATS, 'big', typed(a.global('torch.storage', 'UntypedStorage'), 16, 'float32')),
    ],
    [
      'storage-words',
      'bytes on floats of a big-endian file',
      fileWith(FLOATS, 'big', typed(a.global('torch', 'FloatStorage'), 4, 'uint8')),
    ],
  ])('is refused by %s: %s', (rule, _, bytes) => {
    expect(ruleOfBytes(bytes)).toBe(rule);
  });
});

/** Values of a pickle: only hashable ones as keys, and floats distinct from integers. */
const values: fc.Memo<PickleValue> = fc.memo((depth) =>
  depth > 1 ? fc.oneof(leaves, branches(depth)) : leaves,
);
const keys = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.integer(),
  fc.bigInt({ min: 2n ** 60n, max: 2n ** 64n - 1n }),
  fc.constant(null),
);
const leaves: fc.Arbitrary<PickleValue> = fc.oneof(
  keys,
  fc.bigInt({ min: 2n ** 60n, max: 2n ** 100n }),
  fc.boolean(),
  fc.uint8Array(),
  fc.double().map((value): PickleValue => ({ kind: 'float', value })),
);
const branches = fc.memo(
  (depth): fc.Arbitrary<PickleValue> =>
    fc.oneof(
      fc
        .array(values(depth - 1), { maxLength: 4 })
        .map((items): PickleValue => ({ kind: 'list', items })),
      fc
        .array(keys, { maxLength: 4 })
        .map((items): PickleValue => ({ kind: 'tuple', items, hashable: true })),
      fc
        .array(keys, { maxLength: 4 })
        .map((items): PickleValue => ({ kind: 'set', type: 'frozenset', items: new Set(items) })),
      fc
        .tuple(
          fc.constantFrom('dict', 'collections.OrderedDict', 'collections.Counter'),
          fc.array(fc.tuple(keys, values(depth - 1)), { maxLength: 4 }),
        )
        .map(([type, entries]): PickleValue => ({ kind: 'dict', type, entries: new Map(entries) })),
      fc.tuple(values(depth - 1), fc.boolean()).map(
        ([state, isReduced]): PickleValue => ({
          kind: 'opaque',
          type: 'argparse.Namespace',
          of: { kind: 'global', module: 'argparse', name: 'Namespace' },
          made: isReduced ? 'reduce' : 'newobj',
          args: { kind: 'tuple', items: [], hashable: true },
          state,
        }),
      ),
      fc.array(keys, { maxLength: 3 }).map(
        (items): PickleValue => ({
          kind: 'dict',
          type: 'collections.defaultdict',
          factory: { kind: 'global', module: 'builtins', name: 'list' },
          entries: new Map(items.map((key) => [key, null])),
        }),
      ),
    ),
);

describe('a written file', () => {
  it('has the same values after reading', async () => {
    await fc.assert(
      fc.asyncProperty(values(4), async (value) => {
        const sink = new MemorySink();
        const entries = new Map<PickleValue, PickleValue>([
          ['w', tensorOf([1, 2])],
          ['extra', value],
        ]);
        await writeTorch(sink, { kind: 'dict', type: 'dict', entries });
        const { content, tensors } = readTorchZip(fileOf(sink.bytes()));
        expect(comparable(content.get('extra'))).toEqual(comparable(value));
        expect([...tensors.keys()]).toEqual(['w']);
      }),
      { numRuns: 300 },
    );
  });
});
