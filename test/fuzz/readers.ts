/** All readers of untrusted files, with valid files and their mutations. */
import fs from 'node:fs';
import path from 'node:path';
import { UserError } from '../../src/base/errors.js';
import { readImatrix } from '../../src/checkpoint/gguf/imatrix.js';
import { openCheckpoint } from '../../src/checkpoint/open.js';
import { readTensor } from '../../src/checkpoint/view.js';
import { loadModelFile } from '../../src/input/model-input/read-model-file.js';
import { measureText } from '../../src/language/tokenizer/tokenizer.js';
import {
  ARCHITECTURE,
  array,
  gguf,
  key,
  tensor,
  text,
  types,
  u32,
} from '../checkpoint/gguf/files.js';
import { entry, imatrix, older } from '../checkpoint/gguf/imatrix-files.js';
import { initializer, onnx } from '../checkpoint/onnx/files.js';
import { folderOf, safetensors } from '../checkpoint/temp-folder.js';
import * as a from '../checkpoint/torch/assemble.js';
import { archive, inFolder } from '../checkpoint/torch/zip-builder.js';
import { inPackage } from '../fixtures.js';
import { entriesOf, mutateArchive, mutateLegacy } from './archives.js';
import { Dice, mutateBytes } from './dice.js';
import { mutateJson, mutateSafetensors, mutateYaml } from './texts.js';

/** A reader under test. */
export interface Reader {
  /** Writes the file of a seed. @returns The path to open. */
  write(seed: number): string;
  /** @throws UserError when the file is refused. */
  read(file: string): Promise<void>;
}

const fixture = (...parts: string[]) => fs.readFileSync(inPackage('fixtures', ...parts));

/** Valid torch.save files of some KB. */
const VALID = [
  'zip_odd_names.pt',
  'hand_py2_strings.pt',
  'zip_root_archive.pt',
  'nested_model_state_dict.pt',
  'zip_no_byteorder.pt',
  'zip_big_endian.pt',
  'zip_shapes_dtypes.pt',
] as const;
const VALID_LEGACY = ['legacy_shapes_dtypes.pth', 'legacy_view_metadata.pth'] as const;

const checkpoint = (name: string) => fixture('checkpoints/valid', name);

/** An object with everything that PyTorch interprets: parameters, views, dtypes, a Counter, a state. */
function object(hasViews: boolean): Buffer {
  const view = (key: string, offset: number) =>
    a.storage(hasViews ? { view: a.tuple(a.text(key), a.int(offset), a.int(2)) } : {});
  // PyTorch refuses legacy storages without the field for a view.
  const whole = hasViews ? { view: a.NONE } : {};
  // Storages of legacy files always have a type.
  const untyped = a.storage({
    type: hasViews ? a.global('torch', 'ByteStorage') : a.global('torch.storage', 'UntypedStorage'),
    key: a.text('1'),
    length: a.int(16),
    ...whole,
  });
  const complex = a.storage({
    type: a.global('torch', 'ComplexFloatStorage'),
    key: a.text('2'),
    length: a.int(2),
    ...whole,
  });
  return a.pickle(
    a.dict(
      a.text('model'),
      a.join(
        a.call(a.global('collections', 'OrderedDict')),
        a.put(1),
        a.MARK,
        ...[a.text('layers.0.w'), a.tensor({ storage: a.storage(whole) }), a.put(2)],
        ...[a.text('layers.1.c'), a.tensor({ storage: complex, size: a.tuple(a.int(2)) })],
        ...[a.text('layers.0.v'), a.tensor({ storage: view('8', 2), size: a.tuple(a.int(2)) })],
        ...[a.text('layers.1.v'), a.tensor({ storage: view('9', 0), size: a.tuple(a.int(2)) })],
        a.text('layers.0.p'),
        a.call(a.global('torch._utils', '_rebuild_parameter'), a.get(2), a.TRUE, a.dict()),
        a.text('layers.0.t'),
        a.tensor({
          by: a.global('torch._utils', '_rebuild_tensor_v3'),
          storage: untyped,
          size: a.tuple(a.int(2), a.int(2)),
          stride: a.tuple(a.int(1), a.int(2)),
          rest: [a.global('torch', 'float32'), a.NONE],
        }),
        a.SETITEMS,
        a.join(a.dict(a.text('_metadata'), a.dict()), a.BUILD),
      ),
      a.text('counts'),
      a.call(a.global('collections', 'Counter'), a.dict(a.text('step'), a.int(3))),
      ...[a.text('step'), a.int(7)],
    ),
  );
}

const floats = (from: number) =>
  Buffer.from(Float32Array.from([from, from + 1, from + 2, from + 3]).buffer);

const HAND_ZIP = archive({
  entries: inFolder({
    'data.pkl': object(false),
    byteorder: 'little',
    'data/0': floats(1),
    'data/1': floats(-9),
    'data/2': floats(5),
    version: '3\n',
  }),
});
const HAND_LEGACY = a.legacy(
  object(true),
  ['0', '1', '2'],
  [a.join(a.u64(4n), floats(1)), a.join(a.u64(16n), floats(-9)), a.join(a.u64(2n), floats(5))],
);

/** A file of 700 bytes, most of them header, with every kind of value. */
const GGUF = gguf({
  keys: [
    ARCHITECTURE,
    key('a.bool', types.BOOL, Buffer.from([1])),
    key('a.u32', types.UINT32, u32(7)),
    key('a.numbers', types.ARRAY, array(types.UINT32, 3, Buffer.alloc(12, 1))),
    key('a.texts', types.ARRAY, array(types.STRING, 2, Buffer.concat([text('x'), text('yz')]))),
    key('general.alignment', types.UINT32, u32(32)),
  ],
  tensors: [
    tensor({ name: 'blk.0.q8', sizes: [32, 2], type: 8 }),
    tensor({ name: 'blk.0.q4', sizes: [32], type: 2, offset: 96 }),
    tensor({ name: 'blk.1.f16', sizes: [3, 2], type: 1, offset: 128 }),
    tensor({ name: 'blk.1.i8', sizes: [5], type: 24, offset: 160 }),
  ],
  data: Buffer.alloc(192, 3),
});

const folder = folderOf({ x: '' });

/** A reader of one file, written again for every seed. */
function ofFile(
  name: string,
  sources: readonly Buffer[],
  mutate: (source: Buffer, dice: Dice) => Uint8Array,
  read: Reader['read'],
): Reader {
  const file = path.join(folder, name);
  return {
    write(seed) {
      const dice = new Dice(seed);
      fs.writeFileSync(file, mutate(dice.pick(sources), dice));
      return file;
    },
    read,
  };
}

/** Opens a checkpoint and reads all its tensors. */
async function readCheckpoint(file: string): Promise<void> {
  const opened = openCheckpoint(file);
  try {
    for (const tensor of opened.tensors.values()) readTensor(tensor);
  } finally {
    opened.close();
  }
}

const readModel = async (file: string): Promise<void> => void (await loadModelFile(file));

function zips(): Reader {
  const sources = [HAND_ZIP, HAND_ZIP, HAND_ZIP, ...VALID.map(checkpoint)];
  const entries = new Map(sources.map((source) => [source, entriesOf(source)]));
  const mutate = (source: Buffer, dice: Dice) => mutateArchive(entries.get(source) ?? [], dice);
  return ofFile('zip.pt', sources, mutate, readCheckpoint);
}

function shards(): Reader {
  const [first, second] = ['model-00001-of-00002.safetensors', 'model-00002-of-00002.safetensors'];
  const files = {
    [first]: safetensors({ 'layers.0.w': [1, 2], 'layers.0.v': [3] }),
    [second]: safetensors({ 'layers.1.w': [4, 5], 'layers.1.v': [6] }),
  };
  const place = folderOf(files);
  const index = JSON.stringify({
    metadata: { total_size: 6 },
    weight_map: {
      'layers.0.w': first,
      'layers.0.v': first,
      'layers.1.w': second,
      'layers.1.v': second,
    },
  });
  return {
    write(seed) {
      const dice = new Dice(seed);
      const isIndex = dice.happens(0.7);
      const json = isIndex ? mutateJson(index, dice) : Buffer.from(index);
      fs.writeFileSync(path.join(place, 'model.safetensors.index.json'), json);
      const shard = isIndex ? files[first] : mutateSafetensors(files[first] ?? json, dice);
      fs.writeFileSync(path.join(place, first), shard ?? json);
      return place;
    },
    read: readCheckpoint,
  };
}

const inConfigs = (...parts: string[]) => fs.readFileSync(inPackage('configs', ...parts));

/** Readers of weights that PyTorch or the safetensors library reads too. */
export const WEIGHTS = {
  'torch zip': zips,
  'torch legacy': () =>
    ofFile(
      'legacy.pth',
      [HAND_LEGACY, HAND_LEGACY, ...VALID_LEGACY.map(checkpoint)],
      mutateLegacy,
      readCheckpoint,
    ),
  safetensors: () =>
    ofFile(
      'x.safetensors',
      [
        ...['st_all_dtypes', 'st_nan_inf', 'st_zero_size', 'st_unpadded'].map((name) =>
          checkpoint(`${name}.safetensors`),
        ),
        safetensors({ 'layers.0.w': [1, 2], 'layers.0.v': [3] }, { format: 'pt' }),
      ],
      mutateSafetensors,
      readCheckpoint,
    ),
} as const satisfies Record<string, () => Reader>;

export const READERS: Readonly<Record<string, () => Reader>> = {
  ...WEIGHTS,
  gguf: () =>
    ofFile(
      'x.gguf',
      [GGUF, GGUF, GGUF, fs.readFileSync(inPackage('fixtures/gguf/rounding.gguf'))],
      mutateBytes,
      readCheckpoint,
    ),
  'an importance matrix': () =>
    ofFile(
      'imatrix',
      [
        imatrix({ a: { sums: [1, 2, 3, 4], counts: [1, 2] }, b: { sums: [5], counts: [1] } }),
        older([entry('blk.0.attn_q.weight', 2, [1, 2, 3]), entry('b', 1, [4])]),
      ],
      mutateBytes,
      async (file) => {
        readImatrix(file);
      },
    ),
  onnx: () =>
    ofFile(
      'x.onnx',
      [
        fixture('onnx/merged.onnx'),
        onnx({
          initializers: [
            initializer({}),
            initializer({ type: 7, name: 'i', data: { integers: [1n, 2n] } }),
          ],
        }),
      ],
      mutateBytes,
      readCheckpoint,
    ),
  'an index of shards': shards,
  'a config in YAML': () =>
    ofFile(
      'config.yaml',
      [
        inConfigs('hybrid/tiny.yaml'),
        inConfigs('hybrid/shared.yaml'),
        inConfigs('minigpt/minigpt-tiny.yaml'),
        inConfigs('minimind/minimind-3-moe.yaml'),
      ],
      (source, dice) => mutateYaml(source.toString(), dice),
      readModel,
    ),
  'a config.json': () =>
    ofFile(
      'config.json',
      ['llama', 'gpt2', 'mixtral', 'deepseek-v3', 'phi3', 'gemma3'].map((name) =>
        fixture('hf', name, 'config.json'),
      ),
      (source, dice) => mutateJson(source.toString(), dice),
      readModel,
    ),
  'a tokenizer.json': () => {
    const text = path.join(folder, 'text.txt');
    fs.writeFileSync(text, 'The quick brown fox, 42 times: naïve façade.\n');
    return ofFile(
      'tokenizer.json',
      [fixture('tokenizers/bpe-512.json')],
      (source, dice) => mutateJson(source.toString(), dice),
      async (file) => void (await measureText([file], text)),
    );
  },
};

/** Reads the file of a seed. @throws Error when the reader neither accepts nor refuses it. */
export async function outcomeOf(reader: Reader, seed: number): Promise<'accepted' | 'refused'> {
  try {
    await reader.read(reader.write(seed));
    return 'accepted';
  } catch (error) {
    if (error instanceof UserError) return 'refused';
    throw new Error(`seed ${seed}`, { cause: error });
  }
}
