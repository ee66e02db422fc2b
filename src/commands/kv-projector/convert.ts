import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import { BaseCommand } from '../../cli/base-command.js';
import { savedArgument } from '../../cli/flags/flags.js';
import { isStdout } from '../../cli/output.js';
import { progressDisplay } from '../../cli/progress.js';
import { PROJECTOR_CONTAINERS, PROJECTOR_ENDINGS } from '../../kv-projector/projector.js';
import { projectorConversionReport } from '../../report/kv-projector/kv-projector.js';

export default class KvProjectorConvert extends BaseCommand {
  static override summary = 'Convert a saved projector between .pt and safetensors.';
  static override description =
    'A .pt file is a dict of the constructor’s arguments and state_dict. In safetensors, each argument is a JSON string ' +
    'in the metadata. Names, values and types of all tensors stay the same.';
  static override examples = [
    '<%= config.bin %> kv-projector init projector.pt --teacher Qwen2-7B:896x28 --student 256',
    '<%= config.bin %> <%= command.id %> projector.pt projector.safetensors',
    '<%= config.bin %> <%= command.id %> projector.safetensors again.pt --json',
  ];

  static override args = {
    in: Args.string({ required: true, ignoreStdin: true, description: 'a saved projector' }),
    out: savedArgument('the file to write', PROJECTOR_ENDINGS),
  };
  static override flags = {
    container: Flags.option({
      options: PROJECTOR_CONTAINERS,
      description: 'format of OUT [default: by its name]',
    } as const)(),
    force: Flags.boolean({
      description: 'replace OUT and the FILE of --output if they exist',
      helpGroup: 'OUTPUT',
    }),
  };

  async run() {
    const { args, flags } = await this.parse(KvProjectorConvert);
    const { convertProjector } = await import('../../kv-projector/write-projector.js');
    await this.refuseUnwritable(flags);
    const result = await convertProjector(args.in, args.out, {
      container: flags.container,
      force: flags.force,
      report: isStdout(flags.output) ? undefined : flags.output,
      display: progressDisplay(flags),
      warn: (warnings) => this.warnAbout(flags, warnings),
    });
    return this.answer(flags, result, projectorConversionReport);
  }
}
