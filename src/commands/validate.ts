import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import { countParameters } from '../budget/parameters.js';
import { BaseCommand, formatOf } from '../cli/base-command.js';
import { details, set } from '../cli/flags.js';
import { loadModelFile } from '../model-input/model-file.js';
import { loadAllFiles } from '../model-input/model-source.js';
import { validationReport } from '../report/models.js';

export default class Validate extends BaseCommand {
  static override summary = 'Check configs and report every mistake with its fix.';
  static override description =
    'Finds all mistakes of a file at once: wrong and unknown keys, contradicting values, models that cannot be ' +
    'built. Exits with 0 when all files are valid, with 2 when one is not.';
  static override examples = [
    '<%= config.bin %> <%= command.id %> configs/hybrid/original.yaml',
    '<%= config.bin %> <%= command.id %> configs/hybrid/*.yaml --strict',
    '<%= config.bin %> <%= command.id %> configs/hybrid/tiny.yaml --set model.num_heads=8 --json',
  ];

  static override strict = false;
  static override args = {
    file: Args.string({
      required: true,
      description: 'one or more configs; - for standard input',
    }),
  };
  static override flags = {
    set,
    details,
    strict: Flags.boolean({ description: 'treat warnings as errors' }),
  };

  async run() {
    const { argv, flags } = await this.parse(Validate);
    const { loaded, error } = await loadAllFiles(argv as string[], (source) =>
      loadModelFile(source, flags),
    );
    await this.warnAbout(
      flags,
      loaded.flatMap(({ warnings }) => warnings),
    );
    const files = loaded.map(({ file, family, model, warnings }) => ({
      file,
      valid: true,
      family: family.name,
      parameters: countParameters(model).parameters,
      warnings,
    }));
    const result = { schema: 'minimind/validate@1', files } as const;
    const report = () => validationReport(result, { given: argv.length });
    if (!error) return this.answer(flags, result, report);
    // The result for valid files is part of the answer, except in JSON, which is only the error.
    if (files.length > 0 && formatOf(flags) !== 'json') await this.answer(flags, result, report);
    throw error;
  }
}
