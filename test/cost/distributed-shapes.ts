/** Small folders of several processes, shards and adapters that are expensive for a naive reader. */
import fs from 'node:fs';
import path from 'node:path';
import {
  dcpFolder,
  FILESYSTEM,
  list,
  METADATA,
  record,
  size as sizeOf,
} from '../checkpoint/distributed/dcp-folder.js';
import * as a from '../checkpoint/torch/assemble.js';
import { archive, inFolder } from '../checkpoint/torch/zip-builder.js';
import { fileBytes, fill, fillText, get, put, times } from './checkpoint-shapes.js';
import { commands, type Shape } from './shape.js';

type Files = Readonly<Record<string, Uint8Array | string>>;
type Row = readonly [name: string, files: (size: number) => Files];

const CONFIG = 'configs/minimind/minimind2-small.yaml';
const READ = commands(
  'inspect FILE',
  'inspect FILE --hash --json',
  `verify ${CONFIG} FILE`,
  `convert-checkpoint FILE FOLDER/out.safetensors --config ${CONFIG} --dtype bf16 --dry-run`,
  'diff FILE FILE',
);

/** Writes the files into a folder `model`, which replaces FILE. */
const folder =
  (files: (size: number) => Files): Shape['make'] =>
  (place, size) => {
    const target = path.join(place, 'model');
    for (const [name, content] of Object.entries(files(size))) {
      const file = path.join(target, name);
      fs.mkdirSync(path.dirname(file), { recursive: true });
      fs.writeFileSync(file, content);
    }
    return target;
  };

const count = (size: number, bytes: number) => Math.max(1, Math.floor(size / bytes));
const range = (length: number) => Array.from({ length }, (_, at) => at);
const listOf = (...items: Uint8Array[]) => list(items);
const digits = (value: number) => String(value).padStart(5, '0');

const torchFile = (root: Uint8Array, storages: readonly Uint8Array[] = []) =>
  archive({
    entries: inFolder({
      'data.pkl': a.pickle(root),
      version: '3\n',
      byteorder: 'little',
      ...Object.fromEntries(storages.map((bytes, key) => [`data/${key}`, bytes])),
    }),
  });
const vector = (elements: number, length = elements, key = 0) =>
  a.tensor({
    storage: a.storage({ key: a.text(`${key}`), length: a.int(length) }),
    size: a.tuple(a.int(elements)),
  });

/** Entries that a pickle repeats until it has the size. */
const REPEATED: readonly (readonly [name: string, entry: Uint8Array])[] = [
  ['dicts', a.join(a.EMPTY_DICT)],
  ['lists', a.join(a.EMPTY_LIST)],
  ['tuples', a.join(0x4b, 1, a.TUPLE1)],
  ['remembered dicts', a.join(a.EMPTY_DICT, a.MEMOIZE)],
  ['nothing', a.join(a.NONE)],
  ['floats', a.float(0.5)],
  ['sets', a.join(a.EMPTY_SET)],
  ['texts', a.text('')],
];
const repeated = (entry: Uint8Array, size: number) =>
  a.join(a.EMPTY_LIST, a.MARK, times(count(size, entry.length), [entry]), a.APPENDS);

// Checkpoints of torch.distributed.checkpoint.

interface DcpRoot {
  /** Values that the others get from the memo, from 1 on. */
  readonly shared?: readonly Uint8Array[];
  readonly stored: Uint8Array;
  readonly placed?: Uint8Array;
  readonly planned?: Uint8Array;
}

const dcp = ({ shared = [], stored, placed = Buffer.alloc(0), planned }: DcpRoot): Files => {
  const helpers = shared.map((value, at) => a.join(a.text(`helper ${at}`), value, put(at + 1)));
  const root = record(
    METADATA,
    'Metadata',
    ...[a.text('planner_data'), a.dict(...helpers, ...(planned ? [planned] : []))],
    ...[a.text('state_dict_metadata'), a.dict(stored)],
    ...[a.text('storage_data'), a.dict(placed)],
  );
  return { '.metadata': a.pickle(root), '__0_0.distcp': '' };
};

const layout = a.call(a.global('torch.serialization', '_get_layout'), a.text('torch.strided'));
const encoding = a.call(a.global(METADATA, '_MEM_FORMAT_ENCODING'), a.int(0));
const properties = a.join(
  ...[a.global(METADATA, 'TensorProperties'), a.EMPTY_TUPLE, a.NEWOBJ],
  a.tuple(a.global('torch', 'float32'), layout, a.FALSE, encoding, a.FALSE),
  a.BUILD,
);
const tensorRecord = (shape: Uint8Array, chunks: Uint8Array) =>
  record(
    METADATA,
    'TensorStorageMetadata',
    ...[a.text('properties'), properties, a.text('size'), shape, a.text('chunks'), chunks],
  );
const chunk = (offsets: Uint8Array, sizes: Uint8Array) =>
  record(METADATA, 'ChunkStorageMetadata', a.text('offsets'), offsets, a.text('sizes'), sizes);
const placeOf = (name: Uint8Array, offset: Uint8Array, bytes = 0) =>
  a.join(
    record(METADATA, 'MetadataIndex', a.text('fqn'), name, a.text('offset'), offset),
    record(
      FILESYSTEM,
      '_StorageInfo',
      ...[a.text('relative_path'), a.text('__0_0.distcp')],
      ...[a.text('offset'), a.int(0), a.text('length'), a.int(bytes)],
    ),
  );
const manySizes = (numbers: number) =>
  a.call(a.global('torch', 'Size'), a.join(a.MARK, times(numbers, [0x4b, 1]), a.TUPLE));

/** Bars that cross a square in one direction or the other, side by side. */
function bars(parts: number) {
  const half = Math.ceil(parts / 2);
  return {
    shape: [2 * half, 2 * half],
    parts: range(2 * half).map((at) =>
      at < half
        ? { offsets: [at, 0], sizes: [1, half] }
        : { offsets: [0, at], sizes: [2 * half, 1] },
    ),
  };
}

const distributed: readonly Row[] = [
  ...REPEATED.map(
    ([name, entry]): Row => [
      `DCP metadata of ${name}`,
      (size) => ({ '.metadata': a.pickle(repeated(entry, size)), '__0_0.distcp': '' }),
    ],
  ),
  [
    'DCP of many tensors',
    (size) =>
      dcpFolder(
        Object.fromEntries(
          range(count(size, 1500)).map((at) => [
            `layers.${at}.w`,
            { shape: [2], parts: [{ offsets: [0], sizes: [2] }] },
          ]),
        ),
      ),
  ],
  [
    'DCP of many parts',
    (size) => {
      const parts = count(size, 1400);
      const boxes = range(parts).map((at) => ({ offsets: [2 * at], sizes: [2] }));
      return dcpFolder({ 'layers.0.w': { shape: [2 * parts], parts: boxes } });
    },
  ],
  [
    'DCP of tensors of parts that cross',
    (size) =>
      dcpFolder(
        Object.fromEntries(range(20).map((at) => [`layers.${at}.w`, bars(count(size, 30_000))])),
      ),
  ],
  [
    'DCP of tensors with one list of parts',
    (size) =>
      dcp({
        shared: [
          listOf(
            a.join(...range(count(size / 3, 230)).map((at) => chunk(sizeOf([at]), sizeOf([1])))),
          ),
        ],
        stored: fill(size / 3, (at) =>
          a.join(a.text(`layers.${at}.w`), tensorRecord(sizeOf([count(size / 3, 230)]), get(1))),
        ),
        placed: fill(size / 3, (at) => placeOf(a.text('layers.0.w'), sizeOf([at]))),
      }),
  ],
  [
    'DCP of places with one long offset',
    (size) =>
      dcp({
        shared: [manySizes(size / 4)],
        stored: Buffer.alloc(0),
        placed: fill(size / 2, (at) => placeOf(a.text(`layers.${at}.w`), get(1))),
      }),
  ],
  [
    'DCP of tensors with one long shape',
    (size) =>
      dcp({
        shared: [manySizes(size / 4)],
        stored: fill(size / 2, (at) =>
          a.join(a.text(`layers.${at}.w`), tensorRecord(get(1), listOf())),
        ),
      }),
  ],
  [
    'DCP of long paths',
    (size) =>
      dcp({
        stored: fill(size / 4, (at) =>
          a.join(a.text(`layers.${at}.w`), tensorRecord(sizeOf([0]), listOf())),
        ),
        planned: fill((size * 3) / 4, (at) =>
          a.join(a.text(`layers.${at}.w`), a.tuple(a.text(`${at}`), times(90, [0x4b, 1]))),
        ),
      }),
  ],
  [
    'DCP of one long path',
    (size) =>
      dcp({
        shared: [a.join(a.MARK, times(size / 4, [0x4b, 1]), a.TUPLE)],
        stored: fill(size / 4, (at) =>
          a.join(a.text(`layers.${at}.w`), tensorRecord(sizeOf([0]), listOf())),
        ),
        planned: fill(size / 4, (at) => a.join(a.text(`layers.${at}.w`), get(1))),
      }),
  ],
  [
    'DCP of parts that are full of lists',
    (size) =>
      dcpFolder({
        'layers.0.w': {
          shape: [32],
          parts: range(16).map((at) => ({
            offsets: [2 * at],
            sizes: [2],
            item: torchFile(
              a.tensor({
                storage: a.storage({ length: a.int(2) }),
                size: a.tuple(a.int(2)),
                rest: [a.dict(a.text('junk'), repeated(a.join(a.EMPTY_LIST), size / 17))],
              }),
              [Buffer.alloc(8)],
            ),
          })),
        },
      }),
  ],
];

// Checkpoints of DeepSpeed ZeRO.

interface ZeroSpec {
  readonly stage?: 2 | 3;
  readonly world?: number;
  /** Opcodes of the vectors of each process, and their storage. */
  readonly vectors: Uint8Array;
  readonly storage: Uint8Array;
  /** Value 1 of the memo. */
  readonly shared?: Uint8Array;
  readonly shapes?: Uint8Array;
  readonly more?: readonly Uint8Array[];
}

function zero(spec: ZeroSpec): Files {
  const { stage = 3, world = 1, vectors, storage, shared = a.join(a.NONE), more = [] } = spec;
  const optimizer = torchFile(
    a.dict(
      ...[a.text('helper'), shared, put(1), a.text('optimizer_state_dict')],
      a.dict(
        ...[a.text('zero_stage'), a.int(stage), a.text('partition_count'), a.int(world)],
        a.text(stage === 3 ? 'fp32_flat_groups' : 'single_partition_of_fp32_groups'),
        listOf(vectors),
      ),
    ),
    [storage],
  );
  const model = torchFile(
    a.dict(
      ...[a.text('module'), a.dict(), a.text('buffer_names'), listOf()],
      ...[a.text('helper'), shared, put(1)],
      ...[a.text('param_shapes'), spec.shapes ?? listOf()],
      ...[a.text('frozen_param_shapes'), a.join(a.NONE), ...more],
    ),
    [storage],
  );
  return {
    latest: 'global_step1',
    ...Object.fromEntries(
      range(world).flatMap((rank) => {
        const name = `global_step1/zero_pp_rank_${rank}_mp_rank_00`;
        return [
          [`${name}_optim_states.pt`, optimizer],
          ...(stage === 3 ? [[`${name}_model_states.pt`, model]] : []),
        ];
      }),
    ),
    ...(stage === 3 ? {} : { 'global_step1/mp_rank_00_model_states.pt': model }),
  };
}

const parameters = (size: number, elements: number) =>
  a.dict(fill(size, (at) => a.join(a.text(`layers.${at}.w`), a.tuple(a.int(elements, 4)))));
/** Number of parameters that `parameters` makes. */
const parametersIn = (size: number) => {
  let [bytes, at] = [0, 0];
  for (; bytes < size; at++) bytes += `layers.${at}.w`.length + 13;
  return at;
};
const floats = (elements: number) => Buffer.alloc(4 * elements);

const zeroes: readonly Row[] = [
  [
    'ZeRO of one vector again and again',
    (size) => {
      const elements = count(size, 8);
      const vectors = count(size / 2, 6);
      return zero({
        shared: vector(elements),
        vectors: times(vectors, [get(1)]),
        storage: floats(elements),
        shapes: listOf(a.dict(a.text('layers.0.w'), a.tuple(a.int(elements), a.int(vectors)))),
      });
    },
  ],
  [
    'ZeRO of parameters across many vectors',
    (size) => {
      const half = size / 2;
      return zero({
        shared: vector(1),
        vectors: times(10 * parametersIn(half / 10), [get(1)]),
        storage: floats(1),
        shapes: listOf(parameters(half / 10, 10)),
      });
    },
  ],
  ...([2, 3] as const).map(
    (stage): Row => [
      `ZeRO of one dict of parameters as many groups, stage ${stage}`,
      (size) =>
        zero({
          stage,
          // Both files hold it.
          shared: parameters(size / 3, 0),
          vectors: vector(1),
          storage: floats(1),
          shapes: listOf(times(count(size / 3, get(1).length), [get(1)])),
        }),
    ],
  ),
  [
    'ZeRO of many processes and parameters',
    (size) => {
      const world = count(size, 10_000);
      const parametersSize = 20_000;
      const elements = parametersIn(parametersSize);
      return zero({
        world,
        vectors: vector(elements),
        storage: floats(elements),
        shapes: listOf(parameters(parametersSize, 1)),
      });
    },
  ],
  [
    'ZeRO of frozen parameters with one fragment',
    (size) => {
      const elements = count(size, 8);
      const each = (value: Uint8Array) =>
        a.dict(fill(size / 4, (at) => a.join(a.text(`layers.${at}.f`), value)));
      return zero({
        shared: vector(elements),
        vectors: vector(1, elements),
        storage: floats(elements),
        shapes: listOf(a.dict(a.text('layers.0.w'), a.tuple(a.int(1)))),
        more: [
          ...[a.text('frozen_param_shapes'), each(a.tuple(a.int(elements)))],
          ...[a.text('frozen_param_fragments'), each(get(1))],
        ],
      });
    },
  ],
  [
    'ZeRO of many names of one parameter',
    (size) => {
      const elements = count(size, 8);
      const names = fill(size / 2, (at) => a.join(a.text(`layers.${at}.s`), a.text('layers.0.w')));
      return zero({
        vectors: vector(elements),
        storage: floats(elements),
        shapes: listOf(a.dict(a.text('layers.0.w'), a.tuple(a.int(elements)))),
        more: [a.text('shared_params'), a.dict(names)],
      });
    },
  ],
  [
    'ZeRO of many processes that are full of lists',
    (size) =>
      zero({
        world: 16,
        shared: repeated(a.join(a.EMPTY_LIST), size / 33),
        vectors: vector(1),
        storage: floats(1),
        shapes: listOf(a.dict(a.text('layers.0.w'), a.tuple(a.int(16)))),
      }),
  ],
  [
    'ZeRO of many parameters',
    (size) =>
      zero({
        vectors: vector(parametersIn(size)),
        storage: floats(parametersIn(size)),
        shapes: listOf(parameters(size, 1)),
      }),
  ],
  [
    'ZeRO of many empty parameters',
    (size) =>
      zero({ vectors: vector(0, 1), storage: floats(1), shapes: listOf(parameters(size, 0)) }),
  ],
];

// Shards.

const index = (entries: readonly (readonly [name: string, shard: string])[]) =>
  JSON.stringify({ weight_map: Object.fromEntries(entries) });
const header = (name: string) =>
  `{${JSON.stringify(name)}:{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`;

const shards: readonly Row[] = [
  ...REPEATED.slice(0, 4).map(
    ([name, entry]): Row => [
      `PyTorch shards full of ${name}`,
      (size) => {
        const files = range(16).map((at) => `pytorch_model-${digits(at + 1)}-of-00016.bin`);
        return {
          'pytorch_model.bin.index.json': index(files.map((file, at) => [`layers.${at}.w`, file])),
          ...Object.fromEntries(
            files.map((file, at) => [
              file,
              torchFile(
                a.dict(
                  ...[a.text(`layers.${at}.w`), vector(4)],
                  ...[a.text('junk'), repeated(entry, size / 17)],
                ),
                [Buffer.alloc(16)],
              ),
            ]),
          ),
        };
      },
    ],
  ),
  [
    'many safetensors shards',
    (size) => {
      const files = range(Math.min(4000, count(size, 1500)));
      return {
        'model.safetensors.index.json': index(
          files.map((at) => [`layers.${at}.w`, `${at}.safetensors`]),
        ),
        ...Object.fromEntries(
          files.map((at) => [`${at}.safetensors`, fileBytes(header(`layers.${at}.w`), 1)]),
        ),
      };
    },
  ],
  [
    'shards of many names each',
    (size) => {
      const part = (shard: number) => (at: number) =>
        `"${shard}.${at}":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}`;
      const headers = range(16).map((shard) => `{${fillText(size / 24, part(shard))}}`);
      return {
        'model.safetensors.index.json': index(
          headers.flatMap((text, shard) =>
            Object.keys(JSON.parse(text)).map((name) => [name, `${shard}.safetensors`] as const),
          ),
        ),
        ...Object.fromEntries(
          headers.map((text, shard) => [`${shard}.safetensors`, fileBytes(text, 0)]),
        ),
      };
    },
  ],
];

// LoRA adapters of PEFT.

const adapter = (
  config: Readonly<Record<string, unknown>>,
  modules: readonly string[] = ['model.layers.0.self_attn.q_proj'],
): Files => {
  const names = modules.flatMap((module) =>
    [`A`, `B`].map((part) => `base_model.model.${module}.lora_${part}.weight`),
  );
  const tensors = names.map(
    (name, at) => `"${name}":{"dtype":"U8","shape":[1,1],"data_offsets":[${at},${at + 1}]}`,
  );
  const whole = { peft_type: 'LORA', r: 1, lora_alpha: 1, target_modules: ['q_proj'], ...config };
  return {
    'adapter_config.json': JSON.stringify(whole),
    'adapter_model.safetensors': fileBytes(`{${tensors}}`, names.length),
  };
};
const named = (size: number, name: (at: number) => string) =>
  range(count(size, name(99_999).length + 3)).map(name);
const layers = (size: number) =>
  range(count(size, 270)).map((at) => `model.layers.${at}.self_attn.q_proj`);
const patterns = (size: number, name: (at: number) => string) =>
  Object.fromEntries(named(size, name).map((each) => [each, 1]));

const adapters: readonly Row[] = [
  ['an adapter of many modules', (size) => adapter({}, layers(size))],
  [
    'an adapter of many targets and modules',
    (size) => adapter({ target_modules: named(size / 2, (at) => `t${at}`) }, layers(size / 2)),
  ],
  [
    'an adapter of many ranks and modules',
    (size) => adapter({ rank_pattern: patterns(size / 2, (at) => `a${at}`) }, layers(size / 2)),
  ],
  [
    'an adapter of many patterns of ranks and modules',
    (size) =>
      adapter({ alpha_pattern: patterns(size / 2, (at) => `.*[a-z]+${at}`) }, layers(size / 2)),
  ],
  [
    'an adapter of slow patterns of ranks',
    (size) => adapter({ rank_pattern: patterns(size, (at) => `${'.*'.repeat(20)}x${at}`) }),
  ],
  [
    'an adapter with a slow pattern of targets',
    (size) => adapter({ target_modules: `${'.*'.repeat(size / 2)}x` }),
  ],
  [
    'an adapter with a pattern of groups',
    (size) => adapter({ target_modules: '('.repeat(size / 2) + ')'.repeat(size / 2) }),
  ],
  [
    'an adapter with a pattern of repeats',
    () => adapter({ target_modules: `${'('.repeat(20)}a${'{9})'.repeat(20)}` }),
  ],
  [
    'an adapter of many layers and modules',
    (size) =>
      adapter(
        {
          layers_to_transform: range(count(size / 2, 7)),
          layers_pattern: named(size / 4, (at) => `p${at}`),
        },
        layers(size / 4),
      ),
  ],
  [
    'an adapter of many saved modules',
    (size) => adapter({ modules_to_save: named(size / 2, (at) => `m${at}`) }, layers(size / 2)),
  ],
  [
    'an adapter with a config of brackets',
    (size) => ({ ...adapter({}), 'adapter_config.json': '['.repeat(size) }),
  ],
  ['an adapter with a config of many keys', (size) => adapter(patterns(size, (at) => `k${at}`))],
];

const ADAPTER = commands('inspect FILE', 'verify fixtures/hf/llama/config.json FILE');

export const DISTRIBUTED_SHAPES: readonly Shape[] = [
  ...[...distributed, ...zeroes, ...shards].map(([name, files]) => ({
    name,
    make: folder(files),
    commands: READ,
  })),
  ...adapters.map(([name, files]) => ({ name, make: folder(files), commands: ADAPTER })),
];
