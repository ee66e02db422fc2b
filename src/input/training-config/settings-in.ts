/** Settings in a value with the keys of a program, and a value with the settings of a training: the same rows both ways. */
import { isRecord } from '../../base/values.js';
import type { TrainingProgram } from './program.js';
import type { RunField, TrainingRun } from './training-run.js';

/** Settings of which a given one leaves the others without their default. */
const ALTERNATIVES: readonly (readonly RunField[])[] = [
  ['steps', 'epochs', 'tokens', 'samples'],
  ['warmupSteps', 'warmupRatio'],
  ['minLearningRate', 'minLearningRateRatio'],
  ['decaySteps', 'decayRatio'],
  ['accumulation', 'globalBatch'],
  ['model', 'sizes'],
];

/** The settings with what the program has where none is given. */
export function withDefaults(given: TrainingRun, defaults: Partial<TrainingRun>): TrainingRun {
  const run: Record<string, unknown> = { ...given };
  for (const [field, value] of Object.entries(defaults)) {
    const row = ALTERNATIVES.find((each) => each.includes(field as RunField)) ?? [
      field as RunField,
    ];
    if (row.every((each) => given[each] === undefined)) run[field] = value;
  }
  return run as TrainingRun;
}

/** The value at a path of keys with dots between them. */
export function valueIn(value: unknown, key: string): unknown {
  let at = value;
  for (const name of key.split('.')) {
    at = isRecord(at) && Object.hasOwn(at, name) ? at[name] : undefined;
  }
  return at;
}

/** Settings of a value, without defaults. */
export function settingsIn(
  value: Readonly<Record<string, unknown>>,
  { rows, complete }: Pick<TrainingProgram, 'rows' | 'complete'>,
): TrainingRun {
  const run: Record<string, unknown> = {};
  for (const { key, read } of rows) {
    const at = valueIn(value, key);
    if (at !== undefined && at !== null) Object.assign(run, read(at, value));
  }
  return { ...run, ...complete?.(run, value) };
}

/** A value with the settings of a training, in the keys of a program and in their order. */
export function valueWith(run: TrainingRun, { rows }: TrainingProgram): Record<string, unknown> {
  const value: Record<string, unknown> = {};
  for (const { key, write } of rows) {
    const written = write?.(run);
    if (written === undefined) continue;
    const names = key.split('.');
    let at = value;
    for (const name of names.slice(0, -1)) {
      at[name] ??= {};
      at = at[name] as Record<string, unknown>;
    }
    at[names.at(-1) ?? ''] = written;
  }
  return value;
}
