import os from 'node:os';
import { UserError } from '../../base/errors.js';
import type { Distribution } from '../../base/random/distributions.js';
import { SeededFill } from '../../base/random/distributions.js';
import { decodeValues } from '../../base/tensor/decode-values.js';
import type { StoredDtype } from '../../base/tensor/dtype.js';
import { isSameShape, STORED_DTYPES, shapeText } from '../../base/tensor/dtype.js';
import { fillHashes, streamKey } from '../../base/tensor/random.js';
import { commandText } from '../../base/text/setting.js';
import type { Checkpoint } from '../../checkpoint/checkpoint.js';
import { storedNames } from '../../checkpoint/names.js';
import type { StoredTensor } from '../../checkpoint/stored-tensor.js';
import { isContiguous } from '../../checkpoint/stored-tensor.js';
import { readRows, rowCount } from '../../checkpoint/view.js';
import type { Layer } from '../../model/architecture/layer.js';
import type { Param } from '../../model/architecture/param.js';
import type { Formula } from '../../model/architecture/rotary-scaling.js';
import { computedBuffers } from '../../model/architecture/rotary-scaling.js';
import { ownTensors, packedInner, tensorsOf, walk } from '../../model/architecture/walk.js';
import { checkDecayTables } from './decay-tables.js';
import { holdsMxfp4, type Mxfp4Parts, mxfp4Reader } from './mxfp4-weights.js';

/** Number types that an engine can read directly from a file. */
export const MAPPABLE_DTYPES = ['F32', 'F16', 'BF16'] as const satisfies readonly StoredDtype[];

export type MappableDtype = (typeof MAPPABLE_DTYPES)[number];

/** Range of a tensor's values in a file, contiguous and little-endian. */
export interface FileRange {
  /** Absolute path without symbolic links. */
  readonly path: string;
  /** Position of the first byte. */
  readonly position: number;
  readonly bytes: number;
  readonly dtype: MappableDtype;
}

/** Source of a model's weights for an engine, one tensor at a time. */
export interface WeightSource {
  /** Range of a tensor in a file, for an engine that can map it; undefined when it is not contiguous in one. */
  rangeOf(tensor: Param): FileRange | undefined;
  /**
   * Fills `target` with elements from `first` on, as float32, row-major. Parts can be read in any order, so that memory
   * need only hold one part.
   */
  read(tensor: Param, first: number, target: Float32Array): void;
}

// Weights from a seed: each tensor is filled by PyTorch's generator with its own seed, so that parts can be read in any
// order (docs/decisions/0012-random-weights.md).

type Initialisation = Distribution | { readonly kind: 'formula'; readonly formula: Formula };

/** Embeddings and the SRTE's tables: small values, as language models begin. */
const TABLE: Initialisation = { kind: 'normal', mean: 0, deviation: 0.02 };
const constant = (value: number): Initialisation => ({ kind: 'formula', formula: () => value });
const ONES = constant(1);
const ZEROS = constant(0);

/**
 * A model's initial weights in training: those of PyTorch's layers, and Mamba's state from −1 to −N in every channel
 * (S4D-real, arXiv 2206.11893). Activations stay of the order of one.
 */
export function randomWeights(layer: Layer, seed: number): WeightSource {
  const known = initialisations(layer);
  /** The most recent fill: continuing it is cheap. */
  let last: { readonly tensor: Param; readonly fill: SeededFill } | undefined;
  return {
    rangeOf: () => undefined,
    read(tensor, first, target) {
      const initialisation = known.get(tensor);
      if (!initialisation) throw new Error(`${tensor.name} is not a tensor of the model`);
      if (initialisation.kind === 'formula') {
        const { formula } = initialisation;
        for (let i = 0; i < target.length; i++) target[i] = formula(first + i);
        return;
      }
      if (last?.tensor !== tensor) {
        const own = streamKey(seed, tensor.name);
        last = { tensor, fill: new SeededFill(own, tensor.elements, initialisation) };
      }
      last.fill.read(first, target);
    },
  };
}

/** The first layer of a shared tensor determines it: the embedding for a tied head. */
function initialisations(layer: Layer): Map<Param, Initialisation> {
  const known = new Map<Param, Initialisation>();
  const visits = walk(layer);
  for (const visit of visits) {
    for (const [tensor, initialisation] of ownInitialisations(visit.layer)) {
      if (!known.has(tensor)) known.set(tensor, initialisation);
    }
  }
  for (const [tensor, formula] of computedBuffers(layer)) {
    known.set(tensor, { kind: 'formula', formula });
  }
  return known;
}

/** Bound of PyTorch's own initialisation of linear layers and convolutions. */
const spread = (inputs: number): Initialisation => {
  const bound = 1 / Math.sqrt(inputs);
  return { kind: 'uniform', low: -bound, high: bound };
};

/**
 * Initialisation of a layer's own tensors: as in a linear layer or convolution of PyTorch, unless its kind has a rule.
 */
function ownInitialisations(layer: Layer): (readonly [Param, Initialisation])[] {
  switch (layer.kind) {
    case 'embedding':
    case 'learnedPositions':
      return [[layer.weight, TABLE]];
    case 'rmsNorm':
      // The factor is the weight plus its offset: one in total.
      return layer.weight ? [[layer.weight, layer.offset === 1 ? ZEROS : ONES]] : [];
    case 'altUpBlock':
      return [[layer.outputScale, ONES]];
    case 'skippedBlock':
      return layer.gates.map((gate) => [gate, ZEROS]);
    case 'weightedScale':
    case 'gatedRmsNorm':
      return [[layer.weight, ONES]];
    // As in transformers: the two factors are 0.8, and β is ½.
    case 'xielu':
      return [
        [layer.positive, constant(Math.log(Math.expm1(0.8)))],
        [layer.negative, constant(Math.log(Math.expm1(0.8 - 0.5)))],
        [layer.beta, constant(0.5)],
        [layer.eps, constant(-1e-6)],
      ];
    case 'layerNorm':
      return [
        ...(layer.weight ? [[layer.weight, layer.offset === 1 ? ZEROS : ONES] as const] : []),
        ...(layer.bias ? [[layer.bias, ZEROS] as const] : []),
      ];
    case 'transposedLinear': {
      const values = spread(layer.weight.shape[0] ?? 1);
      return ownTensors(layer).map((tensor) => [tensor, values]);
    }
    case 'router':
      return [
        [layer.weight, spread(layer.weight.shape[1] ?? 1)],
        ...[layer.bias, layer.correction].flatMap((each) => (each ? [[each, ZEROS] as const] : [])),
        ...(layer.expertScales ? [[layer.expertScales, ONES] as const] : []),
      ];
    case 'packedExperts':
      return [
        ...[layer.gateUp, ...(layer.up ? [layer.up] : [])].map(
          (tensor) => [tensor, spread(tensor.shape.at(layer.isTransposed ? 1 : -1) ?? 1)] as const,
        ),
        [layer.down, spread(packedInner(layer))],
      ];
    case 'clampedExperts':
      return [
        [layer.gateUp, spread(layer.gateUp.shape[1] ?? 1)],
        [layer.gateUpBias, ZEROS],
        [layer.down, spread(layer.down.shape[1] ?? 1)],
        [layer.downBias, ZEROS],
      ];
    // Rates from 1 to 16, and steps near 0.05.
    case 'kimiDelta': {
      const logarithm: Formula = (index) => Math.log(1 + (15 * index) / layer.heads);
      return [
        [layer.stateLog, { kind: 'formula', formula: logarithm }],
        [layer.stepBias, constant(-3)],
      ];
    }
    // Rates from 1 to 16 (as in Mamba-2).
    case 'gatedDelta': {
      const { valueHeads } = layer;
      const logarithm: Formula = (index) => Math.log(1 + (15 * index) / valueHeads);
      return [
        [layer.stateLog, { kind: 'formula', formula: logarithm }],
        [layer.stepBias, ONES],
      ];
    }
    case 'attention':
      return layer.sinks ? [[layer.sinks, ZEROS]] : [];
    case 'mamba': {
      const { stateSize } = layer;
      const logarithm: Formula = (index) => Math.log(1 + (index % stateSize));
      return [
        [layer.stateLog, { kind: 'formula', formula: logarithm }],
        [layer.skip, ONES],
      ];
    }
    case 'stateSpaceDual': {
      const logarithm: Formula = (index) => Math.log(1 + index);
      return [
        [layer.stepBias, ONES],
        [layer.stateLog, { kind: 'formula', formula: logarithm }],
        [layer.skip, ONES],
      ];
    }
    case 'srteTable':
      return [[layer.table, TABLE]];
    case 'srteLowRank':
      return [[layer.lowRank, TABLE]];
    case 'rotary':
    case 'srteSincos':
    case 'lightningAttention':
      // Their buffers are computed.
      return [];
    default: {
      const tensors = ownTensors(layer);
      const [weight] = tensors;
      if (!weight) return [];
      // A weight [out, …inputs of one output]; a bias has the same distribution.
      const values = spread(weight.elements / (weight.shape[0] ?? 1));
      return tensors.map((tensor) => [tensor, values]);
    }
  }
}

/** `count` integers from 0 to below `limit`, from a seed and a name. */
export function randomIntegers(
  seed: number,
  name: string,
  count: number,
  limit: number,
): Int32Array {
  const hashes = new Uint32Array(count);
  fillHashes(streamKey(seed, name), 0, hashes);
  return Int32Array.from(hashes, (hash) => Math.floor((hash / 2 ** 32) * limit));
}

// Weights of an opened checkpoint.

/**
 * The tensors of `layer` in a checkpoint, each under its own name or one of its aliases, without prefixes of wrappers.
 * Missing buffers are computed. The checkpoint must stay open while tensors are read.
 * @throws UserError when a tensor is missing, misshapen or not of floats, or names collide.
 */
export function checkpointWeights(layer: Layer, checkpoint: Checkpoint): WeightSource {
  const { stored, packed } = storedTensors(layer, checkpoint);
  const formulas = computedBuffers(layer);
  checkDecayTables(layer, checkpoint.path, (tensor, count) => {
    const found = stored.get(tensor);
    if (!found) return undefined;
    const values = new Float32Array(count);
    readElements(found, 0, values);
    return values;
  });
  return {
    rangeOf(tensor) {
      const found = stored.get(tensor);
      return found && rangeOf(found);
    },
    read(tensor, first, target) {
      const found = stored.get(tensor);
      if (found) return readElements(found, first, target);
      const readPacked = packed.get(tensor);
      if (readPacked) return readPacked(first, target);
      const formula = formulas.get(tensor);
      if (!formula) throw new Error(`${tensor.name} is not a tensor of the model`);
      for (let i = 0; i < target.length; i++) target[i] = formula(first + i);
    },
  };
}

/** Reader of elements from `first` on. */
type ElementReader = (first: number, target: Float32Array) => void;

interface StoredTensors {
  readonly stored: ReadonlyMap<Param, StoredTensor>;
  /** Tensors stored as several others. */
  readonly packed: ReadonlyMap<Param, ElementReader>;
}

function storedTensors(layer: Layer, checkpoint: Checkpoint): StoredTensors {
  const { path } = checkpoint;
  const byName = storedNames(checkpoint);
  const stored = new Map<Param, StoredTensor>();
  const packed = new Map<Param, ElementReader>();
  for (const tensor of tensorsOf(layer)) {
    const [found] = [tensor.name, ...tensor.aliases].flatMap(
      (name) => byName.get(name)?.tensor ?? [],
    );
    const [blocks, scales] = ['blocks', 'scales'].map(
      (part) => byName.get(`${tensor.name}_${part}`)?.tensor,
    );
    if (found) stored.set(tensor, fitting(tensor, found, path));
    else if (blocks && scales) packed.set(tensor, packedReader(tensor, { blocks, scales }, path));
    else if (tensor.role === 'parameter') throw unfit(path, `has no tensor ${tensor.name}`);
  }
  return { stored, packed };
}

function packedReader(tensor: Param, parts: Mxfp4Parts, path: string): ElementReader {
  if (!holdsMxfp4(tensor, parts)) {
    const { name, shape } = tensor;
    const found = `${shapeText(parts.blocks.shape)} and ${shapeText(parts.scales.shape)}`;
    throw unfit(
      path,
      `has the MXFP4 blocks and scales of ${name} as ${found}, for ${shapeText(shape)}`,
    );
  }
  return mxfp4Reader(tensor, parts);
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
    suggestion: `see all that differs with ${commandText('verify', ['CONFIG', 'CHECKPOINT'])}`,
  });

function rangeOf(tensor: StoredTensor): FileRange | undefined {
  const { storage, offset, bytes } = tensor;
  const dtype = MAPPABLE_DTYPES.find((each) => each === tensor.dtype);
  if (dtype === undefined || storage.isBigEndian || !isContiguous(tensor)) return undefined;
  if (storage.file.isComputed) return undefined;
  const position = storage.position + (offset * STORED_DTYPES[dtype].bits) / 8;
  return { path: storage.file.locate(), position, bytes, dtype };
}

/** Elements read at a time. A multiple of four, so that packed values fill whole bytes. */
const BLOCK = 1 << 18;

function readElements(tensor: StoredTensor, first: number, target: Float32Array): void {
  const flat = isContiguous(tensor) ? asRow(tensor) : tensor;
  if (flat.dtype === 'F32' && flat !== tensor && os.endianness() === 'LE') {
    const bytes = new Uint8Array(target.buffer, target.byteOffset, target.byteLength);
    readRows(flat, first, target.length, bytes);
    return;
  }
  const rowSize = tensor.elements / rowCount(flat);
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
  const elements = rows * (tensor.elements / rowCount(tensor));
  const bytes = new Uint8Array((elements * STORED_DTYPES[tensor.dtype].bits) / 8);
  readRows(tensor, firstRow, rows, bytes);
  const values = new Float64Array(elements);
  decodeValues(tensor.dtype, bytes, values);
  return values;
}
