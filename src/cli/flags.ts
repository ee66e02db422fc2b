/** Flags with the same meaning in every command. */
import os from 'node:os';
import * as Flags from '@oclif/core/flags';
import type * as Interfaces from '@oclif/core/interfaces';
import { nearest } from '../config/nearest.js';
import { lacksUnit, parseLimit, parseRounded } from '../config/parse-limit.js';
import { quote } from '../config/quote.js';
import { UserError } from '../errors.js';
import { FORMATS, type Format } from '../report/kit/report.js';
import type { Compute } from '../runtime/engine.js';
import type { DeviceChoice, EngineChoice } from '../runtime/select/devices.js';
import { DTYPE_NAMES, DTYPE_SPELLINGS, type Dtype, parseDtype } from '../tensor/dtype.js';

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
    description: 'how to print the answer',
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
  description: 'the dict of a PyTorch file that holds the tensors, when there are several',
});

/** Flags of a model that is a config, or a checkpoint with its config. */
export const modelFlags = {
  set,
  config: Flags.string({
    helpValue: 'FILE',
    description: 'the config of a checkpoint [default: the one in it, or in its folder]',
  }),
  'state-dict': stateDict,
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
  parse: async (text, _context, options) => {
    const parsed = parseDtype(text);
    if (parsed) return parsed;
    throw new UserError('usage', `--${options.name}: ${quote(text)} is not an element type`, {
      suggestion: typeSuggestion(text, DTYPE_NAMES, parseDtype),
    });
  },
});

/** `--precision float32`, for training. */
const precision = Flags.option({
  options: ['mixed', 'float32'],
  description: 'of the training [default: as in the file, or mixed]',
} as const)();

/** `--recompute full`, for training. */
const recompute = Flags.option({
  options: ['none', 'selective', 'full'],
  description: 'activations computed again [default: as in the file, or none]',
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
  parse: async (text, _context, options) => wholeNumber(text, options.name),
});

/** A positive integer. */
export const count = Flags.custom<number>({
  helpValue: 'N',
  parse: async (text, _context, options) => wholeNumber(text, options.name),
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
      'is no factor',
      'write a number from 1 on, as in 4 or 1.5',
    );
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
      'what the model runs on: gpu is any graphics card, webgpu also a software adapter [default: auto, a ' +
      'graphics card that computes what it should, else the CPU]',
  } as const)();

/** `--engine onnx`: engine that runs a model; default `auto`. */
export const engine = (
  relations: { readonly dependsOn?: string[]; readonly helpGroup?: string } = {},
) =>
  Flags.option({
    ...relations,
    options: ENGINE_CHOICES,
    description:
      'what runs the model; auto is the first that computes what it should: onnx, then tfjs with ' +
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

/** `--threads 2`: at most the number of processors, because more would slow an engine down. */
export const threads = Flags.custom<number>({
  helpValue: 'N',
  description: 'threads of the engine [default: one for each processor]',
  parse: async (text, _context, options) => {
    const value = wholeNumber(text, options.name);
    const most = os.availableParallelism();
    if (value <= most) return value;
    throw new UserError(
      'usage',
      `--${options.name}: ${text} are more than the ${most} processors here`,
      {
        suggestion: `ask for at most ${most}`,
      },
    );
  },
});

/** `--seed 7`: a non-negative safe integer. */
export const seed = Flags.integer({
  min: 0,
  max: Number.MAX_SAFE_INTEGER,
  default: 0,
  description: 'of whatever is random',
});

/** A positive number: `0.4`, `2.5`, `1e3`. */
export const positive = Flags.custom<number>({
  helpValue: 'NUMBER',
  parse: async (text, _context, options) => {
    const value = Number(text);
    if (/^\s*[\d.]+(e[+-]?\d+)?\s*$/i.test(text) && value > 0 && Number.isFinite(value))
      return value;
    return unreadable(
      options.name,
      text,
      'is no number above zero',
      `write one as in --${options.name} 0.5`,
    );
  },
});

/** A share: above 0, at most 1. */
export const share = Flags.custom<number>({
  helpValue: 'SHARE',
  parse: async (text, _context, options) => {
    const value = Number(text);
    if (/^\s*[\d.]+(e-?\d+)?\s*$/i.test(text) && value > 0 && value <= 1) return value;
    return unreadable(
      options.name,
      text,
      'is no share of one',
      `write one as in --${options.name} 0.4`,
    );
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
      'is not a time',
      `write one as in --${options.name} 500ms`,
    );
  },
});

/** A limit on a count: `14B`, `13.4M`, `2e9`. */
export const countLimit = Flags.custom<number | bigint>({
  helpValue: 'N',
  parse: async (text, _context, options) =>
    parseLimit(text, 'count') ??
    unreadable(options.name, text, 'is no count', 'write one as 26M, 13.4B or 1000000'),
});

/** A limit on a size: `24GB`, `512MiB`, `24G`. A small number without a unit is ambiguous. */
export const bytesLimit = Flags.custom<number | bigint>({
  helpValue: 'SIZE',
  parse: async (text, _context, { name }) => {
    if (lacksUnit(text, 'bytes')) {
      const number = text.trim();
      const suggestion = `write ${number}GB or ${number}GiB, or ${number}B for bytes`;
      throw new UserError(
        'usage',
        `--${name}: expected a size with its unit, found ${quote(text)}`,
        {
          suggestion,
        },
      );
    }
    return (
      parseLimit(text, 'bytes') ??
      unreadable(name, text, 'is not a size', 'write one as 24GB, 512MiB or 1000000000')
    );
  },
});

/** A published number with its printed digits: `22,143,967,232`, `13.8B`. */
export const publishedNumber = Flags.custom<NonNullable<ReturnType<typeof parseRounded>>>({
  helpValue: 'N',
  parse: async (text, _context, options) =>
    parseRounded(text) ??
    unreadable(options.name, text, 'is no count', 'write one as 7B, 13.8B or 22,143,967,232'),
});

/** A range of positive integers: `--depth 4..40`, or a single one. */
export const range = Flags.custom<{ readonly least: number; readonly most: number }>({
  helpValue: 'N..M',
  parse: async (text, _context, options) => {
    const [first = '', last = first, ...more] = text.split('..');
    const [least, most] = [first, last].map((each) => wholeNumber(each, options.name));
    if (least !== undefined && most !== undefined && least <= most && more.length === 0) {
      return { least, most };
    }
    return unreadable(options.name, text, 'is no range', `write one as in --${options.name} 4..40`);
  },
});

function wholeNumber(text: string, flag: string): number {
  const value = Number(text);
  if (/^\s*\d+\s*$/.test(text) && Number.isSafeInteger(value) && value > 0) return value;
  return unreadable(flag, text, 'is no positive whole number', `write one as in --${flag} 128`);
}

function unreadable(flag: string, text: string, what: string, suggestion: string): never {
  throw new UserError('usage', `--${flag}: ${quote(text)} ${what}`, { suggestion });
}

/** Sizes and types of inference and training, for budgets. */
export const settingFlags = {
  batch: count({ description: 'sequences at a time [default: 1; in training as in the file]' }),
  context: count({ description: 'tokens of a sequence [default: as in the file, or 2048]' }),
  dtype: dtype({
    default: 'bf16',
    description: 'element type of weights and caches in inference',
  }),
  causal: Flags.boolean({
    default: false,
    description: 'count only the attention that the mask lets through',
  }),
  precision,
  recompute,
};
