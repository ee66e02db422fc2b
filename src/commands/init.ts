import * as Args from '@oclif/core/args';
import { BaseCommand, formatOf } from '../cli/base-command.js';
import { writeStdout, writeText } from '../cli/output.js';
import { readPresetFile } from '../model-input/presets.js';
import { initReport } from '../report/models.js';
import { toJson } from '../text/escape.js';

export default class Init extends BaseCommand {
  static override summary = 'Write a commented config to start from.';
  static override description =
    'Writes PRESET.yaml, or the file that -o names (- is standard output). minimind list shows the presets.';
  static override examples = [
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> tiny -o my-model.yaml',
    '<%= config.bin %> <%= command.id %> sincos -o -',
  ];

  static override args = {
    preset: Args.string({
      default: 'recommended',
      description: 'a preset, as minimind list shows',
    }),
  };

  async run() {
    const { args, flags } = await this.parse(Init);
    const { preset, family, text } = readPresetFile(args.preset);
    const file = flags.output ?? `${preset.split('/').at(-1)}.yaml`;
    const result = { schema: 'minimind/init@1', preset, family, file } as const;
    if (file === '-') {
      await writeStdout(formatOf(flags) === 'json' ? toJson({ ...result, text }) : text);
      return result;
    }
    await writeText(file, text, flags.force);
    // -o is the config, not the file of this answer.
    return this.answer({ ...flags, output: undefined }, result, initReport);
  }
}
