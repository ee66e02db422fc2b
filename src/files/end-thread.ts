/**
 * Thread that ends the program after a signal when the main thread does not: in a long loop, a call of an engine, or a
 * write to a pipe without a reader.
 */
import fs from 'node:fs';
import vm from 'node:vm';
import { parentPort, workerData } from 'node:worker_threads';
import {
  CTRL_C,
  type EndSignal,
  type EndThreadOptions,
  type Leftover,
  type LeftoverMessage,
  SHARED,
  SIGNALS,
} from './end-states.js';

/** Milliseconds until the main thread has to have heard of a signal, and to have ended. */
const HEARD = 400;
const ENDED = 800;
/** The same for a task that ends by itself. */
const TASK_HEARD = 700;
const TASK_ENDED = 3000;

interface NativeSignal {
  onsignal: () => void;
  start(number: number): number;
}

interface Internals {
  /** Node's own module behind `process.on('SIGINT')`, which threads lack. */
  binding(name: 'signal_wrap'): { readonly Signal: new () => NativeSignal };
}

const { leftovers, shared } = workerData as EndThreadOptions;
const known = new Map(leftovers);

function onSignal(name: EndSignal): void {
  const effect = name === 'SIGINT' ? Atomics.load(shared, SHARED.ctrlC) : CTRL_C.ends;
  if (effect === CTRL_C.asks) {
    // The next one ends the program, also when the main thread has not heard of this one.
    Atomics.compareExchange(shared, SHARED.ctrlC, CTRL_C.asks, CTRL_C.ends);
    return;
  }
  const [heard, ended] = effect === CTRL_C.endsTask ? [TASK_HEARD, TASK_ENDED] : [HEARD, ENDED];
  const handled = Atomics.load(shared, SHARED.handled);
  setTimeout(() => {
    if (Atomics.load(shared, SHARED.handled) === handled) end();
    else setTimeout(end, ended - heard);
  }, heard);
}

const loadStaging = () => import('./staging-folder.js');

/** Removes what is left, and ends the program. */
async function end(): Promise<void> {
  for (const leftover of known.values()) {
    try {
      if (leftover.kind === 'staging') (await loadStaging()).abandonStaging(leftover.place);
      else remove(leftover);
    } catch {
      // A later run removes it.
    }
  }
  // After such a script, Node's first handler is back, which restores the terminal and dies of the signal.
  vm.runInThisContext('0', { breakOnSigint: true });
  process.kill(process.pid, 'SIGINT');
}

function remove(leftover: Exclude<Leftover, { readonly kind: 'staging' }>): void {
  if (leftover.kind === 'process') {
    process.kill(leftover.pid, 'SIGKILL');
    return;
  }
  const { path } = leftover;
  if (leftover.kind === 'lock' && !fs.readFileSync(path, 'utf8').includes(leftover.text)) return;
  fs.rmSync(path, { recursive: true, force: true, maxRetries: 3 });
}

function watch(): boolean {
  try {
    // It warns where it is used directly. Without it, a thread hears of no signal.
    process.noDeprecation = true;
    const { Signal } = (process as unknown as Internals).binding('signal_wrap');
    for (const [name, number] of Object.entries(SIGNALS)) {
      const signal = new Signal();
      signal.onsignal = () => onSignal(name as EndSignal);
      signal.start(number);
    }
    return true;
  } catch {
    // A Node without it: signals wait for the main thread.
    return false;
  }
}

parentPort?.on('message', ([id, leftover]: LeftoverMessage) => {
  if (leftover === null) known.delete(id);
  else known.set(id, leftover);
  // Before it is urgent.
  if (leftover?.kind === 'staging') void loadStaging();
});
parentPort?.postMessage(watch());
