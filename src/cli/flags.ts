/** Flags with the same meaning in every command. */
import os from 'node:os';
import * as Flags from '@oclif/core/flags';
import type * as Interfaces from '@oclif/core/interfaces';
import { FAMILY_NAMES } from '../architecture/families.js';
import { nearest } from '../config/nearest.js';
import { lacksUnit, parseCount, parseLimit } from '../config/parse-limit.js';
import type { PublishedBytes, PublishedFigure } from '../config/parse-published.js';
import { parsePublished } from '../config/parse-published.js';
import { quote } from '../config/quote.js';
import { UserError } from '../errors.js';
import { FORMATS, type Format } from '../report/kit/report.js';
import type { Compute } from '../runtime/engine.js';
import type { DeviceChoice, EngineChoice } from '../runtime/select/devices.js';
import {
  DTYPE_NAMES,
  DTYPE_SPELLINGS,
  type Dtype,
  GROUP_SIZES,
  parseDtype,
  QUANTIZED_BITS,
} from '../tensor/dtype.js';
import type { WeightForm } from '../tensor/group-quantization.js';
import { shortCount, shortNumber } from '../text/units.js';
import { pasteable } from './command-line.js';

/** Copy of the devices in `src/runtime/engine.ts`, which is loaded only when a model runs. */
export const DEVICE_CHOICES = Object.keys({
  auto: true,
  cpu: true,
  gpu: true,
  webgpu: true,
  cuda: true,
  directml: true,
  coreml: true,
} satisfies Record<DeviceChoice, true>) as DeviceChoice[];

/** Engines in the order in which they are tried. */
export const ENGINE_CHOICES = Object.keys({
  auto: true,
  onnx: true,
  tfjs: true,
} satisfies Record<EngineChoice, true>) as EngineChoice[];

const COMPUTES = Object.keys({ f32: true, f16: true } satisfies Record<Compute, true>) as Compute[];

export type ParsedFlags<F> = Omit<Interfaces.InferredFlags<F>, 'json'>;

/** `--format`; the first option is the default. */
export const formatFlag = (options: readonly [Format, ...Format[]]) =>
  Flags.option({
    options: options as readonly Format[],
    default: options[0],
    multiple: false,
    description: 'format of the answer',
    helpGroup: 'OUTPUT',
  } as const)();

/** Flags of every command. */
export const baseFlags = {
  format: formatFlag(FORMATS),
  json: Flags.boolean({ description: 'short for --format json', helpGroup: 'OUTPUT' }),
  output: Flags.string({
    char: 'o',
    helpValue: 'FILE',
    description: 'write the answer to FILE, whole or not at all',
    helpGroup: 'OUTPUT',
  }),
  force: Flags.boolean({ description: 'replace FILE if it exists', helpGroup: 'OUTPUT' }),
  quiet: Flags.boolean({
    char: 'q',
    description: 'print no warnings and no progress',
    helpGroup: 'OUTPUT',
  }),
  'no-color': Flags.boolean({ description: 'print without colours', helpGroup: 'OUTPUT' }),
};

/** `--details`, for commands whose answer is shorter than what they know. */
export const details = Flags.boolean({
  description: 'show all tables of the answer',
  helpGroup: 'OUTPUT',
});

/** `--save FILE`: the artifact of a command, which cannot go to standard output. */
export const savedFile = Flags.custom<string, { readonly example: string }>({
  helpValue: 'FILE',
  helpGroup: 'OUTPUT',
  parse: async (text, _context, { name, example }) =>
    text === '-' ? unreadable(name, text, 'a file', `write --${name} ${example}`) : text,
});

/** `--set model.num_layers=24`, repeatable. */
export const setOf = (description: string, helpGroup?: string) =>
  Flags.string({
    multiple: true,
    multipleNonGreedy: true,
    helpValue: 'KEY=VALUE',
    description: `${description} (repeatable)`,
    ...(helpGroup && { helpGroup }),
  });

export const set = setOf('override a value of the file, as in model.num_layers=24');

/** `--state-dict model_state_dict`: the model's dict in a PyTorch file, when there are several candidates. */
export const stateDict = Flags.string({
  helpValue: 'KEY',
  description: 'state dict to read, if a PyTorch file has several',
});

/** `--family llama`: reads a `config.json` of another kind as that family. */
export const readAs = Flags.option({
  options: FAMILY_NAMES,
  helpValue: 'NAME',
  description:
    'family to read a config.json as, for a model_type that is not known (minimind list --details)',
} as const)();

/** `--offline`, for commands that take models of the hub. */
export const offline = Flags.boolean({
  description: 'read hf:ORG/NAME[@REVISION][:FILE] only from the caches of this machine',
});

/** Flags of a model whose weights are needed: a checkpoint, or a config with either of these. */
export const weightFlags = {
  set,
  family: readAs,
  checkpoint: Flags.string({
    helpValue: 'PATH',
    description: 'a file, an index or a folder with the weights of a config',
  }),
  'state-dict': stateDict,
  random: Flags.boolean({
    description: 'use random weights instead of a checkpoint',
    exclusive: ['checkpoint', 'state-dict'],
  }),
};

/** Flags of a model that is a config, or a checkpoint with its config. */
export const modelFlags = {
  set,
  family: readAs,
  config: Flags.string({
    helpValue: 'FILE',
    description: 'config of the checkpoint [default: the one in it or in its folder]',
  }),
  'state-dict': stateDict,
  offline,
};

/** Suggestions for an unknown type: the nearest, those that begin with it, or all. */
export function typeSuggestion<T extends string>(
  text: string,
  names: readonly T[],
  parse: (text: string) => T | undefined,
): string {
  const wanted = text.trim().toLowerCase().replaceAll('-', '_');
  const longer = names.filter((name) => name.startsWith(`${wanted}_`));
  if (longer.length > 1) return `write one of ${longer.join(', ')}`;
  const spellings = [...names, ...DTYPE_SPELLINGS].filter((each) => parse(each) !== undefined);
  const near = nearest(wanted, new Set(spellings));
  return near ? `did you mean ${parse(near)}?` : `write one of ${names.join(', ')}`;
}

/** `--dtype bf16`, by any usual name of a type. */
export const dtype = Flags.custom<Dtype>({
  helpValue: 'TYPE',
  parse: async (text, context, options) => {
    const parsed = parseDtype(text);
    if (parsed) return parsed;
    if (options.name === 'dtype') await refuseServedType(text, context);
    return unreadable(
      options.name,
      text,
      'an element type',
      typeSuggestion(text, DTYPE_NAMES, parseDtype),
    );
  },
});

/** @throws UserError for a type of weights that only `fit` counts, as q4_k_m. */
async function refuseServedType(text: string, context: object): Promise<void> {
  const { parseWeightDtype } = await import('../fit/serving/weight-types.js');
  const served = parseWeightDtype(text);
  if (served === undefined) return;
  const argv = 'argv' in context && Array.isArray(context.argv) ? context.argv : [];
  const [model = ''] = argv.filter((word) => typeof word === 'string');
  const words = ['fit', ...(model.startsWith('-') ? [] : [model]), '--dtype', served];
  throw new UserError(
    'usage',
    `--dtype: expected an element type, found ${quote(text)}, a type of quantized files`,
    { suggestion: `for its memory write ${pasteable(words)}` },
  );
}

/** `--precision float32`, for training. */
const precision = Flags.option({
  options: ['mixed', 'float32'],
  description: 'precision of the training [default: as in the file, or mixed]',
} as const)();

/** `--recompute full`, for training. */
const recompute = Flags.option({
  options: ['none', 'selective', 'full'],
  description: 'activations to recompute [default: as in the file, or none]',
} as const)();

/** Comma-separated names: `--columns parameters,weights`. */
export const names = Flags.custom<string>({
  multiple: true,
  multipleNonGreedy: true,
  delimiter: ',',
  helpValue: 'NAME,NAME',
});

/** Comma-separated positive integers: `--ranks 128,64`. */
export const counts = Flags.custom<number>({
  multiple: true,
  multipleNonGreedy: true,
  delimiter: ',',
  helpValue: 'N,N',
  parse: async (text, context, options) => wholeNumber(text, options.name, context),
});

/** A positive integer: `128`, `32_768`, `1e4`, `32k`. */
export const count = Flags.custom<number>({
  helpValue: 'N',
  parse: async (text, context, options) => wholeNumber(text, options.name, context),
});

/** A number of tokens in a sequence, where `32k` is 32,768. */
export const tokens = Flags.custom<number>({
  helpValue: 'N',
  parse: async (text, context, options) => wholeNumber(text, options.name, context, 'tokens'),
});

/** Comma-separated numbers of tokens: `--max-positions 32k,16k`. */
export const tokenCounts = Flags.custom<number>({
  multiple: true,
  multipleNonGreedy: true,
  delimiter: ',',
  helpValue: 'N,N',
  parse: async (text, context, options) => wholeNumber(text, options.name, context, 'tokens'),
});

/** A growth factor: `--factor 4`, `--factor 1.5`. */
export const times = Flags.custom<number>({
  helpValue: 'N',
  parse: async (text, _context, options) => {
    const value = Number(text);
    if (/^\s*\d+(\.\d+)?\s*$/.test(text) && Number.isFinite(value) && value >= 1) return value;
    return unreadable(
      options.name,
      text,
      'a factor of at least 1',
      `write it as in --${options.name} 4`,
    );
  },
});

/** Comma-separated ratios: `--published 2,8,3.8`. */
export const ratios = Flags.custom<number>({
  multiple: true,
  multipleNonGreedy: true,
  delimiter: ',',
  helpValue: 'N,N',
  parse: async (text, _context, { name }) => {
    const value = Number(/^\s*(\d+(?:\.\d+)?)\s*[x×]?\s*$/i.exec(text)?.[1]);
    if (value > 0 && Number.isFinite(value)) return value;
    return unreadable(name, text, 'a ratio above 0', `write it as in --${name} 3.8`);
  },
});

/** `--device gpu`: device that runs a model; default `auto`. */
export const device = (
  relations: { readonly dependsOn?: string[]; readonly helpGroup?: string } = {},
) =>
  Flags.option({
    ...relations,
    options: DEVICE_CHOICES,
    description:
      'device: gpu is any graphics card, webgpu also a software adapter [default: auto, a ' +
      'graphics card that passes the self-check, else the CPU]',
  } as const)();

/** `--engine onnx`: engine that runs a model; default `auto`. */
export const engine = (
  relations: { readonly dependsOn?: string[]; readonly helpGroup?: string } = {},
) =>
  Flags.option({
    ...relations,
    options: ENGINE_CHOICES,
    description:
      'engine: auto is the first that passes the self-check: onnx, then tfjs with ' +
      'tfjs-node-gpu, tfjs-node, WebAssembly, JavaScript [default: auto]',
  } as const)();

/** `--compute f16`: number type of products. */
export const compute = (description: string, helpGroup?: string) =>
  Flags.option({
    options: COMPUTES,
    default: 'f32',
    description,
    ...(helpGroup && { helpGroup }),
  } as const)();

/** Group of a form that names none. */
const USUAL_GROUP = 32;

/** `int8`, `q4`, `4bit`, `int4-64`, `int4-g128`. */
const WEIGHT_FORM =
  /^(?:u?int|i|q|w)?[-_ ]?(8|4)[-_ ]?(?:bits?)?(?:[-_:/ ]+(?:g|group)?[-_ ]?(\d+)|g(\d+))?$/;

/** `--weights int4-64`: form of the matrices of a run. */
export const weightForm = Flags.custom<WeightForm>({
  helpValue: 'FORM',
  description:
    'quantize matrices: int8 or int4, with the values of a group, as in int4-64; groups of 16, 32, 64 or 128 ' +
    '[default: float32; groups of 32]',
  parse: async (text, _context, { name }) => {
    const [, bitsFound, first, second] = WEIGHT_FORM.exec(text.trim().toLowerCase()) ?? [];
    const bits = QUANTIZED_BITS.find((each) => each === Number(bitsFound));
    const size = Number(first ?? second ?? USUAL_GROUP);
    const group = GROUP_SIZES.find((each) => each === size);
    if (bits !== undefined && group !== undefined) return { bits, group };
    const expected =
      bits === undefined ? 'int8 or int4, with or without a group' : 'a group of 16, 32, 64 or 128';
    return unreadable(name, text, expected, `write --${name} int${bits ?? 8}-${USUAL_GROUP}`);
  },
});

/** `--threads 2`: at most the number of processors, because more would slow an engine down. */
export const threads = Flags.custom<number>({
  helpValue: 'N',
  description: 'threads of the engine [default: one for each processor]',
  parse: async (text, context, options) => {
    const value = wholeNumber(text, options.name, context);
    const most = os.availableParallelism();
    if (value <= most) return value;
    throw new UserError(
      'usage',
      `--${options.name}: expected at most ${most}, the processors here, found ${text}`,
      { suggestion: `write --${options.name} ${most}` },
    );
  },
});

/** `--seed 7`: a non-negative safe integer. */
export const seedOf = Flags.custom<number>({
  helpValue: 'N',
  parse: async (text, _context, { name }) =>
    parseCount(text) ?? unreadable(name, text, 'a whole number', `write it as in --${name} 7`),
});

export const seed = seedOf({ default: 0, description: 'seed of random values' });

/** A number above 0, or also 0. @param example A value for error messages. */
const numberFlag = (example: string, canBeZero: boolean) =>
  Flags.custom<number>({
    helpValue: 'NUMBER',
    parse: async (text, _context, { name }) => {
      const value = Number(text);
      const isNumber = /^\s*[\d.]+(e[+-]?\d+)?\s*$/i.test(text) && Number.isFinite(value);
      if (isNumber && (value > 0 || (canBeZero && value === 0))) return value;
      const expected = canBeZero ? 'a number of at least 0' : 'a number above 0';
      return unreadable(name, text, expected, `write it as in --${name} ${example}`);
    },
  });

/** A positive number: `0.4`, `2.5`, `1e3`. */
export const positive = numberFlag('0.5', false);

/** A positive number such as a learning rate: `3e-4`. */
export const learningRate = numberFlag('3e-4', false);

/** A number that can be 0: `0.1`. */
export const notNegative = numberFlag('0.1', true);

/** `0.05` or `5%` as a share; NaN for another text. */
export function parseShare(text: string): number {
  const [, number, percent] = /^\s*(\d*\.?\d+(?:e[+-]?\d+)?)\s*(%?)\s*$/i.exec(text) ?? [];
  return Number(number) / (percent ? 100 : 1);
}

/** A share: above 0, at most 1. */
export const share = Flags.custom<number>({
  helpValue: 'SHARE',
  parse: async (text, _context, { name }) => {
    const value = parseShare(text);
    if (value > 0 && value <= 1) return value;
    const expected = 'a share above 0, at most 1';
    return unreadable(name, text, expected, `write it as in --${name} 0.4 or --${name} 40%`);
  },
});

const SECONDS = { us: 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600 } as const;

/** A time, in seconds: `500ms`, `1.5s`, `2min`. */
export const duration = Flags.custom<number>({
  helpValue: 'TIME',
  parse: async (text, _context, options) => {
    const [, number, unit] = /^\s*(\d+(?:\.\d+)?)\s*(us|ms|s|min|h)\s*$/.exec(text) ?? [];
    const value = Number(number) * SECONDS[unit as keyof typeof SECONDS];
    if (value > 0) return value;
    return unreadable(
      options.name,
      text,
      'a time with its unit',
      `write it as in --${options.name} 500ms`,
    );
  },
});

/** A limit on a count: `14B`, `13.4M`, `2e9`. */
export const countLimit = Flags.custom<number | bigint>({
  helpValue: 'N',
  parse: async (text, _context, options) =>
    parseLimit(text, 'count') ??
    unreadable(options.name, text, 'a count', `write it as in --${options.name} 26M`),
});

/** Counts are exact up to here. */
const MOST_TOKENS = Number.MAX_SAFE_INTEGER;

/** A number of tokens of `countLimit`, above 0. */
export function tokenTotal(flag: string, value: number | bigint | undefined): number | undefined {
  if (value === undefined) return undefined;
  const number = Number(value);
  if (number > 0 && Number.isSafeInteger(number)) return number;
  const expected = number > 0 ? `at most ${shortCount(MOST_TOKENS)} tokens` : 'tokens above 0';
  const found = number > 0 ? shortNumber(number) : value;
  throw new UserError('usage', `--${flag}: expected ${expected}, found ${found}`, {
    suggestion: `write it as in --${flag} 10B`,
  });
}

/** A limit on a size: `24GB`, `512MiB`, `24G`. A small number without a unit is ambiguous. */
export const bytesLimit = Flags.custom<number | bigint>({
  helpValue: 'SIZE',
  parse: async (text, _context, { name }) => {
    if (lacksUnit(text, 'bytes')) {
      const number = text.trim();
      const suggestion = `write --${name} ${number}GB or ${number}GiB, or ${number}B for bytes`;
      return unreadable(name, text, 'a size with its unit', suggestion);
    }
    return (
      parseLimit(text, 'bytes') ?? unreadable(name, text, 'a size', `write it as in --${name} 24GB`)
    );
  },
});

/** A published number with its printed digits: `22,143,967,232`, `~13.8B`, `536MB`, `57x`, `96.9%`. */
export const publishedNumber = Flags.custom<PublishedNumber>({
  helpValue: 'N',
  parse: async (text, _context, options) => {
    const published = parsePublished(text);
    if (published?.unit !== 'bytes' && published !== undefined) return published;
    const dtype = parseDtype(published?.type ?? '');
    if (published && (published.type === undefined || dtype)) {
      return { ...published, ...(dtype && { dtype }) };
    }
    return unreadable(
      options.name,
      text,
      'a count, a size, a ratio or a percentage',
      `write it as in --${options.name} 13.8B, ~25M, 536MB, 57x or 96.9%`,
    );
  },
});

export type PublishedNumber =
  | Exclude<PublishedFigure, { readonly unit: 'bytes' }>
  | (PublishedBytes & { readonly dtype?: Dtype });

/** A range of positive integers: `--depth 4..40`, `4-40`, `4:40`, or a single one. */
export const range = Flags.custom<{ readonly least: number; readonly most: number }>({
  helpValue: 'N..M',
  parse: async (text, _context, { name }) => {
    const [first = '', last = first, ...more] = text.split(/\s*(?:\.{2,3}|[-:–…]|\bto\b)\s*/);
    const [least, most] = [first, last].map((each) => positiveCount(each));
    if (least !== undefined && most !== undefined && least <= most && more.length === 0) {
      return { least, most };
    }
    const isReversed = least !== undefined && most !== undefined && more.length === 0;
    const example = isReversed ? `${most}..${least}` : '4..40';
    return unreadable(name, text, 'a range from small to large', `write --${name} ${example}`);
  },
});

const positiveCount = (text: string, unit: 'count' | 'tokens' = 'count'): number | undefined =>
  parseCount(text, unit) || undefined;

/**
 * Parses a positive whole number. A unit is explained in a note, because k is 1,000 for some counts and 1,024 for tokens.
 * @param context The command, which prints its `notes`.
 */
function wholeNumber(
  text: string,
  flag: string,
  context: object,
  unit: 'count' | 'tokens' = 'count',
): number {
  const value = positiveCount(text, unit);
  if (value === undefined) {
    const example = unit === 'tokens' ? '4096 or 32k' : '128';
    return unreadable(flag, text, 'a positive whole number', `write it as in --${flag} ${example}`);
  }
  if (/[a-z]\s*$/i.test(text) && 'notes' in context && Array.isArray(context.notes)) {
    const words = unit === 'tokens' ? ' tokens' : '';
    context.notes.push(`--${flag} ${text.trim()}: ${value.toLocaleString('en-US')}${words}`);
  }
  return value;
}

function unreadable(flag: string, text: string, expected: string, suggestion: string): never {
  throw new UserError('usage', `--${flag}: expected ${expected}, found ${quote(text)}`, {
    suggestion,
  });
}

/** Sizes and types of inference and training, for budgets. */
export const settingFlags = {
  batch: count({ description: 'sequences per batch [default: 1; in training as in the file]' }),
  context: tokens({
    description: 'tokens per sequence; 32k is 32,768 [default: as in the file, or 2048]',
  }),
  dtype: dtype({
    default: 'bf16',
    description: 'element type of weights in inference',
  }),
  'cache-dtype': dtype({
    description: 'element type of keys, values and states [default: as --dtype, at least 16 bits]',
  }),
  causal: Flags.boolean({
    default: false,
    description: 'count only unmasked attention scores',
  }),
  precision,
  recompute,
};
