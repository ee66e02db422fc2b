/** One setting for models that are compared: figures at different lengths say nothing about each other. */
import type { TrainingHints } from '../architecture/family.js';
import { type ProfileWish, type ResolvedSetting, resolveSetting } from '../budget/setting.js';

/** What the files of the models say, and cannot all have. */
export interface Disagreement {
  readonly of: 'batch' | 'context' | 'precision' | 'recompute';
  readonly said: readonly (number | string | boolean)[];
}

export interface CommonSetting extends ResolvedSetting {
  readonly disagreements: readonly Disagreement[];
}

/**
 * The flags before what the files agree on before the defaults. Where the files name different lengths, the
 * shortest, unless a model takes less; where they name different batches or precisions, the default.
 * @param hints What each file says.
 * @param positions The longest input of each model.
 */
export function commonSetting(
  wish: ProfileWish,
  hints: readonly TrainingHints[],
  positions: readonly number[],
): CommonSetting {
  const least = Math.min(...positions);
  const shortest = Math.min(...hints.flatMap(({ context }) => context ?? []));
  const disagreements: Disagreement[] = [];
  const agreed = <Key extends Disagreement['of']>(key: Key): TrainingHints[Key] => {
    const said = [...new Set(hints.map((hint) => hint[key]).filter((each) => each !== undefined))];
    const isFitting = said.length <= 1 && (key !== 'context' || shortest <= least);
    if (said.length > 0 && !isFitting && wish[key] === undefined) {
      disagreements.push({ of: key, said });
    }
    return said.length > 1 ? undefined : said[0];
  };
  agreed('context');
  const common: TrainingHints = {
    batch: agreed('batch'),
    context: shortest <= least ? shortest : undefined,
    precision: agreed('precision'),
    recompute: agreed('recompute'),
    beyondOneDevice: [...new Set(hints.flatMap(({ beyondOneDevice = [] }) => beyondOneDevice))],
  };
  // Of a length that the user names, each model says for itself that it is too long.
  const setting = resolveSetting(wish, common, wish.context ?? least);
  return { ...setting, disagreements };
}
