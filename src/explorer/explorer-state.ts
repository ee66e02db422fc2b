/** State of the explorer: one or two models and a setting. Every view follows from it. */
import { parseDtype } from '../base/tensor/dtype.js';
import { isRecord } from '../base/values.js';

/** A model as its text. */
export interface ExploredModel {
  /** Name of its file or preset, as in messages and command lines. */
  readonly name: string;
  /** Text of its config: YAML, or JSON. */
  readonly text: string;
}

/** Settings that are not part of a config. An absent one has the default of the command. */
export interface ExplorerSetting {
  /** Tokens of a sequence. */
  readonly context?: number;
  /** Sequences at a time. */
  readonly batch?: number;
  /** Users at the same time. */
  readonly users?: number;
  /** Type of the weights. */
  readonly dtype?: string;
  /** Type of keys, values and states. */
  readonly cacheDtype?: string;
  /** Name of the GPU or machine. */
  readonly gpu?: string;
  /** Number of GPUs. */
  readonly gpus?: number;
  /** Sequences of a GPU in a training. */
  readonly microBatch?: number;
  /** Tokens of a training. */
  readonly trainTokens?: number;
}

export interface ExplorerState {
  /** One model, or two side by side. */
  readonly models: readonly [ExploredModel] | readonly [ExploredModel, ExploredModel];
  /** Position of the model that the controls edit. */
  readonly edited: 0 | 1;
  readonly setting: ExplorerSetting;
}

/** Largest text of a model in a link, in characters. */
const MOST_CHARACTERS = 1_000_000;

const LONGEST_NAME = 300;

const NUMBERS = ['context', 'batch', 'users', 'gpus', 'microBatch', 'trainTokens'] as const;
const NAMES = ['dtype', 'cacheDtype', 'gpu'] as const;

/** A state out of a link, which can have any content. Undefined where it is not one. */
export function readState(value: unknown): ExplorerState | undefined {
  if (!isRecord(value) || !Array.isArray(value.models)) return undefined;
  const [first, second] = value.models.map(readModel);
  if (first === undefined || value.models.length > 2) return undefined;
  if (value.models.length === 2 && second === undefined) return undefined;
  return {
    models: second === undefined ? [first] : [first, second],
    edited: value.edited === 1 && second !== undefined ? 1 : 0,
    setting: readSetting(value.setting),
  };
}

function readModel(value: unknown): ExploredModel | undefined {
  if (!isRecord(value)) return undefined;
  const { name, text } = value;
  if (typeof name !== 'string' || typeof text !== 'string') return undefined;
  if (name.length > LONGEST_NAME || text.length > MOST_CHARACTERS) return undefined;
  return { name, text };
}

function readSetting(value: unknown): ExplorerSetting {
  if (!isRecord(value)) return {};
  const numbers = NUMBERS.flatMap((key) => {
    const number = value[key];
    const isCount = typeof number === 'number' && Number.isSafeInteger(number) && number > 0;
    return isCount ? [[key, number]] : [];
  });
  const names = NAMES.flatMap((key) => {
    const name = value[key];
    return typeof name === 'string' && name.length <= LONGEST_NAME ? [[key, name]] : [];
  });
  return Object.fromEntries([...numbers, ...names]);
}

/** The state with another text of the edited model. A changed preset becomes a file of its own. */
export function withText(state: ExplorerState, text: string): ExplorerState {
  const model = editedModel(state);
  if (text === model.text) return state;
  return withModel(state, { name: fileName(model.name), text });
}

/** The state with another edited model. */
export function withModel(state: ExplorerState, model: ExploredModel): ExplorerState {
  const [first, second] = state.models;
  if (second === undefined) return { ...state, models: [model] };
  return { ...state, models: state.edited === 0 ? [model, second] : [first, model] };
}

/** The state with a setting changed, or at its default for undefined. */
export function withSetting<Key extends keyof ExplorerSetting>(
  state: ExplorerState,
  key: Key,
  value: ExplorerSetting[Key] | undefined,
): ExplorerState {
  const { [key]: _, ...others } = state.setting;
  return { ...state, setting: value === undefined ? others : { ...others, [key]: value } };
}

/** Two models side by side: a copy of the only one, which is then edited. */
export function withSecond(state: ExplorerState, model?: ExploredModel): ExplorerState {
  const [first] = state.models;
  const copy = model ?? { name: secondName(first.name), text: first.text };
  return { ...state, models: [first, copy], edited: 1 };
}

/** Only the model of a position. */
export function withOnly(state: ExplorerState, kept: 0 | 1): ExplorerState {
  return { ...state, models: [state.models[kept] ?? state.models[0]], edited: 0 };
}

export const editedModel = ({ models, edited }: ExplorerState): ExploredModel =>
  models[edited] ?? models[0];

/** Name of the file of a changed model: `llama/llama-3.1-405b` becomes `llama-3.1-405b.yaml`. */
export function fileName(name: string): string {
  if (/\.(?:ya?ml|json)$/i.test(name)) return name;
  const last = name.split(/[/\\]/).at(-1) || 'model';
  return `${last.replaceAll(/[^\p{L}\p{N}._-]/gu, '-')}.yaml`;
}

const secondName = (name: string): string => fileName(name).replace(/(\.\w+)$/, '-b$1');

/** The type of the weights, if `profile` knows it: types of GGUF files are those of `fit` only. */
export const profileDtype = ({ dtype }: ExplorerSetting) =>
  dtype === undefined ? undefined : parseDtype(dtype);
