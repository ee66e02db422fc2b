/** Commands in a terminal of their own, which `script` of util-linux provides, and what they leave when they are ended. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

/** Why commands cannot be started in a terminal here; undefined where they can. */
export const NO_TERMINAL: string | undefined =
  process.platform !== 'linux'
    ? 'the processes of a terminal are read from /proc'
    : spawnSync('script', ['--version'], { encoding: 'utf8' }).stdout?.includes('util-linux')
      ? undefined
      : 'script of util-linux is not installed';

/** Byte that a terminal turns into a SIGINT of its foreground processes. */
export const CTRL_C = '\x03';

interface ProcessTimes {
  readonly pid: number;
  /** Processor time in milliseconds. */
  readonly milliseconds: number;
}

/** Milliseconds of a tick in /proc/PID/stat. */
const TICK = 10;

/** Quotes a word for a shell. */
const quoted = (word: string) => `'${word.replaceAll("'", `'\\''`)}'`;

const pause = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

export interface TerminalOptions {
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  /** Folder for the notes of the shell in the terminal. */
  readonly notes: string;
  /** Added to the command line of the shell, such as `| sleep 60`. */
  readonly redirection?: string;
}

/** A command that a shell has started in a terminal. */
export class TerminalCommand {
  /** All that the terminal showed. */
  shown = '';
  readonly #child: ChildProcess;
  readonly #notes: string;

  constructor(words: readonly string[], { cwd, env, notes, redirection = '' }: TerminalOptions) {
    this.#notes = notes;
    const note = (name: string) => quoted(path.join(notes, name));
    // The shell outlives the command to report the state of the terminal. A trap, unlike ignoring, is not inherited.
    const script = [
      'trap : INT TERM HUP',
      `stty -a >${note('before')}`,
      `echo $$ >${note('shell')}`,
      `${words.map(quoted).join(' ')} ${redirection}`,
      // Further keys are not for what follows.
      `code=$?; trap '' INT; echo $code >${note('code.new')}`,
      `stty -a >${note('after')}`,
      `mv ${note('code.new')} ${note('code')}`,
    ].join('\n');
    const file = path.join(notes, 'script.sh');
    fs.writeFileSync(file, script);
    this.#child = spawn('script', ['-qec', `exec sh ${quoted(file)}`, '/dev/null'], {
      cwd,
      env: { ...env, TERM: 'xterm-256color' },
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    this.#child.stdin?.on('error', () => {});
    this.#child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.shown += text;
    });
  }

  /** Types text on the keyboard. */
  type(text: string): void {
    this.#child.stdin?.write(text);
  }

  /** Closes the terminal, as when its window is closed: the shell passes SIGHUP on to its command. */
  hangUp(): void {
    this.#child.kill('SIGKILL');
    for (const { pid } of this.processes()) killQuietly(pid, 'SIGHUP');
  }

  /** Processes of the terminal's session, without the shell. */
  processes(): ProcessTimes[] {
    const shell = Number(this.#note('shell'));
    if (!shell) return [];
    return fs
      .readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name) && Number(name) !== shell)
      .flatMap((name) => {
        const found = statOf(name);
        return found?.session === shell && found.state !== 'Z'
          ? [{ pid: Number(name), milliseconds: found.ticks * TICK }]
          : [];
      });
  }

  /** Processes of Node, which runs the command. */
  programs(): ProcessTimes[] {
    const node = fs.realpathSync(process.execPath);
    return this.processes().filter(({ pid }) => programOf(String(pid)) === node);
  }

  get isRunning(): boolean {
    return this.programs().length > 0;
  }

  /** Waits until the shell has started the command: a fork of the shell has its traps, which lose a signal. */
  async started(): Promise<void> {
    const isCommand = ({ pid }: ProcessTimes) =>
      programOf(String(pid)) !== programOf(this.#note('shell'));
    while (!this.processes().some(isCommand) && this.code === undefined) await pause(2);
  }

  /** Waits until no process of the session is left. @returns Whether that was within a time, in milliseconds. */
  async ended(limit: number): Promise<boolean> {
    const end = performance.now() + limit;
    const isOver = () => this.processes().length === 0 && !this.#isShellWaiting();
    while (!isOver()) {
      if (performance.now() > end) return false;
      await pause(5);
    }
    return true;
  }

  /** Exit code that the shell has noted; undefined before that. */
  get code(): number | undefined {
    const noted = this.#note('code');
    return noted === '' ? undefined : Number(noted);
  }

  /** Whether the terminal has the state of before, once the shell has noted the exit code. */
  isRestored(): boolean {
    const hidden = this.shown.lastIndexOf('\x1b[?25l') > this.shown.lastIndexOf('\x1b[?25h');
    const other = this.shown.lastIndexOf('\x1b[?1049h') > this.shown.lastIndexOf('\x1b[?1049l');
    return this.#note('before') === this.#note('after') && !hidden && !other;
  }

  /** Ends all processes of the session. */
  close(): void {
    for (const { pid } of this.processes()) killQuietly(pid);
    this.#child.kill('SIGKILL');
  }

  #isShellWaiting(): boolean {
    const shell = this.#note('shell');
    return this.code === undefined && statOf(shell) !== undefined;
  }

  #note(name: string): string {
    try {
      return fs.readFileSync(path.join(this.#notes, name), 'utf8').trim();
    } catch {
      return '';
    }
  }
}

function killQuietly(pid: number, signal: NodeJS.Signals = 'SIGKILL'): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended meanwhile.
  }
}

/** Path of the program that a process runs; undefined when it has ended. */
function programOf(pid: string): string | undefined {
  try {
    return fs.readlinkSync(`/proc/${pid}/exe`);
  } catch {
    return undefined;
  }
}

/** State, session and processor time of a process; undefined when it has ended. */
function statOf(pid: string) {
  try {
    const stat = fs.readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const [state, session, user, system] = [0, 3, 11, 12].map((at) => fields[at]);
    return { state, session: Number(session), ticks: Number(user) + Number(system) };
  } catch {
    return undefined;
  }
}
