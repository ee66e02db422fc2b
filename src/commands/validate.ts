import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import { BaseCommand, formatOf } from '../cli/base-command.js';
import {
  baseFlags,
  details,
  formatFlag,
  modelWords,
  offline,
  readAs,
  set,
} from '../cli/flags/flags.js';
import { isStdout } from '../cli/output.js';
import { validationOf } from '../library/validate/validate.js';
import { validatedFiles } from '../library/validate/validate-files.js';
import { FORMATS } from '../report/kit/report.js';
import { validationReport } from '../report/models.js';

export default class Validate extends BaseCommand {
  static override summary = 'Check configs and report every mistake with its fix.';
  static override description =
    'Finds all mistakes of a file at once: wrong and unknown keys, contradicting values, models that cannot be ' +
    'built, and settings of training: that ruin a run (see train-plan), as warnings. The exit code is 0 when all files are valid, 1 when one is not, 2 when one cannot be read.';
  static override readsHub = 'config' as const;
  static override examples = [
    '<%= config.bin %> <%= command.id %> hybrid/original',
    '<%= config.bin %> <%= command.id %> hybrid/tiny --set model.num_heads=8 --json',
    '<%= config.bin %> init tiny --save my-model.yaml',
    '<%= config.bin %> <%= command.id %> my-model.yaml --strict',
    '<%= config.bin %> <%= command.id %> my-model.yaml --format github',
  ];

  static override strict = false;
  static override baseFlags = { ...baseFlags, format: formatFlag([...FORMATS, 'github']) };
  static override args = {
    file: Args.string({
      ignoreStdin: true,
      description:
        'one or more configs or presets; - for standard input [default: the model of this folder]',
    }),
  };
  static override flags = {
    set,
    family: readAs,
    offline,
    details,
    strict: Flags.boolean({ description: 'treat warnings as errors' }),
  };

  async run() {
    const { argv, flags } = await this.parse(Validate);
    const given =
      argv.length > 0
        ? (argv as string[])
        : [await this.modelGiven(flags, undefined, 'minimind2-small')];
    const { loaded, error, failures } = await validatedFiles(given, flags);
    await this.warnAbout(
      flags,
      loaded.flatMap(({ warnings }) => warnings),
    );
    const result = validationOf(loaded);
    const { files } = result;
    const format = formatOf(flags);
    // In a terminal, the problems are on stderr.
    const isOnTerminal = format === 'table' && isStdout(flags.output);
    const report = () =>
      validationReport(result, {
        failures,
        modelWords: modelWords(flags),
        hasProblems: !isOnTerminal,
      });
    if (!error) return this.answer(flags, result, report);
    // An invalid config is a failed check here, unlike a file that cannot be read.
    if (error.code === 'invalid-config') error.exitCode = 1;
    // The answer includes all files, except in JSON and annotations, which have the error.
    const isAnswered = files.length > 0 || (format !== 'github' && !isOnTerminal);
    const isRead = files.length > 0 || error.code === 'invalid-config';
    if (format !== 'json' && isAnswered && isRead) await this.answer(flags, result, report);
    throw error;
  }
}
