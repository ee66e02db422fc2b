/** The tools of the server: what a client can ask, and the command line that answers it. All only read. */
import * as z from 'zod';

const MODEL =
  'a config (YAML or config.json), a folder or checkpoint below the root, a preset (minimind2-small), a published model ' +
  '(qwen3-8b), or hf:ORG/NAME';

const model = z.string().min(1).max(4096).describe(MODEL);

const models = z.array(model).min(1).max(100);

const set = z
  .array(z.string().regex(/^[^=\s-][^=\s]*=/, 'expected KEY=VALUE'))
  .max(100)
  .optional()
  .describe('changes of the config, as in model.num_layers=24');

const count = z.number().int().positive();

const fields = z
  .array(z.string().regex(/^[\w.-]+$/))
  .min(1)
  .max(50)
  .optional()
  .describe(
    'fields of the JSON to return, as in parameters.total.value; by default the answer in Markdown',
  );

const details = z.boolean().optional().describe('the long answer, with all tables');

/** Sizes of a run. */
const setting = {
  context: count.optional().describe('tokens per sequence'),
  batch: count.optional().describe('sequences per batch'),
};

/** Types that the counts have. */
const dtype = z
  .string()
  .optional()
  .describe('type of the weights in inference: f32, bf16, f8, int8, int4');

/** Types that programs serve, also the packed ones of llama.cpp. */
const servedDtype = z
  .string()
  .optional()
  .describe('type of the weights in inference: bf16, f8, int8, int4, mxfp4, q8_0, q4_k_m');

const checkpoint = z
  .string()
  .min(1)
  .max(4096)
  .describe(
    'a file with weights (safetensors, .pt, .gguf, .onnx) or a folder with them below the root, or hf:ORG/NAME; not a config',
  );

/** A word of a command line for each value that is given. */
const flag = (name: string, value: string | number | undefined): string[] =>
  value === undefined ? [] : [`--${name}=${value}`];

const sets = (changes: readonly string[] | undefined): string[] =>
  (changes ?? []).map((change) => `--set=${change}`);

interface Tool<Input extends z.ZodObject = z.ZodObject> {
  readonly title: string;
  readonly description: string;
  readonly input: Input;
  /** Models that the command reads. */
  models(input: z.infer<Input>): readonly string[];
  /** Words after the command and its models. */
  flags(input: z.infer<Input>): readonly string[];
}

const tool = <Input extends z.ZodObject>(definition: Tool<Input>): Tool =>
  definition as unknown as Tool;

/** By the name of the tool, which is that of its command. */
export const TOOLS: Readonly<Record<string, Tool>> = {
  validate: tool({
    title: 'Check configs',
    description: 'Reports every mistake of model configs, each with its line and its fix.',
    input: z.object({
      models,
      set,
      strict: z.boolean().optional().describe('warnings are errors'),
      fields,
    }),
    models: (input) => input.models,
    flags: (input) => [...sets(input.set), ...(input.strict ? ['--strict'] : [])],
  }),
  profile: tool({
    title: 'Parameters, memory and FLOPs',
    description:
      "Counts a model's parameters by component, its weights in each type, KV cache, FLOPs, and the memory of inference and training.",
    input: z.object({ model, ...setting, dtype, set, details, fields }),
    models: (input) => [input.model],
    flags: (input) => [...settingFlags(input), ...sets(input.set), ...detailed(input.details)],
  }),
  fit: tool({
    title: 'Does it fit on hardware, and how fast is it',
    description:
      'Estimates whether a model fits on GPUs and its speed, with ranges: serving, training, LoRA or QLoRA. Without a GPU: a table of common hardware.',
    input: z.object({
      model,
      gpu: z
        .string()
        .regex(/^[^-]/)
        .optional()
        .describe(
          'a GPU or machine: h100, 4090, 8xA100, m3-ultra; or a YAML file below the root that describes one',
        ),
      for: z.enum(['serving', 'training', 'lora', 'qlora']).optional(),
      users: count.optional().describe('simultaneous requests'),
      ...setting,
      dtype: servedDtype,
      set,
      details,
      fields,
    }),
    models: (input) => [input.model],
    flags: (input) => [
      ...flag('gpu', input.gpu),
      ...flag('for', input.for),
      ...flag('users', input.users),
      ...settingFlags(input),
      ...sets(input.set),
      ...detailed(input.details),
    ],
  }),
  compare: tool({
    title: 'Compare models',
    description:
      'Compares models side by side. A list in `set`, as in model.num_layers=8,16, makes one model for each value.',
    input: z.object({
      models,
      ...setting,
      dtype,
      set,
      columns: z
        .array(z.string().regex(/^[\w.-]+$/))
        .optional()
        .describe('columns, as in parameters, kv-per-token, weights, or keys as model.num_layers'),
      details,
      fields,
    }),
    models: (input) => input.models,
    flags: (input) => [
      ...settingFlags(input),
      ...sets(input.set),
      ...flag('columns', input.columns?.join(',')),
      ...detailed(input.details),
    ],
  }),
  inspect: tool({
    title: 'What a checkpoint holds',
    description: 'Shows the tensors, types and sizes of a checkpoint, from its header only.',
    input: z.object({
      checkpoint,
      filter: z.string().max(1000).optional().describe('names of tensors, as in *.bias'),
      details,
      fields,
    }),
    models: (input) => [input.checkpoint],
    flags: (input) => [...flag('filter', input.filter), ...detailed(input.details)],
  }),
};

/** Inputs that no command reads as a path: tensors can have names like paths. */
const NO_PATHS: ReadonlySet<string> = new Set(['filter']);

/** All texts of an input that a command could read as a path: a flag that takes a name may also take a file. */
export const possiblePaths = (input: object): string[] =>
  Object.entries(input).flatMap(([key, value]) => {
    if (NO_PATHS.has(key)) return [];
    const texts = [value].flat().filter((each) => typeof each === 'string');
    return texts.flatMap((text) => [text, ...(key === 'set' ? [text.replace(/^[^=]*=/, '')] : [])]);
  });

const settingFlags = ({
  context,
  batch,
  dtype,
}: {
  readonly context?: number | undefined;
  readonly batch?: number | undefined;
  readonly dtype?: string | undefined;
}): string[] => [...flag('context', context), ...flag('batch', batch), ...flag('dtype', dtype)];

const detailed = (isLong: boolean | undefined): string[] => (isLong ? ['--details'] : []);
