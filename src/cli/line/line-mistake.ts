/** Mistakes in command lines, and corrected lines that the user probably meant. */
import { UserError } from '../../base/errors.js';
import { shellWord } from '../../base/text/shell-words.js';

/** A command line as a user can paste it. */
export const pasteable = (words: readonly string[]): string =>
  ['minimind', ...words.map(shellWord)].join(' ');

/** A corrected command line that the user probably meant. */
export interface MeantLine {
  /** Its words from the name of the command on. */
  readonly words: readonly string[];
  /** Text before it: `did you mean --context?` */
  readonly lead?: string;
  /** Words of the user that are left out, with the reason: `--port 8000 is not needed`. */
  readonly leftOut?: readonly string[];
  /** Whether it lacks a part that the user wrote. Such a line is the last choice. */
  readonly isShorter?: boolean;
  /** Whether it has a value that the user did not write. */
  readonly hasExample?: boolean;
  /**
   * Whether it is a line of another command, or uses a key that the config may lack: its own mistakes are not the
   * user's.
   */
  readonly isElsewhere?: boolean;
  /** Whether it differs in spelling only: every word has one meaning, and nothing is chosen. Such a line runs. */
  readonly isSpelling?: boolean;
  /** Whether it is a line of another tool. What has no counterpart is left out of it, and said. */
  readonly isOfTool?: boolean;
  /** Words in it that have to be models. */
  readonly models?: readonly string[];
  /** Words in it that must be GPUs. */
  readonly gpus?: readonly string[];
}

/** Advice on a mistake in addition to a corrected line. */
interface Advice {
  /** Advice if no line can be proposed. */
  readonly otherwise?: string | undefined;
  /** Advice in addition to the line. */
  readonly more?: string | undefined;
  /** Whether it is a condition on a line that was not typed, which says nothing about the typed one. */
  readonly isCondition?: boolean;
  /** Whether it is what is wrong if none of its lines can be read: a model that is not there. */
  readonly isCause?: boolean;
}

/** A mistake in a command line. `proposal.ts` checks the corrected lines and decides which one is proposed. */
export class LineMistake extends UserError {
  /** The most likely line first. */
  readonly lines: readonly MeantLine[];
  readonly advice: Advice;

  constructor(message: string, lines: readonly MeantLine[], advice: Advice = {}) {
    super('usage', message, { suggestion: lineAdvice(lines[0], advice) });
    this.lines = lines;
    this.advice = advice;
  }
}

/** The error as what is wrong with a line, whatever its other words mean. */
export const causeOf = ({ message, suggestion }: UserError): LineMistake =>
  new LineMistake(message, [], { otherwise: suggestion, isCause: true });

/** The text that the parser of oclif puts around the message of a flag's own parser. */
const WRAPPING = /^Parsing --\S+ \n\t(.*)\nSee more help with --help$/s;

/** The error with the message of the flag's parser alone. */
export function withoutParserText(error: UserError): UserError {
  const own = WRAPPING.exec(error.message)?.[1];
  if (own !== undefined) error.message = own;
  return error;
}

/** The suggestion for a line, or the advice without one. */
export function lineAdvice(line: MeantLine | undefined, advice: Advice): string | undefined {
  const { otherwise, more } = advice;
  if (line === undefined) return more ?? otherwise;
  const { lead, leftOut = [], words } = line;
  const without = leftOut.length > 0 && `${leftOut.join(', ')}:`;
  const written = [lead, without, `write ${pasteable(words)}`].filter(Boolean).join(' ');
  return [written, more].filter(Boolean).join(', or ');
}
