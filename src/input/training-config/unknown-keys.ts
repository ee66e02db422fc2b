/** Keys of a config that its program does not have. */
import type { Problem, PropertyPath } from '../../base/errors.js';
import { formatInteger } from '../../base/text/units.js';
import { counted } from '../../base/text/words.js';
import type { ConfigDocument } from '../../config/document.js';
import { MAX_PROBLEMS } from '../../config/document-problems.js';
import { misspelled, nearest } from '../../config/nearest.js';
import { formatPath, quote } from '../../config/quote.js';
import type { TrainingProgram } from './program.js';

/** Wrong letters up to which a key is a misspelled one; more can be a key of a newer version. */
const MOST_LETTERS = 2;

/** Unknown keys that are looked at. No config of a training has as many. */
const MOST_KEYS = 1000;

/**
 * The problems of keys that a program does not know. Errors come before warnings, and those beyond what a screen shows are
 * counted.
 */
export function unknownKeyProblems(
  document: ConfigDocument,
  keys: readonly PropertyPath[],
  program: TrainingProgram,
): Problem[] {
  const problems = keys.slice(0, MOST_KEYS).map((at) => unknownKeyProblem(document, at, program));
  const errors = problems.filter(({ severity }) => severity === 'error');
  const warnings = problems.filter(({ severity }) => severity === 'warning');
  const most = Math.max(0, MAX_PROBLEMS - errors.length);
  return [
    ...errors.slice(0, MAX_PROBLEMS),
    ...andMore(errors, MAX_PROBLEMS),
    ...warnings.slice(0, most),
    ...andMore(warnings, most),
    ...tooMany(document, keys, program),
  ];
}

function andMore(all: readonly Problem[], shown: number): Problem[] {
  const next = all[shown];
  if (next === undefined) return [];
  const { path: _, suggestion: __, ...place } = next;
  return [{ ...place, message: `and ${counted(all.length - shown, 'more unknown key')}` }];
}

/** The error of a file of another kind: a mistake among so many keys would not be seen. */
function tooMany(
  document: ConfigDocument,
  keys: readonly PropertyPath[],
  { title }: TrainingProgram,
): Problem[] {
  const next = keys[MOST_KEYS];
  if (next === undefined) return [];
  const [found, most] = [keys.length, MOST_KEYS].map(formatInteger);
  const message = `${found} keys are none of ${title}; at most ${most} are looked at`;
  const suggestion = `give a config of ${title}`;
  return [{ severity: 'error', ...document.locate(next, 'key'), message, suggestion }];
}

/** The problem of a key that a program does not know, with the key that could be meant. */
function unknownKeyProblem(
  document: ConfigDocument,
  at: PropertyPath,
  program: TrainingProgram,
): Problem {
  const section = at.slice(0, -1).join('.');
  const name = String(at.at(-1));
  const isSection = [...program.known, ...program.rows.map(({ key }) => key)].some((key) =>
    key.startsWith(`${at.join('.')}.`),
  );
  if (isSection) {
    return {
      severity: 'warning',
      ...document.locate(at, 'key'),
      path: formatPath(at),
      message: `expected a section with keys of ${program.title}, found another value, which is not counted`,
    };
  }
  const all = [...program.known, ...program.rows.map(({ key }) => key), ...(program.sizes ?? [])];
  const prefix = section === '' ? '' : `${section}.`;
  const beside = all
    .filter((key) => key.startsWith(prefix))
    .map((key) => key.slice(prefix.length).split('.')[0] ?? '');
  // Another digit is another key: --data-path2.
  const near = misspelled(
    name,
    beside.filter((key) => digitsOf(key) === digitsOf(name)),
    MOST_LETTERS,
  );
  const isError = near !== undefined && !program.isLoose;
  const similar = near ?? elsewhere(name, all) ?? nearest(name, beside);
  return {
    severity: isError ? 'error' : 'warning',
    ...document.locate(at, 'key'),
    path: formatPath(at),
    message: `unknown key ${quote(name)}: ${program.title} ${program.version} has none of this name${section === '' ? '' : ` in ${section}`}`,
    ...(similar !== undefined && { suggestion: `did you mean ${quote(similar)}?` }),
  };
}

const digitsOf = (name: string) => name.replaceAll(/\D/g, '');

/** The key of this name in another section. */
const elsewhere = (name: string, all: readonly string[]): string | undefined =>
  all.find((key) => key.endsWith(`.${name}`) || key === name);
