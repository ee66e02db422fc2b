/** Keys of a config that its program does not have. */
import type { Problem, PropertyPath } from '../../base/errors.js';
import { counted } from '../../base/text/words.js';
import type { ConfigDocument } from '../../config/document.js';
import { MAX_PROBLEMS } from '../../config/document-problems.js';
import { misspelled, nearest } from '../../config/nearest.js';
import { formatPath, quote } from '../../config/quote.js';
import type { TrainingProgram } from './program.js';

/** Wrong letters up to which a key is a misspelled one; more can be a key of a newer version. */
const MOST_LETTERS = 2;

/** The problems of keys that a program does not know, in order; those beyond what a screen shows are counted. */
export function unknownKeyProblems(
  document: ConfigDocument,
  keys: readonly PropertyPath[],
  program: TrainingProgram,
): Problem[] {
  const problems = keys
    .slice(0, MAX_PROBLEMS)
    .map((at) => unknownKeyProblem(document, at, program));
  const next = keys[MAX_PROBLEMS];
  if (next === undefined) return problems;
  const message = `and ${counted(keys.length - MAX_PROBLEMS, 'more unknown key')}`;
  return [...problems, { severity: 'warning', ...document.locate(next, 'key'), message }];
}

/** The problem of a key that a program does not know, with the key that could be meant. */
function unknownKeyProblem(
  document: ConfigDocument,
  at: PropertyPath,
  program: TrainingProgram,
): Problem {
  const section = at.slice(0, -1).join('.');
  const name = String(at.at(-1));
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
