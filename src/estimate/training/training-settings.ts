/** Settings of a training from a file's `training:` section, with those that flags replace. */

import { type SettingName, setting } from '../../base/text/setting.js';
import { isRecord } from '../../base/values.js';
import type { NamedTraining, TrainingKey } from '../../model/architecture/training-section.js';
import { isTrainingKey, namedTraining } from '../../model/architecture/training-section.js';

/** Values by key; undefined where neither the file nor a flag has one. */
export type TrainingValues = NamedTraining['settings'];

export interface TrainingSettings {
  readonly values: TrainingValues;
  /** Place of a value: `training.warmup_iters` in the file, or `--warmup`. */
  placeOf(key: TrainingKey): string;
  /** Whether the value is not from the file. */
  isGiven(key: TrainingKey): boolean;
  /** Whether the file has the key. What a file leaves out has no usual value, because the file describes a training. */
  isInFile(key: TrainingKey): boolean;
  readonly contradictions: NamedTraining['contradictions'];
  /** Learning rates of the file under names that have no meaning here. */
  readonly unreadRates: readonly UnreadRate[];
}

interface UnreadRate {
  /** `solver.muon_lr` */
  readonly path: string;
  readonly value: number;
}

/** Names that end as those of a learning rate do. */
const RATE_NAME = /(?:^|[_-]|[a-z])(?:lr|LR|lrate|learning[_-]?[rR]ate|LearningRate)$/;

/** Depth of the sections that are searched for learning rates. */
const RATE_DEPTH = 4;

/** Learning rates in a section, other than the keys that are read. */
function ratesIn(section: Record<string, unknown>, path: readonly string[]): UnreadRate[] {
  return Object.entries(section).flatMap(([key, value]): UnreadRate[] => {
    const here = [...path, key];
    if (isRecord(value)) return here.length < RATE_DEPTH ? ratesIn(value, here) : [];
    const isRead = path.length === 1 && path[0] === 'training' && isTrainingKey(key);
    const isRate = typeof value === 'number' && value > 0 && RATE_NAME.test(key);
    return isRate && !isRead ? [{ path: here.join('.'), value }] : [];
  });
}

/** Values that are given beside the document, with the settings that give them. */
export type GivenSettings = {
  readonly [Key in TrainingKey]?: {
    readonly setting: SettingName;
    readonly value: TrainingValues[Key];
  };
};

/** Settings of which a flag replaces all others. */
const EXCLUSIVE: readonly (readonly TrainingKey[])[] = [
  ['max_steps', 'total_tokens', 'num_epochs'],
  ['warmup_steps', 'warmup_ratio'],
  ['min_lr', 'min_lr_ratio'],
  ['decay_steps', 'decay_ratio'],
  ['fp16', 'bf16'],
];

/** Keys of the `data:` section that say the same as one of `training:`. */
const DATA_KEYS = {
  tokens: 'dataset_tokens',
  longest: 'longest_sample',
  packing: 'packing',
  tokenizer_size: 'tokenizer_size',
} as const satisfies Record<string, TrainingKey>;

/**
 * The settings of a document, with flags in their place.
 * @param document A parsed config of any family.
 */
export function trainingSettings(document: unknown, given: GivenSettings = {}): TrainingSettings {
  const sections = isRecord(document) ? document : {};
  const { settings, keys, contradictions } = namedTraining(
    isRecord(sections.training) ? sections.training : undefined,
  );
  const places = new Map<string, string>(
    Object.entries(keys).map(([key, name]) => [key, `training.${name}`]),
  );
  const values: Record<string, unknown> = { ...settings };
  for (const [name, value] of Object.entries(isRecord(sections.data) ? sections.data : {})) {
    const key = Object.hasOwn(DATA_KEYS, name)
      ? DATA_KEYS[name as keyof typeof DATA_KEYS]
      : undefined;
    if (key === undefined || values[key] !== undefined || !isOfKey(key, value)) continue;
    values[key] = value;
    places.set(key, `data.${name}`);
  }
  const own = Object.entries(given).filter(([, each]) => each?.value !== undefined);
  for (const [key] of own) {
    const others = EXCLUSIVE.find((each) => each.some((one) => one === key)) ?? [];
    for (const other of others) delete values[other];
  }
  const ownKeys = new Set(own.map(([key]) => key));
  for (const [key, each] of own) {
    values[key] = each.value;
    places.set(key, setting(each.setting));
  }
  return {
    values: values as TrainingValues,
    placeOf: (key) => places.get(key) ?? `training.${key}`,
    isGiven: (key) => ownKeys.has(key),
    isInFile: (key) => settings[key] !== undefined,
    contradictions,
    unreadRates: ratesIn({ ...sections, model: undefined }, []),
  };
}

/** The `data:` section is free, so a value of another type means something else. */
const isOfKey = (key: TrainingKey, value: unknown): boolean =>
  key === 'packing' ? typeof value === 'boolean' : typeof value === 'number' && value >= 1;
