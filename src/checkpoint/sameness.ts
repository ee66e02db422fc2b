/** Which stored tensors hold the same values: known from where they lie, or by comparing their bytes. */
import { isSameShape } from '../tensor/dtype.js';
import { isContiguous, isSameView, type StoredTensor } from './stored-tensor.js';
import { viewsOf } from './summary-sharing.js';
import { breathe, piecesOf, readRows, rowsOf } from './view.js';

/** Whether two tensors hold the same values; undefined when that would take a look at their bytes. */
export type Sameness = (a: StoredTensor, b: StoredTensor) => boolean | undefined;

/** Without reading any bytes. */
export const samenessOfPlaces: Sameness = (a, b) => {
  if (isSameView(a, b)) return true;
  return haveOneForm(a, b) ? undefined : false;
};

const haveOneForm = (a: StoredTensor, b: StoredTensor) =>
  a.dtype === b.dtype && isSameShape(a.shape, b.shape);

/** Told how many bytes there are to compare, then of each that it is done. */
export type Watch = (totalBytes: number) => (bytes: number) => void;

/**
 * With the bytes of each group compared. Tensors of different groups are known by their places only; of
 * those that differ from the first of their type and shape in a group, no two count as the same.
 * @throws UserError when reading fails.
 */
export async function samenessOfBytes(
  groups: readonly (readonly StoredTensor[])[],
  watch: Watch = () => () => {},
): Promise<Sameness> {
  const races = groups.flatMap(byForm).flatMap(raceOf);
  const onBytes = watch(
    races.reduce((sum, race) => sum + race.first.bytes * race.rivals.length, 0),
  );
  /** Each tensor → the first of its group that has its values, or itself. */
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
    const known = samenessOfPlaces(a, b);
    const race = groupOf.get(a);
    if (known !== undefined || race === undefined || race !== groupOf.get(b)) return known;
    return valuesOf.get(a) === valuesOf.get(b);
  };
}

/** Tensors that may hold the same values, in different places. */
interface Race {
  readonly first: StoredTensor;
  readonly rivals: readonly StoredTensor[];
  /** Every tensor of the group → the one of these that lies in the same place. */
  readonly views: ReadonlyMap<StoredTensor, StoredTensor>;
}

/** Only tensors of one type and shape can hold the same values. */
function byForm(group: readonly StoredTensor[]): StoredTensor[][] {
  const forms = new Map<string, StoredTensor[]>();
  for (const tensor of group) {
    const form = `${tensor.dtype} ${tensor.shape}`;
    const like = forms.get(form);
    if (like) like.push(tensor);
    else forms.set(form, [tensor]);
  }
  return [...forms.values()];
}

/** @param like Tensors of one form. No race where all of them lie in one place. */
function raceOf(like: readonly StoredTensor[]): Race[] {
  const numbered = new Map(like.map((tensor, index) => [String(index), tensor]));
  const views = new Map<StoredTensor, StoredTensor>();
  const [first, ...rivals] = viewsOf(numbered).map(({ tensor, names }) => {
    for (const name of names) views.set(numbered.get(name) ?? tensor, tensor);
    return tensor;
  });
  return first && rivals.length > 0 ? [{ first, rivals, views }] : [];
}

/** Bytes of a tensor that are compared at a time. */
const BLOCK_BYTES = 1 << 20;

/** Those rivals that hold the values of `first`. All are read side by side, as far as they agree. */
async function equalTo(
  { first, rivals: all }: Race,
  onBytes: (bytes: number) => void,
): Promise<StoredTensor[]> {
  const isFlat = [first, ...all].every(isContiguous);
  const partsOf = (tensor: StoredTensor) => piecesOf(isFlat ? flat(tensor) : tensor, BLOCK_BYTES);
  let rivals = all.map((tensor) => ({ tensor, parts: partsOf(tensor) }));
  const [wanted, read] = [new Uint8Array(BLOCK_BYTES), new Uint8Array(BLOCK_BYTES)];
  let left = first.bytes;
  for (const part of partsOf(first)) {
    const expected = bytesOf(part, wanted);
    const before = rivals.length;
    rivals = rivals.filter(({ parts: theirs }) => {
      const { value } = theirs.next();
      return value && Buffer.compare(expected, bytesOf(value, read)) === 0;
    });
    left -= part.bytes;
    // Nothing more is to be done for those that differ.
    onBytes(part.bytes * before + left * (before - rivals.length));
    if (rivals.length === 0) break;
    await breathe();
  }
  return rivals.map(({ tensor }) => tensor);
}

function bytesOf(part: StoredTensor, memory: Uint8Array): Uint8Array {
  const target = memory.subarray(0, part.bytes);
  if (part.elements > 0) readRows(part, 0, rowsOf(part), target);
  return target;
}

/** A contiguous tensor as one row after the other of one element each. */
const flat = (tensor: StoredTensor): StoredTensor => ({
  ...tensor,
  shape: [tensor.elements],
  strides: [1],
});
