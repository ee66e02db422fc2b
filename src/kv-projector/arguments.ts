/** What a projector's constructor was called with: in a PyTorch file beside the state dict, else in the metadata. */
import type { Checkpoint } from '../checkpoint/checkpoint.js';
import { isKind } from '../checkpoint/torch/pickle/pickle-machine.js';
import type { Value } from '../checkpoint/torch/pickle/values.js';
import { quoted, tensorPlace } from '../checkpoint/wording.js';
import type { Problem } from '../errors.js';
import { UserError } from '../errors.js';
import { checkLength, parseJson } from './json-values.js';

export interface ConstructorArguments {
  /** All of them, by name, in the order of the file. */
  readonly values: ReadonlyMap<string, Value>;
  /** `student_d_model` */
  readonly studentWidth: number | undefined;
  /** `mlp_ratio` */
  readonly ratio: number | undefined;
  /** The names in `teacher_configs`, each with its `d_model`. */
  readonly teachers: ReadonlyMap<string, number | undefined>;
}

/** The key of the tensors in a PyTorch file. */
export const STATE_DICT = 'state_dict';
/** In the metadata of safetensors the library that wrote the file, a bare word such as `pt`; so no argument's name. */
export const CONTAINER_KEY = 'format';

export function constructorArguments(
  checkpoint: Checkpoint,
  complain: Complain,
): ConstructorArguments {
  const values =
    checkpoint.format === 'safetensors'
      ? fromMetadata(checkpoint.metadata, complain)
      : fromContent(checkpoint, complain);
  const configs = values.get('teacher_configs') ?? null;
  const teachers = new Map<string, number | undefined>();
  if (isKind(configs, 'dict')) {
    for (const [name, config] of configs.entries) {
      if (typeof name === 'string') teachers.set(name, numberIn(config, 'd_model'));
    }
  }
  const width = values.get('student_d_model');
  return {
    values,
    teachers,
    studentWidth: typeof width === 'number' ? width : undefined,
    ratio: ratioIn(values.get('mlp_ratio') ?? null),
  };
}

function ratioIn(value: Value): number | undefined {
  if (isKind(value, 'float')) return value.value;
  return typeof value === 'number' ? value : undefined;
}

function numberIn(config: Value, key: string): number | undefined {
  const value = isKind(config, 'dict') ? config.entries.get(key) : config;
  return typeof value === 'number' ? value : undefined;
}

/** A key of the content, where a dot within it, or a backslash, has a backslash before it. */
const KEY = /^(?:[^\\.]|\\[\\.])*$/s;

function fromContent({ content, stateDict }: Checkpoint, complain: Complain): Map<string, Value> {
  const values = new Map<string, Value>();
  if (stateDict.length > 1) {
    complain(
      undefined,
      `has its tensors in dicts within dicts, ${quoted(stateDict.join('.'))}`,
      SAVED,
    );
    return values;
  }
  for (const [key, value] of content) {
    if (KEY.test(key) && key !== STATE_DICT) values.set(key.replace(/\\([\\.])/g, '$1'), value);
    else complain(undefined, `has ${quoted(key)} among its tensors, which is none`, SAVED);
  }
  return values;
}

const SAVED = 'save a dict of the constructor’s arguments and state_dict';

function fromMetadata(
  metadata: ReadonlyMap<string, string>,
  complain: Complain,
): Map<string, Value> {
  const values = new Map<string, Value>();
  let characters = 0;
  for (const [key, text] of metadata) {
    characters += text.length;
    checkLength(characters);
    const value = parseJson(text);
    if (key === CONTAINER_KEY && value === undefined) continue;
    if (key === STATE_DICT) {
      complain(undefined, `has metadata of the name ${STATE_DICT}, which is that of the tensors`);
    }
    // Others write plain strings, which are no JSON; `None` is a value.
    values.set(key, value === undefined ? text : value);
  }
  return values;
}

// What is wrong with a file, all of it.

/** Gathers what is wrong with a file. */
export interface Complain {
  (name: string | undefined, message: string, suggestion?: string): void;
  error(): UserError;
  /** @throws UserError when there was something. */
  end(): void;
}

export function complaintsOf(file: string): Complain {
  const problems: Problem[] = [];
  const error = () => new UserError('refused-file', `${file} is refused`, { problems });
  return Object.assign(
    (name: string | undefined, message: string, suggestion?: string) => {
      const place = name === undefined ? {} : { path: tensorPlace(name) };
      const advice = suggestion === undefined ? {} : { suggestion };
      problems.push({ severity: 'error', file, ...place, message, ...advice });
    },
    {
      error,
      end: () => {
        if (problems.length > 0) throw error();
      },
    },
  );
}
