import * as Flags from '@oclif/core/flags';
import { UserError, usageError } from '../base/errors.js';
import { shellWord } from '../base/text/shell-words.js';
import { dtypeWord, formatBytes, formatCount, formatFlops } from '../base/text/units.js';
import { BaseCommand, type FlagsOf, formatOf, givenFlags } from '../cli/base-command.js';
import {
  details,
  modelArgument,
  modelFlags,
  modelWords,
  pictureFlags,
  settingFlags,
  sourceOf,
} from '../cli/flags/flags.js';
import { bytesLimit, countLimit, publishedNumber } from '../cli/flags/value-flags.js';
import { USUAL_GPU } from '../estimate/hardware/gpu.js';
import type { WeightsResult } from '../estimate/undescribed/undescribed-results.js';
import type { LoadedModel } from '../input/model-input/checkpoint/checkpoint-model.js';
import { isAdapterPlace, locateModel } from '../input/model-input/locate.js';
import { openModelSource } from '../input/model-input/model-source.js';
import { asWhole, withOwnHead } from '../input/model-input/whole-model.js';
import { profileOf } from '../library/profile.js';
import type { SettingOptions } from '../library/setting-options.js';
import type { LanguageModel } from '../model/architecture/layer.js';
import type { Exact } from '../model/budget/figure.js';
import { DEFAULT_OPTIMIZER, OPTIMIZER_NAMES } from '../model/budget/optimizers.js';
import { type LimitCheck, type LimitName, tensorInventory } from '../model/budget/profile-model.js';
import type { PublishedReport } from '../model/budget/published/explanations.js';
import type { PublishedNumber } from '../model/budget/published/published-number.js';
import type { ProfileResult } from '../report/command-results.js';
import { profileReport } from '../report/profile/profile-report.js';
import { configText } from '../report/profile/setting-notes.js';

export default class Profile extends BaseCommand {
  static override summary = "Show a model's parameters, memory and FLOPs.";
  static override description =
    'Parameters by component, weights in each type, KV cache, FLOPs, and the memory of inference and of training on ' +
    'one device. --details has all tables, --explain derives every figure. The --max flags exit with 1 when a figure ' +
    'exceeds them. For a checkpoint, only the index is read and checked against the config.';
  static override baseFlags = pictureFlags;
  static override readsHub = 'index' as const;
  static override examples = [
    '<%= config.bin %> <%= command.id %> minimind2-small',
    '<%= config.bin %> <%= command.id %> hybrid/tiny --context 128 --batch 4 --layers --explain',
    '<%= config.bin %> <%= command.id %> hybrid/recommended --max-params 14B --max-memory 30GB',
    '<%= config.bin %> <%= command.id %> hybrid/aggressive --published 7B',
  ];

  static override args = {
    file: modelArgument(),
  };
  static override flags = {
    ...modelFlags,
    ...settingFlags,
    optimizer: Flags.option({
      options: OPTIMIZER_NAMES,
      default: DEFAULT_OPTIMIZER,
      description: 'optimizer of the training',
    } as const)(),
    adapter: Flags.string({
      helpValue: 'DIR',
      description: 'add the parameters of the LoRA adapter in this folder (PEFT)',
    }),
    layers: Flags.boolean({ description: 'add a row for each block' }),
    tensors: Flags.boolean({ description: 'add the tree of tensors, with shapes and aliases' }),
    details,
    explain: Flags.boolean({ description: 'add formula, inputs and source of each figure' }),
    published: publishedNumber({
      description:
        'explain this published number: a count, size, FLOPs, ratio, percentage, change or range, as in 7B, 536MB or 57x',
    }),
    'max-params': countLimit({
      description: 'maximum number of parameters, as in 14B',
      helpGroup: 'LIMITS',
    }),
    'max-memory': bytesLimit({ description: 'maximum memory of inference', helpGroup: 'LIMITS' }),
    'max-kv-cache': bytesLimit({ description: 'maximum KV cache', helpGroup: 'LIMITS' }),
    'max-training-memory': bytesLimit({
      description: 'maximum memory of training',
      helpGroup: 'LIMITS',
    }),
    'max-flops': countLimit({
      description: 'maximum FLOPs of a forward pass',
      helpGroup: 'LIMITS',
    }),
  };

  async run() {
    const parsed = await this.parse(Profile);
    const { args, flags } = parsed;
    if (formatOf(flags) === 'csv' && flags.layers && flags.tensors) {
      throw usageError(
        'expected one table for CSV, found --layers and --tensors',
        'write one of them, or --json for both',
      );
    }
    const place = args.file === undefined ? undefined : locateModel(args.file);
    const adapterPath = flags.adapter ?? (place && isAdapterPlace(place) ? place.path : undefined);
    const adapter = adapterPath === undefined ? undefined : await adapterIn(adapterPath);
    const isAlone = adapter && flags.adapter === undefined;
    const given = isAlone
      ? adapter.basePath()
      : await this.modelGiven(flags, args.file, 'minimind2-small');
    const isGiven = place !== undefined && given === place.path;
    let loaded: LoadedModel;
    try {
      const source = await openModelSource(isGiven ? place : given, sourceOf(flags));
      loaded = withOwnHead(asWhole(await source.model(flags.set)));
    } catch (error) {
      const used = { given: givenFlags(parsed), used: ['max-params'] };
      const { weightsInstead } = await import('../cli/undescribed.js');
      const weights = await weightsInstead(error, given, used);
      if (isAlone) this.note(flags, adapter.note(given));
      return this.#counted(weights, flags);
    }
    if (loaded.checkpoint) this.note(flags, configText(loaded.checkpoint.config));
    await this.warnAbout(flags, loaded.warnings);
    const setting = { ...flags, cacheDtype: flags['cache-dtype'] };
    const result = profileOf(loaded, {
      ...setting,
      maxParameters: flags['max-params'],
      maxMemoryBytes: flags['max-memory'],
      maxKvCacheBytes: flags['max-kv-cache'],
      maxTrainingMemoryBytes: flags['max-training-memory'],
      maxFlops: flags['max-flops'],
      adapter: adapter?.describedFor(loaded.model),
      published: flags.published && (await explained(loaded, flags.published, setting)),
    });
    const isGivenFlag = (name: string) => givenFlags(parsed).includes(name);
    const serving = formatOf(flags) === 'html' ? await servingOnGpu(loaded, result) : null;
    await this.answer(flags, result, (each) =>
      profileReport(each, {
        explain: flags.explain,
        flat: formatOf(flags) === 'csv',
        modelWords: modelWords(flags),
        fitSettings: {
          dtype: flags.dtype && isGivenFlag('dtype') ? dtypeWord(flags.dtype) : undefined,
          context: isGivenFlag('context') ? flags.context : undefined,
        },
        name: args.file,
        allTensors: () => tensorInventory(loaded.model),
        serving,
      }),
    );
    this.exceeded(result.checks.flatMap(exceededLimit));
    return result;
  }

  /** The answer about a model that no family describes. */
  async #counted(weights: WeightsResult, flags: FlagsOf<typeof Profile>) {
    const { weightsReport } = await import('../report/weights-report.js');
    await this.answer(flags, weights, weightsReport);
    const { 'max-params': most } = flags;
    if (most !== undefined && weights.parameters > most) {
      const found = formatCount(weights.parameters);
      this.exceeded([`parameters ${found} exceed --max-params ${formatCount(most)}`]);
    }
    return weights;
  }
}

/**
 * Serving on the GPU whose workspace the memory has, as `fit` answers. Loaded on demand, for the roofline of a page; null
 * where `fit` refuses these sizes.
 */
async function servingOnGpu(loaded: LoadedModel, { weights, setting }: ProfileResult) {
  if (weights === undefined) return null;
  const { fit: fitModel } = await import('../library/fit.js');
  const { batch, context, cacheDtype } = setting.inference;
  const sizes = { batch, context, cacheDtype, dtype: weights.dtype };
  try {
    return fitModel(loaded, { ...sizes, gpu: USUAL_GPU, for: 'serving' }).serving;
  } catch (error) {
    if (error instanceof UserError) return null;
    throw error;
  }
}

/** The adapter in a folder. Loaded on demand, with the readers of checkpoints. */
async function adapterIn(folder: string) {
  const { adapterNote, basePathOf, describeFitting, readAdapter } = await import(
    '../input/model-input/adapter-model.js'
  );
  const adapter = await readAdapter(folder);
  return {
    basePath: () => basePathOf(adapter, (base) => `profile ${base} --adapter ${shellWord(folder)}`),
    note: (base: string) => adapterNote(folder, base),
    describedFor: (model: LanguageModel) => describeFitting(adapter, model),
  };
}

/** Explains a published number. Loaded on demand, because it describes every preset of the family. */
async function explained(
  ...request: [LoadedModel, PublishedNumber, SettingOptions]
): Promise<PublishedReport> {
  const { explanationOf } = await import('../library/explain-published.js');
  return explanationOf(...request);
}

/** Name and text of each figure with a limit. */
const LIMITED = {
  'max-params': ['parameters', (value) => formatCount(value).replace(/\.?0+(?=[A-Z])/, '')],
  'max-memory': ['memory', formatBytes],
  'max-kv-cache': ['KV cache', formatBytes],
  'max-training-memory': ['training memory', formatBytes],
  'max-flops': ['FLOPs', formatFlops],
} as const satisfies Record<LimitName, [string, (value: Exact) => string]>;

function exceededLimit({ limit, figure, allowed, passed }: LimitCheck): string[] {
  if (passed) return [];
  const [name, text] = LIMITED[limit];
  const verb = name.endsWith('s') ? 'exceed' : 'exceeds';
  const rounded = [text(figure.value), text(allowed)];
  const [value, most] = rounded[0] === rounded[1] ? [figure.value, allowed] : rounded;
  return [`${name} ${value} ${verb} --${limit} ${most}`];
}
