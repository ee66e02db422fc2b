/** The content of a checkpoint as plain data: the JSON output of `inspect`, and the input of its report. */
import type { Shape } from '../base/tensor/dtype.js';
import { groupBy, sumOf } from '../base/values.js';
import type { Checkpoint } from './checkpoint.js';
import type { CheckpointFormat } from './formats.js';
import { FORMAT_TITLES } from './formats.js';
import { describeGguf, type GgufDescription } from './gguf/describe-gguf.js';
import { naturalOrder } from './names.js';
import type { NamedView, SharedBytes } from './sharing.js';
import { sharingsOf, viewsOf } from './sharing.js';
import type { Measurement } from './statistics.js';
import type { StoredBytes, StoredTensor } from './stored-tensor.js';
import { encodedBytes, isContiguous, storedTypeOf } from './stored-tensor.js';
import type { ContentEntry } from './summary-content.js';
import { describeContent } from './summary-content.js';

// Groups of tensors by the layer number in their names, for any model.

/** A layer, several equal layers, or a part of the model without a layer number. */
export interface TensorGroup {
  /** Common prefix of the names: `model.embed_tokens`, or `model.layers` when `layers` is present. */
  readonly name: string;
  /** Layer numbers, ascending; their tensors have the same names, dtypes and shapes. @count */
  readonly layers?: readonly number[];
  /** Tensors per layer. @count */
  readonly tensors: number;
  /** Elements per layer. @count */
  readonly elements: number;
  /** Bytes per layer when contiguous; shared tensors count in each layer. @count */
  readonly bytes: number;
  /** `F32`; for a GGUF file its own names: `Q4_K`. @pattern ^[A-Z][A-Z0-9_]*$ */
  readonly dtypes: readonly string[];
}

/**
 * Groups in the order of the checkpoint, layers of one list together. The first number in a name gives the layer
 * (`model.layers.11.mlp.weight` belongs to `model.layers.11`); other names are grouped by their first two parts.
 */
export function groupTensors(tensors: ReadonlyMap<string, StoredTensor>): TensorGroup[] {
  const groups: TensorGroup[] = [];
  for (const parts of groupBy(topLevelParts(tensors), ({ name }) => name).values()) {
    if (parts.length === 1) groups.push(tensorGroup(parts));
    else for (const group of groupsOfName(parts)) groups.push(group);
  }
  return groups;
}

/** Groups of the parts of one name: equal layers as one. */
function groupsOfName(parts: readonly ModelPart[]): TensorGroup[] {
  const alike = groupBy(parts, ({ layer, members }) =>
    layer === undefined ? '' : memberForm(members),
  );
  return Array.from(alike.values(), tensorGroup).sort((a, b) => firstLayer(a) - firstLayer(b));
}

/** A part without a number comes before its layers. */
const firstLayer = ({ layers }: TensorGroup) => layers?.[0] ?? -1;

/** A layer, or a part without a layer number. */
interface ModelPart {
  readonly name: string;
  readonly layer: number | undefined;
  readonly members: { readonly rest: string; readonly tensor: StoredTensor }[];
}

function topLevelParts(tensors: ReadonlyMap<string, StoredTensor>): Iterable<ModelPart> {
  const parts = new Map<string, ModelPart>();
  for (const [fullName, tensor] of tensors) {
    const { name, layer, rest } = splitName(fullName);
    const prefix = layer === undefined ? name : `${name}.${layer}`;
    const part = parts.get(prefix);
    if (part) part.members.push({ rest, tensor });
    else parts.set(prefix, { name, layer, members: [{ rest, tensor }] });
  }
  return parts.values();
}

/** The first name part that may be a layer number: up to 99,999, without leading zeros. */
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

/** Key that is equal for layers whose tensors have the same names, dtypes and shapes, in any order. */
const memberForm = (members: ModelPart['members']): string =>
  members
    .map(({ rest, tensor }) => ` ${rest.length} ${rest}${storedTypeOf(tensor)} ${tensor.shape}`)
    .sort()
    .join('');

function tensorGroup(parts: readonly ModelPart[]): TensorGroup {
  const { name = '', members = [] } = parts[0] ?? {};
  const layers = parts.flatMap(({ layer }) => layer ?? []).sort((a, b) => a - b);
  let [elements, bytes] = [0, 0];
  const dtypes: string[] = [];
  for (const { tensor } of members) {
    elements += tensor.elements;
    bytes += encodedBytes(tensor);
    const type = storedTypeOf(tensor);
    if (!dtypes.includes(type)) dtypes.push(type);
  }
  const figures = { tensors: members.length, elements, bytes, dtypes };
  return layers.length > 0 ? { name, layers, ...figures } : { name, ...figures };
}

/** Names from the file become own keys of the object, `__proto__` included. */
type ByName<T> = Readonly<Record<string, T>>;

export interface CheckpointSummary {
  /** The path as the user wrote it. */
  readonly file: string;
  /** Format of the files. */
  readonly format: CheckpointFormat;
  /** Format for people. */
  readonly formatName: string;
  /** Files of the checkpoint. */
  readonly files: readonly {
    /** Path of the file. */
    readonly path: string;
    /** Size of the file. @count */
    readonly bytes: number;
  }[];
  /** Keys that lead to the dict with the tensors in a PyTorch file. */
  readonly stateDict: readonly string[];
  /** The strings in `__metadata__` of safetensors. */
  readonly metadata: ByName<string>;
  /** Names that appear only in the metadata, and the tensors they refer to. */
  readonly aliases: ByName<string>;
  readonly totals: Totals;
  /** Tensors by component. */
  readonly groups: readonly TensorGroup[];
  /** Names that share bytes. */
  readonly shared: readonly SharedBytes[];
  /** Other entries of a PyTorch file, by key. */
  readonly content: ByName<ContentEntry>;
  /** Metadata and bits by component of a GGUF file; absent in other formats. */
  readonly gguf?: GgufDescription;
  /** Oddities of the files. */
  readonly warnings: readonly string[];
  /** Tensors by the file's own names. */
  readonly tensors: ByName<TensorSummary>;
}

/** Totals of the tensors, exact up to 2^53. */
export interface Totals {
  /** Number of names. @count */
  readonly tensors: number;
  /** Number of distinct views of storages. @count */
  readonly distinctTensors: number;
  /** Shared elements count once per name. @count */
  readonly elements: number;
  /** Elements, shared tensors once. @count */
  readonly distinctElements: number;
  /** Bytes when contiguous; shared tensors count once per name. @count */
  readonly bytes: number;
  /** Bytes, shared tensors once. @count */
  readonly distinctBytes: number;
  /** Bytes of the storages; larger than the tensors when they leave gaps. @count */
  readonly storedBytes: number;
  /** Totals of the distinct tensors per dtype, most bytes first. */
  readonly dtypes: readonly DtypeTotals[];
}

interface DtypeTotals {
  /** Element type, as safetensors names it; of a GGUF file as ggml does: `Q4_K`. @pattern ^[A-Z][A-Z0-9_]*$ */
  readonly dtype: string;
  /** Number of tensors. @count */
  readonly tensors: number;
  /** Their elements. @count */
  readonly elements: number;
  /** Their bytes. @count */
  readonly bytes: number;
}

export interface TensorSummary extends Measurement {
  /** Element type, as safetensors names it; of a GGUF file as ggml does: `Q4_K`. @pattern ^[A-Z][A-Z0-9_]*$ */
  readonly dtype: string;
  /** Sizes of the dimensions. @count */
  readonly shape: Shape;
  /** Number of elements. @count */
  readonly elements: number;
  /** Bytes when contiguous. @count */
  readonly bytes: number;
  /** Location of the storage; tensors with the same file and position share it. */
  readonly storage: {
    /** File with the values, one of `files`. */
    readonly file: string;
    /** Position of the first byte in the file. @count */
    readonly position: number;
    /** Bytes of the values. @count */
    readonly bytes: number;
    /** Set when the bytes of a value are in big-endian order. */
    readonly bigEndian?: true;
  };
  /** Index of the first element in the storage. @count */
  readonly offset: number;
  /** Strides in elements; absent when the tensor is contiguous. @count */
  readonly strides?: readonly number[];
}

/** Totals and groups of all tensors; `describedTensors` lists them one by one. */
export function summarise(checkpoint: Checkpoint): Omit<CheckpointSummary, 'tensors'> {
  const { path, format, files, stateDict, metadata, aliases, content, warnings, keyValues } =
    checkpoint;
  const views = viewsOf(checkpoint.tensors);
  return {
    file: path,
    format,
    formatName: FORMAT_TITLES[format],
    files: files.map((file) => ({ path: file.path, bytes: file.size })),
    stateDict,
    metadata: Object.fromEntries(metadata),
    aliases: Object.fromEntries(aliases),
    totals: totalsOf(checkpoint.tensors, views),
    groups: groupTensors(checkpoint.tensors),
    shared: sharingsOf(views),
    content: Object.fromEntries(describeContent(content)),
    ...(keyValues && { gguf: describeGguf(keyValues, checkpoint.tensors) }),
    warnings,
  };
}

/**
 * Tensors one by one, in the order of layers.
 * @param measured Statistics of their values, if measured.
 */
export const describedTensors = (
  tensors: ReadonlyMap<string, StoredTensor>,
  measured: ReadonlyMap<string, Measurement>,
): CheckpointSummary['tensors'] => Object.fromEntries(described(tensors, measured));

/** Yields pairs one by one; a list of all pairs would double the memory. */
function* described(
  tensors: ReadonlyMap<string, StoredTensor>,
  measured: ReadonlyMap<string, Measurement>,
): Generator<[string, TensorSummary]> {
  for (const name of naturalOrder([...tensors.keys()])) {
    const tensor = tensors.get(name);
    if (tensor) yield [name, describeTensor(tensor, measured.get(name))];
  }
}

function describeTensor(tensor: StoredTensor, measured?: Measurement): TensorSummary {
  const { shape, elements, storage, offset, encoding } = tensor;
  const { position, bytes } = encoding ?? storage;
  const place = { file: storage.file.path, position, bytes };
  const described = {
    dtype: storedTypeOf(tensor),
    shape,
    elements,
    bytes: encodedBytes(tensor),
    storage: storage.isBigEndian ? { ...place, bigEndian: true as const } : place,
    offset,
  };
  if (measured === undefined && isContiguous(tensor)) return described;
  return { ...described, ...(!isContiguous(tensor) && { strides: tensor.strides }), ...measured };
}

function totalsOf(tensors: ReadonlyMap<string, StoredTensor>, views: readonly NamedView[]): Totals {
  const named = [...tensors.values()];
  const distinct = views.map(({ tensor }) => tensor);
  return {
    tensors: named.length,
    distinctTensors: distinct.length,
    elements: sumOf(named, elementsOf),
    distinctElements: sumOf(distinct, elementsOf),
    bytes: sumOf(named, encodedBytes),
    distinctBytes: sumOf(distinct, encodedBytes),
    storedBytes: sumOf(distinctStorages(distinct), ({ bytes }) => bytes),
    dtypes: dtypesOf(distinct),
  };
}

/** Each storage once; for values in blocks, the blocks. */
function distinctStorages(tensors: readonly StoredTensor[]): Iterable<{ readonly bytes: number }> {
  const stored = new Map<StoredBytes, { readonly bytes: number }>();
  for (const { storage, encoding } of tensors) stored.set(storage, encoding ?? storage);
  return stored.values();
}

function dtypesOf(tensors: readonly StoredTensor[]): DtypeTotals[] {
  const byDtype = groupBy(tensors, storedTypeOf);
  return Array.from(byDtype, ([dtype, same]) => ({
    dtype,
    tensors: same.length,
    elements: sumOf(same, elementsOf),
    bytes: sumOf(same, encodedBytes),
  })).sort((a, b) => b.bytes - a.bytes);
}

const elementsOf = ({ elements }: StoredTensor) => elements;
