/** Reads the config of a training of another program. */
import fs from 'node:fs';
import path from 'node:path';
import type { Problem, PropertyPath } from '../../base/errors.js';
import { UserError, usageError } from '../../base/errors.js';
import { readFileAtMost } from '../../base/files/read-file.js';
import { setting } from '../../base/text/setting.js';
import { asText, isRecord } from '../../base/values.js';
import { type ConfigDocument, parseDocument } from '../../config/document.js';
import { type LocatedFinding, toProblems } from '../../config/document-problems.js';
import { describeValue, escapeText, formatPath, quote } from '../../config/quote.js';
import { decodeText, MAX_DOCUMENT_BYTES, tooLarge } from '../../config/source.js';
import { contradictionsWith, runProblems } from './findings.js';
import { memoryChanges } from './memory-changes.js';
import type { TrainingProgram } from './program.js';
import {
  TRAINING_PROGRAM_NAMES,
  TRAINING_PROGRAMS,
  type TrainingProgramName,
} from './programs/index.js';
import { valueIn, withDefaults } from './settings-in.js';
import { argumentsOfMapping, hasArguments, parseArguments } from './syntax/arguments-document.js';
import type { PlacedKey, TrainingConfig } from './training-config.js';
import { mayBeTrainingConfig } from './training-config-name.js';
import type { ReadValue, RunField, TrainingRun } from './training-run.js';
import { unknownKeyProblems } from './unknown-keys.js';

/**
 * The config of a training in a file that could be one; undefined for any other file, also one that cannot be read.
 * @param file A path that the user gave as a model.
 */
export async function trainingConfigIn(file: string): Promise<TrainingConfig | undefined> {
  if (!(await mayBeTrainingConfig(file))) return undefined;
  let found: Recognised | undefined;
  try {
    found = await recognisedIn(file, true);
  } catch (error) {
    // The reader of models has the message for a file of its own; one in TOML or a script is none.
    if (error instanceof UserError && /\.(?:ya?ml|json)$/i.test(file)) return undefined;
    throw error;
  }
  return found && configOf(found.document, found.name);
}

/**
 * The config of a training.
 * @throws UserError for a file that cannot be read, or is none.
 */
export async function readTrainingConfig(file: string): Promise<TrainingConfig> {
  const found = await recognisedIn(file, false);
  if (found) return configOf(found.document, found.name);
  throw usageError(
    `${escapeText(file)} is not a training config of a known program`,
    `expected one of ${[...new Set(Object.values(TRAINING_PROGRAMS).map(({ title }) => title))].join(', ')}`,
  );
}

/** A file with the program whose config it is. */
interface Recognised {
  readonly document: ConfigDocument;
  readonly name: TrainingProgramName;
}

async function recognisedIn(file: string, isFound: boolean): Promise<Recognised | undefined> {
  const text = await configFileText(file, isFound);
  for (const document of await documentsOf(text, file)) {
    const name = recognised(document);
    if (name !== undefined) return { document, name };
  }
  return undefined;
}

async function configFileText(file: string, isFound: boolean): Promise<string> {
  if (file.endsWith('.py')) {
    throw usageError(
      `${escapeText(file)} is Python, which is not run`,
      'torchtitan 0.2.2 and older read TOML: give such a file, or the flags of this command',
    );
  }
  let bytes: Buffer | undefined;
  try {
    bytes = await readFileAtMost(file, { most: MAX_DOCUMENT_BYTES, isFound });
  } catch (cause) {
    if (cause instanceof UserError || !(cause instanceof Error && 'code' in cause)) throw cause;
    const isMissing = cause.code === 'ENOENT' || cause.code === 'ENOTDIR';
    const what = isMissing
      ? `there is no file ${quote(file, 200)}`
      : cause.code === 'EISDIR'
        ? `this is a folder: ${quote(file, 200)}`
        : `cannot read ${quote(file, 200)}: ${escapeText(cause.message, 200)}`;
    const code = isMissing || cause.code === 'EISDIR' ? 'usage' : 'system';
    throw new UserError(code, what, { cause, suggestion: 'name the config of a training' });
  }
  if (bytes === undefined) throw tooLarge(file);
  return decodeText(bytes, file);
}

/** The file as documents: as what its ending says, or as what its text is. */
async function documentsOf(text: string, file: string): Promise<ConfigDocument[]> {
  if (/\.toml$/i.test(file))
    return [(await import('./syntax/toml-document.js')).parseToml(text, file)];
  const isScript = /\.(?:sh|bash|slurm|sbatch)$/i.test(file) || text.startsWith('#!');
  const isData = /\.(?:ya?ml|json)$/i.test(file);
  if (isScript || (!isData && hasArguments(text))) return [parseArguments(text, file)];
  const document = parseDocument(text, file);
  const asArguments = argumentsOfMapping(document);
  return asArguments ? [document, asArguments] : [document];
}

/** A config of a model of ours has a section with sizes, and of Hugging Face a type. */
function recognised(document: ConfigDocument): TrainingProgramName | undefined {
  const { model, model_type: type, architectures } = document.value;
  if (isRecord(model) && typeof model.family === 'string') return undefined;
  if (Array.isArray(architectures) && type !== undefined) return undefined;
  return TRAINING_PROGRAM_NAMES.find((name) => TRAINING_PROGRAMS[name].recognises(document));
}

/** A value of a document with its path. */
interface Leaf {
  readonly path: PropertyPath;
  readonly value: unknown;
}

/** Values below a section, without those of open sections. */
function sectionLeaves(
  value: Readonly<Record<string, unknown>>,
  isWhole: (key: string) => boolean,
  above: PropertyPath = [],
): Leaf[] {
  return Object.entries(value).flatMap(([name, inner]): Leaf[] => {
    const path = [...above, name];
    if (!isRecord(inner) || isWhole(path.join('.'))) return [{ path, value: inner }];
    return sectionLeaves(inner, isWhole, path);
  });
}

async function configOf(
  document: ConfigDocument,
  name: TrainingProgramName,
): Promise<TrainingConfig> {
  const program: TrainingProgram = TRAINING_PROGRAMS[name];
  const rows = new Map(program.rows.map((row) => [row.key, row]));
  const sizes = new Set(program.sizes);
  const open = new Set(program.open);
  const known = new Set([...program.known, ...program.uncounted]);
  const uncountedKeys = new Set(program.uncounted);
  const run: Record<string, unknown> = {};
  const values: ReadValue[] = [];
  const uncounted: PlacedKey[] = [];
  const ignored: PlacedKey[] = [];
  const problems: Problem[] = [];
  const unknown: PropertyPath[] = [];
  let refused: Problem | undefined;
  const placed = (path: PropertyPath): PlacedKey => {
    const { line } = document.locate(path, 'key');
    return { key: formatPath(path), ...(line !== undefined && { line }) };
  };
  // A row of a section can stand beside rows of keys in it.
  const inRows = (key: string) => [...rows.keys()].some((each) => each.startsWith(`${key}.`));
  const sectionsRead = new Set<string>();
  const leaves = sectionLeaves(
    document.value,
    (key) => (rows.has(key) && !inRows(key)) || (open.has(key) && !inRows(key)),
  );
  const withSections = leaves.flatMap((leaf): Leaf[] => {
    const above = leaf.path.slice(0, -1);
    const key = above.join('.');
    if (!rows.has(key) || sectionsRead.has(key)) return [leaf];
    sectionsRead.add(key);
    return [{ path: above, value: valueIn(document.value, key) }, leaf];
  });
  for (const { path: at, value } of withSections) {
    const key = at.join('.');
    const row = rows.get(key);
    if (row !== undefined) {
      if (value === null || value === undefined) continue;
      const meaning = row.read(value, document.value);
      if (meaning === undefined) {
        const place = { ...document.locate(at), path: formatPath(at) };
        const problem = row.isDecisive
          ? { ...place, ...anotherMethod(value) }
          : { ...place, ...withoutMeaning(value, row.expected) };
        problems.push(problem);
        if (row.isDecisive) refused = problem;
        continue;
      }
      const decides = value === AUTO ? 'from the trainer' : row.left?.[asText(value)];
      if (decides !== undefined && Object.keys(meaning).length === 0) {
        const { key, ...line } = placed(at);
        ignored.push({ ...line, key: `${key} (${describeValue(value)}: ${decides})` });
      }
      for (const [field, each] of Object.entries(meaning)) {
        run[field] = each;
        values.push({ key: at, field: field as RunField });
      }
      continue;
    }
    if (sizes.has(key)) continue;
    const isInOpen = at.some((_, length) => open.has(at.slice(0, length + 1).join('.')));
    if (uncountedKeys.has(key)) {
      if (!isOff(value)) uncounted.push(placed(at));
    } else if (known.has(key) || isInOpen) {
      // A value that only a shell knows is undefined.
      if (value !== null) ignored.push(placed(at));
    } else unknown.push(at);
  }
  problems.push(...unknownKeyProblems(document, unknown, program));
  Object.assign(run, program.complete?.(run as TrainingRun, document.value));
  const linked = await linkedRun(document.file, run as TrainingRun);
  const placeOf = settingPlaces(document, values);
  if (linked) {
    problems.push(...contradictionsWith(linked, run as TrainingRun, placeOf));
    const { model: _, kind: __, ...settings } = linked.given;
    // The file replaces what its name says; the trainer's own settings stay.
    for (const [field, value] of Object.entries(settings)) {
      if (run[field] !== undefined && !FROM_NAME.has(field)) continue;
      run[field] = value;
      const at = values.find((each) => each.field === 'deepspeedFile')?.key;
      if (at !== undefined) values.push({ key: at, field: field as RunField });
    }
  } else if ((run as TrainingRun).deepspeedFile !== undefined) {
    problems.push(unreadFile(run as TrainingRun, placeOf));
  }
  const given = run as TrainingRun;
  const complete = withDefaults(given, program.defaults);
  problems.push(...runProblems(complete, given, name, placeOf));
  problems.push(...memoryChanges(document, program, given, placeOf));
  // What a script leaves open matters only where it is read.
  const isRead = ({ severity, path: at }: LocatedFinding) => {
    const key = at?.join('.');
    return (
      severity === 'error' ||
      key === undefined ||
      rows.has(key) ||
      sizes.has(key) ||
      uncountedKeys.has(key)
    );
  };
  const found = toProblems(document.found.filter(isRead)).problems;
  return {
    file: document.file,
    name,
    program,
    given,
    run: complete,
    values,
    uncounted,
    ignored,
    ...(refused && { refused }),
    problems: [...found, ...problems].toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0)),
    lineOf: (key) => document.locate(key, 'key'),
    placeOf,
  };
}

/** A value that the trainer of a file chooses. */
const AUTO = 'auto';

/** A value that chooses a method beside those that are counted. */
const anotherMethod = (value: unknown) =>
  ({
    severity: 'warning',
    message: `${describeValue(value)} trains neither all weights nor low-rank adapters, and is not counted`,
    suggestion: `ask about one of these: ${setting('for', 'training')} or ${setting('for', 'lora')}`,
  }) as const;

/** A value that is impossible, or that is possible and not counted. */
const withoutMeaning = (value: unknown, expected: string | undefined) =>
  expected === undefined || value === AUTO
    ? ({
        severity: 'warning',
        message: `${describeValue(value)} is not counted`,
        suggestion: 'the figures are those without it',
      } as const)
    : ({
        severity: 'error',
        message: `expected ${expected}, found ${describeValue(value)}`,
        suggestion: 'correct it, or leave the key out',
      } as const);

/** A value that switches something off, or leaves it to the program. */
const isOff = (value: unknown): boolean =>
  value === null ||
  value === undefined ||
  value === false ||
  value === 0 ||
  value === '' ||
  (Array.isArray(value) && value.length === 0);

/** Settings that the name of a file of DeepSpeed only suggests. */
const FROM_NAME: ReadonlySet<string> = new Set(['division', 'offloadOptimizer']);

function settingPlaces(
  document: ConfigDocument,
  values: readonly ReadValue[],
): TrainingConfig['placeOf'] {
  return (field) => {
    // The last key of a setting is the one that holds.
    const key = values.findLast((each) => each.field === field)?.key;
    if (key === undefined) return { file: document.file };
    return { ...document.locate(key), path: formatPath(key) };
  };
}

/** The file of DeepSpeed that a config names, where it is in this folder or beside the config. */
async function linkedRun(file: string, run: TrainingRun): Promise<TrainingConfig | undefined> {
  const name = run.deepspeedFile;
  if (name === undefined || !/\.json$/i.test(name)) return undefined;
  for (const place of [name, path.join(path.dirname(file), name)]) {
    const status = fs.statSync(place, { throwIfNoEntry: false });
    if (!status?.isFile() || status.size > MAX_DOCUMENT_BYTES) continue;
    const document = parseDocument(await configFileText(place, true), place);
    return configOf(document, 'deepspeed');
  }
  return undefined;
}

function unreadFile(
  { deepspeedFile = '', division }: TrainingRun,
  placeOf: TrainingConfig['placeOf'],
): Problem {
  return {
    severity: 'warning',
    ...placeOf('deepspeedFile'),
    message: `${quote(deepspeedFile)} is not in this folder${division === undefined ? '' : `; by its name it is ZeRO-${division}`}`,
    suggestion: 'run the command where the file is, so that it is read too',
  };
}
