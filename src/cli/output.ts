/** Destination of an answer: stdout, or a file. */
import { onCtrlC } from '../base/files/early-end.js';
import type { ByteSink } from '../base/files/write-whole.js';
import { printable } from '../base/text/escape.js';
import type { RenderOptions } from '../report/kit/report.js';

/** Writes to stdout and waits until it is accepted. Errors reach the stream's own handler (`main.ts`). */
export async function writeStdout(text: string | Iterable<string>): Promise<void> {
  for (const piece of outputPieces(text)) {
    await new Promise<void>((resolve) => {
      process.stdout.write(piece, (error) => {
        if (!error) resolve();
      });
    });
  }
}

const outputPieces = (text: string | Iterable<string>) =>
  typeof text === 'string' ? [text] : text;

let isStopSaid = false;

/**
 * Prints to stderr what an interrupted command leaves. Only the first message is printed, which has the most details.
 */
export function writeInterruption(left: string): void {
  if (isStopSaid) return;
  isStopSaid = true;
  // Replaces the progress line and the terminal's ^C.
  process.stderr.write(`${process.stderr.isTTY ? '\r\x1b[K' : ''}stopped; ${printable(left)}\n`);
}

/** Handles Ctrl-C as a request to end a task early, with its result so far. A second Ctrl-C ends the process. */
export class Interruption {
  #isRequested = false;
  /** Lets Ctrl-C end the process again. Safe to call again. */
  readonly end: () => void;

  /** @param effect Whether the program ends then, at the latest after a second. */
  constructor(effect: 'ends' | 'asks' = 'ends') {
    this.end = onCtrlC(effect, () => {
      this.#isRequested = true;
    });
  }

  get isRequested(): boolean {
    return this.#isRequested;
  }
}

/** Whether the answer goes to stdout. */
export const isStdout = (output: string | undefined): output is undefined | '-' =>
  output === undefined || output === '-';

/** Writes `text` to `file` atomically; see `writeWhole`. */
export async function writeText(
  file: string,
  text: string | Iterable<string>,
  force: boolean,
): Promise<void> {
  const { writeWhole } = await import('../base/files/write-whole.js');
  const fill = async (sink: ByteSink) => {
    for (const piece of outputPieces(text)) await sink.write(Buffer.from(piece));
  };
  await writeWhole(file, force, fill, { isShort: true });
}

type Stream = Pick<NodeJS.WriteStream, 'isTTY' | 'columns' | 'getColorDepth'> &
  Partial<Pick<NodeJS.WriteStream, 'rows'>>;

const COLOUR_LEVELS = { 1: 0, 4: 1, 8: 2, 24: 3 } as const;

/**
 * Render options for `stream`: its width, and colours by the terminal, `--no-color`, `FORCE_COLOR` and `NO_COLOR`, in
 * this order of precedence.
 */
export function renderOptions(
  stream: Stream,
  noColor: boolean,
  env: NodeJS.ProcessEnv = process.env,
): RenderOptions {
  return {
    // A terminal that does not know its size reports 0.
    width: stream.isTTY ? stream.columns || 80 : Number.POSITIVE_INFINITY,
    height: stream.isTTY ? stream.rows || 24 : undefined,
    colourLevel: noColor ? 0 : colourLevel(stream, env),
    isAscii: isAsciiOnly(env),
  };
}

/** Whether the locale names an encoding other than UTF-8, or the terminal is a console with few characters. */
export function isAsciiOnly(
  { LC_ALL, LC_CTYPE, LANG, TERM }: NodeJS.ProcessEnv,
  platform: NodeJS.Platform = process.platform,
): boolean {
  if (TERM === 'linux' || TERM === 'dumb') return true;
  // Containers often have no locale, so an unset one does not indicate ASCII. Windows does not use these variables.
  const locale = LC_ALL || LC_CTYPE || LANG || '';
  return platform !== 'win32' && locale !== '' && !/utf-?8/i.test(locale);
}

function colourLevel(stream: Stream, env: NodeJS.ProcessEnv): RenderOptions['colourLevel'] {
  const forced = env.FORCE_COLOR;
  if (forced !== undefined) return forcedLevel(forced);
  if (env.NO_COLOR || !stream.isTTY) return 0;
  const depth = stream.getColorDepth(env);
  return COLOUR_LEVELS[depth as keyof typeof COLOUR_LEVELS] ?? 0;
}

function forcedLevel(value: string): RenderOptions['colourLevel'] {
  if (value === '0' || value === 'false') return 0;
  if (value === '2') return 2;
  if (value === '3') return 3;
  return 1;
}
