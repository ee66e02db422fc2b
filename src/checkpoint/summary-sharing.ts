/** Which names of a checkpoint mean the same values, and which tensors lie over one another. */
import { STORED_DTYPES } from '../tensor/dtype.js';
import type { StoredBytes, StoredTensor } from './stored-tensor.js';

/** A tensor and all of its names. */
export interface NamedView {
  readonly tensor: StoredTensor;
  readonly names: readonly [string, ...string[]];
}

type View = { readonly tensor: StoredTensor; readonly names: [string, ...string[]] };

/** Views of the tensors that were asked for before. An index is never changed once it is read. */
const known = new WeakMap<ReadonlyMap<string, StoredTensor>, readonly NamedView[]>();

/** The tensors of a checkpoint, each once: the same view of the same storage is one (`isSameView`). */
export function viewsOf(tensors: ReadonlyMap<string, StoredTensor>): readonly NamedView[] {
  const found = known.get(tensors) ?? findViews(tensors);
  known.set(tensors, found);
  return found;
}

function findViews(tensors: ReadonlyMap<string, StoredTensor>): View[] {
  const views: View[] = [];
  /** The only view of a storage, or all by their keys: most storages have one, which needs no key. */
  const storages = new Map<StoredBytes, View | Map<string, View>>();
  for (const [name, tensor] of tensors) {
    const others = storages.get(tensor.storage);
    const same =
      others && (others instanceof Map ? others : new Map([[keyOf(others.tensor), others]]));
    const key = same ? keyOf(tensor) : '';
    const first = same?.get(key);
    if (first) {
      first.names.push(name);
    } else {
      const view: View = { tensor, names: [name] };
      views.push(view);
      if (!same) storages.set(tensor.storage, view);
      else same.set(key, view);
    }
    if (same && same !== others) storages.set(tensor.storage, same);
  }
  return views;
}

/** Equal for the same views of one storage. */
const keyOf = ({ dtype, offset, shape, strides }: StoredTensor): string =>
  `${dtype} ${offset} ${shape} ${strides}`;

/** Bytes of the tensors when contiguous. */
export const bytesOfViews = (views: readonly NamedView[]): number =>
  views.reduce((sum, { tensor }) => sum + tensor.bytes, 0);

/** Names that share bytes. */
export interface Sharing {
  /**
   * `same`: all of them are one tensor. `overlapping`: they are several, whose ranges of bytes overlap;
   * with strides, their elements may still be different ones.
   */
  readonly kind: 'same' | 'overlapping';
  readonly names: readonly string[];
  /** That they take in the file together. */
  readonly bytes: number;
}

/** What is shared among the views of a checkpoint. Empty tensors share nothing. */
export function sharingsOf(views: readonly NamedView[]): Sharing[] {
  const filled = views.filter(({ tensor }) => tensor.elements > 0);
  const same = filled
    .filter(({ names }) => names.length > 1)
    .map(({ names, tensor }): Sharing => {
      const [begin, end] = bytesUnder(tensor);
      return { kind: 'same', names, bytes: end - begin };
    });
  return [...same, ...[...crowded(filled)].flatMap(overlappings)];
}

/** The views of each storage that has several. */
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

/** Sets of views of one storage of which each reaches into another. */
function overlappings(views: readonly NamedView[]): Sharing[] {
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

/** From which byte of its storage up to which the elements of a tensor that has some lie. */
function bytesUnder({ dtype, shape, strides, offset }: StoredTensor): [number, number] {
  const { bits } = STORED_DTYPES[dtype];
  const span = shape.reduce((sum, size, axis) => sum + (size - 1) * (strides[axis] ?? 0), 1);
  return [Math.floor((offset * bits) / 8), Math.ceil(((offset + span) * bits) / 8)];
}
