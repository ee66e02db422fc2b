import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { FileIndex } from '../../../src/checkpoint/checkpoint.js';
import { ruleOf, SAFETENSORS_RULES } from '../../../src/checkpoint/checkpoint-rules.js';
import { readSafetensors } from '../../../src/checkpoint/safetensors/read-safetensors.js';
import { writeSafetensors } from '../../../src/checkpoint/safetensors/write-safetensors.js';
import type { StoredTensor } from '../../../src/checkpoint/stored-tensor.js';
import { readTensor } from '../../../src/checkpoint/view.js';
import { fileBytes, header, indexOf, member, ruleBrokenBy, withFile } from './files.js';
import { anyTensors, anyText, inPieces, MemorySink } from './tensors.js';

const RULES = new Set<unknown>(Object.keys(SAFETENSORS_RULES));

describe('a written file', () => {
  it('is read with the same tensors and metadata', async () => {
    const metadata = fc
      .array(fc.tuple(anyText, anyText), { maxLength: 4 })
      .map((all) => new Map(all));
    await fc.assert(
      fc.asyncProperty(
        anyTensors,
        metadata,
        fc.integer({ min: 1, max: 9 }),
        fc.boolean(),
        async (tensors, strings, size, isAsync) => {
          const sink = new MemorySink();
          const toWrite = tensors.map((tensor) => inPieces(tensor, size, isAsync));
          await writeSafetensors(sink, toWrite, strings);
          withFile(sink.bytes(), (file) => {
            const index = readSafetensors(file);
            expect(index.tensors.size).toBe(tensors.length);
            for (const { name, dtype, shape, bytes } of tensors) {
              const tensor = index.tensors.get(name) as StoredTensor;
              expect(tensor).toMatchObject({ dtype, shape });
              expect(Buffer.from(readTensor(tensor))).toEqual(Buffer.from(bytes));
            }
            expect(index.metadata).toEqual(new Map([...strings, ['format', 'pt']]));
          });
        },
      ),
      { numRuns: 200 },
    );
  });
});

/** Writes JSON with blanks and escapes chosen by `g`. */
function whimsicalJson(g: fc.GeneratorValue) {
  const blank = () => g(fc.constantFrom, '', '', '', ' ', '\n', '\t\r');
  const between = (open: string, items: readonly string[], close: string) =>
    `${open}${blank()}${items.map((item) => item + blank()).join(`,${blank()}`)}${close}`;
  const string = (text: string) => {
    const styles = g(fc.array, fc.constantFrom('plain', 'lower', 'upper'), { minLength: 1 });
    const characters = [...text].map((character, i) => {
      const style = styles[i % styles.length];
      if (style === 'plain') return JSON.stringify(character).slice(1, -1);
      const units = Array.from({ length: character.length }, (_, unit) => {
        const digits = character.charCodeAt(unit).toString(16).padStart(4, '0');
        return `\\u${style === 'upper' ? digits.toUpperCase() : digits}`;
      });
      return units.join('');
    });
    return `"${characters.join('')}"`;
  };
  return {
    string,
    list: (items: readonly string[]) => between('[', items, ']'),
    object: (members: readonly (readonly [string, string])[]) =>
      between(
        '{',
        members.map(([key, value]) => `${string(key)}${blank()}:${blank()}${value}`),
        '}',
      ),
  };
}

describe('the scanner', () => {
  it('reads the same values as JSON.parse', () => {
    const named = <T>(value: fc.Arbitrary<T>) =>
      fc.uniqueArray(fc.tuple(anyText, value), { selector: ([name]) => name, maxLength: 8 });
    fc.assert(
      fc.property(
        named(fc.array(fc.nat({ max: 3 }), { maxLength: 4 })),
        named(anyText),
        fc.gen(),
        (shapes, metadata, g) => {
          const json = whimsicalJson(g);
          let end = 0;
          const tensors = shapes.map(([name, shape]): [string, string] => {
            const begin = end;
            end += shape.reduce((product, size) => product * size, 1);
            const fields: [string, string][] = [
              ['dtype', json.string('U8')],
              ['shape', json.list(shape.map(String))],
              ['data_offsets', json.list([String(begin), String(end)])],
            ];
            return [name, json.object(g(fc.shuffledSubarray, fields, { minLength: 3 }))];
          });
          const strings = json.object(metadata.map(([key, value]) => [key, json.string(value)]));
          const text = json.object([['__metadata__', strings], ...tensors]);
          const parsed = new Map(Object.entries(JSON.parse(text) as Record<string, object>));
          const index = indexOf(fileBytes(text, end));

          expect(index.metadata).toEqual(new Map(Object.entries(parsed.get('__metadata__') ?? {})));
          parsed.delete('__metadata__');
          const dataPosition = 8 + Buffer.byteLength(text);
          const read = [...index.tensors].map(([name, { dtype, shape, storage, bytes }]) => {
            const begin = storage.position - dataPosition;
            return [name, { dtype, shape, data_offsets: [begin, begin + bytes] }] as const;
          });
          expect(new Map(read)).toEqual(parsed);
          expect(read.map(([name]) => name)).toEqual(shapes.map(([name]) => name));
        },
      ),
      { numRuns: 200 },
    );
  });
});

/** A small file with metadata and several kinds of tensors. */
const SMALL = fileBytes(
  `${header(
    '"__metadata__":{"format":"pt","tied":"b"}',
    member('a', { dtype: '"F32"', shape: '[1,2]', offsets: '[0,8]' }),
    member('b', { dtype: '"F6_E2M3"', shape: '[4]', offsets: '[9,12]' }),
    member('\u00e9', { dtype: '"BOOL"', shape: '[]', offsets: '[8,9]' }),
    member('\n', { shape: '[0,1]', offsets: '[12,12]' }),
  )}  `,
  12,
);

/** Expects that a rule of the format refuses the bytes, or that all tensors lie in the file. */
function expectSound(bytes: Uint8Array): void {
  let index: FileIndex;
  try {
    index = indexOf(bytes);
  } catch (error) {
    expect(RULES).toContain(ruleOf(error) ?? error);
    return;
  }
  const dataPosition = 8 + Number(Buffer.from(bytes).readBigUInt64LE());
  let total = 0;
  for (const { storage, shape, elements } of index.tensors.values()) {
    expect(storage.position).toBeGreaterThanOrEqual(dataPosition);
    expect(storage.position + storage.bytes).toBeLessThanOrEqual(bytes.length);
    expect(shape.reduce((product, size) => product * size, 1)).toBe(elements);
    total += storage.bytes;
  }
  expect(total).toBe(bytes.length - dataPosition);
}

describe('a damaged file', () => {
  it('is read before the damage', () => expect(ruleBrokenBy(SMALL)).toBeUndefined());

  it('is refused or sound with any bit flipped', () => {
    for (let position = 0; position < SMALL.length; position++) {
      for (const flip of [1, 2, 4, 8, 16, 32, 64, 128]) {
        const bytes = Uint8Array.from(SMALL);
        bytes[position] = (bytes[position] ?? 0) ^ flip;
        expectSound(bytes);
      }
    }
  });

  it('is refused if it is cut off anywhere', () => {
    for (let length = 0; length < SMALL.length; length++) {
      expect(RULES).toContain(ruleBrokenBy(SMALL.subarray(0, length)));
    }
  });

  it('is refused or sound with parts removed, repeated or moved', () => {
    const place = fc.nat({ max: SMALL.length });
    fc.assert(
      fc.property(fc.tuple(place, place, place, place), fc.boolean(), (places, isRepaired) => {
        const [end, from, to, begin] = places;
        const bytes = Buffer.concat([
          SMALL.subarray(0, end),
          SMALL.subarray(from, to),
          SMALL.subarray(begin),
        ]);
        // If the length is not repaired, few headers are read.
        const length = bytes.lastIndexOf('}') + 1 - 8;
        if (isRepaired && length > 0) bytes.writeBigUInt64LE(BigInt(length));
        expectSound(bytes);
      }),
      { numRuns: 1000 },
    );
  });

  it('is refused or sound with any header', () => {
    const tokens = [
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      ' ',
      '"a"',
      '"dtype"',
      '"U8"',
      '"shape"',
      '0',
      '2',
    ];
    const piece = fc.constantFrom(
      ...tokens,
      '"data_offsets"',
      '"__metadata__"',
      '"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}',
      '"b":{"dtype":"U8","shape":[',
      '],"data_offsets":[',
      '\\u0061',
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 20 }), fc.nat({ max: 4 }), (pieces, dataBytes) => {
        expectSound(fileBytes(`{${pieces.join('')}}`, dataBytes));
      }),
      { numRuns: 1000 },
    );
  });
});
