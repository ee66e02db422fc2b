/** Lines of other tools with settings of another purpose than theirs. Loaded only for a line of one. */
import fs from 'node:fs';
import { quote } from '../../../config/quote.js';
import type { DeclaredFlag } from '../flag-example.js';
import { valueGiven } from '../given-flags.js';
import { missingText } from '../missing-file.js';
import type { TypedLine } from '../typed-line.js';

/** Refuses settings of serving in a training, epochs that cannot be counted, and files of another machine. */
export function refuseOtherPurpose(typed: TypedLine): void {
  refuseTypeOfTraining(typed);
  refuseServing(typed);
  refuseExpertGroups(typed);
  refuseMissingFiles(typed);
  refuseFolder(typed);
  refuseLoneEpochs(typed);
}

/** Files of a training that a plan can do without: its data can be counted elsewhere. */
const FILES_OF_TRAINING = ['data', 'tokenizer'] as const;

/** Refuses data and a tokenizer that are not here, of which a plan can do without. */
function refuseMissingFiles(typed: TypedLine): void {
  if (!typed.isOfTool || typed.command.id !== 'train-plan') return;
  for (const name of FILES_OF_TRAINING) {
    const [at, file] = [typed.given.get(name), valueGiven(typed, name)];
    if (at === undefined || file === undefined) continue;
    const isText = name === 'data' && !typed.given.has('tokenizer') && TEXT.test(file);
    if (fs.existsSync(file) && !isText) continue;
    const why = fs.existsSync(file)
      ? 'its tokens are counted with --tokenizer tokenizer.json'
      : missingText(file);
    const length = typed.lengthOf(typed.command.flags[name] as DeclaredFlag, at);
    const line = typed.corrected(at, [], length);
    throw typed.mistake(why, [{ ...line, leftOut: [`--${name}: ${why}`] }]);
  }
}

/** Endings of files with texts, whose tokens a tokenizer counts. */
const TEXT = /\.(?:jsonl?|txt|csv|parquet)(?:\.(?:gz|zst))?$/i;

/** Endings of an answer's file. */
const ANSWER = /\.(?:json|csv|md|markdown|html|svg|txt|ya?ml|sh)$|^-$/i;

/** Refuses the output folder of a training or a server: the answer is written to a file. */
function refuseFolder(typed: TypedLine): void {
  const [at, folder] = [typed.given.get('output'), valueGiven(typed, 'output')];
  const isAnswer = !typed.isOfTool || !/^(?:fit|train-plan)$/.test(typed.command.id);
  if (isAnswer || at === undefined || folder === undefined || ANSWER.test(folder)) return;
  const length = typed.lengthOf(typed.command.flags.output as DeclaredFlag, at);
  throw typed.mistake(`--output: expected a file, found the folder ${quote(folder)}`, [
    { ...typed.corrected(at, [], length), leftOut: [`--output ${folder} is not needed`] },
  ]);
}

/**
 * Refuses the type of a model that another tool trains: it is that of the frozen weights under adapters. Weights in 4 bits
 * have one, and so has a training of all weights, whose types are those of mixed precision.
 */
function refuseTypeOfTraining(typed: TypedLine): void {
  const [purpose, dtype] = ['for', 'dtype'].map((name) => valueGiven(typed, name));
  const at = typed.given.get('dtype');
  const isTrained = typed.isOfTool && purpose !== undefined && purpose !== 'serving';
  if (!isTrained || at === undefined || !Object.hasOwn(typed.command.flags, 'base-dtype')) return;
  const flag = typed.command.flags.dtype as DeclaredFlag;
  const length = typed.lengthOf(flag, at);
  const isQuantized = !/16|32|half|float$|auto/i.test(dtype ?? '');
  const isOfBase = purpose === 'lora' || (purpose === 'qlora' && isQuantized);
  const isBase = isOfBase && !typed.given.has('base-dtype');
  const line = isBase
    ? typed.corrected(at, ['--base-dtype', dtype ?? ''], length)
    : {
        ...typed.corrected(at, [], length),
        leftOut: [`--dtype ${dtype} is the type of the ${isQuantized ? 'weights' : 'arithmetic'}`],
      };
  throw typed.mistake(`--dtype is a setting of serving, and --for ${purpose} excludes it`, [line]);
}

/** Settings of serving that programs of trainings have for what they generate on the way. */
const OF_SERVING: readonly string[] = [
  ...['output-tokens', 'prompt-tokens', 'users', 'eager', 'chunked-prefill'],
  ...['gpu-memory-utilization', 'cache-dtype'],
];

/** Refuses settings of serving of a model that another tool trains. */
function refuseServing(typed: TypedLine): void {
  const purpose = valueGiven(typed, 'for');
  if (!typed.isOfTool || purpose === undefined || purpose === 'serving') return;
  const flag = typed.flags.find(({ name }) => OF_SERVING.includes(name) && typed.given.has(name));
  const at = typed.given.get(flag?.name ?? '');
  if (flag === undefined || at === undefined) return;
  const length = typed.lengthOf(flag, at);
  const written = typed.words.slice(at, at + length).join(' ');
  throw typed.mistake(`--${flag.name} is a setting of serving, and --for ${purpose} excludes it`, [
    { ...typed.corrected(at, [], length), leftOut: [`${written} is a setting of serving`] },
  ]);
}

/**
 * Refuses experts that a server divides among some of the GPUs that share a layer, and the rest by their tensors:
 * sgl-project/sglang docs, "Server Arguments", `--ep-size`. Here they are divided among all GPUs, or all by tensors.
 */
function refuseExpertGroups(typed: TypedLine): void {
  const at = typed.given.get('expert-parallel');
  const purpose = valueGiven(typed, 'for') ?? 'serving';
  if (!typed.isOfTool || at === undefined || purpose !== 'serving') return;
  const [experts, shared, copies] = ['expert-parallel', 'tensor-parallel', 'dp-attention'].map(
    (name) => Number(valueGiven(typed, name) ?? 1),
  );
  const gpus = (shared ?? 1) * (copies ?? 1);
  if (experts === undefined || !(experts < gpus)) return;
  const length = typed.lengthOf(typed.command.flags['expert-parallel'] as DeclaredFlag, at);
  const isByTensors = experts === 1;
  const words = isByTensors ? [] : ['--expert-parallel', 'all'];
  const note = isByTensors
    ? '--expert-parallel 1 is the default'
    : `experts are divided among all ${gpus} GPUs, not among ${experts}`;
  throw typed.mistake(`--expert-parallel: expected the ${gpus} GPUs of a layer, found ${experts}`, [
    { ...typed.corrected(at, words, length), leftOut: [note] },
  ]);
}

/**
 * Refuses epochs of another tool without data that can be counted, whose tokens are an example, and with a number of steps,
 * which comes first there: huggingface/transformers TrainingArguments, `max_steps`.
 */
function refuseLoneEpochs(typed: TypedLine): void {
  const at = typed.given.get('epochs');
  const flag = typed.command.flags.epochs;
  if (!typed.isOfTool || at === undefined || flag === undefined) return;
  if (typed.given.has('steps')) {
    const line = typed.corrected(at, [], typed.lengthOf(flag, at));
    const leftOut = [`--epochs ${valueGiven(typed, 'epochs')} is replaced by the steps`];
    throw typed.mistake('--epochs and --steps cannot be used together', [{ ...line, leftOut }]);
  }
  const isCounted = ['data', 'data-tokens', 'tokens'].some((name) => typed.given.has(name));
  if (isCounted || !Object.hasOwn(typed.command.flags, 'data-tokens')) return;
  const line = typed.lineOf([...typed.words, '--data-tokens', '1B']);
  throw typed.mistake('--epochs requires the number of tokens of the data', [
    { ...line, hasExample: true, leftOut: ['1B stands for the tokens of your data'] },
  ]);
}
