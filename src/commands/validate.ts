import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import { countParameters } from '../budget/parameters.js';
import { BaseCommand, formatOf } from '../cli/base-command.js';
import { set } from '../cli/flags.js';
import { loadModelFile } from '../model-input/model-file.js';
import { loadAllFiles } from '../model-input/model-source.js';
import { validationReport } from '../report/models.js';

export default class Validate extends BaseCommand {
  static override summary = 'Check configs: every mistake with its place and its remedy.';
  static override description =
    'Finds all mistakes of a file at once: wrong and unknown keys, values that contradict each other, ' +
    'models that cannot be built. Exits with 0 when all files are valid, with 1 when one is not, with 2 when one cannot be read.';
  static override examples = [
    '<%= config.bin %> <%= command.id %> configs/hybrid/original.yaml',
    '<%= config.bin %> <%= command.id %> configs/hybrid/*.yaml --strict',
    '<%= config.bin %> <%= command.id %> configs/hybrid/tiny.yaml --set model.num_heads=8 --json',
  ];

  static override strict = false;
  static override args = {
    file: Args.string({
      ignoreStdin: true,
      description:
        'one or more configs or presets; - for standard input [default: the model of this folder]',
    }),
  };
  static override flags = {
    set,
    strict: Flags.boolean({ description: 'treat warnings as errors' }),
  };

  async run() {
    const { argv, flags } = await this.parse(Validate);
    const files =
      argv.length > 0
        ? (argv as string[])
        : [await this.modelGiven(flags, undefined, 'minimind2-small')];
    const { loaded, error } = await loadAllFiles(files, (source) => loadModelFile(source, flags));
    await this.warnAbout(
      flags,
      loaded.flatMap(({ warnings }) => warnings),
    );
    const valid = loaded.map(({ file, family, model, warnings }) => ({
      file,
      valid: true,
      family: family.name,
      parameters: countParameters(model).parameters,
      warnings,
    }));
    const result = { schema: 'minimind/validate@1', files: valid } as const;
    if (!error) return this.answer(flags, result, validationReport);
    // An invalid config is a failed check here; a file that cannot be read is not.
    if (error.code === 'invalid-config') error.exitCode = 1;
    // The result for valid files is part of the answer, except in JSON, which is only the error.
    if (valid.length > 0 && formatOf(flags) !== 'json')
      await this.answer(flags, result, validationReport);
    throw error;
  }
}
