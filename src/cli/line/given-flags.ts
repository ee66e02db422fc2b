/** Flags of a line that is read, by their names here and in other tools. */
import { foldedName } from '../foreign/spellings.js';
import type { TypedLine } from './typed-line.js';

/** Values that turn a switch on, and those that turn it off. */
export const TRUE = /^(?:true|yes|on|1)$/i;
export const FALSE = /^(?:false|no|off|0)$/i;

/** The value of a flag in the line, by any name that means this flag in the command. */
export const valueGiven = (typed: TypedLine, flag: string, except?: number): string | undefined =>
  givenFlag(typed, flag, except)?.value;

interface PlacedFlag {
  readonly at: number;
  readonly value: string | undefined;
  /** Number of its words. */
  readonly length: number;
}

/** A flag in the line, by any name that means it in the command. */
export function givenFlag(typed: TypedLine, flag: string, except?: number): PlacedFlag | undefined {
  for (const [at, word] of typed.words.entries()) {
    if (at === except) continue;
    const [, name, inline] = /^--?([a-z][\w.-]*)(?:=(.*))?$/i.exec(word) ?? [];
    if (name === undefined) continue;
    const meanings = typed.meanings
      .flagMeanings(name, typed.command.id)
      .flatMap((each) => (each.isOfStep ? [] : [each.name]));
    const own = meanings.find((each) => Object.hasOwn(typed.command.flags, each)) ?? meanings[0];
    const meant = typed.isFlag(`--${name}`) ? name : (own ?? '');
    if (foldedName(meant) !== foldedName(flag)) continue;
    return { at, value: inline ?? typed.words[at + 1], length: inline === undefined ? 2 : 1 };
  }
  return undefined;
}
