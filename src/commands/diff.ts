import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import { percentText } from '../base/text/units.js';
import { namesText } from '../base/text/words.js';
import { BaseCommand } from '../cli/base-command.js';
import { details, offline, pictureFlags, readAs } from '../cli/flags/flags.js';
import { shareOrPercent } from '../cli/flags/thresholds.js';
import { progressDisplay } from '../cli/progress.js';
import type { DifferenceResult } from '../convert/difference/difference.js';
import { type Difference, differenceOf } from '../convert/difference/difference.js';
import { skippedValues } from '../library/diff.js';
import { diffReport } from '../report/diff-report.js';

export default class Diff extends BaseCommand {
  static override summary = 'Show what differs between two configs or two checkpoints.';
  static override description =
    'Compares config keys with their lines, layers, and tensors by name: added, removed, of another shape or type, ' +
    'tied otherwise. --values also reads the values of tensors with the same shape, and reports how far they are ' +
    'apart by layer and component; types and layouts may differ. Exits with 0 whether something differs or not, and ' +
    'with --check with 1 if something differs. To check a checkpoint against a config, use verify.';
  static override baseFlags = pictureFlags;
  static override readsHub = 'index' as const;
  static override examples = [
    '<%= config.bin %> <%= command.id %> minimind2-small minimind2',
    '<%= config.bin %> <%= command.id %> hybrid/original hybrid/shared --details',
    '<%= config.bin %> export hybrid/tiny --random --save a.onnx',
    '<%= config.bin %> export hybrid/tiny --random --seed 1 --save b.onnx',
    '<%= config.bin %> <%= command.id %> a.onnx b.onnx --values',
  ];

  static override args = {
    a: Args.string({
      required: true,
      ignoreStdin: true,
      description: 'a config, a preset, a folder, - for standard input, or a checkpoint',
    }),
    b: Args.string({
      required: true,
      ignoreStdin: true,
      description: 'another of the same kind',
    }),
  };
  static override flags = {
    values: Flags.boolean({ description: 'also compare the values of checkpoints' }),
    check: Flags.boolean({ description: 'exit with 1 if something differs' }),
    'max-error': shareOrPercent({
      description:
        'exit with 1 if the relative error of a tensor exceeds this, as in 0.01; implies --values',
    }),
    details,
    family: readAs,
    offline,
    'state-dict': Flags.string({
      multiple: true,
      multipleNonGreedy: true,
      helpValue: 'KEY',
      description:
        'state dict to read, if a PyTorch file has several; given twice, the one of each side',
    }),
  };

  async run() {
    const { args, flags } = await this.parse(Diff);
    const limit = flags['max-error'];
    const difference = await differenceOf(
      [args.a, args.b],
      {
        family: flags.family,
        stateDicts: flags['state-dict'] ?? [],
        comparedBy: flags.values ? 'values' : limit === undefined ? undefined : 'maxError',
      },
      {
        display: progressDisplay(flags),
        warn: (warnings) => this.warnAbout(flags, warnings),
      },
    );
    await this.warnAbout(flags, skippedValues(difference));
    const result: DifferenceResult = { schema: 'minimind/diff@1', ...difference };
    const answer = await this.answer(flags, result, diffReport);
    if (flags.check && !difference.equal) process.exitCode = 1;
    if (limit !== undefined) this.exceeded(beyond(difference, limit));
    return answer;
  }
}

/** The line about tensors with a distance above the limit; none without such a tensor. */
function beyond({ values }: Difference, limit: number): string[] {
  const far = values?.tensors.filter(({ relativeError }) => relativeError > limit) ?? [];
  if (far.length === 0) return [];
  const most = Math.max(...far.map(({ relativeError }) => relativeError));
  const names = namesText(far.map(({ name }) => name));
  return [
    `relative error ${percentText(most)} exceeds --max-error ${percentText(limit)}: ${names}`,
  ];
}
