/** Reads a command line against the declared arguments and flags of its command, before the command library does. */
import type { Command } from '@oclif/core/command';
import { nearest } from '../config/nearest.js';
import { quote } from '../config/quote.js';
import { type UserError, usageError } from '../errors.js';
import { counted, joined, shellWord } from '../text/words.js';
import { foldedName, nearestFlag, nearestValue } from './spellings.js';

/** Declaration of a command, from its class or from the manifest. */
export type DeclaredCommand = Pick<
  Command.Loadable,
  'id' | 'args' | 'flags' | 'strict' | 'examples'
>;

type DeclaredFlag = DeclaredCommand['flags'][string];

/**
 * The words of a command line with the spellings that the command declares: flags and choices in any case, and by
 * their common names.
 * @param words The words after the command's name.
 * @param others All commands, which may have a flag that this one lacks.
 * @throws UserError for the first mistake, with the corrected command line where there is one.
 */
export function readCommandLine(
  words: readonly string[],
  command: DeclaredCommand,
  others: readonly DeclaredCommand[],
): string[] {
  const line = new CommandLine(command, words, others);
  line.read();
  line.checkArguments();
  line.checkAnswerFile();
  line.checkRelations();
  return [...line.words];
}

/** A command line as a user can paste it. */
export const pasteable = (words: readonly string[]): string =>
  ['minimind', ...words.map(shellWord)].join(' ');

/** Endings of artifacts: configs, graphs and tensors. */
const SAVED_ENDING = /\.(?:ya?ml|onnx|safetensors|pt|pth)$/i;

/** More allowed values than these are not listed in an error. */
const MOST_LISTED = 20;

function choicesText(options: readonly string[]): string {
  if (options.length > MOST_LISTED) return `one of ${options.length} values`;
  return options.length > 1 ? `one of ${options.join(', ')}` : options.join();
}

/** Command in a description that lists the allowed values: `(minimind list --details)`. */
const LISTING = /\((minimind [^)]+)\)/;

/** A corrected line, or the command that lists more values than an error does. */
function choiceAdvice(
  { description = '', options = [] }: { description?: string; options?: readonly string[] },
  corrected: string | undefined,
): string | undefined {
  const [, listing] = (options.length > MOST_LISTED && LISTING.exec(description)) || [];
  const both = [corrected, listing && `see ${listing}`];
  return both.filter(Boolean).join(', or ') || undefined;
}

/** A number, which can be an argument or a value; no flag here begins with a digit. */
const isNegativeNumber = (word: string) => /^-\d/.test(word);

class CommandLine {
  readonly #command: DeclaredCommand;
  readonly #others: readonly DeclaredCommand[];
  readonly #flags: readonly DeclaredFlag[];
  readonly #arguments: { readonly word: string; readonly at: number }[] = [];
  /** Places of each given flag in `words`. */
  readonly #given = new Map<string, number>();
  words: string[];

  constructor(
    command: DeclaredCommand,
    words: readonly string[],
    others: readonly DeclaredCommand[],
  ) {
    this.#command = command;
    this.#others = others;
    this.#flags = Object.values(command.flags);
    this.words = [...words];
  }

  read(): void {
    for (let at = 0; at < this.words.length; at++) {
      const word = this.words[at] ?? '';
      if (word === '--') {
        for (let rest = at + 1; rest < this.words.length; rest++) this.#addArgument(rest);
        return;
      }
      if (!word.startsWith('-') || word === '-' || isNegativeNumber(word)) this.#addArgument(at);
      else at = this.#readFlag(word, at);
    }
  }

  /** @returns the place of the last word that belongs to the flag. */
  #readFlag(word: string, at: number): number {
    const isLong = word.startsWith('--');
    const equals = word.indexOf('=');
    const flag = this.#flagOf(word, at);
    // Short flags can be written together: -qo FILE.
    const attached = isLong ? '' : word.slice(2);
    const inline = equals > 0 ? word.slice(equals + 1) : attached || undefined;
    const isRepeated = this.#given.has(flag.name);
    this.#given.set(flag.name, at);
    if (flag.type === 'boolean') return this.#readSwitch(flag, at, isLong ? inline : undefined);
    if (isRepeated && !flag.multiple) {
      throw usageError(
        `--${flag.name}: expected one value, found the flag twice`,
        flag.options || !this.#canBeList(flag.name)
          ? 'write the flag once'
          : 'write all values in one flag, with commas between them',
      );
    }
    const end = inline === undefined ? at + 1 : at;
    const value = inline ?? this.words[end];
    if (value === undefined || (inline === undefined && this.#isFlag(value))) {
      throw usageError(
        `--${flag.name}: expected a value, found ${value === undefined ? 'none' : value}`,
        this.#corrected(at, [`--${flag.name}`, exampleOf(flag)]),
      );
    }
    const meant = flag.options ? this.#choice(flag, value, at, end) : value;
    if (isLong || meant !== value) {
      const written =
        inline === undefined ? [`--${flag.name}`, meant] : [`--${flag.name}=${meant}`];
      this.words.splice(at, end - at + 1, ...written);
    }
    return end;
  }

  #readSwitch(flag: DeclaredFlag, at: number, value: string | undefined): number {
    if (value === undefined) {
      if (this.words[at]?.startsWith('--')) this.words[at] = `--${flag.name}`;
      else this.#checkCluster(at);
      return at;
    }
    const isOff = /^(false|no|off|0)$/i.test(value);
    const isArgument =
      !/^(true|yes|on|1)$/i.test(value) && Object.keys(this.#command.args).length > 0;
    const words = [`--${flag.name}`, ...(isArgument ? [value] : [])];
    throw usageError(
      `--${flag.name}: expected no value, found ${quote(value)}`,
      this.#corrected(at, isOff ? [] : words),
    );
  }

  /** Splits `-qo` into `-q -o`. */
  #checkCluster(at: number): void {
    const word = this.words[at] ?? '';
    if (word.length > 2) this.words.splice(at, 1, word.slice(0, 2), `-${word.slice(2)}`);
  }

  #flagOf(word: string, at: number): DeclaredFlag {
    const name = word.startsWith('--') ? word.slice(2).split('=', 1)[0] : word[1];
    const folded = foldedName(name ?? '');
    const found = word.startsWith('--')
      ? this.#flags.find((flag) => foldedName(flag.name) === folded)
      : this.#flags.find(({ char }) => char === name);
    if (found) return found;
    throw this.#unknownFlag(word, at);
  }

  #unknownFlag(word: string, at: number): UserError {
    const [written = '', ...value] = word.split('=');
    const message = `unknown flag ${quote(written)} of minimind ${this.#name}`;
    const known = this.#flags.filter(({ hidden }) => !hidden).map(({ name }) => name);
    const name = written.replace(/^-+/, '');
    const meant = nearestFlag(name, known) ?? (name.length > 1 ? nearest(name, known) : undefined);
    if (meant !== undefined) {
      const [flag = '', ...more] = meant.split('=');
      const text = [`--${flag}`, ...(more.length > 0 ? more : value)].join('=');
      const declared = this.#command.flags[flag];
      const lacksValue =
        declared?.type === 'option' && !text.includes('=') && this.#isValueMissing(at + 1);
      const words = declared && lacksValue ? [text, exampleOf(declared)] : [text];
      return usageError(message, `did you mean --${flag}? ${this.#corrected(at, words)}`);
    }
    const owner = this.#others.find(({ flags }) => Object.hasOwn(flags, name));
    if (owner) return usageError(message, `${spaced(owner.id)} has a flag of this name`);
    return usageError(message, `minimind ${this.#name} --help lists its flags`);
  }

  #isValueMissing(at: number): boolean {
    const word = this.words[at];
    return word === undefined || this.#isFlag(word);
  }

  #isFlag(word: string): boolean {
    if (word.startsWith('--')) {
      const name = foldedName(word.slice(2).split('=', 1)[0] ?? '');
      return this.#flags.some((flag) => foldedName(flag.name) === name);
    }
    return /^-[a-z]$/i.test(word) && this.#flags.some(({ char }) => char === word[1]);
  }

  /** The choices that a value means; several in a list. */
  #choice(flag: DeclaredFlag, value: string, at: number, end: number): string {
    const { options = [], delimiter } = flag as { options?: string[]; delimiter?: string };
    const items = delimiter === undefined ? [value] : value.split(delimiter);
    const meant = items.map((item) => nearestValue(flag.name, item, options));
    const wrong = meant.indexOf(undefined);
    if (wrong < 0) return meant.join(delimiter);
    const close = nearest(items[wrong] ?? '', options);
    throw usageError(
      `--${flag.name}: expected ${choicesText(options)}, found ${quote(items[wrong] ?? '')}`,
      choiceAdvice(
        { ...flag, options },
        close &&
          this.#corrected(
            at,
            [`--${flag.name}`, items.with(wrong, close).join(delimiter)],
            end - at + 1,
          ),
      ),
    );
  }

  #addArgument(at: number): void {
    const word = this.words[at] ?? '';
    const index = this.#arguments.length;
    this.#arguments.push({ word, at });
    const declared = Object.values(this.#command.args)[index];
    if (!declared?.options) return;
    const meant = nearestValue(declared.name, word, declared.options);
    if (meant !== undefined) {
      this.words[at] = meant;
      return;
    }
    const close = nearest(word, declared.options);
    throw usageError(
      `${declared.name.toUpperCase()}: expected ${choicesText(declared.options)}, found ${quote(word)}`,
      choiceAdvice(declared, close && this.#corrected(at, [close])),
    );
  }

  checkArguments(): void {
    const declared = Object.values(this.#command.args);
    const missing = declared.filter(
      ({ required }, index) => required && !this.#isPlanned && !this.#arguments[index],
    );
    if (missing.length > 0) {
      const names = missing.map(({ name }) => name.toUpperCase()).join(' and ');
      throw usageError(
        `expected ${names}, found ${this.#arguments.length === 0 ? 'no arguments' : counted(this.#arguments.length, 'argument')}`,
        this.#example,
      );
    }
    const extra = this.#arguments[declared.length];
    if (this.#command.strict === false || extra === undefined) return;
    const most = ['no argument', 'one argument'][declared.length] ?? `${declared.length} arguments`;
    throw usageError(
      `minimind ${this.#name}: expected ${most}, found ${quote(extra.word)} as well`,
      this.#corrected(extra.at, []),
    );
  }

  /** Refuses `-o model.onnx` where that file is what `--save` writes: `--output` is the answer. */
  checkAnswerFile(): void {
    const at = this.#given.get('output');
    if (at === undefined || !Object.hasOwn(this.#command.flags, 'save')) return;
    const word = this.words[at] ?? '';
    const isAlone = /^(?:-o|--output)$/.test(word);
    const file = isAlone ? (this.words[at + 1] ?? '') : word.replace(/^(?:-o|--output)=?/, '');
    if (!SAVED_ENDING.test(file)) return;
    const words = this.#given.has('save') ? [] : ['--save', file];
    throw usageError(
      `--output: expected a file for the answer (.json, .csv, .md, .txt), found ${quote(file)}`,
      this.#corrected(at, words, isAlone ? 2 : 1),
    );
  }

  #checkRequired(): void {
    if (this.#isPlanned) return;
    const missing = this.#flags.filter(({ required, name }) => required && !this.#given.has(name));
    if (missing.length === 0) return;
    const names = joined(missing.map(({ name }) => `--${name}`));
    throw usageError(
      `${names} ${missing.length > 1 ? 'are' : 'is'} required`,
      this.#added(...missing),
    );
  }

  checkRelations(): void {
    this.#checkRequired();
    for (const flag of this.#flags) {
      const { name } = flag;
      const at = this.#given.get(name);
      if (at === undefined) continue;
      const needed = flag.dependsOn?.find((each) => !this.#isSet(each));
      if (needed !== undefined) {
        throw usageError(
          `--${name} requires --${needed}`,
          this.#added(this.#command.flags[needed]),
        );
      }
      const choice = alternativesOf(flag);
      if (choice.length > 0 && !choice.some((each) => this.#isSet(each))) {
        const [first = ''] = choice;
        const wanted = choice.map((each) => `--${each}`).join(' or ');
        throw usageError(`--${name} requires ${wanted}`, this.#added(this.#command.flags[first]));
      }
      const other = flag.exclusive?.find(
        (each) => typeof each === 'string' && this.#given.has(each),
      );
      if (typeof other === 'string') {
        throw usageError(
          `--${name} and --${other} cannot be used together`,
          this.#corrected(at, [], this.#lengthOf(flag, at)),
        );
      }
    }
  }

  /** Whether arguments and flags are in the plan that another command line has written. */
  get #isPlanned(): boolean {
    return this.#given.has('plan') && !this.#given.has('parts');
  }

  #isSet(name: string): boolean {
    return this.#given.has(name) || this.#command.flags[name]?.default !== undefined;
  }

  /** Number of words of a flag that was read. */
  #lengthOf({ type }: DeclaredFlag, at: number): number {
    return type === 'boolean' || this.words[at]?.includes('=') ? 1 : 2;
  }

  get #name(): string {
    return spaced(this.#command.id);
  }

  /** The line with other words at `at`. */
  #corrected(at: number, words: readonly string[], length = 1): string {
    return `write ${pasteable([...this.#name.split(' '), ...this.words.toSpliced(at, length, ...words)])}`;
  }

  #added(...flags: readonly (DeclaredFlag | undefined)[]): string {
    const words = flags.flatMap((flag) => {
      if (flag === undefined) return [];
      return [`--${flag.name}`, ...(flag.type === 'option' ? [exampleOf(flag)] : [])];
    });
    return this.#corrected(this.words.length, words);
  }

  /** The first example of the command's help. */
  get #example(): string {
    const [first] = this.#command.examples ?? [];
    const text = typeof first === 'string' ? first : (first?.command ?? '');
    const line = text
      .replace('<%= config.bin %>', 'minimind')
      .replace('<%= command.id %>', this.#name);
    return line === '' ? `see minimind ${this.#name} --help` : `write it as in ${line}`;
  }

  #canBeList(name: string): boolean {
    return (this.#command.flags[name] as { delimiter?: string } | undefined)?.delimiter === ',';
  }
}

const spaced = (id: string) => id.replaceAll(':', ' ');

/** Examples for the values in the help. A value that only the user can name, such as FILE, has none. */
const EXAMPLES: Readonly<Record<string, string>> = {
  N: '1',
  K: '5',
  NUMBER: '0.9',
  SHARE: '0.9',
  RATE: '1e-5',
  STEPS: '100',
  'N,N': '1,2',
  'RATIO,RATIO': '0.5,1',
  'X,X': '-1,0,0.5',
  SIZE: '24GB',
  TYPE: 'bf16',
  RULE: 'nanogpt',
  IDS: '1,2,3',
  'KEY=VALUE': 'model.num_layers=24',
  'MODEL|ngram:N': 'ngram:3',
  'K|auto': 'auto',
  'auto|none|ID': 'auto',
  'mean|first|layer:N': 'mean',
  'NAME|N': '1',
};

/** Example in a description: `as in 8,9`. A default that is `as in the file` is none. */
const EXAMPLE = /(?<!\[default: )\bas in (?!the\b)([^\s,;)\]]+)/;

/** Default in a description that is a value, not the beginning of a phrase. */
const DEFAULT = /\[default: (\d\S*?)(?:[,;] |\])/;

/** A value that a flag accepts: its first choice, or the example or default of its description, or one for its kind. */
function exampleOf(flag: DeclaredFlag): string {
  const {
    options,
    helpValue = 'VALUE',
    description = '',
  } = flag as {
    options?: readonly string[];
    helpValue?: string;
    description?: string;
  };
  const example = EXAMPLE.exec(description)?.[1];
  const preset = helpValue === 'N' ? undefined : DEFAULT.exec(description)?.[1];
  return options?.[0] ?? example ?? preset ?? EXAMPLES[helpValue] ?? helpValue;
}

/** Names of flags of which a flag needs at least one. */
const alternativesOf = ({ relationships = [] }: DeclaredFlag): string[] =>
  relationships
    .filter(({ type }) => type === 'some')
    .flatMap(({ flags }) => flags.filter((each) => typeof each === 'string'));
