import type { Problem, ProblemText, PropertyPath, Severity } from '../base/errors.js';
import { UserError } from '../base/errors.js';
import { counted } from '../base/text/words.js';
import { escapeText, formatPath } from './quote.js';
import type { SourcePosition } from './source.js';

/** Maximum number of listed problems; the rest are only counted. */
export const MAX_PROBLEMS = 50;

/** A finding; it becomes a `Problem` if it is listed. */
export interface LocatedFinding {
  readonly severity: Severity;
  readonly place: SourcePosition;
  readonly path?: PropertyPath;
  /** A function if the message is costly and may not be listed. */
  readonly finding: ProblemText | (() => ProblemText);
}

export interface Problems {
  /** Sorted by file position, then override; at most fifty, then a count of the rest. */
  readonly problems: readonly Problem[];
  /** Number of errors, including unlisted ones. */
  readonly errors: number;
  /** Number of warnings, including unlisted ones. */
  readonly warnings: number;
}

/** Thrown to stop reading an unreadable or unsafe text; caught in this folder. */
export class Unreadable extends Error {
  readonly found: readonly LocatedFinding[];

  constructor(found: readonly LocatedFinding[]) {
    super('The text cannot be read on.');
    this.found = found;
  }
}

/** @param earlier Findings before this one. */
export const unreadableAt = (
  place: SourcePosition,
  finding: ProblemText,
  earlier: readonly LocatedFinding[] = [],
): Unreadable => new Unreadable([...earlier, { severity: 'error', place, finding }]);

/**
 * Lists at most `MAX_PROBLEMS` problems in order of place, then counts the rest. If not all fit, errors take
 * precedence.
 */
export function toProblems(found: readonly LocatedFinding[]): Problems {
  const errors = inOrder(found.filter(({ severity }) => severity === 'error'));
  const warnings = inOrder(found.filter(({ severity }) => severity === 'warning'));
  const shownErrors = errors.slice(0, MAX_PROBLEMS);
  const shownWarnings = warnings.slice(0, MAX_PROBLEMS - shownErrors.length);
  const problems = [
    ...inOrder([...shownErrors, ...shownWarnings]).map(toProblem),
    ...andMore(errors, shownErrors.length),
    ...andMore(warnings, shownWarnings.length),
  ];
  return { problems, errors: errors.length, warnings: warnings.length };
}

function inOrder(found: readonly LocatedFinding[]): LocatedFinding[] {
  return found.toSorted(
    (a, b) => a.place.source.rank - b.place.source.rank || a.place.offset - b.place.offset,
  );
}

function toProblem({ severity, place, path, finding }: LocatedFinding): Problem {
  const { message, suggestion } = typeof finding === 'function' ? finding() : finding;
  return {
    severity,
    ...place.source.at(place.offset),
    ...(path === undefined || path.length === 0 ? {} : { path: formatPath(path) }),
    message,
    ...(suggestion === undefined ? {} : { suggestion }),
  };
}

function andMore(all: readonly LocatedFinding[], shown: number): Problem[] {
  const first = all[shown];
  if (first === undefined) return [];
  const message = `and ${counted(all.length - shown, `more ${first.severity}`)}`;
  return [{ severity: first.severity, file: first.place.source.file, message }];
}

/** Error that ends a command on a config with problems. `errors` counts all of them, listed or not. */
export function invalidConfig(
  file: string,
  problems: readonly Problem[],
  errors: number,
): UserError {
  const message = `${escapeText(file)} is not valid: ${counted(errors, 'error')}`;
  return new UserError('invalid-config', message, { problems });
}
