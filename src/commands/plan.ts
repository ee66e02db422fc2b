import * as Flags from '@oclif/core/flags';
import { usageError } from '../base/errors.js';
import { freeName } from '../base/files/file-system.js';
import { type NextLine, nextCommand } from '../base/text/setting.js';
import { formatInteger, shortCount } from '../base/text/units.js';
import { withoutFlags } from '../cli/flag-spelling.js';
import { details, pictureFlags, savedConfig, setOf } from '../cli/flags/flags.js';
import {
  type HardwareFlags,
  hardwareFlags,
  hardwareOf,
  oneGpuName,
} from '../cli/flags/hardware-flags.js';
import { sweepFlags } from '../cli/flags/parts-flags.js';
import {
  bytesLimit,
  count,
  countLimit,
  counts,
  dtype,
  names,
  range,
  tokens,
} from '../cli/flags/value-flags.js';
import { isStdout, writeText } from '../cli/output.js';
import { progress } from '../cli/progress.js';
import { SweepCommand } from '../cli/sweep-command.js';
import { CRITERIA, CRITERION_NAMES } from '../estimate/plan/criteria.js';
import { type Plan as FoundPlan, rowDocument } from '../estimate/plan/plan-models.js';
import type { PlanResult } from '../estimate/plan/plan-sweep.js';
import {
  PLAN_DEFAULTS,
  type PlanOptions,
  planRequest,
  planResult,
  planSweepOf,
} from '../library/plan.js';
import { FAMILY_NAMES, loadFamily } from '../model/architecture/families.js';
import { planReport } from '../report/plan-report.js';

const CRITERIA_TEXT = CRITERION_NAMES.map((name) => `${name}, ${CRITERIA[name].title}`).join('; ');

const { gpus: _, ...oneGpu } = hardwareFlags;

export default class Plan extends SweepCommand {
  static override summary = 'Find the best model shape for a parameter budget.';
  static override description =
    'Searches the depths, widths, heads, key-value heads and feed-forward widths of a family. Shows the ' +
    'Pareto-optimal models in parameters, memory, decode speed, width per layer and the sort criterion, best first. ' +
    'The row * is the model of the rule of 15% embeddings, 25% attention and 60% feed-forward. ' +
    'A model that does not fit into the memory of --gpu has no tokens/s; --max-memory removes it. For several GPUs, ask fit about the saved model. --save FILE writes the ' +
    `best model, or that of --row, as a config (- for standard output). A size given with --set is fixed. Sort by: ${CRITERIA_TEXT}.`;
  static override baseFlags = pictureFlags;
  static override examples = [
    '<%= config.bin %> <%= command.id %> --max-params 26M --vocab 6400 --gpu h100-80gb',
    '<%= config.bin %> <%= command.id %> --max-params 26M --vocab 6400 --context 4096 --depth 4..40 --sort memory',
    '<%= config.bin %> <%= command.id %> --max-params 135M --vocab 49152 --family llama --set model.tie_word_embeddings=true --top 3',
    '<%= config.bin %> <%= command.id %> --max-params 26M --vocab 6400 --row 2 --save -',
    '<%= config.bin %> <%= command.id %> --max-params 26M --vocab 6400 --parts 2 --plan widths.json',
    '<%= config.bin %> <%= command.id %> --plan widths.json --part 1',
  ];

  static override viewFlags = ['sort', 'top', 'sqrt-rule', 'save', 'row'];
  static override flags = {
    family: Flags.option({
      options: FAMILY_NAMES,
      default: PLAN_DEFAULTS.family,
      description: 'the model family (minimind list --details)',
    } as const)(),
    'max-params': countLimit({
      required: true,
      description: 'maximum number of parameters, as in 26M',
    }),
    'min-params': countLimit({
      description:
        'minimum number of parameters [default: 95% of the maximum, or of the largest model below it]',
    }),
    'max-memory': bytesLimit({ description: 'maximum memory of inference' }),
    vocab: count({ description: 'vocabulary size [default: that of the family]' }),
    context: tokens({
      default: PLAN_DEFAULTS.context,
      description: 'tokens per sequence; 32k is 32,768',
    }),
    batch: count({ default: PLAN_DEFAULTS.batch, description: 'sequences per batch' }),
    dtype: dtype({
      default: PLAN_DEFAULTS.dtype,
      description: 'element type of weights, and of caches with at least 16 bits',
    }),
    depth: range({ description: 'range of layers [default: 2..128]' }),
    width: range({ description: 'range of hidden sizes [default: 64..65536]' }),
    'head-dim': counts({ description: 'head dimensions [default: 64 and other common ones]' }),
    align: Flags.option({
      options: ['64', '128'],
      description: 'multiple that the feed-forward width is rounded to [default: 64]',
    } as const)(),
    tokenizer: names({
      helpValue: 'FILE,FILE',
      dependsOn: ['text'],
      exclusive: ['vocab'],
      description: 'compare the vocabularies of tokenizer.json files, by the cost of --text',
    }),
    text: Flags.string({
      helpValue: 'FILE',
      dependsOn: ['tokenizer'],
      description: 'a text in UTF-8, up to 4 MB',
    }),
    'sqrt-rule': Flags.boolean({
      description: 'check the rule of thumb √parameters × 100 for the vocabulary',
    }),
    set: setOf('set a value of the config, as in model.num_attention_heads=8'),
    sort: Flags.option({
      options: CRITERION_NAMES,
      default: PLAN_DEFAULTS.sort,
      description: 'criterion of the order',
    } as const)(),
    top: count({ default: PLAN_DEFAULTS.top, description: 'number of models to show' }),
    details,
    ...oneGpu,
    gpu: {
      ...oneGpu.gpu,
      description:
        'a GPU or machine of --list-gpus, as in h100 or RTX 4090, or a YAML file that describes one',
    },
    save: savedConfig({ description: 'write the best model to a config, as in best.yaml' }),
    row: count({
      dependsOn: ['save'],
      description: 'row of the table that --save writes [default: 1]',
      helpGroup: 'OUTPUT',
    }),
    ...sweepFlags,
  };

  async run() {
    const run = await this.sweepRun();
    if (run === undefined) return undefined;
    const { flags } = await this.parse(Plan, run.words);
    await this.refuseUnwritable(flags);
    const family = await loadFamily(flags.family);
    const { dimensions } = family;
    if (flags.align !== undefined && dimensions && dimensions.feedForward === undefined) {
      throw usageError(
        `--align requires a feed-forward width to search, which ${family.name} has not`,
        'leave --align out',
      );
    }
    const options: PlanOptions = {
      ...flags,
      vocabulary: flags.vocab,
      maxParameters: flags['max-params'],
      minParameters: flags['min-params'],
      maxMemoryBytes: flags['max-memory'],
      headDims: flags['head-dim'],
      align: flags.align && (Number(flags.align) as 64 | 128),
      squareRootRule: flags['sqrt-rule'],
      set: undefined,
    };
    const cluster = await askedGpu(flags, (choice) => this.note(flags, choice));
    let shown: ReturnType<typeof progress> | undefined;
    const request = {
      ...planRequest(options, flags.set ?? [], cluster),
      onSearched: (_: unknown, widths: number) => {
        shown ??= progress(flags, 'searching widths', widths, undefined, formatInteger);
        shown.add(1);
      },
    };
    const { tokenizer, text: corpus } = flags;
    const texts =
      tokenizer && corpus !== undefined
        ? await (await import('../language/tokenizer/tokenizer.js')).measureText(tokenizer, corpus)
        : undefined;
    const found = await run.solve(await planSweepOf(options, request, texts));
    shown?.end();
    if (found === undefined) return undefined;
    const { plan, vocabularies } = found;
    const { save } = flags;
    const result = planResult(options, found);
    const next = isStdout(save)
      ? commandToSave(run.words, plan, vocabularies?.best.vocabulary)
      : nextCommand('profile', [save, '--context', String(flags.context)]);
    const report = (each: PlanResult) => planReport(each, { next });
    if (save === undefined) return this.answer(flags, result, report);
    const text = rowDocument(plan, flags.row ?? 1);
    if (save === '-') return this.answerBeside(text, flags, result, report);
    await writeText(save, text, flags.force);
    this.note(flags, `wrote ${save}`);
    return this.answer(flags, result, report);
  }
}

/** A command line with a file for the best model. */
function commandToSave(
  argv: readonly string[],
  { family, rows: [best] }: FoundPlan,
  vocabulary: number | undefined,
): NextLine | undefined {
  if (!best) return undefined;
  const file = freeName(`${family}-${shortCount(best.parameters.value).replaceAll(',', '')}.yaml`);
  const words = withoutFlags(argv, ['--save', '--tokenizer', '--text'])
    .filter((word) => word !== '--sqrt-rule')
    .concat(vocabulary === undefined ? [] : ['--vocab', String(vocabulary)]);
  return nextCommand('plan', [...words, '--save', file]);
}

/** The GPU for decoding, if any. */
const askedGpu = async (flags: Omit<HardwareFlags, 'gpus'>, say: (choice: string) => void) =>
  (flags.gpu ?? flags.hardware ?? (flags['this-machine'] || undefined))
    ? hardwareOf({ ...flags, gpu: flags.gpu && oneGpuName(flags.gpu), gpus: 1 }, say)
    : undefined;
