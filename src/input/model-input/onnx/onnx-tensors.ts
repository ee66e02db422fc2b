/**
 * Tensors of an ONNX graph under the names of the model that it was exported from. Exporters of PyTorch keep the names of
 * most weights; they transpose those of matrix products, and give them numbers for names. The nodes that use them show which weights they are.
 */

import { decodeValues, fillLittleEndian, viewOf } from '../../../base/tensor/decode-values.js';
import { STORED_DTYPES } from '../../../base/tensor/dtype.js';
import { sumOf } from '../../../base/values.js';
import type { Checkpoint } from '../../../checkpoint/checkpoint.js';
import { computedTensor, transposedTensor } from '../../../checkpoint/computed-file.js';
import type { OnnxGraph, OnnxNodeUse } from '../../../checkpoint/onnx/describe-onnx.js';
import { encodedBytes, type StoredTensor } from '../../../checkpoint/stored-tensor.js';
import { readRows } from '../../../checkpoint/view.js';
import {
  type ExportedForm,
  exportedForms,
  inForm,
  joinedRows,
  rowsIn,
  type WeightRows,
} from './exported-weights.js';

/** How a graph stores the tensors of its model. */
export interface OnnxView {
  /** Weights that the graph stores transposed, by their names in the model. */
  readonly transposed: readonly string[];
  /** Names of the model for tensors that the graph names otherwise. */
  readonly renamed: readonly {
    /** Name of the tensor in the model. */
    readonly name: string;
    /** Its name in the graph. */
    readonly initializer: string;
  }[];
  /** Names that the graph stores once with another tensor of equal values, and that tensor. */
  readonly merged: readonly {
    /** Name of the tensor in the model. */
    readonly name: string;
    /** Its name in the graph. */
    readonly initializer: string;
  }[];
  /** Weights of 8 or 4 bits in groups, by their names in the model. */
  readonly quantized: readonly string[];
  /** Initializers that belong to the graph and not to the model: shapes, bounds, masks. */
  readonly constants: readonly string[];
}

const views = new WeakMap<ReadonlyMap<string, StoredTensor>, OnnxView>();

/** How the graph of a checkpoint stores its tensors; undefined for other formats. */
export const onnxViewOf = ({ tensors }: Checkpoint): OnnxView | undefined => views.get(tensors);

/** Name of a parameter: identifiers with dots between. */
const PARAMETER = /^[A-Za-z_][\w-]*(?:\.[\w-]+)*$/;
/** Names that exporters generate. */
const GENERATED = /^(?:onnx::|_?val_\d|c?_?lifted_|const(?:ant)?[_\d]|node_|tmp)/i;

const isParameterName = (name: string): boolean => PARAMETER.test(name) && !GENERATED.test(name);

/** The tensors of the model in a graph, and how they are stored. */
export function tensorsOfOnnx(
  own: ReadonlyMap<string, StoredTensor>,
  { uses }: OnnxGraph,
  metadata: ReadonlyMap<string, string> = new Map(),
): ReadonlyMap<string, StoredTensor> {
  const forms = exportedForms(metadata);
  const tensors = new Map<string, StoredTensor>();
  const view = {
    transposed: [] as string[],
    renamed: [] as OnnxView['renamed'][number][],
    merged: [] as OnnxView['merged'][number][],
    quantized: [] as string[],
    constants: [] as string[],
  };
  const isPart = new Set<string>();
  const pieces = new Map<string, WeightRows[]>();
  for (const [initializer, tensor] of own) {
    const used = uses.get(initializer) ?? [];
    const grouped = used.map((use) => groupedWeight(initializer, use, own, forms)).find(Boolean);
    const rows = rowsIn(initializer);
    if (rows && forms.has(rows.name) && (grouped || !QUANTIZED.test(initializer))) {
      const piece = { first: rows.first, tensor: grouped?.tensor ?? tensor };
      const others = pieces.get(rows.name);
      if (others) others.push(piece);
      else pieces.set(rows.name, [piece]);
      for (const part of grouped?.parts ?? [initializer]) isPart.add(part);
      continue;
    }
    if (grouped) {
      const name = grouped.name ?? nameOfUse(used[0], 'weight');
      if (name !== undefined && !tensors.has(name)) {
        const form = forms.get(name);
        tensors.set(name, (form && inForm(grouped.tensor, form)) ?? grouped.tensor);
        view.quantized.push(name);
      }
      for (const part of grouped.parts) isPart.add(part);
      continue;
    }
    const found = isParameterName(initializer)
      ? { name: initializer, isTransposed: false }
      : used.map((use) => usePlace(use, tensor)).find(Boolean);
    if (found !== undefined && !own.has(found.name) && !tensors.has(found.name)) {
      view.renamed.push({ name: found.name, initializer });
      if (found.isTransposed) view.transposed.push(found.name);
    }
    const isNew = found !== undefined && (found.name === initializer || !own.has(found.name));
    if (!isNew || tensors.has(found.name)) view.constants.push(initializer);
    else tensors.set(found.name, found.isTransposed ? transposedTensor(tensor) : tensor);
    // Equal tensors are stored once, and the other names are copies of it.
    for (const { op, output } of used) {
      if (op !== 'Identity' || !isParameterName(output) || own.has(output)) continue;
      view.merged.push({ name: output, initializer });
      tensors.set(output, copyOf(tensor));
    }
  }
  for (const [name, parts] of pieces) {
    const form = forms.get(name);
    const whole = joinedRows(parts);
    const tensor = form && whole && inForm(whole, form);
    if (tensor === undefined || tensors.has(name)) continue;
    tensors.set(name, tensor);
    if (tensor.encoding) view.quantized.push(name);
  }
  const constants = view.constants.filter((name) => !isPart.has(name));
  for (const part of isPart) tensors.delete(part);
  views.set(tensors, { ...view, constants });
  return tensors;
}

/** Codes, scales and zero points of a weight in an exported graph. */
const QUANTIZED = /:(?:codes|scales|zeroPoints):/;

/** A copy of a tensor at the same bytes: equal by value, but not tied. */
const copyOf = (tensor: StoredTensor): StoredTensor => ({
  ...tensor,
  storage: { ...tensor.storage },
});

interface Place {
  readonly name: string;
  readonly isTransposed: boolean;
}

/** The parameter that a node reads from an unnamed initializer; undefined for a constant. */
function usePlace(use: OnnxNodeUse, { shape, dtype }: StoredTensor): Place | undefined {
  if (STORED_DTYPES[dtype].kind !== 'float' || shape.length === 0) return undefined;
  const of = (parameter: string, isTransposed = false): Place | undefined => {
    const name = nameOfUse(use, parameter);
    return name === undefined ? undefined : { name, isTransposed };
  };
  const isMatrix = shape.length === 2;
  switch (use.op) {
    case 'MatMul':
      return use.input === 1 && isMatrix ? of('weight', true) : undefined;
    case 'Gemm':
      if (use.input === 1 && isMatrix) return of('weight', use.integers.transB !== 1);
      return use.input === 2 && shape.length === 1 ? of('bias') : undefined;
    case 'Gather':
      return use.input === 0 && isMatrix ? of('weight') : undefined;
    case 'Conv':
    case 'LayerNormalization':
    case 'SimplifiedLayerNormalization':
    case 'RMSNormalization':
      return use.input > 0 ? of(use.input === 1 ? 'weight' : 'bias') : undefined;
    default:
      return undefined;
  }
}

/** `model.layers.0.self_attn.q_proj.weight` for a node `/model/layers.0/self_attn/q_proj/MatMul`. */
function nameOfUse(use: OnnxNodeUse | undefined, parameter: string): string | undefined {
  const module = use && moduleOf(use);
  return module ? `${module}.${parameter}` : undefined;
}

function moduleOf({ name, scopes }: OnnxNodeUse): string | undefined {
  // The last scope is the operation itself.
  const listed = Array.from(scopes.matchAll(/'([^']*)'/g), ([, scope = '']) => scope);
  if (listed.length > 1) return listed.at(-2);
  if (!name.startsWith('/')) return undefined;
  const parts: string[] = [];
  for (const part of name.slice(1).split('/').slice(0, -1)) {
    // A child of a sequence has the whole name of the sequence: `/net/net.0/MatMul`.
    const last = parts.at(-1);
    if (last !== undefined && part.startsWith(`${last}.`)) parts.pop();
    parts.push(part);
  }
  return parts.length > 0 ? parts.join('.') : undefined;
}

// Weights of 8 or 4 bits in groups, as ONNX Runtime's MatMulNBits and GatherBlockQuantized read them.

export interface GroupedWeight {
  /** Name of the weight; undefined where the name of its codes does not contain it. */
  readonly name: string | undefined;
  readonly tensor: StoredTensor;
  /** Initializers that it consists of. */
  readonly parts: readonly string[];
}

/** Inputs of the nodes: codes, scales and zero points. */
const INPUTS: Readonly<
  Record<string, readonly [codes: number, scales: number, zeroPoints: number]>
> = { MatMulNBits: [1, 2, 3], GatherBlockQuantized: [0, 2, 3] };

const FLOAT_BYTES = 4;

/** Undefined for an initializer that is not the codes of such a weight. */
function groupedWeight(
  initializer: string,
  use: OnnxNodeUse,
  own: ReadonlyMap<string, StoredTensor>,
  forms: ReadonlyMap<string, ExportedForm>,
): GroupedWeight | undefined {
  const places = INPUTS[use.op];
  if (places === undefined || use.input !== places[0]) return undefined;
  const parts = places.map((place) => use.inputs[place] ?? '');
  const [codes, scales, zeroPoints] = parts.map((part) => own.get(part));
  const name = /^(.+):codes(?::rows)?$/.exec(initializer)?.[1];
  // A lookup does not state the number of columns, and the last group can be padded.
  const layout = codes && layoutOf(codes, use, forms.get(name ?? '')?.shape.at(-1));
  if (!codes || !scales || !layout) return undefined;
  if (scales.elements !== layout.rows * layout.groups) return undefined;
  const zeroBytes = Math.ceil((layout.groups * layout.bits) / 8);
  const packed = zeroPoints?.dtype === 'U8' ? zeroPoints : undefined;
  if (packed && packed.elements !== layout.rows * zeroBytes) return undefined;
  return {
    name,
    tensor: decoded({ ...layout, codes, scales, zeroPoints: packed }),
    parts: parts.filter((part) => own.has(part)),
  };
}

interface Layout {
  readonly rows: number;
  readonly columns: number;
  readonly groups: number;
  readonly group: number;
  readonly bits: number;
}

function layoutOf(
  { dtype, elements, shape }: StoredTensor,
  use: OnnxNodeUse,
  described: number | undefined,
): Layout | undefined {
  const { bits = 4, block_size: group = 128, N, K } = use.integers;
  if (dtype !== 'U8' || (bits !== 4 && bits !== 8) || group < 8) return undefined;
  const rows = N ?? shape[0] ?? 0;
  const width = rows > 0 ? (elements * 8) / bits / rows : 0;
  const columns = K ?? described ?? width;
  const groups = Math.ceil(columns / group);
  const isWhole = rows > 0 && columns > 0 && groups * group === width;
  return isWhole ? { rows, columns, groups, group, bits } : undefined;
}

interface Parts extends Layout {
  readonly codes: StoredTensor;
  readonly scales: StoredTensor;
  readonly zeroPoints: StoredTensor | undefined;
}

/** The weight as float32, (code − zero point) · scale, decoded where it is read. */
function decoded(parts: Parts): StoredTensor {
  const { rows, columns, bits, codes, scales, zeroPoints } = parts;
  const stored = [codes, scales, ...(zeroPoints ? [zeroPoints] : [])];
  const { file, position } = codes.storage;
  const elements = rows * columns;
  return computedTensor(file, {
    ...{ dtype: 'F32', shape: [rows, columns], elements, bytes: FLOAT_BYTES * elements },
    encoding: {
      ...{ type: `INT${bits}`, file, position },
      bytes: sumOf(stored, (part) => encodedBytes(part)),
    },
    fill(target, from) {
      const first = from / FLOAT_BYTES;
      const end = first + target.length / FLOAT_BYTES;
      const values = new Float32Array(end - first);
      for (let row = Math.floor(first / columns); row * columns < end; row++) {
        const decodedRow = partRow(parts, row);
        const start = Math.max(first, row * columns);
        const stop = Math.min(end, (row + 1) * columns);
        values.set(decodedRow.subarray(start - row * columns, stop - row * columns), start - first);
      }
      fillLittleEndian(target, FLOAT_BYTES, (words) => viewOf(Float32Array, words).set(values));
    },
  });
}

function partRow(parts: Parts, row: number): Float32Array {
  const { columns, groups, group, bits, codes, scales, zeroPoints } = parts;
  const packed = bytesOfRow(codes, row, (groups * group * bits) / 8);
  const zeros = zeroPoints && bytesOfRow(zeroPoints, row, Math.ceil((groups * bits) / 8));
  const factors = new Float64Array(groups);
  const scaleBytes = bytesOfRow(scales, row, (groups * scales.bytes) / scales.elements);
  decodeValues(scales.dtype, scaleBytes, factors);
  const middle = 2 ** (bits - 1);
  return Float32Array.from({ length: columns }, (_, column) => {
    const at = Math.floor(column / group);
    const zero = zeros ? codeAt(zeros, at, bits) : middle;
    return (codeAt(packed, column, bits) - zero) * (factors[at] ?? 0);
  });
}

/** Codes of 4 bits are packed in pairs, the first in the low bits. */
function codeAt(bytes: Uint8Array, index: number, bits: number): number {
  if (bits === 8) return bytes[index] ?? 0;
  return ((bytes[index >> 1] ?? 0) >> (index % 2 === 0 ? 0 : 4)) & 15;
}

/** Bytes of a row, for a tensor of any shape. */
function bytesOfRow(tensor: StoredTensor, row: number, bytes: number): Uint8Array {
  const target = new Uint8Array(bytes);
  const width = tensor.bytes / tensor.elements;
  const flat = { ...tensor, shape: [tensor.elements], strides: [1] };
  readRows(flat, (row * bytes) / width, bytes / width, target);
  return target;
}
