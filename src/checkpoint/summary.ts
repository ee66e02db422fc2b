/** What a checkpoint holds, as plain data: what `inspect` prints as JSON, and what its report is made of. */
import type { Shape, StoredDtype } from '../tensor/dtype.js';
import { sumOf } from '../text/values.js';
import { type Checkpoint, type CheckpointFormat, FORMATS } from './checkpoint.js';
import type { Measurement } from './measure.js';
import { isContiguous, type StoredTensor } from './stored-tensor.js';
import { type ContentEntry, describeContent } from './summary-content.js';
import { groupTensors, type TensorGroup } from './summary-groups.js';
import {
  bytesOfViews,
  type NamedView,
  type Sharing,
  sharingsOf,
  viewsOf,
} from './summary-sharing.js';

/** Maps whose keys are names out of the file become objects with any key as their own, `__proto__` too. */
type ByName<T> = Readonly<Record<string, T>>;

export interface CheckpointSummary {
  /** As the user wrote it. */
  readonly file: string;
  readonly format: CheckpointFormat;
  /** For people. */
  readonly formatName: string;
  readonly files: readonly { readonly path: string; readonly bytes: number }[];
  /** Keys that lead to the dict that holds the tensors, in a PyTorch file. */
  readonly stateDict: readonly string[];
  /** The strings of safetensors' `__metadata__`. */
  readonly metadata: ByName<string>;
  /** Names that stand in the metadata only, and the tensors that they mean. */
  readonly aliases: ByName<string>;
  readonly totals: Totals;
  readonly groups: readonly TensorGroup[];
  readonly shared: readonly Sharing[];
  /** What else a PyTorch file holds, by its key. */
  readonly content: ByName<ContentEntry>;
  readonly warnings: readonly string[];
  readonly tensors: ByName<TensorSummary>;
}

/** Sums are exact up to 2^53. */
export interface Totals {
  /** Names. */
  readonly tensors: number;
  /** Of which each is another view of a storage. */
  readonly distinctTensors: number;
  /** What is shared counts for each of its names. */
  readonly elements: number;
  readonly distinctElements: number;
  /** Of contiguous tensors; what is shared counts for each of its names. */
  readonly bytes: number;
  readonly distinctBytes: number;
  /** Of the storages in which they lie: more than the tensors' own where these leave gaps. */
  readonly storedBytes: number;
  /** Of the distinct tensors, most bytes first. */
  readonly dtypes: readonly DtypeTotals[];
}

interface DtypeTotals {
  readonly dtype: StoredDtype;
  readonly tensors: number;
  readonly elements: number;
  readonly bytes: number;
}

export interface TensorSummary extends Measurement {
  readonly dtype: StoredDtype;
  readonly shape: Shape;
  readonly elements: number;
  /** When contiguous. */
  readonly bytes: number;
  /** Tensors with the same file and position lie in one storage. */
  readonly storage: {
    readonly file: string;
    /** Of its first byte in the file. */
    readonly position: number;
    readonly bytes: number;
    readonly bigEndian?: true;
  };
  /** Of its first element in the storage, in elements. */
  readonly offset: number;
  /** In elements; left out when the tensor is contiguous. */
  readonly strides?: readonly number[];
}

/**
 * @param chosen The tensors that are told one by one, by name; all others count in the sums only.
 * @param measured What was found out about the values of those tensors, if anything.
 */
export function summarise(
  checkpoint: Checkpoint,
  chosen: ReadonlyMap<string, StoredTensor>,
  measured: ReadonlyMap<string, Measurement>,
): CheckpointSummary {
  const { path, format, files, stateDict, metadata, aliases, content, warnings } = checkpoint;
  const views = viewsOf(checkpoint.tensors);
  return {
    file: path,
    format,
    formatName: FORMATS[format],
    files: files.map((file) => ({ path: file.path, bytes: file.size })),
    stateDict,
    metadata: Object.fromEntries(metadata),
    aliases: Object.fromEntries(aliases),
    totals: totalsOf(checkpoint.tensors, views),
    groups: groupTensors(checkpoint.tensors),
    shared: sharingsOf(views),
    content: Object.fromEntries(describeContent(content)),
    warnings,
    tensors: Object.fromEntries(
      Array.from(chosen, ([name, tensor]) => [name, describeTensor(tensor, measured.get(name))]),
    ),
  };
}

function describeTensor(tensor: StoredTensor, measured?: Measurement): TensorSummary {
  const { dtype, shape, elements, bytes, storage, offset, strides } = tensor;
  return {
    dtype,
    shape,
    elements,
    bytes,
    storage: {
      file: storage.file.path,
      position: storage.position,
      bytes: storage.bytes,
      ...(storage.isBigEndian && { bigEndian: true }),
    },
    offset,
    ...(!isContiguous(tensor) && { strides }),
    ...measured,
  };
}

function totalsOf(tensors: ReadonlyMap<string, StoredTensor>, views: readonly NamedView[]): Totals {
  const named = [...tensors.values()];
  const distinct = views.map(({ tensor }) => tensor);
  const storages = new Set(distinct.map(({ storage }) => storage));
  return {
    tensors: named.length,
    distinctTensors: distinct.length,
    elements: sum(named, 'elements'),
    distinctElements: sum(distinct, 'elements'),
    bytes: sum(named, 'bytes'),
    distinctBytes: bytesOfViews(views),
    storedBytes: sum([...storages], 'bytes'),
    dtypes: dtypesOf(distinct),
  };
}

function dtypesOf(tensors: readonly StoredTensor[]): DtypeTotals[] {
  const byDtype = new Map<StoredDtype, StoredTensor[]>();
  for (const tensor of tensors) {
    const same = byDtype.get(tensor.dtype);
    if (same) same.push(tensor);
    else byDtype.set(tensor.dtype, [tensor]);
  }
  return Array.from(byDtype, ([dtype, same]) => ({
    dtype,
    tensors: same.length,
    elements: sum(same, 'elements'),
    bytes: sum(same, 'bytes'),
  })).sort((a, b) => b.bytes - a.bytes);
}

const sum = <Key extends string>(items: readonly Readonly<Record<Key, number>>[], key: Key) =>
  sumOf(items, (item) => item[key]);
