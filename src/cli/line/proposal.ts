/** Proposed command lines. Each is read and checked as a line that the user types, and only then becomes text. */
import { UserError, usageError } from '../../base/errors.js';
import { misspelled } from '../../config/nearest.js';
import { LineMistake, lineAdvice, type MeantLine, pasteable } from './line-mistake.js';

/** Reads a line of a command and checks it without running it. @throws UserError for a mistake. */
export type LineCheck = (line: MeantLine) => Promise<void>;

/** Lines that are tried for one: a training script's has a dozen flags, each with some meanings. */
const MOST_MISTAKES = 64;

/** The error for a mistake, or the line that runs in its place. */
export interface Mended {
  readonly error: UserError;
  /** The words of the line, where the typed one differs in spelling only. */
  readonly spelled?: readonly string[];
}

/**
 * The error with a line that was checked. Further mistakes of a line are corrected in it, too. Without such a line,
 * the error names the further mistake.
 */
export async function withCheckedLine(mistake: LineMistake, check: LineCheck): Promise<Mended> {
  const further: UserError[] = [];
  const refused = new Set<string>();
  const correct = async (line: MeantLine): Promise<MendedLine | undefined> => {
    const kept = line.isElsewhere ? [] : further;
    const search: Search = { check, seen: new Set(), refused, further: kept, mended: [] };
    const found = await checked(line, search);
    return found && { line, found, mended: line.isElsewhere ? [] : search.mended };
  };
  const whole = mistake.lines.filter(({ isShorter }) => !isShorter);
  const best = (await bestLine(whole, correct)) ?? (await bestLine(mistake.lines, correct));
  if (best !== undefined) return mendedAs(mistake, best);
  // A model that is not there is said before mistakes of its flags.
  const isCause = (error: UserError) => error instanceof LineMistake && error.advice.isCause;
  const other = further.find(isCause) ?? further[0];
  if (other === undefined) {
    return { error: usageError(mistake.message, lineAdvice(undefined, mistake.advice)) };
  }
  const advice = await checkedAdvice(other, check);
  return { error: usageError(`${mistake.message}; ${messageOf(other)}`, advice) };
}

/** A line of a mistake, and how it was corrected. */
interface MendedLine {
  readonly line: MeantLine;
  readonly found: Corrected;
  /** Mistakes of values that were corrected in it. */
  readonly mended: readonly UserError[];
}

/** The reason why a word is left out that another command counts. */
const COUNTED_BY = /is counted by minimind (\S+), not here$/;

/**
 * The first line that can be read; of lines of several commands, the one that leaves the least to the others. A GPU
 * and adapters ask for memory, and not for a schedule.
 */
async function bestLine(
  lines: readonly MeantLine[],
  correct: (line: MeantLine) => Promise<MendedLine | undefined>,
): Promise<MendedLine | undefined> {
  const own = lines.filter(({ isElsewhere }) => !isElsewhere);
  const commands = new Set(own.map(({ words }) => words[0]));
  let best: (MendedLine & { readonly left: number }) | undefined;
  for (const line of lines) {
    const next = await correct(line);
    if (next === undefined) continue;
    const { words, leftOut } = next.found;
    const left = leftOut.filter((each) => {
      const owner = COUNTED_BY.exec(each)?.[1];
      return owner !== undefined && owner !== words[0] && commands.has(owner);
    }).length;
    const isMemory = words.includes('--gpu') || /--for[ =]q?lora\b/.test(words.join(' '));
    if (left === 0 || isMemory) return next;
    if (best === undefined || left < best.left) best = { ...next, left };
  }
  return best;
}

/** The error with a corrected line, and the words of one that differs in spelling only. */
function mendedAs(mistake: LineMistake, { line, found, mended }: MendedLine): Mended {
  const { words, isSpelling, leftOut } = found;
  const error = usageError(
    [mistake, ...mended].map(({ message }) => message).join('; '),
    lineAdvice(withOwnLead({ ...line, words, leftOut }), mistake.advice),
  );
  return isSpelling ? { error, spelled: words } : { error };
}

/** A line without a lead that names another flag or command than it has: further mistakes changed it. */
function withOwnLead(line: MeantLine): MeantLine {
  const { lead = '', words } = line;
  const [flag] = /--[\w-]+/.exec(lead) ?? [];
  const [, command] = /^did you mean ([a-z][a-z -]*)\?$/.exec(lead) ?? [];
  const isLed =
    (flag === undefined || words.some((word) => word.startsWith(flag)) || !lead.endsWith('?')) &&
    (command === undefined || `${words.join(' ')} `.startsWith(`${command} `));
  const { lead: _, ...rest } = line;
  return isLed ? line : rest;
}

/** The message of an error, or the first of its problems: `IN is refused` does not say why. */
function messageOf({ message, problems: [first] }: UserError): string {
  return first === undefined ? message : `${first.file}: ${first.message}`;
}

/** The suggestion of a further mistake, with the first of its lines that can be read. */
async function checkedAdvice(error: UserError, check: LineCheck): Promise<string | undefined> {
  if (!(error instanceof LineMistake)) return error.suggestion ?? error.problems[0]?.suggestion;
  for (const line of error.lines) {
    const search = { check, seen: new Set<string>(), refused: new Set<string>() };
    const found = await checked(line, { ...search, further: [], mended: [] });
    if (found) return lineAdvice({ ...line, ...found }, error.advice);
  }
  return lineAdvice(undefined, error.advice);
}

interface Search {
  readonly check: LineCheck;
  /** Lines on the way to this one, which lead back to it. */
  readonly seen: Set<string>;
  /** Settings that the model does not have: no line with one of them can be read. */
  readonly refused: Set<string>;
  /** Mistakes that have no correction. */
  readonly further: UserError[];
  /** Mistakes of values that are corrected in the line. */
  readonly mended: UserError[];
}

/** Whether a model of the line is not there, which no other meaning of its flags changes. */
const isMissingModel = (error: UserError): boolean =>
  error instanceof LineMistake && error.advice.isCause === true && error.lines.length === 0;

/** Conditions on both lines, and what both leave out. */
const joinedNotes = (
  line: MeantLine,
  next: MeantLine,
): Pick<MeantLine, 'models' | 'gpus' | 'leftOut'> => ({
  leftOut: [...(line.leftOut ?? []), ...(next.leftOut ?? [])],
  models: [...(line.models ?? []), ...(next.models ?? [])],
  gpus: [...(line.gpus ?? []), ...(next.gpus ?? [])],
});

/** A line with its mistakes corrected. */
type Corrected = Required<Pick<MeantLine, 'words' | 'isSpelling' | 'leftOut'>>;

/** The words of a line, with its mistakes corrected; undefined for a line that cannot be corrected. */
async function checked(line: MeantLine, search: Search): Promise<Corrected | undefined> {
  const key = JSON.stringify(line.words);
  if (search.seen.has(key) || search.seen.size > MOST_MISTAKES) return undefined;
  if (line.words.some((word) => search.refused.has(word))) return undefined;
  if (search.further.some(isMissingModel)) return undefined;
  search.seen.add(key);
  try {
    await search.check(line);
    const { words, isSpelling = false, leftOut = [] } = line;
    return { words, isSpelling, leftOut };
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    if (!(error instanceof LineMistake)) {
      const meant = lineMeant(error, line.words, ONE_OF_FLAGS);
      // A key that the user may not have meant is not replaced by a different one.
      const next = line.isElsewhere && !haveSimilarKeys(line, meant) ? undefined : meant;
      const mended = next && { ...line, words: next.words, isSpelling: false };
      const found = mended && (await checked(mended, search));
      (found === undefined ? search.further : search.mended).push(error);
      if (found === undefined)
        for (const word of unknownSettings(error, line)) search.refused.add(word);
      return found;
    }
    // Its own correction leaves something out, which its message says.
    const isAlone = error.lines.length === 0 || error.lines.some(({ isShorter }) => isShorter);
    if (isAlone && !error.advice.isCondition && !line.isShorter) search.further.push(error);
    for (const next of error.lines) {
      // Left out what was written, and added what was not: that is another question.
      if (next.isShorter || (line.isShorter && next.hasExample)) continue;
      const found = await checked(
        {
          words: next.words,
          isShorter: line.isShorter ?? false,
          isElsewhere: (line.isElsewhere || next.isElsewhere) ?? false,
          isSpelling: (line.isSpelling && next.isSpelling) ?? false,
          hasExample: (line.hasExample || next.hasExample) ?? false,
          // Another command has other flags, which are the user's.
          isOfTool: Boolean(next.isOfTool || (line.isOfTool && next.words[0] === line.words[0])),
          ...joinedNotes(line, next),
        },
        search,
      );
      if (found) return found;
    }
    if (error.advice.isCause && !isAlone) search.further.push(error);
    return undefined;
  }
}

/** The settings of a line with a key that the model does not have. */
function unknownSettings({ problems }: UserError, { words }: MeantLine): string[] {
  const keys = problems.flatMap(({ file, message }) =>
    file === '--set' ? (/^unknown key "([^"]+)"$/.exec(message)?.slice(1) ?? []) : [],
  );
  return words.filter((word) => keys.some((key) => word.startsWith(`model.${key}=`)));
}

/** Whether two lines differ in a key of the config, of which one has all the words of the other. */
function haveSimilarKeys({ words }: MeantLine, other: MeantLine | undefined): boolean {
  const at = words.findIndex((word, index) => word !== other?.words[index]);
  const [before = [], after = []] = [words[at], other?.words[at]].map((word) =>
    (/^model\.(\w+)=/.exec(word ?? '')?.[1] ?? '').split('_'),
  );
  const [short, long] = before.length < after.length ? [before, after] : [after, before];
  // Most of its words: a layer is not the epsilon of its norm.
  const isPart = short.length * 2 >= long.length && short.every((word) => long.includes(word));
  return isPart || misspelled(before.join('_'), [after.join('_')], 2) !== undefined;
}

/** One flag with its value, alone in a suggestion. */
const ONE_FLAG = /^(?:write|add) (--[a-z][\w-]*)(?: (\S+))?$/;

/** The same, and what else can be written: `write it as in --p95 500ms`, `add --ids 1,2,3, or --text FILE`. */
const ONE_OF_FLAGS =
  /^(?:write|add)(?: it as in)? (--[a-z][\w-]*)(?: (?!and\b|[A-Z]+\b)(\S+?))?(?:,? or\b.*)?$/;

/** `did you mean h100?`, and the word that it replaces, at the end of a message. */
const MEANT =
  /^did you mean "?([^"?]+)"?\?$|^write (hf:[^\s,]+)(?:, or download it: .*)?$|^write (\S+), or for weights of that type minimind fit \S+ (--dtype) (\S+)$/;

const FOUND = /(?:found|unknown|like)\b.* "([^"]+)"$/;

type InputLines = Pick<
  typeof import('./wrong-input.js'),
  'lineForArtifact' | 'lineForInput' | 'lineForTag'
>;

/**
 * The error of a command with its suggestion as a whole line, where that is one word or one flag of the line and the
 * changed line can be read.
 * @param words The line as it was written.
 */
export async function withWholeLine(
  error: UserError,
  words: readonly string[],
  check: LineCheck,
  { lineForArtifact, lineForInput, lineForTag }: InputLines,
): Promise<UserError> {
  if (error.code !== 'usage' && error.code !== 'refused-file') return error;
  const line =
    lineForArtifact(words) ?? lineForTag(words) ?? lineMeant(error, words) ?? lineForInput(words);
  if (line === undefined) return error;
  try {
    await check(line);
  } catch {
    return error;
  }
  const builtIn = await lineWithoutHub(line, words, check, lineForInput);
  const whole = new UserError(error.code, error.message, {
    problems: error.problems.map(({ suggestion: _, ...problem }) => problem),
    cause: error,
    suggestion: [lineAdvice(line, {}), builtIn].filter(Boolean).join(', or '),
  });
  whole.exitCode = error.exitCode;
  return whole;
}

/**
 * A second proposal for a line that reads a repository. It needs no network: it takes the built-in sizes of the model, and
 * the type at the end of its name (`Qwen/Qwen3-8B-AWQ`). Undefined for a model whose sizes are not built in.
 */
async function lineWithoutHub(
  line: MeantLine,
  words: readonly string[],
  check: LineCheck,
  lineForInput: InputLines['lineForInput'],
): Promise<string | undefined> {
  const isOfHub = line.words.some((word) => word.startsWith('hf:') && !words.includes(word));
  const own = isOfHub ? lineForInput(words) : undefined;
  if (own === undefined) return undefined;
  try {
    await check(own);
  } catch {
    return undefined;
  }
  return `without a network ${pasteable(own.words)}`;
}

/** The line that the suggestion of an error, or of its only problem, describes. */
function lineMeant(
  error: UserError,
  words: readonly string[],
  oneFlag = ONE_FLAG,
): MeantLine | undefined {
  const [problem] = error.problems.length === 1 ? error.problems : [];
  const { suggestion = '', message } = problem ?? error;
  const [, close, model, typed, typeFlag, type] = MEANT.exec(suggestion) ?? [];
  const meant = replacedWord(words, close ?? model ?? typed, FOUND.exec(message)?.[1]);
  if (meant && typeFlag) return { words: withFlag(meant, typeFlag, type) };
  if (meant) return { words: meant, ...(close && { lead: suggestion.replaceAll('"', '') }) };
  const replaced = withReplacedFlag(words, suggestion, message);
  if (replaced) return { words: replaced };
  const [, flag, value] = oneFlag.exec(suggestion) ?? [];
  if (flag === undefined) return undefined;
  // What is written stays, unless it is the mistake.
  const isMistake = message.startsWith(`${flag}:`) || message.startsWith(`${flag} `);
  const isKept = oneFlag === ONE_OF_FLAGS && words.includes(flag) && !isMistake;
  return isKept ? undefined : { words: withFlag(words, flag, value) };
}

/** The words with the flag that the purpose of the line has in the place of another one: `--batch` in a training. */
function withReplacedFlag(
  words: readonly string[],
  suggestion: string,
  message: string,
): string[] | undefined {
  const [, own, value] = /^write (--[a-z-]+) (\S+) for /.exec(suggestion) ?? [];
  const [, other] = /^(--[a-z-]+) is a setting of /.exec(message) ?? [];
  const at = words.findIndex((word) => word.split('=', 1)[0] === other);
  if (own === undefined || value === undefined || at < 0) return undefined;
  return words.toSpliced(at, words[at] === other ? 2 : 1, own, value);
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
