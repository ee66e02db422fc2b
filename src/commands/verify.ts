import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import { tensorsOf } from '../architecture/walk.js';
import { openCheckpoint } from '../checkpoint/open.js';
import { BaseCommand, formatOf } from '../cli/base-command.js';
import { asStored, differencesInside, warningsOf } from '../cli/checkpoint-config.js';
import { compared } from '../cli/checkpoint-faults.js';
import { isCheckpointPath } from '../cli/checkpoint-path.js';
import { set, stateDict } from '../cli/flags.js';
import { loadModelFile } from '../cli/model-file.js';
import { UserError } from '../errors.js';
import { verifyReport } from '../report/verify.js';

export default class Verify extends BaseCommand {
  static override summary = 'Check that a checkpoint holds the model that a config describes.';
  static override description =
    'Tells every tensor that is missing, extra, misshapen, of the wrong type, not tied though the config ' +
    'ties it, or tied though it does not, and which values of the config would explain it. Ties are ' +
    'compared byte by byte; of all else the index alone is read. Exits with 1 when something is wrong.';
  static override examples = [
    '<%= config.bin %> <%= command.id %> fixtures/hybrid/shared-lowrank-tied/config.yaml fixtures/hybrid/shared-lowrank-tied/model.safetensors',
    '<%= config.bin %> <%= command.id %> fixtures/hybrid/shared-lowrank-tied/config.yaml fixtures/hybrid/shared-lowrank-tied/ --json',
  ];

  static override args = {
    config: Args.string({ required: true, description: 'a config, or - for standard input' }),
    checkpoint: Args.string({ required: true, description: 'a file, an index or a folder' }),
  };
  static override flags = {
    set,
    'state-dict': stateDict,
    strict: Flags.boolean({ description: 'treat warnings as errors' }),
  };

  async run() {
    const { args, flags } = await this.parse(Verify);
    if (isCheckpointPath(args.config)) {
      throw new UserError('usage', `${args.config} is a checkpoint, and the config comes first`, {
        suggestion: 'write minimind verify CONFIG CHECKPOINT',
      });
    }
    const described = await loadModelFile(args.config, flags);
    await this.warnAbout(flags, described.warnings);
    const checkpoint = openCheckpoint(args.checkpoint, { stateDict: flags['state-dict'] });
    try {
      await this.warnAbout(flags, warningsOf(checkpoint));
      const loaded = asStored(described, checkpoint);
      const found = await compared(loaded, checkpoint, flags);
      const configDifferences = await differencesInside(loaded, checkpoint);
      const hasWarnings =
        checkpoint.warnings.length > 0 ||
        configDifferences.length > 0 ||
        found.notes.some(({ severity }) => severity === 'warning');
      const matches = found.matches && !(flags.strict && hasWarnings);
      const result = {
        schema: 'minimind/verify@1',
        config: loaded.file,
        checkpoint: checkpoint.path,
        family: loaded.family.name,
        format: checkpoint.format,
        stateDict: checkpoint.stateDict,
        counts: {
          described: tensorsOf(loaded.model).length,
          stored: checkpoint.tensors.size + checkpoint.aliases.size,
          faulty: found.faults.reduce((sum, { names }) => sum + names.length, 0),
        },
        ...found,
        matches,
        configDifferences,
      } as const;
      if (!matches) process.exitCode = 1;
      return await this.answer(flags, result, (each) =>
        verifyReport(each, { flat: formatOf(flags) === 'csv' }),
      );
    } finally {
      checkpoint.close();
    }
  }
}
