/** Small GGUF and ONNX files that are expensive for a naive reader. A new one is a line of a table. */
import { array, key, tensor, text, types, u32, u64 } from '../checkpoint/gguf/files.js';
import { entry, older } from '../checkpoint/gguf/imatrix-files.js';
import { bytes, initializer, integer, node, value } from '../checkpoint/onnx/files.js';
import { commands, oneFile, type Shape } from './shape.js';

const READ = commands(
  'inspect FILE',
  'inspect FILE --hash --json',
  'verify FILE',
  'profile FILE',
  'convert-checkpoint FILE FOLDER/out.safetensors --dtype bf16 --dry-run',
  'diff FILE FILE',
);

type Parts = readonly Buffer[];

/** Parts of about `size` bytes together, at most `most`, each made from its index. */
function parts(size: number, part: (index: number) => Buffer, most = Number.POSITIVE_INFINITY) {
  const made: Buffer[] = [];
  for (let left = size; left > 0 && made.length < most; ) {
    const next = part(made.length);
    made.push(next);
    left -= next.length;
  }
  return made;
}

/** One part, repeated to fill the size. */
const repeated = (size: number, part: Buffer): Parts => [
  Buffer.alloc(Math.max(1, Math.floor(size / part.length)) * part.length, part),
];

// GGUF

const { UINT32, BOOL, STRING, ARRAY } = types;
const UINT64 = 10;

/** Metadata of a small Llama. */
const LLAMA: Parts = [
  key('general.architecture', STRING, text('llama')),
  ...Object.entries({
    context_length: 64,
    embedding_length: 32,
    block_count: 2000,
    feed_forward_length: 64,
    'attention.head_count': 4,
  }).map(([name, number]) => key(`llama.${name}`, UINT32, u32(number))),
];

interface GgufContent {
  readonly keys?: Parts;
  readonly tensors?: Parts;
  readonly data?: number;
}

const gguf = (content: (size: number) => GgufContent): Shape['make'] =>
  oneFile('model.gguf', (size) => {
    const { keys = [], tensors = [], data = 0 } = content(size);
    const counts = [u64(tensors.length), u64(LLAMA.length + keys.length)];
    const header = Buffer.concat([
      ...[Buffer.from('GGUF'), u32(3), ...counts],
      ...[...LLAMA, ...keys, ...tensors],
    ]);
    return Buffer.concat([header, Buffer.alloc(((32 - (header.length % 32)) % 32) + data)]);
  });

/** The most tensors that a file of less than 16 MB can have. */
const MOST_TENSORS = 12_000;

const tensors = (part: (index: number) => Parameters<typeof tensor>[0], least = 0) =>
  gguf((size) => ({ tensors: parts(size - least, (at) => tensor(part(at)), MOST_TENSORS) }));

const arrays = (element: number, length: number, width: number, fill = 0) =>
  gguf((size) => {
    const values = array(element, length, Buffer.alloc(length * width, fill));
    return { keys: parts(size, (at) => key(`a.${at}`, ARRAY, values), 99_000) };
  });

const ggufShapes: readonly (readonly [name: string, make: Shape['make']])[] = [
  ['gguf: many tensors', tensors((at) => ({ name: at.toString(36), sizes: [0] }))],
  ['gguf: many layers', tensors((at) => ({ name: `blk.${at}.attn_q.weight`, sizes: [0] }))],
  [
    'gguf: many dims',
    tensors((at) => ({ name: `blk.${at % 100}.x${at}`, sizes: [0, 2 ** 17, 2 ** 17, 2 ** 17] })),
  ],
  [
    'gguf: many tensors with values',
    gguf((size) => {
      const count = Math.min(MOST_TENSORS, Math.floor(size / 90));
      const list = Array.from({ length: count }, (_, at) =>
        tensor({ name: `blk.${at % 64}.ffn.${at}`, sizes: [1], offset: 32 * at }),
      );
      return { tensors: list, data: 32 * count };
    }),
  ],
  [
    'gguf: an expert for each byte',
    gguf((size) => ({
      tensors: [tensor({ name: 'blk.0.ffn_up_exps.weight', sizes: [4, 1, Math.floor(size / 16)] })],
      data: Math.floor(size / 16) * 16,
    })),
  ],
  [
    'gguf: many keys',
    gguf((size) => ({ keys: parts(size, (at) => key(`k${at}`, UINT32, u32(at)), 99_000) })),
  ],
  [
    'gguf: long strings',
    gguf((size) => ({
      keys: parts(size, (at) => key(`k${at}`, STRING, text('é'.repeat(Math.min(size, 2e5) / 2)))),
    })),
  ],
  ['gguf: one long string', gguf((size) => ({ keys: [key('k', STRING, text('x'.repeat(size)))] }))],
  [
    'gguf: long keys',
    gguf((size) => ({
      keys: parts(size, (at) => key(`${'k'.repeat(60_000)}${at}`, UINT32, u32(at))),
    })),
  ],
  ['gguf: arrays of small numbers', arrays(BOOL, 130, 1)],
  ['gguf: arrays of large numbers', arrays(UINT64, 4096, 8, 0xff)],
  ['gguf: arrays of empty strings', arrays(STRING, 4096, 8)],
  ['gguf: arrays in arrays', arrays(ARRAY, 100, 12)],
  [
    'gguf: a vocabulary',
    gguf((size) => {
      const count = Math.floor(size / 8);
      const tokens = array(STRING, count, Buffer.alloc(8 * count));
      return {
        keys: [
          key('tokenizer.ggml.model', STRING, text('gpt2')),
          key('tokenizer.ggml.tokens', ARRAY, tokens),
        ],
      };
    }),
  ],
];

// ONNX

/** The parts in one buffer: a call cannot have millions of arguments. */
const joined = (parts: Parts) => Buffer.concat(parts);

/** A model of a graph, and further fields of the model. */
const onnx = (graph: (size: number) => Parts, more: (size: number) => Parts = () => []) =>
  oneFile('model.onnx', (size) =>
    Buffer.concat([
      ...[integer(1, 8), bytes(7, joined(graph(size)))],
      ...[bytes(8, integer(2, 18)), joined(more(size))],
    ]),
  );

const empty = (name: string) => initializer({ name, sizes: [0], data: { raw: Buffer.alloc(0) } });

/** The most tensors that a file of less than 16 MB can have. */
const MOST_INITIALIZERS = 29_900;

/** A graph in an attribute of a node, to a depth. */
function nested(depth: number, inmost: Buffer): Buffer {
  let inner = inmost;
  for (let level = 0; level < depth; level++) inner = bytes(1, bytes(5, bytes(6, inner)));
  return inner;
}

const initializers = (size: number) =>
  parts(size, (at) => empty(at.toString(36)), MOST_INITIALIZERS);

const onnxShapes: readonly (readonly [name: string, make: Shape['make']])[] = [
  ['onnx: many small nodes', onnx((size) => repeated(size, bytes(1, bytes(4, 'A'))))],
  [
    'onnx: many nodes',
    onnx((size) =>
      parts(size, (at) =>
        node({ op: 'MatMul', name: `/layers.${at}/fc/MatMul`, inputs: [`${at}`], outputs: ['y'] }),
      ),
    ),
  ],
  ['onnx: many initializers', onnx(initializers)],
  [
    'onnx: many uses',
    onnx((size) => [
      ...parts(size / 4, (at) => empty(`w${at}`), MOST_INITIALIZERS),
      ...parts(size / 2, (at) =>
        node({ op: 'MatMul', name: `/layers.${at}/fc/MatMul`, inputs: ['x', `w${at}`] }),
      ),
    ]),
  ],
  [
    'onnx: many names of one tensor',
    onnx((size) => [
      empty('w'),
      ...parts(
        size,
        (at) => node({ op: 'Identity', inputs: ['w'], outputs: [at.toString(36)] }),
        MOST_INITIALIZERS,
      ),
    ]),
  ],
  [
    'onnx: initializers of a subgraph',
    onnx((size) => [nested(1, Buffer.concat(initializers(size)))]),
  ],
  [
    'onnx: graphs in graphs',
    onnx((size) =>
      repeated(size, nested(30, Buffer.concat(repeated(50, bytes(1, bytes(4, 'A')))))),
    ),
  ],
  [
    'onnx: many attributes',
    onnx((size) => [
      bytes(1, joined(parts(size, (at) => bytes(5, bytes(1, `a${at}`), integer(3, at))))),
    ]),
  ],
  [
    'onnx: external data',
    onnx((size) =>
      parts(
        size,
        (at) =>
          initializer({
            name: `w${at}`,
            data: { external: { location: 'w.bin', offset: `${8 * at}` } },
          }),
        MOST_INITIALIZERS,
      ),
    ),
  ],
  [
    'onnx: many external files',
    onnx((size) =>
      parts(
        size,
        (at) => initializer({ name: `w${at}`, data: { external: { location: `${at}.bin` } } }),
        MOST_INITIALIZERS,
      ),
    ),
  ],
  ['onnx: many value infos', onnx((size) => parts(size, (at) => value(13, `v${at}`, [1, 'n'])))],
  ['onnx: many inputs', onnx((size) => parts(size, (at) => value(11, `v${at}`, [1]), 9_999))],
  [
    'onnx: many sizes of an input',
    onnx((size) => [
      value(
        11,
        'x',
        Array.from({ length: Math.floor(size / 6) }, () => 1),
      ),
    ]),
  ],
  [
    'onnx: metadata',
    onnx(
      () => [],
      (size) => parts(size, (at) => bytes(14, bytes(1, `${at}`), bytes(2, 'v')), 99_000),
    ),
  ],
  [
    'onnx: a long text in the metadata',
    onnx(
      () => [],
      (size) => [bytes(14, bytes(1, 'shapes'), bytes(2, '['.repeat(size)))],
    ),
  ],
  [
    'onnx: many functions',
    onnx(
      () => [],
      (size) => parts(size, (at) => bytes(25, bytes(1, `f${at}`), bytes(7, bytes(4, 'A'))), 99_000),
    ),
  ],
  ['onnx: unknown fields', onnx((size) => repeated(size, integer(99, 1)))],
  [
    'onnx: unknown fields of the model',
    onnx(
      () => [],
      (size) => repeated(size, integer(99, 1)),
    ),
  ],
  [
    'onnx: integers of one byte',
    onnx((size) => [
      bytes(5, integer(2, 7), integer(1, size), bytes(8, 'w'), bytes(7, Buffer.alloc(size, 1))),
    ]),
  ],
  [
    'onnx: integers of ten bytes',
    onnx((size) => {
      const one = Buffer.from([...Array.from({ length: 9 }, () => 0xff), 1]);
      const count = Math.floor(size / one.length);
      const values = Buffer.alloc(count * one.length, one);
      return [bytes(5, integer(2, 7), integer(1, count), bytes(8, 'w'), bytes(7, values))];
    }),
  ],
  ['onnx: long names', onnx((size) => parts(size, (at) => empty(`${at}${'.1'.repeat(30_000)}`)))],
];

const QUANTIZE = commands(
  'convert-checkpoint fixtures/hf/llama FOLDER/out.gguf --dtype q4_k_m --imatrix FILE --dry-run',
);

/** Importance matrices, which only a conversion reads. */
const imatrixShapes: readonly (readonly [name: string, make: Shape['make']])[] = [
  [
    'imatrix: many entries',
    oneFile('imatrix.dat', (size) => {
      const entries = parts(size, (at) => entry(`b.${at}`, 1, [1]), 12_000);
      return older(entries.map((each) => Uint8Array.from(each as Uint8Array)));
    }),
  ],
  [
    'imatrix: one long entry',
    oneFile('imatrix.dat', (size) =>
      older([entry('blk.0.attn_q.weight', 1, Array(Math.floor(size / 4)).fill(1))]),
    ),
  ],
];

export const GRAPH_SHAPES: readonly Shape[] = [
  ...[...ggufShapes, ...onnxShapes].map(([name, make]) => ({ name, make, commands: READ })),
  ...imatrixShapes.map(([name, make]) => ({ name, make, commands: QUANTIZE })),
];
