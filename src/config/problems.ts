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

/** More problems than this are counted, not listed: nobody reads the hundredth. */
const MAX_PROBLEMS = 50;

/** Something found wrong; it becomes a `Problem` if it is among those that are shown. */
export interface Found {
  readonly severity: Severity;
  readonly place: Place;
  readonly path?: PropertyPath;
  /** A function where saying it takes work that a thousandth problem is not worth. */
  readonly finding: Finding | (() => Finding);
}

/**
 * At most `MAX_PROBLEMS` problems, errors before warnings when not all fit, in order of place, then
 * how many more there are. `isCut` when not all were looked for.
 */
export function toProblems(found: readonly Found[], isCut = false): Problem[] {
  const errors = inOrder(found.filter(({ severity }) => severity === 'error'));
  const warnings = inOrder(found.filter(({ severity }) => severity === 'warning'));
  const shownErrors = errors.slice(0, MAX_PROBLEMS);
  const shownWarnings = warnings.slice(0, MAX_PROBLEMS - shownErrors.length);
  return [
    ...inOrder([...shownErrors, ...shownWarnings]).map(toProblem),
    ...andMore(errors, shownErrors.length, isCut),
    ...andMore(warnings, shownWarnings.length, isCut),
  ];
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
  const count = all.length - shown;
  const message = `and ${isCut ? 'at least ' : ''}${count} more ${first.severity}${count === 1 ? '' : 's'}`;
  return [{ severity: first.severity, file: first.place.source.file, message }];
}

/** The error that a command ends with when a config has these problems. */
export function invalidConfig(file: string, problems: readonly Problem[]): UserError {
  return new UserError('invalid-config', `${escapeText(file)} is not a valid config.`, {
    problems,
  });
}
