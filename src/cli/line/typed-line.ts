/** A command line while it is read. */
import fs from 'node:fs';
import type { Command } from '@oclif/core/command';
import type { UserError } from '../../base/errors.js';
import type { FlagMeaning } from '../foreign/meanings.js';
import { foldedName } from '../foreign/spellings.js';
import { type DeclaredFlag, exampleOf } from './flag-example.js';
import { LineMistake, type MeantLine, pasteable } from './line-mistake.js';

/** Declaration of a command, from its class or from the manifest. */
export type DeclaredCommand = Pick<
  Command.Loadable,
  'id' | 'args' | 'flags' | 'strict' | 'examples'
>;

/** A flag that the command does not know, and its value after `=`. */
export interface GivenFlag {
  readonly at: number;
  readonly name: string;
  /** The name with its dashes. */
  readonly written: string;
  readonly value: string | undefined;
}

/** Meanings of several words together, in lines of other tools. */
interface ToolLines {
  readonly areFields: (typed: TypedLine, at: number) => boolean;
  readonly OF_ADAPTERS: RegExp;
  readonly OF_LORA: RegExp;
  readonly fitOfPlan: (typed: TypedLine) => readonly string[];
  readonly refuseOtherPurpose: (typed: TypedLine) => void;
  readonly wholeLine: (typed: TypedLine, given: GivenFlag) => MeantLine | undefined;
}

/** A value of a flag of another tool, its place, and the number of words that it has with the flag. */
type ValueLines<Value> = (
  typed: TypedLine,
  value: Value,
  at: number,
  length: number,
) => MeantLine[];

/** The same for a number of sequences or tokens, which a meaning converts. */
type CountLines = (
  typed: TypedLine,
  meaning: FlagMeaning,
  own: string | undefined,
  at: number,
  length: number,
) => MeantLine[];

/** Meanings of flags that are more than one flag here. */
interface SpecialLines {
  readonly draftLines: (
    typed: TypedLine,
    value: string,
    given: GivenFlag,
    length: number,
  ) => MeantLine[];
  readonly firstNumber: (
    typed: TypedLine,
    flag: DeclaredFlag,
    value: string,
    at: number,
    length: number,
  ) => MeantLine | undefined;
  readonly hubModelLines: ValueLines<string | undefined>;
  readonly inTokens: CountLines;
  readonly isOnlyModel: (typed: TypedLine, at: number) => boolean;
  readonly lastPart: (typed: TypedLine, given: GivenFlag) => FlagMeaning[];
  readonly linesOfPairs: ValueLines<string | undefined>;
  readonly perStep: CountLines;
  readonly quantizedValue: typeof import('./other-tools/quantized-values.js').quantizedValue;
  readonly unknownFlag: (typed: TypedLine, word: string, at: number) => UserError;
}

/** The words of other tools, which are loaded for a line that needs them. */
export type Meanings = ToolLines &
  SpecialLines &
  Pick<
    typeof import('../foreign/meanings.js'),
    | 'USUAL_GPU'
    | 'flagAdvice'
    | 'flagMeanings'
    | 'hubReference'
    | 'isPreset'
    | 'isSpelling'
    | 'keysNamed'
    | 'linesWithOther'
    | 'missingModel'
    | 'modelAdvice'
    | 'modelWithWords'
    | 'namesInPath'
    | 'nearType'
    | 'otherNames'
    | 'pairsIn'
    | 'typeFlag'
    | 'valueAdvice'
    | 'writtenFlag'
  >;

/** A line with a word that can be one of another tool, read without these words. */
export class NeedsMeanings extends Error {}

/** Names of first arguments that are models. */
export const MODEL_ARGUMENTS: ReadonlySet<string> = new Set([
  'file',
  'model',
  'config',
  'path',
  'a',
  'preset',
]);

/** Flags of other tools that name the model of a line. */
const MODEL_FLAG =
  /^(?:-m|--(?:model|model[-_](?:path|name[-_]or[-_]path|id)|base[-_]model))(?:=|$)/;

/** Whether a word is a number, or the truth of a switch. */
export const isPlainValue = (word: string): boolean =>
  /^(?:-?\d[\d._,]*[kmbt]?|true|false|on|off|auto|all)$/i.test(word);

/** File of a preset in this package. */
const PRESET_FILE = /\bconfigs\/([\w-]+\/[\w.-]+)\.yaml/g;

/** Name of a command as users write it. */
export const spaced = (id: string) => id.replaceAll(':', ' ');

/**
 * A line as the user typed it, as far as it is read, and corrected lines of it. Reading replaces words by the spellings
 * that the command declares.
 */
export class TypedLine {
  readonly command: DeclaredCommand;
  readonly others: readonly DeclaredCommand[];
  readonly flags: readonly DeclaredFlag[];
  readonly arguments: { readonly word: string; readonly at: number }[] = [];
  /** Position of each given flag in `words`. */
  readonly given = new Map<string, number>();
  readonly #loaded: Meanings | undefined;
  /** Whether another tool has the words: its flags without a counterpart are left out. */
  readonly isOfTool: boolean;
  words: string[];

  constructor(
    command: DeclaredCommand,
    words: readonly string[],
    others: readonly DeclaredCommand[],
    meanings: Meanings | undefined,
    isOfTool: boolean,
  ) {
    this.isOfTool = isOfTool;
    this.#loaded = meanings;
    this.command = command;
    this.others = others;
    this.flags = Object.values(command.flags);
    this.words = [...words];
  }

  /** @throws NeedsMeanings where they are not loaded. */
  get meanings(): Meanings {
    if (this.#loaded === undefined) throw new NeedsMeanings();
    return this.#loaded;
  }

  /** Name of the command as users write it. */
  get name(): string {
    return spaced(this.command.id);
  }

  /** Name of the first argument of the command; empty without one. */
  get firstArgument(): string {
    return Object.keys(this.command.args)[0] ?? '';
  }

  /** Whether the arguments and flags are in a plan that another command line has written. */
  get isPlanned(): boolean {
    return this.given.has('plan') && !this.given.has('parts');
  }

  /** Whether a flag is given or has a default. */
  isSet(name: string): boolean {
    return this.given.has(name) || this.command.flags[name]?.default !== undefined;
  }

  /** Whether a word is a flag of the command. */
  isFlag(word: string): boolean {
    if (word.startsWith('--')) {
      const name = foldedName(word.slice(2).split('=', 1)[0] ?? '');
      return this.flags.some((flag) => foldedName(flag.name) === name);
    }
    return /^-[a-z]$/i.test(word) && this.flags.some(({ char }) => char === word[1]);
  }

  /** Whether no word, or a flag, is at this position. */
  isValueMissing(at: number): boolean {
    const word = this.words[at];
    // The word can be a flag of another tool.
    return word === undefined || this.isFlag(word) || /^--?[a-z]/i.test(word);
  }

  /** Whether the word after a flag without a counterpart is its value: a number, or no argument that is missing. */
  isLooseValue(at: number): boolean {
    const word = this.words[at];
    if (word === undefined) return false;
    if (isPlainValue(word)) return true;
    const isComplete = this.arguments.length >= Object.keys(this.command.args).length;
    const isMore = this.isOfTool || isComplete;
    // A folder that is there can be the model, unless another word is: `--allowed-local-media-path /`.
    const hasModel = isComplete || this.words.some((each) => MODEL_FLAG.test(each));
    const canBeArgument = fs.existsSync(word) && !(this.isOfTool && hasModel);
    return isMore && !word.startsWith('-') && !canBeArgument;
  }

  /** Whether the values of a flag can be written with commas between them. */
  canBeList(name: string): boolean {
    return (this.command.flags[name] as { delimiter?: string } | undefined)?.delimiter === ',';
  }

  /** Number of words of a flag that was read. */
  lengthOf({ type }: DeclaredFlag, at: number): number {
    return type === 'boolean' || this.words[at]?.includes('=') ? 1 : 2;
  }

  /** The flag with a value right before this position; empty without one. */
  flagBefore(at: number): { name: string; value: string; length: number } {
    const [, inlineName, inline] = /^--([\w-]+)=(.*)$/s.exec(this.words[at - 1] ?? '') ?? [];
    if (inlineName !== undefined) return { name: inlineName, value: inline ?? '', length: 1 };
    const [, name = ''] = /^--([\w-]+)$/.exec(this.words[at - 2] ?? '') ?? [];
    if (this.command.flags[name]?.type !== 'option') return { name: '', value: '', length: 0 };
    return { name, value: this.words[at - 1] ?? '', length: 2 };
  }

  /** The mistake with its corrected lines; `otherwise` is the advice without a line, `more` follows the lines. */
  mistake(
    message: string,
    lines: readonly MeantLine[],
    otherwise?: string,
    more?: string,
  ): LineMistake {
    return new LineMistake(message, lines, { otherwise, more });
  }

  /** A line of the command with these words. */
  lineOf(words: readonly string[]): MeantLine {
    return { words: [...this.name.split(' '), ...words] };
  }

  /** The line with other words at `at`. */
  corrected(at: number, words: readonly string[], length = 1): MeantLine {
    return this.lineOf(this.words.toSpliced(at, length, ...words));
  }

  /** The line with these flags at its end, each with an example of its value. */
  added(...flags: readonly (DeclaredFlag | undefined)[]): MeantLine {
    const words = flags.flatMap((flag) => {
      if (flag === undefined) return [];
      return [`--${flag.name}`, ...(flag.type === 'option' ? [exampleOf(flag)] : [])];
    });
    return { ...this.corrected(this.words.length, words), hasExample: true };
  }

  /** The first example of the command's help; its usage, if the example contains files of this package. */
  get example(): string {
    const [first] = this.command.examples ?? [];
    const text = typeof first === 'string' ? first : (first?.command ?? '');
    const line = text
      .replace('<%= config.bin %>', 'minimind')
      .replace('<%= command.id %>', this.name)
      .replaceAll(PRESET_FILE, '$1');
    if (line !== '' && !line.includes('fixtures/')) return `write it as in ${line}`;
    const names = Object.values(this.command.args).map(({ name }) => name.toUpperCase());
    return `write it as in ${pasteable([...this.name.split(' '), ...names])}`;
  }
}
