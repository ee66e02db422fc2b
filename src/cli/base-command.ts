import { Command } from '@oclif/core/command';
import type * as Interfaces from '@oclif/core/interfaces';
import type { Problem } from '../errors.js';
import { refuseModelFile } from '../files/input-registry.js';
import type { Format, Report } from '../report/kit/report.js';
import { jsonPieces, printable } from '../text/escape.js';
import type { ParsedFlags } from './flags.js';
import { baseFlags } from './flags.js';
import { isStdout, renderOptions, writeStdout, writeText } from './output.js';

export type OutputFlags = Interfaces.InferredFlags<typeof baseFlags>;

/** The values that a command's flags parse to. */
export type FlagsOf<Class extends { readonly flags: object }> = OutputFlags &
  ParsedFlags<Class['flags']>;

/** The requested format; `--json` is short for `--format json`. */
export const formatOf = ({ json, format }: Pick<OutputFlags, 'json' | 'format'>): Format =>
  json ? 'json' : format;

/** Base class of commands: each parses its flags, calls one function, and answers with its result. */
export abstract class BaseCommand extends Command {
  static override baseFlags = baseFlags;

  /** All warnings so far, also those that are not printed. */
  readonly #warnings: Problem[] = [];

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
    if (format === 'json') {
      const isAdded = this.#warnings.length > 0 && !('warnings' in result);
      await this.write(
        flags,
        jsonPieces(isAdded ? { ...result, warnings: this.#warnings } : result),
      );
      return result;
    }
    const { render } = await import('../report/render/render.js');
    const options = isStdout(flags.output)
      ? renderOptions(process.stdout, flags['no-color'])
      : { width: Number.POSITIVE_INFINITY, colourLevel: 0 as const };
    const { details } = flags;
    await this.write(flags, await render(report(result), format, { ...options, details }));
    return result;
  }

  /** Writes the answer's text to stdout, or to the file of `-o`. */
  protected async write(flags: OutputFlags, text: string | Iterable<string>): Promise<void> {
    if (isStdout(flags.output)) return writeStdout(text);
    refuseModelFile(flags.output);
    await writeText(flags.output, text, flags.force);
    this.note(flags, `wrote ${flags.output}`);
  }

  /** Rejects an output file that cannot be written, before the work begins. */
  protected async refuseUnwritable({ output, force }: OutputFlags): Promise<void> {
    if (isStdout(output)) return;
    refuseModelFile(output);
    const { refuseUnwritable } = await import('../files/write-whole.js');
    await refuseUnwritable(output, force);
  }

  /** Prints warnings to stderr, unless the user wants quiet, and keeps them for the answer's JSON. */
  protected async warnAbout(flags: OutputFlags, warnings: readonly Problem[]): Promise<void> {
    this.#warnings.push(...warnings);
    if (flags.quiet || warnings.length === 0) return;
    const { problemsText } = await import('../report/kit/problems.js');
    process.stderr.write(problemsText(warnings, renderOptions(process.stderr, flags['no-color'])));
  }

  /** A progress line on stderr, unless the user wants quiet. */
  protected note(flags: OutputFlags, text: string): void {
    if (!flags.quiet) process.stderr.write(`${printable(text)}\n`);
  }
}
