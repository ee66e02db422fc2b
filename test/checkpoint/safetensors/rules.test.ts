import { describe, expect, it } from 'vitest';
import { UserError } from '../../../src/base/errors.js';
import { SAFETENSORS_RULES } from '../../../src/checkpoint/checkpoint-rules.js';
import { fileBytes, header, indexOf, lengthField, member, ruleBrokenBy } from './files.js';

type Attack = readonly [rule: keyof typeof SAFETENSORS_RULES, what: string, bytes: Uint8Array];

const GOOD = header(member('a'));

/** File with the tensor `a` of two bytes, with some fields replaced. */
const withTensor = (fields: Parameters<typeof member>[1], dataBytes = 2) =>
  fileBytes(header(member('a', fields)), dataBytes);

/** The good file with another length field. */
const withLength = (length: bigint) =>
  Buffer.concat([lengthField(length), fileBytes(GOOD, 2).subarray(8)]);

const times = (count: number, text: string) => new Array<string>(count).fill(text).join();

const manyTensors = (count: number) =>
  Array.from(
    { length: count },
    (_, name) => `"${name}":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}`,
  ).join();

const METADATA_KEYS = Array.from({ length: 100_001 }, (_, key) => `"${key}":""`).join();

const ATTACKS: readonly Attack[] = [
  ['st-name-length', 'a name of 65,537 bytes', fileBytes(header(member('n'.repeat(65_537))), 2)],
  [
    'st-name-length',
    'a name of 10,923 escapes',
    fileBytes(header(member('n').replace('n', '\\u006e'.repeat(10_923))), 2),
  ],
  [
    'st-name-length',
    'a key of the metadata of 65,537 bytes',
    fileBytes(header(`"__metadata__":{"${'k'.repeat(65_537)}":""}`)),
  ],
  ['st-length-field', 'an empty file', Buffer.alloc(0)],
  ['st-length-field', 'seven bytes', Buffer.alloc(7)],
  ['st-header-length', 'no header', fileBytes('')],
  ['st-header-length', 'a header of one byte', fileBytes('{')],
  ['st-header-length', '100,000,001 bytes', withLength(100_000_001n)],
  ['st-header-length', '2^32 more than there are', withLength(BigInt(GOOD.length) + 2n ** 32n)],
  ['st-header-length', '2^53 and more', withLength(2n ** 53n + 1n)],
  ['st-header-length', '2^64 − 1', withLength(2n ** 64n - 1n)],
  [
    'st-header-whole',
    'a header one byte longer than the file',
    withLength(BigInt(GOOD.length + 3)),
  ],
  ['st-header-whole', '100,000,000 bytes, but not there', withLength(100_000_000n)],
  ['st-header-whole', 'a length field alone', lengthField(2n)],
  ['st-header-start', 'a space', fileBytes(` ${GOOD}`, 2)],
  ['st-header-start', 'a line feed', fileBytes(`\n${GOOD}`, 2)],
  ['st-header-start', 'a byte order mark', fileBytes(`\ufeff${GOOD}`, 2)],
  ['st-header-start', 'a list', fileBytes('[]')],
  [
    'st-header-utf8',
    'an invalid byte',
    fileBytes(Buffer.from(GOOD.replace('a', '\xff'), 'latin1'), 2),
  ],
  [
    'st-header-utf8',
    'a letter in two bytes',
    fileBytes(Buffer.from(GOOD.replace('a', '\xc1\xa1'), 'latin1'), 2),
  ],
  [
    'st-header-utf8',
    'half a surrogate pair',
    fileBytes(Buffer.from(GOOD.replace('a', '\xed\xa0\x80'), 'latin1'), 2),
  ],
  ...(
    [
      ['a comma after the last tensor', GOOD.replace(/}$/, ',}')],
      ['a comma after the last field', GOOD.replace('}}', ',}}')],
      ['a comma alone', '{,}'],
      ['no comma between fields', GOOD.replace(',"shape"', '"shape"')],
      ['no comma between sizes', GOOD.replace('[2]', '[2 1]')],
      ['two commas', GOOD.replace(',"shape"', ',,"shape"')],
      ['no colon', GOOD.replace(':{', '{')],
      ['an equals sign', GOOD.replace(':{', '={')],
      ['a comment', GOOD.replace(/}$/, '/**/}')],
      ['single quotes', GOOD.replaceAll('"', "'")],
      ['a name without quotes', GOOD.replace('"a"', 'a')],
      ['a number as a name', GOOD.replace('"a"', '1')],
      ['no-break space', GOOD.replace(':{', ':\u00a0{')],
      ['a form feed between tokens', GOOD.replace(':{', ':\f{')],
      ['the last brace cut off', GOOD.slice(0, -1)],
      ['all braces cut off', GOOD.slice(0, -2)],
      ['a string without its end', '{"a'],
      ['a string that ends in a backslash', '{"a\\'],
      ['a string that ends in an escaped quote', '{"a\\"'],
      ['a bracket of the other kind', GOOD.replace('[2]', '[2}')],
      ['a tab in a name', GOOD.replace('"a"', '"a\tb"')],
      ['a NUL in a name', GOOD.replace('"a"', '"\0"')],
      ['a line feed after an escape', GOOD.replace('"a"', '"\\n\n"')],
      ['an unknown escape', GOOD.replace('"a"', '"\\x61"')],
      ['a short escape', GOOD.replace('"a"', '"\\u61"')],
      ['an escape that is not a number', GOOD.replace('"a"', '"\\u00g1"')],
      ['a hexadecimal number', GOOD.replace('[2]', '[0x2]')],
      ['null for a tensor', '{"a":null}'],
      ['a list for a tensor', '{"a":["U8",[2],[0,2]]}'],
      ['200,000 lists for a tensor', `{"a":${'['.repeat(200_000)}`],
      ['null for a dtype', GOOD.replace('"U8"', 'null')],
      ['a number for a dtype', GOOD.replace('"U8"', '8')],
      ['a number for a shape', GOOD.replace('[2]', '2')],
      ['null for a shape', GOOD.replace('[2]', 'null')],
      ['null for the offsets', GOOD.replace('[0,2]', 'null')],
      ['null for the metadata', header('"__metadata__":null', member('a'))],
      ['a list for the metadata', header('"__metadata__":[]', member('a'))],
      ['a number in the metadata', header('"__metadata__":{"step":1}', member('a'))],
      ['null in the metadata', header('"__metadata__":{"step":null}', member('a'))],
      ['an object in the metadata', header('"__metadata__":{"step":{}}', member('a'))],
    ] as const
  ).map(([what, text]): Attack => ['st-header-json', what, fileBytes(text, 2)]),
  ...[
    '\\ud83d',
    '\\ude00',
    '\\ude00\\ud83d',
    '\\ud83d\\ud83d\\ude00',
    '\\ud83dx',
    '\\uD83D\\n',
  ].map((name): Attack => ['st-surrogate', name, fileBytes(GOOD.replace('"a"', `"${name}"`), 2)]),
  ...[
    ...[
      '2.0',
      '2e0',
      '2E0',
      '20e-1',
      '02',
      '+2',
      '-2',

      '2.',
      'NaN',
      'Infinity',
      '-Infinity',
    ],
    ...['"2"', 'true', 'null', '[2]', '{}', '٢', '9007199254740992', '18446744073709551618'],
    `2${'0'.repeat(400)}`,
  ].map(
    (size): Attack => [
      'st-integer',
      `the size ${size.slice(0, 30)}`,
      withTensor({ shape: `[${size}]` }),
    ],
  ),
  ...['-0', '0.0', '00', '-1', '9007199254740992'].map(
    (begin): Attack => [
      'st-integer',
      `the offset ${begin}`,
      withTensor({ offsets: `[${begin},2]` }),
    ],
  ),
  ['st-integer', 'a comma after the last size', withTensor({ shape: '[2,]' })],
  ['st-integer', '200,000 lists for a shape', withTensor({ shape: '['.repeat(200_000) })],
  ['st-integer', 'a size of -0', withTensor({ shape: '[-0]', offsets: '[0,0]' }, 0)],
  ...['\n', '\t', '\0', 'x', '{}', '}', ','].map(
    (tail): Attack => ['st-padding', JSON.stringify(tail), fileBytes(`${GOOD}  ${tail}`, 2)],
  ),
  ['st-tensors', '100,001 tensors in a small file', fileBytes(`{${manyTensors(100_001)}}`)],
  ['st-tensors', '200,001 tensors', fileBytes(`{${manyTensors(200_001)}}${' '.repeat(8e6)}`)],
  ['st-name-twice', 'the same entry', fileBytes(header(member('a'), member('a')), 2)],
  [
    'st-name-twice',
    'another entry',
    fileBytes(header(member('a'), member('a', { offsets: '[2,4]' })), 4),
  ],
  [
    'st-name-twice',
    'not one after the other',
    fileBytes(header(member('a'), member('b', { offsets: '[2,4]' }), member('a')), 4),
  ],
  [
    'st-name-twice',
    'once with an escape',
    fileBytes(`{${member('a')},${member('a').replace('"a"', '"\\u0061"')}}`, 2),
  ],
  [
    'st-name-twice',
    'the metadata',
    fileBytes(header('"__metadata__":{}', '"__metadata__":{}', member('a')), 2),
  ],
  [
    'st-name-twice',
    'the metadata, once with an escape',
    fileBytes(header('"__metadata__":{}', member('a'), '"__metadata\\u005f_":{}'), 2),
  ],
  ['st-metadata-twice', 'plain', fileBytes('{"__metadata__":{"a":"1","a":"1"}}')],
  [
    'st-metadata-twice',
    'once with an escape',
    fileBytes('{"__metadata__":{"a":"1","\\u0061":"2"}}'),
  ],
  ['st-metadata-size', '100,001 keys', fileBytes(`{"__metadata__":{${METADATA_KEYS}}}`)],
  ['st-field-twice', 'dtype', fileBytes(GOOD.replace('"dtype"', '"dtype":"U8","dtype"'), 2)],
  ['st-field-twice', 'an empty shape', fileBytes(GOOD.replace('"shape"', '"shape":[],"shape"'), 2)],
  [
    'st-field-twice',
    'data_offsets, once with an escape',
    fileBytes(GOOD.replace('"shape"', '"data\\u005foffsets":[0,2],"shape"'), 2),
  ],
  ['st-field-unknown', '200,000 objects, one in the other', fileBytes('{"a":'.repeat(200_000))],
  ['st-field-unknown', 'strides', fileBytes(GOOD.replace('"shape"', '"strides":[1],"shape"'), 2)],
  [
    'st-field-unknown',
    '__proto__',
    fileBytes(GOOD.replace('"shape"', '"__proto__":{},"shape"'), 2),
  ],
  ['st-field-unknown', 'the same in capitals', fileBytes(GOOD.replace('"dtype"', '"DType"'), 2)],
  ['st-field-missing', 'dtype', fileBytes('{"a":{"shape":[2],"data_offsets":[0,2]}}', 2)],
  ['st-field-missing', 'shape', fileBytes('{"a":{"dtype":"U8","data_offsets":[0,2]}}', 2)],
  ['st-field-missing', 'data_offsets', fileBytes('{"a":{"dtype":"U8","shape":[2]}}', 2)],
  ['st-field-missing', 'all of them', fileBytes('{"a":{}}')],
  ...['f32', 'float32', 'F8_E4M3FN', 'I4', '', ' U8', 'constructor', '__proto__'].map(
    (dtype): Attack => [
      'st-dtype',
      JSON.stringify(dtype),
      withTensor({ dtype: JSON.stringify(dtype) }),
    ],
  ),
  [
    'st-dtype',
    'C128, which only PyTorch has',
    withTensor({ dtype: '"C128"', shape: '[1]', offsets: '[0,16]' }, 16),
  ],
  ['st-rank', '65 dimensions', withTensor({ shape: `[${times(64, '1')},2]` })],
  [
    'st-elements',
    '2^53',
    withTensor({ shape: '[4503599627370496,2]', offsets: '[0,9007199254740991]' }),
  ],
  ['st-elements', '2^64', withTensor({ shape: '[4294967296,4294967296]', offsets: '[0,0]' }, 0)],
  [
    'st-elements',
    'infinitely many',
    withTensor({ shape: `[${times(64, '9007199254740991')}]`, offsets: '[0,0]' }, 0),
  ],
  [
    'st-elements',
    'none, but strides beyond 2^53',
    withTensor({ shape: '[0,4294967296,4294967296]', offsets: '[0,0]' }, 0),
  ],
  [
    'st-elements',
    'none, with the zero last',
    withTensor({ shape: '[4294967296,4294967296,0]', offsets: '[0,0]' }, 0),
  ],
  ['st-bytes', 'three values of 4 bits', withTensor({ dtype: '"F4"', shape: '[3]' })],
  ['st-bytes', 'two values of 6 bits', withTensor({ dtype: '"F6_E2M3"', shape: '[2]' })],
  ['st-bytes', 'half a byte too many', withTensor({ dtype: '"F4"', shape: '[5]' })],
  ['st-bytes', '2^53 bytes', withTensor({ dtype: '"F64"', shape: '[1125899906842624]' })],
  ['st-offsets', 'none', withTensor({ offsets: '[]' })],
  ['st-offsets', 'one', withTensor({ offsets: '[0]' })],
  ['st-offsets', 'three', withTensor({ offsets: '[0,2,2]' })],
  ['st-span', 'a byte too many', withTensor({ offsets: '[0,3]' }, 3)],
  ['st-span', 'a byte too few', withTensor({ offsets: '[0,1]' }, 1)],
  ['st-span', 'the end before the beginning', withTensor({ offsets: '[2,0]' })],
  ['st-span', 'a wider dtype', withTensor({ dtype: '"U16"' })],
  ['st-span', 'bytes for no elements', withTensor({ shape: '[0]' })],
  ['st-span', 'no bytes for a scalar', withTensor({ shape: '[]', offsets: '[0,0]' }, 0)],
  ['st-tiling', 'a hole at the beginning', withTensor({ offsets: '[1,3]' }, 3)],
  ['st-tiling', 'a hole', fileBytes(header(member('a'), member('b', { offsets: '[3,5]' })), 5)],
  ['st-tiling', 'an overlap', fileBytes(header(member('a'), member('b', { offsets: '[1,3]' })), 3)],
  ['st-tiling', 'the same bytes twice', fileBytes(header(member('a'), member('b')), 2)],
  [
    'st-tiling',
    'a hole, out of order',
    fileBytes(header(member('b', { offsets: '[3,5]' }), member('a')), 5),
  ],
  [
    'st-tiling',
    'an empty tensor within another',
    fileBytes(header(member('a'), member('z', { shape: '[0]', offsets: '[1,1]' })), 2),
  ],
  [
    'st-tiling',
    'an empty tensor after the end',
    fileBytes(header(member('a'), member('z', { shape: '[0]', offsets: '[3,3]' })), 2),
  ],
  [
    'st-tiling',
    'offsets where numbers are rounded',
    withTensor({ offsets: '[9007199254740989,9007199254740991]' }),
  ],
  ['st-data-end', 'a byte too many', withTensor({}, 3)],
  ['st-data-end', 'a byte too few', withTensor({}, 1)],
  ['st-data-end', 'no data', withTensor({}, 0)],
  ['st-data-end', 'data of no tensor', fileBytes('{}', 1)],
];

describe('a safetensors file', () => {
  it.each(ATTACKS)('is refused by %s: %s', (rule, _, bytes) =>
    expect(ruleBrokenBy(bytes)).toBe(rule),
  );

  it('is tested against every rule', () => {
    const exercised = new Set(ATTACKS.map(([rule]) => rule));
    expect([...exercised].sort()).toEqual(Object.keys(SAFETENSORS_RULES).sort());
  });

  it('is read if it follows all rules', () =>
    expect(ruleBrokenBy(fileBytes(GOOD, 2))).toBeUndefined());
});

describe('a refusal', () => {
  const problemOf = (bytes: Uint8Array) => {
    try {
      indexOf(bytes);
    } catch (error) {
      return error instanceof UserError ? error.problems[0] : error;
    }
    return undefined;
  };

  it.each([
    [
      fileBytes(GOOD.replace('"U8"', 'NaN'), 2),
      { path: 'header byte 14', message: 'expected a string, found "NaN"' },
    ],
    [
      fileBytes('{"a'),
      { path: 'header byte 3', message: 'expected a closing quote, found the end of the header' },
    ],
    [
      fileBytes('{"\\x"}'),
      {
        path: 'header byte 1',
        message: 'the string has a bare control character, or an escape that JSON does not know',
      },
    ],
    [
      fileBytes('{"é":{"dtype":"U8"},'),
      { path: 'tensor "é"', message: 'lacks shape and data_offsets' },
    ],
    [
      withTensor({ shape: '[3,4294967296,4294967296]' }),
      {
        path: 'tensor "a"',
        message:
          'the sizes of the shape [3, 4294967296, 4294967296] multiply to more than 2^53 − 1',
      },
    ],
    [
      withTensor({ shape: '[3]' }),
      {
        path: 'tensor "a"',
        message: 'U8 [3] takes 3 bytes, but the offsets 0 to 2 span 2',
      },
    ],
    [
      fileBytes(header(member('a'), member('b', { offsets: '[3,5]' })), 5),
      {
        path: 'tensor "b"',
        message: 'begins at offset 3, expected 2: 1 byte before it belong to no tensor',
      },
    ],
    [
      fileBytes(header(member('a'), member('b', { offsets: '[1,3]' })), 3),
      {
        path: 'tensor "b"',
        message: 'begins at offset 1, expected 2: it overlaps the one before it',
      },
    ],
    [
      withTensor({}, 1),
      {
        path: `byte ${8 + GOOD.length + 1}`,
        message: 'the file ends here, 1 byte before its last tensor does',
        suggestion: 'copy or download the file again',
      },
    ],
    [
      withTensor({}, 5),
      {
        path: `byte ${8 + GOOD.length + 2}`,
        message: 'the last tensor ends here, but the file goes on for 3 bytes',
      },
    ],
    [
      fileBytes(header(member('x'.repeat(1000), { dtype: '"X"' }))),
      { path: `tensor "${'x'.repeat(200)}…"` },
    ],
  ])('names position and reason (case %#)', (bytes, problem) => {
    expect(problemOf(bytes)).toMatchObject({ severity: 'error', ...problem });
  });
});
