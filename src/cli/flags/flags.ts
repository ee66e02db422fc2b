/** Flags with the same meaning in every command. */
import os from 'node:os';
import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import type * as Interfaces from '@oclif/core/interfaces';
import { usageError } from '../../base/errors.js';
import {
  endingOf,
  refuseOtherEnding,
  refuseOtherEndingEarly,
} from '../../base/files/file-endings.js';
import type { Compute } from '../../engine/engine.js';
import type { DeviceChoice, EngineChoice } from '../../engine/select/devices.js';
import { FAMILY_NAMES } from '../../model/architecture/families.js';
import { RECOMPUTE_NAMES } from '../../model/budget/flops.js';
import { PRECISION_NAMES } from '../../model/budget/optimizers.js';
import type { Format } from '../../report/kit/report.js';
import { DIAGRAM_FORMATS, FORMATS, PICTURE_FORMATS } from '../../report/kit/report.js';
import { count, dtype, seedOf, tokens, unreadable, wholeNumber } from './value-flags.js';

/** Copy of the devices in `src/engine/engine.ts`, which is loaded only when a model runs. */
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

export const COMPUTES = Object.keys({ f32: true, f16: true } satisfies Record<
  Compute,
  true
>) as Compute[];

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
  fields: Flags.string({
    helpValue: 'NAME,…',
    description: 'fields of the JSON to print, as in parameters,memory.bytes (also --json=NAME,…)',
    helpGroup: 'OUTPUT',
  }),
  jq: Flags.string({
    helpValue: 'EXPR',
    description: 'print what a jq expression selects from the JSON, as in .schema',
    helpGroup: 'OUTPUT',
  }),
  output: Flags.string({
    char: 'o',
    helpValue: 'FILE',
    description:
      'write the answer to FILE, whole or not at all (.html, .svg, .json, .csv, .md; .txt for a table)',
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

/** Flags of commands whose answer has a picture. */
export const pictureFlags = { ...baseFlags, format: formatFlag(PICTURE_FORMATS) };

/** Flags of commands whose answer is a diagram. */
export const diagramFlags = { ...baseFlags, format: formatFlag(DIAGRAM_FORMATS) };

/** `--details`, for commands whose answer is shorter than what they know. */
export const details = Flags.boolean({
  description: 'show all tables of the answer',
  helpGroup: 'OUTPUT',
});

/** `--save FILE`: the artifact of a command, which cannot go to standard output. Its ending is that of the example. */
export const savedFile = Flags.custom<string, { readonly example: string }>({
  helpValue: 'FILE',
  helpGroup: 'OUTPUT',
  parse: async (text, _context, { name, example }) => {
    if (text === '-') return unreadable(name, text, 'a file', `write --${name} ${example}`);
    refuseOtherEndingEarly(`--${name}`, text, [endingOf(example)]);
    return text;
  },
});

/** OUT: an artifact whose ending selects its format. */
export const savedArgument = (description: string, endings: readonly string[]) =>
  Args.string({
    required: true,
    ignoreStdin: true,
    description,
    parse: async (text, _context, { name }) => {
      refuseOtherEndingEarly(name.toUpperCase(), text, endings);
      return text;
    },
  });

/** `--save FILE`: a config, which is written as YAML. */
export const savedConfig = Flags.custom<string>({
  helpValue: 'FILE',
  helpGroup: 'OUTPUT',
  parse: async (text, _context, { name }) => {
    refuseOtherEnding(`--${name}`, text, ['.yaml', '.yml']);
    return text;
  },
});

/** A model by any reference; by default that of the folder. */
export const modelArgument = Args.custom<string>({
  ignoreStdin: true,
  description:
    'a preset, a config, - for standard input, or a checkpoint [default: the model of this folder]',
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

/** `--family llama`: reads a config as that family. */
export const readAs = Flags.option({
  options: FAMILY_NAMES,
  helpValue: 'NAME',
  description:
    'family to read a config as, for one that names none, or an unknown one (minimind list --details)',
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

/** The flags, with the state dict under its name in code. */
export const sourceOf = <Given extends { readonly 'state-dict'?: string | undefined }>(
  flags: Given,
) => ({
  ...flags,
  stateDict: flags['state-dict'],
});

/** The given flags of a model as words, for another command on the same model. */
export const modelWords = (flags: Partial<ParsedFlags<typeof modelFlags>>): string[] => [
  ...(flags.set ?? []).flatMap((override) => ['--set', override]),
  ...(['family', 'config', 'state-dict'] as const).flatMap((name) => {
    const value = flags[name];
    return value === undefined ? [] : [`--${name}`, value];
  }),
  ...(flags.offline ? ['--offline'] : []),
];

/** `--precision float32`, for training. */
const precision = Flags.option({
  options: PRECISION_NAMES,
  description:
    'bf16 weights with a float32 copy (mixed), bf16 without one (bf16), mixed with FP8 products (fp8), or float32 [default: as in the file, or mixed]',
} as const)();

/** `--recompute full`, for training. */
const recompute = Flags.option({
  options: RECOMPUTE_NAMES,
  description:
    'activations to recompute: insides of attention (selective), all but attention and every second product (operations), norms and activations (compiled), or all of a block (full) [default: as in the file, or none]',
} as const)();

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
export const compute = (description: string) =>
  Flags.option({ options: COMPUTES, default: 'f32', description } as const)();

/** `--threads 2`: at most the number of processors, because more would slow an engine down. */
export const threads = Flags.custom<number>({
  helpValue: 'N',
  description: 'threads of the engine [default: one for each processor]',
  parse: async (text, context, options) => {
    const value = wholeNumber(text, options.name, context);
    const most = os.availableParallelism();
    if (value <= most) return value;
    throw usageError(
      `--${options.name}: expected at most ${most}, the processors here, found ${text}`,
      `write --${options.name} ${most}`,
    );
  },
});

export const seed = seedOf({ default: 0, description: 'seed of random values' });

/** Sizes and types of inference and training, for budgets. */
export const settingFlags = {
  batch: count({ description: 'sequences per batch [default: 1; in training as in the file]' }),
  context: tokens({
    description: 'tokens per sequence; 32k is 32,768 [default: as in the file, or 2048]',
  }),
  dtype: dtype({
    description: 'element type of weights in inference [default: as stored, or bf16]',
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
