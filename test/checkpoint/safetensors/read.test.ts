import { describe, expect, it } from 'vitest';
import { STORED_DTYPES } from '../../../src/base/tensor/dtype.js';
import { readSafetensors } from '../../../src/checkpoint/safetensors/read-safetensors.js';
import { readTensor } from '../../../src/checkpoint/view.js';
import { fileBytes, header, indexOf, member, withFile } from './files.js';

const names = (text: string, dataBytes = 0) => [
  ...indexOf(fileBytes(text, dataBytes)).tensors.keys(),
];

describe('readSafetensors', () => {
  it('returns the position of each tensor', () => {
    const text = header(
      member('a', { dtype: '"BF16"', shape: '[2,3]', offsets: '[0,12]' }),
      member('b', { dtype: '"I64"', shape: '[]', offsets: '[12,20]' }),
    );
    withFile(fileBytes(text, 20), (file) => {
      const { tensors, ...rest } = readSafetensors(file);
      expect(rest).toEqual({
        format: 'safetensors',
        aliases: new Map(),
        metadata: new Map(),
        stateDict: [],
        content: new Map(),
        warnings: [],
      });
      const dataPosition = 8 + text.length;
      expect(tensors.get('a')).toEqual({
        kind: 'tensor',
        dtype: 'BF16',
        shape: [2, 3],
        elements: 6,
        strides: [3, 1],
        offset: 0,
        storage: { file, position: dataPosition, bytes: 12, isBigEndian: false },
        bytes: 12,
      });
      expect(tensors.get('b')).toEqual({
        kind: 'tensor',
        dtype: 'I64',
        shape: [],
        elements: 1,
        strides: [],
        offset: 0,
        storage: { file, position: dataPosition + 12, bytes: 8, isBigEndian: false },
        bytes: 8,
      });
    });
  });

  it('finds the bytes, aligned or not', () => {
    const text = header(
      member('b', { offsets: '[2,4]' }),
      member('a', { dtype: '"U16"', shape: '[1]', offsets: '[0,2]' }),
    );
    for (const padding of ['', ' ', '       ']) {
      const bytes = fileBytes(text + padding, 4);
      bytes.set([1, 2, 3, 4], bytes.length - 4);
      withFile(bytes, (file) => {
        const { tensors } = readSafetensors(file);
        const read = [...tensors].map(([name, tensor]) => [name, [...readTensor(tensor)]]);
        expect(read).toEqual([
          ['b', [3, 4]],
          ['a', [1, 2]],
        ]);
      });
    }
  });

  it('supports every dtype except C128', () => {
    for (const [dtype, { bits }] of Object.entries(STORED_DTYPES)) {
      if (dtype === 'C128') continue;
      const bytes = bits; // eight values
      const fields = { dtype: `"${dtype}"`, shape: '[8]', offsets: `[0,${bytes}]` };
      const { tensors } = indexOf(fileBytes(header(member('a', fields)), bytes));
      expect(tensors.get('a')).toMatchObject({ dtype, elements: 8, bytes });
    }
  });

  it('keeps the order of the header', () => {
    const empty = { shape: '[0]', offsets: '[0,0]' };
    const odd = ['b', '10', '9', '', 'a', '__proto__', '0', 'constructor', '😀', 'é\u0000"\\'];
    expect(names(header(...odd.map((name) => member(name, empty))))).toEqual(odd);
  });

  it('reads names with escapes', () => {
    const empty = '{"dtype":"U8","shape":[0],"data_offsets":[0,0]}';
    const literals = [
      '\\u0061',
      '\\ud83d\\ude00',
      '\\"\\\\\\/\\b\\f\\n\\r\\t',
      'é\\u00E9',
      '\\u2028',
    ];
    const text = `{${literals.map((literal) => `"${literal}":${empty}`).join()}}`;
    expect(names(text)).toEqual(['a', '😀', '"\\/\b\f\n\r\t', 'éé', '\u2028']);
  });

  it('distinguishes short names', () => {
    const short = Array.from({ length: 5000 }, (_, i) => i.toString(7));
    expect(
      names(header(...short.map((name) => member(name, { shape: '[0]', offsets: '[0,0]' })))),
    ).toEqual(short);
  });

  it('allows blanks wherever JSON does, and fields in any order', () => {
    const text =
      '{\n "a"\t:\r\n{ "data_offsets" : [ 0 , 2 ] ,\n"shape":[ 2 ],"dtype":"U8" } \n}   ';
    expect(indexOf(fileBytes(text, 2)).tensors.get('a')).toMatchObject({ dtype: 'U8', shape: [2] });
  });

  it('allows escapes in the names of fields and dtypes', () => {
    const text = '{"a":{"\\u0064type":"U\\u0038","shape":[2],"data\\u005foffsets":[0,2]}}';
    expect(indexOf(fileBytes(text, 2)).tensors.get('a')).toMatchObject({ dtype: 'U8' });
  });

  it.each([
    ['no tensors', '{}', 0],
    ['metadata alone', '{"__metadata__":{}}', 0],
    [
      'an empty list of sizes with blanks',
      header(member('a', { shape: '[ ]', offsets: '[0,1]' })),
      1,
    ],
    ['64 dimensions', header(member('a', { shape: `[${'1,'.repeat(63)}2]` })), 2],
    [
      'no elements in a huge shape',
      header(member('a', { shape: '[0,9007199254740991]', offsets: '[0,0]' })),
      0,
    ],
    ['100,000 bytes of padding', `${header(member('a'))}${' '.repeat(100_000)}`, 2],
    [
      'long names',
      header(member('x'.repeat(65_536)), member('é'.repeat(32_768), { offsets: '[2,4]' })),
      4,
    ],
  ])('accepts %s', (_, text, dataBytes) => {
    expect(() => indexOf(fileBytes(text, dataBytes))).not.toThrow();
  });

  it('accepts tensors without bytes before, between and after others, in any order', () => {
    const nothing = (at: number) => ({ shape: '[3,0]', offsets: `[${at},${at}]` });
    const text = header(
      member('end', nothing(4)),
      member('b', { offsets: '[2,4]' }),
      member('between', nothing(2)),
      member('a'),
      member('begin', nothing(0)),
      member('begin too', nothing(0)),
    );
    expect(names(text, 4)).toEqual(['end', 'b', 'between', 'a', 'begin', 'begin too']);
  });

  it('accepts 40,000 tensors without bytes', () => {
    const empty = { shape: '[0]', offsets: '[0,0]' };
    const many = Array.from({ length: 40_000 }, (_, i) => member(`t${i}`, empty));
    expect(names(header(...many))).toHaveLength(40_000);
  });

  it('returns separate storages, even for two tensors at the same position', () => {
    const nothing = { shape: '[0]', offsets: '[0,0]' };
    const { tensors } = indexOf(fileBytes(header(member('a', nothing), member('b', nothing))));
    expect(tensors.get('a')?.storage).not.toBe(tensors.get('b')?.storage);
  });

  it('does not read the data', () => {
    const text = header(member('a', { shape: '[1000000]', offsets: '[0,1000000]' }));
    withFile(fileBytes(text, 1_000_000), (file) => {
      const reads: [number, number][] = [];
      const watched = new Proxy(file, {
        get(target, key) {
          if (key === 'read') {
            return (position: number, length: number) => {
              reads.push([position, length]);
              return target.read(position, length);
            };
          }
          return Reflect.get(target, key, target);
        },
      });
      readSafetensors(watched);
      expect(reads).toEqual([
        [0, 8],
        [8, text.length],
      ]);
    });
  });
});

describe('metadata', () => {
  const read = (metadata: Record<string, string>, ...tensors: string[]) => {
    const entries = tensors.map((name) => member(name, { shape: '[0]', offsets: '[0,0]' }));
    return indexOf(fileBytes(header(...entries, `"__metadata__":${JSON.stringify(metadata)}`)));
  };

  it('is read with all its keys', () => {
    const text = '{"__metadata__":{"__proto__":"a","0":"","format":"pt","é":"\\u0000"}}';
    expect([...indexOf(fileBytes(text)).metadata]).toEqual([
      ['__proto__', 'a'],
      ['0', ''],
      ['format', 'pt'],
      ['é', '\0'],
    ]);
  });

  it('may have 100,000 keys', () => {
    const metadata = Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`k${i}`, '']));
    expect(read(metadata).metadata.size).toBe(100_000);
  });

  it('has the aliases of tied tensors', () => {
    const { aliases } = read({ 'head.weight': 'embed.weight', note: 'hello' }, 'embed.weight');
    expect([...aliases]).toEqual([['head.weight', 'embed.weight']]);
  });

  it('has no alias for a tensor in the file, and none for the format', () => {
    const { aliases } = read({ a: 'b', format: 'pt', '': 'pt' }, 'a', 'b', 'pt');
    expect([...aliases]).toEqual([['', 'pt']]);
  });
});
