import * as Flags from '@oclif/core/flags';
import { usageError } from '../../base/errors.js';
import { firstOverlapping } from '../../base/files/input-registry.js';
import { refuseBroken } from '../../base/text/relations.js';
import { BaseCommand } from '../../cli/base-command.js';
import { savedArgument, seed } from '../../cli/flags/flags.js';
import { count, dropout, teachers, widthRatio } from '../../cli/flags/value-flags.js';
import { isStdout } from '../../cli/output.js';
import { progressDisplay } from '../../cli/progress.js';
import { loadTeachers } from '../../convert/kv-projector/costs.js';
import { ADAPTER_KINDS, PROJECTOR_ENDINGS } from '../../convert/kv-projector/projector.js';
import { DROPOUT, RATIO } from '../../convert/kv-projector/verify-adapters.js';
import { INITS } from '../../convert/kv-projector/write-projector.js';
import { projectorInitReport } from '../../report/kv-projector/kv-projector.js';

export default class KvProjectorInit extends BaseCommand {
  static override summary = 'Write a new KV projector.';
  static override description =
    'OUT is a .pt or .safetensors file: the constructor’s arguments and state_dict in float32. The values are those of ' +
    'PyTorch after torch.manual_seed(SEED): each layer draws its default values, then each matrix is filled again in ' +
    'the same order. Biases are 0. Linear adapters (v1) have no bias.';
  static override examples = [
    '<%= config.bin %> <%= command.id %> projector.pt --teacher Qwen2-7B:896x28 --student 256',
    '<%= config.bin %> <%= command.id %> projector.safetensors --teacher A:640x4 --teacher B:320x2 --student 96 --ratio 0.5 --init kaiming --seed 7 --json',
    '<%= config.bin %> <%= command.id %> linear.pt --kind linear --teacher minimind2 --student 96',
  ];

  static override args = {
    out: savedArgument('the file to write, as in projector.pt', PROJECTOR_ENDINGS),
  };
  static override flags = {
    teacher: teachers(),
    student: count({ required: true, description: 'width of the student, as in 1536' }),
    kind: Flags.option({
      options: ADAPTER_KINDS,
      default: 'elastic',
      description: 'linear (v1) or elastic (v2) adapters',
    } as const)(),
    ratio: widthRatio({
      description: `hidden width ÷ teacher width, elastic only [default: ${RATIO}]`,
    }),
    dropout: dropout({
      description: `dropout to store with the arguments, elastic only [default: ${DROPOUT}]`,
    }),
    init: Flags.option({
      options: INITS,
      default: 'xavier',
      description:
        'matrices: Xavier uniform, Kaiming normal (fan out), or normal with deviation 0.02',
    } as const)(),
    seed,
    force: Flags.boolean({
      description: 'replace OUT and the FILE of --output if they exist',
      helpGroup: 'OUTPUT',
    }),
  };

  async run() {
    const { args, flags } = await this.parse(KvProjectorInit);
    refuseBroken(RELATIONS, flags);
    const { kind, init, force } = flags;
    await this.refuseUnwritable(flags);
    if (!isStdout(flags.output) && firstOverlapping([flags.output], args.out) !== undefined) {
      throw usageError(
        'OUT and the file of --output are the same',
        'choose another file for --output',
      );
    }
    const loaded = await loadTeachers(flags.teacher);
    await this.warnAbout(flags, loaded.warnings);
    const { initProjector } = await import('../../convert/kv-projector/write-projector.js');
    const result = await initProjector({
      ...{ kind, init, force, seed: flags.seed, teachers: loaded.teachers },
      studentWidth: flags.student,
      ratio: flags.ratio ?? RATIO,
      dropout: flags.dropout ?? DROPOUT,
      out: args.out,
      display: progressDisplay(flags),
    });
    return this.answer(flags, result, projectorInitReport);
  }
}

/** Settings that a linear adapter does not have. */
const RELATIONS = (['ratio', 'dropout'] as const).map((name) => ({
  of: [name, 'requires', ['kind', 'elastic']] as const,
}));
