/** Mistakes in command lines, and the lines that were probably meant. */
import { UserError } from '../base/errors.js';
import { shellWord } from '../base/text/words.js';

/** A command line as a user can paste it. */
export const pasteable = (words: readonly string[]): string =>
  ['minimind', ...words.map(shellWord)].join(' ');

/** A command line that was probably meant. */
export interface MeantLine {
  /** Its words from the name of the command on. */
  readonly words: readonly string[];
  /** Text before it: `did you mean --context?` */
  readonly lead?: string;
  /** Whether it lacks something that was written. Such a line is the last choice. */
  readonly isShorter?: boolean;
  /** Whether it has a value that the user did not write. */
  readonly hasExample?: boolean;
  /** Whether it is of another command, or of a key that the config may lack: its own mistakes are not those of the user. */
  readonly isElsewhere?: boolean;
  /** Whether it differs in spelling only: every word has one meaning, and nothing is chosen. Such a line runs. */
  readonly isSpelling?: boolean;
  /** Words in it that have to be models. */
  readonly models?: readonly string[];
  /** Words in it that have to be GPUs. */
  readonly gpus?: readonly string[];
}

/** Words of a mistake beside the line that was meant. */
interface Advice {
  /** Advice where no line can be proposed. */
  readonly otherwise?: string | undefined;
  /** Advice in addition to the line. */
  readonly more?: string | undefined;
  /** Whether it is a condition on a line that was not typed, which says nothing about the typed one. */
  readonly isCondition?: boolean;
}

/** A mistake in a command line. Which of the meant lines is proposed is decided in `proposal.ts`, which checks them. */
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

/** The suggestion for a line, or without one. */
export function lineAdvice(line: MeantLine | undefined, advice: Advice): string | undefined {
  const { otherwise, more } = advice;
  if (line === undefined) return more ?? otherwise;
  const written = [line.lead, `write ${pasteable(line.words)}`].filter(Boolean).join(' ');
  return [written, more].filter(Boolean).join(', or ');
}
