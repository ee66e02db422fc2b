import * as Flags from '@oclif/core/flags';
import { BaseCommand, formatOf } from '../../cli/base-command.js';
import { count } from '../../cli/flags.js';
import { quote } from '../../config/quote.js';
import { UserError } from '../../errors.js';
import type { RatioChoice } from '../../kv-projector/costs.js';
import { compareProjectors, loadTeachers } from '../../kv-projector/costs.js';
import { projectorParamsReport } from '../../report/kv-projector/kv-projector.js';

/** A larger ratio would not be a bottleneck. */
const LARGEST_RATIO = 1024;

/** `--ratio 0.5,recommended`: width between the layers of an elastic adapter, as a ratio of the teacher's. */
const ratios = Flags.custom<RatioChoice>({
  multiple: true,
  multipleNonGreedy: true,
  delimiter: ',',
  helpValue: 'RATIO,RATIO',
  parse: async (text) => {
    if (text === 'recommended') return text;
    const ratio = /^\d*\.?\d+$/.test(text) ? Number(text) : 0;
    if (ratio > 0 && ratio <= LARGEST_RATIO) return ratio;
    throw new UserError('usage', `--ratio: ${quote(text)} is no ratio`, {
      suggestion: `write numbers up to ${LARGEST_RATIO}, or recommended, as in --ratio 0.5,recommended`,
    });
  },
});

export default class KvProjectorParams extends BaseCommand {
  static override summary = 'Count what projectors of keys and values weigh and cost.';
  static override description =
    'A projector maps the keys and values of teachers to the width of a student: for each teacher one adapter for ' +
    'K and one for V. One row per way of building it: linear, one matrix without bias (v1), and elastic, a norm and two ' +
    'linear layers with a bottleneck of RATIO times the teacher’s width between them (v2). The recommended ratio is ' +
    'the published one: 0.5 for teachers under 14B parameters, 1 from 14B and 2 from 30B to 70B.';
  static override examples = [
    '<%= config.bin %> <%= command.id %> --teacher Qwen2-14B:5120x40 --student 1536',
    '<%= config.bin %> <%= command.id %> --teacher Qwen2-7B:3584x28 --teacher Llama-3-70B:8192x80 --student 2048 --ratio recommended --explain',
    '<%= config.bin %> <%= command.id %> --teacher fixtures/hf-configs/llama-3.1-8b/config.json --student 1536 --json',
  ];

  static override flags = {
    teacher: Flags.string({
      required: true,
      multiple: true,
      multipleNonGreedy: true,
      helpValue: 'NAME:WIDTHxLAYERS',
      description:
        'a teacher, as in Qwen2-14B:5120x40, or NAME:WIDTH, or the path of its config (repeatable)',
    }),
    student: count({ required: true, description: 'width of the student' }),
    ratio: ratios({
      default: [0.5, 1, 2, 'recommended'],
      description: 'of the elastic projectors: numbers, or recommended',
    }),
    explain: Flags.boolean({ description: 'add formula, inputs and source of each figure' }),
  };

  async run() {
    const { flags } = await this.parse(KvProjectorParams);
    const { teachers, warnings } = await loadTeachers(flags.teacher);
    await this.warnAbout(flags, warnings);
    const result = {
      schema: 'minimind/kv-projector-params@1',
      ...compareProjectors(teachers, flags.student, flags.ratio),
    } as const;
    return this.answer(flags, result, (each) =>
      projectorParamsReport(each, { explain: flags.explain, flat: formatOf(flags) === 'csv' }),
    );
  }
}
