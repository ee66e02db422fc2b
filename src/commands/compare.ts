import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import { usageError } from '../base/errors.js';
import { ANY_BACKEND } from '../base/sweep.js';
import { formatInteger } from '../base/text/units.js';
import { givenFlags } from '../cli/base-command.js';
import {
  details,
  offline,
  pictureFlags,
  readAs,
  setOf,
  settingFlags,
  sourceOf,
  stateDict,
} from '../cli/flags/flags.js';
import { sweepFlags } from '../cli/flags/parts-flags.js';
import { names } from '../cli/flags/value-flags.js';
import { progress } from '../cli/progress.js';
import { SweepCommand } from '../cli/sweep-command.js';
import { COLUMN_NAMES } from '../estimate/comparison/columns.js';
import type { ComparisonResult } from '../estimate/comparison/compare-models.js';
import {
  comparisonOf,
  comparisonWarnings,
  mainColumns,
} from '../estimate/comparison/compare-models.js';
import {
  type Candidates,
  candidateCosts,
  openCandidates,
} from '../input/model-input/model-candidates.js';
import { comparisonRequest } from '../library/compare.js';
import { DEFAULT_OPTIMIZER, OPTIMIZER_NAMES } from '../model/budget/optimizers.js';
import { compareReport } from '../report/compare/compare-report.js';

export default class Compare extends SweepCommand {
  static override summary = 'Compare models side by side.';
  static override description =
    'Takes any number of configs and checkpoints, and compares them at one length and precision. A list of ' +
    'values in --set makes one model per value; several lists make all combinations, or pairs with --zip. A ' +
    'model that is not valid is reported, and the others are compared. Figures are of one GPU; for several, ask fit. The answer shows the settings that differ ' +
    `and the main figures; --details shows all. Columns: ${COLUMN_NAMES.join(', ')}, and any key of ` +
    'the configs, such as model.num_layers.';
  static override baseFlags = pictureFlags;
  static override readsHub = 'index' as const;
  static override examples = [
    '<%= config.bin %> <%= command.id %> hybrid/original hybrid/recommended',
    '<%= config.bin %> <%= command.id %> minimind2-small minimind2 minimind2-moe --sort parameters --baseline minimind2',
    '<%= config.bin %> <%= command.id %> hybrid/original --set model.vocab_size=1000,6400,100000',
    '<%= config.bin %> <%= command.id %> hybrid/tiny --set model.num_layers=2,4 --set model.hidden_size=64,128 --columns parameters,kv-cache,width-per-layer --sort=-parameters',
    '<%= config.bin %> <%= command.id %> hybrid/tiny --set model.num_layers=2,4,8 --set model.hidden_size=64,128 --parts 3 --plan sweep.json',
    '<%= config.bin %> <%= command.id %> --plan sweep.json --part 1',
    '<%= config.bin %> <%= command.id %> --plan sweep.json --launch slurm',
    '<%= config.bin %> <%= command.id %> --plan sweep.json --status',
  ];

  static override viewFlags = ['columns', 'sort', 'baseline'];
  static override strict = false;
  static override args = {
    file: Args.string({
      required: true,
      ignoreStdin: true,
      description: 'configs, checkpoints with their configs, - for standard input',
    }),
  };
  static override flags = {
    set: setOf('override a value; a list such as 2,4,8 makes one model per value'),
    zip: Flags.boolean({
      description: 'pair the lists of --set, instead of all combinations',
    }),
    columns: names({ description: 'columns to show [default: the main costs]' }),
    sort: Flags.string({
      helpValue: 'COLUMN',
      description: 'sort by a column; =-COLUMN for the largest first',
    }),
    baseline: Flags.string({
      helpValue: 'NAME|N',
      description: 'model that changes are against: its name, or its number [default: the first]',
    }),
    details,
    tokenizer: Flags.string({
      multiple: true,
      multipleNonGreedy: true,
      helpValue: 'FILE',
      dependsOn: ['text'],
      description:
        'a tokenizer.json for --text (repeatable); each model uses the largest that fits its vocabulary',
    }),
    text: Flags.string({
      helpValue: 'FILE',
      dependsOn: ['tokenizer'],
      description: 'a text, to show the cost per character',
    }),
    config: Flags.string({
      helpValue: 'FILE',
      description: 'config of the checkpoints [default: the one in them, or in their folder]',
    }),
    family: readAs,
    offline,
    'state-dict': stateDict,
    ...settingFlags,
    optimizer: Flags.option({
      options: OPTIMIZER_NAMES,
      default: DEFAULT_OPTIMIZER,
      description: 'optimizer',
    } as const)(),
    ...sweepFlags,
  };

  async run() {
    const run = await this.sweepRun();
    if (run === undefined) return undefined;
    const parsed = await this.parse(Compare, run.words);
    const { argv, flags } = parsed;
    let models: Candidates;
    try {
      models = await openCandidates(argv as string[], sourceOf(flags));
    } catch (error) {
      const { comparedWeights } = await import('../cli/undescribed.js');
      const { weightsComparisonReport } = await import('../report/weights-report.js');
      const given = givenFlags(parsed);
      const sizes = await comparedWeights(error, argv as string[], sourceOf(flags), given);
      return this.answer(flags, sizes, weightsComparisonReport);
    }
    if (flags.zip && models.swept.length === 0) {
      throw usageError(
        '--zip requires several values in --set',
        'write --set model.num_layers=2,4 for several values',
      );
    }
    const { tokenizer, text } = flags;
    const texts =
      tokenizer && text !== undefined
        ? await (await import('../language/tokenizer/tokenizer.js')).measureText(tokenizer, text)
        : undefined;
    const count = run.units ?? models.count;
    const shown = progress(flags, 'counting models', count, undefined, formatInteger);
    const { measure, table } = await comparisonOf(
      models,
      comparisonRequest({ ...flags, cacheDtype: flags['cache-dtype'], texts }),
    );
    const comparison = await run
      .solve({
        units: {
          name: 'models',
          count: models.count,
          costs: () => candidateCosts(models),
          identity: () => models.points,
        },
        memoryBytes: (_, costs) =>
          PROCESS_BYTES +
          ROW_BYTES * models.count +
          BYTES_PER_SECOND * costs.reduce((most, each) => Math.max(most, each), 0),
        backend: ANY_BACKEND,
        async compute(index) {
          const measured = await measure(index);
          shown.add(1);
          return measured;
        },
        fold: table,
      })
      .finally(() => shown.end());
    if (comparison === undefined) return undefined;
    await this.warnAbout(flags, comparisonWarnings(comparison));
    const result: ComparisonResult = { schema: 'minimind/compare@1', ...comparison };
    return this.answer(flags, result, (each) =>
      compareReport(
        each,
        flags.columns === undefined ? { columns: mainColumns(each) } : { isChosen: true },
      ),
    );
  }
}

/** Memory of the process, of a model in the table, and of the description of the largest model by its cost. */
const PROCESS_BYTES = 250e6;
const ROW_BYTES = 20e3;
const BYTES_PER_SECOND = 400e6;
