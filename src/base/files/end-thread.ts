/**
 * Thread that ends the program after a signal when the main thread does not: in a long loop, a call of an engine, or a
 * write to a pipe without a reader.
 */
import fs from 'node:fs';
import { createRequire } from 'node:module';
import { parentPort, workerData } from 'node:worker_threads';
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

/** Milliseconds after a signal within which the main thread has to handle it, and to end. */
const HEARD = 400;
const ENDED = 800;
/** Milliseconds after which the program is killed if the signal has not ended it. */
const DIED = 100;

interface NativeSignal {
  onsignal: () => void;
  start(number: number): number;
  close(): void;
}

interface Internals {
  /** Node's own module behind `process.on('SIGINT')`, which threads lack. */
  internalBinding(name: 'signal_wrap'): { readonly Signal: new () => NativeSignal };
}

const { leftovers, shared } = workerData as EndThreadOptions;
const known = new Map(leftovers);
const signals: NativeSignal[] = [];

const post = (message: EndThreadMessage) => parentPort?.postMessage(message);

function onSignal(name: EndSignal): void {
  const effect = name === 'SIGINT' ? Atomics.load(shared, SHARED.ctrlC) : CTRL_C.ends;
  if (effect === CTRL_C.asks) {
    // The next one ends the program, even if the main thread has not handled this one.
    Atomics.compareExchange(shared, SHARED.ctrlC, CTRL_C.asks, CTRL_C.ends);
  } else endLater(name);
  if (Atomics.load(shared, SHARED.isPassedOn) === 1) post(name);
}

function endLater(name: EndSignal): void {
  const handled = Atomics.load(shared, SHARED.handled);
  setTimeout(() => {
    if (Atomics.load(shared, SHARED.handled) === handled) end(name);
    else setTimeout(() => end(name), ENDED - HEARD);
  }, HEARD);
}

const loadStaging = () => import('./staging-folder.js');

/** Removes what is left, and ends the program with the signal. */
async function end(name: EndSignal): Promise<void> {
  for (const leftover of known.values()) {
    try {
      if (leftover.kind === 'staging') (await loadStaging()).abandonStaging(leftover.place);
      else remove(leftover);
    } catch {
      // A later run removes it.
    }
  }
  // Without listeners, the signal has the effect that the system gives it.
  for (const signal of signals) signal.close();
  process.kill(process.pid, name);
  // The main thread still has a listener, and is too busy to remove it.
  setTimeout(() => process.kill(process.pid, 'SIGKILL'), DIED);
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

/** Module of Node itself, which `--expose-internals` opens. */
const INTERNALS = 'internal/test/binding';

function watch(): boolean {
  try {
    // Without it, a thread receives no signals. `process.binding` lacks it from Node 24 on.
    const require = createRequire(import.meta.url);
    const { internalBinding } = require(INTERNALS) as Internals;
    const { Signal } = internalBinding('signal_wrap');
    for (const [name, number] of Object.entries(SIGNALS)) {
      const signal = new Signal();
      signal.onsignal = () => onSignal(name as EndSignal);
      signal.start(number);
      signals.push(signal);
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
  // Loaded in advance, so that a signal need not wait for it.
  if (leftover?.kind === 'staging') void loadStaging();
});
post(watch());
