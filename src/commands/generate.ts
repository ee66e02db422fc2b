import os from 'node:os';
import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import { ERROR_CODES, UserError, usageError } from '../base/errors.js';
import { readText } from '../base/files/read-file.js';
import type { Checkpoint } from '../checkpoint/checkpoint.js';
import type { FlagsOf } from '../cli/base-command.js';
import { BaseCommand, formatOf } from '../cli/base-command.js';
import { device, engine, sourceOf, threads, weightFlags } from '../cli/flags/flags.js';
import { generationFlags } from '../cli/flags/generation-flags.js';
import { weightForm } from '../cli/flags/value-flags.js';
import { LineMistake } from '../cli/line-mistake.js';
import { Interruption, isStdout, writeStdout } from '../cli/output.js';
import { progressDisplay } from '../cli/progress.js';
import type { ComparedModel } from '../engine/compare/compare-outputs.js';
import type { ModelFile } from '../input/model-input/model-file.js';
import { foldersOf, openWeighted } from '../input/model-input/weighted-model.js';
import type { ChosenSettings } from '../language/generation/defaults.js';
import type { SamplingResult } from '../language/generation/given-distribution.js';
import type { PromptReader } from '../language/generation/prompts.js';
import type {
  DraftSource,
  GenerateResult,
  GenerationSession,
  ReportedAnswer,
} from '../language/generation/session.js';
import type { ChatMessage } from '../language/tokenizer/chat-template.js';
import { figuresText, generateReport, settingsText } from '../report/generate-report.js';

/** Number of first tokens whose sampling --explain-sampling shows. */
const EXPLAINED_TOKENS = 3;

const DEFAULT_DRAFT_TOKENS = 4;

/** Tokens of a conversation on a terminal, where the model has more positions. */
const CONVERSATION_CONTEXT = 4096;

export default class Generate extends BaseCommand {
  static override summary = 'Generate text with a model.';
  static override description =
    'Continues a prompt, or answers it with the chat template of the model (--chat). The tokenizer is the tokenizer.json ' +
    'in the folder of the model; --ids takes token ids instead. Settings of generation_config.json are used, and flags ' +
    'replace them. Without a prompt on a terminal, it asks for prompts: Ctrl-C ends an answer, /exit ends the program. ' +
    'In a pipe, stdout has only the text; figures go to stderr. --logits shows the sampling of given numbers, without a model. Perplexity and “least sure” refer to the distribution ' +
    'of the model before any filter.';
  static override needsWeights = true;
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
  static override flags = {
    chat: Flags.boolean({ description: 'use the chat template of the model' }),
    system: Flags.string({
      helpValue: 'TEXT',
      description: 'system prompt of the chat',
      dependsOn: ['chat'],
    }),
    ids: Flags.string({
      helpValue: 'IDS',
      description: 'token ids instead of a prompt: 1,2,3, or a JSON file [[5, 17, 3], …]',
      exclusive: ['chat', 'batch'],
    }),
    batch: Flags.string({
      helpValue: 'FILE',
      description:
        'answer each line of a file: a prompt, or JSON with "prompt", "messages" or "ids"',
    }),
    logits: Flags.string({
      helpValue: 'N,N',
      description:
        'sample from these logits, without a model: shows each filter of the flags below',
      helpGroup: 'SAMPLING',
    }),
    probabilities: Flags.string({
      helpValue: 'N,N',
      description: 'sample from these probabilities, without a model',
      helpGroup: 'SAMPLING',
      exclusive: ['logits'],
    }),
    ...generationFlags,
    against: Flags.string({
      helpValue: 'OTHER',
      description: 'show where another model would write another token; takes the likeliest tokens',
      exclusive: ['temperature', 'top-k', 'top-p', 'min-p'],
    }),
    tokenizer: Flags.string({
      helpValue: 'FILE',
      description: 'tokenizer.json [default: the one in the folder of the model]',
    }),
    ...weightFlags,
    weights: weightForm(),
    engine: engine(),
    device: device(),
    threads: threads(),
  };

  /** @throws UserError without a prompt or token ids, and for a prompt that no tokenizer reads. */
  protected override async checkFlags(flags: GenerateFlags, args: GenerateArgs): Promise<void> {
    if (flags.logits !== undefined || flags.probabilities !== undefined) return;
    const way = this.#input(args, flags);
    const { model } = args;
    if (way.kind !== 'talk' || model === undefined || flags.tokenizer !== undefined) return;
    const { hasTokenizer } = await import('../language/tokenizer/model-text.js');
    if (!hasTokenizer(foldersOf({ loaded: { file: model }, checkpoint: undefined }))) {
      throw this.#withoutPrompt();
    }
  }

  #input(args: GenerateArgs, flags: GenerateFlags): Input {
    const way = inputOf(args, flags);
    if (way === undefined) throw this.#withoutPrompt();
    return way;
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
    if (flags.logits !== undefined || flags.probabilities !== undefined) {
      refuseModel(args, flags, metadata);
      return this.#sample(flags);
    }
    const model = await this.modelGiven(flags, args.model, 'hybrid/tiny --random --ids 1,2,3');
    const way = this.#input(args, flags);
    await this.refuseUnwritable(flags);
    const side = await openWeighted(model, sourceOf(flags), progressDisplay(flags));
    const opened = [side.checkpoint];
    try {
      await this.warnAbout(flags, side.warnings);
      if (flags.random) {
        this.note(flags, `random weights of seed ${flags.seed ?? 0}: the text means nothing`);
      }
      return await this.#generate(side, way, flags, opened);
    } finally {
      for (const checkpoint of opened) checkpoint?.close();
    }
  }

  /** Shows how given logits are sampled. */
  async #sample(flags: GenerateFlags): Promise<unknown> {
    const { parseScores, sampleGiven } = await import(
      '../language/generation/given-distribution.js'
    );
    const { chooseSettings } = await import('../language/generation/defaults.js');
    const { listedIds } = await import('../engine/token-ids.js');
    const { logits, probabilities = '', ids } = flags;
    const scores =
      logits === undefined
        ? parseScores('probabilities', probabilities)
        : parseScores('logits', logits);
    const given = givenSettings(flags);
    // Without a flag, the softmax is all that is asked for.
    const { sampling } = chooseSettings(
      { ...given, temperature: given.temperature ?? 1 },
      undefined,
    );
    refuseUnsampled(flags, { sampling });
    const earlier = ids === undefined ? [] : (listedIds(ids, scores.values.length) ?? []);
    const result: SamplingResult = {
      schema: 'minimind/sampling@1',
      ...sampleGiven(scores, sampling, earlier),
    };
    const { samplingReport } = await import('../report/sampling-report.js');
    return this.answer(flags, result, samplingReport);
  }

  async #generate(
    side: ComparedModel,
    way: Input,
    flags: GenerateFlags,
    opened: (Checkpoint | undefined)[],
  ): Promise<unknown> {
    const { openModelText } = await import('../language/tokenizer/model-text.js');
    const { chooseSettings } = await import('../language/generation/defaults.js');
    const folders = foldersOf(side);
    const text = await openModelText(folders, flags.tokenizer);
    const settings = chooseSettings(givenSettings(flags), text.generation);
    refuseUnsampled(flags, settings);
    await this.warnAbout(flags, settings.warnings);
    const reader: PromptReader = {
      folders,
      text,
      isChat: flags.chat === true,
      system: flags.system,
    };
    const prompts = await promptsOf(way, reader, side.loaded);
    const { contextFor } = await import('../language/generation/session.js');
    const longest = Math.max(1, ...prompts.map((ids) => ids.length));
    const isTalk = way.kind === 'talk';
    const { positions } = side.loaded.model;
    const wanted =
      flags.context ?? (isTalk ? Math.min(positions, CONVERSATION_CONTEXT) : undefined);
    const room = isTalk ? Number.POSITIVE_INFINITY : settings.maxTokens;
    const context = contextFor(side.loaded.model, longest, room, wanted);
    const load = await this.#open(side, reader, settings, context, flags, opened);
    try {
      const result = generateResult(side, reader, settings, load, context, flags);
      if (isTalk) return await this.#talk(load.session, reader, context, flags);
      return await this.#answer(load.session, prompts, result, flags);
    } finally {
      await load.session.close();
    }
  }

  async #open(
    side: ComparedModel,
    { text }: PromptReader,
    settings: ChosenSettings,
    context: number,
    flags: GenerateFlags,
    opened: (Checkpoint | undefined)[],
  ): Promise<Loaded> {
    if (flags.stop && !text.tokenizer) throw stopWithoutText();
    const { GenerationSession } = await import('../language/generation/session.js');
    const { refuseDecoding, usableBytes } = await import('../engine/memory.js');
    const shown = progressDisplay(flags).steps();
    shown.doing('loading the model');
    const start = performance.now();
    try {
      const weightsOf = await weightsFor(flags);
      const other = async (source: string) => {
        const { openComparedModel } = await import('../engine/compare/compare-outputs.js');
        const found = await openComparedModel(source, side, progressDisplay(flags));
        opened.push(found.checkpoint);
        await this.warnAbout(flags, found.warnings);
        return weightsOf(found);
      };
      const { draft, against } = flags;
      const session = await GenerationSession.open({
        model: { ...weightsOf(side), form: flags.weights },
        tokenizer: text.tokenizer,
        settings: settings.sampling,
        maxTokens: settings.maxTokens,
        context,
        stopIds: text.endIds,
        stopStrings: flags.stop ?? [],
        seed: flags.seed ?? 0,
        topLogprobs: flags.logprobs ?? 0,
        explained: flags['explain-sampling'] ? EXPLAINED_TOKENS : 0,
        draft:
          draft === undefined
            ? undefined
            : {
                source: await draftSource(draft, other),
                tokens: flags['draft-tokens'] ?? DEFAULT_DRAFT_TOKENS,
              },
        against: against === undefined ? undefined : { name: against, model: await other(against) },
        wish: {
          engine: flags.engine ?? 'auto',
          device: flags.device ?? (flags.weights ? 'cpu' : 'auto'),
          compute: 'f32',
          threads: flags.threads ?? os.availableParallelism(),
        },
        notice: shown.say,
        checkMemory: (models, tokens, info) =>
          refuseDecoding(models, tokens, info, usableBytes(info)),
      });
      return { session, milliseconds: performance.now() - start };
    } finally {
      shown.end();
    }
  }

  async #answer(
    session: GenerationSession,
    prompts: readonly (readonly number[])[],
    head: Omit<GenerateResult, 'answers'>,
    flags: GenerateFlags,
  ): Promise<unknown> {
    const isStreamed = formatOf(flags) === 'table' && isStdout(flags.output);
    const isTerminal = process.stdout.isTTY === true;
    const shown = isTerminal
      ? (await import('../cli/dialogue.js')).shownText
      : (text: string) => text;
    const isOne = prompts.length === 1;
    const answers: ReportedAnswer[] = [];
    // From the first token on, Ctrl-C ends the answer, and what there is so far is reported.
    let interruption: Interruption | undefined;
    const progress = progressDisplay(flags).steps();
    try {
      for (const [index, ids] of prompts.entries()) {
        let [last, tokens] = ['', 0];
        const answer = await session.answer(ids, {
          watch: async (part) => {
            if (!isStreamed || !isOne || part === '') return;
            last = part;
            await writeStdout(shown(part));
          },
          isStopped: () => {
            interruption ??= new Interruption();
            if (!isStreamed || !isOne) {
              progress.doing(`answer ${index + 1} of ${prompts.length}, token ${++tokens}`);
            }
            return interruption.isRequested;
          },
        });
        answers.push(answer);
        if (isStreamed && isOne && !last.endsWith('\n')) await writeStdout('\n');
        if (interruption?.isRequested) break;
      }
    } finally {
      interruption?.end();
      progress.end();
    }
    if (interruption?.isRequested) process.exitCode = ERROR_CODES.interrupted.exitCode;
    const result: GenerateResult = { ...head, answers };
    const [only] = answers;
    // In a pipe the text is all of the answer, unless a flag asks for a table.
    const hasTables =
      flags['explain-sampling'] ||
      flags.logprobs !== undefined ||
      flags.draft !== undefined ||
      flags.against !== undefined;
    if (isStreamed && isOne && only && !isTerminal && !hasTables) {
      this.note(flags, settingsText(result));
      this.note(flags, figuresText(only));
      return result;
    }
    if (isStreamed && isOne) await writeStdout('\n');
    return this.answer(flags, result, (each) =>
      generateReport(each, { isStreamed: isStreamed && isOne }),
    );
  }

  async #talk(
    session: GenerationSession,
    reader: PromptReader,
    context: number,
    flags: GenerateFlags,
  ): Promise<void> {
    const { runChat, shownText } = await import('../cli/dialogue.js');
    const { promptIds } = await import('../language/generation/prompts.js');
    const messages: ChatMessage[] = [];
    this.note(
      flags,
      `${reader.isChat ? 'Chat' : 'Each line is continued'}. Ctrl-C ends an answer, /exit ends the program.`,
    );
    await runChat(async (line, isStopped) => {
      const ids = await promptIds(reader, line, messages);
      if (ids.length >= context) {
        throw usageError(
          `the conversation has ${ids.length} tokens, and the context ${context}`,
          'begin a new conversation, or write a larger --context',
        );
      }
      const answer = await session.answer(ids, {
        watch: (part) => writeStdout(shownText(part)),
        isStopped,
      });
      await writeStdout('\n');
      this.note(flags, figuresText(answer));
      if (!reader.isChat) return;
      messages.push(
        { role: 'user', content: line },
        { role: 'assistant', content: answer.text ?? '' },
      );
    });
  }
}

/** @throws UserError for a filter of the distribution, or a seed of draws, where the likeliest token is taken. */
function refuseUnsampled(
  flags: GenerateFlags,
  { sampling }: Pick<ChosenSettings, 'sampling'>,
): void {
  const ofDraws = ['top-k', 'top-p', 'min-p', ...(flags.random ? [] : ['seed' as const])] as const;
  const unused = ofDraws.find((name) => flags[name] !== undefined);
  if (sampling.temperature !== 0 || unused === undefined) return;
  throw usageError(
    `--${unused} has no effect at --temperature 0`,
    `write a temperature above 0, or leave --${unused} out`,
  );
}

/** Flags of given scores: settings of their sampling, and those of the answer. */
const OF_SCORES = new Set([
  ...['logits', 'probabilities', 'ids', 'temperature', 'top-k', 'top-p', 'min-p'],
  ...['repetition-penalty', 'greedy', ...Object.keys(BaseCommand.baseFlags)],
]);

/** @throws UserError for a model, or a flag of one, where the scores are given. */
function refuseModel(
  { model }: { readonly model?: string | undefined },
  flags: GenerateFlags,
  metadata: {
    readonly flags: Readonly<Record<string, { readonly setFromDefault?: boolean } | undefined>>;
  },
): void {
  const flag = Object.keys(flags).find(
    (name) => !OF_SCORES.has(name) && metadata.flags[name]?.setFromDefault !== true,
  );
  if (model === undefined && flag === undefined) return;
  throw usageError(
    `${flag === undefined ? 'a model' : `--${flag}`} has no effect on given logits or probabilities`,
    'leave it out, or leave --logits and --probabilities out',
  );
}

type GenerateFlags = FlagsOf<typeof Generate>;

interface GenerateArgs {
  readonly model?: string | undefined;
  readonly prompt?: string | undefined;
}

interface Loaded {
  readonly session: GenerationSession;
  readonly milliseconds: number;
}

/** Source of the prompts. */
type Input =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'stdin' }
  | { readonly kind: 'ids'; readonly ids: string }
  | { readonly kind: 'batch'; readonly file: string }
  | { readonly kind: 'talk' };

/** @throws UserError without a prompt, or with several. */
function inputOf(
  { model, prompt }: GenerateArgs,
  { ids, batch, ...flags }: GenerateFlags,
): Input | undefined {
  const given = [prompt, ids, batch].filter((each) => each !== undefined);
  if (given.length > 1) {
    throw usageError(
      'expected one of a prompt, --ids and --batch, found several',
      'leave all but one out',
    );
  }
  if (ids !== undefined) return { kind: 'ids', ids };
  if (batch !== undefined) return { kind: 'batch', file: batch };
  if (prompt === '-' && model === '-') {
    throw usageError('standard input cannot be read twice', 'name a file for the model');
  }
  if (prompt !== undefined)
    return prompt === '-' ? { kind: 'stdin' } : { kind: 'text', text: prompt };
  const isTerminal = process.stdin.isTTY === true && process.stdout.isTTY === true;
  const isTalk = isTerminal && formatOf(flags) === 'table' && isStdout(flags.output);
  return isTalk ? { kind: 'talk' } : undefined;
}

/** More than any model reads. */
const MAX_PROMPT_BYTES = 16_000_000;

/** Most tokens of ids in a file. */
const IDS_READ = { most: MAX_PROMPT_BYTES, suggestion: 'give fewer ids' };

async function promptsOf(
  way: Input,
  reader: PromptReader,
  { model }: ModelFile,
): Promise<(readonly number[])[]> {
  const { batchIds, promptIds } = await import('../language/generation/prompts.js');
  switch (way.kind) {
    case 'talk': {
      const { requireTokenizer } = await import('../language/tokenizer/model-text.js');
      requireTokenizer(reader.text, reader.folders);
      return [];
    }
    case 'text':
      return [await promptIds(reader, way.text)];
    case 'stdin':
      return [await promptIds(reader, await stdinText())];
    case 'batch': {
      const { idLimitsOf } = await import('../engine/token-ids.js');
      return batchIds(reader, way.file, idLimitsOf(model).vocabulary);
    }
    case 'ids': {
      const { idLimitsOf, listedIds, parseIds } = await import('../engine/token-ids.js');
      const limits = idLimitsOf(model);
      const listed = listedIds(way.ids, limits.vocabulary);
      if (listed) return [listed];
      const { batch, tokens, data } = parseIds(await readText(way.ids, IDS_READ), way.ids, limits);
      return Array.from({ length: batch }, (_, row) =>
        Array.from(data.subarray(row * tokens, (row + 1) * tokens)),
      );
    }
  }
}

async function stdinText(): Promise<string> {
  const { readStreamAtMost } = await import('../base/files/read-file.js');
  const bytes = await readStreamAtMost(process.stdin, MAX_PROMPT_BYTES);
  if (bytes) return bytes.toString('utf8').replace(/\r?\n$/, '');
  throw new UserError(
    'refused-file',
    `standard input is larger than ${MAX_PROMPT_BYTES / 1e6} MB`,
    {
      suggestion: 'give a shorter prompt',
    },
  );
}

const givenSettings = (flags: GenerateFlags) => ({
  temperature: flags.greedy || flags.against !== undefined ? 0 : flags.temperature,
  topK: flags['top-k'],
  topP: flags['top-p'],
  minP: flags['min-p'],
  repetitionPenalty: flags['repetition-penalty'],
  maxTokens: flags['max-tokens'],
});

async function weightsFor({ seed = 0 }: GenerateFlags) {
  const { checkpointWeights, randomWeights } = await import('../engine/weights/weights.js');
  return ({ loaded: { model }, checkpoint }: ComparedModel) => ({
    model,
    weights: checkpoint ? checkpointWeights(model, checkpoint) : randomWeights(model, seed),
  });
}

/** @throws UserError for a lookup without a length. */
async function draftSource(
  source: string,
  open: (source: string) => Promise<Extract<DraftSource, { kind: 'model' }>['model']>,
): Promise<DraftSource> {
  const lookup = /^ngram(?::(.*))?$/.exec(source);
  if (lookup === null) return { kind: 'model', name: source, model: await open(source) };
  const [, length] = lookup;
  const longest = Number(length);
  if (Number.isSafeInteger(longest) && longest > 0)
    return { kind: 'lookup', name: source, longest };
  throw usageError(
    `--draft: expected ngram:N with N from 1 on, found ${source}`,
    'write --draft ngram:3',
  );
}

function generateResult(
  { loaded, checkpoint }: ComparedModel,
  { text, isChat }: PromptReader,
  { sampling, maxTokens, fromFile }: ChosenSettings,
  { session, milliseconds }: Loaded,
  context: number,
  flags: GenerateFlags,
): Omit<GenerateResult, 'answers'> {
  return {
    schema: 'minimind/generate@1',
    file: loaded.file,
    family: loaded.family.name,
    checkpoint: checkpoint?.path ?? null,
    weights: checkpoint ? 'checkpoint' : 'random',
    weightForm: flags.weights ?? null,
    tokenizer: text.tokenizer?.file ?? null,
    chat: isChat,
    engine: session.engine,
    context,
    sampling: { ...sampling, seed: flags.seed ?? 0, maxTokens, fromFile },
    stop: { ids: text.endIds, strings: flags.stop ?? [] },
    loadMilliseconds: milliseconds,
  };
}

const stopWithoutText = () =>
  usageError(
    '--stop requires a tokenizer, found none: the answer is token ids',
    'name one with --tokenizer FILE, or leave --stop out',
  );
