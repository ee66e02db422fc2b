import {
  type Finding,
  type Problem,
  type PropertyPath,
  type Severity,
  UserError,
} from '../errors.js';
import { formatPath } from './path.js';
import { escapeText } from './quote.js';
import type { Place } from './source.js';

/** More problems than this are counted, not listed. */
const MAX_PROBLEMS = 50;

/** Something found wrong; it becomes a `Problem` if it is among those that are shown. */
export interface Found {
  readonly severity: Severity;
  readonly place: Place;
  readonly path?: PropertyPath;
  /** A function where saying it takes work that a thousandth problem is not worth. */
  readonly finding: Finding | (() => Finding);
}

/** The problems of a document. */
export interface Problems {
  /** In the order of the file, then of the overrides; at most fifty, then how many more. */
  readonly problems: readonly Problem[];
  /** How many errors there are, with those that are only counted. */
  readonly errors: number;
  /** How many warnings there are, with those that are only counted. */
  readonly warnings: number;
}

/** Thrown for a text that is not worth, or not safe, reading on; caught in this folder. */
export class Unreadable extends Error {
  readonly found: readonly Found[];
  /** Whether there may be more to find. */
  readonly isCut: boolean;

  constructor(found: readonly Found[], isCut = false) {
    super('The text cannot be read on.');
    this.found = found;
    this.isCut = isCut;
  }
}

/**
 * At most `MAX_PROBLEMS` problems, errors before warnings when not all fit, in order of place, then
 * how many more there are. `isCut` when not all were looked for.
 */
export function toProblems(found: readonly Found[], isCut = false): Problems {
  const errors = inOrder(found.filter(({ severity }) => severity === 'error'));
  const warnings = inOrder(found.filter(({ severity }) => severity === 'warning'));
  const shownErrors = errors.slice(0, MAX_PROBLEMS);
  const shownWarnings = warnings.slice(0, MAX_PROBLEMS - shownErrors.length);
  const problems = [
    ...inOrder([...shownErrors, ...shownWarnings]).map(toProblem),
    ...andMore(errors, shownErrors.length, isCut),
    ...andMore(warnings, shownWarnings.length, isCut),
  ];
  return { problems, errors: errors.length, warnings: warnings.length };
}

function inOrder(found: readonly Found[]): Found[] {
  return found.toSorted(
    (a, b) => a.place.source.rank - b.place.source.rank || a.place.offset - b.place.offset,
  );
}

function toProblem({ severity, place, path, finding }: Found): Problem {
  const { message, suggestion } = typeof finding === 'function' ? finding() : finding;
  return {
    severity,
    ...place.source.at(place.offset),
    ...(path === undefined || path.length === 0 ? {} : { path: formatPath(path) }),
    message,
    ...(suggestion === undefined ? {} : { suggestion }),
  };
}

function andMore(all: readonly Found[], shown: number, isCut: boolean): Problem[] {
  const first = all[shown];
  if (first === undefined) return [];
  const message = `and ${isCut ? 'at least ' : ''}${count(all.length - shown, `more ${first.severity}`)}`;
  return [{ severity: first.severity, file: first.place.source.file, message }];
}

/**
 * The error that a command ends with when a config has these problems. `errors` is how many there
 * are, also of those that `problems` only counts; a lower bound when `isCut`.
 */
export function invalidConfig(
  file: string,
  problems: readonly Problem[],
  errors: number,
  isCut = false,
): UserError {
  const counted = `${isCut ? 'at least ' : ''}${count(errors, 'error')}`;
  return new UserError('invalid-config', `${escapeText(file)} is not valid: ${counted}`, {
    problems,
  });
}

/** `1 error`, `70,000 errors`. */
function count(number: number, what: string): string {
  return `${number.toLocaleString('en-US')} ${what}${number === 1 ? '' : 's'}`;
}
