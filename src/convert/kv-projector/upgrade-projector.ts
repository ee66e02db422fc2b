/**
 * Converts a saved linear projector (v1) to the elastic layout (v2).
 *
 * SiLU can pass a linear map exactly, because silu(z) − silu(−z) = z. The first layer holds A and −A, the second B and
 * −B, where B·A is the matrix of v1. Further hidden values start as in a new projector, without an effect. The norm of
 * v2 removes the mean and deviation of each key, which v1 keeps. The norm's scale and shift restore their averages over
 * given keys. The remaining difference is the error.
 */
import { setImmediate as breathe } from 'node:timers/promises';
import { usageError } from '../../base/errors.js';
import { refuseFullDisk, refuseUnwritable, writeWhole } from '../../base/files/write-whole.js';
import { manualSeed } from '../../base/random/index.js';
import { decodeValues, numbersIn } from '../../base/tensor/decode-values.js';
import { commandText, setting } from '../../base/text/setting.js';
import { formatInteger } from '../../base/text/units.js';
import { sumOf } from '../../base/values.js';
import { openCheckpoint } from '../../checkpoint/open.js';
import type { StoredTensor } from '../../checkpoint/stored-tensor.js';
import type { PickleValue } from '../../checkpoint/torch/pickle/values.js';
import { readInChunks } from '../../checkpoint/view.js';
import { refuseOverlap } from '../conversion/job.js';
import { adapterValues } from './project-kv.js';
import { planProjection } from './projection-plan.js';
import type { Branch } from './projector.js';
import { hiddenOf, NORM_EPSILON, partName } from './projector.js';
import type { SavedAdapter, SavedProjector } from './saved.js';
import { describedProjector, projectorWarnings, savedProjector } from './saved.js';
import type { ConvertProjectorRequest, ProjectorConversion } from './write-projector.js';
import {
  newTensors,
  planProjectorContent,
  projectorTarget,
  refuseLargerThanMemory,
  valueChunks,
} from './write-projector.js';

export interface UpgradeRequest extends ConvertProjectorRequest {
  readonly ratio: number;
  /** Stored with the arguments. */
  readonly dropout: number;
  /** Seed of the hidden values that v1 does not need. */
  readonly seed: number;
  /** Keys and values of the teachers, to set the norm and measure the error. */
  readonly kv: string | undefined;
}

/** An adapter in the new layout, compared with the old one. */
export interface UpgradedAdapter {
  /** Teacher, as the names of tensors have it. */
  readonly teacher: string;
  /** Keys or values. */
  readonly branch: Branch;
  /** Scale and shift of the norm. */
  readonly scale: number;
  /** Shift of the norm. */
  readonly shift: number;
  /** Where the rows of the comparison are from. */
  readonly rows: 'file' | 'random';
  /** ‖v1 − v2‖ / ‖v1‖ over the rows, without bias. */
  readonly error: number;
  /** The same for rows of mean 0 and deviation 1. */
  readonly normedError: number;
}

/** Number of compared rows, from the file or drawn. */
const COMPARED_ROWS = 32;

/**
 * Writes a linear projector in the elastic layout.
 * @throws UserError before writing anything, if it is not linear or not finite, or the hidden width is too small.
 */
export async function upgradeProjector(
  file: string,
  out: string,
  request: UpgradeRequest,
): Promise<ProjectorUpgrade> {
  const { ratio, dropout, seed, kv, force } = request;
  const place = projectorTarget(out, request.container);
  const checkpoint = openCheckpoint(file);
  try {
    const projector = savedProjector(checkpoint);
    await request.warn(projectorWarnings(file, projector.warnings));
    refuseElastic(projector);
    refuseNarrow(projector, ratio);
    refuseOverlap(checkpoint, place, {
      read: kv === undefined ? [] : [kv],
      report: request.report,
    });
    await refuseUnwritable(out, force);
    const keys = kv === undefined ? new Map<string, Keys>() : await keysByBranch(projector, kv);
    const tensors = emptyTensors(projector, ratio, seed);
    const upgraded: UpgradedAdapter[] = [];
    const steps = request.display.steps();
    try {
      for (const adapter of projector.adapters) {
        steps.doing(`comparing ${adapter.module}.${adapter.branch} with the new layout`);
        // Lets the text appear and signals run.
        await breathe();
        upgraded.push(fill(adapter, tensors, keys.get(branchKey(adapter)), seed));
      }
    } finally {
      steps.end();
    }
    const values = withElasticArguments(projector.arguments.values, ratio, dropout);
    const bytes = sumOf([...tensors.values()], ({ data }) => data.byteLength);
    const shown = request.display.bytes('writing', bytes);
    try {
      const written = [...tensors].map(([name, { shape, data }]) => ({
        ...{ name, shape, dtype: 'F32' as const, bytes: data.byteLength },
        chunks: () => valueChunks(data, shown.add),
      }));
      const planned = planProjectorContent(
        { path: file, values, tensors: written },
        place.container,
      );
      refuseFullDisk(out, [planned]);
      await writeWhole(out, force, planned.write);
      return {
        schema: 'minimind/kv-projector-convert@1',
        projector: {
          ...describedProjector(projector),
          kind: 'elastic',
          tensors: tensors.size,
          parameters: sumOf([...tensors.values()], ({ data }) => data.length),
        },
        format: checkpoint.format,
        output: out,
        container: place.container,
        bytes: planned.bytes,
        arguments: [...values.keys()],
        upgrade: { ratio, dropout, seed, kv: kv ?? null, adapters: upgraded },
      };
    } finally {
      shown.end();
    }
  } finally {
    checkpoint.close();
  }
}

/** A linear projector in the elastic layout, with its error. */
export interface ProjectorUpgrade extends ProjectorConversion {
  /** The new layout compared with the old one. */
  readonly upgrade: {
    /** Hidden width ÷ teacher width. */
    readonly ratio: number;
    /** Stored probability of dropout. */
    readonly dropout: number;
    /** Seed of the hidden values that v1 does not need. @count */
    readonly seed: number;
    /** File of keys and values that the adapters are compared on; null where these are drawn. */
    readonly kv: string | null;
    /** The adapters, each compared with the old one. */
    readonly adapters: readonly UpgradedAdapter[];
  };
}

/**
 * A projector in another file, or in another layout.
 * @answer minimind kv-projector convert --json
 */
export type ProjectorConversionAnswer = ProjectorConversion | ProjectorUpgrade;

const branchKey = ({ module, branch }: Pick<SavedAdapter, 'module' | 'branch'>) =>
  `${module}.${branch}`;

function refuseElastic({ path, kind }: SavedProjector): void {
  if (kind === 'linear') return;
  throw usageError(
    `${setting('kind', 'elastic')}: expected a linear projector, and ${path} is elastic`,
    `leave out ${setting('kind', 'elastic')}`,
  );
}

/** Two hidden values carry one value of the smaller side. */
const hiddenNeeded = ({ teacherWidth, studentWidth }: SavedAdapter) =>
  2 * Math.min(teacherWidth, studentWidth);

/** @throws UserError for a ratio that leaves fewer hidden values than the map needs. */
function refuseNarrow({ adapters }: SavedProjector, ratio: number): void {
  const narrow = adapters.find((each) => hiddenOf(each.teacherWidth, ratio) < hiddenNeeded(each));
  if (narrow === undefined) return;
  const least = Math.max(...adapters.map((each) => hiddenNeeded(each) / each.teacherWidth));
  const suggested = Math.ceil(least * 1000) / 1000;
  throw usageError(
    `${setting('ratio', ratio)}: a linear map of ${formatInteger(narrow.teacherWidth)} → ${formatInteger(narrow.studentWidth)} takes ` +
      `${formatInteger(hiddenNeeded(narrow))} hidden values, and the ratio leaves ${formatInteger(hiddenOf(narrow.teacherWidth, ratio))}`,
    `write ${setting('ratio', suggested)}, or train a new projector: ${commandText('kvProjectorInit')}`,
  );
}

/** The arguments of v1, and after the student's width those that only v2 has. */
function withElasticArguments(
  values: ReadonlyMap<string, PickleValue>,
  ratio: number,
  dropout: number,
): ReadonlyMap<string, PickleValue> {
  if (values.size === 0) return values;
  const own: (readonly [string, PickleValue])[] = [
    ['mlp_ratio', { kind: 'float', value: ratio }],
    ['dropout', { kind: 'float', value: dropout }],
  ];
  const names = new Set(own.map(([name]) => name));
  const kept = [...values].filter(([name]) => !names.has(name));
  const at = 1 + kept.findIndex(([name]) => name === 'student_d_model');
  return new Map([...kept.slice(0, at), ...own, ...kept.slice(at)]);
}

type Tensors = ReadonlyMap<string, ReturnType<typeof newTensors>[number]>;

/** Tensors of a new elastic projector of the same teachers. */
function emptyTensors(projector: SavedProjector, ratio: number, seed: number): Tensors {
  const teachers = projector.adapters
    .filter(({ branch }) => branch === 'K')
    .map(({ module, teacherWidth }) => ({ name: module, width: teacherWidth }));
  const request = {
    ...({ teachers, ratio, seed, kind: 'elastic', init: 'xavier', dropout: 0 } as const),
    studentWidth: projector.studentWidth,
  };
  refuseLargerThanMemory(request);
  const made = newTensors(request);
  return new Map(made.map((tensor) => [tensor.name, tensor]));
}

/** Writes an adapter into the tensors, and compares it with the original. */
function fill(
  adapter: SavedAdapter,
  tensors: Tensors,
  keys: Keys | undefined,
  seed: number,
): UpgradedAdapter {
  const { module, branch, teacherWidth, studentWidth, parts } = adapter;
  const of = (part: string) => {
    const data = tensors.get(partName(module, branch, part))?.data;
    if (data === undefined) throw new Error(`an elastic adapter without ${part}`);
    return data;
  };
  const weight = Float32Array.from(adapterValues(adapter, 'weight'));
  const { scale, shift } = keys ?? { scale: 1, shift: 0 };
  of('0.weight').fill(scale);
  of('0.bias').fill(shift);
  if (parts.has('bias')) of('4.bias').set(adapterValues(adapter, 'bias'));
  const pairs = Math.min(teacherWidth, studentWidth);
  const isInFirst = studentWidth <= teacherWidth;
  const [first, second] = [of('1.weight'), of('4.weight')];
  const hidden = second.length / studentWidth;
  second.fill(0);
  for (let pair = 0; pair < pairs; pair++) {
    for (let column = 0; column < teacherWidth; column++) {
      const value = isInFirst
        ? (weight[pair * teacherWidth + column] ?? 0)
        : Number(column === pair);
      first[pair * teacherWidth + column] = value;
      first[(pairs + pair) * teacherWidth + column] = -value;
    }
    for (let row = 0; row < studentWidth; row++) {
      const value = isInFirst ? Number(row === pair) : (weight[row * teacherWidth + pair] ?? 0);
      second[row * hidden + pair] = value;
      second[row * hidden + pairs + pair] = -value;
    }
  }
  const drawn = manualSeed(seed).normal(new Float32Array(COMPARED_ROWS * teacherWidth), 0, 1);
  const layout = { first, second, hidden, pairs, scale, shift, weight, adapter };
  return {
    ...{ teacher: module, branch, scale, shift },
    rows: keys ? 'file' : 'random',
    error: distance(layout, keys?.rows ?? drawn),
    normedError: distance({ ...layout, scale: 1, shift: 0 }, normed(drawn, teacherWidth)),
  };
}

interface Layout {
  readonly first: Float32Array;
  readonly second: Float32Array;
  readonly hidden: number;
  readonly pairs: number;
  readonly scale: number;
  readonly shift: number;
  readonly weight: Float32Array;
  readonly adapter: SavedAdapter;
}

/** ‖W·x − v2(x)‖ / ‖W·x‖ over rows, without biases. Hidden values without effect are left out. */
function distance(layout: Layout, rows: Float32Array): number {
  const { first, second, hidden, pairs, scale, shift, weight, adapter } = layout;
  const { teacherWidth, studentWidth } = adapter;
  const x = normed(rows, teacherWidth).map((value) => value * scale + shift);
  let [difference, size] = [0, 0];
  const product = (matrix: Float32Array, row: number, input: Float32Array, from: number) => {
    let sum = 0;
    for (let i = 0; i < teacherWidth; i++) {
      sum += (matrix[row * teacherWidth + i] ?? 0) * (input[from + i] ?? 0);
    }
    return sum;
  };
  const inner = new Float32Array(2 * pairs);
  for (let from = 0; from < rows.length; from += teacherWidth) {
    for (let unit = 0; unit < inner.length; unit++) {
      const value = product(first, unit, x, from);
      inner[unit] = value / (1 + Math.exp(-value));
    }
    for (let row = 0; row < studentWidth; row++) {
      let own = 0;
      for (let unit = 0; unit < inner.length; unit++) {
        own += (second[row * hidden + unit] ?? 0) * (inner[unit] ?? 0);
      }
      const before = product(weight, row, rows, from);
      difference += (own - before) ** 2;
      size += before ** 2;
    }
  }
  return size === 0 ? 0 : Math.sqrt(difference / size);
}

/** Rows with mean 0 and deviation 1, as the norm makes them. */
function normed(rows: Float32Array, width: number): Float32Array {
  const result = new Float32Array(rows.length);
  for (let from = 0; from < rows.length; from += width) {
    const row = rows.subarray(from, from + width);
    const { mean, deviation } = momentsOf(row);
    for (const [at, value] of row.entries()) result[from + at] = (value - mean) / deviation;
  }
  return result;
}

function momentsOf(row: Float32Array) {
  const mean = row.reduce((sum, value) => sum + value, 0) / row.length;
  const variance = row.reduce((sum, value) => sum + (value - mean) ** 2, 0) / row.length;
  return { mean, deviation: Math.sqrt(variance + NORM_EPSILON) };
}

/** Keys or values of a file. */
interface Keys {
  /** Average deviation of a row. */
  readonly scale: number;
  /** Average of all values. */
  readonly shift: number;
  /** Rows of the comparison, spread evenly over the file. */
  readonly rows: Float32Array;
}

async function keysByBranch(
  projector: SavedProjector,
  file: string,
): Promise<ReadonlyMap<string, Keys>> {
  const checkpoint = openCheckpoint(file);
  try {
    const { tensors } = planProjection(projector, checkpoint);
    const found = new Map<string, Keys>();
    for (const { input, tensor, adapter } of tensors) {
      const keys = await momentsIn(tensor, adapter.teacherWidth);
      if (!Number.isFinite(keys.scale + keys.shift)) {
        throw usageError(
          `${setting('kv')}: ${input} of ${file} has values that are not finite`,
          'give keys and values without NaN and infinities',
        );
      }
      if (keys.rows.length > 0) found.set(branchKey(adapter), keys);
    }
    return found;
  } finally {
    checkpoint.close();
  }
}

async function momentsIn(tensor: StoredTensor, width: number): Promise<Keys> {
  const count = tensor.elements / width;
  const kept = Math.min(count, COMPARED_ROWS);
  const rows = new Float32Array(kept * width);
  const row = new Float32Array(width);
  let [scale, shift, at, done, taken] = [0, 0, 0, 0, 0];
  for await (const bytes of readInChunks(tensor)) {
    const numbers = new Float64Array(numbersIn(tensor.dtype, bytes.length));
    decodeValues(tensor.dtype, bytes, numbers);
    for (const value of numbers) {
      row[at++] = value;
      if (at < width) continue;
      at = 0;
      const { mean, deviation } = momentsOf(row);
      scale += deviation / count;
      shift += mean / count;
      if (done === Math.floor((taken * count) / kept)) rows.set(row, taken++ * width);
      done++;
    }
  }
  return { scale, shift, rows };
}
