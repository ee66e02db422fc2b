/** Proposed command lines. Each is read and checked as a line that the user types, and only then becomes text. */
import { UserError, usageError } from '../errors.js';
import { LineMistake, lineAdvice, type MeantLine } from './line-mistake.js';

/** Reads a line of a command and checks it without running it. @throws UserError for a mistake. */
export type LineCheck = (line: MeantLine) => Promise<void>;

/** Mistakes in one line that are corrected together. */
const MOST_MISTAKES = 12;

/**
 * The error with a line that was checked. Further mistakes of a line are corrected in it, too. Without such a line,
 * the error names the further mistake.
 */
export async function withCheckedLine(mistake: LineMistake, check: LineCheck): Promise<UserError> {
  const further: UserError[] = [];
  const own = mistake.lines.filter(({ isShorter }) => !isShorter);
  for (const isLast of [false, true]) {
    for (const line of isLast ? mistake.lines : own) {
      const search: Search = { check, isLast, seen: new Set(), further };
      const words = await checked(line, search);
      if (words === undefined) continue;
      const { lead = '', ...found } = { ...line, words };
      const [flag] = /--[\w-]+/.exec(lead) ?? [];
      const isLed =
        flag === undefined || words.some((word) => word.startsWith(flag)) || !lead.endsWith('?');
      return usageError(
        mistake.message,
        lineAdvice({ ...found, ...(isLed && { lead }) }, mistake.advice),
      );
    }
  }
  const [other] = further;
  if (other === undefined)
    return usageError(mistake.message, lineAdvice(undefined, mistake.advice));
  return usageError(`${mistake.message}; ${other.message}`, other.suggestion);
}

interface Search {
  readonly check: LineCheck;
  /** Whether words can be left out. */
  readonly isLast: boolean;
  /** Lines on the way to this one, which lead back to it. */
  readonly seen: Set<string>;
  /** Mistakes that have no correction. */
  readonly further: UserError[];
}

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
      search.further.push(error);
      return undefined;
    }
    for (const next of error.lines) {
      const isShorter = line.isShorter || next.isShorter;
      // Left out what was written, and added what was not: that is another question.
      if ((next.isShorter && !search.isLast) || (isShorter && next.hasExample)) continue;
      const words = await checked(
        {
          words: next.words,
          isShorter: isShorter ?? false,
          models: [...(line.models ?? []), ...(next.models ?? [])],
          gpus: [...(line.gpus ?? []), ...(next.gpus ?? [])],
        },
        search,
      );
      if (words) return words;
    }
    return undefined;
  }
}
