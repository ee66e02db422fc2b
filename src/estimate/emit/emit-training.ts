/** The config of a trainer for a plan: the rows that read it, the other way. What they do not read back is named. */

import { usageError } from '../../base/errors.js';
import { setting } from '../../base/text/setting.js';
import { joined } from '../../base/text/words.js';
import { isRecord, present } from '../../base/values.js';
import { TRAINING_PROGRAMS } from '../../input/training-config/programs/index.js';
import { settingsIn, valueWith, withDefaults } from '../../input/training-config/settings-in.js';
import {
  FIELD_TITLES,
  type RunField,
  type TrainingRun,
} from '../../input/training-config/training-run.js';
import { trainingReplicas } from '../fit/parallelism/training-axes.js';
import { asFlag, jsonText, shellText, tomlText, yamlText } from './emit-text.js';
import type { EmitName, Emitted, EmittedModel } from './emitted.js';
import { EMIT_PROGRAMS } from './emitted.js';
import type { Machines } from './machines.js';
import { megatronSizes } from './megatron-sizes.js';

/** Trainers whose config can be written, and the program whose keys they have. */
const FORMS = {
  torchrun: 'transformers',
  accelerate: 'accelerate',
  deepspeed: 'deepspeed',
  axolotl: 'axolotl',
  torchtitan: 'torchtitan',
  megatron: 'megatron',
} as const satisfies Partial<Record<EmitName, keyof typeof TRAINING_PROGRAMS>>;

export type TrainerName = keyof typeof FORMS;

/** Settings that say how a value was made, or that follow from others. */
const DERIVED: ReadonlySet<RunField> = new Set([
  'isFineTuning',
  'deepspeedFile',
  'dataParallel',
  'samples',
]);

/** Settings of which the value is the same under two names. */
const SAME: Partial<Record<RunField, (run: TrainingRun) => unknown>> = {
  // A global batch follows from the accumulation, and the reverse.
  globalBatch: () => undefined,
  accumulation: (run) => run.accumulation,
};

/** Settings that a launcher leaves to the program that it starts. */
const LAUNCHED: Partial<Record<TrainerName, readonly RunField[]>> = {
  accelerate: [
    ...([
      'model',
      'kind',
      'microBatch',
      'context',
      'optimizer',
      'learningRate',
      'schedule',
      'steps',
    ] as const),
    ...(['warmupSteps', 'weightDecay', 'beta1', 'beta2', 'epsilon', 'rank', 'targets'] as const),
    ...([
      'minLearningRate',
      'epochs',
      'minLearningRateRatio',
      'accumulation',
      'gradientClip',
      'recompute',
    ] as const),
  ],
  deepspeed: [
    'model',
    'kind',
    'context',
    'rank',
    'targets',
    'minLearningRate',
    'gpus',
    'recompute',
    'epochs',
  ],
  torchrun: [],
};

/** Settings without which each GPU holds more. */
const SPREADING: ReadonlySet<RunField> = new Set([
  ...(['tensorParallel', 'pipelineParallel', 'contextParallel', 'expertParallel'] as const),
  ...(['division', 'offloadOptimizer', 'offloadParameters'] as const),
]);

interface TrainingToEmit {
  /** Whether the training fits, of which the first comments tell. */
  readonly verdict?: string | undefined;
  readonly run: TrainingRun;
  readonly document: unknown;
  /** Model of the run. */
  readonly model: EmittedModel;
  readonly machines: Machines;
}

/** Trainers of all weights, which have no adapters. */
const OF_ALL_WEIGHTS: ReadonlySet<TrainerName> = new Set(['torchtitan', 'megatron']);

/** @throws UserError for adapters, and a trainer that would train all weights instead. */
function refuseAdapters(name: TrainerName, { kind = 'training' }: TrainingRun): void {
  if (kind === 'training' || !OF_ALL_WEIGHTS.has(name)) return;
  const { title } = EMIT_PROGRAMS[name];
  throw usageError(
    `${setting('emit', name)}: ${title} trains all weights, and this is a training of adapters (${kind === 'lora' ? 'LoRA' : 'QLoRA'})`,
    `write ${setting('emit', 'axolotl')}, or ask about a training of all weights`,
  );
}

/**
 * @param lead First comment: the command that made it.
 * @throws UserError for adapters and a trainer without them.
 */
export function emitTraining(
  name: TrainerName,
  { run, document, model, machines, verdict }: TrainingToEmit,
  lead: readonly string[],
): Emitted {
  refuseAdapters(name, run);
  const program = TRAINING_PROGRAMS[FORMS[name]];
  const asked = forProgram(name, run);
  const value = valueWith(asked, program);
  const sizes = name === 'megatron' ? megatronSizes(document, asked) : {};
  Object.assign(value, sizes);
  if (name === 'megatron') {
    if (isRefusedFsdp(value)) delete value['use-torch-fsdp2'];
    Object.assign(value, megatronNeeds(value));
  }
  if (name === 'torchtitan') addTitanKeys(value, asked, machines);
  const hasSizes = Object.keys(sizes).length > 0;
  const back = withDefaults(settingsIn(value, program), program.defaults);
  const left = new Set(LAUNCHED[name] ?? []);
  const missing = (Object.keys(asked) as RunField[]).flatMap((field) => {
    if (DERIVED.has(field) || field === 'sizes' || (field === 'model' && hasSizes)) return [];
    if (
      field === 'gpus' &&
      (name === 'torchrun' || name === 'megatron' || name === 'axolotl' || name === 'torchtitan')
    )
      return [];
    const own = SAME[field] ? SAME[field]?.(asked) : asked[field];
    if (own === undefined || isUsual(field, own) || isEquivalent(name, field, own, back[field]))
      return [];
    if (field === 'accumulation' && isEqualSetting(asked.globalBatch, back.globalBatch)) return [];
    const value = typeof own === 'object' ? JSON.stringify(own) : String(own);
    const text = own === true ? FIELD_TITLES[field] : `${FIELD_TITLES[field]} ${value}`;
    const where = left.has(field) ? ': set it in the program that it starts' : '';
    return [{ field, text: `${text}${where}` }];
  });
  const without = missing.map(({ text }) => text);
  const unasked = missing.filter(({ field }) => SPREADING.has(field)).map(({ text }) => text);
  const { version } = EMIT_PROGRAMS[name];
  const notes = [
    ...lead,
    ...present([verdict && `${verdict}${unaskedText(unasked)}`]),
    `keys: ${version}`,
    ...NOTES[name](asked),
    ...machineNotes(name, machines),
    ...present([back.model === model.name && model.note]),
    ...without.map((each) => `no counterpart: ${each}`),
  ];
  return {
    program: name,
    version,
    text: trainerText(name, value, machines, notes),
    withoutCounterpart: without,
  };
}

/** Parts that the verdict counts and a config does not ask for. */
const unaskedText = (unasked: readonly string[]): string =>
  unasked.length === 0 ? '' : `, with ${joined(unasked)}, which this file does not ask for`;

/** Values that mean the same in a program that knows only one of them. */
const EQUIVALENT: Partial<Record<RunField, readonly (readonly unknown[])[]>> = {
  // The same parts of the state are divided.
  division: [['3', 'fsdp', 'fsdp2']],
  schedule: [
    ['cosine', 'cosine_with_min_lr'],
    ['linear', 'polynomial'],
    ['constant', 'constant_with_warmup'],
  ],
};

const isEquivalent = (name: TrainerName, field: RunField, a: unknown, b: unknown): boolean =>
  isEqualSetting(a, b) ||
  [...(EQUIVALENT[field] ?? []), ...(FUSED.has(name) && field === 'optimizer' ? [ADAMW] : [])].some(
    (row) => row.includes(a) && row.includes(b),
  );

/** Programs with one AdamW, whose name does not say that it is a fused one. */
const FUSED: ReadonlySet<TrainerName> = new Set(['megatron', 'deepspeed']);
const ADAMW: readonly unknown[] = ['adamw', 'adamw-fused'];

/** FSDP2 beside stages of a pipeline or divided experts, which Megatron-LM refuses (arguments.py: validate_args). */
const isRefusedFsdp = (value: Readonly<Record<string, unknown>>): boolean =>
  value['use-torch-fsdp2'] === true &&
  ['pipeline-model-parallel-size', 'expert-model-parallel-size'].some(
    (key) => Number(value[key] ?? 1) > 1,
  );

/** Switches that others need (arguments.py: validate_args; core/model_parallel_config.py: __post_init__). */
const megatronNeeds = (value: Readonly<Record<string, unknown>>): Record<string, unknown> => ({
  ...(value['use-torch-fsdp2'] === true && { 'no-gradient-accumulation-fusion': true }),
  ...(value['optimizer-cpu-offload'] === true && { 'use-precision-aware-optimizer': true }),
  ...(Number(value['expert-model-parallel-size'] ?? 1) > 1 &&
    Number(value['tensor-model-parallel-size'] ?? 1) > 1 && { 'sequence-parallel': true }),
});

/** Keys of torchtitan that depend on the machines, or that are no setting of their own. */
function addTitanKeys(
  value: Record<string, unknown>,
  { division, fp8 }: TrainingRun,
  { count }: Machines,
): void {
  if (division === 'hsdp' && count > 1 && isRecord(value.parallelism)) {
    value.parallelism.data_parallel_replicate_degree = count;
  }
  // Its table quantize.linear.float8 has defaults for the rest (job_config.py: Float8Linear).
  if (fp8) {
    value.model = {
      ...(isRecord(value.model) && value.model),
      converters: ['quantize.linear.float8'],
    };
  }
}

const isEqualSetting = (a: unknown, b: unknown): boolean =>
  typeof a === 'number' && typeof b === 'number'
    ? Math.abs(a - b) <= 1e-9 * Math.abs(a)
    : JSON.stringify(a) === JSON.stringify(b);

/** Values that say that something is off. */
const isUsual = (field: RunField, value: unknown): boolean =>
  value === false ||
  (value === 1 && /Parallel$/.test(field)) ||
  (field === 'division' && value === '0') ||
  (field === 'targets' && Array.isArray(value) && value[0] === 'all') ||
  (field === 'recompute' && value === 'none') ||
  (field === 'minLearningRate' && value === 0) ||
  (field === 'kind' && value === 'training');

/** The run with what a program takes in another form. */
function forProgram(name: TrainerName, run: TrainingRun): TrainingRun {
  const { microBatch = 1, accumulation } = run;
  const globalBatch =
    run.globalBatch ??
    (accumulation === undefined ? undefined : accumulation * microBatch * trainingReplicas(run));
  switch (name) {
    case 'megatron':
    case 'torchtitan': {
      // Both derive the accumulation from the global batch.
      const { accumulation: _, ...others } = run;
      const isTitan = name === 'torchtitan';
      const ratio =
        run.minLearningRateRatio ??
        (run.minLearningRate !== undefined && run.learningRate
          ? Number((run.minLearningRate / run.learningRate).toPrecision(12))
          : undefined);
      return {
        ...others,
        ...(globalBatch !== undefined && { globalBatch }),
        // Its schedule has no name; a cosine over all steps is its decay with a curve.
        ...(isTitan && titanSchedule(run)),
        ...(isTitan && ratio !== undefined && { minLearningRateRatio: ratio }),
      };
    }
    case 'deepspeed':
      return {
        ...run,
        ...offloadingStage(run),
        ...(globalBatch !== undefined && { globalBatch }),
      };
    case 'accelerate':
      return { ...run, ...offloadingStage(run) };
    case 'axolotl':
      return run.offloadParameters ? { ...run, ...offloadingStage(run) } : run;
    default:
      return run;
  }
}

/** A stage that offloads: stage 0 of DeepSpeed turns all of ZeRO off (runtime/engine.py: zero_optimization). */
function offloadingStage(run: TrainingRun): Pick<TrainingRun, 'division'> {
  const { division = '0', offloadOptimizer, offloadParameters } = run;
  if (division !== '0' || !(offloadOptimizer || offloadParameters)) return {};
  return { division: offloadParameters ? '3' : '2' };
}

function titanSchedule({
  schedule,
  steps,
  warmupSteps = 0,
  decaySteps,
}: TrainingRun): Partial<TrainingRun> {
  const curve = schedule?.startsWith('cosine')
    ? 'cosine'
    : schedule === 'linear' || schedule === 'polynomial'
      ? 'linear'
      : undefined;
  if (steps === undefined || (curve === undefined && decaySteps === undefined)) return {};
  const length = curve === undefined ? (decaySteps ?? 0) : steps - warmupSteps;
  return {
    schedule: 'torchtitan',
    ...(curve !== undefined && { decayType: curve }),
    decayRatio: Number((length / steps).toPrecision(6)),
  };
}

/** Additions by the user before the config runs. */
const NOTES: Record<TrainerName, (run: TrainingRun) => string[]> = {
  torchrun: () => ['train.py: a script with HfArgumentParser and TrainingArguments'],
  accelerate: () => ['run: accelerate launch, with this file as its config_file'],
  deepspeed: () => [],
  axolotl: ({ gpus = 1, learningRate }) => [
    `add: datasets, output_dir${learningRate === undefined ? ', learning_rate' : ''}`,
    ...(gpus > 1 ? [`run: axolotl train, with this file and ${gpus} processes`] : []),
  ],
  torchtitan: ({ gpus = 1 }) => [
    `run: NGPU=${gpus} CONFIG_FILE=THIS ./run_train.sh; add: training.dataset, model.hf_assets_path`,
  ],
  megatron: ({ learningRate, expertParallel = 1, tensorParallel = 1, sequenceParallel }) => [
    `add: data-path, tokenizer-type, tokenizer-model, save${learningRate === undefined ? ', lr' : ''}`,
    ...(expertParallel > 1 && tensorParallel > 1 && !sequenceParallel
      ? ['sequence-parallel: required with tensor and expert parallelism; it needs less memory']
      : []),
  ],
};

function trainerText(
  name: TrainerName,
  value: Record<string, unknown>,
  machines: Machines,
  notes: readonly string[],
): string {
  switch (name) {
    case 'deepspeed':
      return jsonText(value);
    case 'torchtitan':
      return tomlText(notes, value);
    case 'accelerate':
      return yamlText(notes, {
        compute_environment: 'LOCAL_MACHINE',
        num_machines: machines.count,
        ...value,
      });
    case 'axolotl':
      return yamlText(notes, value);
    case 'torchrun':
      return shellText(notes, [...launcher(machines), 'train.py'], flagsOf(value, '_'));
    case 'megatron':
      return shellText(notes, [...launcher(machines), 'pretrain_gpt.py'], flagsOf(value, '-'));
  }
}

function launcher({ count, each }: Machines): string[] {
  const options = { ...(count > 1 && { nnodes: count }), 'nproc-per-node': each };
  return ['torchrun', ...flagsOf(options, '-').flat()];
}

/** Additions by the user for several machines, each of which starts the same program. */
const SEVERAL: Partial<Record<TrainerName, string>> = {
  torchrun: 'add, and run on each machine: rdzv-backend, rdzv-endpoint',
  megatron: 'add, and run on each machine: rdzv-backend, rdzv-endpoint',
  accelerate: 'add: main_process_ip, main_process_port, and the machine_rank of each machine',
};

const machineNotes = (name: TrainerName, { count, each }: Machines): string[] =>
  count === 1 ? [] : present([`${count} machines with ${each} GPUs each (assumed)`, SEVERAL[name]]);

/** Keys as flags. Megatron's switches have no value; those of TrainingArguments have one. */
function flagsOf(value: Record<string, unknown>, style: '-' | '_'): string[][] {
  return Object.entries(value).flatMap(([key, each]): string[][] => {
    const flag = asFlag(key);
    if (style === '-' && typeof each === 'boolean') return each ? [[flag]] : [];
    return [[flag, isRecord(each) || Array.isArray(each) ? JSON.stringify(each) : String(each)]];
  });
}
