import path from 'node:path';
import { Command } from '@oclif/core/command';
import type * as Interfaces from '@oclif/core/interfaces';
import type { Problem } from '../base/errors.js';
import { usageError } from '../base/errors.js';
import { endingOf, refuseOtherEnding, refuseOtherEndingEarly } from '../base/files/file-endings.js';
import { firstOverlapping, refuseModelFile } from '../base/files/input-registry.js';
import { jsonPieces, printable } from '../base/text/escape.js';
import { quote } from '../config/quote.js';
import type { HubNeed, MountedReference } from '../input/hub/mount-reference.js';
import type { Format, Report } from '../report/kit/report.js';
import type { ParsedFlags } from './flags/flags.js';
import { baseFlags } from './flags/flags.js';
import { LineMistake, pasteable } from './line/line-mistake.js';
import { isStdout, renderOptions, writeStdout, writeText } from './output.js';

export type OutputFlags = Interfaces.InferredFlags<typeof baseFlags>;

/** Fields that `answer` adds to the result of any command. */
export interface AnswerNotes {
  /** Warnings about the input; absent if there are none. */
  readonly warnings?: readonly Problem[];
  /** Models of the hub that were read; absent if there are none. */
  readonly references?: readonly MountedReference[];
}

/** Flags that determine how a model of the hub is read. */
type ModelFlags = OutputFlags & { readonly 'state-dict'?: unknown; readonly offline?: boolean };

/** Flags of a model that a proposed line is checked with. */
interface CheckedFlags {
  readonly json: unknown;
  readonly set?: readonly string[] | undefined;
  readonly checkpoint?: string | undefined;
  readonly random?: boolean;
  readonly logits?: string | undefined;
  readonly probabilities?: string | undefined;
}

type SavingFlags = OutputFlags & {
  readonly save?: string | undefined;
  readonly parts?: number | undefined;
};

/** The values that a command's flags parse to. */
export type FlagsOf<Class extends { readonly flags: object }> = OutputFlags &
  ParsedFlags<Class['flags']>;

/** Names of the flags that the user gave. */
export const givenFlags = ({
  flags,
  metadata,
}: {
  readonly flags: object;
  readonly metadata: {
    readonly flags: Readonly<Record<string, { readonly setFromDefault?: boolean } | undefined>>;
  };
}): string[] => Object.keys(flags).filter((name) => metadata.flags[name]?.setFromDefault !== true);

/** The requested format; `--json` is short for `--format json`. */
export const formatOf = ({ json, format }: Pick<OutputFlags, 'json' | 'format'>): Format =>
  json ? 'json' : format;

/** Format of the answer by the ending of its file. */
const ENDINGS: Readonly<Record<string, Format>> = {
  '.json': 'json',
  '.csv': 'csv',
  '.md': 'markdown',
  '.markdown': 'markdown',
  '.html': 'html',
  '.htm': 'html',
  '.svg': 'svg',
  '.mmd': 'mermaid',
};

/** Endings of pictures in pixels. */
const PIXEL_ENDINGS: ReadonlySet<string> = new Set([
  '.png',
  '.jpg',
  '.jpeg',
  '.gif',
  '.webp',
  '.pdf',
]);

/** Refuses endings of pictures that the command does not write, with what it writes instead. */
function refusePicture(output: string, endings: readonly string[]): void {
  const ending = endingOf(output);
  if (endings.includes(ending)) return;
  const stem = output.slice(0, output.length - ending.length);
  if (ending === '.pdf' && endings.includes('.html')) {
    throw usageError(
      `--output: expected an .html file, which a browser prints as pdf, found ${output}`,
      `write --output ${stem}.html`,
    );
  }
  if (PIXEL_ENDINGS.has(ending) && endings.includes('.svg')) {
    throw usageError(
      `--output: expected an .svg file, which Inkscape or rsvg-convert turns into ${ending.slice(1)}, found ${output}`,
      `write --output ${stem}.svg`,
    );
  }
  if (PIXEL_ENDINGS.has(ending) || ending === '.svg') {
    throw usageError(
      '--output: the answer of this command has no picture',
      `write --output ${stem}.html`,
    );
  }
}

const NO_PICTURE = () =>
  usageError(
    'with these flags, the answer has no picture',
    'write --format html for the answer as a page',
  );

async function hasPicture(report: Report): Promise<boolean> {
  const { mainPictures } = await import('../report/kit/report.js');
  return mainPictures(report).length > 0;
}

/** The first ending of a format. */
const usualEnding = (format: Format) =>
  Object.keys(ENDINGS).find((ending) => ENDINGS[ending] === format) ?? '.txt';

/** Endings of files of any format. */
const TEXT_ENDINGS = ['.txt', '.log'] as const;

/** Endings of the job that `--launch` writes. */
const JOB_ENDINGS = ['.sh', '.sbatch', '.yaml', '.yml'] as const;

/** Endings of commands and configs that `--emit` writes. */
const EMIT_ENDINGS = ['.sh', '.yaml', '.yml', '.toml', '.json'] as const;

/** Flags that write a text of their own instead of an answer. */
type TextFlags = { readonly launch?: string; readonly emit?: string };

/** Allowed endings of the file of an answer, the one of the requested format first. */
function answerEndings(
  { format, json, launch, emit }: Partial<OutputFlags> & TextFlags,
  { baseFlags: { format: declared }, textEndings }: typeof BaseCommand,
): string[] {
  const formats: readonly string[] = declared.options ?? [];
  const own = Object.keys(ENDINGS).filter((each) => formats.includes(ENDINGS[each] ?? ''));
  const usual = own.filter((each) => ENDINGS[each] === (json ? 'json' : format));
  const texts = [
    ...(launch === undefined ? [] : JOB_ENDINGS),
    ...(emit === undefined ? [] : EMIT_ENDINGS),
    ...textEndings,
    ...TEXT_ENDINGS,
  ];
  return format === 'table' && !json ? [...texts, ...own] : [...usual, ...own, ...texts];
}

/** @throws UserError when `--format` contradicts the ending of `--output`. */
function chooseFormat(flags: Partial<OutputFlags> & TextFlags, isFormatGiven: boolean): void {
  const { output, format, json } = flags;
  if (json && isFormatGiven && format !== 'json') {
    throw usageError(
      `--json and --format ${format} contradict each other`,
      'write only one of them',
    );
  }
  const selection = flags.jq === undefined ? 'fields' : 'jq';
  if (flags[selection] !== undefined) {
    if (flags.jq !== undefined && flags.fields !== undefined) {
      throw usageError('--jq and --fields cannot be used together', 'select with --jq only');
    }
    if (isFormatGiven && format !== 'json') {
      throw usageError(
        `--${selection} selects from JSON, and the format is ${format}`,
        'leave --format out',
      );
    }
    flags.json = true;
  }
  // The file of --emit is in the language of its program.
  if (flags.emit !== undefined && !flags.json && !isFormatGiven) return;
  const named = ENDINGS[endingOf(output ?? '')];
  if (named === undefined || format === undefined) return;
  const asked = json ? 'json' : isFormatGiven ? format : undefined;
  if (asked !== undefined && asked !== named) {
    throw usageError(
      `--output ${output} is ${named}, and the format is ${asked}`,
      `write --format ${named}, or another ending`,
    );
  }
  flags.format = named;
}

/** Names of arguments and flags that take a model. */
const MODEL_WORDS: ReadonlySet<string> = new Set([
  ...['file', 'model', 'config', 'path', 'in'],
  ...['checkpoint', 'values', 'against', 'target', 'draft', 'a', 'b', 'adapter', 'merge-lora'],
]);

/** The words without a flag and its value. */
function withoutFlag(words: readonly string[], name: string): string[] {
  const at = words.findIndex((word) => word === `--${name}` || word.startsWith(`--${name}=`));
  return at < 0 ? [...words] : words.toSpliced(at, words[at]?.includes('=') ? 1 : 2);
}

/** Milliseconds after which notes come before the answer. */
const NOTE_DELAY = 1000;

/** Base class of commands: each parses its flags, calls one function, and answers with its result. */
export abstract class BaseCommand extends Command {
  static override baseFlags = baseFlags;

  /** Whether the command writes a file that no flag and no argument names. */
  static writesUnasked = false;

  /** Whether the model of the command requires weights: a checkpoint, or random ones. */
  static needsWeights = false;

  /** Endings of files for `--output` that only this command writes. */
  static textEndings: readonly string[] = [];

  /** Part of a model of the hub that the command reads; undefined where models of the hub cannot be given. */
  static readsHub: HubNeed | undefined;

  /** Notes on how values of flags were read. The parsers of flags add to them. */
  readonly notes: string[] = [];

  /** Whether notes come at once: the command talks with the user, or streams its answer. */
  static notesFirst = false;

  /** Lines of `note` that are not printed yet. */
  readonly #notes: string[] = [];
  #noteTimer: NodeJS.Timeout | undefined;

  /** Models of the hub that were given. */
  readonly #references: MountedReference[] = [];

  /** Endings of the file of `--output`. */
  #endings: readonly string[] = [];

  /** All warnings so far, also those that are not printed. */
  readonly #warnings: Problem[] = [];

  /** Parses the flags; the ending of `--output` selects the format of the answer. */
  protected override async parse<
    F extends Interfaces.OutputFlags<Interfaces.FlagInput>,
    B extends Interfaces.OutputFlags<Interfaces.FlagInput>,
    A extends Interfaces.OutputArgs<Interfaces.ArgInput>,
  >(
    options?: Interfaces.Input<F, B, A>,
    argv?: string[],
  ): Promise<Interfaces.ParserOutput<F, B, A>> {
    const parsed = await this.readLine(options, argv);
    const flags = parsed.flags as unknown as Partial<OutputFlags>;
    if (!flags.quiet) this.#printNotes();
    await this.#mountReferences(parsed);
    return parsed;
  }

  readonly #printedNotes = new Set<string>();

  /** Prints each note once, also when a line is parsed several times. */
  #printNotes(): void {
    for (const text of this.notes) {
      if (this.#printedNotes.has(text)) continue;
      this.#printedNotes.add(text);
      this.note({ quiet: false }, text);
    }
  }

  /** The words to parse for those of a line. A command can take some of them from a file. */
  protected async wordsOf(argv: readonly string[]): Promise<string[]> {
    return [...argv];
  }

  /** Parses the flags, and refuses those that contradict each other. Models of the hub stay as they are written. */
  protected async readLine<
    F extends Interfaces.OutputFlags<Interfaces.FlagInput>,
    B extends Interfaces.OutputFlags<Interfaces.FlagInput>,
    A extends Interfaces.OutputArgs<Interfaces.ArgInput>,
  >(
    options?: Interfaces.Input<F, B, A>,
    argv?: string[],
  ): Promise<Interfaces.ParserOutput<F, B, A>> {
    const line = argv ?? this.argv;
    const parsed = await super.parse(options, await this.wordsOf(line));
    // The library keeps the parsed words; proposals repeat those of the user.
    this.argv = [...line];
    const flags = parsed.flags as unknown as Partial<OutputFlags>;
    this.#refuseIdleForce(flags, 'out' in (options?.args ?? {}));
    if (!isStdout(flags.output)) {
      this.#endings = answerEndings(flags, this.constructor as typeof BaseCommand);
      if (this.#endings.includes('.html')) refusePicture(flags.output, this.#endings);
      refuseOtherEndingEarly('--output', flags.output, this.#endings);
    }
    chooseFormat(flags, parsed.metadata.flags.format?.setFromDefault !== true);
    return parsed;
  }

  /** Refuses flags that contradict each other for any model. @throws UserError for these. */
  protected checkFlags(_flags: object, _args: object): void | Promise<void> {}

  /** Refuses flags that the model of a proposed line does not take. @throws UserError for these. */
  protected checkModel(_flags: object, _args: object): void | Promise<void> {}

  /**
   * Reads the command line without running the command.
   * @param _line Whether one of its values is an example, which another value replaces, and whether another tool has it.
   * @throws UserError as the command.
   */
  async checkWords(_line: {
    readonly hasExample?: boolean;
    readonly isOfTool?: boolean;
  }): Promise<void> {
    const { flags, args, argv } = await this.readLine(this.ctor);
    await this.checkFlags(flags, args);
    const { checkSettings, checkWeights } = await import('./model-check.js');
    const { set, ...given }: CheckedFlags = flags;
    // A list of models is not an argument of its own.
    await checkSettings(set, this.ctor.strict ? args : { ...argv });
    await this.checkModel(flags, args);
    const words = [...(this.id ?? '').split(':'), ...this.argv];
    if ((this.constructor as typeof BaseCommand).needsWeights) checkWeights(words, given, args);
  }

  /** Makes the models of the hub among arguments and flags readable, under paths that replace them. */
  async #mountReferences(parsed: {
    readonly args: object;
    readonly flags: object;
    readonly argv: unknown[];
  }): Promise<void> {
    const isReference = (value: unknown): value is string =>
      typeof value === 'string' && value.startsWith('hf:');
    const isModel = ([name, value]: [string, unknown]) =>
      MODEL_WORDS.has(name) && isReference(value);
    const all = [parsed.args, parsed.flags].flatMap((each) => Object.entries(each).filter(isModel));
    const isList = !(this.constructor as typeof BaseCommand).strict;
    const given = [
      ...all.map(([, value]) => value),
      ...(isList ? parsed.argv.filter(isReference) : []),
    ];
    if (given.length === 0) return;
    const flags = parsed.flags as ModelFlags;
    const paths = await this.mountModels(flags, given as string[]);
    for (const values of [parsed.args, parsed.flags]) {
      for (const [name, value] of Object.entries(values).filter(isModel)) {
        Object.assign(values, { [name]: paths.get(value) ?? value });
      }
    }
    parsed.argv.forEach((value, at) => {
      if (isReference(value)) parsed.argv[at] = paths.get(value) ?? value;
    });
  }

  /** Makes models of the hub readable. @returns The path of each. */
  protected async mountModels(
    flags: ModelFlags,
    references: readonly string[],
  ): Promise<ReadonlyMap<string, string>> {
    const { mountAll } = await import('./line/hub-models.js');
    const mounted = await mountAll([...new Set(references)], {
      command: (this.id ?? '').replaceAll(':', ' '),
      need: (this.constructor as typeof BaseCommand).readsHub,
      flags,
      note: (text) => this.note(flags, text),
      isPinned: this.pinsModels(flags),
    });
    this.#references.push(...mounted.references);
    return mounted.paths;
  }

  /** Whether models of the hub are named by their commits, for a plan that other machines follow. */
  protected pinsModels(_flags: object): boolean {
    return false;
  }

  /** Path of the program. Not `process.argv[1]`: a command can run in the process of another program. */
  protected get program(): string {
    const isBuilt = import.meta.url.endsWith('.js');
    return path.join(this.config.root, isBuilt ? 'bin/run.js' : 'bin/dev.js');
  }

  /** @throws UserError for `--force` where no file is written. */
  #refuseIdleForce(flags: Partial<SavingFlags>, hasOut: boolean): void {
    const { writesUnasked } = this.constructor as typeof BaseCommand;
    const { force, output, save, parts } = flags;
    // The plan of --parts is a file too.
    if (!force || hasOut || parts !== undefined || !isStdout(output) || !isStdout(save)) return;
    if (writesUnasked && save === undefined) return;
    const words = this.argv.filter((word) => word !== '--force');
    throw new LineMistake('--force: expected a file to replace, found none', [
      { words: [...(this.id ?? '').split(':'), ...words] },
    ]);
  }

  /** The model to work on: the given one, otherwise the one of the working folder, which is named on stderr. */
  protected async modelGiven(
    flags: OutputFlags,
    file: string | undefined,
    example: string,
  ): Promise<string> {
    if (file !== undefined) {
      await this.notePublishedFile(flags, file);
      return file;
    }
    const { onlyOneInFolder } = await import('../input/model-input/locate.js');
    const given = (flags as { readonly config?: string }).config;
    const name = (this.id ?? '').split(':');
    if (given !== undefined) {
      // A config without its checkpoint is a model.
      const words = withoutFlag(this.argv, 'config');
      throw new LineMistake('--config requires a checkpoint, found none', [
        { words: [...name, given, ...words], models: [given] },
      ]);
    }
    const [preset = '', flag = '', ...values] = example.split(' ');
    const isGiven = this.argv.some((word) => word.split('=', 1)[0] === flag);
    const usual = [preset, ...(isGiven || flag === '' ? [] : [flag, ...values])];
    const found = onlyOneInFolder('model', (model) =>
      pasteable([...name, ...(model === undefined ? usual : [model]), ...this.argv]),
    );
    this.note(flags, `using ${found === '.' ? 'the checkpoint in this folder' : found}`);
    return found;
  }

  /** Names the preset that is used for a missing file of a published report. */
  protected async notePublishedFile(flags: OutputFlags, file: string): Promise<void> {
    const { existsSync } = await import('node:fs');
    if (file === '-' || file.startsWith('hf:') || existsSync(file)) return;
    const { presetInstead, publishedRemarks } = await import('../input/model-input/locate.js');
    const preset = presetInstead(file);
    if (preset !== undefined) {
      const { random, checkpoint }: Partial<CheckedFlags> = flags as object;
      const needsWeights = (this.constructor as typeof BaseCommand).needsWeights;
      if (needsWeights && !random && checkpoint === undefined) {
        const { withoutPublished } = await import('./model-check.js');
        const error = withoutPublished(file);
        if (error !== undefined) throw error;
      }
      this.note(flags, [`${file} is the preset ${preset}`, ...publishedRemarks(file)].join('; '));
    }
  }

  /**
   * Prints a result in the requested format, and returns it.
   * @param result Output of `--json`; `schema` names its form.
   * @param report Builds the report for the other formats.
   */
  protected async answer<Result extends { readonly schema: string }>(
    flags: OutputFlags & { readonly details?: boolean },
    result: Result,
    report: (result: Result) => Report,
  ): Promise<Result> {
    const format = formatOf(flags);
    // Not copied for the other formats: some results compute long lists on demand.
    const noted = (): Result & AnswerNotes => ({
      ...result,
      ...(this.#warnings.length > 0 && !('warnings' in result) && { warnings: this.#warnings }),
      ...(this.#references.length > 0 && { references: this.#references }),
    });
    if (format === 'json') {
      await this.writeJson(flags, noted());
      return result;
    }
    if (format === 'github') {
      const { annotations } = await import('../report/kit/annotations.js');
      await this.write(flags, annotations(this.#warnings, process.env.GITHUB_WORKSPACE));
      return result;
    }
    const { render } = await import('../report/render/render.js');
    const options = isStdout(flags.output)
      ? renderOptions(process.stdout, flags['no-color'])
      : { width: Number.POSITIVE_INFINITY, colourLevel: 0 as const };
    // A file in Markdown is a model card, or part of a page: the next step is not its content.
    const isCard = format === 'markdown' && !isStdout(flags.output);
    const whole = report(result);
    // Not copied otherwise: a report computes the long table of CSV on demand.
    const built: Report = isCard ? { ...whole, next: undefined } : whole;
    if (format === 'svg' && !(await hasPicture(built))) return this.#withoutPicture(flags, built);
    const source = format === 'html' && {
      command: pasteable([...(this.id ?? '').split(':'), ...this.argv]),
      version: this.config.version,
      json: jsonPieces(noted()),
    };
    const { details } = flags;
    await this.write(
      flags,
      await render(built, format, { ...options, details, ...(source && { source }) }),
    );
    return result;
  }

  /** Prints an answer without a picture as a table, as its work is done. @throws UserError afterwards. */
  async #withoutPicture(
    flags: OutputFlags & { readonly details?: boolean },
    report: Report,
  ): Promise<never> {
    const { render } = await import('../report/render/render.js');
    // Standard output may be the file of a picture.
    const stream = isStdout(flags.output) ? process.stderr : process.stdout;
    const options = { ...renderOptions(stream, flags['no-color']), details: flags.details };
    stream.write(await render(report, 'table', options));
    throw NO_PICTURE();
  }

  /** Refuses a picture before the work, where the flags say that the answer has none. */
  protected refuseMissingPicture(flags: OutputFlags, canHavePicture: boolean): void {
    if (formatOf(flags) === 'svg' && !canHavePicture) throw NO_PICTURE();
  }

  /** Writes a text to stdout for `--save -`. The answer goes to the file of `-o`; in JSON the text is part of it. */
  protected async answerBeside<Result extends { readonly schema: string }>(
    text: string,
    flags: OutputFlags & { readonly details?: boolean },
    result: Result,
    report: (result: Result) => Report,
  ): Promise<Result> {
    const format = formatOf(flags);
    if (isStdout(flags.output) && format !== 'table') {
      if (format === 'json') return this.answer(flags, { ...result, text }, report);
      throw usageError(
        `--save - and --format ${format} both need standard output`,
        `write --output answer${usualEnding(format)} for the answer`,
      );
    }
    await writeStdout(text);
    return isStdout(flags.output) ? result : this.answer(flags, result, report);
  }

  /** Writes a value as JSON, or the part of it that `--fields` or `--jq` selects. */
  protected async writeJson(flags: OutputFlags, value: object): Promise<void> {
    if (flags.jq === undefined && flags.fields === undefined) {
      return this.write(flags, jsonPieces(value));
    }
    const { selectedFields, selectedText } = await import('./select-json.js');
    const text =
      flags.jq === undefined
        ? jsonPieces(selectedFields(value, flags.fields ?? ''))
        : await selectedText(value, flags.jq);
    await this.write(flags, text);
  }

  /** Writes the answer's text to stdout, or to the file of `-o`. */
  protected async write(flags: OutputFlags, text: string | Iterable<string>): Promise<void> {
    if (isStdout(flags.output)) return writeStdout(text);
    refuseModelFile(flags.output);
    const { refuseUnwritable } = await import('../base/files/write-whole.js');
    await refuseUnwritable(flags.output, flags.force);
    refuseOtherEnding('--output', flags.output, this.#endings);
    await writeText(flags.output, text, flags.force);
    this.note(flags, `wrote ${flags.output}`);
  }

  /** Rejects files of `--output` and `--save` that cannot be written, before the work begins. */
  protected async refuseUnwritable({ output, save, force }: SavingFlags): Promise<void> {
    const { refuseUnwritable } = await import('../base/files/write-whole.js');
    if (!isStdout(save)) await refuseUnwritable(save, force);
    if (isStdout(output)) return;
    if (!isStdout(save) && firstOverlapping([output], save) !== undefined) {
      throw usageError(
        `--output and --save are the same file, ${quote(save)}`,
        'choose another file for --output',
      );
    }
    refuseModelFile(output);
    await refuseUnwritable(output, force);
  }

  /** Prints warnings to stderr, unless the user wants quiet, and keeps them for the answer's JSON. */
  protected async warnAbout(flags: OutputFlags, warnings: readonly Problem[]): Promise<void> {
    for (const warning of warnings) this.#warnings.push(warning);
    if (flags.quiet || warnings.length === 0) return;
    const { problemsText } = await import('../report/kit/problems.js');
    process.stderr.write(problemsText(warnings, renderOptions(process.stderr, flags['no-color'])));
  }

  /** Prints a line about a harmless flag without an effect, and adds it to the warnings of the answer's JSON. */
  protected mention(flags: OutputFlags, file: string, message: string | undefined): void {
    if (message === undefined) return;
    this.#warnings.push({ severity: 'warning', file, message });
    this.note(flags, message);
  }

  /** Ends with exit code 1 when a result exceeds thresholds, with a line on stderr for each. */
  protected exceeded(lines: readonly string[]): void {
    if (lines.length === 0) return;
    process.exitCode = 1;
    for (const line of lines) process.stderr.write(`error: ${printable(line)}\n`);
  }

  /**
   * A line on stderr about what was chosen or written, unless the user wants quiet. It follows the answer; where that
   * takes a second, it comes before.
   */
  protected note(flags: Pick<OutputFlags, 'quiet'>, text: string): void {
    if (flags.quiet) return;
    this.#notes.push(printable(text));
    if ((this.constructor as typeof BaseCommand).notesFirst) this.#writeNotes();
    else if (this.#noteTimer === undefined) {
      this.#noteTimer = setTimeout(this.#writeNotes, NOTE_DELAY).unref();
      // A closed pipe of the answer ends the program at once.
      process.once('exit', this.#writeNotes);
    }
  }

  readonly #writeNotes = (): void => {
    clearTimeout(this.#noteTimer);
    process.off('exit', this.#writeNotes);
    this.#noteTimer = undefined;
    for (const line of this.#notes.splice(0)) process.stderr.write(`${line}\n`);
  };

  protected override async finally(error: Error | undefined): Promise<void> {
    this.#writeNotes();
    await super.finally(error);
  }
}
