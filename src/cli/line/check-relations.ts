/** Checks which flags of a line need each other, or exclude each other. */
import { joined } from '../../base/text/words.js';
import { type DeclaredFlag, exampleOf, isPlaceholder } from './flag-example.js';
import type { MeantLine } from './line-mistake.js';
import { withoutFlag } from './meant-lines.js';
import type { TypedLine } from './typed-line.js';

/** Names of flags of which a flag needs at least one. */
const alternativesOf = ({ relationships = [] }: DeclaredFlag): string[] =>
  relationships
    .filter(({ type }) => type === 'some')
    .flatMap(({ flags }) => flags.filter((each) => typeof each === 'string'));

export function checkRelations(typed: TypedLine): void {
  checkRequired(typed);
  if (typed.isOfTool) typed.meanings.refuseOtherPurpose(typed);
  for (const flag of typed.flags) {
    const { name } = flag;
    const at = typed.given.get(name);
    if (at === undefined) continue;
    const needed = flag.dependsOn?.find((each) => !typed.isSet(each));
    if (needed !== undefined) {
      throw typed.mistake(`--${name} requires --${needed}`, [
        ...leftOutOfTool(typed, flag, at),
        ...withoutPlaceholder(typed, flag, at, needed),
        typed.added(typed.command.flags[needed]),
      ]);
    }
    const choice = alternativesOf(flag);
    if (choice.length > 0 && !choice.some((each) => typed.isSet(each))) {
      const wanted = choice.map((each) => `--${each}`).join(' or ');
      throw typed.mistake(
        `--${name} requires ${wanted}`,
        choice.map((each) => typed.added(typed.command.flags[each])),
      );
    }
    const other = flag.exclusive?.find((each) => typeof each === 'string' && typed.given.has(each));
    if (typeof other === 'string') {
      const [place, declared] = [typed.given.get(other) ?? at, typed.command.flags[other] ?? flag];
      const both = [
        { flag, at },
        { flag: declared, at: place },
      ];
      // The flag that was written first is kept, and a dry run stays a dry run.
      const isKept = (each: (typeof both)[number]) => each.flag.name === 'dry-run';
      both.sort((a, b) => Number(isKept(a)) - Number(isKept(b)) || b.at - a.at);
      throw typed.mistake(
        `--${name} and --${other} cannot be used together`,
        both.map((each) => ({
          ...typed.corrected(each.at, [], typed.lengthOf(each.flag, each.at)),
          isShorter: true,
        })),
      );
    }
  }
}

/** The line of another tool without a flag that requires one whose value cannot be an example. */
function withoutPlaceholder(
  typed: TypedLine,
  flag: DeclaredFlag,
  at: number,
  needed: string,
): MeantLine[] {
  const declared = typed.command.flags[needed];
  // A switch that is missing has no value.
  if (!typed.isOfTool || declared?.type !== 'option' || !isPlaceholder(exampleOf(declared)))
    return [];
  const length = typed.lengthOf(flag, at);
  const written = typed.words.slice(at, at + length).join(' ');
  const line = typed.corrected(at, [], length);
  return [{ ...line, leftOut: [`${written} requires --${needed}`] }];
}

/** The line of another tool without a flag that it has in another sense, which changes no answer here: `--threads`. */
function leftOutOfTool(typed: TypedLine, { name, type }: DeclaredFlag, at: number): MeantLine[] {
  if (!typed.isOfTool) return [];
  const [, value] = typed.words[at]?.split(/=(.*)/s) ?? [];
  const length = typed.lengthOf({ name, type } as DeclaredFlag, at);
  return typed.meanings
    .flagMeanings(name, typed.command.id)
    .filter((meaning) => meaning.name === '' || meaning.name === '<none>')
    .map((meaning) =>
      withoutFlag(typed, { at, name, value, written: `--${name}` }, meaning.name, length),
    );
}

function checkRequired(typed: TypedLine): void {
  if (typed.isPlanned) return;
  const missing = typed.flags.filter(({ required, name }) => required && !typed.given.has(name));
  if (missing.length === 0) return;
  const names = joined(missing.map(({ name }) => `--${name}`));
  throw typed.mistake(`${names} ${missing.length > 1 ? 'are' : 'is'} required`, [
    typed.added(...missing),
  ]);
}
