/** Values read from a training config, for an answer. */
import { formatPath } from '../../config/quote.js';
import type { PlacedKey, TrainingConfig } from './training-config.js';
import { FIELD_TITLES, type RunField } from './training-run.js';

/** A key that became settings of the command. */
export interface CountedKey extends PlacedKey {
  /** Name of the setting: `sequence length`. */
  readonly setting: string;
}

/** Values read from a training config. */
export interface TrainingConfigAnswer {
  /** Path as the user wrote it. */
  readonly file: string;
  /** Program of the config: `axolotl`. */
  readonly program: string;
  /** Version of the program whose keys are known. */
  readonly version: string;
  /** The model that the config names or describes; null where the command line names it, or nothing does. */
  readonly model: string | null;
  /** Keys that are counted. */
  readonly counted: readonly CountedKey[];
  /** Keys that are read and change nothing here. */
  readonly notCounted: readonly PlacedKey[];
  /** Keys of the program that have no effect on memory, time or the schedule. */
  readonly ignored: readonly PlacedKey[];
  /** The settings of the config as flags of the command. */
  readonly flags: readonly string[];
}

/** Settings without a flag that hold anyway: they name the model, or a file that is read. */
const USED: ReadonlySet<RunField> = new Set(['model', 'sizes', 'deepspeedFile', 'isFineTuning']);

/** Settings whose usual value needs no flag. */
const USUAL: Partial<Record<RunField, readonly unknown[]>> = {
  division: ['0'],
  tensorParallel: [1],
  pipelineParallel: [1],
  contextParallel: [1],
  expertParallel: [1],
  expertTensorParallel: [1],
  sequenceParallel: [false],
  offloadOptimizer: [false],
  offloadParameters: [false],
  float32Gradients: [false],
  fp16: [false],
  fp8: [false],
  pureBf16: [false],
  packing: [false],
};

/**
 * @param words Settings of the flags that count the config.
 * @param flags The same flags as words.
 * @param model The model that the config gave; null for another one.
 */
export function trainingAnswer(
  config: TrainingConfig,
  words: readonly { readonly of: readonly RunField[] }[],
  flags: readonly string[],
  model: string | null,
): TrainingConfigAnswer {
  const { file, program, given, values, uncounted, ignored } = config;
  const counted = new Set(words.flatMap(({ of }) => of));
  const entries = values.map(({ key, field }) => {
    const { line } = config.lineOf(key);
    return { field, key: formatPath(key), ...(line !== undefined && { line }) };
  });
  const isCounted = (field: RunField) =>
    counted.has(field) ||
    (model !== null && USED.has(field)) ||
    (USUAL[field]?.includes(given[field]) ?? false) ||
    (field === 'targets' && given.targets?.[0] === 'all');
  const keysOf = new Map<string, CountedKey>();
  const others = new Map<string, PlacedKey>();
  for (const { field, ...placed } of entries) {
    if (isCounted(field)) {
      keysOf.set(placed.key, { ...placed, setting: FIELD_TITLES[field] });
    }
  }
  for (const { field, ...placed } of entries) {
    if (isCounted(field)) continue;
    // A key can mean several settings, of which some are counted.
    const key = keysOf.has(placed.key) ? `${placed.key} (${FIELD_TITLES[field]})` : placed.key;
    others.set(key, { ...placed, key });
  }
  return {
    file,
    program: program.title,
    version: program.version,
    model,
    counted: [...keysOf.values()],
    notCounted: [...others.values(), ...uncounted],
    ignored,
    flags,
  };
}
