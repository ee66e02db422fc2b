/** A `config.json` of Hugging Face as the `model` section of a document of ours. */
import type * as z from 'zod';

type Json = Readonly<Record<string, unknown>>;

interface Reading {
  /** Other names that a value of ours has there, the first that is given being taken. */
  readonly names?: Readonly<Record<string, readonly string[]>>;
  /** Values that are to be worked out; undefined for what the file does not say. */
  readonly more?: (config: Json) => Json;
}

/**
 * The values of a `config.json` that a family's model has keys for; the others say nothing of what the model
 * is. Rotary settings come in two forms: transformers 5 writes `rope_parameters`, all before `rope_theta` and
 * `rope_scaling`; where both stand, transformers reads the latter.
 */
export function readHuggingFace(
  model: z.ZodObject,
  config: Json,
  { names = {}, more = () => ({}) }: Reading = {},
): Record<string, unknown> {
  const settings: Record<string, unknown> = {};
  const found = { ...config, ...defined(rotarySettingsIn(config)) };
  for (const key of Object.keys(model.shape)) {
    if (key === 'family') continue;
    const name = [key, ...(names[key] ?? [])].find((each) => Object.hasOwn(found, each));
    if (name !== undefined) settings[key] = found[name as keyof typeof found];
  }
  // `dtype` is the name of `torch_dtype` from transformers 5 on.
  if (typeof config.dtype === 'string') settings.torch_dtype = config.dtype;
  return withoutNulls({ ...settings, ...defined(more(config)) }, model);
}

export const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const defined = (values: Json): Json =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));

/** `null` stands for what is left out wherever the family does not mean something by it. */
function withoutNulls(settings: Json, model: z.ZodObject): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(settings).filter(
      ([key, value]) => value !== null || model.shape[key]?.safeParse(null).success === true,
    ),
  );
}

/** The value that a `config.json` has of rotary positions. */
export function rotaryIn(config: Json): Json {
  if (isObject(config.rope_scaling)) return config.rope_scaling;
  return isObject(config.rope_parameters) ? config.rope_parameters : {};
}

function rotarySettingsIn(config: Json): Json {
  const rotary = rotaryIn(config);
  return {
    rope_theta: rotary.rope_theta ?? config.rope_theta,
    rope_scaling: scalingIn(rotary),
  };
}

/** Keys of `rope_parameters` that are settings of their own here. */
const APART = ['type', 'rope_theta', 'partial_rotary_factor'] as const;

/** How older files call a type of scaling. */
const OLD_TYPES: Readonly<Record<string, string>> = { su: 'longrope' };

/** Undefined where nothing is stretched. */
export function scalingIn(rotary: Json): Json | undefined {
  const type = rotary.rope_type ?? rotary.type ?? 'default';
  if (type === 'default') return undefined;
  const rest = Object.fromEntries(
    Object.entries(rotary).filter(([key]) => !APART.some((apart) => apart === key)),
  );
  return { ...rest, rope_type: typeof type === 'string' ? (OLD_TYPES[type] ?? type) : type };
}

/**
 * Whether a config tells of a model in memory, not of files: transformers 5, which holds some tensors otherwise
 * than it saves them, wrote it, and it names no `architectures`, as one beside a saved model does.
 */
export function isHeldInMemory(config: Json): boolean {
  const version = Number.parseInt(String(config.transformers_version ?? ''), 10);
  return version >= 5 && config.architectures == null;
}

/** How the tensors of a mixture's experts are stored when only a config tells. */
export const expertsIn = (config: Json): 'packed' | 'separate' =>
  isHeldInMemory(config) ? 'packed' : 'separate';
