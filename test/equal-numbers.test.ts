import { describe, expect, it } from 'vitest';
import { equalNumbers } from './equal-numbers.js';

/** A NaN with other bits than the usual one. */
const otherNaN = () => new Float32Array(Uint32Array.of(0x7fc0_0001).buffer);
const holes: number[] = [1];
holes[2] = 3;

describe('values with many numbers', () => {
  it.each<[what: string, a: unknown, b: unknown]>([
    ['bytes', Uint8Array.of(1, 2), Uint8Array.of(1, 2)],
    ['a part of a buffer', Buffer.from('abc').subarray(1), Buffer.from('bc')],
    ['floats', Float32Array.of(1.5, Number.NaN), Float32Array.of(1.5, Number.NaN)],
    ['a list of numbers', [1, Number.NaN, -0], [1, Number.NaN, -0]],
  ])('are equal at once: %s', (_, a, b) => {
    expect(equalNumbers(a, b)).toBe(true);
    expect(a).toStrictEqual(b);
  });

  it.each<[what: string, a: unknown, b: unknown]>([
    ['another byte', Uint8Array.of(1, 2), Uint8Array.of(1, 3)],
    ['more bytes', Uint8Array.of(1, 2), Uint8Array.of(1, 2, 0)],
    ['another type of bytes', Uint8Array.of(1, 2), Int8Array.of(1, 2)],
    ['another zero', Float32Array.of(0), Float32Array.of(-0)],
    ['another number', [1, 2], [1, 3]],
    ['another zero in a list', [0], [-0]],
    ['a shorter list', [1, 2], [1]],
    ['a list with a hole', holes, [1, undefined, 3]],
    ['a list with a name', Object.assign([1], { unit: 's' }), [1]],
    ['another type of list', new (class Numbers extends Array<number> {})(2).fill(1), [1, 1]],
  ])('are not equal: %s', (_, a, b) => {
    expect(equalNumbers(a, b)).toBeUndefined();
    expect(equalNumbers(b, a)).toBeUndefined();
    expect(a).not.toStrictEqual(b);
  });

  it('may be equal with other bits', () => {
    expect(equalNumbers(otherNaN(), Float32Array.of(Number.NaN))).toBeUndefined();
    expect(otherNaN()).toEqual(Float32Array.of(Number.NaN));
  });
});
