/** Small checkpoints whose tensors have many times their bytes, in each way that a format permits. */
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { UserError } from '../../src/base/errors.js';
import { sumOf } from '../../src/base/values.js';
import type { Checkpoint } from '../../src/checkpoint/checkpoint.js';
import { mostTensorBytes, ruleOf } from '../../src/checkpoint/checkpoint-rules.js';
import { openCheckpoint } from '../../src/checkpoint/open.js';
import { viewsOf } from '../../src/checkpoint/sharing.js';
import { readTensor, tensorPieces } from '../../src/checkpoint/view.js';
import { convert } from '../convert/conversion/convert.js';
import { Dice } from '../fuzz/dice.js';
import { isWhole } from '../sampled.js';
import { dcpFolder } from './distributed/dcp-folder.js';
import * as gguf from './gguf/files.js';
import { initializer, onnx, bytes as onnxBytes } from './onnx/files.js';
import { fileBytes } from './safetensors/files.js';
import { folderOf, ruleBrokenBy } from './temp-folder.js';
import * as a from './torch/assemble.js';
import { archive, inFolder } from './torch/zip-builder.js';

type Files = Readonly<Record<string, string | Uint8Array>>;

/** Numbers of one attack: `copies` tensors of `elements` elements, made of `stored` elements. */
interface Claim {
  readonly copies: number;
  readonly elements: number;
  readonly stored: number;
  readonly dice: Dice;
}

const range = (length: number) => Array.from({ length }, (_, at) => at);
const torchFile = (root: Uint8Array, ...data: readonly Uint8Array[]) =>
  archive({
    entries: inFolder({
      'data.pkl': a.pickle(root),
      version: '3\n',
      byteorder: 'little',
      ...Object.fromEntries(data.map((bytes, key) => [`data/${key}`, bytes])),
    }),
  });
const listOf = (items: readonly Uint8Array[]) => a.join(a.EMPTY_LIST, a.MARK, ...items, a.APPENDS);
const sizesOf = (...sizes: readonly number[]) => a.tuple(...sizes.map((size) => a.int(size)));

/** View of a storage: one element again and again, or a window of it that another view may overlap. */
function view({ elements, stored, dice }: Claim, at: number) {
  const isWindow = elements <= stored;
  return a.tensor({
    storage: a.storage({ length: a.int(stored) }),
    offset: a.int(isWindow ? at % (stored - elements + 1) : dice.below(stored)),
    size: sizesOf(elements),
    stride: sizesOf(isWindow ? 1 : 0),
  });
}
const views = (claim: Claim) =>
  a.dict(...range(claim.copies).flatMap((at) => [a.text(`layers.${at}.w`), view(claim, at)]));
const floats = (claim: Claim) => Buffer.alloc(4 * claim.stored);
const whole = ({ stored }: Claim) =>
  a.tensor({ storage: a.storage({ length: a.int(stored) }), size: sizesOf(stored) });

/** Files of ZeRO; each vector of the process is the whole storage. */
function zero(claim: Claim, stage: 2 | 3, model: readonly Uint8Array[], copies: number): Files {
  const vectors = listOf(range(copies).map(() => whole(claim)));
  const optimizer = a.dict(
    ...[a.text('zero_stage'), a.int(stage), a.text('partition_count'), a.int(1)],
    ...[a.text(stage === 3 ? 'fp32_flat_groups' : 'single_partition_of_fp32_groups'), vectors],
  );
  const states = a.dict(
    ...[a.text('module'), a.dict(), a.text('buffer_names'), listOf([]), ...model],
  );
  const rank = stage === 3 ? 'zero_pp_rank_0_' : '';
  return {
    'zero_pp_rank_0_mp_rank_00_optim_states.pt': torchFile(
      a.dict(a.text('optimizer_state_dict'), optimizer),
      floats(claim),
    ),
    [`${rank}mp_rank_00_model_states.pt`]: torchFile(states, floats(claim)),
  };
}
const shapes = (count: number, sizes: Uint8Array) =>
  a.dict(...range(count).flatMap((at) => [a.text(`layers.${at}.w`), sizes]));

const ATTACKS: Readonly<Record<string, (claim: Claim) => Files>> = {
  'views of one storage': (claim) => ({ 'model.pt': torchFile(views(claim), floats(claim)) }),
  'views of one storage in a legacy file': (claim) => ({
    'model.pt': a.legacy(
      a.pickle(views(claim)),
      ['0'],
      [a.legacyData(BigInt(claim.stored), 4 * claim.stored)],
    ),
  }),
  'views in several shards': (claim) => {
    const names = range(3).map((at) => `pytorch_model-0000${at + 1}-of-00003.bin`);
    const own = (shard: number) => ({ ...claim, copies: Math.ceil(claim.copies / 3), shard });
    const file = (shard: number) =>
      torchFile(
        a.dict(
          ...range(own(shard).copies).flatMap((at) => [
            a.text(`${shard}.${at}.w`),
            view(claim, at),
          ]),
        ),
        floats(claim),
      );
    const entries = names.flatMap((name, shard) =>
      range(own(shard).copies).map((at) => [`${shard}.${at}.w`, name]),
    );
    return {
      'pytorch_model.bin.index.json': JSON.stringify({
        weight_map: Object.fromEntries(entries),
      }),
      ...Object.fromEntries(names.map((name, shard) => [name, file(shard)])),
    };
  },
  'packed weights with one storage': ({ copies, stored }) => {
    const words = a.tensor({
      storage: a.storage({ type: a.global('torch', 'IntStorage'), length: a.int(stored) }),
      size: sizesOf(1, stored),
      stride: sizesOf(stored, 1),
    });
    const scale = a.tensor({
      storage: a.storage({ key: a.text('1'), length: a.int(1) }),
      size: sizesOf(1, 1),
      stride: sizesOf(1, 1),
    });
    const shape = a.tensor({
      storage: a.storage({
        type: a.global('torch', 'IntStorage'),
        key: a.text('2'),
        length: a.int(2),
      }),
      size: sizesOf(2),
    });
    const weights = range(copies).flatMap((at) => [
      ...[a.text(`layers.${at}.weight_packed`), words],
      ...[a.text(`layers.${at}.weight_scale`), scale],
      ...[a.text(`layers.${at}.weight_shape`), shape],
    ]);
    return {
      'model.pt': torchFile(
        a.dict(...weights),
        Buffer.alloc(4 * stored),
        Buffer.alloc(4),
        Buffer.from(Int32Array.of(1, 8 * stored).buffer),
      ),
    };
  },
  'ZeRO, one vector in each place': (claim) =>
    zero(
      claim,
      3,
      [
        a.text('param_shapes'),
        listOf([a.dict(a.text('layers.0.w'), sizesOf(claim.copies, claim.stored))]),
      ],
      claim.copies,
    ),
  'ZeRO, one vector as each group': (claim) =>
    zero(
      claim,
      2,
      [
        a.text('param_shapes'),
        listOf(
          range(claim.copies).map((at) => a.dict(a.text(`layers.${at}.w`), sizesOf(claim.stored))),
        ),
      ],
      claim.copies,
    ),
  'ZeRO, one fragment of all frozen parameters': (claim) =>
    zero(
      claim,
      3,
      [
        ...[a.text('param_shapes'), listOf([a.dict(a.text('t.w'), sizesOf(claim.stored))])],
        ...[a.text('frozen_param_shapes'), shapes(claim.copies, sizesOf(claim.stored))],
        ...[a.text('frozen_param_fragments'), shapes(claim.copies, whole(claim))],
      ],
      1,
    ),
  'ZeRO, buffers that are views': (claim) => ({
    ...zero(claim, 3, [], 1),
    'zero_pp_rank_0_mp_rank_00_model_states.pt': torchFile(
      a.dict(
        ...[a.text('module'), views(claim)],
        a.text('buffer_names'),
        listOf(range(claim.copies).map((at) => a.text(`layers.${at}.w`))),
        ...[a.text('param_shapes'), listOf([a.dict(a.text('t.w'), sizesOf(claim.stored))])],
      ),
      floats(claim),
    ),
  }),
  'DCP, parts that are views': (claim) => {
    const parts = Math.min(claim.copies, 20);
    return dcpFolder({
      'layers.0.w': {
        shape: [parts * claim.elements],
        parts: range(parts).map((at) => ({
          offsets: [at * claim.elements],
          sizes: [claim.elements],
          item: torchFile(view(claim, at), floats(claim)),
        })),
      },
      'layers.1.w': {
        shape: [claim.elements],
        parts: [
          { offsets: [0], sizes: [claim.elements], item: torchFile(view(claim, 0), floats(claim)) },
        ],
      },
    });
  },
  'DCP, parts at one place': (claim) =>
    dcpFolder(
      Object.fromEntries(
        range(claim.copies).map((at) => [
          `layers.${at}.w`,
          { shape: [2], parts: [{ offsets: [0], sizes: [2], at: 0 }] },
        ]),
      ),
    ),
  'ONNX, one place in a file of values': (claim) => ({
    'model.onnx': onnx({
      initializers: range(claim.copies).map((at) =>
        initializer({
          name: `layers.${at}.w`,
          sizes: [Math.min(claim.elements, claim.stored)],
          data: {
            external: {
              location: claim.dice.pick(['values', './values']),
              offset: '0',
              length: String(4 * Math.min(claim.elements, claim.stored)),
            },
          },
        }),
      ),
    }),
    values: floats(claim),
  }),
  'ONNX, values beyond the file': (claim) => ({
    'model.onnx': onnx({
      initializers: range(claim.copies).map((at) =>
        initializer({
          name: `layers.${at}.w`,
          sizes: [claim.elements],
          data: { external: { location: 'values' } },
        }),
      ),
    }),
    values: floats(claim),
  }),
  'ONNX, one place from graphs in graphs': (claim) => {
    const most = Math.min(claim.elements, claim.stored);
    const tensorAt = (at: number) =>
      initializer({
        name: `layers.${at}.w`,
        sizes: [most],
        data: { external: { location: 'values', length: String(4 * most) } },
      });
    let graph = tensorAt(0);
    for (let at = 1; at < claim.copies; at++) {
      // A branch of its own, or around all graphs before.
      const inner = onnxBytes(1, onnxBytes(5, onnxBytes(6, at % 12 === 0 ? graph : tensorAt(at))));
      graph = Buffer.concat([at % 12 === 0 ? tensorAt(at) : graph, inner]);
    }
    return { 'model.onnx': onnx({ initializers: [graph] }), values: floats(claim) };
  },
  'ONNX, one file in nested folders under many names': (claim) => {
    const file = floats(claim);
    const locations = ['a/values', './a/values', 'a/./values', 'a//values', 'a/b/c/values'];
    return {
      'model.onnx': onnx({
        initializers: range(claim.copies).map((at) =>
          initializer({
            name: `layers.${at}.w`,
            sizes: [claim.stored],
            data: { external: { location: claim.dice.pick(locations) } },
          }),
        ),
      }),
      'a/values': file,
      'a/b/c/values': file,
    };
  },
  'GGUF, one offset of all tensors': (claim) => ({
    'model.gguf': gguf.gguf({
      tensors: range(claim.copies).map((at) =>
        gguf.tensor({
          name: `blk.${at}.ffn_up.weight`,
          sizes: [Math.min(claim.elements, claim.stored)],
        }),
      ),
      data: floats(claim),
    }),
  }),
  'safetensors, one range of all tensors': (claim) => ({
    'model.safetensors': fileBytes(
      `{${range(claim.copies).map(
        (at) =>
          `"layers.${at}.w":{"dtype":"F32","shape":[${claim.stored}],"data_offsets":[0,${4 * claim.stored}]}`,
      )}}`,
      4 * claim.stored,
    ),
  }),
  'an index of one file under many names': (claim) => {
    const file = fileBytes(
      `{"w":{"dtype":"F32","shape":[${claim.stored}],"data_offsets":[0,${4 * claim.stored}]}}`,
      4 * claim.stored,
    );
    const spellings = ['a.safetensors', 'b.safetensors', 'c/a.safetensors'];
    return {
      'model.safetensors.index.json': JSON.stringify({
        weight_map: Object.fromEntries(
          range(claim.copies).map((at) => [`w${at || ''}`, claim.dice.pick(spellings)]),
        ),
      }),
      'a.safetensors': file,
      'b.safetensors': file,
      'c/a.safetensors': file,
    };
  },
};

/** Number of elements, from one to far beyond the limit. */
const size = (dice: Dice, most: number) => Math.ceil(2 ** (dice.next() * Math.log2(most)));

const claimOf = (dice: Dice): Claim => ({
  copies: size(dice, 300),
  elements: size(dice, 2 ** 28),
  stored: size(dice, 2 ** 15),
  dice,
});

/** The same files without an attack. */
const SMALL: Claim = { copies: 1, elements: 4, stored: 4, dice: new Dice(0) };

/** Bytes up to which all values are read too. */
const MOST_READ = isWhole ? 2 ** 26 : 2 ** 21;

function checkReading(checkpoint: Checkpoint): void {
  const { files, tensors } = checkpoint;
  const distinct = viewsOf(tensors).map(({ tensor }) => tensor);
  const most = mostTensorBytes(sumOf(files, ({ size: bytes }) => bytes));
  const claimed = sumOf(distinct, ({ bytes }) => bytes);
  expect(claimed, 'bytes of the tensors').toBeLessThanOrEqual(most);
  if (claimed > MOST_READ) return;
  const before = sumOf(files, ({ bytesRead }) => bytesRead);
  for (const tensor of distinct) {
    for (const piece of tensorPieces(tensor, 2 ** 20)) readTensor(piece);
  }
  const read = sumOf(files, ({ bytesRead }) => bytesRead) - before;
  expect(read, 'bytes that are read').toBeLessThanOrEqual(most);
}

/** Path of the files to open: the folder, or the one file whose folder is not enough. */
function placeOf(files: Files): string {
  const folder = folderOf(files);
  return 'model.onnx' in files ? path.join(folder, 'model.onnx') : folder;
}

/** Attacks of which a conversion wrote a file. */
const converted = new Set<string>();

describe.each(Object.entries(ATTACKS))('tensors larger than their files: %s', (attack, filesOf) => {
  it.each(range(isWhole ? 200 : 6))('are refused or bounded, seed %i', (seed) => {
    const place = placeOf(filesOf(claimOf(new Dice(seed))));
    let checkpoint: Checkpoint;
    try {
      checkpoint = openCheckpoint(place);
    } catch (error) {
      expect(ruleOf(error), String(error)).toBeDefined();
      return;
    }
    try {
      checkReading(checkpoint);
    } finally {
      checkpoint.close();
    }
  });

  it.each(range(isWhole ? 40 : 2))('are converted into no more bytes, seed %i', async (seed) => {
    const place = placeOf(filesOf(seed === 0 ? SMALL : claimOf(new Dice(1000 + seed))));
    let most = 0;
    try {
      const checkpoint = openCheckpoint(place);
      checkpoint.close();
      most = mostTensorBytes(sumOf(checkpoint.files, ({ size: bytes }) => bytes));
      if (sumOf(viewsOf(checkpoint.tensors), ({ tensor }) => tensor.bytes) > MOST_READ) return;
    } catch {
      // Other seeds show how such files are refused.
      return;
    }
    const out = path.join(folderOf({}), 'out.safetensors');
    try {
      await convert(place, out, { dtype: 'BF16', noConfig: true });
      expect(fs.statSync(out).size).toBeLessThanOrEqual(most);
      converted.add(attack);
    } catch (error) {
      expect(error).toBeInstanceOf(UserError);
      expect(fs.existsSync(out)).toBe(false);
    }
  });

  it('are refused if they have gigabytes', () => {
    const claim = { copies: 200, elements: 2 ** 27, stored: 2 ** 15, dice: new Dice(1) };
    const place = placeOf(filesOf(claim));
    let bytes = 0;
    try {
      const checkpoint = openCheckpoint(place);
      checkReading(checkpoint);
      bytes = sumOf(viewsOf(checkpoint.tensors), ({ tensor }) => tensor.bytes);
      checkpoint.close();
    } catch (error) {
      expect(ruleOf(error), String(error)).toBeDefined();
    }
    expect(bytes).toBeLessThan(2 ** 28);
  });
});

it('tensors of small files are converted', () => {
  expect(converted.size).toBeGreaterThan(4);
});

describe('pickles of several small files', () => {
  /** A list whose values take 12 MB of memory. */
  const junk = a.join(a.EMPTY_LIST, a.MARK, Buffer.alloc(85_000, a.EMPTY_LIST), a.APPENDS);
  const range16 = range(16);

  it.each<[name: string, files: Files]>([
    [
      'shards',
      {
        'pytorch_model.bin.index.json': JSON.stringify({
          weight_map: Object.fromEntries(range16.map((at) => [`${at}.w`, `${at}.bin`])),
        }),
        ...Object.fromEntries(
          range16.map((at) => [
            `${at}.bin`,
            torchFile(a.dict(a.text(`${at}.w`), whole(SMALL), a.text('junk'), junk), floats(SMALL)),
          ]),
        ),
      },
    ],
    [
      'processes of ZeRO',
      {
        ...zero(SMALL, 3, [a.text('param_shapes'), listOf([])], 1),
        ...Object.fromEntries(
          range16.map((at) => [
            `zero_pp_rank_${at}_mp_rank_00_optim_states.pt`,
            torchFile(
              a.dict(
                ...[a.text('junk'), junk, a.text('optimizer_state_dict')],
                a.dict(
                  ...[a.text('zero_stage'), a.int(3), a.text('partition_count'), a.int(16)],
                  ...[a.text('fp32_flat_groups'), listOf([whole(SMALL)])],
                ),
              ),
              floats(SMALL),
            ),
          ]),
        ),
      },
    ],
    [
      'metadata of DCP next to small parts',
      {
        '.metadata': a.pickle(
          ...[a.EMPTY_LIST, a.MARK, Buffer.alloc(2_600_000, a.NONE), a.APPENDS],
        ),
        '__0_0.distcp': '',
      },
    ],
  ])('are refused by pickle-memory: %s', (_, files) => {
    expect(ruleBrokenBy(folderOf(files))).toBe('pickle-memory');
  });
});

it('refuses packed weights that become gigabytes of floats', () => {
  const claim: Claim = { copies: 20, elements: 1, stored: 2 ** 17, dice: new Dice(0) };
  const folder = folderOf(ATTACKS['packed weights with one storage']?.(claim) ?? {});
  expect(ruleBrokenBy(folder)).toBe('files-hold-tensors');
  expect(ruleBrokenBy(folder, { keepPacked: true })).toBe(undefined);
});
