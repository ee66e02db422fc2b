import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import { BaseCommand } from '../../cli/base-command.js';
import { details, savedFile, threads } from '../../cli/flags/flags.js';
import { progressDisplay } from '../../cli/progress.js';
import { projectionReport } from '../../report/kv-projector/kv-projector.js';

export default class KvProjectorProject extends BaseCommand {
  static override summary = 'Apply a saved projector to keys and values of its teachers.';
  static override description =
    'PROJECTOR is a PyTorch or safetensors file, linear (v1) or elastic (v2). KV is a safetensors file with TEACHER.K ' +
    'and TEACHER.V, or input.TEACHER.K and input.TEACHER.V, whose results are named output.TEACHER.K and ' +
    'output.TEACHER.V. Shapes: any leading axes, the teacher’s width last; FILE has the student’s width instead. ' +
    'Dropout is off. Results are computed in float32 or better and rounded once.';
  static override examples = [
    '<%= config.bin %> kv-projector init projector.safetensors --teacher A:64x2 --student 32',
    '<%= config.bin %> <%= command.id %> projector.safetensors kv.safetensors --save projected.safetensors',
    '<%= config.bin %> <%= command.id %> projector.safetensors kv.safetensors --save half.safetensors --dtype bf16 --json',
  ];

  static override args = {
    projector: Args.string({ required: true, ignoreStdin: true, description: 'a saved projector' }),
    kv: Args.string({
      required: true,
      ignoreStdin: true,
      description: 'keys and values, in safetensors',
    }),
  };
  static override flags = {
    details,
    dtype: Flags.option({
      options: ['keep', 'f32', 'f16', 'bf16', 'f64'],
      default: 'keep',
      description: 'element type of the results',
    } as const)(),
    threads: threads(),
    save: savedFile({
      required: true,
      description: 'write the results to a safetensors file, as in projected.safetensors',
      example: 'projected.safetensors',
    }),
  };

  async run() {
    const { args, flags } = await this.parse(KvProjectorProject);
    await this.refuseUnwritable(flags);
    const { projectKv } = await import('../../convert/kv-projector/project-kv.js');
    const result = await projectKv(args.projector, args.kv, {
      ...flags,
      dtype: flags.dtype === 'keep' ? undefined : flags.dtype,
      display: progressDisplay(flags),
      warn: (warnings) => this.warnAbout(flags, warnings),
    });
    return this.answer(flags, result, projectionReport);
  }
}
