/** Keys of a config that its program does not have. */
import type { Problem, PropertyPath } from '../../base/errors.js';
import { formatInteger } from '../../base/text/units.js';
import { counted } from '../../base/text/words.js';
import { groupBy } from '../../base/values.js';
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
  const known = new KnownKeys(program);
  const problems = keys.slice(0, MOST_KEYS).map((at) => unknownKeyProblem(document, at, known));
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
function unknownKeyProblem(document: ConfigDocument, at: PropertyPath, known: KnownKeys): Problem {
  const { program } = known;
  const section = at.slice(0, -1).join('.');
  const name = String(at.at(-1));
  if (known.isSection(at.join('.'))) {
    return {
      severity: 'warning',
      ...document.locate(at, 'key'),
      path: formatPath(at),
      message: `expected a section with keys of ${program.title}, found another value, which is not counted`,
    };
  }
  // Another digit is another key: --data-path2.
  const near = misspelled(name, known.withDigits(section, digitsOf(name)), MOST_LETTERS);
  const isError = near !== undefined && !program.isLoose;
  const similar = near ?? known.elsewhere(name) ?? nearest(name, known.beside(section));
  return {
    severity: isError ? 'error' : 'warning',
    ...document.locate(at, 'key'),
    path: formatPath(at),
    message: `unknown key ${quote(name)}: ${program.title} ${program.version} has none of this name${section === '' ? '' : ` in ${section}`}`,
    ...(similar !== undefined && { suggestion: `did you mean ${quote(similar)}?` }),
  };
}

const digitsOf = (name: string) => name.replaceAll(/\D/g, '');

/** Keys of a program as unknown ones are compared with them: those of a section are listed once. */
class KnownKeys {
  readonly program: TrainingProgram;
  readonly #all: readonly string[];
  readonly #sections = new Set<string>();
  readonly #inSections = new Map<string, NamesInSection>();

  constructor(program: TrainingProgram) {
    const counted = [...program.known, ...program.rows.map(({ key }) => key)];
    this.program = program;
    this.#all = [...counted, ...(program.sizes ?? [])];
    for (const key of counted) {
      for (let at = key.indexOf('.'); at >= 0; at = key.indexOf('.', at + 1)) {
        this.#sections.add(key.slice(0, at));
      }
    }
  }

  /** Whether keys are below this one. */
  isSection(key: string): boolean {
    return this.#sections.has(key);
  }

  /** Names in a section. */
  beside(section: string): readonly string[] {
    return this.#in(section).names;
  }

  /** Names in a section that have these digits. */
  withDigits(section: string, digits: string): readonly string[] {
    return this.#in(section).byDigits.get(digits) ?? [];
  }

  /** The key of this name in another section. */
  elsewhere(name: string): string | undefined {
    const end = `.${name}`;
    return this.#all.find((key) => key.endsWith(end) || key === name);
  }

  #in(section: string): NamesInSection {
    const before = this.#inSections.get(section);
    if (before !== undefined) return before;
    const prefix = section === '' ? '' : `${section}.`;
    const names = this.#all
      .filter((key) => key.startsWith(prefix))
      .map((key) => key.slice(prefix.length).split('.')[0] ?? '');
    const found = { names, byDigits: groupBy(names, digitsOf) };
    this.#inSections.set(section, found);
    return found;
  }
}

interface NamesInSection {
  readonly names: readonly string[];
  readonly byDigits: ReadonlyMap<string, readonly string[]>;
}
