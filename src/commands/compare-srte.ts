import * as Flags from '@oclif/core/flags';
import { BaseCommand } from '../cli/base-command.js';
import { modelArgument, modelFlags, pictureFlags, sourceOf } from '../cli/flags/flags.js';
import { counts, dtype, tokenCounts } from '../cli/flags/value-flags.js';
import { openModelSource } from '../input/model-input/model-source.js';
import { compareSrte, SRTE_DEFAULTS } from '../library/compare-srte.js';
import { srteReport } from '../report/compare/compare-srte-report.js';
import { configText } from '../report/profile/setting-notes.js';

export default class CompareSrte extends BaseCommand {
  static override summary = 'Compare the SRTE strategies of a hybrid model.';
  static override description =
    'One row per strategy, counted exactly: one table per layer, one shared table, low rank, sines and cosines, ' +
    'and the recommended setting. The setting of the file is marked. Savings are against the model that is not ' +
    'shared.';
  static override baseFlags = pictureFlags;
  static override readsHub = 'index' as const;
  static override examples = [
    '<%= config.bin %> <%= command.id %> hybrid/original',
    '<%= config.bin %> <%= command.id %> hybrid/original --ranks 256,128,64,32 --presets',
    '<%= config.bin %> <%= command.id %> hybrid/shared --max-positions 32768,16384 --tie --json',
  ];

  static override args = {
    file: modelArgument(),
  };
  static override flags = {
    ...modelFlags,
    dtype: dtype({ default: SRTE_DEFAULTS.dtype, description: 'element type for the bytes' }),
    ranks: counts({ default: [...SRTE_DEFAULTS.ranks], description: 'ranks to compare' }),
    'max-positions': tokenCounts({ description: 'add a row per number of positions' }),
    'vocab-sizes': counts({ description: 'add a row per vocabulary size' }),
    tie: Flags.boolean({ description: 'add a row with a tied head' }),
    presets: Flags.boolean({
      description: 'add a row per preset of the published report',
    }),
  };

  async run() {
    const { args, flags } = await this.parse(CompareSrte);
    const file = await this.modelGiven(flags, args.file, 'hybrid/original');
    const source = await openModelSource(file, sourceOf(flags));
    const loaded = await source.model(flags.set);
    if (loaded.checkpoint) this.note(flags, configText(loaded.checkpoint.config));
    await this.warnAbout(flags, loaded.warnings);
    const result = compareSrte(loaded, {
      dtype: flags.dtype,
      ranks: flags.ranks,
      tie: flags.tie,
      presets: flags.presets,
      maxPositions: flags['max-positions'],
      vocabSizes: flags['vocab-sizes'],
    });
    return this.answer(flags, result, srteReport);
  }
}
