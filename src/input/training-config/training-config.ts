/** The config of a training that was read. */
import type { Problem, PropertyPath } from '../../base/errors.js';
import type { TrainingProgram } from './program.js';
import type { TrainingProgramName } from './programs/index.js';
import type { ReadValue, RunField, TrainingRun } from './training-run.js';

/** A key of a config with its place. */
export interface PlacedKey {
  /** Key with its sections: `train.max_time`. */
  readonly key: string;
  /** Line in the file, 1-based. @integer @minimum 1 */
  readonly line?: number;
}

/** A config that was read. */
export interface TrainingConfig {
  readonly file: string;
  readonly name: TrainingProgramName;
  readonly program: TrainingProgram;
  /** Settings of the file, and of the file of DeepSpeed that it names. */
  readonly given: TrainingRun;
  /** The same with the defaults of the program. */
  readonly run: TrainingRun;
  /** Keys that became settings. */
  readonly values: readonly ReadValue[];
  /** Keys that change memory or time, and are not counted. */
  readonly uncounted: readonly PlacedKey[];
  /** Keys of the program without a meaning here. */
  readonly ignored: readonly PlacedKey[];
  /** Mistakes, in the order of the file. */
  readonly problems: readonly Problem[];
  /** Why no figure is that of this training; undefined for one that is counted. */
  readonly refused?: Problem;
  /** Place of a key. */
  lineOf(key: PropertyPath): Pick<Problem, 'line'>;
  /** Place of the key of a setting, or of the file. */
  placeOf(field: RunField): Pick<Problem, 'file' | 'line' | 'column' | 'excerpt' | 'path'>;
}
