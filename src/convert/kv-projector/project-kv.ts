/** Projects keys and values through an adapter, in blocks of rows. */

import fs from 'node:fs';
import { type Problem, usageError } from '../../base/errors.js';
import {
  folderError,
  refuseFullDisk,
  refuseUnwritable,
  writeWhole,
} from '../../base/files/write-whole.js';
import type { Matrix, MatrixProducts } from '../../base/linalg/matrix.js';
import { decodeValues, numbersIn } from '../../base/tensor/decode-values.js';
import type { Dtype, StoredDtype } from '../../base/tensor/dtype.js';
import { elementCount, STORED_DTYPES, storedBytes } from '../../base/tensor/dtype.js';
import type { EncodableDtype } from '../../base/tensor/encode.js';
import { encode, isEncodable } from '../../base/tensor/encode.js';
import { sumOf } from '../../base/values.js';
import type { Checkpoint } from '../../checkpoint/checkpoint.js';
import { FORMAT_TITLES } from '../../checkpoint/formats.js';
import { openCheckpoint } from '../../checkpoint/open.js';
import { writeSafetensors } from '../../checkpoint/safetensors/write-safetensors.js';
import type { StoredTensor } from '../../checkpoint/stored-tensor.js';
import { readRowsAsync, readTensor, yieldToEventLoop } from '../../checkpoint/view.js';
import { quote } from '../../config/quote.js';
import { layerNorm } from '../../model/modules/norms-and-activations.js';
import type { CheckpointTarget } from '../conversion/job.js';
import { outputTarget, refuseOverlap } from '../conversion/job.js';
import { matmulBackendFor } from '../conversion/resources.js';
import { errorCollector } from './arguments.js';
import type { ProjectedTensor } from './projection-plan.js';
import { planProjection } from './projection-plan.js';
import type { Branch } from './projector.js';
import { NORM_EPSILON, partName } from './projector.js';
import type { ProjectorFacts, ProjectorSurroundings, SavedAdapter } from './saved.js';
import { describedProjector, projectorWarnings, savedProjector } from './saved.js';

/** Approximate maximum of a block's rows times its widest row: 32 MB in float64. */
const BLOCK_NUMBERS = 2 ** 22;

/** NaN and infinite values of a result. */
export interface NonFiniteCounts {
  /** Number in the input. */
  given: number;
  made: number;
}

export interface ProjectOptions {
  readonly products: MatrixProducts;
  readonly dtype: EncodableDtype;
  /** Counters to update. */
  readonly nonFinite: NonFiniteCounts;
  /** Called after each block with its input bytes. */
  readonly done: (bytes: number) => void;
}

/**
 * Bytes of a projected tensor, in blocks of rows. Computed in float32 or better and rounded once.
 * @throws UserError when a file cannot be read, or the adapter holds values that are not finite.
 */
async function* projectedChunks(
  { tensor, adapter }: ProjectedTensor,
  { products, dtype, nonFinite, done }: ProjectOptions,
): AsyncGenerator<Uint8Array, undefined> {
  if (tensor.elements === 0) return;
  const { teacherWidth, studentWidth, hidden = 0 } = adapter;
  const run = loadAdapter(adapter, products);
  const rows = tensor.elements / teacherWidth;
  const atOnce = Math.max(
    1,
    Math.floor(BLOCK_NUMBERS / Math.max(teacherWidth, studentWidth, hidden)),
  );
  const flat = asRows(tensor, rows, teacherWidth);
  try {
    for (let row = 0; row < rows; row += atOnce) {
      const count = Math.min(atOnce, rows - row);
      const bytes = new Uint8Array((count * tensor.bytes) / rows);
      await readRowsAsync(flat, row, count, bytes);
      const input = new Float64Array(count * teacherWidth);
      decodeValues(tensor.dtype, bytes, input);
      nonFinite.given += countNonFinite(input);
      const output = await run.apply({ values: input, rows: count, columns: teacherWidth });
      const encoded = new Uint8Array((output.length * STORED_DTYPES[dtype].bits) / 8);
      const overflow = encode(dtype, output, encoded);
      nonFinite.made += overflow < 0 ? countNonFinite(output) : countEncoded(dtype, encoded);
      yield encoded;
      done(bytes.length);
      await yieldToEventLoop();
    }
  } finally {
    run.close();
  }
}

function countNonFinite(values: Float64Array): number {
  let count = 0;
  for (const value of values) if (!Number.isFinite(value)) count++;
  return count;
}

/** Counts values that are not finite after encoding, for results beyond the type's range. */
function countEncoded(dtype: EncodableDtype, encoded: Uint8Array): number {
  const values = new Float64Array(numbersIn(dtype, encoded.length));
  decodeValues(dtype, encoded, values);
  return countNonFinite(values);
}

/** View of [..., d] as [rows, d]: a safetensors file has no strides. */
const asRows = (tensor: StoredTensor, rows: number, width: number): StoredTensor => ({
  ...tensor,
  shape: [rows, width],
  strides: [width, 1],
});

interface Runnable {
  /** [n, d_t] → [n, d_s] */
  apply(input: Matrix): Promise<Float64Array>;
  close(): void;
}

function loadAdapter(adapter: SavedAdapter, products: MatrixProducts): Runnable {
  switch (adapter.kind) {
    case 'linear': {
      const linear = loadLinear(adapter, 'weight', 'bias', products);
      return { apply: (input) => linear.apply(input), close: linear.close };
    }
    case 'elastic': {
      const norm = loadNorm(adapter);
      const down = loadLinear(adapter, '1.weight', '1.bias', products);
      const up = loadLinear(adapter, '4.weight', '4.bias', products);
      return {
        apply: async (input) => {
          const values = silu(await down.apply({ ...input, values: norm(input) }));
          return up.apply({ values, rows: input.rows, columns: down.width });
        },
        close: () => {
          down.close();
          up.close();
        },
      };
    }
  }
}

function silu(values: Float64Array): Float64Array {
  for (const [at, value] of values.entries()) values[at] = value / (1 + Math.exp(-value));
  return values;
}

function loadNorm(adapter: SavedAdapter): (input: Matrix) => Float64Array {
  const shape = [adapter.teacherWidth];
  const scales = Float32Array.from(adapterValues(adapter, '0.weight'));
  const shifts = Float32Array.from(adapterValues(adapter, '0.bias'));
  const [gamma, beta] = [scales, shifts].map((data) => ({ dtype: 'f32', shape, data }) as const);
  return ({ values, rows, columns }) => {
    const x = { dtype: 'f32', shape: [rows, columns], data: Float32Array.from(values) } as const;
    if (gamma === undefined) throw new Error('a norm without scales');
    return Float64Array.from(layerNorm(x, gamma, beta, NORM_EPSILON).data);
  };
}

interface LoadedLinear extends Runnable {
  /** Output width. */
  readonly width: number;
}

/** x · weightᵀ + bias */
function loadLinear(
  adapter: SavedAdapter,
  weightPart: string,
  biasPart: string,
  products: MatrixProducts,
): LoadedLinear {
  const [width = 0, columns = 0] = adapter.parts.get(weightPart)?.shape ?? [];
  const weight = { values: adapterValues(adapter, weightPart), rows: width, columns };
  const bias = adapter.parts.has(biasPart) ? adapterValues(adapter, biasPart) : undefined;
  const release = products.hold(weight);
  return {
    width,
    close: release,
    apply: async (input) => {
      const target = new Float64Array(input.rows * width);
      await products.timesTransposed(input, weight, target);
      if (bias)
        for (const [at, value] of target.entries()) target[at] = value + (bias[at % width] ?? 0);
      return target;
    },
  };
}

/** Values of a part of an adapter. @throws UserError for values that are not finite. */
export function adapterValues({ module, branch, parts }: SavedAdapter, part: string): Float64Array {
  const tensor = parts.get(part);
  if (tensor === undefined) throw new Error(`an adapter without ${part}`);
  const values = new Float64Array(tensor.elements);
  decodeValues(tensor.dtype, readTensor(tensor), values);
  if (countNonFinite(values) > 0) {
    const complain = errorCollector(tensor.storage.file.path);
    complain(
      partName(module, branch, part),
      'has NaN or infinite values: all results would be NaN',
      'train the projector again from a state that is finite',
    );
    throw complain.error();
  }
  return values;
}

const multiplicationsOf = (tensors: readonly ProjectedTensor[]): number =>
  sumOf(tensors, ({ tensor, adapter }) => {
    const { teacherWidth, studentWidth, hidden } = adapter;
    const each =
      hidden === undefined ? teacherWidth * studentWidth : hidden * (teacherWidth + studentWidth);
    return (tensor.elements / teacherWidth) * each;
  });

// Applies a saved projector to the keys and values of a file.

/** Element types for results. */
export const OUTPUT_DTYPES = {
  f32: 'F32',
  f16: 'F16',
  bf16: 'BF16',
  f64: 'F64',
} as const satisfies {
  readonly [Name in Dtype]?: EncodableDtype;
};
export type OutputDtype = keyof typeof OUTPUT_DTYPES;

export interface ProjectRequest extends ProjectorSurroundings {
  readonly save: string;
  /** Undefined keeps the input's type. */
  readonly dtype: OutputDtype | undefined;
  readonly threads: number | undefined;
}

/** A tensor of keys or values, given or made. */
export interface ProjectedSide {
  /** Name of the tensor. */
  readonly name: string;
  /** Element type, as safetensors names it. */
  readonly dtype: StoredDtype;
  /** Sizes of the dimensions. @count */
  readonly shape: readonly number[];
  /** Number of NaN and infinite values. @count */
  readonly nonFinite: number;
}

/**
 * Keys and values of teachers, projected to the student's width.
 * @answer minimind kv-projector project --json
 */
export interface KvProjection {
  readonly schema: 'minimind/kv-projector-project@1';
  /** The projector. */
  readonly projector: ProjectorFacts;
  /** File of the teachers' keys and values. */
  readonly input: string;
  /** File of the results. */
  readonly output: string;
  /** Backend of the matrix products. */
  readonly products: string;
  /** Bytes of the written file. @count */
  readonly bytes: number;
  /** The projected tensors. */
  readonly tensors: readonly {
    /** Teacher, as the names of tensors have it. */
    readonly teacher: string;
    /** Keys or values. */
    readonly branch: Branch;
    /** Tensor of the teacher. */
    readonly input: ProjectedSide;
    /** Tensor of the student. */
    readonly output: ProjectedSide;
  }[];
  /** Adapters without keys or values. */
  readonly unused: readonly string[];
  /** Tensors of the input without an adapter. */
  readonly ignored: readonly string[];
}

/**
 * Writes projected keys and values.
 * @throws UserError with all mismatches, before anything is written.
 */
export async function projectKv(
  file: string,
  kvFile: string,
  request: ProjectRequest,
): Promise<KvProjection> {
  const checkpoint = openCheckpoint(file);
  try {
    const kv = openCheckpoint(kvFile);
    try {
      return await project(checkpoint, kv, request);
    } finally {
      kv.close();
    }
  } finally {
    checkpoint.close();
  }
}

async function project(
  checkpoint: Checkpoint,
  kv: Checkpoint,
  request: ProjectRequest,
): Promise<KvProjection> {
  const projector = savedProjector(checkpoint);
  await request.warn(projectorWarnings(checkpoint.path, projector.warnings));
  if (kv.format !== 'safetensors') {
    throw usageError(
      `expected keys and values in a safetensors file, found ${FORMAT_TITLES[kv.format]} in ${kv.path}`,
      'save them with safetensors.torch.save_file',
    );
  }
  const place = resultsPlace(request.save);
  refuseOverlap(checkpoint, place, { read: [], report: undefined });
  refuseOverlap(kv, place, { read: [], report: undefined });
  await refuseUnwritable(request.save, request.force);
  const { tensors, unused, ignored } = planProjection(projector, kv);
  await request.warn(
    projectorWarnings(
      kv.path,
      unused.map((module) => `has no keys or values of the teacher ${quote(module)}`),
    ),
  );
  const planned = tensors.map((each) => ({
    ...each,
    dtype: writtenDtype(each.tensor.dtype, request),
  }));
  const bytes = sumOf(
    planned,
    ({ shape, dtype }) => storedBytes(elementCount(shape) ?? 0, dtype) ?? 0,
  );
  refuseFullDisk(request.save, [{ bytes }]);
  const backend = await matmulBackendFor(multiplicationsOf(tensors), {
    engine: 'auto',
    ...request,
  });
  const total = sumOf(tensors, ({ tensor }) => tensor.bytes);
  const shown = request.display.bytes('projecting', total);
  const results = planned.map((each) => ({
    ...each,
    nonFinite: { given: 0, made: 0 } satisfies NonFiniteCounts,
  }));
  try {
    await writeWhole(request.save, request.force, (sink) =>
      writeSafetensors(
        sink,
        results.map((each) => ({
          name: each.output,
          dtype: each.dtype,
          shape: each.shape,
          chunks: () =>
            projectedChunks(each, { ...each, products: backend.products, done: shown.add }),
        })),
      ),
    );
  } finally {
    shown.end();
    await backend.close();
  }
  await request.warn(results.flatMap((each) => nonFiniteWarning(kv.path, each)));
  return {
    schema: 'minimind/kv-projector-project@1',
    projector: describedProjector(projector),
    input: kv.path,
    output: request.save,
    products: backend.name,
    bytes,
    tensors: results.map(({ teacher, branch, input, output, tensor, shape, dtype, nonFinite }) => ({
      teacher,
      branch,
      input: { name: input, dtype: tensor.dtype, shape: tensor.shape, nonFinite: nonFinite.given },
      output: { name: output, dtype, shape, nonFinite: nonFinite.made },
    })),
    unused,
    ignored,
  };
}

/** Place of the results: one file, whose name must not imply another container. */
function resultsPlace(name: string): CheckpointTarget {
  const isThere = fs.statSync(name, { throwIfNoEntry: false })?.isDirectory() ?? false;
  if (isThere || /[\\/]$/.test(name)) throw folderError(name);
  const { container } = outputTarget(name, undefined);
  if (container === 'safetensors') return { path: name, container, kind: 'file' };
  throw usageError(
    `expected a .safetensors file for the results, found ${name}, a ${container} file`,
    'write a name that ends in .safetensors',
  );
}

/** Replaces types that cannot be written by F32. */
function writtenDtype(
  stored: StoredDtype,
  { dtype }: Pick<ProjectRequest, 'dtype'>,
): EncodableDtype {
  if (dtype !== undefined) return OUTPUT_DTYPES[dtype];
  return isEncodable(stored) ? stored : 'F32';
}

function nonFiniteWarning(
  file: string,
  { input, output, nonFinite }: { input: string; output: string; nonFinite: NonFiniteCounts },
): Problem[] {
  const { given, made } = nonFinite;
  if (made === 0) return [];
  const why =
    given > 0
      ? `${quote(input)} has ${given} NaN or infinite values, each of which spoils its row`
      : `${quote(input)} gives values beyond the range of the type`;
  return projectorWarnings(file, [`${why}: ${made} values of ${quote(output)} are not finite`]);
}
