import { describe, expect, it } from 'vitest';
import type { StoredDtype } from '../../../src/base/tensor/dtype.js';
import type { Writable } from '../../../src/checkpoint/torch/pickle/writable.js';
import { collectStorages } from '../../../src/checkpoint/torch/pickle/writable.js';
import { bytesOf, dict, list, tensor } from './write-builder.js';

describe('storages', () => {
  const keysOf = (value: Writable) => [...collectStorages(value).values()];

  it('have one key per object, in the order of the tensors', () => {
    const [first, second] = [tensor(), tensor()];
    const view = tensor({ storage: first.storage, shape: [1], strides: [1], offset: 5 });
    const storages = keysOf(dict('dict', ['a', list(first, second)], ['b', view], ['c', tensor()]));
    expect(storages.map(({ key, bytes }) => [key, bytes === first.storage])).toEqual([
      ['0', true],
      ['1', false],
      ['2', false],
    ]);
  });

  it.each<[StoredDtype, string, number]>([
    ['F64', 'DoubleStorage', 3],
    ['F16', 'HalfStorage', 12],
    ['BF16', 'BFloat16Storage', 12],
    ['I64', 'LongStorage', 3],
    ['I32', 'IntStorage', 6],
    ['I16', 'ShortStorage', 12],
    ['I8', 'CharStorage', 24],
    ['U8', 'ByteStorage', 24],
    ['BOOL', 'BoolStorage', 24],
    ['C64', 'ComplexFloatStorage', 3],
    ['U16', 'UntypedStorage', 24],
    ['F8_E5M2', 'UntypedStorage', 24],
    ['F8_E8M0', 'UntypedStorage', 24],
  ])('of %s are a %s of %d', (dtype, name, length) => {
    const [storage] = keysOf(tensor({ dtype, shape: [1], strides: [1] }));
    expect(storage).toMatchObject({ type: { name }, length });
  });

  it('are untyped if tensors of two dtypes share one, or if their bytes are not whole elements', () => {
    const storage = bytesOf(24);
    const [shared] = keysOf(list(tensor({ storage }), tensor({ storage, dtype: 'I32' })));
    expect(shared).toMatchObject({ isTyped: false, length: 24 });
    const [odd] = keysOf(tensor({ storage: bytesOf(25) }));
    expect(odd).toMatchObject({ isTyped: false, length: 25 });
  });

  it('refuse dtypes unknown to PyTorch, with the names of the tensors', () => {
    const packed = (dtype: StoredDtype) => tensor({ dtype, shape: [4], strides: [1] });
    const value = dict('dict', [
      'model',
      dict('dict', ['a.weight', packed('F4')], ['b', tensor()], ['c', list(packed('F6_E2M3'))]),
    ]);
    expect(() => keysOf(value)).toThrow(
      expect.objectContaining({
        code: 'usage',
        message:
          'a PyTorch file cannot hold this: tensor "model.a.weight" has elements of type F4; tensor "model.c.0" has elements of type F6_E2M3',
        suggestion: 'write it as safetensors',
      }),
    );
  });

  it('name at most five tensors in a refusal', () => {
    const all = Array.from({ length: 7 }, () => tensor({ dtype: 'F4' }));
    expect(() => keysOf(list(...all))).toThrow(/tensor "4" has elements of type F4 and 2 more$/);
  });

  it('are found at any depth, and once if they are repeated', () => {
    const leaf = tensor();
    const deep = Array.from({ length: 400 }).reduce<Writable>((inner) => list(inner, inner), leaf);
    expect(keysOf(deep)).toHaveLength(1);
  });
});
