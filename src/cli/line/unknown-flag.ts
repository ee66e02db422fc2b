/** The mistake of a flag that a command does not have, with the lines that can be meant. */
import fs from 'node:fs';
import { isHubName } from '../../base/text/hub-names.js';
import { joined } from '../../base/text/words.js';
import { misspelled } from '../../config/nearest.js';
import { quote } from '../../config/quote.js';
import { foldedName } from '../foreign/spellings.js';
import { memoryOfCard } from './extra-words.js';
import { exampleOf } from './flag-example.js';
import { valueGiven } from './given-flags.js';
import type { LineMistake, MeantLine } from './line-mistake.js';
import { linesOfMeaning, meantLines, withoutFlag } from './meant-lines.js';
import { type GivenFlag, MODEL_ARGUMENTS, spaced, type TypedLine } from './typed-line.js';

/** Commands that answer about one model, which a flag of one of them is for. */
const ABOUT_A_MODEL: readonly string[] = ['profile', 'fit', 'train-plan'];

/** A value of a key in a config: a number, a switch, or the name of a choice. */
const SETTING = /^(?:-?[\d.]+(?:e[-+]?\d+)?|[a-z_]+)$/i;

/** Names of flags of a program, which are no keys of a config. */
const OF_A_PROGRAM =
  /(?:^|[-_])(?:port|host|dir|path|name|url|key|token|timeout|interval|format|logs?|level|backend|strategy|file|config|workers)$/i;

export function unknownFlag(typed: TypedLine, word: string, at: number): LineMistake {
  const [written = '', ...inline] = word.split('=');
  const message = `unknown flag ${quote(written)} of minimind ${typed.name}`;
  const name = written.replace(/^-+/, '');
  const value = inline.length > 0 ? inline.join('=') : undefined;
  const given = { at, value, name, written };
  const memory = memoryOfCard(typed, name, value ?? typed.words[at + 1]);
  if (memory !== undefined) {
    // Other tools limit the memory that they use with such a flag, which names no GPU.
    const lines = [...ofCard(typed, given), ...(typed.isOfTool ? leftOut(typed, given) : [])];
    return typed.mistake(message, lines, memory);
  }
  // A plan names the memory of its GPUs, which a flag that it leaves out would change.
  const isCounted = typed.command.id === 'train-plan' && valueGiven(typed, 'gpu') !== undefined;
  const owned = ofOtherCommands(typed, name);
  // What another tool serves is not trained.
  const isAnswered = typed.isOfTool && typed.command.id === 'fit';
  // A value that a flag of this command does not take is not a question for another command.
  const isOther = value !== undefined || !typed.isValueMissing(at + 1);
  const elsewhere = isAnswered || (isOther && hasCounterpart(typed, name)) ? [] : owned;
  // A flag of another command is not a key of a config.
  const lines = [
    ...meantLines(typed, given).map((line) => ({ ...line, isOfTool: true })),
    ...withoutNo(typed, name, at),
    ...similarFlags(typed, given),
    ...(owned.length > 0 || hasCounterpart(typed, name) ? [] : asSetting(typed, given)),
    ...(isCounted ? elsewhere : []),
    ...leftOut(typed, given),
    ...(isCounted ? [] : elsewhere),
  ];
  const model = value ?? (typed.isValueMissing(at + 1) ? undefined : typed.words[at + 1]);
  const isModel = typed.meanings
    .flagMeanings(name, typed.command.id)
    .some((meaning) => meaning.name === '<model>');
  const isHere = (name: string) => fs.existsSync(name) || typed.meanings.isPreset(name);
  if (isModel && model !== undefined && typed.arguments.length === 0 && !isHere(model)) {
    return typed.meanings.missingModel(model, lines, { hub: true });
  }
  const owners = typed.others
    .filter(({ flags }) => Object.hasOwn(flags, name))
    .map(({ id }) => spaced(id));
  const some = joined(owners.slice(0, 3));
  return typed.mistake(
    message,
    lines,
    typed.meanings.flagAdvice(name) ??
      (owners.length > 0
        ? `${some} ${owners.length > 1 ? 'have' : 'has'} a flag of this name`
        : (meantFlag(typed, name) ?? `minimind ${typed.name} --help lists its flags`)),
  );
}

/** The line with the memory of a card in its name: `--gpu a100 --vram 80GB`. */
function ofCard(typed: TypedLine, given: GivenFlag): MeantLine[] {
  const gpu = valueGiven(typed, 'gpu');
  const value = given.value ?? typed.words[given.at + 1] ?? '';
  const size = /\d$/.test(value) ? `${value}GB` : value;
  const place = typed.words.findIndex((word) => /^--gpu(?:=|$)/.test(word));
  if (gpu === undefined || place < 0) return [];
  const card = `${gpu} ${size}`;
  const isInline = typed.words[place]?.includes('=') ?? false;
  const words = isInline
    ? typed.words.with(place, `--gpu=${card}`)
    : typed.words.with(place + 1, card);
  const length = given.value === undefined ? 2 : 1;
  return [{ ...typed.lineOf(words.toSpliced(given.at, length)), gpus: [card] }];
}

/** The flag that a name of another tool means, for a value of another kind. */
function meantFlag(typed: TypedLine, name: string): string | undefined {
  const [flag] = typed.meanings
    .flagMeanings(name, typed.command.id)
    .flatMap(({ name: own, value }) => {
      const found = value === undefined ? typed.command.flags[own] : undefined;
      return found === undefined || found.hidden ? [] : [found];
    });
  return flag && `the flag is --${flag.name}${flag.type === 'option' ? ` ${exampleOf(flag)}` : ''}`;
}

/** The line without `--no-details`: its effect is the default. */
function withoutNo(typed: TypedLine, name: string, at: number): MeantLine[] {
  const own = /^no-?(.+)$/i.exec(name)?.[1];
  const flag = own && typed.flags.find((each) => foldedName(each.name) === foldedName(own));
  return flag && flag.type === 'boolean' ? [typed.corrected(at, [])] : [];
}

/** Most wrong letters in the name of a flag. */
const MOST_WRONG = 2;

/** Lines with the flag whose name, or whose name in other tools, is similar. */
function similarFlags(typed: TypedLine, given: GivenFlag): MeantLine[] {
  if (given.name.length < 3) return [];
  const known = typed.flags.filter(({ hidden }) => !hidden).map(({ name }) => name);
  // Digits, and a leading no-, are part of the meaning of a name.
  const digits = given.name.replaceAll(/\D/g, '');
  const isNo = given.name.startsWith('no-');
  const isLike = (each: string) =>
    Math.abs(each.length - given.name.length) <= MOST_WRONG &&
    each.startsWith('no-') === isNo &&
    each.replaceAll(/\D/g, '') === digits;
  const own = misspelled(given.name, known.filter(isLike), MOST_WRONG);
  const others = misspelled(
    given.name,
    typed.meanings.otherNames().filter((each) => each.length > 3 && isLike(each)),
    MOST_WRONG,
  );
  return [
    ...(own === undefined ? [] : linesOfMeaning(typed, { name: own }, given)),
    ...(others === undefined
      ? []
      : typed.meanings
          .flagMeanings(others, typed.command.id)
          .flatMap((each) => linesOfMeaning(typed, each, given))),
  ];
}

/**
 * The line with a key of the config that is written as a flag: `--num-layers 4`. Whether the model has the key is
 * checked later.
 */
function asSetting(typed: TypedLine, { at, name, value }: GivenFlag): MeantLine[] {
  const { args, flags } = typed.command;
  const isOfModel = Object.keys(args).some((each) => MODEL_ARGUMENTS.has(each));
  const key = /^(?:model\.)?([a-z][\w-]{2,})$/i.exec(name)?.[1];
  if (!Object.hasOwn(flags, 'set') || !isOfModel || key === undefined) return [];
  if (typed.isOfTool && OF_A_PROGRAM.test(key)) return [];
  const isUnchecked = typed.isOfTool || typed.arguments.length === 0;
  if (isUnchecked && !canBeChecked(typed, key)) return [];
  const next = typed.isValueMissing(at + 1) ? undefined : typed.words[at + 1];
  const isNext = value === undefined && next !== undefined && SETTING.test(next);
  // A word that is neither a value of a key nor an argument is the value of something else.
  const isOther = value === undefined && !isNext && !(next ?? '-').startsWith('-');
  if (isOther && typed.isLooseValue(at + 1)) return [];
  // A key has one value, not several numbers.
  if (isNext && /^[\d.]+$/.test(typed.words[at + 2] ?? '')) return [];
  const given = value ?? (isNext ? next : 'true');
  if (!SETTING.test(given)) return [];
  return typed.meanings.keysNamed(key.toLowerCase().replaceAll('-', '_')).map((each) => ({
    ...typed.corrected(at, ['--set', `model.${each}=${given}`], isNext ? 2 : 1),
    lead: 'a key of the config is set with --set:',
    isElsewhere: true,
  }));
}

/** Keys of most configs: sizes, numbers of parts, and what positions and embeddings are. */
const USUAL_KEY =
  /^(?:(?:hidden|intermediate|moe_intermediate|vocab|state|embedding)_size|num_\w*(?:layers|heads|experts|experts_per_tok)|(?:n|d|dim|head|embed|ffn)_\w+|\w+_dim|dim|layers|max_position_embeddings|rope_theta|sliding_window|tie_word_embeddings)$/;

/** Whether a key can be proposed: a model of the hub is not read, so only keys that most models have. */
function canBeChecked(typed: TypedLine, key: string): boolean {
  const [model] = typed.arguments;
  const isOfHub = model === undefined || model.word.startsWith('hf:') || isHubName(model.word);
  return !isOfHub || USUAL_KEY.test(key.toLowerCase().replaceAll('-', '_'));
}

/** Whether a flag of this command has the meaning of a name, so that it is no key of a config. */
const hasCounterpart = (typed: TypedLine, name: string): boolean =>
  typed.meanings
    .flagMeanings(name, typed.command.id)
    .some((each) => each.value === undefined && Object.hasOwn(typed.command.flags, each.name));

/** Number of words of a flag that nothing here knows, with its value, or its numbers: `--cudagraph-capture-sizes 1 2 4`. */
function looseLength(typed: TypedLine, { at, value }: GivenFlag): number {
  if (value !== undefined || !typed.isLooseValue(at + 1)) return 1;
  if (typed.isOfTool && typed.meanings.isOnlyModel(typed, at + 1)) return 1;
  const numbers = typed.words.slice(at + 1).findIndex((word) => !/^[\d.]+$/.test(word));
  return Math.max(2, numbers < 0 ? typed.words.length - at : numbers + 1);
}

/** The line of another tool without a flag that nothing here is a counterpart of. */
function leftOut(typed: TypedLine, given: GivenFlag): MeantLine[] {
  const isKnown = (word: string) => {
    const [, name = ''] = /^--?([a-z][\w.-]+)/i.exec(word) ?? [];
    const isOurs = name === '' || typed.isFlag(`--${name}`);
    return !isOurs && typed.meanings.flagMeanings(name, typed.command.id).length > 0;
  };
  const others = typed.words.filter((_, at) => at !== given.at);
  if (!typed.isOfTool && !others.some(isKnown)) return [];
  // A flag of ours says something, and so does one with a counterpart that does not take its value.
  const isOurs = typed.others.some(({ flags }) => Object.hasOwn(flags, given.name));
  const isOwn = typed.meanings.flagMeanings(given.name, typed.command.id).some(
    ({ name }) =>
      Object.hasOwn(typed.command.flags, name) ||
      name === '<hub>' ||
      // A second model is the name that a program serves it by.
      (name === '<model>' && typed.arguments.length === 0) ||
      (name !== '<model>' && Object.hasOwn(typed.command.args, name.slice(1, -1))),
  );
  // A GPU asks for another command.
  const isAsked = given.name === 'gpu' && !ABOUT_A_MODEL.includes(typed.command.id);
  if ((isOurs && !typed.isOfTool) || isOwn || isAsked) return [];
  return [withoutFlag(typed, given, '<none>', looseLength(typed, given))];
}

/** The same line for another command that answers about a model and has the flag. */
function ofOtherCommands(typed: TypedLine, name: string): MeantLine[] {
  if (!ABOUT_A_MODEL.includes(typed.command.id)) return [];
  const namesIn = (id: string) => [
    name,
    ...typed.meanings.flagMeanings(name, id).map((meaning) => meaning.name),
  ];
  return typed.others
    .filter(({ id }) => ABOUT_A_MODEL.includes(id) && id !== typed.command.id)
    .filter(({ id, flags }) => namesIn(id).some((each) => Object.hasOwn(flags, each)))
    .flatMap(({ id }) => {
      const isPlan = id === 'fit' && typed.command.id === 'train-plan';
      const moved = isPlan ? typed.meanings.fitOfPlan(typed) : [id, ...typed.words];
      // Its question is the memory of a training, unless its flags are those of serving.
      const isAsked = !isPlan || typed.words.some((word) => /^--for(?:=|$)/.test(word));
      const lines = isAsked
        ? [moved]
        : [
            [...moved, '--for', 'training'],
            [id, ...typed.words],
          ];
      return lines.map((words) => ({
        words,
        lead: `minimind ${id} has this flag:`,
        isElsewhere: true,
      }));
    });
}
