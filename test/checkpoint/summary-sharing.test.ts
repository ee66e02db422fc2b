import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bytesOfViews, sharingsOf, viewsOf } from '../../src/checkpoint/sharing.js';
import { isSameView } from '../../src/checkpoint/stored-tensor.js';
import { storageOf, tensorIn } from './stored-tensors.js';

const storage = storageOf(new Uint8Array(64));
const another = storageOf(new Uint8Array(64));

describe('viewsOf', () => {
  it('lists each tensor once, with its names in the order of the file', () => {
    const views = viewsOf(
      new Map([
        ['embed', tensorIn(storage, [2, 4])],
        ['norm', tensorIn(another, [2, 4])],
        ['head', tensorIn(storage, [2, 4])],
      ]),
    );
    expect(views.map(({ names }) => names)).toEqual([['embed', 'head'], ['norm']]);
    expect(bytesOfViews(views)).toBe(64);
  });

  it('groups exactly the views that are equal by isSameView', () => {
    const tensor = fc
      .record({
        layout: fc.constantFrom(
          { shape: [2, 4], strides: [4, 1] },
          { shape: [2, 4], strides: [1, 2] },
          { shape: [4, 2], strides: [1, 2] },
          { shape: [8], strides: [1] },
          { shape: [1, 8], strides: [8, 1] },
        ),
        offset: fc.constantFrom(0, 1, 11),
        dtype: fc.constantFrom('F32', 'I32', 'F16'),
        storage: fc.constantFrom(storage, another),
      })
      .map(({ layout: { shape, strides }, ...given }) =>
        tensorIn(given.storage, shape, { strides, ...given }),
      );
    fc.assert(
      fc.property(tensor, tensor, (a, b) => {
        const views = viewsOf(
          new Map([
            ['a', a],
            ['b', b],
          ]),
        );
        expect(views.length).toBe(isSameView(a, b) ? 1 : 2);
      }),
    );
  });
});

describe('sharingsOf', () => {
  const sharings = (tensors: Parameters<typeof viewsOf>[0]) => sharingsOf(viewsOf(tensors));

  it('reports several names for one tensor', () => {
    const tied = tensorIn(storage, [3], { offset: 1 });
    const tensors = new Map([
      ['a', tied],
      ['b', tensorIn(another, [3])],
      ['c', { ...tied }],
    ]);
    expect(sharings(tensors)).toEqual([{ kind: 'same', names: ['a', 'c'], bytes: 12 }]);
  });

  it('reports tensors that overlap, in chains, but not neighbours', () => {
    const at = (offset: number, length: number) => tensorIn(storage, [length], { offset });
    const tensors = new Map([
      ['third', at(5, 3)],
      ['first', at(0, 4)],
      ['second', at(3, 3)],
      ['neighbour', at(8, 2)],
      ['elsewhere', tensorIn(another, [16])],
    ]);
    expect(sharings(tensors)).toEqual([
      { kind: 'overlapping', names: ['first', 'second', 'third'], bytes: 32 },
    ]);
  });

  it('uses the range of strides', () => {
    const columns = (offset: number) => tensorIn(storage, [3, 2], { strides: [4, 1], offset });
    const tensors = new Map([
      ['left', columns(0)],
      ['right', columns(2)],
    ]);
    expect(sharings(tensors)).toEqual([
      { kind: 'overlapping', names: ['left', 'right'], bytes: 48 },
    ]);
  });

  it('measures in bytes, for every dtype', () => {
    const tensors = new Map([
      ['halves', tensorIn(storage, [4], { dtype: 'F16', offset: 4 })],
      ['doubles', tensorIn(storage, [1], { dtype: 'F64', offset: 2 })],
      ['packed', tensorIn(storage, [2], { dtype: 'F4', offset: 14 })],
    ]);
    expect(sharings(tensors)).toEqual([]);
  });

  it('ignores empty tensors', () => {
    const empty = tensorIn(storage, [0]);
    const tensors = new Map([
      ['a', empty],
      ['b', empty],
      ['c', tensorIn(storage, [1])],
    ]);
    expect(sharings(tensors)).toEqual([]);
  });

  it('reports a tensor with several names as same and as overlapping', () => {
    const tied = tensorIn(storage, [4]);
    const tensors = new Map([
      ['a', tied],
      ['b', tied],
      ['c', tensorIn(storage, [2], { offset: 3 })],
    ]);
    expect(sharings(tensors)).toEqual([
      { kind: 'same', names: ['a', 'b'], bytes: 16 },
      { kind: 'overlapping', names: ['a', 'b', 'c'], bytes: 20 },
    ]);
  });
});
