import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  bytesIn,
  DTYPE_NAMES,
  DTYPES,
  elementCount,
  parseDtype,
  shapeText,
} from '../../../src/base/tensor/dtype.js';

describe('elementCount', () => {
  it('is the exact product, or undefined beyond 2^53 − 1', () => {
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 2 ** 31 - 1 }), { maxLength: 4 }), (shape) => {
        const exact = shape.reduce((product, size) => product * BigInt(size), 1n);
        const partial = shape.map((_, n) =>
          shape.slice(0, n + 1).reduce((product, size) => product * BigInt(size), 1n),
        );
        const fits = partial.every((product) => product <= BigInt(Number.MAX_SAFE_INTEGER));
        expect(elementCount(shape)).toBe(fits ? Number(exact) : undefined);
      }),
    );
  });

  it('handles scalars, empty tensors and invalid sizes', () => {
    expect(elementCount([])).toBe(1);
    expect(elementCount([0, 7])).toBe(0);
    expect(elementCount([2 ** 53])).toBeUndefined();
    expect(elementCount([-1])).toBeUndefined();
    expect(elementCount([1.5])).toBeUndefined();
  });

  it('has shapes printed as in PyTorch', () => expect(shapeText([1, 2, 3])).toBe('[1, 2, 3]'));
});

describe('a dtype', () => {
  it('is packed when it is narrow', () => {
    expect(bytesIn(5, 'i4')).toBe(3);
    expect(bytesIn(5, 'bf16')).toBe(10);
    expect(bytesIn(5, 'f64')).toBe(40);
  });

  it('can be written by its usual names, in any case', () => {
    for (const name of DTYPE_NAMES) {
      expect(parseDtype(name.toUpperCase())).toBe(name);
      for (const alias of DTYPES[name].aliases) expect(parseDtype(alias)).toBe(name);
    }
    expect(parseDtype('float99')).toBeUndefined();
    expect(parseDtype('__proto__')).toBeUndefined();
  });
});
