/** Small checkpoints that are expensive for a naive reader. A new one is a line of the table. */
import * as a from '../checkpoint/torch/assemble.js';
import { archive, inFolder } from '../checkpoint/torch/zip-builder.js';
import { commands, oneFile, type Shape } from './shape.js';

type Parts = readonly (Uint8Array | number | string)[];

const CONFIG = 'configs/minimind/minimind2-small.yaml';
const READ = commands(
  'inspect FILE',
  'inspect FILE --hash --json',
  'inspect FILE --stats',
  `verify ${CONFIG} FILE`,
  `convert-checkpoint FILE FOLDER/out.safetensors --config ${CONFIG} --dtype bf16 --dry-run`,
);
const PROJECTOR = commands('kv-projector convert FILE FOLDER/out.safetensors', 'inspect FILE');

/** A PyTorch file with this pickle and, by default, a storage of 16 bytes under key 0. */
const torch =
  (object: (size: number) => Parts, storages: Record<string, Uint8Array> = {}): Shape['make'] =>
  (folder, size) =>
    oneFile('model.pt', () => {
      const data = { 'data/0': Buffer.alloc(16), ...storages };
      const records = { 'data.pkl': a.pickle(...object(size)), version: '3\n', ...data };
      return archive({ entries: inFolder(records) });
    })(folder, size);

const safetensors = (header: (size: number) => string, dataBytes = 0): Shape['make'] =>
  oneFile('model.safetensors', (size) => fileBytes(header(size), dataBytes));

/** A safetensors file of this header. */
export function fileBytes(header: string, dataBytes: number): Buffer {
  const json = Buffer.from(header);
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(json.length));
  return Buffer.concat([length, json, Buffer.alloc(dataBytes)]);
}

/** Parts that fill `size` bytes, each made from its index. */
export function fill(size: number, part: (index: number) => Uint8Array): Buffer {
  const parts: Uint8Array[] = [];
  for (let bytes = 0, index = 0; bytes < size; index++) {
    const next = part(index);
    parts.push(next);
    bytes += next.length;
  }
  return Buffer.concat(parts);
}

export function fillText(size: number, part: (index: number) => string): string {
  const parts: string[] = [];
  for (let bytes = 0, index = 0; bytes < size; index++) {
    const next = part(index);
    parts.push(next);
    bytes += Buffer.byteLength(next) + 1;
  }
  return parts.join();
}

export const times = (count: number, part: Parts) => {
  const one = a.join(...part);
  return Buffer.alloc(one.length * Math.max(1, Math.floor(count)), one);
};

export const put = (index: number) => a.join(0x72, a.u32(index));
export const get = (index: number) => a.join(0x6a, a.u32(index));
/** Puts a value into the memo. The dict on top of the stack holds it until the next value takes its key. */
const remembered = (index: number, ...parts: Parts) =>
  a.join(a.NONE, ...parts, put(index), a.SETITEM);
const i32 = (value: number) => {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32LE(value);
  return a.join(0x4a, bytes);
};

const MODEL = a.dict(a.text('layers.0.w'), a.tensor());
const SET = a.SETITEM;
const { EMPTY_DICT: DICT, MARK, SETITEMS, REDUCE, NONE } = a;

/** A dict in which each level holds the one below it twice, this deep. */
const laughs = (depth: number) => {
  const openings = Array.from({ length: depth }, () => a.join(DICT, a.text('a')));
  const levels = Array.from({ length: depth }, (_, at) =>
    a.join(put(1000 + at), SET, a.text('b'), get(1000 + at), SET),
  );
  return a.join(...openings, a.dict(a.text('x'), a.int(1)), ...levels, put(1000 + depth));
};

/** A call, repeated to fill the size; its arguments take half of it. */
const calls = (callee: Uint8Array, args: (size: number) => Parts, tuple = a.TUPLE1) =>
  torch((size) => [
    DICT,
    remembered(1, ...args(size / 2), tuple),
    remembered(2, callee),
    times(size / 2 / 13, [NONE, get(2), get(1), REDUCE, SET]),
    ...[a.text('model'), MODEL, SET],
  ]);
const builtin = (name: string) => a.global('builtins', name);
const pairs = (size: number): Parts => [
  a.EMPTY_LIST,
  MARK,
  ...[a.text('a'), NONE, a.TUPLE2, put(5)],
  times(size / 5, [get(5)]),
  a.APPENDS,
];
const numbers = (size: number): Parts => [
  a.EMPTY_LIST,
  MARK,
  times(size / 2, [0x4b, 1]),
  a.APPENDS,
];

/** Tensors that view one storage of these bytes with different shapes and strides. */
const views = (storageBytes: number, shapeOf: (index: number) => readonly [number[], number[]]) =>
  torch(
    (size) => [
      remembered(1, a.global('torch._utils', '_rebuild_tensor_v2')),
      remembered(
        2,
        a.storage({ type: a.global('torch', 'ByteStorage'), length: i32(storageBytes) }),
      ),
      remembered(3, a.dict()),
      DICT,
      MARK,
      fill(Math.max(1000, size - storageBytes), (index) => {
        const [shape, strides] = shapeOf(index);
        const args = [get(2), i32(0), a.tuple(...shape.map(i32)), a.tuple(...strides.map(i32))];
        return a.join(
          a.text(`layers.${index}.w`),
          get(1),
          a.tuple(...args, a.FALSE, get(3)),
          REDUCE,
        );
      }),
      SETITEMS,
    ],
    { 'data/0': Buffer.alloc(storageBytes) },
  );

const entry = (name: string, begin = 0, end = begin) =>
  `${JSON.stringify(name)}:{"dtype":"U8","shape":[${end - begin}],"data_offsets":[${begin},${end}]}`;
const metadata = (members: string) => `{"__metadata__":{${members}},${entry('layers.0.w', 0, 1)}}`;
const projector = (members: string) => {
  const weight = (branch: string, at: number) =>
    `"projectors.T.${branch}.weight":{"dtype":"F32","shape":[2,2],"data_offsets":[${at},${at + 16}]}`;
  return `{"__metadata__":{${members}},${weight('K', 0)},${weight('V', 16)}}`;
};
const quoted = (text: string) => JSON.stringify(text);

const index = (weights: (size: number) => string): Shape['make'] =>
  oneFile('model.safetensors.index.json', (size) => `{"weight_map":{${weights(size)}}}`);

const pickles: readonly (readonly [name: string, make: Shape['make']])[] = [
  [
    'dicts in dicts, wide at the bottom',
    torch((size) => [
      remembered(1, DICT),
      DICT,
      MARK,
      ...[a.text('layers.0.w'), a.tensor(), a.text('c')],
      times(150, [DICT, a.text('k')]),
      ...[DICT, MARK],
      fill(size, (at) =>
        a.join(
          ...[a.text(`d${at}`), DICT, MARK],
          ...Array.from({ length: 100 }, (_, key) => a.join(0x4b, key, get(1))),
          SETITEMS,
        ),
      ),
      SETITEMS,
      times(150, [SET]),
      SETITEMS,
    ]),
  ],
  [
    'distinct dicts under a long path',
    torch((size) => [
      remembered(1, a.text('k'.repeat(Math.min(60_000, size / 4)))),
      ...[DICT, times(7, [get(1), DICT]), MARK],
      fill(size / 2, (at) => a.join(i32(at), DICT, get(1), DICT, SET)),
      ...[a.text('layers.0.w'), a.tensor(), SETITEMS, times(7, [SET])],
    ]),
  ],
  ...['A', '\\', '.'].map((character): (typeof pickles)[number] => [
    `a key of ${character} before many entries`,
    torch((size) => [
      ...[DICT, a.text(character.repeat(Math.min(size / 2, 2 ** 20)))],
      ...[DICT, MARK, a.text('layers.0.w'), a.tensor()],
      fill(size / 2, (at) => a.join(a.text(`c${at}`), NONE)),
      ...[SETITEMS, SET],
    ]),
  ]),
  ...['A', '\\'].map((character): (typeof pickles)[number] => [
    `a key of 60 kB of ${character} before many entries`,
    torch((size) => [
      ...[DICT, a.text(character.repeat(Math.min(size / 2, 60_000)))],
      ...[DICT, MARK, a.text('layers.0.w'), a.tensor()],
      fill(size / 2, (at) => a.join(i32(at), NONE)),
      ...[SETITEMS, SET],
    ]),
  ]),
  [
    'a long key before each of several state dicts',
    torch((size) => [
      remembered(1, a.text('\\'.repeat(Math.min(size / 2, 2 ** 20)))),
      ...[DICT, times(100, [get(1), DICT]), MARK],
      fill(size / 4, (at) => a.join(a.text(`m${at}`), MODEL)),
      ...[SETITEMS, times(100, [SET])],
    ]),
  ],
  [
    'one long tensor name in many dicts',
    torch((size) => [
      remembered(1, a.text('1'.repeat(Math.min(size / 2, 60_000)))),
      remembered(2, a.tensor()),
      ...[DICT, MARK, a.text('m'), MODEL],
      fill(size / 2, (at) => a.join(a.text(`${at}`), DICT, get(1), get(2), SET)),
      SETITEMS,
    ]),
  ],
  ['OrderedDict(list), again and again', calls(a.global('collections', 'OrderedDict'), pairs)],
  ['set(list), again and again', calls(builtin('set'), numbers)],
  ['frozenset(list), again and again', calls(builtin('frozenset'), numbers)],
  [
    'Counter(dict), again and again',
    calls(a.global('collections', 'Counter'), (size) => [
      ...[DICT, MARK, fill(size, (at) => a.join(i32(at), a.int(1))), SETITEMS],
    ]),
  ],
  [
    'bytes(text), again and again',
    calls(
      builtin('bytes'),
      (size) => [a.text('é'.repeat(Math.min(size / 2, 2 ** 19))), a.text('latin1')],
      a.TUPLE2,
    ),
  ],
  [
    'many flags, again and again',
    torch((size) => [
      DICT,
      remembered(1, ...[DICT, MARK, fill(size / 2, (at) => a.join(i32(at), a.FALSE)), SETITEMS]),
      remembered(2, a.global('torch._utils', '_rebuild_tensor_v2')),
      remembered(
        3,
        a.tuple(
          ...[a.storage(), a.int(0), a.tuple(a.int(4)), a.tuple(a.int(1))],
          ...[a.FALSE, NONE, get(1)],
        ),
      ),
      times(size / 2 / 13, [NONE, get(2), get(3), REDUCE, SET]),
      ...[a.text('model'), MODEL, SET],
    ]),
  ],
  [
    'nothing but entries',
    torch((size) => [
      DICT,
      MARK,
      fill(size, (at) => a.join(i32(at), NONE)),
      a.text('layers.0.w'),
      a.tensor(),
      SETITEMS,
    ]),
  ],
  [
    'nothing but texts',
    torch((size) => [
      DICT,
      MARK,
      fill(size, (at) => a.join(a.text(`${at}`), a.text(`${at}`))),
      a.text('layers.0.w'),
      a.tensor(),
      SETITEMS,
    ]),
  ],
  [
    'nothing but lists',
    torch((size) => [
      ...[DICT, times(size / 3, [NONE, a.EMPTY_LIST, SET]), a.text('model'), MODEL, SET],
    ]),
  ],
  [
    'nothing but floats',
    torch((size) => [
      DICT,
      a.text('f'),
      a.EMPTY_LIST,
      MARK,
      times(size / 9, [a.float(0.5)]),
      a.APPENDS,
      SET,
      a.text('layers.0.w'),
      a.tensor(),
      SET,
    ]),
  ],
  [
    'numbers that share a slot of the table',
    torch((size) => [
      ...[DICT, a.text('layers.0.w'), a.tensor(), SET],
      ...[
        a.text('c'),
        DICT,
        MARK,
        fill(size, (at) => a.join(i32(colliding(at)), NONE)),
        SETITEMS,
        SET,
      ],
    ]),
  ],
  [
    'views of one element',
    views(16, (at) => [
      [1 << (at % 20), 1 << (20 - (at % 20))],
      [0, 0],
    ]),
  ],
  ['views of 16 elements, each another one', views(16, (at) => [[1 + (at % 1_000_000)], [0]])],
  [
    'views of 8 MB, transposed',
    views(8_000_000, (at) => [
      [1000 - (at % 900), 1 + at],
      [1, 1000],
    ]),
  ],
  [
    'views of 8 MB, each element far from the next',
    views(8_000_000, (at) => [
      [3, 3, 2, 2, 2],
      [1_100_000 + (at % 50_000), 1_100_001, 1_100_003, 1_100_007, 1 + at],
    ]),
  ],
  [
    'views of 8 MB, a few elements of each MB',
    views(8_000_000, (at) => [
      [8, 1 + (at % 100)],
      [1_000_000, 3],
    ]),
  ],
  ['many tensors', views(16, (at) => [[1 + (at % 4)], [1]])],
];

/** Numbers that V8's tables put into one bucket: the inverse of its hash of small integers. */
function colliding(index: number): number {
  let hash = (index << 20) >>> 0;
  const unshift = (value: number, by: number) => {
    let result = value;
    for (let at = by; at < 32; at += by) result = (value ^ (result >>> by)) >>> 0;
    return result;
  };
  const inverse = (odd: number) => {
    let result = odd;
    for (let at = 0; at < 5; at++) result = Math.imul(result, 2 - Math.imul(odd, result));
    return result >>> 0;
  };
  hash = unshift(hash, 16);
  hash = Math.imul(hash, inverse(2057)) >>> 0;
  hash = unshift(hash, 4);
  hash = Math.imul(hash, inverse(5)) >>> 0;
  hash = unshift(hash, 12);
  // hash = ~hash + (hash << 15), which is hash * 32767 - 1
  hash = Math.imul(hash + 1, inverse(32767)) >>> 0;
  return hash | 0;
}

const headers: readonly (readonly [name: string, make: Shape['make']])[] = [
  ...['A', '.', '1.', '\\u0041', 'é', '\u0301'].map((text): (typeof headers)[number] => [
    `one name of ${text}`,
    safetensors(
      (size) =>
        `{"${text.repeat(size / text.length)}":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`,
      1,
    ),
  ]),
  ...['A', '1.', '\u0301'].map((text): (typeof headers)[number] => [
    `names of 60 kB of ${text}`,
    safetensors(
      (size) =>
        `{${fillText(size - 60_000, (at) => entry(text.repeat(Math.min(size, 60_000) / Buffer.byteLength(text) - 10) + at))}}`,
    ),
  ]),
  ['many names', safetensors((size) => `{${fillText(size, (at) => entry(`layers.${at}.w`))}}`)],
  [
    'many short names',
    safetensors((size) => `{${fillText(size, (at) => entry(at.toString(36)))}}`),
  ],
  ['a long text in the metadata', safetensors((size) => metadata(`"a":"${'x'.repeat(size)}"`), 1)],
  [
    'escapes in the metadata',
    safetensors((size) => metadata(`"a":"${'\\n'.repeat(size / 2)}"`), 1),
  ],
  [
    'many keys in the metadata',
    safetensors((size) => metadata(fillText(size, (at) => `"${at}":""`)), 1),
  ],
  [
    'many aliases',
    safetensors((size) => metadata(fillText(size, (at) => `"${at}":"layers.0.w"`)), 1),
  ],
  [
    'a shape of many sizes',
    safetensors((size) => `{"w":{"dtype":"U8","shape":[${fillText(size, () => '1')}]}}`),
  ],
  ['spaces', safetensors((size) => `{${' '.repeat(size)}}`)],
];

const indexes: readonly (readonly [name: string, make: Shape['make']])[] = [
  [
    'an index of many tensors',
    index((size) => fillText(size, (at) => `"${at}":"model.safetensors"`)),
  ],
  [
    'an index of many shards',
    index((size) => fillText(size, (at) => `"${at}":"${at}.safetensors"`)),
  ],
  ['an index with a long name', index((size) => `"${'.'.repeat(size)}":"model.safetensors"`)],
  ['an index with a long shard', index((size) => `"w":"${'a/'.repeat(size / 2)}.safetensors"`)],
  ['an index of brackets', index((size) => `"w":${'['.repeat(size)}`)],
  ['an index of one key', index((size) => fillText(size, () => '"a":""'))],
];

const projectors: readonly (readonly [name: string, make: Shape['make']])[] = [
  [
    'a projector with dicts held twice',
    torch(() => {
      const weight = a.tensor({
        size: a.tuple(a.int(2), a.int(2)),
        stride: a.tuple(a.int(2), a.int(1)),
      });
      return [
        a.dict(
          ...[
            a.text('state_dict'),
            a.dict(
              a.text('projectors.T.K.weight'),
              weight,
              a.text('projectors.T.V.weight'),
              weight,
            ),
          ],
          ...[a.text('zz'), laughs(50)],
        ),
      ];
    }),
  ],
  ...(
    [
      ['quotes without an end', (size) => `"${'\\"'.repeat(size / 2)}`],
      ['a list of floats', (size) => `[${fillText(size, () => '0.5')}]`],
      ['a list of NaN', (size) => `[${fillText(size, () => 'NaN')}]`],
      ['brackets', (size) => '['.repeat(size)],
      ['a long number', (size) => '1'.repeat(size)],
      ['a text', (size) => quoted('x'.repeat(size))],
      ['escapes', (size) => quoted('\n'.repeat(size / 2))],
      ['nested lists', (size) => '['.repeat(size / 2) + ']'.repeat(size / 2)],
    ] as readonly [string, (size: number) => string][]
  ).map(([name, text]): (typeof projectors)[number] => [
    `a projector's metadata: ${name}`,
    safetensors((size) => projector(`"zz":${quoted(text(size / 2))}`), 32),
  ]),
  [
    "a projector's metadata: many arguments",
    safetensors((size) => projector(fillText(size, (at) => `"${at}":"1"`)), 32),
  ],
  [
    "a projector's metadata: many teachers",
    safetensors(
      (size) =>
        projector(`"teacher_configs":${quoted(`{${fillText(size / 2, (at) => `"${at}":2`)}}`)}`),
      32,
    ),
  ],
  [
    'many adapters',
    oneFile('model.safetensors', (size) => {
      const count = Math.floor(size / 200);
      const tensors = Array.from({ length: 2 * count }, (_, at) => {
        const name = `projectors.${at >> 1}.${at % 2 === 0 ? 'K' : 'V'}.weight`;
        return `"${name}":{"dtype":"F32","shape":[1,1],"data_offsets":[${4 * at},${4 * at + 4}]}`;
      });
      const teachers = Array.from({ length: count }, (_, at) => `"${at}":1`);
      const json = `{"__metadata__":{"teacher_configs":${quoted(`{${teachers}}`)}},${tensors}}`;
      return fileBytes(json, 8 * count);
    }),
  ],
];

export const CHECKPOINT_SHAPES: readonly Shape[] = [
  ...[...pickles, ...headers, ...indexes].map(([name, make]) => ({ name, make, commands: READ })),
  {
    name: 'a config with dicts held twice',
    sizes: [4000],
    make: torch(() => [a.dict(a.text('model'), MODEL, a.text('config'), laughs(150))]),
    commands: [...READ, ...commands('verify FILE', 'profile FILE', 'quick-test FILE')],
  },
  ...projectors.map(([name, make]) => ({ name, make, commands: PROJECTOR })),
];
