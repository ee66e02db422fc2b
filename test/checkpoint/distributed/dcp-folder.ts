import * as a from '../torch/assemble.js';
import { archive, inFolder } from '../torch/zip-builder.js';

export const METADATA = 'torch.distributed.checkpoint.metadata';
export const FILESYSTEM = 'torch.distributed.checkpoint.filesystem';

export const record = (module: string, name: string, ...fields: Uint8Array[]) =>
  a.join(a.global(module, name), a.EMPTY_TUPLE, a.NEWOBJ, a.dict(...fields), a.BUILD);

export const size = (numbers: readonly number[]) =>
  a.call(a.global('torch', 'Size'), a.tuple(...numbers.map((number) => a.int(number))));

export const list = (items: readonly Uint8Array[]) =>
  a.join(a.EMPTY_LIST, a.MARK, Buffer.concat(items), a.APPENDS);

export interface PartSpec {
  readonly offsets: readonly number[];
  readonly sizes: readonly number[];
  /** Content of the part in its file; by default F32 values that count up. */
  readonly item?: Uint8Array;
  readonly file?: string;
  /** Position in the file; by default after the previous part. */
  readonly at?: number;
  readonly length?: number;
  /** Whether `storage_data` leaves the part out. */
  readonly isUnplaced?: boolean;
  readonly extra?: readonly Uint8Array[];
}

export interface TensorSpec {
  readonly shape: readonly number[];
  readonly parts: readonly PartSpec[];
  readonly dtype?: Uint8Array;
  readonly layout?: string;
  readonly path?: Uint8Array;
  /** Replaces the record of the tensor. */
  readonly record?: Uint8Array;
}

/** Archive with one tensor of F32 values. */
export function item(sizes: readonly number[], first = 0, dtype = 'FloatStorage'): Buffer {
  const count = sizes.reduce((product, each) => product * each, 1);
  const strides = sizes.map((_, axis) =>
    sizes.slice(axis + 1).reduce((product, n) => product * n, 1),
  );
  const values = Float32Array.from({ length: count }, (_, index) => first + index);
  const tensor = a.tensor({
    storage: a.storage({ type: a.global('torch', dtype), length: a.int(count) }),
    size: a.tuple(...sizes.map((each) => a.int(each))),
    stride: a.tuple(...strides.map((each) => a.int(each))),
  });
  return archive({
    entries: inFolder({
      'data.pkl': a.pickle(tensor),
      version: '3\n',
      byteorder: 'little',
      'data/0': new Uint8Array(values.buffer),
    }),
  });
}

/** Files of a DCP checkpoint, by name. */
export function dcpFolder(
  tensors: Readonly<Record<string, TensorSpec>>,
): Record<string, Uint8Array> {
  const files = new Map<string, Buffer[]>();
  const ends = new Map<string, number>();
  const stored: Uint8Array[] = [];
  const placed: Uint8Array[] = [];
  const paths: Uint8Array[] = [];
  for (const [name, tensor] of Object.entries(tensors)) {
    const chunks = tensor.parts.map(({ offsets, sizes }) =>
      record(
        METADATA,
        'ChunkStorageMetadata',
        a.text('offsets'),
        size(offsets),
        a.text('sizes'),
        size(sizes),
      ),
    );
    const layout = a.call(
      a.global('torch.serialization', '_get_layout'),
      a.text(tensor.layout ?? 'torch.strided'),
    );
    const encoding = a.call(a.global(METADATA, '_MEM_FORMAT_ENCODING'), a.int(0));
    const properties = a.join(
      ...[a.global(METADATA, 'TensorProperties'), a.EMPTY_TUPLE, a.NEWOBJ],
      a.tuple(tensor.dtype ?? a.global('torch', 'float32'), layout, a.FALSE, encoding, a.FALSE),
      a.BUILD,
    );
    const fields = [
      ...[a.text('properties'), properties],
      ...[a.text('size'), size(tensor.shape)],
      ...[a.text('chunks'), list(chunks)],
    ];
    stored.push(
      a.text(name),
      tensor.record ?? record(METADATA, 'TensorStorageMetadata', ...fields),
    );
    paths.push(a.text(name), tensor.path ?? a.tuple(a.text(name)));
    for (const [index, part] of tensor.parts.entries()) {
      const file = part.file ?? '__0_0.distcp';
      const contents = files.get(file) ?? [];
      files.set(file, contents);
      const content = Buffer.from(part.item ?? item(part.sizes, 100 * index));
      const at = part.at ?? ends.get(file) ?? 0;
      ends.set(file, (ends.get(file) ?? 0) + content.length);
      contents.push(content);
      if (part.isUnplaced) continue;
      placed.push(
        record(
          METADATA,
          'MetadataIndex',
          a.text('fqn'),
          a.text(name),
          a.text('offset'),
          size(part.offsets),
        ),
        record(
          ...([FILESYSTEM, '_StorageInfo'] as const),
          ...[a.text('relative_path'), a.text(file)],
          ...[a.text('offset'), a.int(at)],
          ...[a.text('length'), a.int(part.length ?? content.length)],
          ...(part.extra ?? []),
        ),
      );
    }
  }
  const metadata = record(
    ...([METADATA, 'Metadata'] as const),
    ...[a.text('state_dict_metadata'), a.dict(...stored)],
    ...[a.text('planner_data'), a.dict(...paths)],
    ...[a.text('storage_data'), a.join(a.EMPTY_DICT, a.MARK, Buffer.concat(placed), a.SETITEMS)],
  );
  return {
    '.metadata': a.pickle(metadata),
    ...Object.fromEntries([...files].map(([name, parts]) => [name, Buffer.concat(parts)])),
  };
}
