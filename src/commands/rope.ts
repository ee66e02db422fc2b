import * as Args from '@oclif/core/args';
import { BaseCommand } from '../cli/base-command.js';
import { details, modelFlags, pictureFlags, sourceOf } from '../cli/flags/flags.js';
import { times, tokens } from '../cli/flags/value-flags.js';
import { openModelSource } from '../input/model-input/model-source.js';
import { yarnSettings } from '../input/model-input/rope-settings.js';
import { analyseRope } from '../model/budget/analyse-rope.js';
import type { RopeResult } from '../report/command-results.js';
import { configText } from '../report/profile/setting-notes.js';
import { ropeReport } from '../report/rope-report.js';

export default class Rope extends BaseCommand {
  static override summary = 'Compare RoPE scaling methods for a longer context.';
  static override description =
    'Counts the frequencies that meet angles unseen in training, for the plain rotation and under linear, NTK-aware, ' +
    'YaRN and llama3 scaling. Shows the settings of YaRN for the config. --details has the wavelength of each ' +
    'frequency, and a plot. Each distinct rotation of the layers is shown once.';
  static override baseFlags = pictureFlags;
  static override readsHub = 'index' as const;
  static override examples = [
    '<%= config.bin %> <%= command.id %> minimind2-small --context 131072',
    '<%= config.bin %> <%= command.id %> minimind2-small --context 32768 --trained 2048 --set model.inference_rope_scaling=true',
    '<%= config.bin %> <%= command.id %> minigpt-small --context 8192 --factor 16 --format csv',
  ];

  static override args = {
    file: Args.string({
      required: true,
      ignoreStdin: true,
      description: 'a preset, a config, - for standard input, or a checkpoint with its config',
    }),
  };
  static override flags = {
    ...modelFlags,
    context: tokens({
      description:
        'positions to reach, as in 32k for 32,768 [default: those of the config if the training had fewer, else 4 × the training]',
    }),
    trained: tokens({
      description:
        'positions of the training [default: the original positions of the scaling, or those of the config]',
    }),
    details,
    factor: times({ description: 'scaling factor [default: context / trained]' }),
  };

  async run() {
    const { args, flags } = await this.parse(Rope);
    const source = await openModelSource(args.file, sourceOf(flags));
    const { file, family, model, warnings, checkpoint } = await source.model(flags.set);
    if (checkpoint) this.note(flags, configText(checkpoint.config));
    await this.warnAbout(flags, warnings);
    const analysis = analyseRope(model, { ...flags, name: file });
    const config = checkpoint?.config.file ?? file;
    const settings = analysis.needsScaling
      ? await yarnSettings({ ...analysis, file: config, family, model }, (set) =>
          source.model([...(flags.set ?? []), ...set]),
        )
      : null;
    const result: RopeResult = {
      schema: 'minimind/rope@1',
      file,
      family: family.name,
      ...analysis,
      settings,
    };
    return this.answer(flags, result, ropeReport);
  }
}
