import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import { OPTIMIZER_NAMES } from '../budget/training-budget.js';
import { BaseCommand, type FlagsOf, formatOf } from '../cli/base-command.js';
import { names, setOf, settingFlags, stateDict } from '../cli/flags.js';
import { progress } from '../cli/progress.js';
import { COLUMN_NAMES } from '../comparison/columns.js';
import { compareModels, comparisonWarnings } from '../comparison/compare-models.js';
import { loadCandidates } from '../model-input/model-source.js';
import { compareReport } from '../report/compare/compare.js';
import { formatInteger } from '../text/units.js';

export default class Compare extends BaseCommand {
  static override summary = 'Set models side by side, and mark in what they differ.';
  static override description =
    'Takes any number of configs and checkpoints, all counted at the same length and precision. A list of ' +
    'values in --set makes a model of each, and several lists one of every combination (in step with --zip); one that is ' +
    `not valid is told, and the others are compared. Columns are ${COLUMN_NAMES.join(', ')}, and any key of ` +
    'the configs, such as model.num_layers.';
  static override examples = [
    '<%= config.bin %> <%= command.id %> configs/hybrid/original.yaml configs/hybrid/recommended.yaml',
    '<%= config.bin %> <%= command.id %> configs/hybrid/*.yaml --sort parameters',
    '<%= config.bin %> <%= command.id %> configs/hybrid/original.yaml --set model.vocab_size=1000,6400,100000',
    '<%= config.bin %> <%= command.id %> configs/hybrid/tiny.yaml --set model.num_layers=2,4 --set model.hidden_size=64,128 --columns parameters,kv-cache,width-per-layer --sort=-parameters',
  ];

  static override strict = false;
  static override args = {
    file: Args.string({
      required: true,
      description: 'configs, checkpoints with their configs, - for standard input',
    }),
  };
  static override flags = {
    set: setOf('override a value; several with commas between them make several models'),
    zip: Flags.boolean({
      description: 'take the lists of --set in step, and not every combination',
    }),
    columns: names({ description: 'what to show [default: the costs]' }),
    sort: Flags.string({
      helpValue: 'COLUMN',
      description: 'order of the models; =-COLUMN for the largest first',
    }),
    tokenizer: Flags.string({
      multiple: true,
      multipleNonGreedy: true,
      helpValue: 'FILE',
      dependsOn: ['text'],
      description:
        'a tokenizer.json to cut --text with (repeatable): each model has the largest that fits it',
    }),
    text: Flags.string({
      helpValue: 'FILE',
      dependsOn: ['tokenizer'],
      description: 'a text, to tell what a character of it costs',
    }),
    config: Flags.string({
      helpValue: 'FILE',
      description: 'the config of the checkpoints [default: the one in them, or in their folder]',
    }),
    'state-dict': stateDict,
    ...settingFlags,
    optimizer: Flags.option({
      options: OPTIMIZER_NAMES,
      default: 'adamw',
      description: 'optimizer of the training',
    } as const)(),
  };

  async run() {
    const { argv, flags } = await this.parse(Compare);
    const { swept, candidates } = await loadCandidates(argv as string[], flags);
    const texts = await textsOf(flags);
    const shown = progress(flags, 'counting models', candidates.length, undefined, formatInteger);
    const onCounted = () => shown.add(1);
    const comparison = compareModels(candidates, swept, { ...flags, texts, onCounted });
    shown.end();
    await this.warnAbout(flags, comparisonWarnings(comparison));
    const result = { schema: 'minimind/compare@1', ...comparison } as const;
    return this.answer(flags, result, (each) =>
      compareReport(each, { flat: formatOf(flags) === 'csv' }),
    );
  }
}

/** Loads the tokenizers' library only when one is given. */
async function textsOf({ tokenizer, text }: FlagsOf<typeof Compare>) {
  if (tokenizer === undefined || text === undefined) return undefined;
  const { measureText } = await import('../tokenizer/measure.js');
  return measureText(tokenizer, text);
}
