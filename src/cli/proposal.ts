/** Proposed command lines. Each is read and checked like a line that the user types, and only then becomes text. */
import { UserError, usageError } from '../base/errors.js';
import { LineMistake, lineAdvice, type MeantLine } from './line-mistake.js';

/** Reads a line of a command and checks it without running it. @throws UserError for a mistake. */
export type LineCheck = (line: MeantLine) => Promise<void>;

/** Maximum mistakes in one line that are corrected together. */
const MOST_MISTAKES = 12;

/**
 * The error, with a checked line as its proposal. Further mistakes of the line are also corrected in it. If no line
 * passes the check, the error names the further mistake.
 */
export async function withCheckedLine(mistake: LineMistake, check: LineCheck): Promise<UserError> {
  const further: UserError[] = [];
  const whole = mistake.lines.filter(({ isShorter }) => !isShorter);
  for (const isLast of [false, true]) {
    for (const line of isLast ? mistake.lines : whole) {
      const own = line.isElsewhere ? [] : further;
      const search: Search = { check, seen: new Set(), further: own, corrected: [] };
      const words = await checked(line, search);
      if (words === undefined) continue;
      const { lead = '', ...found } = { ...line, words };
      const [flag] = /--[\w-]+/.exec(lead) ?? [];
      const isLed =
        flag === undefined || words.some((word) => word.startsWith(flag)) || !lead.endsWith('?');
      return usageError(
        [mistake, ...(line.isElsewhere ? [] : search.corrected)]
          .map(({ message }) => message)
          .join('; '),
        lineAdvice({ ...found, ...(isLed && { lead }) }, mistake.advice),
      );
    }
  }
  const [other] = further;
  if (other === undefined)
    return usageError(mistake.message, lineAdvice(undefined, mistake.advice));
  return usageError(`${mistake.message}; ${other.message}`, await checkedAdvice(other, check));
}

/** The suggestion of a further mistake, with the first of its lines that can be read. */
async function checkedAdvice(error: UserError, check: LineCheck): Promise<string | undefined> {
  if (!(error instanceof LineMistake)) return error.suggestion;
  for (const line of error.lines) {
    const words = await checked(line, { check, seen: new Set(), further: [], corrected: [] });
    if (words) return lineAdvice({ ...line, words }, error.advice);
  }
  return lineAdvice(undefined, error.advice);
}

interface Search {
  readonly check: LineCheck;
  /** Lines on the way to this one, to detect a loop. */
  readonly seen: Set<string>;
  /** Mistakes that have no correction. */
  readonly further: UserError[];
  /** Mistakes of values that are corrected in the line. */
  readonly corrected: UserError[];
}

/** Conditions on both lines. */
const needsOf = (line: MeantLine, next: MeantLine): Pick<MeantLine, 'models' | 'gpus'> => ({
  models: [...(line.models ?? []), ...(next.models ?? [])],
  gpus: [...(line.gpus ?? []), ...(next.gpus ?? [])],
});

/** The words of a line, with its mistakes corrected; undefined for a line that cannot be corrected. */
async function checked(line: MeantLine, search: Search): Promise<readonly string[] | undefined> {
  const key = JSON.stringify(line.words);
  if (search.seen.has(key) || search.seen.size > MOST_MISTAKES) return undefined;
  search.seen.add(key);
  try {
    await search.check(line);
    return line.words;
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    if (!(error instanceof LineMistake)) {
      const next = lineMeant(error, line.words, ONE_OF_FLAGS);
      const words = next && (await checked({ ...line, words: next.words }, search));
      (words === undefined ? search.further : search.corrected).push(error);
      return words;
    }
    // The mistake's own correction leaves out a part, which its message explains.
    if (error.lines.some(({ isShorter }) => isShorter) && !line.isShorter)
      search.further.push(error);
    for (const next of error.lines) {
      // A line that leaves out a part of what was written, and adds another, is a different request.
      if (next.isShorter || (line.isShorter && next.hasExample)) continue;
      const words = await checked(
        {
          words: next.words,
          isShorter: line.isShorter ?? false,
          ...needsOf(line, next),
        },
        search,
      );
      if (words) return words;
    }
    return undefined;
  }
}

/** One flag with its value, alone in a suggestion. */
const ONE_FLAG = /^(?:write|add) (--[a-z][\w-]*)(?: (\S+))?$/;

/** The same, with alternatives: `write it as in --p95 500ms`, `add --ids 1,2,3, or --text FILE`. */
const ONE_OF_FLAGS =
  /^(?:write|add)(?: it as in)? (--[a-z][\w-]*)(?: (?!and\b|[A-Z]+\b)(\S+?))?(?:,? or\b.*)?$/;

/** `did you mean h100?`, and the word that it replaces, at the end of a message. */
const MEANT = /^did you mean "?([^"?]+)"?\?$/;
const FOUND = /(?:found|unknown|like)\b.* "([^"]+)"$/;

/**
 * The error of a command, with a whole line as its suggestion. This requires that the suggestion is one word or one
 * flag of the line, and that the changed line can be read.
 * @param words The line as it was written.
 */
export async function withWholeLine(
  error: UserError,
  words: readonly string[],
  check: LineCheck,
  lineForInput: (words: readonly string[]) => MeantLine | undefined,
): Promise<UserError> {
  if (error.code !== 'usage' && error.code !== 'refused-file') return error;
  const line = lineMeant(error, words) ?? lineForInput(words);
  if (line === undefined) return error;
  try {
    await check(line);
  } catch {
    return error;
  }
  const whole = new UserError(error.code, error.message, {
    problems: error.problems.map(({ suggestion: _, ...problem }) => problem),
    cause: error,
    suggestion: lineAdvice(line, {}),
  });
  whole.exitCode = error.exitCode;
  return whole;
}

/** The line that the suggestion of an error, or of its only problem, describes. */
function lineMeant(
  error: UserError,
  words: readonly string[],
  oneFlag = ONE_FLAG,
): MeantLine | undefined {
  const [problem] = error.problems.length === 1 ? error.problems : [];
  const { suggestion = '', message } = problem ?? error;
  const meant = replacedWord(words, MEANT.exec(suggestion)?.[1], FOUND.exec(message)?.[1]);
  if (meant) return { words: meant, lead: suggestion.replaceAll('"', '') };
  const [, flag, value] = oneFlag.exec(suggestion) ?? [];
  if (flag === undefined) return undefined;
  // A flag that the user wrote stays, unless it is the mistake.
  const isMistake = message.startsWith(`${flag}:`) || message.startsWith(`${flag} `);
  const isKept = oneFlag === ONE_OF_FLAGS && words.includes(flag) && !isMistake;
  return isKept ? undefined : { words: withFlag(words, flag, value) };
}

/** The words with one of them, the value of one flag, or the key of one setting replaced. */
function replacedWord(
  words: readonly string[],
  meant: string | undefined,
  found: string | undefined,
): string[] | undefined {
  if (meant === undefined || found === undefined) return undefined;
  const ends = [`=${found}`, `.${found}=`];
  const places = words.flatMap((word, at) =>
    word === found || word.endsWith(`=${found}`) || word.includes(`.${found}=`) ? [at] : [],
  );
  const [at, ...others] = places;
  if (at === undefined || others.length > 0) return undefined;
  const word = words[at] ?? '';
  const start = Math.max(0, ...ends.map((end) => word.lastIndexOf(end) + 1));
  return words.with(at, word.slice(0, start) + meant + word.slice(start + found.length));
}

/** The words with a flag and its value, in the place of the flag where it is given. */
function withFlag(words: readonly string[], flag: string, value: string | undefined): string[] {
  const isOutput = (word: string) => flag === '--output' && /^-o(?!-)/.test(word);
  const at = words.findIndex(
    (word) => word === flag || word.startsWith(`${flag}=`) || isOutput(word),
  );
  const written = value === undefined ? [flag] : [flag, value];
  if (at < 0) return [...words, ...written];
  const isApart = words[at] === flag || words[at] === '-o';
  const length = value !== undefined && isApart ? 2 : 1;
  return words.toSpliced(at, length, ...written);
}
