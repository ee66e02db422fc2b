/** Relations between settings, as data: which one requires another, and which one excludes another. */
import { type UserError, usageError } from '../errors.js';
import { type SettingName, setting } from './setting.js';

/** A setting, or one value of it. */
type Other<Name> = Name | readonly [name: Name, value: string];

/**
 * `['rank', 'requires', ['layout', 'low-rank']]`: the first setting has an effect only with one of the others, or only
 * without all of them.
 */
export interface Relation<Name extends SettingName> {
  readonly of: readonly [name: Name, relation: 'requires' | 'excludes', ...others: Other<Name>[]];
  /** Others that the message names; the rest also satisfies the relation. */
  readonly named?: number;
  /** Suggested fix; by default to leave the setting out, or to write the other one. */
  readonly advice?: () => string;
}

type Given<Name extends SettingName> = Readonly<Partial<Record<Name, unknown>>>;

/** @throws UserError for the first relation that the given values break. */
export function refuseBroken<Name extends SettingName>(
  relations: readonly Relation<Name>[],
  given: Given<Name>,
): void {
  const broken = relations.find((relation) => isBroken(relation, given));
  if (broken) throw brokenError(broken, given);
}

function isBroken<Name extends SettingName>(
  { of: [name, relation, ...others] }: Relation<Name>,
  given: Given<Name>,
): boolean {
  const isMet = others.some((other) => isPresent(other, given));
  return isGiven(given[name]) && isMet === (relation === 'excludes');
}

const isPresent = <Name extends SettingName>(other: Other<Name>, given: Given<Name>): boolean =>
  typeof other === 'string' ? isGiven(given[other]) : given[other[0]] === other[1];

/** Whether a setting is given; a switch that is off is not. */
const isGiven = (value: unknown): boolean => value !== undefined && value !== false;

function brokenError<Name extends SettingName>(
  broken: Relation<Name>,
  given: Given<Name>,
): UserError {
  const [name, relation, ...others] = broken.of;
  const shown =
    relation === 'requires'
      ? others.slice(0, broken.named)
      : others.filter((other) => isPresent(other, given));
  const written = shown
    .map((other) => (typeof other === 'string' ? setting(other) : setting(...other)))
    .join(' or ');
  if (relation === 'requires') {
    return usageError(
      `${setting(name)} requires ${written}`,
      broken.advice?.() ?? `leave out ${setting(name)}, or write ${written}`,
    );
  }
  return usageError(
    `${setting(name)} has no effect with ${written}`,
    broken.advice?.() ?? `leave out ${setting(name)}, or ${written}`,
  );
}
