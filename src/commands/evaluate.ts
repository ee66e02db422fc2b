import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import type { FlagsOf } from '../cli/base-command.js';
import {
  compute,
  details,
  device,
  engine,
  pictureFlags,
  sourceOf,
  threads,
  weightFlags,
} from '../cli/flags/flags.js';
import { sweepFlags } from '../cli/flags/parts-flags.js';
import { evaluationLimits, exceededEvaluation } from '../cli/flags/thresholds.js';
import { seedOf, tokens, weightForm } from '../cli/flags/value-flags.js';
import { LineMistake } from '../cli/line/line-mistake.js';
import { progressDisplay } from '../cli/progress.js';
import { SweepCommand, type SweepRun } from '../cli/sweep-command.js';
import { openWeighted } from '../input/model-input/checkpoint/weighted-model.js';
import { isCheckpointPath } from '../input/model-input/locate.js';
import type { EvaluationInput, EvaluationResult } from '../language/evaluation/evaluate-files.js';
import { evaluationWork } from '../library/run/evaluate.js';
import { evaluateReport } from '../report/evaluate/evaluate-report.js';

export default class Evaluate extends SweepCommand {
  static override summary = 'Score a text: loss, perplexity, bits per byte.';
  static override description =
    'Reads the text in windows of --context tokens and reports the mean loss, the perplexity and the bits per byte, ' +
    'each with its standard error. Only bits per byte compare models with different tokenizers. With --against it ' +
    'reads a second model as the reference and reports how far the predictions are apart.';
  static override needsWeights = true;
  static override baseFlags = pictureFlags;
  static override examples = [
    '<%= config.bin %> <%= command.id %> hybrid/tiny --random --ids 5,17,3,9,1,30',
    '<%= config.bin %> export hybrid/tiny --random --save tiny.onnx',
    '<%= config.bin %> convert-checkpoint tiny.onnx tiny',
    '<%= config.bin %> <%= command.id %> tiny --ids 5,17,3,9,1,30 --against tiny.onnx',
    '<%= config.bin %> <%= command.id %> tiny --ids 5,17,3,9,1,30 --context 4 --stride 2',
  ];

  static override viewFlags = Object.keys(evaluationLimits);
  static override args = {
    model: Args.string({
      ignoreStdin: true,
      description:
        'a checkpoint, or a config with --checkpoint [default: the model of this folder]',
    }),
  };
  static override flags = {
    text: Flags.string({
      helpValue: 'FILE',
      description: 'the text, in UTF-8',
      exclusive: ['ids'],
    }),
    ids: Flags.string({
      helpValue: 'IDS',
      description: 'token ids: 1,2,3, or a JSON file with a list for each text: [[5, 17, 3], …]',
    }),
    tokenizer: Flags.string({
      helpValue: 'FILE',
      description: 'tokenizer.json of the model [default: the one in its folder]',
      dependsOn: ['text'],
    }),
    context: tokens({ description: 'tokens of a window [default: 512, or all positions]' }),
    stride: tokens({
      description:
        'tokens from window to window; fewer than --context let windows overlap [default: --context]',
    }),
    bos: Flags.string({
      helpValue: 'auto|none|ID',
      default: 'auto',
      description: 'token before each window; auto adds it if the tokenizer does',
    }),
    against: Flags.string({
      helpValue: 'OTHER',
      description: 'a second model with the same vocabulary, as the reference',
    }),
    ...weightFlags,
    weights: weightForm(),
    seed: seedOf({ description: 'seed of --random [default: 0]', dependsOn: ['random'] }),
    engine: engine(),
    device: device(),
    compute: compute('type of matrix products'),
    threads: threads(),
    details,
    ...evaluationLimits,
    ...sweepFlags,
  };

  /** @throws UserError without a text and without token ids. */
  protected override checkFlags({ text, ids, plan }: FlagsOf<typeof Evaluate>): void {
    if (text !== undefined || ids !== undefined || plan !== undefined) return;
    throw new LineMistake(
      'expected a text or token ids, found none',
      [{ words: ['evaluate', ...this.argv, '--ids', '1,2,3'], hasExample: true }],
      { more: '--text FILE for a text' },
    );
  }

  async run() {
    const run = await this.sweepRun();
    if (run === undefined) return undefined;
    const { args, flags } = await this.parse(Evaluate, run.words);
    const file = await this.modelGiven(flags, args.model, 'hybrid/tiny --random --ids 1,2,3');
    this.checkFlags(flags);
    await this.refuseUnwritable(flags);
    const display = progressDisplay(flags);
    const opened = await openWeighted(file, sourceOf(flags), display);
    try {
      await this.warnAbout(flags, opened.warnings);
      const reference =
        flags.against === undefined
          ? undefined
          : await openWeighted(flags.against, { random: isRandom(flags, flags.against) }, display);
      try {
        await this.warnAbout(flags, reference?.warnings ?? []);
        return await this.#evaluate({ own: opened, reference }, flags, run);
      } finally {
        reference?.close();
      }
    } finally {
      opened.close();
    }
  }

  /** Loads the code that runs models. */
  async #evaluate(
    models: Pick<EvaluationInput, 'own' | 'reference'>,
    flags: EvaluateFlags,
    run: SweepRun,
  ): Promise<EvaluationResult | undefined> {
    const work = await evaluationWork(models, flags, progressDisplay(flags));
    const result = await run.solve(work).finally(work.close);
    if (result === undefined) return undefined;
    await this.answer(flags, result, evaluateReport);
    this.exceeded(exceededEvaluation(flags, result));
    return result;
  }
}

type EvaluateFlags = FlagsOf<typeof Evaluate>;

/** Whether a model has random weights: with `--random`, every model that is a config. */
const isRandom = ({ random }: EvaluateFlags, file: string): boolean =>
  random && !isCheckpointPath(file);
