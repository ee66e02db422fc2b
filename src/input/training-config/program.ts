/** How the config of a program is read and written: one table of keys for both. */
import type { ConfigDocument } from '../../config/document.js';
import type { RunField, TrainingRun } from './training-run.js';

/** Settings that a value means; undefined for a value that is not understood. */
type Meaning = Partial<TrainingRun> | undefined;

/** Values of a key that are no setting, each with what the program does then: `{ '-1': 'the epochs decide' }`. */
export type LeftValues = Readonly<Record<string, string>>;

/** A key of a config. */
export interface KeyRow {
  /** `train.micro_batch_size`. */
  readonly key: string;
  read(value: unknown, document: Readonly<Record<string, unknown>>): Meaning;
  /** Value that every program expects, where one without a meaning is a mistake: `a number of at least 0`. */
  readonly expected?: string;
  /** Values that leave the setting to the program, and what decides then. */
  readonly left?: LeftValues;
  /** Whether a value without a meaning is another training than any that is counted. */
  readonly isDecisive?: boolean;
  /** Value in a config of a training; undefined where it has none. Without it, the key is only read. */
  write?(run: TrainingRun): unknown;
}

/** A program that trains, and its config. */
export interface TrainingProgram {
  /** As in messages: `axolotl`. */
  readonly title: string;
  /** Version whose sources were looked up. */
  readonly version: string;
  /** Repository, commit and files of the facts. */
  readonly source: string;
  /** Keys with a meaning here. */
  readonly rows: readonly KeyRow[];
  /** Keys of the sizes of the model, which `complete` reads together. */
  readonly sizes?: readonly string[];
  /** Keys that change memory or time, and are not counted. */
  readonly uncounted: readonly string[];
  /** All other keys of the program. */
  readonly known: readonly string[];
  /** Sections with keys of their own, which are not checked. */
  readonly open: readonly string[];
  /** Whether keys that the program does not know are only a warning: it passes them on or ignores them. */
  readonly isLoose?: boolean;
  /** Settings of the program where its config has no value. */
  readonly defaults: Partial<TrainingRun>;
  /** Settings that follow from several keys. */
  complete?(run: TrainingRun, document: Readonly<Record<string, unknown>>): Partial<TrainingRun>;
  /** Whether a document is a config of this program. */
  recognises(document: ConfigDocument): boolean;
}

/** The value as a number: also a text with one, which Python's readers convert. */
export function numberOf(value: unknown): number | undefined {
  if (typeof value === 'number') return Number.isFinite(value) ? value : undefined;
  if (typeof value !== 'string' || value.trim() === '') return undefined;
  const read = Number(value.replaceAll('_', ''));
  return Number.isFinite(read) ? read : undefined;
}

/** The value as a switch: also a text with one. */
export function switchOf(value: unknown): boolean | undefined {
  if (typeof value === 'boolean') return value;
  if (value === 'true' || value === 'True' || value === 1) return true;
  return value === 'false' || value === 'False' || value === 0 ? false : undefined;
}

/** Fields of one type. */
type FieldOf<Type> = {
  [Field in RunField]-?: Type extends NonNullable<TrainingRun[Field]> ? Field : never;
}[RunField];

/**
 * A key with a whole number.
 * @param left Numbers below 1 that the program reads as no number, and what decides then; all others are mistakes.
 */
export const count = (key: string, field: FieldOf<number>, left: LeftValues = {}): KeyRow => ({
  key,
  left,
  read(value) {
    const number = numberOf(value);
    if (number === undefined) return undefined;
    if (Object.hasOwn(left, number)) return {};
    return Number.isSafeInteger(number) && number > 0 ? { [field]: number } : undefined;
  },
  expected: 'an integer of at least 1',
  write: (run) => run[field],
});

/** A degree of parallelism, which is written from 2 on. */
export const degree = (key: string, field: FieldOf<number>, left?: LeftValues): KeyRow => ({
  ...count(key, field, left),
  write: (run) => ((run[field] ?? 1) > 1 ? run[field] : undefined),
});

/** A switch that is written only when it is on. */
export const switchedOn = (key: string, field: FieldOf<boolean>): KeyRow => ({
  ...onOff(key, field),
  write: (run) => (run[field] ? true : undefined),
});

/** Another name of a key, which is only read. */
export const alias = (name: string, { write: _, ...row }: KeyRow): KeyRow => ({
  ...row,
  key: name,
});

/** A key with a number from 0. */
export const amount = (key: string, field: FieldOf<number>): KeyRow => ({
  key,
  read(value) {
    const number = numberOf(value);
    return number !== undefined && number >= 0 ? { [field]: number } : undefined;
  },
  expected: 'a number of at least 0',
  write: (run) => run[field],
});

/** A key that is on or off. */
export const onOff = (key: string, field: FieldOf<boolean>): KeyRow => ({
  key,
  read(value) {
    const isOn = switchOf(value);
    return isOn === undefined ? undefined : { [field]: isOn };
  },
  write: (run) => run[field],
});

/** A key with a text. */
export const textRow = (key: string, field: FieldOf<string>): KeyRow => ({
  key,
  read: (value) =>
    typeof value === 'string' ? (value.trim() === '' ? {} : { [field]: value }) : undefined,
  write: (run) => run[field],
});

/** A key whose value has a meaning of its own. */
export const meaning = (
  key: string,
  read: KeyRow['read'],
  write?: (run: TrainingRun) => unknown,
): KeyRow => ({ key, read, ...(write && { write }) });
