import path from 'node:path';
import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import { usageError } from '../base/errors.js';
import { hubSuggestion } from '../base/text/hub-names.js';
import { BaseCommand } from '../cli/base-command.js';
import { details, offline, readAs, set, sourceOf, stateDict } from '../cli/flags/flags.js';
import { LineMistake, pasteable } from '../cli/line/line-mistake.js';
import { progressDisplay } from '../cli/progress.js';
import {
  hasWeights,
  isAdapterPlace,
  locateModel,
  type ModelPlace,
  refusePreset,
} from '../input/model-input/locate.js';
import { ownRepository } from '../input/published/published-models.js';
import { verifyPlaces } from '../library/verify.js';
import { verifyReport } from '../report/verify-report.js';

export default class Verify extends BaseCommand {
  static override summary = 'Check a checkpoint against a config.';
  static override description =
    'Reports tensors that are missing, extra, of the wrong shape or type, or wrongly tied, and the config values that ' +
    'would explain them. A LoRA adapter is checked against the config of its model. Reads the index, the values of tied tensors, and up to 1 GiB of weights for NaN and infinities; with --scan and ' +
    '--values all values. Exits with 1 if something is wrong.';
  static override readsHub = 'index' as const;
  static override examples = [
    '<%= config.bin %> export hybrid/tiny --random --save tiny.onnx',
    '<%= config.bin %> <%= command.id %> tiny.onnx',
    '<%= config.bin %> convert-checkpoint tiny.onnx tiny',
    '<%= config.bin %> <%= command.id %> tiny --values tiny.onnx',
    '<%= config.bin %> <%= command.id %> hybrid/tiny tiny --json',
  ];

  static override args = {
    config: Args.string({
      required: true,
      ignoreStdin: true,
      description: 'a config, - for standard input, or a checkpoint with its config',
    }),
    checkpoint: Args.string({
      description: 'a file, also an exported ONNX graph, an index of shards, or a folder',
    }),
  };
  static override flags = {
    set,
    family: readAs,
    offline,
    'state-dict': stateDict,
    values: Flags.string({
      helpValue: 'ORIGINAL',
      description: 'also compare all values with those of another checkpoint of the model',
    }),
    scan: Flags.boolean({
      description: 'search weights of any size for NaN and infinities, also on the hub',
    }),
    details,
    strict: Flags.boolean({ description: 'treat warnings as errors' }),
  };

  async run() {
    const { args, flags } = await this.parse(Verify);
    const config = locateModel(args.config);
    const checkpoint = args.checkpoint === undefined ? config : locateModel(args.checkpoint);
    this.#refuseWrongSides(config, args.checkpoint === undefined ? undefined : checkpoint);
    const result = await verifyPlaces(
      { checkpoint, config: args.checkpoint === undefined ? undefined : config },
      sourceOf(flags),
      {
        display: progressDisplay(flags),
        warn: (warnings) => this.warnAbout(flags, warnings),
      },
    );
    if (!result.matches) process.exitCode = 1;
    return this.answer(flags, result, verifyReport);
  }

  /**
   * @param checkpoint Undefined for one input.
   * @throws UserError for a config alone, and for a checkpoint in the place of the config.
   */
  #refuseWrongSides(config: ModelPlace, checkpoint: ModelPlace | undefined): void {
    const { path: given } = config;
    if (isAdapterPlace(checkpoint ?? config)) return;
    if (checkpoint === undefined && config.kind !== 'checkpoint') {
      const found = `expected CONFIG and CHECKPOINT, found only ${given}`;
      const folder = path.dirname(given);
      const isBeside = config.kind === 'config' && path.basename(given) === 'config.json';
      if (isBeside && hasWeights(folder)) {
        throw new LineMistake(found, [this.#withWords({ [given]: folder })]);
      }
      if (ownRepository(given) !== undefined) refusePreset(config);
      const suggestion = config.kind === 'missing' ? hubSuggestion(given) : undefined;
      throw usageError(found, suggestion ?? commandForm(given, 'CHECKPOINT'));
    }
    // The user may have given a folder with weights for the config in it.
    if (checkpoint === undefined || config.kind !== 'checkpoint' || config.config !== given) return;
    const found = `expected a config first, found the checkpoint ${given}`;
    const { path: other, kind } = checkpoint;
    throw kind === 'checkpoint'
      ? usageError(found, commandForm('CONFIG', given))
      : new LineMistake(found, [
          { ...this.#withWords({ [given]: other, [other]: given }), models: [other] },
        ]);
  }

  /** The line with some words replaced. */
  #withWords(others: Readonly<Record<string, string>>) {
    return { words: ['verify', ...this.argv.map((word) => others[word] ?? word)] };
  }
}

/** The form of the line, with the given input. */
const commandForm = (config: string, checkpoint: string): string =>
  `write it as in ${pasteable(['verify', config, checkpoint])}`;
