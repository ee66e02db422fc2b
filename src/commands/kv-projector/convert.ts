import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import type { Problem } from '../../base/errors.js';
import { refuseBroken } from '../../base/text/relations.js';
import { BaseCommand } from '../../cli/base-command.js';
import { savedArgument } from '../../cli/flags/flags.js';
import { dropout, seedOf, widthRatio } from '../../cli/flags/value-flags.js';
import { isStdout } from '../../cli/output.js';
import { progressDisplay } from '../../cli/progress.js';
import {
  ADAPTER_KINDS,
  PROJECTOR_CONTAINERS,
  PROJECTOR_ENDINGS,
} from '../../convert/kv-projector/projector.js';
import type { ProjectorConversionAnswer } from '../../convert/kv-projector/upgrade-projector.js';
import { DROPOUT, RATIO } from '../../convert/kv-projector/verify-adapters.js';
import {
  projectorConversionReport,
  projectorUpgradeReport,
} from '../../report/kv-projector/kv-projector.js';

export default class KvProjectorConvert extends BaseCommand {
  static override summary =
    'Convert a saved projector between .pt and safetensors, or from v1 to v2.';
  static override description =
    'A .pt file is a dict of the constructor’s arguments and state_dict. In safetensors, each argument is a JSON string ' +
    'in the metadata. Names, values and types of all tensors stay the same. With --to elastic, a linear projector (v1) ' +
    'becomes an elastic one (v2), in float32: SiLU passes its matrix exactly, and the norm takes mean and deviation of ' +
    'each key away. --kv sets the norm to those of your keys. The error is reported.';
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
    to: Flags.option({
      options: ADAPTER_KINDS,
      description: 'kind of the adapters of OUT [default: that of IN]',
    } as const)(),
    ratio: widthRatio({
      description: `hidden width ÷ teacher width, with --to elastic [default: ${RATIO}]`,
    }),
    dropout: dropout({
      description: `dropout to store with the arguments, with --to elastic [default: ${DROPOUT}]`,
    }),
    kv: Flags.string({
      helpValue: 'FILE',
      description: 'keys and values of the teachers, for the norm and the error, with --to elastic',
    }),
    seed: seedOf({
      description: 'seed of hidden values that v1 does not need, with --to elastic [default: 0]',
    }),
    force: Flags.boolean({
      description: 'replace OUT and the FILE of --output if they exist',
      helpGroup: 'OUTPUT',
    }),
  };

  async run(): Promise<ProjectorConversionAnswer> {
    const { args, flags } = await this.parse(KvProjectorConvert);
    refuseBroken(RELATIONS, { ...flags, kind: flags.to });
    await this.refuseUnwritable(flags);
    const surroundings = {
      container: flags.container,
      force: flags.force,
      report: isStdout(flags.output) ? undefined : flags.output,
      display: progressDisplay(flags),
      warn: (warnings: readonly Problem[]) => this.warnAbout(flags, warnings),
    };
    if (flags.to === 'elastic') {
      const { upgradeProjector } = await import('../../convert/kv-projector/upgrade-projector.js');
      const { ratio = RATIO, dropout: probability = DROPOUT, seed = 0, kv } = flags;
      const request = { ...surroundings, ratio, dropout: probability, seed, kv };
      const result = await upgradeProjector(args.in, args.out, request);
      return this.answer(flags, result, projectorUpgradeReport);
    }
    const { convertProjector } = await import('../../convert/kv-projector/write-projector.js');
    const result = await convertProjector(args.in, args.out, { ...surroundings, to: flags.to });
    return this.answer(flags, result, projectorConversionReport);
  }
}

/** Settings of an upgrade. */
const RELATIONS = (['ratio', 'dropout', 'kv', 'seed'] as const).map((name) => ({
  of: [name, 'requires', ['kind', 'elastic']] as const,
}));
