/** Reads the words of a line: flags with their values, switches, arguments. */
import fs from 'node:fs';
import { usageError } from '../../base/errors.js';
import { ownValue } from '../../base/values.js';
import { nearest, nearestWithDigits } from '../../config/nearest.js';
import { quote } from '../../config/quote.js';
import { foldedName, nearestValue } from '../foreign/spellings.js';
import {
  choicesText,
  type DeclaredFlag,
  exampleOf,
  isPlaceholder,
  listingOf,
} from './flag-example.js';
import { FALSE, TRUE } from './given-flags.js';
import type { LineMistake, MeantLine } from './line-mistake.js';
import { meantLines, NUMERIC, type Option } from './meant-lines.js';
import type { GivenFlag, TypedLine } from './typed-line.js';

/** Flags whose values add up when they are given several times. */
const JOINED: ReadonlySet<string> = new Set(['gpu']);

/** A number, which can be an argument or a value; no flag here begins with a digit. */
const isNegativeNumber = (word: string) => /^-\d/.test(word);

export function readWords(typed: TypedLine): void {
  for (let at = 0; at < typed.words.length; at++) {
    const word = typed.words[at] ?? '';
    if (word === '--') {
      for (let rest = at + 1; rest < typed.words.length; rest++) addArgument(typed, rest);
      return;
    }
    if (!word.startsWith('-') || word === '-' || isNegativeNumber(word)) addArgument(typed, at);
    else at = readFlag(typed, word, at);
  }
}

/** @returns The position of the last word that belongs to the flag. */
function readFlag(typed: TypedLine, word: string, at: number): number {
  const isLong = word.startsWith('--');
  const equals = word.indexOf('=');
  refuseLongWord(typed, word, at);
  const flag = flagNamed(typed, word, at);
  // Short flags can be written together: -qo FILE.
  const attached = isLong ? '' : word.slice(2);
  const inline = equals > 0 ? word.slice(equals + 1) : attached || undefined;
  const isRepeated = typed.given.has(flag.name);
  typed.given.set(flag.name, at);
  if (flag.type === 'boolean') return readSwitch(typed, flag, at, isLong ? inline : undefined);
  if (isRepeated && !flag.multiple && JOINED.has(flag.name)) {
    const joined = joinValues(typed, flag, at, inline);
    if (joined !== undefined) return joined;
  }
  if (isRepeated && !flag.multiple) {
    const again = repeatedFlag(typed, flag, at, inline ?? typed.words[at + 1]);
    if (again !== undefined) throw again;
    throw usageError(
      `--${flag.name}: expected one value, found the flag twice`,
      flag.options || !typed.canBeList(flag.name)
        ? 'write the flag once'
        : 'write all values in one flag, with commas between them',
    );
  }
  const end = inline === undefined ? at + 1 : at;
  const value = inline ?? typed.words[end];
  if (value === undefined || (inline === undefined && typed.isFlag(value))) {
    const example = exampleOf(flag);
    throw typed.mistake(
      `--${flag.name}: expected a value, found ${value === undefined ? 'none' : value}`,
      isPlaceholder(example)
        ? []
        : [{ ...typed.corrected(at, [`--${flag.name}`, example]), hasExample: true }],
      `the flag is --${flag.name} ${example}`,
    );
  }
  checkSetting(typed, flag, value, at, end);
  checkCutValue(typed, flag, value, at, end);
  checkKind(typed, flag, value, at, inline);
  const meant = flag.options ? readChoices(typed, flag, value, at, end) : value;
  if (isLong || meant !== value) {
    const written = inline === undefined ? [`--${flag.name}`, meant] : [`--${flag.name}=${meant}`];
    typed.words.splice(at, end - at + 1, ...written);
  }
  return end;
}

/** Joins a value with that of the same flag before: `--gpu 5090 --gpu 3090` is `--gpu 5090+3090`. */
function joinValues(
  typed: TypedLine,
  flag: DeclaredFlag,
  at: number,
  inline: string | undefined,
): number | undefined {
  const value = inline ?? typed.words[at + 1];
  if (value === undefined || value === '' || (inline === undefined && typed.isFlag(value))) {
    return undefined;
  }
  const place = typed.words.findIndex((word) => word.split('=', 1)[0] === `--${flag.name}`);
  const isInline = typed.words[place]?.includes('=') ?? false;
  const [own, more] = [isInline ? place : place + 1, `+${value}`];
  typed.words[own] = `${typed.words[own] ?? ''}${more}`;
  typed.words.splice(at, inline === undefined ? 2 : 1);
  typed.given.set(flag.name, place);
  return at - 1;
}

/** The mistake of a flag that is given twice with the same value; undefined for other values. */
function repeatedFlag(
  typed: TypedLine,
  flag: DeclaredFlag,
  at: number,
  value: string | undefined,
): LineMistake | undefined {
  const before = typed.words.slice(0, at);
  const place = before.findLastIndex((word) => word.split('=', 1)[0] === `--${flag.name}`);
  const [, own = typed.words[place + 1]] = typed.words[place]?.split(/=(.*)/s) ?? [];
  if (value === undefined || value !== own) return undefined;
  return typed.mistake(`--${flag.name}: expected one value, found the flag twice`, [
    { ...typed.corrected(at, [], typed.lengthOf(flag, at)), isSpelling: true },
  ]);
}

/** Values of other tools for flags without choices: types by other names or several of them, files with weights. */
const OTHER_VALUES: Readonly<Record<string, RegExp>> = {
  TYPE: /^(?:auto|none|nf4|bnb|q[48]|ud-.*|q\d_k_x*l|\d+|w\da\d+|\d[-_.\d]*(?:bits?|bpw))$|,/i,
  FORM: /[./\\]/,
};

/** Refuses a value of another kind that a flag of this name has in other tools: `--gpus h100:8`, `--tasks mmlu`. */
function checkKind(
  typed: TypedLine,
  flag: DeclaredFlag,
  value: string,
  at: number,
  inline: string | undefined,
): void {
  const { helpValue = '', options } = flag as Option;
  refuseCards(typed, flag.name, value, at, inline);
  const isNumber = NUMERIC.test(helpValue) && !/^[-\d.~]|^auto$/.test(value);
  const isCard =
    flag.name === 'hardware' && !/[/\\]|\.ya?ml$/i.test(value) && !fs.existsSync(value);
  const isOther = ownValue(OTHER_VALUES, helpValue)?.test(value) ?? false;
  if (options !== undefined || !(isNumber || isOther || isCard)) return;
  const given = { at, value: inline, name: flag.name, written: `--${flag.name}` };
  const lines = [
    ...meantLines(typed, given).map((line) => ({ ...line, isSpelling: false })),
    ...ofQuantization(typed, flag, given),
  ];
  const advice = typed.meanings.flagAdvice(flag.name);
  if (lines.length === 0 && advice === undefined) return;
  throw typed.mistake(
    `--${flag.name}: expected ${helpValue}, found ${quote(value)}`,
    lines,
    advice,
  );
}

/** The line with a type of other tools as one of ours: `--dtype UD-Q4_K_XL`. */
function ofQuantization(typed: TypedLine, flag: DeclaredFlag, given: GivenFlag): MeantLine[] {
  const text = given.value ?? typed.words[given.at + 1] ?? '';
  const type = typed.meanings.quantizedValue(typed.command.id, flag, text, typed.words);
  if (type === undefined) return [];
  const words = [`--${flag.name}`, type.value];
  const line = typed.corrected(given.at, words, given.value === undefined ? 2 : 1);
  return [{ ...line, leftOut: [type.note] }];
}

/** Refuses names of cards for their number: `--gpus 2x4090`, `--gpus 4090,3090`. */
function refuseCards(
  typed: TypedLine,
  name: string,
  value: string,
  at: number,
  inline: string | undefined,
): void {
  if (name !== 'gpus' || !Object.hasOwn(typed.command.flags, 'gpu')) return;
  const isNumber = Number.isFinite(Number(value));
  if (isNumber || !/^\d.*[a-z]|\b[1-5]0[5-9]0,|,[1-5]0[5-9]0\b/i.test(value)) return;
  // Cards in one list are in one machine.
  const cards = value.replaceAll(/, ?/g, '+');
  const words = typed.corrected(at, ['--gpu', cards], inline === undefined ? 2 : 1);
  throw typed.mistake(`--gpus: expected a number of GPUs, found ${quote(value)}`, [
    { ...words, gpus: [cards], lead: 'did you mean --gpu?' },
  ]);
}

/** Whether a word is the truth of the switch before it. `on` and a card after it are words of a sentence. */
function isTruthAfter(typed: TypedLine, at: number): boolean {
  const word = typed.words[at] ?? '';
  if (/^(?:true|false)$/i.test(word)) return true;
  const isLast = (typed.words[at + 1] ?? '-').startsWith('-');
  return /^(?:yes|no|on|off)$/i.test(word) && isLast && !fs.existsSync(word);
}

function readSwitch(
  typed: TypedLine,
  flag: DeclaredFlag,
  at: number,
  value: string | undefined,
): number {
  const next = typed.words[at + 1] ?? '';
  if (value === undefined && isTruthAfter(typed, at + 1)) {
    const words = TRUE.test(next) ? [`--${flag.name}`] : [];
    throw typed.mistake(`--${flag.name}: expected no value, found ${quote(next)}`, [
      { ...typed.corrected(at, words, 2), isSpelling: true },
    ]);
  }
  if (
    value === undefined &&
    flag.name === 'json' &&
    /^[a-z]/i.test(next) &&
    typed.meanings.areFields(typed, at + 1)
  ) {
    throw typed.mistake(`--json: expected no value, found ${quote(next)}`, [
      { ...typed.corrected(at, ['--json', '--fields', next], 2), isSpelling: true },
    ]);
  }
  if (value === undefined) {
    if (typed.words[at]?.startsWith('--')) typed.words[at] = `--${flag.name}`;
    else splitCluster(typed, at);
    return at;
  }
  const name = `--${flag.name}`;
  const isTruth = TRUE.test(value) || FALSE.test(value);
  const lines: MeantLine[] = [
    { ...typed.corrected(at, FALSE.test(value) ? [] : [name]), isSpelling: isTruth },
  ];
  if (!isTruth && Object.keys(typed.command.args).length > 0) {
    const others = typed.arguments.map((each) => each.at);
    const alone = typed.words.with(at, name).toSpliced(at + 1, 0, value);
    lines.splice(0, 1, typed.lineOf(alone.filter((_, index) => !others.includes(index))), {
      ...typed.corrected(at, [name]),
      isShorter: true,
    });
  }
  throw typed.mistake(`${name}: expected no value, found ${quote(value)}`, lines);
}

/** Units of sizes, counts, times and shares. */
const UNIT = /^(?:[kmgt]i?b?|b|ms|s|min|h|%|percent|tokens)$/i;

/** A number of a list, and its brackets. */
const ITEM = /^\[?\d[\d.]*[kmb]?\]?(?:,\d[\d.]*[kmb]?\]?)*,?$/i;

/** Refuses a value that is cut at a space: `--ram 32 GiB`, `--ranks 128, 64`, `--ids 1 2 3`, `--gpu h100, a100`. */
function checkCutValue(
  typed: TypedLine,
  flag: DeclaredFlag,
  value: string,
  at: number,
  end: number,
): void {
  const { delimiter, helpValue = '' } = flag as Option;
  const rest = typed.words.slice(end + 1);
  const [, count] = /^(\d[\d._]*[km]?)[-_]?tok(?:en)?s?$/i.exec(value) ?? [];
  if (count !== undefined && NUMERIC.test(helpValue)) throw cut('a number', count, 0);
  const isUnit =
    UNIT.test(rest[0] ?? '') && /^\d[\d.,]*$/.test(value) && !fs.existsSync(rest[0] ?? '');
  if (isUnit && NUMERIC.test(helpValue)) {
    throw cut(
      'a unit',
      `${value}${/^tokens$/i.test(rest[0] ?? '') ? '' : rest[0]}`.replace(/percent$/i, '%'),
      1,
    );
  }
  const isList = delimiter === ',' || helpValue === 'IDS' || /^[A-Z]+,/.test(helpValue);
  const isOpen = value.endsWith(',') || value.startsWith('[');
  const isCards = flag.name === 'gpu' && value.endsWith(',');
  const isItem = (word: string) => (isCards ? !word.startsWith('-') : ITEM.test(word));
  if (!(isList || isOpen) || !(isCards || ITEM.test(value))) return;
  const length = rest.findIndex((word, index) => {
    const isEnd = isCards && !(rest[index - 1] ?? value).endsWith(',');
    return isEnd || !isItem(word) || fs.existsSync(word);
  });
  const more = length < 0 ? rest : rest.slice(0, length);
  const isBracketed = isList && value.startsWith('[');
  if (more.length === 0 && !isBracketed) return;
  const items = [value, ...more].flatMap((word) => word.replaceAll(/[[\]]/g, '').split(','));
  throw cut('a list with commas', items.filter(Boolean).join(','), more.length);

  function cut(wanted: string, whole: string, count: number): LineMistake {
    const line = typed.corrected(at, [`--${flag.name}`, whole], end + 1 + count - at);
    return typed.mistake(
      `--${flag.name}: expected ${wanted} without ${count === 0 ? 'a unit' : 'spaces'}, found ${quote(value)}`,
      [{ ...line, isSpelling: true }],
    );
  }
}

/** Refuses `--set key value`, whose parts belong together. */
function checkSetting(
  typed: TypedLine,
  flag: DeclaredFlag,
  value: string,
  at: number,
  end: number,
): void {
  if ((flag as { helpValue?: string }).helpValue !== 'KEY=VALUE' || value.includes('=')) return;
  const next = typed.words[end + 1];
  const isValue = next !== undefined && !typed.isFlag(next);
  if (!isValue) return;
  throw typed.mistake(`--${flag.name}: expected KEY=VALUE, found ${quote(value)}`, [
    typed.corrected(at, [`--${flag.name}`, `${value}=${next}`], end + 2 - at),
  ]);
}

/** Splits `-qo` into `-q -o`. */
function splitCluster(typed: TypedLine, at: number): void {
  const word = typed.words[at] ?? '';
  if (word.length > 2) typed.words.splice(at, 1, word.slice(0, 2), `-${word.slice(2)}`);
}

function flagNamed(typed: TypedLine, word: string, at: number): DeclaredFlag {
  const name = word.startsWith('--') ? word.slice(2).split('=', 1)[0] : word[1];
  const folded = foldedName(name ?? '');
  const found = word.startsWith('--')
    ? typed.flags.find((flag) => foldedName(flag.name) === folded)
    : typed.flags.find(({ char }) => char === name);
  if (found) return found;
  throw typed.meanings.unknownFlag(typed, word, at);
}

/** Refuses `-ot RULE` of llama.cpp, which is no `-o` with the file `t`. */
function refuseLongWord(typed: TypedLine, word: string, at: number): void {
  if (!/^-[a-z]{2,4}$/.test(word) || !typed.isFlag(word.slice(0, 2))) return;
  const isCluster = [...word.slice(1)].every((each) => typed.isFlag(`-${each}`));
  if (isCluster || typed.meanings.flagMeanings(word.slice(1), typed.command.id).length === 0) {
    return;
  }
  throw typed.meanings.unknownFlag(typed, word, at);
}

/** Flags for a training of all weights, and for one of adapters. */
const OF_ALL_WEIGHTS = /^--(?:zero|fsdp|deepspeed|sharding[-_]strategy|optimizer[-_]in)/i;
const OF_SOME_WEIGHTS = /lora|peft|adapter|^--(?:rank|targets)\b/i;

/** The purpose of `--for finetuning`, which is a training of all weights with flags for one. */
function purposeMeant(typed: TypedLine, flag: string, value: string): string | undefined {
  const isOpen = flag === 'for' && /^(?:fine-?tun(?:e|ing)|sft)$/i.test(value);
  const isOfAll =
    typed.words.some((word) => OF_ALL_WEIGHTS.test(word)) &&
    !typed.words.some((word) => OF_SOME_WEIGHTS.test(word));
  return isOpen && isOfAll ? 'training' : undefined;
}

/** The choices that a value means; several in a list. */
function readChoices(
  typed: TypedLine,
  flag: DeclaredFlag,
  value: string,
  at: number,
  end: number,
): string {
  const { options = [], delimiter } = flag as { options?: string[]; delimiter?: string };
  refusePacked(typed, flag.name, value);
  const items = delimiter === undefined ? [value] : value.split(delimiter);
  const meant = items.map(
    (item) => purposeMeant(typed, flag.name, item) ?? nearestValue(flag.name, item, options),
  );
  const wrong = meant.indexOf(undefined);
  if (wrong < 0) return meant.join(delimiter);
  const advice = typed.meanings.valueAdvice(flag.name, items[wrong] ?? '');
  // A type that is only read is not a misspelling of a similar one: iq4_k, q4_k.
  const close = advice === undefined ? nearestWithDigits(items[wrong] ?? '', options) : undefined;
  const name = `--${flag.name}`;
  const inline = at === end ? value : undefined;
  const given = { at, value: inline, name: flag.name, written: name };
  // The flag is one of ours, and its value is chosen.
  const others = [
    ...meantLines(typed, given).map((line) => ({ ...line, isSpelling: false })),
    ...ofQuantization(typed, flag, given),
  ];
  throw typed.mistake(
    `${name}: expected ${choicesText(options)}, found ${quote(items[wrong] ?? '')}`,
    close === undefined || others.length > 0
      ? others
      : [typed.corrected(at, [name, items.with(wrong, close).join(delimiter)], end - at + 1)],
    undefined,
    advice ?? listingOf({ ...flag, options }),
  );
}

/** Refuses a type of packed safetensors in a GGUF file, which has types of its own for the same bits. */
function refusePacked(typed: TypedLine, flag: string, value: string): void {
  const bits = /^(?:u?int|nf)([48])$/i.exec(value)?.[1];
  if (typed.name !== 'convert-checkpoint' || flag !== 'dtype' || bits === undefined) return;
  const input = typed.arguments[0]?.word;
  if (!typed.words.some((word) => word !== input && /\.gguf$/i.test(word))) return;
  throw usageError(
    `${value.toLowerCase()} is a type of safetensors files`,
    `write --dtype ${bits === '4' ? 'q4_k_m or q4_0' : 'q8_0'}`,
  );
}

function addArgument(typed: TypedLine, at: number): void {
  const word = typed.words[at] ?? '';
  const index = typed.arguments.length;
  typed.arguments.push({ word, at });
  const declared = Object.values(typed.command.args)[index];
  if (!declared?.options) return;
  const meant = nearestValue(declared.name, word, declared.options);
  if (meant !== undefined) {
    typed.words[at] = meant;
    return;
  }
  const close = nearest(word, declared.options);
  throw typed.mistake(
    `${declared.name.toUpperCase()}: expected ${choicesText(declared.options)}, found ${quote(word)}`,
    close === undefined ? [] : [typed.corrected(at, [close])],
    undefined,
    listingOf(declared),
  );
}
