/** `diff` as a function: what differs between two configs or two checkpoints. */
import type { Problem } from '../base/errors.js';
import { namesText } from '../base/text/words.js';
import {
  type Difference,
  type DifferenceResult,
  differenceOf,
} from '../convert/difference/difference.js';
import { FAMILY_NAMES, type FamilyName } from '../model/architecture/families.js';
import { type AnswerNotes, withNotes } from './answer.js';
import { checkOptions, type OptionKinds, requireReference } from './arguments.js';
import { type HubOptions, mounted } from './models/load-model.js';
import { silent } from './warnings.js';

export interface DiffOptions extends Pick<HubOptions, 'offline'> {
  /** Whether to compare the values of checkpoints too. */
  readonly values?: boolean | undefined;
  /** Family to read a config as. */
  readonly family?: FamilyName | undefined;
  /** State dict of both sides, or one for each. */
  readonly stateDicts?: readonly string[] | undefined;
}

const DIFF_KINDS: OptionKinds<DiffOptions> = {
  offline: 'flag',
  values: 'flag',
  family: FAMILY_NAMES,
  stateDicts: 'list',
};

/**
 * Compares two configs or two checkpoints: keys, layers, and tensors by name.
 * @throws UserError when one is a config and the other a checkpoint, or one cannot be read.
 */
export async function diff(
  first: string,
  second: string,
  options: DiffOptions = {},
): Promise<DifferenceResult & AnswerNotes> {
  for (const each of [first, second]) requireReference(each, 'diff');
  checkOptions('diff', options, DIFF_KINDS);
  const { values = false, family, stateDicts = [], offline } = options;
  const need = values ? 'values' : 'index';
  const a = await mounted(first, need, { offline });
  const b = await mounted(second, need, { offline });
  const surroundings = silent();
  const difference = await differenceOf(
    [a.path, b.path],
    { family, stateDicts, comparedBy: values ? 'values' : undefined },
    surroundings,
  );
  return withNotes(
    { schema: 'minimind/diff@1', ...difference },
    {
      warnings: [...surroundings.warnings, ...skippedValues(difference)],
      references: [...a.references, ...b.references],
    },
  );
}

/** The warning about tensors whose values could not be compared. */
export function skippedValues({ values, b }: Difference): Problem[] {
  const skipped = values?.skipped ?? [];
  if (skipped.length === 0) return [];
  const types = skipped.flatMap((each) => [each.types.before, each.types.after]);
  const names = namesText(skipped.map(({ name }) => name));
  const message = `values were not compared, because a type cannot be read (${[...new Set(types)].join(', ')}): ${names}`;
  return [{ severity: 'warning', file: b.path, message }];
}
