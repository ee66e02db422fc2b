import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import { usageError } from '../base/errors.js';
import { BaseCommand, type FlagsOf } from '../cli/base-command.js';
import { withoutFlags } from '../cli/flag-spelling.js';
import { details, pictureFlags, threads } from '../cli/flags/flags.js';
import { dataLimits } from '../cli/flags/thresholds.js';
import { count, share, tokens, tokenTotal } from '../cli/flags/value-flags.js';
import { progressDisplay } from '../cli/progress.js';
import { KIND_NAMES, RECIPE_NAMES, USUAL_SIMILARITY } from '../language/data/data-choices.js';
import type { DataLimits, DataResult } from '../language/data/judge-data.js';
import { dataReport } from '../report/data/data-report.js';

export default class Data extends BaseCommand {
  static override summary = 'Check training data and show what the model sees.';
  static override description =
    'Reads JSON lines of texts, chats or pairs of answers, plain text, and token ids; files can be packed with gzip or zstd, or be Parquet. The kind is ' +
    'found from the content. Reports tokens, padding, duplicates, invalid lines and other faults. --show prints ids, ' +
    'inputs X, targets Y and the mask of the loss. Samples are those of the dataset classes of MiniMind: minimind3 of ' +
    'March 2026, minimind2 of April 2025 (the end token is cut off with the text), plain (no tokens for begin and end). ' +
    'With --check the exit code is 1 for any fault.';
  static override baseFlags = pictureFlags;
  static override examples = [
    `echo '{"text": "Once upon a time."}' > stories.jsonl`,
    '<%= config.bin %> <%= command.id %> stories.jsonl',
    '<%= config.bin %> <%= command.id %> stories.jsonl --max-duplicates 1% --json',
  ];

  static override strict = false;
  static override args = {
    file: Args.string({
      required: true,
      ignoreStdin: true,
      description: 'files of one kind; - for standard input',
    }),
  };
  static override flags = {
    tokenizer: Flags.string({
      helpValue: 'FILE',
      description: 'a tokenizer.json or its folder [default: the one next to the first file]',
    }),
    context: tokens({
      description:
        'tokens of a sample [default: texts 512, chats 1024, pairs 4096, token ids 1024]',
    }),
    recipe: Flags.option({
      options: RECIPE_NAMES,
      default: 'minimind3',
      description: 'dataset classes whose samples are made',
    } as const)(),
    show: count({
      description: 'show the first samples: ids, X, Y and mask; reading ends after them',
    }),
    line: count({ description: 'first line to read, as in 812 with --show 1' }),
    as: Flags.option({
      options: KIND_NAMES,
      helpValue: 'KIND',
      description: 'kind of the files [default: found from the content]',
    } as const)(),
    key: Flags.string({ helpValue: 'NAME', description: 'key of the text [default: text]' }),
    vocab: count({ description: 'tokens of the model [default: those of the tokenizer]' }),
    tokens: tokenTotal({ description: 'tokens of the training, as in 10B, for the epochs' }),
    near: share({
      default: USUAL_SIMILARITY,
      description: 'smallest similarity of near duplicates (Jaccard, 5 characters)',
    }),
    'answer-start': Flags.string({
      helpValue: 'TEXT',
      description: 'text before an answer [default: from the chat template]',
    }),
    'answer-end': Flags.string({
      helpValue: 'TEXT',
      description: 'text after an answer, which counts [default: from the chat template]',
    }),
    threads: threads({
      description:
        'threads of the tokenizer [default: one for each processor, once there is much text]',
    }),
    check: Flags.boolean({ description: 'end with exit code 1 for any fault' }),
    details,
    ...dataLimits,
  };

  async run() {
    const { argv, flags } = await this.parse(Data);
    await this.refuseUnwritable(flags);
    const { readData } = await import('../language/data/read-data.js');
    const { exceededData, judgeData } = await import('../language/data/judge-data.js');
    const reading = await readData(
      {
        ...flags,
        files: argv as string[],
        vocabulary: flags.vocab,
        from: flags.line,
        similarity: flags.near,
        answers: { start: flags['answer-start'], end: flags['answer-end'] },
        tokenSettings: ABOUT_TOKENS.flatMap(([flag, name]) =>
          flags[flag] === undefined ? [] : [name],
        ),
      },
      progressDisplay(flags),
    );
    if (flags.line !== undefined && reading.figures.lines === 0) throw beyondEnd(flags.line);
    const judgement = judgeData(reading, flags.tokens);
    const result: DataResult = { schema: 'minimind/data@1', ...reading, ...judgement };
    const words = withoutFlags(this.argv, ['--show', '--line', '--tokens']).filter(
      (word) => !QUIET.has(word),
    );
    await this.answer(flags, result, (each) => dataReport(each, words));
    this.exceeded(exceededData(limitsInFlags(flags), reading, judgement));
    return result;
  }
}

/** Flags without a meaning if no tokens are counted. */
const ABOUT_TOKENS = [
  ['vocab', 'vocabulary'],
  ['tokens', 'tokens'],
  ['max-padding', 'maxPadding'],
  ['max-cut', 'maxCut'],
] as const;

const limitsInFlags = (flags: FlagsOf<typeof Data>): DataLimits => ({
  check: flags.check,
  maxInvalid: flags['max-invalid'],
  maxDuplicates: flags['max-duplicates'],
  maxNearDuplicates: flags['max-near-duplicates'],
  maxPadding: flags['max-padding'],
  maxCut: flags['max-cut'],
});

const QUIET: ReadonlySet<string> = new Set(['-q', '--quiet']);

const beyondEnd = (line: number) =>
  usageError(
    `--line: expected a line of the data, found ${line}, beyond its end`,
    'write a smaller number',
  );
