/** What a checkpoint holds, as plain data: what `inspect` prints as JSON, and what its report is made of. */
import type { Shape, StoredDtype } from '../tensor/dtype.js';
import { sumOf } from '../text/words.js';
import type { Checkpoint } from './checkpoint.js';
import type { CheckpointFormat } from './formats.js';
import { FORMATS } from './formats.js';
import type { NamedView, Sharing } from './sharing.js';
import { bytesOfViews, sharingsOf, viewsOf } from './sharing.js';
import type { Measurement } from './statistics.js';
import type { StoredTensor } from './stored-tensor.js';
import { isContiguous } from './stored-tensor.js';
import type { ContentEntry } from './summary-content.js';
import { describeContent } from './summary-content.js';

// Tensors grouped by the layer that their names speak of, whatever the model.

/** A layer, several layers that are alike, or a part of the model that has no number. */
export interface TensorGroup {
  /** What the names begin with: `model.embed_tokens`, or `model.layers` where `layers` follow. */
  readonly name: string;
  /** The numbers of the layers, ascending, which have tensors of the same names, dtypes and shapes. */
  readonly layers?: readonly number[];
  /** In each of the layers. */
  readonly tensors: number;
  /** In each of the layers. */
  readonly elements: number;
  /** In each of the layers, of tensors that are contiguous; what is shared counts in each. */
  readonly bytes: number;
  readonly dtypes: readonly StoredDtype[];
}

/**
 * The groups in the order in which the checkpoint first names them, layers of one list together. A tensor
 * belongs to a layer by the first part of its name that is a number (`model.layers.11.mlp.weight` to
 * `model.layers.11`), else to what its name begins with, two parts at most.
 */
export function groupTensors(tensors: ReadonlyMap<string, StoredTensor>): TensorGroup[] {
  const alike = new Map<string, Part[]>();
  const turns = new Map<string, number>();
  for (const part of partsOf(tensors)) {
    if (!turns.has(part.name)) turns.set(part.name, turns.size);
    const form = `${part.name.length} ${part.name}${part.layer === undefined ? '' : formOf(part.members)}`;
    const others = alike.get(form);
    if (others) others.push(part);
    else alike.set(form, [part]);
  }
  const turnOf = ({ name }: TensorGroup) => turns.get(name) ?? 0;
  return Array.from(alike.values(), groupOf).sort(
    (a, b) => turnOf(a) - turnOf(b) || firstLayer(a) - firstLayer(b),
  );
}

/** The part without a number comes before its layers. */
const firstLayer = ({ layers }: TensorGroup) => layers?.[0] ?? -1;

/** A layer, or what has no number. */
interface Part {
  readonly name: string;
  readonly layer: number | undefined;
  readonly members: { readonly rest: string; readonly tensor: StoredTensor }[];
}

function partsOf(tensors: ReadonlyMap<string, StoredTensor>): Iterable<Part> {
  const parts = new Map<string, Part>();
  for (const [fullName, tensor] of tensors) {
    const { name, layer, rest } = splitName(fullName);
    const prefix = layer === undefined ? name : `${name}.${layer}`;
    const part = parts.get(prefix);
    if (part) part.members.push({ rest, tensor });
    else parts.set(prefix, { name, layer, members: [{ rest, tensor }] });
  }
  return parts.values();
}

/** The first part that is a number as layers are numbered: without leading zeros, and not beyond 99,999. */
const LAYER_NUMBER = /(?:^|\.)(0|[1-9]\d{0,4})(?=\.|$)/;

function splitName(fullName: string): { name: string; layer: number | undefined; rest: string } {
  const found = LAYER_NUMBER.exec(fullName);
  if (found) {
    return {
      name: fullName.slice(0, found.index),
      layer: Number(found[1]),
      rest: fullName.slice(found.index + found[0].length + 1),
    };
  }
  const dot = fullName.indexOf('.');
  const second = fullName.indexOf('.', dot + 1);
  const end = dot < 0 || second < 0 ? dot : second;
  return end < 0
    ? { name: fullName, layer: undefined, rest: '' }
    : { name: fullName.slice(0, end), layer: undefined, rest: fullName.slice(end + 1) };
}

/** The same for layers whose tensors have the same names, dtypes and shapes, in any order. */
const formOf = (members: Part['members']): string =>
  members
    .map(({ rest, tensor }) => ` ${rest.length} ${rest}${tensor.dtype} ${tensor.shape}`)
    .sort()
    .join('');

/** Of parts that are alike. */
function groupOf(parts: readonly Part[]): TensorGroup {
  const { name = '', members = [] } = parts[0] ?? {};
  const layers = parts.flatMap(({ layer }) => layer ?? []).sort((a, b) => a - b);
  return {
    name,
    ...(layers.length > 0 && { layers }),
    tensors: members.length,
    elements: members.reduce((sum, { tensor }) => sum + tensor.elements, 0),
    bytes: members.reduce((sum, { tensor }) => sum + tensor.bytes, 0),
    dtypes: [...new Set(members.map(({ tensor }) => tensor.dtype))],
  };
}

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
    formatName: FORMATS[format].title,
    files: files.map((file) => ({ path: file.path, bytes: file.size })),
    stateDict,
    metadata: Object.fromEntries(metadata),
    aliases: Object.fromEntries(aliases),
    totals: totalsOf(checkpoint.tensors, views),
    groups: groupTensors(checkpoint.tensors),
    shared: sharingsOf(views),
    content: Object.fromEntries(describeContent(content)),
    warnings,
    tensors: Object.fromEntries(described(chosen, measured)),
  };
}

/** Pairs for an object, one after the other: a list of them all would take as much memory again. */
function* described(
  tensors: ReadonlyMap<string, StoredTensor>,
  measured: ReadonlyMap<string, Measurement>,
): Generator<[string, TensorSummary]> {
  for (const [name, tensor] of tensors) yield [name, describeTensor(tensor, measured.get(name))];
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
