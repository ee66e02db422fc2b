/** Failures that show the lines around a difference, and not the whole document that an assertion read. */
import { stripVTControlCharacters } from 'node:util';

/** The parts of a failure that reporters print. */
interface Failure {
  message?: string;
  stack?: string | undefined;
  diff?: string;
  actual?: unknown;
  expected?: unknown;
}

/** Lines and characters that a failure shows. */
const [DIFF_LINES, CONTEXT_LINES, NEAREST_LINES, MESSAGE_LINES] = [30, 2, 3, 12];
const [LINE_LENGTH, BEFORE_DIFFERENCE] = [240, 80];

/** A matcher that looks for one text in another: `toContain` and `toMatch`, not `toMatchObject`. */
const SEARCH = /\bto (?:contain|match|include) (?!object\b)/;

/** Start of a changed line in a diff. Texts of one line have a word instead of a sign. */
const CHANGED = /^(?:[-+]|Expected: |Received: )/;

/** Shortens what a failure prints. Does not change why it failed. */
export function shortenFailure(failure: Failure): void {
  const { message, diff, actual, expected } = failure;
  if (diff !== undefined) {
    const isSearch = SEARCH.test(message ?? '') && typeof actual === 'string';
    failure.diff = isSearch ? nearestLines(actual, String(expected)) : shortDiff(diff);
  }
  if (message === undefined) return;
  failure.message = shortMessage(message);
  failure.stack = failure.stack?.replace(message, () => failure.message ?? '');
}

/** The lines of a text that have most in common with what was searched for, with their numbers. */
function nearestLines(text: string, searched: string): string {
  const lines = text.split('\n');
  const words = new Set(searched.match(/[\p{L}\p{N}]{2,}/gu));
  const common = (line: string) => {
    const found = [...words].filter((word) => line.includes(word));
    return found.reduce((sum, word) => sum + word.length, 0);
  };
  const nearest = lines
    .map((line, index) => ({ line, index, common: common(line) }))
    .sort((a, b) => b.common - a.common || a.index - b.index)
    .slice(0, NEAREST_LINES)
    .sort((a, b) => a.index - b.index)
    .map(({ line, index }) => {
      const at = [...words].map((word) => line.indexOf(word)).find((place) => place >= 0);
      return `  ${String(index + 1).padStart(5)} | ${excerpt(line, at ?? 0)}`;
    });
  return [
    'Searched for:',
    ...shortMessage(searched)
      .split('\n')
      .map((line) => `  ${line}`),
    `Nearest of ${lines.length} lines:`,
    ...nearest,
  ].join('\n');
}

/** The changed lines of a diff with some around them, up to a number of lines. */
function shortDiff(diff: string): string {
  const coloured = diff.split('\n');
  const plain = coloured.map(stripVTControlCharacters);
  const isChanged = plain.map((line) => CHANGED.test(line));
  const isShown = plain.map((_, index) =>
    isChanged.slice(Math.max(0, index - CONTEXT_LINES), index + CONTEXT_LINES + 1).includes(true),
  );
  const shown: string[] = [];
  for (const [index, line] of plain.entries()) {
    if (shown.length >= DIFF_LINES) {
      shown.push(`… ${plain.length - index} more lines of the diff`);
      break;
    }
    if (!isShown[index]) {
      if (shown.at(-1) !== '…') shown.push('…');
    } else if (line.length <= LINE_LENGTH) shown.push(coloured[index] ?? '');
    else shown.push(excerpt(line, differenceFrom(line, plain[index - 1], plain[index + 1])));
  }
  return shown.join('\n');
}

/** Place of the first difference between a changed line and the line beside it that starts in the other way. */
function differenceFrom(line: string, ...beside: (string | undefined)[]): number {
  const start = (text = '') => CHANGED.exec(text)?.[0] ?? '';
  const other = beside.find((each) => start(each) !== '' && start(each) !== start(line)) ?? '';
  let at = start(line).length;
  while (at < line.length && line[at] === other[at]) at++;
  return at;
}

/** The start and the end of a message, whose middle can be a whole output. */
function shortMessage(message: string): string {
  const lines = message.split('\n').map(startAndEnd);
  const half = MESSAGE_LINES / 2;
  if (lines.length <= MESSAGE_LINES) return lines.join('\n');
  const left = `… ${lines.length - MESSAGE_LINES} more lines`;
  // What was expected comes last: `expect(code, stderr).toBe(0)`.
  return [...lines.slice(0, half), left, ...lines.slice(-half)].join('\n');
}

function startAndEnd(line: string): string {
  if (line.length <= LINE_LENGTH) return line;
  return `${line.slice(0, LINE_LENGTH / 2)} … ${line.slice(-LINE_LENGTH / 2)}`;
}

/** A part of a long line, around a place. */
function excerpt(line: string, at: number): string {
  if (line.length <= LINE_LENGTH) return line;
  const start = Math.max(0, Math.min(at - BEFORE_DIFFERENCE, line.length - LINE_LENGTH));
  const end = start + LINE_LENGTH;
  return `${start > 0 ? '…' : ''}${line.slice(start, end)}${end < line.length ? '…' : ''}`;
}
