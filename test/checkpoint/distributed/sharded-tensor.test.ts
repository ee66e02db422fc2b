import fc from 'fast-check';
import { expect, it } from 'vitest';
import { refuseAt, ruleOf } from '../../../src/checkpoint/checkpoint-rules.js';
import {
  checkCover,
  type PartBox,
  shardedTensor,
  type TensorPart,
} from '../../../src/checkpoint/distributed/sharded-tensor.js';
import { readInChunks, readTensor } from '../../../src/checkpoint/view.js';
import { tensorOf } from '../stored-tensors.js';

/** Cuts a box by a list of pairs: an axis and a position. */
function cut(box: PartBox, cuts: readonly (readonly [number, number])[]): PartBox[] {
  const [first, ...rest] = cuts;
  if (first === undefined) return [box];
  const axis = first[0] % Math.max(1, box.sizes.length);
  const size = box.sizes[axis] ?? 0;
  const at = first[1] % (size + 1);
  const [a, b] = [
    { offsets: box.offsets, sizes: box.sizes.with(axis, at) },
    {
      offsets: box.offsets.with(axis, (box.offsets[axis] ?? 0) + at),
      sizes: box.sizes.with(axis, size - at),
    },
  ];
  return [
    ...cut(
      a,
      rest.filter((_, index) => index % 2 === 0),
    ),
    ...cut(
      b,
      rest.filter((_, index) => index % 2 === 1),
    ),
  ];
}

/** Values of a box of a tensor that counts up. */
function valuesOf(shape: readonly number[], { offsets, sizes }: PartBox): Float32Array {
  const count = sizes.reduce((product, size) => product * size, 1);
  return Float32Array.from({ length: count }, (_, at) => {
    let [rest, element, stride] = [at, 0, 1];
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      const size = sizes[axis] ?? 1;
      element += ((rest % size) + (offsets[axis] ?? 0)) * stride;
      rest = Math.floor(rest / size);
      stride *= shape[axis] ?? 1;
    }
    return element;
  });
}

it('a tensor cut in any way is read correctly, in chunks of any size', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1, maxLength: 4 }),
      fc.array(fc.tuple(fc.nat(3), fc.nat(9)), { maxLength: 12 }),
      fc.integer({ min: 1, max: 5 }),
      async (shape, cuts, chunk) => {
        const boxes = cut({ offsets: shape.map(() => 0), sizes: shape }, cuts);
        checkCover(shape, boxes, refuseAt('file'));
        const parts = boxes.map((box): TensorPart => {
          const values = valuesOf(shape, box);
          return { ...box, values: tensorOf([...values], [...box.sizes]) };
        });
        const expected = valuesOf(shape, { offsets: shape.map(() => 0), sizes: shape });
        const tensor = shardedTensor('file', 'F32', shape, parts);
        expect(new Float32Array(readTensor(tensor).buffer)).toEqual(expected);
        const chunks: Buffer[] = [];
        for await (const piece of readInChunks(tensor, 48 * chunk)) chunks.push(Buffer.from(piece));
        expect(Buffer.concat(chunks).equals(Buffer.from(expected.buffer))).toBe(true);
      },
    ),
    { numRuns: 300 },
  );
});

it('too many parts are refused', () => {
  const boxes = Array.from({ length: 4000 }, (_, column) => ({
    offsets: [0, column],
    sizes: [1, 1],
  }));
  let error: unknown;
  try {
    checkCover([1, 4000], boxes, refuseAt('file'));
  } catch (caught) {
    error = caught;
  }
  expect(ruleOf(error)).toBe('part-count');
});
