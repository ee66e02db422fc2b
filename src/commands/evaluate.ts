import os from 'node:os';
import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import { BaseCommand, type FlagsOf } from '../cli/base-command.js';
import {
  compute,
  details,
  device,
  engine,
  seed,
  set,
  stateDict,
  threads,
  tokens,
} from '../cli/flags.js';
import { progressDisplay } from '../cli/progress.js';
import { evaluationLimits, exceededEvaluation } from '../cli/thresholds.js';
import type { EvaluationInput, EvaluationResult } from '../evaluation/evaluate-files.js';
import { openWeighted } from '../model-input/weighted-model.js';
import { evaluateReport } from '../report/evaluate.js';

export default class Evaluate extends BaseCommand {
  static override summary = 'Score a text with a model: loss, perplexity, bits per byte.';
  static override description =
    'Reads the text in windows of --context tokens and reports the mean loss, the perplexity and the bits per byte, ' +
    'each with its standard error. Only bits per byte compare models with different tokenizers. With --against it ' +
    'reads a second model as the reference and reports how far the predictions are apart.';
  static override examples = [
    '<%= config.bin %> <%= command.id %> fixtures/hf/llama --ids fixtures/hf/llama/ids.json',
    '<%= config.bin %> <%= command.id %> my-model --text test.txt --context 1024 --stride 512',
    '<%= config.bin %> <%= command.id %> my-model-shared --text test.txt --against my-model --max-kl 0.01',
  ];

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
      exactlyOne: ['text', 'ids'],
    }),
    ids: Flags.string({
      helpValue: 'FILE',
      description: 'token ids as JSON, a list for each text: [[5, 17, 3], …]',
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
    set,
    checkpoint: Flags.string({
      helpValue: 'PATH',
      description: 'a file, an index or a folder with the weights',
    }),
    'state-dict': stateDict,
    random: Flags.boolean({
      description: 'use random weights instead of a checkpoint',
      exclusive: ['checkpoint', 'state-dict'],
    }),
    seed,
    engine: engine(),
    device: device(),
    compute: compute('type of matrix products'),
    threads: threads(),
    details,
    ...evaluationLimits,
  };

  async run() {
    const { args, flags } = await this.parse(Evaluate);
    const file = await this.modelGiven(flags, args.model, 'fixtures/hf/llama');
    await this.refuseUnwritable(flags);
    const display = progressDisplay(flags);
    const opened = await openWeighted(file, flags, display);
    try {
      await this.warnAbout(flags, opened.warnings);
      const reference =
        flags.against === undefined ? undefined : await openWeighted(flags.against, {}, display);
      try {
        await this.warnAbout(flags, reference?.warnings ?? []);
        return await this.#evaluate({ own: opened, reference }, flags);
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
  ): Promise<EvaluationResult> {
    const { evaluateFiles } = await import('../evaluation/evaluate-files.js');
    const result = await evaluateFiles(
      {
        ...models,
        ...flags,
        engine: flags.engine ?? 'auto',
        device: flags.device ?? 'auto',
        threads: flags.threads ?? os.availableParallelism(),
      },
      progressDisplay(flags),
    );
    await this.answer(flags, result, evaluateReport);
    this.exceeded(exceededEvaluation(flags, result));
    return result;
  }
}

type EvaluateFlags = FlagsOf<typeof Evaluate>;
