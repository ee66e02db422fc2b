/** Problems and errors, for people at a terminal (stderr) and for programs. */
import type { ChalkInstance } from 'chalk';
import type { Problem, Severity, UserError } from '../../base/errors.js';
import { printable } from '../../base/text/escape.js';
import { shortened } from '../../base/text/words.js';
import { colours } from '../render/colours.js';
import { MOST_MESSAGE } from './error-json.js';
import { clip, graphemes, textWidth, usableWidth, wrap } from './layout.js';
import type { RenderOptions } from './report.js';

const INDENT = '  ';

const SEVERITY_COLOURS = {
  error: (chalk, text) => chalk.red(text),
  warning: (chalk, text) => chalk.magenta(text),
} as const satisfies Record<Severity, (chalk: ChalkInstance, text: string) => string>;

/** The problems one after the other, ending with a newline; empty without problems. */
export function problemsText(problems: readonly Problem[], options: RenderOptions): string {
  const paper = paperFor(options);
  return stack(problems.map((problem) => problemLines(problem, paper)));
}

/** Full text of an error: message, problems and suggestion. Ends with a newline. */
export function errorText(error: UserError, options: RenderOptions): string {
  const paper = paperFor(options);
  // The message may have several lines; indentation prevents them from looking like another error.
  const [message = '', ...details] = shortened(error.message, MOST_MESSAGE).split('\n');
  const head = [
    ...headLines('error', message, paper),
    ...details.flatMap((line) => wrap(INDENT + printable(line), paper.width, INDENT)),
  ];
  const suggestion = suggestionLines(error.suggestion, paper);
  if (error.problems.length === 0) return stack([[...head, ...suggestion]]);
  const problems = error.problems.map((problem) => problemLines(problem, paper));
  // The problem already names the refused file.
  if (error.code === 'refused-file' && problems.length === 1)
    return stack([...problems, suggestion]);
  return stack([head, ...problems, suggestion]);
}

/** Output medium. */
interface Paper {
  readonly width: number;
  readonly chalk: ChalkInstance;
}

function paperFor({ width, colourLevel }: RenderOptions): Paper {
  return { width: usableWidth(width), chalk: colours(colourLevel) };
}

/** Blocks of lines, separated by a blank line unless each is a single line. */
function stack(blocks: readonly (readonly string[])[]): string {
  const filled = blocks.filter((lines) => lines.length > 0);
  if (filled.length === 0) return '';
  const gap = filled.every((lines) => lines.length === 1) ? '\n' : '\n\n';
  return `${filled.map((lines) => lines.join('\n')).join(gap)}\n`;
}

function problemLines(problem: Problem, paper: Paper): string[] {
  const { severity, message, suggestion, rule } = problem;
  const said = [problemPlace(problem), pathOf(problem), shortened(message, MOST_MESSAGE)].filter(
    (part) => part !== undefined,
  );
  const named = rule === undefined ? '' : ` [${rule}]`;
  return [
    ...headLines(severity, said.join(': ') + named, paper),
    ...excerptLines(problem, paper),
    ...suggestionLines(suggestion, paper),
  ];
}

/** `file:3:17`; `--set model.num_layers=x` for sources without lines. */
function problemPlace({ file, line, column, excerpt }: Problem): string {
  if (line === undefined) return excerpt === undefined ? file : `${file} ${excerpt}`;
  return [file, line, column].filter((part) => part !== undefined).join(':');
}

/** The path, unless the location already contains it. */
function pathOf({ path, line, excerpt }: Problem): string | undefined {
  const isInPlace = line === undefined && excerpt?.startsWith(`${path}=`);
  return isInPlace ? undefined : path;
}

function headLines(severity: Severity, text: string, { width, chalk }: Paper): string[] {
  const label = `${severity}:`;
  const [first = '', ...rest] = wrap(`${label} ${printable(text)}`, width, INDENT);
  return [SEVERITY_COLOURS[severity](chalk, label) + first.slice(label.length), ...rest];
}

function suggestionLines(suggestion: string | undefined, { width, chalk }: Paper): string[] {
  if (suggestion === undefined) return [];
  const [first = '', ...rest] = wrap(`${INDENT}→ ${printable(suggestion)}`, width, INDENT + INDENT);
  // Only the arrow has a colour: cyan text is illegible on white.
  return [first.replace('→', chalk.cyan('→')), ...rest];
}

/** Minimum useful width of an excerpt. */
const NARROWEST_EXCERPT = 8;

/** The line of input after its number, and a caret below its column. */
function excerptLines({ line, column, excerpt }: Problem, { width, chalk }: Paper): string[] {
  if (line === undefined || excerpt === undefined) return [];
  const gutter = `${INDENT}${line} │`;
  const room = width - textWidth(gutter) - 1;
  if (room < NARROWEST_EXCERPT) return [];
  const shown = cutAround(printable(excerpt).trimEnd(), caretOffset(excerpt, column), room);
  const lines = [`${chalk.dim(gutter)} ${shown.text}`];
  if (shown.caret !== undefined) {
    const margin = '│'.padStart(textWidth(gutter));
    lines.push(`${chalk.dim(margin)} ${' '.repeat(shown.caret)}${chalk.red('^')}`);
  }
  return lines.map((each) => each.trimEnd());
}

/**
 * One character of the input in an excerpt, whose invisible characters may be escaped: `\t` is then one character. (A
 * backslash and a `t` in the input look the same; the tab is more likely to the left of an error.)
 */
const INPUT_CHARACTER = /\\(?:[nrt]|x[\da-f]{2}|u[\da-f]{4}|u\{[\da-f]+\})|./gsu;

/**
 * Terminal columns before the marked character in the printed excerpt. Undefined without a column, or when the
 * excerpt's beginning was cut off.
 */
function caretOffset(excerpt: string, column: number | undefined): number | undefined {
  if (column === undefined || excerpt.startsWith('…')) return undefined;
  const characters = excerpt.match(INPUT_CHARACTER) ?? [];
  return textWidth(printable(characters.slice(0, column - 1).join('')));
}

/**
 * Part of a text, at most `room` columns, that contains the caret, and the caret's position in it; cuts are shown as
 * `…`.
 */
function cutAround(
  text: string,
  offset: number | undefined,
  room: number,
): { text: string; caret: number | undefined } {
  // Spaces at the end of a line are not shown.
  const caret = offset === undefined ? undefined : Math.min(offset, textWidth(text));
  if (Math.max(textWidth(text), (caret ?? 0) + 1) <= room) return { text, caret };
  const characters = graphemes(text);
  let dropped = 0;
  let count = 0;
  // Cuts so that the caret is in the middle; cuts nothing when it is in the first half.
  while ((caret ?? 0) - dropped > room / 2 && count < characters.length) {
    dropped += textWidth(characters[count] ?? '');
    count++;
  }
  const start = count > 0 ? '…' : '';
  const rest = start + characters.slice(count).join('');
  return {
    text: textWidth(rest) <= room ? rest : `${clip(rest, room - 1)}…`,
    caret: caret === undefined ? undefined : caret - dropped + start.length,
  };
}
