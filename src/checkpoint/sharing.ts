/** Finds names that refer to the same values, and tensors that overlap. */
import { isSameShape, STORED_DTYPES } from '../base/tensor/dtype.js';
import { groupBy } from '../base/values.js';
import type { StoredBytes, StoredTensor } from './stored-tensor.js';
import { isContiguous, isSameView } from './stored-tensor.js';
import { readRows, rowCount, tensorPieces, yieldToEventLoop } from './view.js';

export interface NamedView {
  readonly tensor: StoredTensor;
  readonly names: readonly [string, ...string[]];
}

type SharedView = NamedView & { readonly names: string[] };

/** Cache of the views per index; an index never changes after it is read. */
const known = new WeakMap<ReadonlyMap<string, StoredTensor>, readonly NamedView[]>();

/** Distinct tensors of a checkpoint: equal views of one storage count as one (`isSameView`). */
export function viewsOf(tensors: ReadonlyMap<string, StoredTensor>): readonly NamedView[] {
  const found = known.get(tensors) ?? findViews(tensors);
  known.set(tensors, found);
  return found;
}

function findViews(tensors: ReadonlyMap<string, StoredTensor>): SharedView[] {
  const views: SharedView[] = [];
  /** The only view of a storage, or all views by key. Most storages have one view, which needs no key. */
  const storages = new Map<StoredBytes, SharedView | Map<string, SharedView>>();
  for (const [name, tensor] of tensors) {
    const others = storages.get(tensor.storage);
    const same =
      others && (others instanceof Map ? others : new Map([[viewKey(others.tensor), others]]));
    const key = same ? viewKey(tensor) : '';
    const first = same?.get(key);
    if (first) {
      first.names.push(name);
    } else {
      const view: SharedView = { tensor, names: [name] };
      views.push(view);
      if (!same) storages.set(tensor.storage, view);
      else same.set(key, view);
    }
    if (same && same !== others) storages.set(tensor.storage, same);
  }
  return views;
}

/** Key that is equal for equal views of one storage. */
const viewKey = ({ dtype, offset, shape, strides }: StoredTensor): string =>
  `${dtype} ${offset} ${shape} ${strides}`;

/** Bytes of the tensors when contiguous. */
export const bytesOfViews = (views: readonly NamedView[]): number =>
  views.reduce((sum, { tensor }) => sum + tensor.bytes, 0);

/** Names that share bytes. */
export interface SharedBytes {
  /**
   * `same`: all names refer to one tensor. `overlapping`: several tensors with overlapping byte ranges; with
   * strides they may still have no element in common.
   */
  readonly kind: 'same' | 'overlapping';
  /** Names of the tensors. */
  readonly names: readonly string[];
  /** Total bytes in the file. @count */
  readonly bytes: number;
}

/** Names that share bytes in a checkpoint. Empty tensors are skipped. */
export function sharingsOf(views: readonly NamedView[]): SharedBytes[] {
  const filled = views.filter(({ tensor }) => tensor.elements > 0);
  const same = filled
    .filter(({ names }) => names.length > 1)
    .map(({ names, tensor }): SharedBytes => {
      const [begin, end] = bytesUnder(tensor);
      return { kind: 'same', names, bytes: end - begin };
    });
  return [...same, ...[...crowded(filled)].flatMap(overlappings)];
}

/** Views of each storage that has more than one. */
function crowded(views: readonly NamedView[]): Iterable<readonly NamedView[]> {
  const first = new Map<StoredBytes, NamedView>();
  const several = new Map<StoredBytes, NamedView[]>();
  for (const view of views) {
    const { storage } = view.tensor;
    const other = first.get(storage);
    const group = several.get(storage);
    if (group) group.push(view);
    else if (other) several.set(storage, [other, view]);
    else first.set(storage, view);
  }
  return several.values();
}

/** Groups of views of one storage with overlapping byte ranges. */
function overlappings(views: readonly NamedView[]): SharedBytes[] {
  const ranges = views
    .map(({ names, tensor }) => ({ names, range: bytesUnder(tensor) }))
    .sort((a, b) => a.range[0] - b.range[0]);
  const sets: { names: string[]; views: number; begin: number; end: number }[] = [];
  for (const { names, range } of ranges) {
    const [begin, end] = range;
    const last = sets.at(-1);
    if (last && begin < last.end) {
      for (const name of names) last.names.push(name);
      last.views++;
      last.end = Math.max(last.end, end);
    } else sets.push({ names: [...names], views: 1, begin, end });
  }
  return sets
    .filter((set) => set.views > 1)
    .map(({ names, begin, end }) => ({ kind: 'overlapping', names, bytes: end - begin }));
}

/** Byte range in its storage of a non-empty tensor. */
function bytesUnder({ dtype, shape, strides, offset }: StoredTensor): [number, number] {
  const { bits } = STORED_DTYPES[dtype];
  const span = shape.reduce((sum, size, axis) => sum + (size - 1) * (strides[axis] ?? 0), 1);
  return [Math.floor((offset * bits) / 8), Math.ceil(((offset + span) * bits) / 8)];
}

// Equality of stored tensors, by location or by comparing bytes.

/** Whether two tensors hold the same values; undefined if only their bytes can decide. */
export type TensorEquality = (a: StoredTensor, b: StoredTensor) => boolean | undefined;

/** Compares locations, without reading bytes. */
export const equalByLocation: TensorEquality = (a, b) => {
  if (isSameView(a, b)) return true;
  return haveOneForm(a, b) ? undefined : false;
};

const haveOneForm = (a: StoredTensor, b: StoredTensor) =>
  a.dtype === b.dtype && isSameShape(a.shape, b.shape);

/** Progress callback: receives the total bytes to compare, then the bytes compared in each step. */
export type ComparisonProgress = (totalBytes: number) => (bytes: number) => void;

/**
 * Compares the bytes of tensors within each group, and locations across groups. Two tensors that differ from
 * the first of their dtype and shape in the group count as different.
 * @throws UserError if reading fails.
 */
export async function equalByBytes(
  groups: readonly (readonly StoredTensor[])[],
  watch: ComparisonProgress = () => () => {},
): Promise<TensorEquality> {
  const races = groups.flatMap((group) => [...byForm(group)]).flatMap(raceOf);
  const onBytes = watch(
    races.reduce((sum, race) => sum + race.first.bytes * race.rivals.length, 0),
  );
  /** Each tensor → the first tensor in its group with equal values, or itself. */
  const valuesOf = new Map<StoredTensor, StoredTensor>();
  const groupOf = new Map<StoredTensor, Race>();
  for (const race of races) {
    const equal = new Set(await equalTo(race, onBytes));
    for (const [tensor, view] of race.views) {
      groupOf.set(tensor, race);
      valuesOf.set(tensor, equal.has(view) ? race.first : view);
    }
  }
  return (a, b) => {
    const known = equalByLocation(a, b);
    const race = groupOf.get(a);
    if (known !== undefined || race === undefined || race !== groupOf.get(b)) return known;
    return valuesOf.get(a) === valuesOf.get(b);
  };
}

/** Tensors in different locations that may hold the same values. */
interface Race {
  readonly first: StoredTensor;
  readonly rivals: readonly StoredTensor[];
  /** Each tensor of the group → the one compared in its place, at the same location. */
  readonly views: ReadonlyMap<StoredTensor, StoredTensor>;
}

/** Only tensors of one dtype and shape can hold the same values. */
const byForm = (group: readonly StoredTensor[]): Iterable<StoredTensor[]> =>
  groupBy(group, ({ dtype, shape }) => `${dtype} ${shape}`).values();

/** @param like Tensors of one dtype and shape. The result is empty if all have the same location. */
function raceOf(like: readonly StoredTensor[]): Race[] {
  const numbered = new Map(like.map((tensor, index) => [String(index), tensor]));
  const views = new Map<StoredTensor, StoredTensor>();
  const [first, ...rivals] = viewsOf(numbered).map(({ tensor, names }) => {
    for (const name of names) views.set(numbered.get(name) ?? tensor, tensor);
    return tensor;
  });
  return first && rivals.length > 0 ? [{ first, rivals, views }] : [];
}

/** Bytes per tensor in one comparison. */
const BLOCK_BYTES = 1 << 20;

/** Rivals with the same values as `first`. Reads all in parallel until they differ. */
async function equalTo(
  { first, rivals: all }: Race,
  onBytes: (bytes: number) => void,
): Promise<StoredTensor[]> {
  const isFlat = [first, ...all].every(isContiguous);
  const partsOf = (tensor: StoredTensor) =>
    tensorPieces(isFlat ? flat(tensor) : tensor, BLOCK_BYTES);
  let rivals = all.map((tensor) => ({ tensor, parts: partsOf(tensor) }));
  const [firstBlock, read] = [new Uint8Array(BLOCK_BYTES), new Uint8Array(BLOCK_BYTES)];
  let left = first.bytes;
  for (const part of partsOf(first)) {
    const expected = valueBytes(part, firstBlock);
    const before = rivals.length;
    rivals = rivals.filter(({ parts: theirs }) => {
      const { value } = theirs.next();
      return value && Buffer.compare(expected, valueBytes(value, read)) === 0;
    });
    left -= part.bytes;
    // Rivals that differ need no more reads.
    onBytes(part.bytes * before + left * (before - rivals.length));
    if (rivals.length === 0) break;
    await yieldToEventLoop();
  }
  return rivals.map(({ tensor }) => tensor);
}

function valueBytes(part: StoredTensor, memory: Uint8Array): Uint8Array {
  const target = memory.subarray(0, part.bytes);
  if (part.elements > 0) readRows(part, 0, rowCount(part), target);
  return target;
}

/** A contiguous tensor as a vector of elements. */
const flat = (tensor: StoredTensor): StoredTensor => ({
  ...tensor,
  shape: [tensor.elements],
  strides: [1],
});
