/** Reads ranges of remote files through a thread of its own: blocking, or with a promise. */
import { Worker } from 'node:worker_threads';
import { UserError } from '../../base/errors.js';
import { builtThread } from '../../base/files/file-system.js';
import { pulse } from '../../base/files/mounted.js';
import { downloadLine } from '../../base/text/hub-names.js';
import { errorOf } from '../../base/thread-failure.js';
import type { DataAnswer, DataRequest, DataThreadOptions } from './data-worker.js';
import type { HubFile } from './hub-client.js';
import type { HubSettings } from './hub-settings.js';

/** Most bytes of a blocking read at a time. */
const SHARED_BYTES = 4 * 2 ** 20;

/** Milliseconds: longer than all attempts of a request together. */
const LONGEST_WAIT = 3_600_000;

/** Milliseconds of a blocking read between two pulses. */
const PULSE_PERIOD = 5_000;

/** Milliseconds until the thread runs. A blocked process is not notified of its failure. */
const LONGEST_START = 120_000;

/** States of a request in shared memory: not answered, and answered. */
const WAITING = 0;
const DONE = 1;

interface Waiting {
  readonly resolve: (bytes: Uint8Array) => void;
  readonly reject: (error: unknown) => void;
}

export class DataReader {
  readonly #settings: HubSettings;
  readonly #state = new Int32Array(new SharedArrayBuffer(12));
  readonly #data = new Uint8Array(new SharedArrayBuffer(SHARED_BYTES));
  readonly #waiting = new Map<number, Waiting>();
  #worker: Worker | undefined;
  #requests = 0;

  constructor(settings: HubSettings) {
    this.#settings = settings;
  }

  /** Fills `target`, and blocks the process until it is filled. @throws UserError as `HubClient.range`, and offline. */
  readInto(file: HubFile, size: number, target: Uint8Array, position: number): void {
    this.#refuseOffline(file);
    const worker = this.#started();
    if (Atomics.wait(this.#state, 2, 0, LONGEST_START) === 'timed-out') {
      throw new Error('the thread that reads from the hub does not start');
    }
    for (let done = 0; done < target.length; ) {
      const length = Math.min(SHARED_BYTES, target.length - done);
      Atomics.store(this.#state, 0, WAITING);
      worker.postMessage({ file, size, position: position + done, length } satisfies DataRequest);
      this.#waitForAnswer();
      const answer = this.#data.subarray(0, this.#state[1]);
      if (Atomics.load(this.#state, 0) !== DONE) {
        // The worker's own words, within `SHARED_BYTES`.
        throw errorOf(JSON.parse(Buffer.from(answer).toString('utf8')));
      }
      target.set(answer, done);
      done += length;
    }
  }

  #waitForAnswer(): void {
    for (let waited = 0; waited < LONGEST_WAIT; waited += PULSE_PERIOD) {
      if (Atomics.wait(this.#state, 0, WAITING, PULSE_PERIOD) !== 'timed-out') return;
      pulse();
    }
    throw new Error('the thread that reads from the hub does not answer');
  }

  /** `readInto` without blocking the process. */
  async readIntoAsync(
    file: HubFile,
    size: number,
    target: Uint8Array,
    position: number,
  ): Promise<void> {
    if (target.length === 0) return;
    this.#refuseOffline(file);
    const worker = this.#started();
    const id = ++this.#requests;
    const bytes = await new Promise<Uint8Array>((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      // The process stays alive while a caller waits for an answer.
      worker.ref();
      worker.postMessage({ file, size, position, length: target.length, id } satisfies DataRequest);
    });
    target.set(bytes);
  }

  #refuseOffline(file: HubFile): void {
    if (!this.#settings.isOffline) return;
    const { repository, name } = file;
    throw new UserError(
      'system',
      `offline, and no cache of this machine has the values in ${name} of ${repository}`,
      { suggestion: `download the model: ${downloadLine(repository)}` },
    );
  }

  close(): void {
    void this.#worker?.terminate();
    this.#worker = undefined;
  }

  #started(): Worker {
    if (this.#worker) return this.#worker;
    const { buffer: state } = this.#state;
    const { buffer: data } = this.#data;
    Atomics.store(this.#state, 2, 0);
    const workerData = { settings: this.#settings, state, data } as DataThreadOptions;
    // Options of this process, such as those of an inline script, need not suit a file.
    const worker = new Worker(builtThread('dist/input/hub/data-worker.js'), {
      workerData,
      execArgv: [],
    });
    worker.on('message', ({ id, bytes, failure }: DataAnswer) => {
      const waiting = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (this.#waiting.size === 0) worker.unref();
      if (bytes) waiting?.resolve(bytes);
      else waiting?.reject(errorOf(failure));
    });
    worker.on('error', (error) => {
      for (const { reject } of this.#waiting.values()) reject(error);
      this.#waiting.clear();
    });
    // Last: a listener keeps the process alive.
    worker.unref();
    this.#worker = worker;
    return worker;
  }
}
