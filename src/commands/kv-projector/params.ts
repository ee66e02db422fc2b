import * as Flags from '@oclif/core/flags';
import { usageError } from '../../base/errors.js';
import { BaseCommand } from '../../cli/base-command.js';
import { details } from '../../cli/flags/flags.js';
import { count, publishedNumber, ratioChoices, teachers } from '../../cli/flags/value-flags.js';
import type { ProjectorParamsResult } from '../../convert/kv-projector/costs.js';
import { compareProjectors, loadTeachers } from '../../convert/kv-projector/costs.js';
import { explainProjector } from '../../convert/kv-projector/explain-projector.js';
import type { PublishedNumber } from '../../model/budget/published/published-number.js';
import { projectorParamsReport } from '../../report/kv-projector/kv-projector.js';

export default class KvProjectorParams extends BaseCommand {
  static override summary = 'Count the parameters and FLOPs of KV projectors.';
  static override description =
    'A projector maps keys and values of teachers to the width of a student, with one adapter for K and one for V per ' +
    'teacher. One row per design: linear is one matrix without bias (v1); elastic is a norm and two linear layers with ' +
    'a bottleneck of RATIO × the teacher’s width (v2). The recommended ratio is the published one: 0.5 for teachers ' +
    'under 14B parameters, 1 from 14B, 2 from 30B to 70B.';
  static override examples = [
    '<%= config.bin %> <%= command.id %> --teacher Qwen2-14B:5120x40 --student 1536',
    '<%= config.bin %> <%= command.id %> --teacher Qwen2-7B:3584x28 --teacher Llama-3-70B:8192x80 --student 2048 --ratio recommended --explain',
    '<%= config.bin %> <%= command.id %> --teacher Qwen2-14B:5120x40 --student 1536 --published 34.1M',
    '<%= config.bin %> <%= command.id %> --teacher minimind2 --student 1536 --json',
  ];

  static override flags = {
    teacher: teachers(),
    student: count({ required: true, description: 'width of the student, as in 1536' }),
    ratio: ratioChoices({
      default: [0.5, 1, 2, 'recommended'],
      description: 'ratios of the elastic projectors: numbers, or recommended',
    }),
    published: publishedNumber({
      description:
        'explain this published count, size, ratio or percentage, as in 34.1M, 136MB or 4.3x',
    }),
    details,
    explain: Flags.boolean({ description: 'add formula, inputs and source of each figure' }),
  };

  async run() {
    const { flags } = await this.parse(KvProjectorParams);
    const loaded = await loadTeachers(flags.teacher);
    await this.warnAbout(flags, loaded.warnings);
    const comparison = compareProjectors(loaded.teachers, flags.student, flags.ratio);
    const result: ProjectorParamsResult = {
      schema: 'minimind/kv-projector-params@1',
      ...comparison,
      ...(flags.published && {
        published: explainProjector(comparison, ownUnit(flags.published)),
      }),
    };
    return this.answer(flags, result, (each) =>
      projectorParamsReport(each, { explain: flags.explain }),
    );
  }
}

/** @throws UserError for a change or operations. */
function ownUnit(published: PublishedNumber) {
  if (published.unit !== 'change' && published.unit !== 'flops') return published;
  throw usageError(
    `--published: expected a count, a size, a ratio or a percentage, found ${published.unit === 'flops' ? 'FLOPs' : 'a change'}`,
    'write it as in --published 34.1M',
  );
}
