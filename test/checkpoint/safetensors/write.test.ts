import { describe, expect, it } from 'vitest';
import { UserError } from '../../../src/base/errors.js';
import { STORED_DTYPES, type StoredDtype } from '../../../src/base/tensor/dtype.js';
import {
  planSafetensors,
  type TensorHeading,
  writeSafetensors,
} from '../../../src/checkpoint/safetensors/write-safetensors.js';
import { indexOf } from './files.js';
import { DTYPES, inPieces, MemorySink } from './tensors.js';

const heading = (
  name: string,
  dtype: StoredDtype = 'U8',
  shape: readonly number[] = [4],
): TensorHeading => ({ name, dtype, shape });

const headerText = (header: Uint8Array) => Buffer.from(header.subarray(8)).toString();

const errorOf = (tensors: TensorHeading[], metadata?: ReadonlyMap<string, string>) => {
  try {
    planSafetensors(tensors, metadata);
  } catch (error) {
    return error;
  }
  return undefined;
};

describe('planSafetensors', () => {
  it('writes the header and the offsets of each tensor', () => {
    const a = heading('a', 'U8', [3]);
    const b = heading('b', 'F32', []);
    const plan = planSafetensors([a, b], new Map([['head', 'b']]));
    const json =
      '{"__metadata__":{"format":"pt","head":"b"},' +
      '"b":{"dtype":"F32","shape":[],"data_offsets":[0,4]},' +
      '"a":{"dtype":"U8","shape":[3],"data_offsets":[4,7]}}';
    const length = Math.ceil(json.length / 8) * 8;
    expect(headerText(plan.header)).toBe(json.padEnd(length));
    expect(Buffer.from(plan.header).readBigUInt64LE()).toBe(BigInt(length));
    expect(plan.tensors).toEqual([
      { tensor: b, offset: 0, bytes: 4 },
      { tensor: a, offset: 4, bytes: 3 },
    ]);
    expect(plan.fileBytes).toBe(8 + length + 7);
  });

  it('pads every header to a multiple of 8 with at most 7 spaces', () => {
    for (let length = 0; length < 16; length++) {
      const { header } = planSafetensors([heading('x'.repeat(length))]);
      expect(header.length % 8).toBe(0);
      expect(headerText(header)).toMatch(/\} {0,7}$/);
    }
  });

  it('begins each tensor at a multiple of its width, in any order', () => {
    const tensors = DTYPES.map((dtype, i) => heading(`${i}`, dtype, [4]));
    for (const order of [tensors, tensors.toReversed()]) {
      for (const { tensor, offset } of planSafetensors(order).tensors) {
        expect(offset % STORED_DTYPES[tensor.dtype].wordBytes).toBe(0);
      }
    }
  });

  it('writes in the order of dtypes of the safetensors library', () => {
    const { tensors } = planSafetensors(DTYPES.map((dtype) => heading(dtype, dtype)));
    // Version 0.8.0: serialize() iterates backwards over its enumeration of dtypes.
    const order =
      'U64 I64 F64 C64 F32 U32 I32 BF16 F16 U16 I16 F8_E5M2FNUZ F8_E4M3FNUZ F8_E8M0 F8_E4M3 F8_E5M2 I8 U8 ' +
      'F6_E3M2 F6_E2M3 F4 BOOL';
    expect(tensors.map(({ tensor }) => tensor.name).join(' ')).toBe(order);
  });

  it('sorts names by their UTF-8', () => {
    // JavaScript compares UTF-16, in which the emoji comes before U+FFFF.
    const names = ['😀', 'b', '\uffff', 'B', 'é', '10', '9', ''];
    const { tensors } = planSafetensors(names.map((name) => heading(name)));
    expect(tensors.map(({ tensor }) => tensor.name)).toEqual([
      '',
      '10',
      '9',
      'B',
      'b',
      'é',
      '\uffff',
      '😀',
    ]);
  });

  it('does not change the given list', () => {
    const given = [heading('b'), heading('a')];
    planSafetensors(given);
    expect(given.map(({ name }) => name)).toEqual(['b', 'a']);
  });

  it('writes the format pt for any metadata', () => {
    const { header } = planSafetensors(
      [],
      new Map([
        ['a', 'b'],
        ['format', 'tf'],
      ]),
    );
    expect(headerText(header)).toMatch(/^\{"__metadata__":\{"format":"pt","a":"b"\}\} *$/);
  });

  it.each([
    ['C128', heading('a', 'C128'), 'the dtype C128 of the tensor "a"'],
    ['the name of the metadata', heading('__metadata__'), 'a tensor of the name __metadata__'],
    [
      'half a surrogate pair',
      heading('a\ud83d'),
      'the text "a\\ud83d", which has half a surrogate pair',
    ],
    ['half a byte', heading('a', 'F4', [3]), 'the tensor "a", F4 [3]'],
    [
      '65 dimensions',
      heading('a', 'U8', new Array<number>(65).fill(1)),
      /^the tensor "a", U8 \[1, 1/,
    ],
    [
      '2^53 elements',
      heading('a', 'U8', [2 ** 27, 2 ** 26]),
      'the tensor "a", U8 [134217728, 67108864]',
    ],
    ['2^53 bytes', heading('a', 'F64', [2 ** 50]), 'the tensor "a", F64 [1125899906842624]'],
    ['strides of 2^64', heading('a', 'U8', [0, 2 ** 32, 2 ** 32]), /^the tensor "a"/],
    ['a negative size', heading('a', 'U8', [-1]), 'the tensor "a", U8 [-1]'],
    ['a size that is not a number', heading('a', 'U8', [Number.NaN]), 'the tensor "a", U8 [NaN]'],
  ])('refuses %s', (_, tensor, what) => {
    const error = errorOf([tensor]);
    expect(error).toBeInstanceOf(UserError);
    const { message, code, suggestion } = error as UserError;
    expect(code).toBe('usage');
    expect(suggestion).toBe('write a PyTorch file instead');
    const [, text] = /^a safetensors file cannot hold (.*)$/s.exec(message) ?? [];
    expect(text).toEqual(typeof what === 'string' ? what : expect.stringMatching(what));
  });

  it('refuses half a surrogate pair in the metadata', () => {
    expect(errorOf([], new Map([['a', '\udc00']]))).toBeInstanceOf(UserError);
    expect(errorOf([], new Map([['\udc00', 'a']]))).toBeInstanceOf(UserError);
  });

  it('refuses a header of more than 100,000,000 bytes', () => {
    // Each of these characters takes six bytes with its escape.
    const long = '\u0001'.repeat(16_700_000);
    expect(errorOf([], new Map([['a', long]]))).toBeInstanceOf(UserError);
  });

  it('throws a bug for a repeated name', () => {
    const error = errorOf([heading('a', 'F32'), heading('b'), heading('a')]);
    expect(error).toBeInstanceOf(Error);
    expect(error).not.toBeInstanceOf(UserError);
  });
});

describe('writeSafetensors', () => {
  it('writes the header, then the tensors', async () => {
    const sink = new MemorySink();
    const whole = {
      name: 'a',
      dtype: 'U8',
      shape: [5],
      bytes: Uint8Array.of(1, 2, 3, 4, 5),
    } as const;
    const wide = { name: 'b', dtype: 'U16', shape: [1], bytes: Uint8Array.of(6, 7) } as const;
    const tensors = [inPieces(whole, 2), inPieces(wide, 2, true)];
    await writeSafetensors(sink, tensors);
    const { header, fileBytes } = planSafetensors(tensors);
    expect(sink.bytes()).toEqual(Buffer.concat([header, Buffer.of(6, 7, 1, 2, 3, 4, 5)]));
    expect(sink.position).toBe(fileBytes);
  });

  it('writes a file without tensors', async () => {
    const sink = new MemorySink();
    await writeSafetensors(sink, []);
    expect(indexOf(sink.bytes()).tensors.size).toBe(0);
  });

  it.each([
    ['few', 3, 'the tensor "a" of 4 bytes has only 3'],
    ['many', 5, 'the tensor "a" of 4 bytes has at least 5'],
  ])('throws a bug for too %s bytes of a tensor', async (_, length, message) => {
    const sink = new MemorySink();
    const chunks = () => Array.from({ length }, () => Uint8Array.of(0));
    const written = writeSafetensors(sink, [{ ...heading('a'), chunks }]);
    await expect(written).rejects.toThrow(message);
    await expect(written).rejects.not.toBeInstanceOf(UserError);
    expect(sink.position).toBeLessThanOrEqual(planSafetensors([heading('a')]).fileBytes);
  });

  it('stops reading a tensor with too many bytes, and closes its iterator', async () => {
    let isCleanedUp = false;
    function* chunks() {
      try {
        for (;;) yield Uint8Array.of(0);
      } finally {
        isCleanedUp = true;
      }
    }
    await expect(
      writeSafetensors(new MemorySink(), [{ ...heading('a'), chunks }]),
    ).rejects.toThrow();
    expect(isCleanedUp).toBe(true);
  });
});
