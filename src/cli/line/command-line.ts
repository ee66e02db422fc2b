/** Reads a command line against the declared arguments and flags of its command, before the command library does. */
import fs from 'node:fs';
import type { Command } from '@oclif/core/command';
import { usageError } from '../../base/errors.js';
import { parseDtype } from '../../base/tensor/dtype.js';
import { counted, joined } from '../../base/text/words.js';
import { misspelled, nearest, nearestWithDigits } from '../../config/nearest.js';
import { quote } from '../../config/quote.js';
import type { FlagMeaning } from '../foreign/meanings.js';
import { foldedName, nearestValue } from '../foreign/spellings.js';
import { type DeclaredFlag, exampleOf, isPlaceholder } from './flag-example.js';
import { LineMistake, type MeantLine, pasteable } from './line-mistake.js';

/** Declaration of a command, from its class or from the manifest. */
export type DeclaredCommand = Pick<
  Command.Loadable,
  'id' | 'args' | 'flags' | 'strict' | 'examples'
>;

/** The words of other tools, which are loaded for a line that needs them. */
type Meanings = Pick<
  typeof import('../foreign/meanings.js'),
  | 'flagAdvice'
  | 'flagMeanings'
  | 'hubReference'
  | 'isSpelling'
  | 'keysNamed'
  | 'otherNames'
  | 'pairsIn'
  | 'valueAdvice'
>;

/** A line with a word that can be one of another tool, read without these words. */
export class NeedsMeanings extends Error {}

/**
 * The words of a command line with the spellings that the command declares: flags and choices in any case, and by
 * their common names.
 * @param words The words after the command's name.
 * @param others All commands, which may have a flag that this one lacks.
 * @param isOfTool Whether another tool has the words: its flags without a counterpart are left out.
 * @throws UserError for the first mistake, with the corrected command line where there is one; NeedsMeanings.
 */
export function readCommandLine(
  words: readonly string[],
  command: DeclaredCommand,
  others: readonly DeclaredCommand[],
  meanings?: Meanings,
  isOfTool = false,
): string[] {
  const line = new CommandLine(command, words, others, meanings, isOfTool);
  line.read();
  line.checkArguments();
  line.checkAnswerFile();
  line.checkRelations();
  return [...line.words];
}

/** Endings of artifacts: configs, graphs and tensors. */
const SAVED_ENDING = /\.(?:ya?ml|onnx|gguf|safetensors|pt|pth|bin)$/i;

/** Endings of answers; another file of `--output` without an argument for it is an artifact. */
const ANSWER_ENDING = /\.(?:json|csv|md|markdown|txt|log|html|svg|sh|sbatch|ya?ml)$|^-$/i;

/** Maximum allowed values that an error lists. */
const MOST_LISTED = 24;

function choicesText(options: readonly string[]): string {
  if (options.length > MOST_LISTED) return `one of ${options.length} values`;
  return options.length > 1 ? `one of ${options.join(', ')}` : options.join();
}

/** Command in a description that lists the allowed values: `(minimind list --details)`. */
const LISTING = /\((minimind [^)]+)\)/;

/** The command that lists more values than an error does. */
function listingOf({ description = '', options = [] }: Listed): string | undefined {
  const [, listing] = (options.length > MOST_LISTED && LISTING.exec(description)) || [];
  return listing && `see ${listing}`;
}

interface Listed {
  readonly description?: string;
  readonly options?: readonly string[];
}

/** Flags whose values add up when they are given several times. */
const JOINED: ReadonlySet<string> = new Set(['gpu']);

const TRUE = /^(?:true|yes|on|1)$/i;
const FALSE = /^(?:false|no|off|0)$/i;

/** A value of a key in a config: a number, a switch, or the name of a choice. */
const SETTING = /^(?:-?[\d.]+(?:e[-+]?\d+)?|[a-z_]+)$/i;

/** A number, which can be an argument or a value; no flag here begins with a digit. */
const isNegativeNumber = (word: string) => /^-\d/.test(word);

class CommandLine {
  readonly #command: DeclaredCommand;
  readonly #others: readonly DeclaredCommand[];
  readonly #flags: readonly DeclaredFlag[];
  readonly #arguments: { readonly word: string; readonly at: number }[] = [];
  /** Position of each given flag in `words`. */
  readonly #given = new Map<string, number>();
  readonly #loaded: Meanings | undefined;
  readonly #isOfTool: boolean;
  words: string[];

  constructor(
    command: DeclaredCommand,
    words: readonly string[],
    others: readonly DeclaredCommand[],
    meanings: Meanings | undefined,
    isOfTool: boolean,
  ) {
    this.#isOfTool = isOfTool;
    this.#loaded = meanings;
    this.#command = command;
    this.#others = others;
    this.#flags = Object.values(command.flags);
    this.words = [...words];
  }

  /** @throws NeedsMeanings where they are not loaded. */
  get #meanings(): Meanings {
    if (this.#loaded === undefined) throw new NeedsMeanings();
    return this.#loaded;
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

  /** @returns The position of the last word that belongs to the flag. */
  #readFlag(word: string, at: number): number {
    const isLong = word.startsWith('--');
    const equals = word.indexOf('=');
    this.#refuseLongWord(word, at);
    const flag = this.#flagOf(word, at);
    // Short flags can be written together: -qo FILE.
    const attached = isLong ? '' : word.slice(2);
    const inline = equals > 0 ? word.slice(equals + 1) : attached || undefined;
    const isRepeated = this.#given.has(flag.name);
    this.#given.set(flag.name, at);
    if (flag.type === 'boolean') return this.#readSwitch(flag, at, isLong ? inline : undefined);
    if (isRepeated && !flag.multiple && JOINED.has(flag.name)) {
      const joined = this.#joined(flag, at, inline);
      if (joined !== undefined) return joined;
    }
    if (isRepeated && !flag.multiple) {
      const again = this.#repeated(flag, at, inline ?? this.words[at + 1]);
      if (again !== undefined) throw again;
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
      const example = exampleOf(flag);
      throw this.#mistake(
        `--${flag.name}: expected a value, found ${value === undefined ? 'none' : value}`,
        isPlaceholder(example)
          ? []
          : [{ ...this.#corrected(at, [`--${flag.name}`, example]), hasExample: true }],
        `the flag is --${flag.name} ${example}`,
      );
    }
    this.#checkSetting(flag, value, at, end);
    this.#checkKind(flag, value, at, inline);
    const meant = flag.options ? this.#choice(flag, value, at, end) : value;
    if (isLong || meant !== value) {
      const written =
        inline === undefined ? [`--${flag.name}`, meant] : [`--${flag.name}=${meant}`];
      this.words.splice(at, end - at + 1, ...written);
    }
    return end;
  }

  /** Joins a value with that of the same flag before: `--gpu 5090 --gpu 3090` is `--gpu 5090+3090`. */
  #joined(flag: DeclaredFlag, at: number, inline: string | undefined): number | undefined {
    const value = inline ?? this.words[at + 1];
    if (value === undefined || value === '' || (inline === undefined && this.#isFlag(value))) {
      return undefined;
    }
    const place = this.words.findIndex((word) => word.split('=', 1)[0] === `--${flag.name}`);
    const isInline = this.words[place]?.includes('=') ?? false;
    const [own, more] = [isInline ? place : place + 1, `+${value}`];
    this.words[own] = `${this.words[own] ?? ''}${more}`;
    this.words.splice(at, inline === undefined ? 2 : 1);
    this.#given.set(flag.name, place);
    return at - 1;
  }

  /** The mistake of a flag that is given twice with the same value; undefined for other values. */
  #repeated(flag: DeclaredFlag, at: number, value: string | undefined): LineMistake | undefined {
    const before = this.words.slice(0, at);
    const place = before.findLastIndex((word) => word.split('=', 1)[0] === `--${flag.name}`);
    const [, own = this.words[place + 1]] = this.words[place]?.split(/=(.*)/s) ?? [];
    if (value === undefined || value !== own) return undefined;
    return this.#mistake(`--${flag.name}: expected one value, found the flag twice`, [
      { ...this.#corrected(at, [], this.#lengthOf(flag, at)), isSpelling: true },
    ]);
  }

  /** Refuses a value of another kind that a flag of this name has in other tools: `--gpus h100:8`, `--tasks mmlu`. */
  #checkKind(flag: DeclaredFlag, value: string, at: number, inline: string | undefined): void {
    const { helpValue = '', options } = flag as Option;
    if (options !== undefined || !NUMERIC.test(helpValue) || /^[-\d.~]|^auto$/.test(value)) return;
    const given = { at, value: inline, name: flag.name, written: `--${flag.name}` };
    const lines = this.#meantLines(given).map((line) => ({ ...line, isSpelling: false }));
    const advice = this.#meanings.flagAdvice(flag.name);
    if (lines.length === 0 && advice === undefined) return;
    throw this.#mistake(
      `--${flag.name}: expected ${helpValue}, found ${quote(value)}`,
      lines,
      advice,
    );
  }

  #readSwitch(flag: DeclaredFlag, at: number, value: string | undefined): number {
    const next = this.words[at + 1] ?? '';
    if (value === undefined && /^(?:true|false)$/i.test(next)) {
      const words = TRUE.test(next) ? [`--${flag.name}`] : [];
      throw this.#mistake(`--${flag.name}: expected no value, found ${quote(next)}`, [
        { ...this.#corrected(at, words, 2), isSpelling: true },
      ]);
    }
    if (value === undefined) {
      if (this.words[at]?.startsWith('--')) this.words[at] = `--${flag.name}`;
      else this.#checkCluster(at);
      return at;
    }
    const name = `--${flag.name}`;
    const isTruth = TRUE.test(value) || FALSE.test(value);
    const lines: MeantLine[] = [
      { ...this.#corrected(at, FALSE.test(value) ? [] : [name]), isSpelling: isTruth },
    ];
    if (!isTruth && Object.keys(this.#command.args).length > 0) {
      const others = this.#arguments.map((each) => each.at);
      const alone = this.words.with(at, name).toSpliced(at + 1, 0, value);
      lines.splice(0, 1, this.#line(alone.filter((_, index) => !others.includes(index))), {
        ...this.#corrected(at, [name]),
        isShorter: true,
      });
    }
    throw this.#mistake(`${name}: expected no value, found ${quote(value)}`, lines);
  }

  /** Refuses `--set key value`, whose parts belong together. */
  #checkSetting(flag: DeclaredFlag, value: string, at: number, end: number): void {
    if ((flag as { helpValue?: string }).helpValue !== 'KEY=VALUE' || value.includes('=')) return;
    const next = this.words[end + 1];
    const isValue = next !== undefined && !this.#isFlag(next);
    if (!isValue) return;
    throw this.#mistake(`--${flag.name}: expected KEY=VALUE, found ${quote(value)}`, [
      this.#corrected(at, [`--${flag.name}`, `${value}=${next}`], end + 2 - at),
    ]);
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

  /** Refuses `-ot RULE` of llama.cpp, which is no `-o` with the file `t`. */
  #refuseLongWord(word: string, at: number): void {
    if (!/^-[a-z]{2,4}$/.test(word) || !this.#isFlag(word.slice(0, 2))) return;
    const isCluster = [...word.slice(1)].every((each) => this.#isFlag(`-${each}`));
    if (isCluster || this.#meanings.flagMeanings(word.slice(1), this.#command.id).length === 0)
      return;
    throw this.#unknownFlag(word, at);
  }

  #unknownFlag(word: string, at: number): LineMistake {
    const [written = '', ...inline] = word.split('=');
    const message = `unknown flag ${quote(written)} of minimind ${this.#name}`;
    const name = written.replace(/^-+/, '');
    const value = inline.length > 0 ? inline.join('=') : undefined;
    const given = { at, value, name, written };
    const lines = [
      ...this.#meantLines(given).map((line) => ({ ...line, isOfTool: true })),
      ...this.#withoutNo(name, at),
      ...this.#misspelled(given),
      ...this.#asSetting(given),
      ...this.#leftOut(given),
      ...this.#ofOtherCommands(name),
    ];
    const owners = this.#others
      .filter(({ flags }) => Object.hasOwn(flags, name))
      .map(({ id }) => spaced(id));
    const some = joined(owners.slice(0, 3));
    return this.#mistake(
      message,
      lines,
      this.#meanings.flagAdvice(name) ??
        this.#meantFlag(name) ??
        (owners.length > 0
          ? `${some} ${owners.length > 1 ? 'have' : 'has'} a flag of this name`
          : `minimind ${this.#name} --help lists its flags`),
    );
  }

  /** The flag that a name of another tool means, for a value of another kind. */
  #meantFlag(name: string): string | undefined {
    const [flag] = this.#meanings
      .flagMeanings(name, this.#command.id)
      .flatMap(({ name: own, value }) => {
        const found = value === undefined ? this.#command.flags[own] : undefined;
        return found === undefined || found.hidden ? [] : [found];
      });
    return (
      flag && `the flag is --${flag.name}${flag.type === 'option' ? ` ${exampleOf(flag)}` : ''}`
    );
  }

  /** Lines with the meanings of a flag's name in other tools. The only one that keeps its value is a matter of spelling. */
  #meantLines(given: GivenFlag): MeantLine[] {
    const qlora = this.#asQlora();
    if (qlora) return [qlora];
    const meanings = this.#meanings
      .flagMeanings(given.name, this.#command.id)
      .filter(({ name }) => name !== given.name || `--${name}` !== given.written);
    // bf16 is a type of the weights in serving, and of the arithmetic in training.
    const isTraining = this.words.some((word) => OF_TRAINING.test(word));
    if (isTraining) {
      const isOfTraining = ({ name, value }: FlagMeaning) =>
        name === 'precision' || value === 'qlora';
      meanings.sort((a, b) => Number(isOfTraining(b)) - Number(isOfTraining(a)));
    }
    const found = meanings.map((meaning) => ({ meaning, lines: this.#meant(meaning, given) }));
    // To leave a flag out is the last choice.
    const [only, ...others] = found.filter(
      ({ meaning: { name }, lines }) => lines.length > 0 && name !== '' && name !== '<none>',
    );
    if (only && others.length === 0 && this.#meanings.isSpelling(given.name, only.meaning)) {
      return only.lines.map((line) => ({ ...line, isSpelling: !line.hasExample }));
    }
    return found.flatMap(({ lines }) => lines);
  }

  /** The line for adapters on weights in 4 bits, which other tools write as two switches. */
  #asQlora(): MeantLine | undefined {
    const line = this.words.join(' ');
    const isBoth = OF_LORA.test(line) && IN_4_BITS.test(line);
    if (!isBoth || !Object.hasOwn(this.#command.flags, 'for')) return undefined;
    const kept = this.words.filter((word, at) => {
      const before = this.words[at - 1] ?? '';
      const isValue =
        (TRUE.test(word) && IN_4_BITS.test(`${before} `)) ||
        (/^(?:lora|4)$/i.test(word) &&
          [OF_LORA, IN_4_BITS].some((each) => each.test(`${before} ${word}`)));
      const isPurpose = word === '--for' || (before === '--for' && word === 'lora');
      const next = this.words[at + 1] ?? '';
      const isName =
        word.startsWith('-') &&
        [OF_LORA, IN_4_BITS].some((each) => each.test(word) || each.test(`${word} ${next}`));
      return !isValue && !isPurpose && !isName;
    });
    return { ...this.#line([...kept, '--for', 'qlora']), lead: 'did you mean --for?' };
  }

  /** Lines with a flag of another tool as one of this command. */
  #meant(meaning: FlagMeaning, given: GivenFlag): MeantLine[] {
    const { name, value: implied, off, values, onlyFor } = meaning;
    const following = this.words[given.at + 1];
    const next = this.#isValueMissing(given.at + 1) ? undefined : following;
    const found = given.value ?? next;
    const length = found !== undefined && given.value === undefined ? 2 : 1;
    const isLeftOut = name === '' || name === '<none>';
    if (onlyFor !== undefined) {
      // `--model_args pretrained=FILE` is `--pretrained FILE`.
      const [key = '', value] = found?.split(/=(.*)/s) ?? [];
      const isMeant =
        typeof onlyFor === 'string'
          ? foldedName(key) === foldedName(onlyFor)
          : onlyFor.test(found ?? '');
      if (!isMeant || (typeof onlyFor === 'string' && value?.includes(','))) return [];
      if (isLeftOut) return [this.#without(given, name, length)];
      if (value !== undefined && name.startsWith('<')) {
        return this.#asArgument(name.slice(1, -1), value, given.at, length);
      }
      if (!Object.hasOwn(this.#command.flags, name)) return [];
      const words = [`--${name}`, ...(implied === undefined ? [] : [implied])];
      return [{ ...this.#corrected(given.at, words, length), lead: `did you mean --${name}?` }];
    }
    const own = found === undefined ? undefined : (values?.[found.toLowerCase()] ?? found);
    if (name === '<hub>') return this.#asHubModel(own, given.at, length);
    if (name === '<each>') return this.#spread(found, given.at, length);
    if (name === '<shown>') {
      const isShown = this.#command.id === 'profile' && found === undefined;
      const lead = 'the answer shows it without a flag:';
      return isShown ? [{ ...this.#corrected(given.at, []), lead }] : [];
    }
    if (isLeftOut || own === '') {
      const isValue =
        found !== undefined &&
        (given.value !== undefined || meaning.hasValue || this.#isLooseValue(given.at + 1));
      return [this.#without(given, own === '' ? '' : name, isValue ? length : 1)];
    }
    if (meaning.isPerSequence) return this.#perToken(name, own, given.at, length);
    if (meaning.isOfStep) return this.#perStep(name, own, given.at, length);
    if (name.startsWith('<')) return this.#asArgument(name.slice(1, -1), own, given.at, length);
    const flag = this.#command.flags[name];
    if (flag === undefined || flag.hidden) return [];
    const lead = `did you mean --${name}?`;
    const line = (words: readonly string[], replaced: number) => [
      { ...this.#corrected(given.at, words, replaced), lead },
    ];
    if (implied !== undefined) {
      if (own === undefined) return line([`--${name}`, implied], 1);
      if (TRUE.test(own)) return line([`--${name}`, implied], length);
      if (FALSE.test(own)) return line(off === undefined ? [] : [`--${name}`, off], length);
      // The next word can be an argument. If it is the value, another row of the table applies.
      return given.value === undefined ? line([`--${name}`, implied], 1) : [];
    }
    if (flag.type === 'boolean') {
      if (own === undefined || TRUE.test(own)) return line([`--${name}`], own ? length : 1);
      if (FALSE.test(own)) return line([], length);
      return given.value === undefined ? line([`--${name}`], 1) : [];
    }
    if (own === undefined) {
      const example = exampleOf(flag);
      if (flag.options || isPlaceholder(example)) return [];
      return [{ ...this.#corrected(given.at, [`--${name}`, example]), lead, hasExample: true }];
    }
    const value = this.#accepted(flag, own);
    const gpus = name === 'gpu' && value !== undefined ? [value] : [];
    return value === undefined
      ? []
      : line([`--${name}`, value], length).map((each) => ({ ...each, gpus }));
  }

  /** The line without a flag of another tool and its value, and the reason. */
  #without({ at, written, value }: GivenFlag, meaning: string, length: number): MeantLine {
    const words = [
      written,
      ...(value === undefined ? this.words.slice(at + 1, at + length) : [value]),
    ];
    const reason = meaning === '<none>' ? 'has no counterpart here' : 'is not needed';
    const line = this.#corrected(at, [], length);
    // llama-quantize --pure writes one type, which has a name of its own here.
    const isPure = this.#name === 'convert-checkpoint' && foldedName(written.slice(2)) === 'pure';
    if (isPure && line.words.some((word) => MIXTURE.test(word))) {
      return { ...line, words: line.words.map((word) => word.replace(MIXTURE, '$1$2')) };
    }
    return { ...line, leftOut: [`${words.join(' ')} ${reason}`] };
  }

  /** The line of another tool without a flag that nothing here is a counterpart of. */
  #leftOut(given: GivenFlag): MeantLine[] {
    const isKnown = (word: string) => {
      const [, name = ''] = /^--?([a-z][\w.-]+)/i.exec(word) ?? [];
      const isOurs = name === '' || this.#isFlag(`--${name}`);
      return !isOurs && this.#meanings.flagMeanings(name, this.#command.id).length > 0;
    };
    const others = this.words.filter((_, at) => at !== given.at);
    if (!this.#isOfTool && !others.some(isKnown)) return [];
    // A flag of ours says something, and so does one with a counterpart that does not take its value.
    const isOurs = this.#others.some(({ flags }) => Object.hasOwn(flags, given.name));
    const hasCounterpart = this.#meanings
      .flagMeanings(given.name, this.#command.id)
      .some(({ name }) => Object.hasOwn(this.#command.flags, name));
    if ((isOurs && !this.#isOfTool) || hasCounterpart) return [];
    const length = given.value === undefined && this.#isLooseValue(given.at + 1) ? 2 : 1;
    return [this.#without(given, '<none>', length)];
  }

  /** Whether the word after a flag without a counterpart is its value: a number, or no argument that is missing. */
  #isLooseValue(at: number): boolean {
    const word = this.words[at];
    if (word === undefined) return false;
    if (/^(?:-?\d[\d._,]*[kmbt]?|true|false|on|off|auto|all)$/i.test(word)) return true;
    const isComplete = this.#arguments.length >= Object.keys(this.#command.args).length;
    const isMore = this.#isOfTool || isComplete;
    return isMore && !word.startsWith('-') && !fs.existsSync(word);
  }

  /** The line with `-hf ORG/NAME:Q8_0` as a model of the hub, and its type. */
  #asHubModel(value: string | undefined, at: number, length: number): MeantLine[] {
    const [, repository, type] = /^([\w.-]+\/[\w.-]+)(?::(\w+))?$/.exec(value ?? '') ?? [];
    if (repository === undefined) return [];
    const hasType = Object.hasOwn(this.#command.flags, 'dtype') && !this.#given.has('dtype');
    if (type !== undefined && !hasType) return [];
    const typed = type === undefined ? [] : ['--dtype', type];
    const [line] = this.#asArgument('model', `hf:${repository}`, at, length);
    return line === undefined ? [] : [{ ...line, words: [...line.words, ...typed] }];
  }

  /** The line with `--model_args a=1,b=2` as `--a 1 --b 2`. */
  #spread(found: string | undefined, at: number, length: number): MeantLine[] {
    const pairs = this.#meanings.pairsIn(found ?? '', this.words[at] ?? '');
    if (pairs.length === 0 || pairs.some(([, value]) => !value)) return [];
    const words = pairs.flatMap(([key = '', value = '']) => [`--${key}`, value]);
    const line = this.#corrected(at, words, length);
    const [kind] = this.#arguments;
    // In `--model hf --model_args pretrained=FILE`, hf is a kind of model.
    if (kind === undefined || !pairs.some(([key]) => key === 'pretrained')) return [line];
    const place = line.words.indexOf(kind.word, this.#name.split(' ').length);
    return [
      { words: line.words.toSpliced(place, 1), leftOut: [`--model ${kind.word} is not needed`] },
    ];
  }

  /** The line with a number of sequences in tokens, for a line with the tokens of a sequence. */
  #perToken(name: string, own: string | undefined, at: number, length: number): MeantLine[] {
    const context = this.#contextGiven();
    const tokens = Number(own) * Number(context);
    if (!Object.hasOwn(this.#command.flags, name) || !(tokens > 0)) return [];
    const lead = `--${name} counts tokens, ${own} × ${context}:`;
    return [{ ...this.#corrected(at, [`--${name}`, String(tokens)], length), lead }];
  }

  /** The line with the sequences of a step on all GPUs as a number of steps that add up, or as those of one GPU. */
  #perStep(name: string, own: string | undefined, at: number, length: number): MeantLine[] {
    const gpus = Number(this.#valueGiven('gpus') ?? 1);
    const batch = Number(this.#valueGiven('batch') ?? 0);
    const share = Number(own) / gpus;
    const steps = share / batch;
    if (!Object.hasOwn(this.#command.flags, name)) return [];
    const written = batch > 0 ? [`--${name}`, String(steps)] : ['--batch', String(share)];
    const isWhole = Number.isInteger(Number(written[1])) && share > 0;
    const lead = `${own} sequences in a step:`;
    return isWhole ? [{ ...this.#corrected(at, written, length), lead }] : [];
  }

  #contextGiven(): string | undefined {
    return this.#valueGiven('context');
  }

  /** The value of a flag in the line, by any name of the flag. */
  #valueGiven(flag: string): string | undefined {
    for (const [at, word] of this.words.entries()) {
      const [, name, inline] = /^--?([a-z][\w.-]*)(?:=(.*))?$/i.exec(word) ?? [];
      if (name === undefined) continue;
      const [first] = this.#meanings.flagMeanings(name, this.#command.id);
      if (name === flag || first?.name === flag) return inline ?? this.words[at + 1];
    }
    return undefined;
  }

  /** The line with the value of `--model FILE` as an argument. */
  #asArgument(kind: string, value: string | undefined, at: number, length: number): MeantLine[] {
    const names = Object.keys(this.#command.args);
    const isFirst =
      (kind === 'data' && this.#command.id === 'data') ||
      (kind === 'model' && MODEL_ARGUMENTS.has(names[0] ?? ''));
    const index = isFirst ? 0 : names.indexOf(kind);
    const isFormat =
      kind === 'out' && value !== undefined && Object.hasOwn(FORMAT_NAMES, value.toLowerCase());
    if (value === undefined || index < 0 || isFormat || this.#arguments[index]) return [];
    const rest = this.words.toSpliced(at, length);
    const words = index === 0 ? [value, ...rest] : [...rest, value];
    return [{ ...this.#line(words), models: kind === 'model' ? [value] : [] }];
  }

  /** The line without `--no-details`: its effect is the default. */
  #withoutNo(name: string, at: number): MeantLine[] {
    const own = /^no-?(.+)$/i.exec(name)?.[1];
    const flag = own && this.#flags.find((each) => foldedName(each.name) === foldedName(own));
    return flag && flag.type === 'boolean' ? [this.#corrected(at, [])] : [];
  }

  /** Lines with the flag whose name, or whose name in other tools, is similar. */
  #misspelled(given: GivenFlag): MeantLine[] {
    if (given.name.length < 3) return [];
    const known = this.#flags.filter(({ hidden }) => !hidden).map(({ name }) => name);
    // Digits, and a leading no-, are part of the meaning of a name.
    const isLike = (each: string) =>
      each.replaceAll(/\D/g, '') === given.name.replaceAll(/\D/g, '') &&
      each.startsWith('no-') === given.name.startsWith('no-');
    const own = misspelled(given.name, known.filter(isLike), 2);
    const others = misspelled(
      given.name,
      this.#meanings.otherNames().filter((each) => each.length > 3 && isLike(each)),
      2,
    );
    return [
      ...(own === undefined ? [] : this.#meant({ name: own }, given)),
      ...(others === undefined
        ? []
        : this.#meanings
            .flagMeanings(others, this.#command.id)
            .flatMap((each) => this.#meant(each, given))),
    ];
  }

  /**
   * The line with a key of the config that is written as a flag: `--num-layers 4`. Whether the model has the key is
   * checked later.
   */
  #asSetting({ at, name, value }: GivenFlag): MeantLine[] {
    const { args, flags } = this.#command;
    const isOfModel = Object.keys(args).some((each) => MODEL_ARGUMENTS.has(each));
    const key = /^(?:model\.)?([a-z][\w-]{2,})$/i.exec(name)?.[1];
    if (!Object.hasOwn(flags, 'set') || !isOfModel || key === undefined) return [];
    const next = this.#isValueMissing(at + 1) ? undefined : this.words[at + 1];
    const isNext = value === undefined && next !== undefined && SETTING.test(next);
    const given = value ?? (isNext ? next : 'true');
    if (!SETTING.test(given)) return [];
    return this.#meanings.keysNamed(key.toLowerCase().replaceAll('-', '_')).map((each) => ({
      ...this.#corrected(at, ['--set', `model.${each}=${given}`], isNext ? 2 : 1),
      lead: 'a key of the config is set with --set:',
      isElsewhere: true,
    }));
  }

  /** The same line for another command that answers about a model and has the flag. */
  #ofOtherCommands(name: string): MeantLine[] {
    if (!ABOUT_A_MODEL.includes(this.#command.id)) return [];
    const namesIn = (id: string) => [
      name,
      ...this.#meanings.flagMeanings(name, id).map((meaning) => meaning.name),
    ];
    return this.#others
      .filter(({ id }) => ABOUT_A_MODEL.includes(id) && id !== this.#command.id)
      .filter(({ id, flags }) => namesIn(id).some((each) => Object.hasOwn(flags, each)))
      .map(({ id }) => ({
        words: [id, ...this.words],
        lead: `minimind ${id} has this flag:`,
        isElsewhere: true,
      }));
  }

  /**
   * The value in the flag's own spelling; undefined for a value of another kind. The flag's parser makes the final
   * check.
   */
  #accepted(flag: DeclaredFlag, value: string): string | undefined {
    const { options, delimiter, helpValue = '' } = flag as Option;
    if (options !== undefined) {
      const items = delimiter === undefined ? [value] : value.split(delimiter);
      const meant = items.map((item) => nearestValue(flag.name, item, options));
      return meant.includes(undefined) ? undefined : meant.join(delimiter);
    }
    const isKind =
      helpValue === 'KEY=VALUE'
        ? value.includes('=')
        : NUMERIC.test(helpValue)
          ? /^[\d.~]/.test(value)
          : !OF_FILES.test(helpValue) || !/^[\d.]+$/.test(value);
    return isKind ? value : undefined;
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
    this.#refusePacked(flag.name, value);
    const items = delimiter === undefined ? [value] : value.split(delimiter);
    const meant = items.map((item) => nearestValue(flag.name, item, options));
    const wrong = meant.indexOf(undefined);
    if (wrong < 0) return meant.join(delimiter);
    const close = nearestWithDigits(items[wrong] ?? '', options);
    const name = `--${flag.name}`;
    const inline = at === end ? value : undefined;
    const given = { at, value: inline, name: flag.name, written: name };
    // The flag is one of ours, and its value is chosen.
    const others = this.#meantLines(given).map((line) => ({ ...line, isSpelling: false }));
    throw this.#mistake(
      `${name}: expected ${choicesText(options)}, found ${quote(items[wrong] ?? '')}`,
      close === undefined || others.length > 0
        ? others
        : [this.#corrected(at, [name, items.with(wrong, close).join(delimiter)], end - at + 1)],
      undefined,
      this.#meanings.valueAdvice(flag.name, items[wrong] ?? '') ?? listingOf({ ...flag, options }),
    );
  }

  /** Refuses a type of packed safetensors in a GGUF file, which has types of its own for the same bits. */
  #refusePacked(flag: string, value: string): void {
    const bits = /^(?:u?int|nf)([48])$/i.exec(value)?.[1];
    if (this.#name !== 'convert-checkpoint' || flag !== 'dtype' || bits === undefined) return;
    const input = this.#arguments[0]?.word;
    if (!this.words.some((word) => word !== input && /\.gguf$/i.test(word))) return;
    throw usageError(
      `${value.toLowerCase()} is a type of safetensors files`,
      `write --dtype ${bits === '4' ? 'q4_k_m or q4_0' : 'q8_0'}`,
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
    throw this.#mistake(
      `${declared.name.toUpperCase()}: expected ${choicesText(declared.options)}, found ${quote(word)}`,
      close === undefined ? [] : [this.#corrected(at, [close])],
      undefined,
      listingOf(declared),
    );
  }

  checkArguments(): void {
    this.#checkConfigAlone();
    const declared = Object.values(this.#command.args);
    this.#refuseFillers(declared.length);
    this.#refuseOverrides();
    const missing = declared.filter(
      ({ required }, index) => required && !this.#isPlanned && !this.#arguments[index],
    );
    if (missing.length > 0) {
      const names = missing.map(({ name }) => name.toUpperCase()).join(' and ');
      const given = this.#arguments.length;
      const form = this.#line([...this.words, ...missing.map(({ name }) => name.toUpperCase())]);
      throw usageError(
        `expected ${names}, found ${given === 0 ? 'no arguments' : counted(given, 'argument')}`,
        given === 0 ? this.#example : `write it as in ${pasteable(form.words)}`,
      );
    }
    const extra = this.#arguments[declared.length];
    if (this.#command.strict === false || extra === undefined) return;
    // Overrides as in Hydra: batch_size=4.
    const isOverride = /^\+{0,2}[a-z][\w.]*=./i.test(extra.word) && !fs.existsSync(extra.word);
    const override = `--${extra.word.replace(/^\+/g, '')}`;
    const most = ['no argument', 'one argument'][declared.length] ?? `${declared.length} arguments`;
    throw this.#mistake(
      `minimind ${this.#name}: expected ${most}, found ${quote(extra.word)} as well`,
      [
        ...(isOverride ? [{ ...this.#corrected(extra.at, [override]), isSpelling: true }] : []),
        ...this.#asFurtherValue(extra),
        ...this.#asFlag(extra),
        { ...this.#corrected(extra.at, []), isShorter: true },
      ],
      this.#example,
    );
  }

  /** Refuses words of a sentence between the arguments: `fit qwen3-8b on a 4090`, `compare A vs B`. */
  #refuseFillers(most: number): void {
    const isOpen = this.#command.strict === false;
    const filler = this.#arguments.find(
      ({ word }, index) => index > 0 && FILLER.test(word) && !fs.existsSync(word),
    );
    if (filler === undefined || (!isOpen && this.#arguments.length <= most)) return;
    throw this.#mistake(`minimind ${this.#name}: expected no word ${quote(filler.word)}`, [
      { ...this.#corrected(filler.at, []), isSpelling: true },
    ]);
  }

  /** Refuses arguments as in Hydra and dd: `model=my.yaml`. */
  #refuseOverrides(): void {
    const declared = Object.keys(this.#command.args);
    if (this.#command.strict === false) return;
    const given = this.#arguments.slice(0, declared.length).find(({ word }) => {
      const [, name] = /^([a-z][\w.-]*)=./i.exec(word) ?? [];
      return name !== undefined && !fs.existsSync(word) && !declared.includes('prompt');
    });
    if (given === undefined) return;
    throw this.#mistake(`expected ${declared[0]?.toUpperCase()}, found ${quote(given.word)}`, [
      { ...this.#corrected(given.at, [`--${given.word}`]), isSpelling: true },
    ]);
  }

  /** The line with a word as one more value of the flag before: `--targets q_proj v_proj`, `--dtypes float32 float16`. */
  #asFurtherValue({ word, at }: { readonly word: string; readonly at: number }): MeantLine[] {
    const name = this.words[at - 2]?.replace(/^--/, '') ?? '';
    const flag = this.#command.flags[name];
    if (flag?.type !== 'option' || this.words[at - 2] !== `--${name}`) return [];
    const { delimiter, helpValue = '' } = flag as Option;
    if (delimiter === ',' || helpValue === 'NAMES') {
      const joined = `${this.words[at - 1]},${word}`;
      return [this.#line(this.words.toSpliced(at - 1, 2, joined))];
    }
    const isType = helpValue === 'TYPE' && parseDtype(word) !== undefined;
    return isType
      ? [{ ...this.#corrected(at, []), leftOut: [`${word}: --${name} takes one type at a time`] }]
      : [];
  }

  /** Refuses `--config FILE` without a checkpoint: a config alone is a model. */
  #checkConfigAlone(): void {
    const at = this.#given.get('config');
    const [first = ''] = Object.keys(this.#command.args);
    const isOfModel = this.#command.strict !== false && MODEL_ARGUMENTS.has(first);
    if (at === undefined || !isOfModel || this.#arguments.length > 0) return;
    const [, inline] = this.words[at]?.split(/=(.*)/s) ?? [];
    const file = inline ?? this.words[at + 1] ?? '';
    const rest = this.words.toSpliced(at, inline === undefined ? 2 : 1);
    throw this.#mistake('--config requires a checkpoint, found none', [
      { ...this.#line([file, ...rest]), models: [file], isSpelling: true },
    ]);
  }

  /** Lines in which a word beyond the arguments is the value of the flag that it was meant for. */
  #asFlag({ word, at }: { readonly word: string; readonly at: number }): MeantLine[] {
    const joint = this.#arguments.map((each) => each.word).join('-');
    const isNamed = this.#arguments.length === 2 && MODEL_ARGUMENTS.has(this.#firstArgument);
    const first = this.#arguments[0]?.at ?? 0;
    // A name can be written in two words: llama-3.2 1b.
    const names = isNamed ? [joint, this.#meanings.hubReference(joint)] : [];
    const named: MeantLine[] = names
      .filter((each) => each !== undefined)
      .map((each) => ({
        ...this.#line(this.words.toSpliced(at, 1).with(first, each)),
        models: [each],
      }));
    const flags = this.#asFlagOf(word, at);
    return [...named, ...flags];
  }

  get #firstArgument(): string {
    return Object.keys(this.#command.args)[0] ?? '';
  }

  #asFlagOf(word: string, at: number): MeantLine[] {
    return (EXTRA_WORDS[this.#command.id] ?? []).flatMap(({ kind, words }) => {
      if (kind !== 'model' && kind !== 'gpu' && !KINDS[kind].test(word)) return [];
      const needs = { models: kind === 'model' ? [word] : [], gpus: kind === 'gpu' ? [word] : [] };
      const [first = ''] = words;
      if (!first.startsWith('-')) {
        const given = this.#arguments.map((each) => each.at);
        const flags = this.words.filter((_, index) => !given.includes(index));
        const models = this.#arguments.map((each) => each.word);
        return [{ words: [...words, ...models, ...flags], models, gpus: [] }];
      }
      if (this.#given.has(first.slice(2))) return [];
      const value = kind === 'type' ? word.toLowerCase() : word;
      const lines: MeantLine[] = [{ ...this.#corrected(at, [...words, value]), ...needs }];
      const [model] = this.#arguments;
      if (kind === 'gpu' && model !== undefined) {
        // The user wrote the GPU first.
        const swapped = this.words.with(model.at, word).toSpliced(at, 1, first, model.word);
        lines.push({ ...this.#line(swapped), models: [word], gpus: [model.word] });
      }
      return lines;
    });
  }

  /** Refuses `-o model.onnx` if the file is meant for `--save` or OUT: `--output` is the file of the answer. */
  checkAnswerFile(): void {
    const at = this.#given.get('output');
    const isSaved = Object.hasOwn(this.#command.flags, 'save');
    const isArgument = Object.keys(this.#command.args)[this.#arguments.length] === 'out';
    if (at === undefined || !(isSaved || isArgument)) return;
    const word = this.words[at] ?? '';
    const isAlone = /^(?:-o|--output)$/.test(word);
    const file = isAlone ? (this.words[at + 1] ?? '') : word.replace(/^(?:-o|--output)=?/, '');
    if (!SAVED_ENDING.test(file) && (!isArgument || ANSWER_ENDING.test(file))) return;
    const length = isAlone ? 2 : 1;
    const asFlag = () =>
      this.#corrected(at, this.#given.has('save') ? [] : ['--save', file], length);
    const asArgument = () => {
      const last = this.#arguments.at(-1)?.at ?? -1;
      const rest = this.words.toSpliced(at, length);
      return this.#line(rest.toSpliced(last < at ? last + 1 : last + 1 - length, 0, file));
    };
    throw this.#mistake(
      `--output: expected a file for the answer (.html, .json, .csv, .md, .txt), found ${quote(file)}`,
      // An argument that is given has `-o` for nothing else.
      [
        ...this.#asCheckpoint(file, at, length),
        { ...(isSaved ? asFlag() : asArgument()), isSpelling: isArgument && !isSaved },
      ],
    );
  }

  /** The line of a conversion, for a graph that is to be written as a checkpoint. */
  #asCheckpoint(file: string, at: number, length: number): MeantLine[] {
    if (this.#command.id !== 'export' || !KINDS.checkpoint.test(file)) return [];
    const [model, ...rest] = this.words.toSpliced(at, length);
    return model === undefined ? [] : [{ words: ['convert-checkpoint', model, file, ...rest] }];
  }

  #checkRequired(): void {
    if (this.#isPlanned) return;
    const missing = this.#flags.filter(({ required, name }) => required && !this.#given.has(name));
    if (missing.length === 0) return;
    const names = joined(missing.map(({ name }) => `--${name}`));
    throw this.#mistake(`${names} ${missing.length > 1 ? 'are' : 'is'} required`, [
      this.#added(...missing),
    ]);
  }

  checkRelations(): void {
    this.#checkRequired();
    for (const flag of this.#flags) {
      const { name } = flag;
      const at = this.#given.get(name);
      if (at === undefined) continue;
      const needed = flag.dependsOn?.find((each) => !this.#isSet(each));
      if (needed !== undefined) {
        throw this.#mistake(`--${name} requires --${needed}`, [
          this.#added(this.#command.flags[needed]),
        ]);
      }
      const choice = alternativesOf(flag);
      if (choice.length > 0 && !choice.some((each) => this.#isSet(each))) {
        const wanted = choice.map((each) => `--${each}`).join(' or ');
        throw this.#mistake(
          `--${name} requires ${wanted}`,
          choice.map((each) => this.#added(this.#command.flags[each])),
        );
      }
      const other = flag.exclusive?.find(
        (each) => typeof each === 'string' && this.#given.has(each),
      );
      if (typeof other === 'string') {
        const [place, declared] = [
          this.#given.get(other) ?? at,
          this.#command.flags[other] ?? flag,
        ];
        const both = [
          { flag, at },
          { flag: declared, at: place },
        ];
        // The flag that was written first is kept, and a dry run stays a dry run.
        const isKept = (each: (typeof both)[number]) => each.flag.name === 'dry-run';
        both.sort((a, b) => Number(isKept(a)) - Number(isKept(b)) || b.at - a.at);
        throw this.#mistake(
          `--${name} and --${other} cannot be used together`,
          both.map((each) => ({
            ...this.#corrected(each.at, [], this.#lengthOf(each.flag, each.at)),
            isShorter: true,
          })),
        );
      }
    }
  }

  /** Whether the arguments and flags are in a plan that another command line has written. */
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

  #mistake(
    message: string,
    lines: readonly MeantLine[],
    otherwise?: string,
    more?: string,
  ): LineMistake {
    return new LineMistake(message, lines, { otherwise, more });
  }

  /** A line of the command with these words. */
  #line(words: readonly string[]): MeantLine {
    return { words: [...this.#name.split(' '), ...words] };
  }

  /** The line with other words at `at`. */
  #corrected(at: number, words: readonly string[], length = 1): MeantLine {
    return this.#line(this.words.toSpliced(at, length, ...words));
  }

  #added(...flags: readonly (DeclaredFlag | undefined)[]): MeantLine {
    const words = flags.flatMap((flag) => {
      if (flag === undefined) return [];
      return [`--${flag.name}`, ...(flag.type === 'option' ? [exampleOf(flag)] : [])];
    });
    return { ...this.#corrected(this.words.length, words), hasExample: true };
  }

  /** The first example of the command's help; its usage, if the example contains files of this package. */
  get #example(): string {
    const [first] = this.#command.examples ?? [];
    const text = typeof first === 'string' ? first : (first?.command ?? '');
    const line = text
      .replace('<%= config.bin %>', 'minimind')
      .replace('<%= command.id %>', this.#name)
      .replaceAll(PRESET_FILE, '$1');
    if (line !== '' && !line.includes('fixtures/')) return `write it as in ${line}`;
    const names = Object.values(this.#command.args).map(({ name }) => name.toUpperCase());
    return `write it as in ${pasteable([...this.#name.split(' '), ...names])}`;
  }

  #canBeList(name: string): boolean {
    return (this.#command.flags[name] as { delimiter?: string } | undefined)?.delimiter === ',';
  }
}

/** Words of a sentence, which say nothing beside its arguments. */
const FILLER = /^(?:on|an?|the|for|to|into|vs\.?|versus|with|and|in|as|from|against|of|using)$/i;

/** Names of formats, which are not files. */
const FORMAT_NAMES = { safetensors: true, pt: true, pth: true, gguf: true, onnx: true, bin: true };

/** Words of a line about a training. */
/** Switches of adapters, and of weights in 4 bits, in other tools. */
const OF_LORA =
  /(?:^| )--(?:(?:use[-_])?(?:lora|peft)|fine-?tune|sft|(?:for|finetuning[-_]type)[ =]lora)(?= |=|$)/i;
const IN_4_BITS = /(?:^| )--(?:(?:load[-_]in[-_])?4[-_]?bit|quantization[-_]bit[ =]4)(?= |=|$)/i;

const OF_TRAINING =
  /^--(?:micro-batch|accumulation|optimizer|zero|recompute|global-batch|train-tokens|loss)\b|^--for=?training$|^training$/;

/** A flag that the command does not know, and its value after `=`. */
interface GivenFlag {
  readonly at: number;
  readonly name: string;
  /** The name with its dashes. */
  readonly written: string;
  readonly value: string | undefined;
}

interface Option {
  readonly options?: readonly string[];
  readonly delimiter?: string;
  readonly helpValue?: string;
}

/** File of a preset in this package. */
const PRESET_FILE = /\bconfigs\/([\w-]+\/[\w.-]+)\.yaml/g;

/** Placeholders of numbers, and those of files. */
const NUMERIC = /^(?:N|K|N,N|N\.\.M|NUMBER|SHARE|RATE|STEPS|SIZE|TIME|P|P,P|RATIO|RATIO,RATIO)$/;
const OF_FILES = /^(?:FILE|PATH|DIR|FILE,FILE|MODEL|OTHER|ORIGINAL)$/;

/** Commands that answer about one model, which a flag of one of them is for. */
const ABOUT_A_MODEL: readonly string[] = ['profile', 'fit', 'train-plan'];

/** Names of first arguments that are models. */
const MODEL_ARGUMENTS: ReadonlySet<string> = new Set([
  'file',
  'model',
  'config',
  'path',
  'a',
  'preset',
]);

/** A mixture of llama.cpp in words: the type, and its size. */
const MIXTURE = /^(--dtype=)?(q\d_k)_[sml]$/i;

const KINDS = {
  type: /^(?:q\d_(?:k(?:_[sml])?|[01])|b?f16|f32)$/i,
  count: /^~?\d[\d_,.]*\s*(?:[kmbt]|e\d+)?$/i,
  data: /\.(?:jsonl|json|txt|csv|parquet)$/i,
  config: /\.ya?ml$/i,
  onnx: /\.onnx$/i,
  checkpoint: /\.(?:gguf|safetensors|pt)$/i,
  few: /^\d{1,3}$/,
  family: /^[a-z]/i,
} as const;

/** Words without a flag that people write, by command: the kind of a word determines the flag or command. */
const EXTRA_WORDS: Readonly<Record<string, readonly ExtraWord[]>> = {
  plan: [
    { kind: 'count', words: ['--max-params'] },
    { kind: 'family', words: ['--family'] },
    { kind: 'gpu', words: ['--gpu'] },
  ],
  profile: [{ kind: 'model', words: ['compare'] }],
  export: [
    { kind: 'onnx', words: ['--save'] },
    { kind: 'checkpoint', words: ['convert-checkpoint'] },
  ],
  fit: [
    { kind: 'gpu', words: ['--gpu'] },
    { kind: 'few', words: ['--gpus'] },
    { kind: 'model', words: ['compare'] },
  ],
  'convert-checkpoint': [{ kind: 'type', words: ['--dtype'] }],
  attention: [{ kind: 'gpu', words: ['--gpu'] }],
  'train-plan': [
    { kind: 'gpu', words: ['--gpu'] },
    { kind: 'data', words: ['--data'] },
    { kind: 'count', words: ['--tokens'] },
  ],
  evaluate: [{ kind: 'data', words: ['--text'] }],
  init: [{ kind: 'config', words: ['--save'] }],
  diff: [{ kind: 'model', words: ['compare'] }],
};

interface ExtraWord {
  readonly kind: keyof typeof KINDS | 'model' | 'gpu';
  /** The flag that the word is a value of, or another command that takes it with the arguments. */
  readonly words: readonly string[];
}

const spaced = (id: string) => id.replaceAll(':', ' ');

/** Names of flags of which a flag needs at least one. */
const alternativesOf = ({ relationships = [] }: DeclaredFlag): string[] =>
  relationships
    .filter(({ type }) => type === 'some')
    .flatMap(({ flags }) => flags.filter((each) => typeof each === 'string'));
