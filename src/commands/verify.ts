import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import { openCheckpoint } from '../checkpoint/open.js';
import { BaseCommand, formatOf } from '../cli/base-command.js';
import { set, stateDict } from '../cli/flags.js';
import { progressDisplay } from '../cli/progress.js';
import { UserError } from '../errors.js';
import { findConfig } from '../model-input/checkpoint-config.js';
import { configPath, isCheckpointPath } from '../model-input/locate.js';

import { verifyCheckpoint } from '../model-input/verify-checkpoint.js';
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
    '<%= config.bin %> <%= command.id %> fixtures/hf/mixtral-saved',
  ];

  static override args = {
    config: Args.string({
      required: true,
      ignoreStdin: true,
      description:
        'a config, or - for standard input; or a checkpoint, for the config that belongs to it',
    }),
    checkpoint: Args.string({ description: 'a file, an index or a folder' }),
  };
  static override flags = {
    set,
    'state-dict': stateDict,
    strict: Flags.boolean({ description: 'treat warnings as errors' }),
  };

  async run() {
    const { args, flags } = await this.parse(Verify);
    const isOne = args.checkpoint === undefined;
    const isCheckpoint = isCheckpointPath(args.config);
    if (isOne && !isCheckpoint) throw misused(`the checkpoint is missing beside ${args.config}`);
    // A folder with weights may have been given for the config in it.
    if (!isOne && isCheckpoint && configPath(args.config) === args.config) {
      throw misused(`${args.config} is a checkpoint, and the config comes first`);
    }
    const checkpoint = openCheckpoint(args.checkpoint ?? args.config, {
      stateDict: flags['state-dict'],
    });
    try {
      const found = await findConfig(checkpoint, isOne ? undefined : args.config);
      if (!found) throw misused(`${checkpoint.path} holds no config, and none stands beside it`);
      const verified = await verifyCheckpoint(checkpoint, found.document, flags, {
        display: progressDisplay(flags),
        warn: (warnings) => this.warnAbout(flags, warnings),
      });
      if (!verified.matches) process.exitCode = 1;
      const result = { schema: 'minimind/verify@1', ...verified } as const;
      return await this.answer(flags, result, (each) =>
        verifyReport(each, { flat: formatOf(flags) === 'csv' }),
      );
    } finally {
      checkpoint.close();
    }
  }
}

const misused = (message: string) =>
  new UserError('usage', message, { suggestion: 'write minimind verify CONFIG CHECKPOINT' });
