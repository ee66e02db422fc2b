/** Settings of a LoRA adapter: adapter_config.json of PEFT (peft/tuners/lora/config.py). */

import { isUtf8 } from 'node:buffer';
import { asText } from '../../base/values.js';
import { ByteFile } from '../byte-file.js';
import type { CheckpointRule } from '../checkpoint-rules.js';
import { quoted, refusal } from '../checkpoint-rules.js';
import type { JsonRules, JsonValue } from '../json-scanner.js';
import { JsonScanner } from '../json-scanner.js';

export interface AdapterConfig {
  readonly file: string;
  readonly rank: number;
  readonly alpha: number;
  /** Whether deltas are scaled by alpha / √rank instead of alpha / rank. */
  readonly isRankStabilised: boolean;
  readonly rankPattern: ReadonlyMap<string, number>;
  readonly alphaPattern: ReadonlyMap<string, number>;
  /** Names of the modules, or a pattern for their paths. Null when the config leaves them to PEFT. */
  readonly targets: readonly string[] | string | null;
  /** Modules that are left out, or a pattern for their paths. */
  readonly excluded: readonly string[] | string;
  /** Numbers of the layers; empty for all. Only for targets that are names. */
  readonly layers: readonly number[];
  /** Names of the lists of layers: `layers`, `h`; empty for any. */
  readonly layerLists: readonly string[];
  /** Modules whose weights the adapter replaces. */
  readonly replaced: readonly string[];
  readonly bias: string;
  /** Whether weights of the model are stored as [inputs, outputs], as GPT-2 does. */
  readonly isFanInFanOut: boolean;
  /** Name of the model that it was trained on, or its path at that time. */
  readonly base: string | null;
  /** Settings that change the result of a merge and are not read: `use_dora`. */
  readonly unread: readonly string[];
}

const MAX_BYTES = 2 ** 22;

const JSON_RULES: JsonRules = {
  syntax: 'adapter-json',
  depth: { rule: 'adapter-depth', most: 32, message: 'nests values more than 32 deep' },
  keys: { rule: 'adapter-keys', most: 100_000 },
  repeatedKey: 'adapter-key-twice',
  hasNumberWords: true,
};

/** Settings that only matter in training, or that the tensors of the adapter show. */
const HARMLESS: ReadonlySet<string> = new Set([
  ...[
    'auto_mapping',
    'inference_mode',
    'lora_dropout',
    'megatron_core',
    'peft_version',
    'revision',
  ],
  ...['runtime_config', 'task_type'],
  // PEFT reads these only with certain values of init_lora_weights or use_qalora.
  ...['corda_config', 'eva_config', 'loftq_config', 'lora_ga_config', 'qalora_group_size'],
  'lora_bias',
]);

/** Settings that are read here. */
const READ: ReadonlySet<string> = new Set([
  ...['peft_type', 'r', 'lora_alpha', 'use_rslora', 'rank_pattern', 'alpha_pattern', 'bias'],
  ...['target_modules', 'modules_to_save', 'fan_in_fan_out', 'base_model_name_or_path'],
  ...['layers_pattern', 'layers_to_transform', 'exclude_modules'],
  'init_lora_weights',
]);

/** Initial values that leave the weights of the model as they are; others, such as PiSSA, change them on loading too. */
const PLAIN_BEGINNINGS: ReadonlySet<JsonValue> = new Set([
  ...[true, false, null, 'gaussian', 'orthogonal', 'eva'],
]);

/** @throws UserError that names the violated rule. */
export function readAdapterConfig(file: string): AdapterConfig {
  return new ConfigReader(file, valuesIn(file)).read();
}

function valuesIn(path: string): ReadonlyMap<string, JsonValue> {
  const file = ByteFile.open(path);
  try {
    const bytes = file.read(0, Math.min(file.size, MAX_BYTES + 1));
    const isRight = bytes.length <= MAX_BYTES && isUtf8(bytes);
    const scanner = isRight
      ? new JsonScanner({ file: path, bytes, rules: JSON_RULES, suggestion: DAMAGED })
      : undefined;
    const value = scanner?.value();
    scanner?.end();
    if (value instanceof Map) return value;
  } finally {
    file.close();
  }
  throw refusal(path, {
    rule: 'adapter-object',
    message: `expected an object of JSON in UTF-8, of at most ${MAX_BYTES} bytes`,
    suggestion: DAMAGED,
  });
}

const DAMAGED = 'copy the file again, or save the adapter again with PEFT';

class ConfigReader {
  readonly #file: string;
  readonly #values: ReadonlyMap<string, JsonValue>;

  constructor(file: string, values: ReadonlyMap<string, JsonValue>) {
    this.#file = file;
    this.#values = values;
  }

  read(): AdapterConfig {
    const type = this.#values.get('peft_type') ?? null;
    if (type !== 'LORA') {
      throw this.#refusal(
        'adapter-type',
        'peft_type',
        type,
        '"LORA"',
        'merge it with PEFT: model.merge_and_unload()',
      );
    }
    const base = this.#values.get('base_model_name_or_path');
    return {
      file: this.#file,
      rank: this.#number('r', this.#values.get('r') ?? 8),
      alpha: this.#number('lora_alpha', this.#values.get('lora_alpha') ?? 8),
      isRankStabilised: this.#flag('use_rslora'),
      rankPattern: this.#pattern('rank_pattern'),
      alphaPattern: this.#pattern('alpha_pattern'),
      targets: this.#namesOrPattern('target_modules'),
      excluded: this.#namesOrPattern('exclude_modules') ?? [],
      layers: this.#layers(),
      layerLists: [this.#namesOrPattern('layers_pattern') ?? []].flat().filter(Boolean),
      replaced: this.#names('modules_to_save'),
      bias: asText(this.#values.get('bias') ?? 'none'),
      isFanInFanOut: this.#flag('fan_in_fan_out'),
      base: typeof base === 'string' && base !== '' ? base : null,
      unread: this.#unread(),
    };
  }

  #refusal(
    rule: CheckpointRule,
    key: string,
    found: JsonValue,
    expected: string,
    suggestion?: string,
  ) {
    const text =
      found instanceof Map || Array.isArray(found) ? 'a list or an object' : JSON.stringify(found);
    return refusal(this.#file, {
      rule,
      place: key,
      message: `expected ${expected}, found ${text}`,
      suggestion,
    });
  }

  #number(key: string, value: JsonValue): number {
    if (typeof value === 'number' && value > 0 && Number.isFinite(value)) return value;
    throw this.#refusal('adapter-number', key, value, 'a number above 0');
  }

  #flag(key: string): boolean {
    const value = this.#values.get(key) ?? false;
    if (typeof value === 'boolean') return value;
    throw this.#refusal('adapter-flag', key, value, 'true or false');
  }

  #names(key: string): readonly string[] {
    const value = this.#values.get(key) ?? [];
    if (Array.isArray(value) && value.every((name) => typeof name === 'string')) return value;
    throw this.#refusal('adapter-names', key, value, 'a list of names');
  }

  #namesOrPattern(key: string): readonly string[] | string | null {
    const value = this.#values.get(key) ?? null;
    return value === null || typeof value === 'string' ? value : this.#names(key);
  }

  #layers(): readonly number[] {
    const key = 'layers_to_transform';
    const value = this.#values.get(key) ?? [];
    const numbers = Array.isArray(value) ? value : [value];
    const isNumber = (each: JsonValue) => typeof each === 'number' && Number.isSafeInteger(each);
    if (numbers.every(isNumber)) return numbers as readonly number[];
    throw this.#refusal('adapter-layers', key, value, 'a number of a layer, or a list of them');
  }

  #pattern(key: string): ReadonlyMap<string, number> {
    const value = this.#values.get(key) ?? new Map<string, JsonValue>();
    if (!(value instanceof Map))
      throw this.#refusal('adapter-pattern', key, value, 'an object of patterns');
    return new Map([...value].map(([pattern, number]) => [pattern, this.#number(key, number)]));
  }

  /** Settings with an effect that is not read, and all that are unknown and set. */
  #unread(): string[] {
    const isUnset = (value: JsonValue) =>
      value === null ||
      value === false ||
      (Array.isArray(value) && value.length === 0) ||
      (value instanceof Map && value.size === 0);
    const unread = [...this.#values]
      .filter(([key, value]) => !HARMLESS.has(key) && !READ.has(key) && !isUnset(value))
      .map(([key]) => key);
    const start = this.#values.get('init_lora_weights') ?? true;
    return PLAIN_BEGINNINGS.has(start)
      ? unread
      : [...unread, `init_lora_weights ${quoted(asText(start))}`];
  }
}

/** Test of whether a module is one of `modules_to_save`, or in one. */
export function replacedTest({ replaced }: AdapterConfig): (module: string) => boolean {
  const names = new Set(replaced);
  const lengths = [...new Set(replaced.map((name) => name.split('.').length))];
  return (module) => {
    const parts = names.size === 0 ? [] : module.split('.');
    return parts.some((_, from) =>
      lengths.some((length) => names.has(parts.slice(from, from + length).join('.'))),
    );
  };
}
