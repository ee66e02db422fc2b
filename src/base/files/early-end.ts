/**
 * Removal of what a program leaves when a signal ends it. Without a handler, the system ends a program at once, also in
 * the middle of a computation. So there are handlers only while there is something to remove or a message to write, and
 * then a thread watches: it removes and ends the program when the main thread is too busy to do so.
 */
import type { ChildProcess } from 'node:child_process';
import { Worker } from 'node:worker_threads';
import {
  CTRL_C,
  type EndSignal,
  type EndThreadMessage,
  type EndThreadOptions,
  type Leftover,
  type LeftoverMessage,
  SHARED,
  SIGNALS,
} from './end-states.js';
import { packagePath } from './file-system.js';

/** Milliseconds after which the thread starts in any case: `SHORT` of processor time, or `LONG` since the start. */
const SHORT = 1000;
const LONG = 5000;

const shared = new Int32Array(new SharedArrayBuffer(12));
const leftovers = new Map<number, Leftover>();
let next = 0;
/** Ends the program; undefined in a process that is not ours. */
let endProgram: ((signal: EndSignal) => void) | undefined;
let isHandling = false;
let worker: Worker | undefined;
let started: Promise<void> | undefined;
let isWatched = false;
let request: (() => void) | undefined;

/** Ends the program with a function at signals, as soon as it has something to remove or has run for a while. */
export function handleSignals(end: (signal: EndSignal) => void): void {
  endProgram = end;
  startLater();
}

/** Starts the thread unless the command is short. On a busy machine, a short command takes long but computes little. */
function startLater(): void {
  setTimeout(() => {
    const { user, system } = process.cpuUsage();
    if ((user + system) / 1000 >= SHORT || performance.now() >= LONG) startThread();
    else startLater();
  }, SHORT).unref();
}

/** Registers what to remove when a signal ends the program. @returns A function to call when it is gone. */
export function removeAtEnd(leftover: Leftover): () => void {
  const id = next++;
  leftovers.set(id, leftover);
  worker?.postMessage([id, leftover] satisfies LeftoverMessage);
  update();
  return () => {
    leftovers.delete(id);
    worker?.postMessage([id, null] satisfies LeftoverMessage);
    update();
  };
}

/** Kills a child when a signal ends the program. @returns A function to call when it has ended. */
export function endsWithProgram(child: ChildProcess): () => void {
  const { pid } = child;
  if (pid === undefined) return () => {};
  const kill = () => void child.kill('SIGKILL');
  process.once('exit', kill);
  const removed = removeAtEnd({ kind: 'process', pid });
  return () => {
    process.off('exit', kill);
    removed();
  };
}

/** Waits for the thread, before long work that leaves something to remove. */
export async function watchEnd(): Promise<void> {
  if (endProgram === undefined || isWatched) return;
  startThread();
  worker?.ref();
  await started;
  worker?.unref();
}

/**
 * Lets the next Ctrl-C call a function instead of ending the program.
 * @param effect Whether the program ends then, at the latest after a second.
 * @returns A function that undoes this. Safe to call again.
 */
export function onCtrlC(effect: keyof typeof CTRL_C, ask: () => void): () => void {
  const own = () => {
    undo();
    ask();
  };
  const undo = () => {
    if (request !== own) return;
    request = undefined;
    Atomics.store(shared, SHARED.ctrlC, CTRL_C.ends);
    update();
  };
  request = own;
  Atomics.store(shared, SHARED.ctrlC, CTRL_C[effect]);
  update();
  return undo;
}

const listener = (signal: NodeJS.Signals) => {
  Atomics.add(shared, SHARED.handled, 1);
  if (signal === 'SIGINT' && request) request();
  else endProgram?.(signal as EndSignal);
};

/** Listens until the thread does, which passes signals on. With two listeners, no signal could end the program. */
function update(): void {
  const isNeeded =
    !isWatched && (request !== undefined || (endProgram !== undefined && leftovers.size > 0));
  if (isNeeded !== isHandling) {
    isHandling = isNeeded;
    for (const signal of Object.keys(SIGNALS)) process[isNeeded ? 'on' : 'off'](signal, listener);
  }
  Atomics.store(shared, SHARED.isPassedOn, Number(isWatched));
}

function startThread(): void {
  if (started) return;
  const file = packagePath('dist/base/files/end-thread.js');
  started = new Promise((resolve) => {
    // Sources that are not built run without it.
    if (file === undefined) return resolve();
    const workerData: EndThreadOptions = { leftovers: [...leftovers], shared };
    // The thread needs a module of Node's own, which warns that it is one.
    const execArgv = ['--expose-internals', '--no-warnings'];
    worker = new Worker(file, { workerData, execArgv, env: {} });
    const settle = (isReady: boolean) => {
      isWatched = isReady;
      update();
      resolve();
    };
    worker.on('message', (message: EndThreadMessage) =>
      typeof message === 'string' ? listener(message) : settle(message),
    );
    worker.once('error', () => settle(false));
    // Last: a listener keeps the process alive.
    worker.unref();
  });
}
