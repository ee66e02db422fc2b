/** Published comparison of two adapters, at a size that takes about a minute. */
import os from 'node:os';
import { type Problem, usageError } from '../../base/errors.js';
import type { ProgressDisplay } from '../../base/progress-display.js';
import { manualSeed } from '../../base/random/index.js';
import { decodeValues, numbersIn } from '../../base/tensor/decode-values.js';
import { STORED_DTYPES } from '../../base/tensor/dtype.js';
import { setting } from '../../base/text/setting.js';
import { formatDuration, formatInteger } from '../../base/text/units.js';
import { quoted } from '../../checkpoint/checkpoint-rules.js';
import { openCheckpoint } from '../../checkpoint/open.js';
import { readInChunks } from '../../checkpoint/view.js';
import type { Values } from '../../engine/engine.js';
import type { Trainer } from '../../engine/trainer.js';
import type { AblationRequest, Ablations } from './ablations.js';
import { ablate, variantsOf } from './ablations.js';
import { loadTeachers, refuseNoWidth } from './costs.js';
import type { ByAdapter } from './projector.js';
import type { DataKind, SizeRequest, Step, Verification, VerifySize } from './verify-adapters.js';
import {
  largestSizeWithin,
  refuseTooLarge,
  timeEstimator,
  verify,
  verifySize,
} from './verify-adapters.js';

/** Maximum seconds of a comparison. A longer estimate reduces the size, unless the user asks for the full size. */
const MOST_SECONDS = 60;

export interface VerifyProjectorsRequest {
  readonly data: DataKind;
  readonly size: SizeRequest;
  readonly steps: number;
  /** Whether to keep the size, however long it takes. */
  readonly full: boolean;
  readonly seed: number;
  readonly learningRates?: Partial<ByAdapter<number>> | undefined;
  /** Loss to count the steps to. */
  readonly targetLoss?: number | undefined;
  readonly threads: number | undefined;
}

/** Display of the training progress. */
export interface LossDisplay {
  /** @param steps Losses so far. @param status Progress in one line. */
  readonly show: (steps: readonly Step[], status: string) => Promise<void>;
  /** Prints a permanent line. */
  readonly say: (text: string) => void;
  /** Removes the display. Safe to call again. */
  readonly end: () => void;
}

/**
 * Losses of a linear and an elastic adapter, trained on the same data.
 * @answer minimind kv-projector verify --json
 */
export interface VerifyProjectorsResult extends Verification {
  readonly schema: 'minimind/kv-projector-verify@1';
  /** Seed of all random values. @count */
  readonly seed: number;
  /** The size that would have taken too long; null for the published or the requested size. */
  readonly reduced: {
    /** Published width of X. @integer @minimum 1 */
    readonly fromTeacherWidth: number;
    /** Published width of Y. @integer @minimum 1 */
    readonly fromStudentWidth: number;
    /** Estimated time at the published widths. */
    readonly estimatedSeconds: number;
  } | null;
}

/**
 * Trains both adapters and shows their losses.
 * @throws UserError when there is not enough memory, or no engine for training.
 */
export async function verifyProjectors(
  request: VerifyProjectorsRequest,
  shown: LossDisplay,
): Promise<VerifyProjectorsResult> {
  const { chooseTrainer } = await import('../../engine/select/matmul-backends.js');
  try {
    await shown.show([], 'starting TensorFlow.js');
    const { trainer } = await chooseTrainer(request.threads ?? os.availableParallelism());
    await shown.show([], 'estimating how long it takes');
    const { size, reduced } = await chosenSize(request, trainer, shown);
    await shown.show([], 'making data and adapters');
    const start = performance.now();
    const verification = await verify(trainer, {
      ...{ data: request.data, size, steps: request.steps, random: manualSeed(request.seed) },
      ...{ learningRates: request.learningRates, targetLoss: request.targetLoss },
      watch: (done) => {
        const seconds = (performance.now() - start) / 1000;
        const status = `${stepStatus(done, request.steps, seconds)}${reductionText(reduced)}`;
        return shown.show(done, status);
      },
    });
    return {
      schema: 'minimind/kv-projector-verify@1',
      ...verification,
      seed: request.seed,
      reduced,
    };
  } finally {
    shown.end();
  }
}

export interface AblationsRequest extends Omit<AblationRequest, 'size' | 'keys' | 'seeds'> {
  readonly size: SizeRequest;
  /** Teacher as the user wrote it. */
  readonly teacher: string | undefined;
  readonly seed: number;
  /** Number of seeds, from `seed` on. */
  readonly count: number;
  readonly threads: number | undefined;
}

/** Display of the trainings. */
interface AblationDisplay extends ProgressDisplay {
  readonly warn: (warnings: readonly Problem[]) => Promise<void>;
}

/** Widths and tokens with which six trainings take some seconds, and wide enough for the effect of the norm. */
const ABLATED = { teacherWidth: 640, studentWidth: 192, batch: 1, context: 64 } as const;

/**
 * Trains the variants of the elastic adapter with several seeds.
 * @throws UserError when there is not enough memory, no engine for training, or a teacher that cannot be read.
 */
export async function verifyAblations(
  request: AblationsRequest,
  display: AblationDisplay,
): Promise<AblationsResult> {
  const { size: wish, teacher: text, seed, count, threads, ...rest } = request;
  const { batch = ABLATED.batch, context = ABLATED.context } = wish;
  const teacher = text === undefined ? undefined : await ablatedTeacher(text, batch * context);
  await display.warn(teacher?.warnings ?? []);
  if (teacher?.keys && rest.data === 'shifted') {
    throw usageError(
      `${setting('data', 'shifted')} does not apply to keys from a file`,
      `leave it out, or write ${setting('data', 'linear')}`,
    );
  }
  const size = verifySize({
    ...{ batch, context },
    teacherWidth: wish.teacherWidth ?? teacher?.width ?? ABLATED.teacherWidth,
    studentWidth: wish.studentWidth ?? ABLATED.studentWidth,
  });
  for (const { ratio } of variantsOf(rest.changes))
    refuseNoWidth([{ width: size.teacherWidth }], ratio);
  const { chooseTrainer } = await import('../../engine/select/matmul-backends.js');
  const shown = display.steps();
  try {
    shown.doing('starting TensorFlow.js');
    const { trainer } = await chooseTrainer(threads ?? os.availableParallelism());
    refuseTooLarge(trainer, size);
    const trainings = count * variantsOf(rest.changes).length;
    const start = performance.now();
    let begun = 0;
    const watch = (text: string) => {
      // The first training shows how long the others take.
      const seconds = ((trainings - 1) * (performance.now() - start)) / 1000;
      if (begun === 1 && seconds > MOST_SECONDS) {
        shown.say(`this takes about ${formatDuration(seconds)}`);
      }
      begun++;
      shown.doing(text);
    };
    const ablations = await ablate(trainer, {
      ...{ ...rest, size, keys: teacher?.keys, watch },
      seeds: Array.from({ length: count }, (_, at) => seed + at),
    });
    return {
      schema: 'minimind/kv-projector-ablations@1',
      ...ablations,
      teacher: teacher ? { text: teacher.text, tensor: teacher.tensor ?? null } : null,
    };
  } finally {
    shown.end();
  }
}

/**
 * Trainings of an elastic adapter, and of variants that differ in one part.
 * @answer minimind kv-projector verify --json, with ablations
 */
export interface AblationsResult extends Ablations {
  readonly schema: 'minimind/kv-projector-ablations@1';
  /** Teacher of the keys; null without `--teacher`. */
  readonly teacher: {
    /** As the user wrote it. */
    readonly text: string;
    /** Tensor with the keys; null where they are drawn. */
    readonly tensor: string | null;
  } | null;
}

function stepStatus(done: readonly Step[], steps: number, seconds: number): string {
  const rest = (seconds / done.length) * (steps - done.length);
  const { linear = Number.NaN, elastic = Number.NaN } = done.at(-1) ?? {};
  return (
    `step ${done.length} of ${steps}, ${formatDuration(rest)} left: ` +
    `linear ${linear.toPrecision(3)}, elastic ${elastic.toPrecision(3)}`
  );
}

const reductionText = (reduced: VerifyProjectorsResult['reduced']): string =>
  reduced
    ? ` (reduced: ${setting('full')} takes about ${formatDuration(reduced.estimatedSeconds)})`
    : '';

interface ChosenSize {
  readonly size: VerifySize;
  readonly reduced: VerifyProjectorsResult['reduced'];
}

/**
 * The published widths if they take at most a minute, else narrower ones. Requested widths are kept, with a note
 * on their time.
 */
async function chosenSize(
  request: VerifyProjectorsRequest,
  trainer: Trainer,
  shown: LossDisplay,
): Promise<ChosenSize> {
  const size = verifySize(request.size);
  const { teacherWidth, studentWidth } = request.size;
  const isChosen = request.full || teacherWidth !== undefined || studentWidth !== undefined;
  if (isChosen) refuseTooLarge(trainer, size);
  const secondsFor = await timeEstimator(trainer, size, manualSeed(request.seed));
  const seconds = secondsFor(size, request.steps);
  if (seconds <= MOST_SECONDS) return { size, reduced: null };
  const narrower = largestSizeWithin(size, MOST_SECONDS, (each) => secondsFor(each, request.steps));
  const taken = isChosen ? seconds : secondsFor(narrower, request.steps);
  if (taken > MOST_SECONDS) shown.say(`this takes about ${formatDuration(taken)}`);
  if (isChosen) return { size, reduced: null };
  const { teacherWidth: fromTeacherWidth, studentWidth: fromStudentWidth } = size;
  return {
    size: narrower,
    reduced: { fromTeacherWidth, fromStudentWidth, estimatedSeconds: seconds },
  };
}

/** Teacher of an ablation. */
interface AblatedTeacher {
  /** Width of a named teacher or a config, or a file with its keys. */
  readonly text: string;
  readonly width: number;
  /** Rows of keys [rows, width]; undefined without a file of keys. */
  readonly keys?: Values;
  /** Tensor with the keys. */
  readonly tensor?: string;
  readonly warnings: readonly Problem[];
}

const KEYS = /^(?!output\.).+\.K$/s;

/**
 * Teacher of `--teacher`: NAME:WIDTH, a config, or a .safetensors or .pt file of keys and values as `project` reads it.
 * @param rows Rows of keys to read.
 * @throws UserError for a file without keys, or with fewer rows.
 */
async function ablatedTeacher(text: string, rows: number): Promise<AblatedTeacher> {
  if (/\.(?:safetensors|pt)$/i.test(text)) return { ...(await keysIn(text, rows)), warnings: [] };
  const { teachers, warnings } = await loadTeachers([text]);
  const [{ name = text, width = 0 } = {}] = teachers;
  return { text: name, width, warnings };
}

async function keysIn(file: string, rows: number) {
  const checkpoint = openCheckpoint(file);
  try {
    const [name, tensor] = [...checkpoint.tensors].find(([each]) => KEYS.test(each)) ?? [];
    const width = tensor?.shape.at(-1) ?? 0;
    if (name === undefined || tensor === undefined || width === 0) {
      throw usageError(
        `${setting('teacher')}: found no keys in ${file}`,
        'name the tensor of keys TEACHER.K, with the teacher’s width last',
      );
    }
    if (STORED_DTYPES[tensor.dtype].kind !== 'float') {
      throw usageError(`${setting('teacher')}: expected floats in ${quoted(name)}`);
    }
    const found = tensor.elements / width;
    if (found < rows) {
      throw usageError(
        `${setting('teacher')}: expected ${formatInteger(rows)} rows of keys, found ${formatInteger(found)} in ${quoted(name)}`,
        `write ${setting('batch', '1')} ${setting('context', found)}`,
      );
    }
    const data = new Float32Array(rows * width);
    let at = 0;
    for await (const bytes of readInChunks(tensor)) {
      const numbers = new Float64Array(numbersIn(tensor.dtype, bytes.length));
      decodeValues(tensor.dtype, bytes, numbers);
      data.set(numbers.subarray(0, data.length - at), at);
      at += Math.min(numbers.length, data.length - at);
      if (at === data.length) break;
    }
    if (!data.every(Number.isFinite)) {
      throw usageError(`${setting('teacher')}: ${quoted(name)} has values that are not finite`);
    }
    return { text: file, width, keys: { shape: [rows, width], data }, tensor: name };
  } finally {
    checkpoint.close();
  }
}
