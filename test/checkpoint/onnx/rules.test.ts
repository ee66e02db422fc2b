import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import type { UserError } from '../../../src/base/errors.js';
import { ONNX_RULES } from '../../../src/checkpoint/checkpoint-rules.js';
import { readTensor } from '../../../src/checkpoint/view.js';
import { errorOf, fileIn, folderOf, opened, ruleBrokenBy } from '../temp-folder.js';
import { bytes, initializer, integer, node, onnx, tensorProto, value, varint } from './files.js';

type Attack = readonly [keyof typeof ONNX_RULES, string, () => Uint8Array | string];

const NAME = 'model.onnx';
const EXTERNAL = 'weights.data';

/** Model with vectors in a file next to it. */
const external = (
  entries: readonly Readonly<Record<string, string>>[],
  files: Readonly<Record<string, Uint8Array>> = { [EXTERNAL]: Buffer.alloc(16) },
) => {
  const initializers = entries.map((each, index) =>
    initializer({ name: `w${index}`, data: { external: each } }),
  );
  return path.join(folderOf({ [NAME]: onnx({ initializers }), ...files }), NAME);
};

/** Nodes that hold a graph with one node, nested to a depth. */
function nested(depth: number): Buffer {
  let inner: Buffer = Buffer.alloc(0);
  for (let level = 0; level < depth; level++) {
    inner = node({ op: 'If', attributes: [Buffer.concat([bytes(1, 'body'), bytes(6, inner)])] });
  }
  return inner;
}

/** File of 2 GiB, with a hole after its first bytes. */
function hugeFile(): string {
  const file = path.join(folderOf({ [NAME]: onnx() }), NAME);
  fs.truncateSync(file, 2 ** 31);
  return file;
}

function linkOutside(): string {
  const outside = path.join(folderOf({ secret: Buffer.alloc(16) }), 'secret');
  const file = external([{ location: EXTERNAL }], {});
  fs.symlinkSync(outside, path.join(path.dirname(file), EXTERNAL));
  return file;
}

const withTensor = (parts: Parameters<typeof initializer>[0]) =>
  onnx({ initializers: [initializer(parts)] });

const ATTACKS: readonly Attack[] = [
  ['onnx-size', '2 GiB', hugeFile],
  ['onnx-whole', 'cut off', () => onnx().subarray(0, -1)],
  ['onnx-whole', 'a graph longer than the file', () => onnx({ more: [Buffer.from([0x3a, 0x7f])] })],
  [
    'onnx-whole',
    'a length of 2^63',
    () => onnx({ more: [Buffer.concat([Buffer.from([0x3a]), varint(2n ** 63n)])] }),
  ],
  ['onnx-whole', 'an integer cut off', () => onnx({ more: [Buffer.from([0x08, 0x80])] })],
  [
    'onnx-whole',
    'a tensor longer than its graph',
    () => onnx({ initializers: [Buffer.from([0x2a, 0x7f])] }),
  ],
  ['onnx-field', 'a group', () => onnx({ more: [Buffer.from([0x0b])] })],
  ['onnx-field', 'field 0', () => onnx({ more: [Buffer.from([0x00, 0x00])] })],
  [
    'onnx-varint',
    'of 11 bytes',
    () =>
      onnx({
        more: [Buffer.concat([Buffer.from([0x08]), Buffer.alloc(10, 0x80), Buffer.from([1])])],
      }),
  ],
  ['onnx-wire-type', 'a graph that is an integer', () => onnx({ more: [integer(7, 1)] })],
  [
    'onnx-wire-type',
    'a name that is an integer',
    () => onnx({ initializers: [bytes(5, integer(8, 1))] }),
  ],
  ['onnx-wire-type', 'a version that is text', () => onnx({ more: [bytes(1, 'x')] })],
  [
    'onnx-fields',
    '5,000,001',
    () => onnx({ more: [Buffer.alloc(10_000_002, Buffer.from([0x28, 0]))] }),
  ],
  ['onnx-name', '65,536 bytes', () => withTensor({ name: 'w'.repeat(65_536) })],
  ['onnx-name', 'Latin-1', () => withTensor({ name: Buffer.from([0xe9]) })],
  [
    'onnx-strings',
    'metadata of 65 MiB',
    () => onnx({ more: [bytes(14, bytes(1, 'k'), bytes(2, Buffer.alloc(65 * 2 ** 20, 'x')))] }),
  ],
  ['onnx-graph', 'none', () => Buffer.concat([integer(1, 9), bytes(2, 'x')])],
  ['onnx-graph', 'two', () => Buffer.concat([onnx(), bytes(7)])],
  ['onnx-depth', '40 levels', () => onnx({ nodes: [nested(40)] })],
  [
    'onnx-operators',
    '10,001',
    () => onnx({ nodes: Array.from({ length: 10_001 }, (_, op) => node({ op: `Op${op}` })) }),
  ],
  [
    'onnx-values',
    '10,001 inputs',
    () => onnx({ values: Array.from({ length: 10_001 }, (_, n) => value(11, `x${n}`, [1])) }),
  ],
  ['onnx-nodes', '500,001', () => bytes(7, Buffer.alloc(2 * 500_001, Buffer.from([0x0a, 0])))],
  [
    'onnx-metadata',
    '100,001 entries',
    () => onnx({ more: [Buffer.alloc(2 * 100_001, Buffer.from([0x72, 0]))] }),
  ],
  [
    'onnx-metadata',
    '100,001 functions',
    () => onnx({ more: [Buffer.alloc(3 * 100_001, Buffer.from([0xca, 0x01, 0]))] }),
  ],
  [
    'onnx-tensors',
    '100,001 names of one',
    () => {
      const copy = node({ op: 'Identity', inputs: ['w'], outputs: ['v'] });
      return onnx({ nodes: [Buffer.alloc(100_001 * copy.length, copy)] });
    },
  ],
  [
    'onnx-tensors',
    '200,001 constants',
    () => {
      const one = bytes(5, tensorProto({ sizes: [0], data: { raw: Buffer.alloc(0) } }));
      // The same attribute with a tensor, repeated.
      const attribute = bytes(5, one);
      const all = Buffer.alloc(200_001 * attribute.length, attribute);
      return onnx({ nodes: [bytes(1, bytes(4, 'Constant'), all)] });
    },
  ],
  [
    'onnx-name-twice',
    'of two tensors',
    () => onnx({ initializers: [initializer({}), initializer({})] }),
  ],
  ['onnx-type', 'type 99', () => withTensor({ type: 99 })],
  ['onnx-type', 'no type', () => withTensor({ type: 0 })],
  ['onnx-rank', '65', () => withTensor({ sizes: Array.from({ length: 65 }, () => 1) })],
  ['onnx-elements', 'sizes of 2^32', () => withTensor({ sizes: [2 ** 32, 2 ** 32] })],
  ['onnx-elements', 'a negative size', () => withTensor({ sizes: [-1] })],
  ['onnx-data-place', 'raw and floats', () => withTensor({ more: [bytes(4, Buffer.alloc(8))] })],
  ['onnx-data-place', 'raw and external', () => withTensor({ more: [integer(14, 1)] })],
  ['onnx-data-size', 'too few', () => withTensor({ data: { raw: Buffer.alloc(7) } })],
  ['onnx-data-size', 'too many', () => withTensor({ data: { raw: Buffer.alloc(9) } })],
  [
    'onnx-data-size',
    'none',
    () => onnx({ initializers: [bytes(5, integer(1, 2), integer(2, 1), bytes(8, 'w'))] }),
  ],
  [
    'onnx-data-size',
    'three integers',
    () => withTensor({ type: 7, data: { integers: [1n, 2n, 3n] } }),
  ],
  [
    'onnx-data-size',
    'floats in the field of integers',
    () => withTensor({ data: { integers: [1n, 2n] } }),
  ],
  [
    'onnx-integers',
    '2^24 + 1',
    () => withTensor({ type: 7, sizes: [2 ** 24 + 1], data: { integers: [1n] } }),
  ],
  ...['../weights.data', '/etc/passwd', 'C:\\weights', 'a/../../b', '', 'x\0'].map(
    (location): Attack => [
      'onnx-external-path',
      JSON.stringify(location),
      () => external([{ location }]),
    ],
  ),
  ['onnx-external-folder', 'a link', linkOutside],
  ['onnx-external-number', 'hexadecimal', () => external([{ location: EXTERNAL, offset: '0x8' }])],
  ['onnx-external-number', 'negative', () => external([{ location: EXTERNAL, offset: '-8' }])],
  ['onnx-external-length', 'too short', () => external([{ location: EXTERNAL, length: '7' }])],
  [
    'onnx-external-range',
    'beyond the file',
    () => external([{ location: EXTERNAL, offset: '12' }]),
  ],
  [
    'onnx-external-range',
    'far beyond',
    () => external([{ location: EXTERNAL, offset: '9007199254740991' }]),
  ],
  [
    'onnx-external-overlap',
    'by half',
    () => external([{ location: EXTERNAL }, { location: EXTERNAL, offset: '4' }]),
  ],
];

const broken = (made: Uint8Array | string) =>
  ruleBrokenBy(typeof made === 'string' ? made : fileIn(NAME, made));

describe('an ONNX file', () => {
  it.each(ATTACKS)('is refused by %s: %s', (rule, _, make) => {
    expect(broken(make())).toBe(rule);
  });

  it('is tested against every rule', () => {
    expect([...new Set(ATTACKS.map(([rule]) => rule))].sort()).toEqual(
      Object.keys(ONNX_RULES).sort(),
    );
  });

  it('is refused with the tensor of the fault', () => {
    const error = errorOf(
      fileIn(NAME, withTensor({ name: 'layers.0.w', data: { raw: Buffer.alloc(3) } })),
    );
    expect((error as UserError).problems[0]).toMatchObject({
      path: 'tensor "layers.0.w"',
      message: 'float32 [2] has 8 bytes, found 3 bytes in field 9',
    });
  });
});

describe('opening an ONNX file', () => {
  const valuesOf = (parts: Parameters<typeof initializer>[0]) => {
    const tensor = opened(fileIn(NAME, withTensor(parts))).tensors.get('w') ?? expect.unreachable();
    return Buffer.from(readTensor(tensor)).toString('hex');
  };

  it.each([
    ['raw bytes', { data: { raw: Buffer.from('0000803f000000c0', 'hex') } }, '0000803f000000c0'],
    ['packed floats', { data: { floats: [1, -2] } }, '0000803f000000c0'],
    [
      'integers of 64 bits',
      { type: 7, data: { integers: [-1n, 258n] } },
      'ffffffffffffffff0201000000000000',
    ],
    ['integers of 8 bits', { type: 3, data: { integers: [-1n, 7n], field: 5 } }, 'ff07'],
    ['bits of float16', { type: 10, data: { integers: [0x3c00n, 0xc000n], field: 5 } }, '003c00c0'],
  ])('reads %s', (_, parts, hex) => {
    expect(valuesOf(parts as Parameters<typeof initializer>[0])).toBe(hex);
  });

  it('reads external data, and describes the graph if they are missing', () => {
    const data = Buffer.from(Float32Array.of(1, 2, 3, 4).buffer);
    const complete = opened(external([{ location: EXTERNAL, offset: '8' }], { [EXTERNAL]: data }));
    const tensor = complete.tensors.get('w0') ?? expect.unreachable();
    expect([...new Float32Array(readTensor(tensor).slice().buffer)]).toEqual([3, 4]);
    const missing = opened(external([{ location: EXTERNAL }], {}));
    expect(missing.onnx?.description.externalFiles).toEqual([
      { location: EXTERNAL, tensors: 1, bytes: 8, size: null },
    ]);
    const lacking = missing.tensors.get('w0') ?? expect.unreachable();
    expect(() => readTensor(lacking)).toThrow(/has values in weights\.data, which is missing/);
  });

  it('accepts equal and nested ranges of external data as views', () => {
    const ranges = [
      { location: EXTERNAL },
      { location: EXTERNAL },
      { location: EXTERNAL, offset: '8' },
    ];
    expect(opened(external(ranges)).tensors.size).toBe(3);
  });

  it('describes the graph', () => {
    const { onnx: graph } = opened(
      fileIn(
        NAME,
        onnx({
          nodes: [node({ op: 'If', attributes: [bytes(6, node({ op: 'Add' }))] }), node({})],
          values: [value(11, 'input_ids', ['batch', 8]), value(12, 'logits', [''])],
          more: [bytes(14, bytes(1, 'family'), bytes(2, 'llama'))],
        }),
      ),
    );
    expect(graph?.description).toMatchObject({
      irVersion: 9,
      producer: 'by hand',
      operatorSets: [{ domain: 'ai.onnx', version: 20 }],
      metadata: { family: 'llama' },
      inputs: [{ name: 'input_ids', type: 'int64', shape: ['batch', 8] }],
      outputs: [{ name: 'logits', type: 'int64', shape: [''] }],
      nodes: 3,
      operators: [
        { domain: 'ai.onnx', operator: 'Add', count: 2 },
        { domain: 'ai.onnx', operator: 'If', count: 1 },
      ],
      subgraphs: 1,
      initializers: [{ type: 'float32', tensors: 1, elements: 2, bytes: 8 }],
    });
  });
});
