/** Interrupts commands in a terminal at random moments, and checks that they end and leave nothing. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { inPackage } from '../fixtures.js';
import type { CommandRow } from './command-rows.js';
import { CTRL_C, TerminalCommand } from './terminal.js';

/** Ways to end a command. */
export type Ending = 'Ctrl-C' | 'twice' | 'SIGTERM' | 'closed terminal';

export interface Interruption {
  /** Milliseconds from the start of the command. */
  readonly moment: number;
  readonly ending: Ending;
  /** Part of the command line for the shell, such as `| sleep 60`. */
  readonly redirection?: string;
}

export interface InterruptionResult {
  /** Milliseconds from the signal to the end of the last process. */
  readonly wall: number;
  /** Processor time meanwhile, in milliseconds: on a busy machine it says more. */
  readonly busy: number;
  /** Undefined where the command did not end. */
  readonly code: number | undefined;
  /** Whether the command had ended before the signal. */
  readonly isLate: boolean;
  /** All that the terminal showed. */
  readonly shown: string;
  /** Faults that were found. */
  readonly faults: readonly string[];
}

const EXIT_CODES: Readonly<Record<Ending, readonly number[]>> = {
  'Ctrl-C': [130],
  twice: [130],
  SIGTERM: [143],
  // Or 3: its progress or its answer cannot be written any more.
  'closed terminal': [129, 3],
};

/**
 * Exit codes of a command that has ended by itself meanwhile. Node aborts, or worse, when it restores the settings of a
 * terminal that is gone: src/node.cc, ResetStdio. `process.exit` after a SIGHUP that is listened to shows it without us.
 */
const ENDED_BY_ITSELF: Readonly<Record<Ending, readonly number[]>> = {
  'Ctrl-C': [0],
  twice: [0],
  SIGTERM: [0],
  'closed terminal': [0, 134, 139],
};

/** Milliseconds after which a command counts as one that does not end. */
const NEVER = 15_000;

/** Longest part of a command that is interrupted, in milliseconds. */
const MOST_DURATION = 8000;

/** Milliseconds in which a command that has mistaken inputs ends, also on a busy machine. */
const PLAIN_DURATION = 30_000;

const pause = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** A user with inputs in a folder, and temporary and cached files in others. */
export class TerminalUser {
  readonly #inputs: string;
  readonly #env: NodeJS.ProcessEnv;
  readonly #root = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-terminal-'));
  readonly #temporary: string;
  readonly #before: ReadonlySet<string>;
  readonly #program: string;

  constructor(inputs: string, env: NodeJS.ProcessEnv = {}, program = inPackage('bin/run.js')) {
    this.#program = program;
    this.#inputs = inputs;
    this.#temporary = path.join(this.#root, 'temporary');
    this.#before = new Set(namesIn(inputs));
    const own = {
      TMPDIR: this.#temporary,
      XDG_CACHE_HOME: path.join(this.#root, 'cache'),
      HF_HOME: path.join(this.#root, 'hf'),
    };
    this.#env = { ...process.env, ...own, ...env };
  }

  close(): void {
    fs.rmSync(this.#root, { recursive: true, force: true });
  }

  /** Milliseconds that a command takes, at most `MOST_DURATION`. @throws Error when it fails. */
  async durationOf(row: CommandRow): Promise<number> {
    const plain = await this.interrupt(row, { moment: PLAIN_DURATION, ending: 'SIGTERM' });
    if (!plain.isLate) return MOST_DURATION;
    if (plain.code !== 0 && plain.code !== 1) {
      throw new Error(`expected exit code 0 or 1, found ${plain.code}: ${plain.shown.slice(-300)}`);
    }
    return Math.min(MOST_DURATION, PLAIN_DURATION + plain.wall);
  }

  /** Whether the machine lets a waiting program end within a time. */
  async endsWaiting(limit: number): Promise<boolean> {
    const row = { words: ['validate', '-'] };
    const { wall } = await this.interrupt(row, { moment: 1500, ending: 'Ctrl-C' });
    return wall <= limit;
  }

  /** Runs a command and ends it. The wall time is negative by the time that it had ended before. */
  async interrupt(
    { words, typed = [], presses = 1 }: CommandRow,
    { moment, ending, redirection }: Interruption,
  ): Promise<InterruptionResult> {
    const notes = fs.mkdtempSync(path.join(this.#root, 'notes-'));
    fs.rmSync(this.#temporary, { recursive: true, force: true });
    fs.mkdirSync(this.#temporary);
    const command = new TerminalCommand([process.execPath, this.#program, ...words], {
      ...{ cwd: this.#inputs, env: this.#env, notes },
      ...(redirection === undefined ? {} : { redirection }),
    });
    try {
      await command.started();
      const start = performance.now();
      const timers = typed.map((text, at) =>
        setTimeout(() => command.type(`${text}\n`), 1000 * (at + 1)),
      );
      while (performance.now() - start < moment && command.code === undefined) {
        await pause(Math.min(20, Math.max(0, moment - (performance.now() - start))));
      }
      for (const timer of timers) clearTimeout(timer);
      // The shell can still be noting its end, with a program of its own.
      const isLate = command.code !== undefined || !command.isRunning;
      const early = performance.now() - start - moment;
      const before = cpuOf(command);
      const begun = performance.now();
      await this.#end(command, ending, presses);
      let busy = 0;
      const watch = setInterval(() => {
        busy = Math.max(busy, cpuOf(command) - before);
      }, 20);
      const hasEnded = await command.ended(NEVER);
      clearInterval(watch);
      const wall = isLate ? early : performance.now() - begun;
      const faults = this.#faults(command, ending, isLate, hasEnded);
      return { wall, busy, code: command.code, isLate, shown: command.shown, faults };
    } finally {
      command.close();
      this.#tidy();
    }
  }

  async #end(command: TerminalCommand, ending: Ending, presses: number): Promise<void> {
    if (ending === 'closed terminal') command.hangUp();
    else if (ending === 'SIGTERM') {
      const [program] = command.programs();
      try {
        if (program) process.kill(program.pid, 'SIGTERM');
      } catch (error) {
        // It has ended between the two lines.
        if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
      }
    } else {
      for (let press = 0; press < presses + (ending === 'twice' ? 1 : 0); press++) {
        if (press > 0) await pause(100);
        if (command.code !== undefined) return;
        command.type(CTRL_C);
      }
    }
  }

  #faults(command: TerminalCommand, ending: Ending, isLate: boolean, hasEnded: boolean): string[] {
    const faults: string[] = [];
    if (!hasEnded) faults.push(`does not end: ${command.processes().length} processes are left`);
    const { code } = command;
    const expected = [...EXIT_CODES[ending], ...ENDED_BY_ITSELF[ending]];
    if (!isLate && hasEnded && !expected.includes(code ?? -1)) {
      faults.push(`exit code ${code}: ${command.shown.slice(-300)}`);
    }
    if (hasEnded && ending !== 'closed terminal' && !command.isRestored()) {
      faults.push('the terminal is not as before');
    }
    const temporary = namesIn(this.#temporary);
    if (temporary.length > 0) faults.push(`temporary files: ${temporary}`);
    const partial = namesIn(this.#inputs).filter(
      (name) =>
        !this.#before.has(name) &&
        /\.(?:tmp|unfinished|new|old)$|lock(?!s$)|\.[0-9a-f-]{36}$/.test(name),
    );
    if (partial.length > 0) faults.push(`partial files: ${partial}`);
    return faults;
  }

  #tidy(): void {
    for (const name of namesIn(this.#inputs)) {
      if (!this.#before.has(name)) {
        fs.rmSync(path.join(this.#inputs, name), { recursive: true, force: true });
      }
    }
  }
}

const cpuOf = (command: TerminalCommand) =>
  command.processes().reduce((sum, { milliseconds }) => sum + milliseconds, 0);

const namesIn = (folder: string) => fs.readdirSync(folder, { recursive: true, encoding: 'utf8' });
