/** Tensors grouped by the layer that their names speak of, whatever the model. */
import type { StoredDtype } from '../tensor/dtype.js';
import type { StoredTensor } from './stored-tensor.js';

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
