import * as Args from '@oclif/core/args';
import { analyseRope } from '../budget/analyse-rope.js';
import { BaseCommand, formatOf } from '../cli/base-command.js';
import { count, modelFlags, times } from '../cli/flags.js';
import { openModelSource } from '../model-input/model-source.js';
import { configText } from '../report/inspect/inspect-text.js';
import { ropeReport } from '../report/rope.js';

export default class Rope extends BaseCommand {
  static override summary = 'Tell what ways of stretching RoPE do to each frequency of a model.';
  static override description =
    'The wavelength of each frequency against the length of the training, as it is and under linear, NTK-aware, ' +
    'YaRN and llama3 scaling: which are kept, which interpolated, and which meet angles that the training did not ' +
    'have. The setting of the model is marked. Where layers differ in their rotation, each is shown once.';
  static override examples = [
    '<%= config.bin %> <%= command.id %> configs/minimind/minimind2-small.yaml --context 131072',
    '<%= config.bin %> <%= command.id %> configs/minimind/minimind2-small.yaml --context 32768 --trained 2048 --set model.inference_rope_scaling=true',
    '<%= config.bin %> <%= command.id %> configs/minigpt/minigpt-small.yaml --context 8192 --factor 16 --format csv',
  ];

  static override args = {
    file: Args.string({
      required: true,
      description: 'a config, - for standard input, or a checkpoint with its config',
    }),
  };
  static override flags = {
    ...modelFlags,
    context: count({ required: true, description: 'positions to reach' }),
    trained: count({
      description:
        'positions of the training [default: where the scaling of the model begins, or its positions]',
    }),
    factor: times({ description: 'by how much to stretch [default: context / trained]' }),
  };

  async run() {
    const { args, flags } = await this.parse(Rope);
    const source = await openModelSource(args.file, flags);
    const { file, family, model, warnings, checkpoint } = await source.model(flags.set);
    if (checkpoint) this.note(flags, configText(checkpoint.config));
    await this.warnAbout(flags, warnings);
    const analysis = analyseRope(model, { ...flags, name: file });
    const result = { schema: 'minimind/rope@1', file, family: family.name, ...analysis } as const;
    return this.answer(flags, result, (each) =>
      ropeReport(each, { flat: formatOf(flags) === 'csv' }),
    );
  }
}
