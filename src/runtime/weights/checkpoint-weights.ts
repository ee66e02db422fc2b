/** The weights of an opened checkpoint. */
import os from 'node:os';
import { computedBuffers } from '../../architecture/computed-buffers.js';
import type { Layer } from '../../architecture/layer.js';
import type { Param } from '../../architecture/param.js';
import { tensorsOf } from '../../architecture/walk.js';
import type { Checkpoint } from '../../checkpoint/checkpoint.js';
import { canonicalNames } from '../../checkpoint/names.js';
import type { StoredTensor } from '../../checkpoint/stored-tensor.js';
import { isContiguous } from '../../checkpoint/stored-tensor.js';
import { readRows, rowsOf } from '../../checkpoint/view.js';
import { UserError } from '../../errors.js';
import { decode } from '../../tensor/decode.js';
import { isSameShape, STORED_DTYPES, shapeText } from '../../tensor/dtype.js';
import type { FileRange, WeightSource } from './random-weights.js';
import { MAPPABLE_DTYPES } from './random-weights.js';

/**
 * The tensors of `layer` as a checkpoint holds them, each under its own name or one of its aliases,
 * without prefixes of wrappers. Buffers that it leaves out are computed. It must stay open for as long
 * as there is something to read.
 * @throws UserError when a tensor is missing, misshapen or not of floats, or names collide.
 */
export function checkpointWeights(layer: Layer, checkpoint: Checkpoint): WeightSource {
  const stored = storedTensors(layer, checkpoint);
  const formulas = computedBuffers(layer);
  return {
    rangeOf(tensor) {
      const found = stored.get(tensor);
      return found && rangeOf(found);
    },
    read(tensor, first, target) {
      const found = stored.get(tensor);
      if (found) return readElements(found, first, target);
      const formula = formulas.get(tensor);
      if (!formula) throw new Error(`${tensor.name} is no tensor of the model`);
      for (let i = 0; i < target.length; i++) target[i] = formula(first + i);
    },
  };
}

function storedTensors(layer: Layer, checkpoint: Checkpoint): Map<Param, StoredTensor> {
  const { path, tensors, aliases } = checkpoint;
  const byName = new Map<string, StoredTensor>();
  for (const [own, name] of canonicalNames([...tensors.keys(), ...aliases.keys()], path)) {
    const tensor = tensors.get(own) ?? tensors.get(aliases.get(own) ?? own);
    if (tensor) byName.set(name, tensor);
  }
  const stored = new Map<Param, StoredTensor>();
  for (const tensor of tensorsOf(layer)) {
    const name = [tensor.name, ...tensor.aliases].find((each) => byName.has(each));
    const found = name === undefined ? undefined : byName.get(name);
    if (found) stored.set(tensor, fitting(tensor, found, path));
    else if (tensor.role === 'parameter') throw unfit(path, `has no tensor ${tensor.name}`);
  }
  return stored;
}

function fitting(tensor: Param, found: StoredTensor, path: string): StoredTensor {
  const { name, shape } = tensor;
  if (!isSameShape(found.shape, shape)) {
    throw unfit(path, `has ${name} as ${shapeText(found.shape)}, not ${shapeText(shape)}`);
  }
  if (STORED_DTYPES[found.dtype].kind !== 'float') {
    throw unfit(path, `has ${name} as ${found.dtype}, not as floats`);
  }
  return found;
}

const unfit = (path: string, what: string) =>
  new UserError('refused-file', `${path} ${what}`, {
    suggestion: 'see all that differs with minimind verify CONFIG CHECKPOINT',
  });

function rangeOf(tensor: StoredTensor): FileRange | undefined {
  const { storage, offset, bytes } = tensor;
  const dtype = MAPPABLE_DTYPES.find((each) => each === tensor.dtype);
  if (dtype === undefined || storage.isBigEndian || !isContiguous(tensor)) return undefined;
  const position = storage.position + (offset * STORED_DTYPES[dtype].bits) / 8;
  return { path: storage.file.locate(), position, bytes, dtype };
}

/** Elements that are read at a time. A multiple of four: so many packed values are whole bytes. */
const BLOCK = 1 << 18;

function readElements(tensor: StoredTensor, first: number, target: Float32Array): void {
  const flat = isContiguous(tensor) ? asRow(tensor) : tensor;
  if (flat.dtype === 'F32' && flat !== tensor && os.endianness() === 'LE') {
    const bytes = new Uint8Array(target.buffer, target.byteOffset, target.byteLength);
    readRows(flat, first, target.length, bytes);
    return;
  }
  const rowSize = tensor.elements / rowsOf(flat);
  const unit = rowSize * (rowSize % 4 === 0 ? 1 : 4);
  const atOnce = Math.max(unit, BLOCK - (BLOCK % unit));
  const end = first + target.length;
  const last = Math.min(Math.ceil(end / unit) * unit, tensor.elements);
  for (let from = first - (first % unit); from < end; from += atOnce) {
    const to = Math.min(from + atOnce, last);
    const values = decodeElements(flat, from / rowSize, (to - from) / rowSize);
    const start = Math.max(first, from);
    target.set(values.subarray(start - from, Math.min(end, to) - from), start - first);
  }
}

/** A contiguous tensor as rows of one element each. */
const asRow = (tensor: StoredTensor): StoredTensor => ({
  ...tensor,
  shape: [tensor.elements],
  strides: [1],
});

function decodeElements(tensor: StoredTensor, firstRow: number, rows: number): Float64Array {
  const elements = rows * (tensor.elements / rowsOf(tensor));
  const bytes = new Uint8Array((elements * STORED_DTYPES[tensor.dtype].bits) / 8);
  readRows(tensor, firstRow, rows, bytes);
  const values = new Float64Array(elements);
  decode(tensor.dtype, bytes, values);
  return values;
}
