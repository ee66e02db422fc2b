import * as Args from '@oclif/core/args';
import { BaseCommand, formatOf } from '../cli/base-command.js';
import { sourceOf } from '../cli/flags/flags.js';
import { type GenerationFlags, generationFlags } from '../cli/flags/generation-flags.js';
import {
  generationRequest,
  hasScores,
  hasTables,
  promptSource,
  scoresRequest,
} from '../cli/flags/generation-request.js';
import { answerPrompts, talk } from '../cli/generation-output.js';
import { LineMistake } from '../cli/line/line-mistake.js';
import { isStdout, writeStdout } from '../cli/output.js';
import { progressDisplay } from '../cli/progress.js';
import { foldersOf, openWeighted } from '../input/model-input/checkpoint/weighted-model.js';
import { locateModel } from '../input/model-input/locate.js';
import type { GivenScoresRequest } from '../language/generation/given-distribution.js';
import type { Generation } from '../language/generation/open-generation.js';
import type { PromptSource } from '../language/generation/prompts.js';
import type { GenerateResult } from '../language/generation/session.js';
import { figuresText, generateReport, settingsText } from '../report/generate-report.js';

export default class Generate extends BaseCommand {
  static override summary = 'Generate text with a model.';
  static override description =
    'Continues a prompt, or answers it with the chat template of the model (--chat). The tokenizer is the tokenizer.json ' +
    'in the folder of the model; --ids takes token ids instead. Settings of generation_config.json are used, and flags ' +
    'replace them. Without a prompt on a terminal, it asks for prompts: Ctrl-C ends an answer, /exit ends the program. ' +
    'In a pipe, stdout has only the text; figures go to stderr. --logits shows the sampling of given numbers, without a model. Perplexity and “least sure” refer to the distribution ' +
    'of the model before any filter.';
  static override needsWeights = true;
  static override notesFirst = true;
  static override examples = [
    '<%= config.bin %> <%= command.id %> hybrid/tiny --random --ids 1,2,3 --max-tokens 8',
    '<%= config.bin %> <%= command.id %> hybrid/tiny --random --ids 1,2,3 --max-tokens 8 --temperature 0.8 --seed 7',
    '<%= config.bin %> <%= command.id %> hybrid/tiny --random --ids 1,2,3 --max-tokens 4 --top-k 8 --explain-sampling',
    '<%= config.bin %> <%= command.id %> --logits 8,7,6,3,2 --temperature 2 --top-p 0.9',
    '<%= config.bin %> <%= command.id %> hybrid/tiny --random --ids 1,2,3 --max-tokens 40 --draft ngram:2',
    '<%= config.bin %> export hybrid/tiny --random --save tiny.onnx',
    '<%= config.bin %> <%= command.id %> tiny.onnx --ids 1,2,3 --max-tokens 8',
  ];

  static override args = {
    model: Args.string({
      ignoreStdin: true,
      description: 'a checkpoint, or a config with --checkpoint or --random [default: this folder]',
    }),
    prompt: Args.string({
      ignoreStdin: true,
      description: 'the text to continue or to answer; - reads it from standard input',
    }),
  };
  static override flags = generationFlags;

  /** @throws UserError without a prompt or token ids, and for a prompt that no tokenizer reads. */
  protected override async checkFlags(flags: GenerationFlags, args: GenerateArgs): Promise<void> {
    if (hasScores(flags)) return;
    const source = this.#source(args, flags);
    const { model } = args;
    const isOfText = source.kind === 'talk' || source.kind === 'text';
    if (!isOfText || model === undefined || flags.tokenizer !== undefined) return;
    if (model === '-' || model.startsWith('hf:')) return;
    const { hasTokenizer } = await import('../language/tokenizer/model-text.js');
    const { config } = locateModel(model);
    const checkpoint = flags.checkpoint === undefined ? undefined : { path: flags.checkpoint };
    if (hasTokenizer(foldersOf({ loaded: { file: config }, checkpoint }))) return;
    throw source.kind === 'text' ? this.#withoutTokenizer(source.text) : this.#withoutPrompt();
  }

  /** The error for a text that nothing reads: a config with random weights has no tokenizer. */
  #withoutTokenizer(prompt: string): LineMistake {
    const words = this.argv.toSpliced(this.argv.lastIndexOf(prompt), 1);
    const line = { words: ['generate', ...words, '--ids', '1,2,3'], hasExample: true };
    return new LineMistake('expected a tokenizer.json, found none', [
      { ...line, leftOut: ['a prompt needs --tokenizer FILE, and 1,2,3 stand for its tokens'] },
    ]);
  }

  #source(args: GenerateArgs, flags: GenerationFlags): PromptSource {
    const source = promptSource(args, flags);
    if (source === undefined) throw this.#withoutPrompt();
    return source;
  }

  #withoutPrompt(): LineMistake {
    return new LineMistake(
      'expected a prompt, found none',
      [{ words: ['generate', ...this.argv, '--ids', '1,2,3'], hasExample: true }],
      { more: 'a prompt after the model, or - for standard input' },
    );
  }

  async run() {
    const { args, flags, metadata } = await this.parse(Generate);
    const scores = scoresRequest(args, flags, metadata);
    if (scores) return this.#sample(scores, flags);
    const model = await this.modelGiven(flags, args.model, 'hybrid/tiny --random --ids 1,2,3');
    const source = this.#source(args, flags);
    await this.refuseUnwritable(flags);
    const display = progressDisplay(flags);
    const side = await openWeighted(model, sourceOf(flags), display);
    try {
      const warn = this.warnAbout.bind(this, flags);
      await warn(side.warnings);
      if (flags.random) {
        this.note(flags, `random weights of seed ${flags.seed ?? 0}: the text means nothing`);
      }
      const { openGeneration } = await import('../language/generation/open-generation.js');
      const request = generationRequest(source, flags);
      const generation = await openGeneration(side, request, { display, warn });
      try {
        if (source.kind !== 'talk') return await this.#answer(generation, flags);
        return await talk(generation, (text) => this.note(flags, text), figuresText);
      } finally {
        await generation.close();
      }
    } finally {
      side.close();
    }
  }

  /** Shows how given scores are sampled. */
  async #sample(request: GivenScoresRequest, flags: GenerationFlags): Promise<unknown> {
    const { sampleScores } = await import('../language/generation/given-distribution.js');
    const result = sampleScores(request);
    const { samplingReport } = await import('../report/sampling-report.js');
    return this.answer(flags, result, samplingReport);
  }

  async #answer(generation: Generation, flags: GenerationFlags): Promise<unknown> {
    const isTable = formatOf(flags) === 'table' && isStdout(flags.output);
    const isStreamed = isTable && generation.prompts.length === 1;
    const answers = await answerPrompts(generation, progressDisplay(flags), isStreamed);
    const result: GenerateResult = { ...generation.head, answers };
    const [only] = answers;
    // In a pipe the text is all of the answer, unless a flag asks for a table.
    if (isStreamed && only && process.stdout.isTTY !== true && !hasTables(flags)) {
      this.note(flags, settingsText(result));
      this.note(flags, figuresText(only));
      return result;
    }
    if (isStreamed) await writeStdout('\n');
    return this.answer(flags, result, (each) => generateReport(each, { isStreamed }));
  }
}

interface GenerateArgs {
  readonly model?: string | undefined;
  readonly prompt?: string | undefined;
}
