/** Commands and configs of other programs for a plan, and the programs that they are for. */

/** Purpose of a program. */
export type EmitPurpose = 'serving' | 'training';

interface EmitProgram {
  readonly title: string;
  readonly purpose: EmitPurpose;
  /** Ending of a file with the text. */
  readonly ending: '.sh' | '.yaml' | '.toml' | '.json';
  /** Version whose flags or keys were looked up. */
  readonly version: string;
}

export const EMIT_PROGRAMS = {
  'llama-server': {
    title: 'llama-server',
    purpose: 'serving',
    ending: '.sh',
    // ggml-org/llama.cpp, tools/server/README.md: the list of its flags.
    version: 'llama.cpp, commit 00dc8057',
  },
  vllm: {
    title: 'vLLM',
    purpose: 'serving',
    ending: '.sh',
    // vllm-project/vllm, vllm/engine/arg_utils.py; the same flags in the lists of 0.8.5 and 0.20.
    version: 'vLLM, commit 001999d2 to 0.20',
  },
  sglang: {
    title: 'SGLang',
    purpose: 'serving',
    ending: '.sh',
    // sgl-project/sglang, python/sglang/srt/server_args.py: a flag for each field.
    version: 'SGLang, commit 001067ff',
  },
  torchrun: {
    title: 'torchrun',
    purpose: 'training',
    ending: '.sh',
    version: 'TrainingArguments of transformers 5.0',
  },
  accelerate: {
    title: 'accelerate',
    purpose: 'training',
    ending: '.yaml',
    version: 'accelerate 1.15.0.dev0',
  },
  deepspeed: {
    title: 'DeepSpeed',
    purpose: 'training',
    ending: '.json',
    version: 'DeepSpeed 0.19.6',
  },
  axolotl: { title: 'axolotl', purpose: 'training', ending: '.yaml', version: 'axolotl 0.18.0' },
  torchtitan: {
    title: 'torchtitan',
    purpose: 'training',
    ending: '.toml',
    version: 'torchtitan 0.2.2',
  },
  megatron: {
    title: 'Megatron-LM',
    purpose: 'training',
    ending: '.sh',
    version: 'Megatron-LM 0.20.0',
  },
} as const satisfies Record<string, EmitProgram>;

export type EmitName = keyof typeof EMIT_PROGRAMS;

export const EMIT_NAMES = Object.keys(EMIT_PROGRAMS) as EmitName[];

/** Programs for a purpose. */
export const emitNamesFor = (purpose: EmitPurpose): EmitName[] =>
  EMIT_NAMES.filter((name) => EMIT_PROGRAMS[name].purpose === purpose);

/** A plan as the command or the config of a program. */
export interface Emitted {
  /** Name of the program: `vllm`. */
  readonly program: string;
  /** Version whose flags or keys were looked up. */
  readonly version: string;
  /** The command or the config. */
  readonly text: string;
  /** Parts of the plan without a flag or key in this program. */
  readonly withoutCounterpart: readonly string[];
}

/** The name of a model for other programs. */
export interface EmittedModel {
  /** Repository, folder or file; a placeholder where no weights are known. */
  readonly name: string;
  /** Meaning of the placeholder, if it has one. */
  readonly note?: string;
}
