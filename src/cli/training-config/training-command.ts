/** Base class of commands that also read the config of a training of another program: `fit`, `train-plan`. */
import type * as Interfaces from '@oclif/core/interfaces';
import { UserError, usageError } from '../../base/errors.js';
import { present } from '../../base/values.js';
import { invalidConfig } from '../../config/document-problems.js';
import type { EmitName, Emitted } from '../../estimate/emit/emitted.js';
import type { TrainingSettings } from '../../estimate/training/training-settings.js';
import type { TrainingConfigAnswer } from '../../input/training-config/training-answer.js';
import type { TrainingConfig } from '../../input/training-config/training-config.js';
import { mayBeTrainingConfig } from '../../input/training-config/training-config-name.js';
import type { RunField } from '../../input/training-config/training-run.js';
import type { TrainingKey } from '../../model/architecture/training-section.js';
import type { Report } from '../../report/kit/report.js';
import { BaseCommand, formatOf, type OutputFlags } from '../base-command.js';
import { baseFlags } from '../flags/flags.js';
import { type DeclaredFlags, wordsOfLine } from '../line/words-of-line.js';
import type { LineFacts, TrainingCommandName, TrainingWord } from './training-words.js';

/** The config of a line, and what was read of it. */
interface LineTraining {
  readonly config: TrainingConfig;
  /** Flags that it was turned into. */
  readonly added: readonly TrainingWord[];
  /** Settings that its words give. */
  readonly counted: ReadonlySet<RunField>;
  readonly answer: TrainingConfigAnswer;
}

/** Flags that name hardware. */
const HARDWARE = ['gpu', 'hardware', 'this-machine', 'profile'];

/** Settings of a plan that a config gives. */
const FIELDS: Partial<Record<TrainingKey, RunField>> = {
  max_steps: 'steps',
  num_epochs: 'epochs',
  total_tokens: 'tokens',
  batch_size: 'microBatch',
  gradient_accumulation_steps: 'accumulation',
  max_seq_length: 'context',
  lr_scheduler: 'schedule',
  learning_rate: 'learningRate',
  min_lr: 'minLearningRate',
  warmup_steps: 'warmupSteps',
  warmup_ratio: 'warmupRatio',
  decay_steps: 'decaySteps',
  weight_decay: 'weightDecay',
  beta1: 'beta1',
  beta2: 'beta2',
  eps: 'epsilon',
  max_grad_norm: 'gradientClip',
  optimizer: 'optimizer',
  fp16: 'fp16',
  bf16: 'bf16',
  packing: 'packing',
};

export abstract class TrainingCommand extends BaseCommand {
  /** The config of the line; undefined without one. */
  protected training: LineTraining | undefined;

  /** Lines that were expanded: a line of a list is parsed several times. */
  #isAnnounced = false;

  /** The words with the settings of a config of a training, those of the line first. */
  protected override async wordsOf(argv: readonly string[]): Promise<string[]> {
    const { flags: declared } = this.constructor as typeof TrainingCommand;
    const words = wordsOfLine(argv, { ...baseFlags, ...declared } as DeclaredFlags);
    const named = words.find(({ flag }) => flag === 'training-config');
    const model = words.find(({ flag }) => flag === undefined)?.texts[0];
    if (named === undefined && (model === undefined || !(await mayBeTrainingConfig(model))))
      return [...argv];
    const { readTrainingConfig, trainingConfigIn } = await import(
      '../../input/training-config/read-training-config.js'
    );
    const file = named && valueOfWord(named.texts);
    const config =
      file === undefined ? await trainingConfigIn(model ?? '') : await readTrainingConfig(file);
    if (config === undefined) return [...argv];
    const isAlone = file === undefined;
    const { modelOfConfig } = await import('../../input/training-config/model-of-config.js');
    const { assumedLengthNote, trainingWordsOf } = await import('./training-words.js');
    const { trainingAnswer } = await import('../../input/training-config/training-answer.js');
    const own = isAlone || model === undefined ? modelOfConfig(config) : undefined;
    if (own === undefined && (isAlone || model === undefined)) throw this.#withoutModel(config);
    const given = new Set(words.flatMap(({ flag }) => flag ?? []));
    const line = await lineFacts(words, given);
    const command = this.id as TrainingCommandName;
    const added = trainingWordsOf(command, config, line);
    if (command === 'fit') refuseAnotherQuestion(config, added, line);
    this.notes.push(...present([own?.note, assumedLengthNote(added)]));
    const flagWords = added.map(({ flag, value }) =>
      value === undefined ? `--${flag}` : `--${flag}=${value}`,
    );
    const counted = new Set(added.flatMap(({ of }) => of));
    this.training = {
      config,
      added,
      counted,
      answer: trainingAnswer(config, added, flagWords, own?.reference ?? null),
    };
    const texts = words.flatMap(({ flag, texts }) =>
      flag === 'training-config' || (isAlone && flag === undefined && texts[0] === model)
        ? []
        : texts,
    );
    return [...(own === undefined ? [] : [asArgument(own.reference)]), ...flagWords, ...texts];
  }

  /** A value of the config that is refused has its place there. */
  protected override async catch(error: Error): Promise<unknown> {
    if (this.training === undefined) return super.catch(error);
    const { locatedError } = await import('./located-error.js');
    const { config, added } = this.training;
    throw locatedError(error, config, added);
  }

  /** The error points to the first key of the file, because each of several keys could name a model. */
  #withoutModel({ file, program, problems, placeOf, values }: TrainingConfig): Error {
    // Sizes that no model can have are a mistake of the config, as in `minimind validate`.
    const errors = problems.filter(({ severity }) => severity === 'error');
    if (errors.length > 0) return invalidConfig(file, errors, errors.length);
    const message = `${file} names no model: it is a config of ${program.title}`;
    const suggestion = `write minimind ${this.id} MODEL --training-config ${file}`;
    const [{ field } = { field: 'model' as const }] = values;
    const { path: _, ...place } = placeOf(field);
    const problem = { severity: 'error', ...place, message, suggestion } as const;
    return new UserError('usage', message, { problems: [problem] });
  }

  /** Parses the line with the settings of its config, and prints what was read of that. */
  protected override async parse<
    F extends Interfaces.OutputFlags<Interfaces.FlagInput>,
    B extends Interfaces.OutputFlags<Interfaces.FlagInput>,
    A extends Interfaces.OutputArgs<Interfaces.ArgInput>,
  >(
    options?: Interfaces.Input<F, B, A>,
    argv?: string[],
  ): Promise<Interfaces.ParserOutput<F, B, A>> {
    const parsed = await super.parse(options, argv);
    await this.#announceTraining(parsed.flags as unknown as OutputFlags);
    return parsed;
  }

  /** Prints what was read of the config, and its mistakes. */
  async #announceTraining(flags: OutputFlags): Promise<void> {
    if (this.training === undefined || this.#isAnnounced) return;
    this.#isAnnounced = true;
    const { trainingNotes } = await import('./training-notes.js');
    const { answer, config } = this.training;
    for (const text of trainingNotes(answer)) this.note(flags, text);
    await this.warnAbout(
      flags,
      config.problems.map((problem) => ({ ...problem, severity: 'warning' as const })),
    );
  }

  /** Places of settings, those of the config as `axolotl.yml:12 (warmup_steps)`. */
  protected placesIn({ placeOf }: Pick<TrainingSettings, 'placeOf'>): TrainingSettings['placeOf'] {
    const { training } = this;
    if (training === undefined) return placeOf;
    return (key) => {
      const field = Object.hasOwn(FIELDS, key) ? FIELDS[key] : undefined;
      const place = field && training.counted.has(field) && training.config.placeOf(field);
      return place && place.path !== undefined ? placeText(place) : placeOf(key);
    };
  }

  protected override async answer<Result extends { readonly schema: string }>(
    flags: OutputFlags & { readonly details?: boolean },
    result: Result,
    report: (result: Result) => Report,
  ): Promise<Result> {
    if (this.training === undefined) return super.answer(flags, result, report);
    const { answer, config } = this.training;
    // The sizes of a config are a config.json that only this process has.
    const isOfSizes = 'file' in result && result.file === `${config.file}/config.json`;
    const own = { ...result, ...(isOfSizes && { file: config.file }), trainingConfig: answer };
    return super.answer(flags, own, report);
  }

  /** Config of the line, for `--emit`. */
  protected get emittedConfig() {
    return { config: this.training?.config.run, answer: this.training?.answer };
  }

  /** @param what An answer without one plan. @throws UserError for `--emit` with it. */
  protected refuseEmit({ emit }: { readonly emit?: EmitName | undefined }, what: string): void {
    if (emit === undefined) return;
    throw usageError(
      `--emit ${emit} writes one plan, and this line asks about ${what}`,
      'ask about one',
    );
  }

  /** Answers with the command or config of `--emit`; in JSON it is a field of the answer. */
  protected async answerEmitted<Result extends { readonly schema: string }>(
    flags: OutputFlags & { readonly emit?: EmitName | undefined },
    result: Result,
    emitted: Emitted,
    report: (result: Result) => Report,
  ): Promise<Result> {
    const format = formatOf(flags);
    if (format === 'json') return this.answer(flags, { ...result, emitted }, report);
    if (format !== 'table') {
      throw usageError(
        `--emit writes a command or a config, and the format is ${format}`,
        'leave --format out, or write --json for the answer with it',
      );
    }
    const { refuseOtherLanguage } = await import('./emit-answer.js');
    if (flags.emit !== undefined) refuseOtherLanguage(flags.emit, flags.output);
    // JSON has no comments.
    const { withoutCounterpart, text } = emitted;
    if (!text.includes('#')) {
      for (const each of withoutCounterpart) this.note(flags, `no counterpart: ${each}`);
    }
    await this.write(flags, text);
    return result;
  }
}

/** `a.yml:3 micro_batch_size`. */
const placeText = ({ file, line, path }: ReturnType<TrainingConfig['placeOf']>): string =>
  `${file}${line === undefined ? '' : `:${line}`} ${path}`;

/** @throws UserError for a method that is not counted, and for a question that is not about a training. */
function refuseAnotherQuestion(
  config: TrainingConfig,
  added: readonly { readonly of: readonly RunField[] }[],
  { textOf }: LineFacts,
): void {
  const asked = textOf('for');
  const { refused } = config;
  if (refused !== undefined && asked === undefined) {
    throw usageError(`${placeText(refused)}: ${refused.message}`, refused.suggestion ?? '');
  }
  if (asked !== 'serving') return;
  const places = added.flatMap(({ of }) => of).map((field) => config.placeOf(field));
  const first = places.find(({ path }) => path !== undefined) ?? { file: config.file };
  throw usageError(
    `--for serving does not ask about the training of ${first.path === undefined ? first.file : placeText(first)}`,
    'leave --for out, or ask about the model alone',
  );
}

/** A reference as a word that is no flag: the path of a file can begin with a hyphen. */
const asArgument = (reference: string): string =>
  reference.startsWith('-') ? `./${reference}` : reference;

/** Value of a flag with its word: `--name value` or `--name=value`. */
const valueOfWord = ([first = '', second]: readonly string[]): string =>
  second ?? first.slice(first.indexOf('=') + 1);

async function lineFacts(
  words: ReturnType<typeof wordsOfLine>,
  given: ReadonlySet<string>,
): Promise<LineFacts> {
  const value = (name: string) => {
    const found = words.find(({ flag }) => flag === name);
    return found && valueOfWord(found.texts);
  };
  const hasHardware = HARDWARE.some((name) => given.has(name));
  const gpus = Number(value('gpus'));
  if (Number.isSafeInteger(gpus) && gpus > 0) return { given, hasHardware, gpus, textOf: value };
  return { given, hasHardware, gpus: await gpusNamed(value('gpu')), textOf: value };
}

/** GPUs of `8xh100` or of a machine with several; undefined for one, and for a name that is not known. */
async function gpusNamed(name: string | undefined): Promise<number | undefined> {
  if (name === undefined || name.includes(',')) return undefined;
  const { clusterNamed } = await import('../../estimate/hardware/cluster-named.js');
  try {
    const { gpus } = clusterNamed(name, undefined, { gpus: [], machines: [] });
    return gpus > 1 || /^1\s*x/i.test(name) ? gpus : undefined;
  } catch {
    // The flag itself has the message.
    return undefined;
  }
}
