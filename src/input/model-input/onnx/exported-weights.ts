/** Weights that an exported graph does not hold whole, by the shapes in its metadata. */

import { elementCount, isSameShape, type Shape } from '../../../base/tensor/dtype.js';
import { jsonOrUndefined } from '../../../base/text/json.js';
import { isRecord, sumOf } from '../../../base/values.js';
import { computedTensor, reshaped, transposedTensor } from '../../../checkpoint/computed-file.js';
import { encodedBytes, type StoredTensor } from '../../../checkpoint/stored-tensor.js';
import { readRows } from '../../../checkpoint/view.js';

/** Entry of the metadata in which `export` writes the shapes. */
const SHAPES = 'shapes';

/** Form in the model of a weight that the graph stores in another form. */
export interface ExportedForm {
  readonly shape: Shape;
  /** Whether the graph stores the rows of a matrix as its columns. */
  readonly isTransposed: boolean;
}

/** Forms by the names of the weights; without invalid entries. */
export function exportedForms(
  metadata: ReadonlyMap<string, string>,
): ReadonlyMap<string, ExportedForm> {
  const listed = jsonOrUndefined(metadata.get(SHAPES) ?? '');
  if (!isRecord(listed)) return new Map();
  return new Map(
    Object.entries(listed).flatMap(([name, form]) => {
      if (!isRecord(form) || !isShape(form.shape)) return [];
      return [[name, { shape: form.shape, isTransposed: form.transposed === true }]];
    }),
  );
}

const isShape = (value: unknown): value is Shape =>
  Array.isArray(value) && elementCount(value) !== undefined;

/** A stored matrix in the form of the model; undefined where it does not have these values. */
export function inForm(tensor: StoredTensor, form: ExportedForm): StoredTensor | undefined {
  const turned = form.isTransposed ? transposedTensor(tensor) : tensor;
  if (isSameShape(turned.shape, form.shape)) return turned;
  return !form.isTransposed && elementCount(form.shape) === turned.elements
    ? reshaped(turned, form.shape)
    : undefined;
}

/** Rows of a weight in an initializer of their own: `NAME:64+16`, or `NAME:codes:64+16`. */
const ROWS = /^(.+?)(?::codes)?:(\d+)\+(\d+)$/s;

export interface RowsOfWeight {
  readonly name: string;
  readonly first: number;
}

/** The weight and the first row that an initializer holds; undefined for others. */
export function rowsIn(initializer: string): RowsOfWeight | undefined {
  const [, name, first] = ROWS.exec(initializer) ?? [];
  return name === undefined ? undefined : { name, first: Number(first) };
}

/** A part of the rows of a weight, as a matrix. */
export interface WeightRows {
  readonly first: number;
  readonly tensor: StoredTensor;
}

/** One matrix of parts that follow each other; undefined where rows are missing. */
export function joinedRows(parts: readonly WeightRows[]): StoredTensor | undefined {
  const ordered = parts.toSorted((a, b) => a.first - b.first);
  const sorted = ordered.map(({ tensor }) => tensor);
  const [head] = sorted;
  const columns = head?.shape[1];
  if (!head || columns === undefined || head.bytes === 0) return undefined;
  let rows = 0;
  for (const { first, tensor } of ordered) {
    const { shape, dtype } = tensor;
    const isAlike = shape.length === 2 && shape[1] === columns && dtype === head.dtype;
    if (first !== rows || !isAlike) return undefined;
    rows += shape[0] ?? 0;
  }
  const { file, position } = head.storage;
  const bytes = sumOf(sorted, (each) => each.bytes);
  const type = head.encoding?.type;
  return computedTensor(file, {
    ...{ dtype: head.dtype, shape: [rows, columns], bytes },
    ...(type !== undefined && {
      encoding: { type, file, position, bytes: sumOf(sorted, encodedBytes) },
    }),
    fill(target, from) {
      let start = 0;
      for (const tensor of sorted) {
        const [begin, end] = [
          Math.max(from, start),
          Math.min(from + target.length, start + tensor.bytes),
        ];
        if (begin < end) fillFrom(tensor, begin - start, target.subarray(begin - from, end - from));
        start += tensor.bytes;
      }
    },
  });
}

/** Copies the bytes of a matrix from `position` on. */
function fillFrom(tensor: StoredTensor, position: number, target: Uint8Array): void {
  const width = tensor.bytes / tensor.elements;
  const flat = { ...tensor, shape: [tensor.elements], strides: [1] };
  readRows(flat, position / width, target.length / width, target);
}
