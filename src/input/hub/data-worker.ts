/**
 * A thread that fetches ranges of remote files, for readers that cannot wait for a promise: they block on shared memory
 * until this thread has written the bytes there.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { failureOf, type ThreadFailure } from '../../base/thread-failure.js';
import { HubClient, type HubFile, ReadAhead } from './hub-client.js';
import type { HubSettings } from './hub-settings.js';

export interface DataRequest {
  readonly file: HubFile;
  readonly size: number;
  readonly position: number;
  readonly length: number;
  /** Number of a request whose answer is a message; undefined for one whose reader is blocked. */
  readonly id?: number;
}

export interface DataThreadOptions {
  readonly settings: HubSettings;
  /** Three numbers: 0 while the reader waits, 1 for bytes, 2 for an error; the bytes of the answer; 1 once this runs. */
  readonly state: SharedArrayBuffer;
  readonly data: SharedArrayBuffer;
}

export interface DataAnswer {
  readonly id: number;
  readonly bytes?: Uint8Array;
  readonly failure?: ThreadFailure;
}

const { settings, state, data } = workerData as DataThreadOptions;
const client = new HubClient(settings);
const readAhead = new ReadAhead((file, position, length) => client.range(file, position, length));
const shared = new Int32Array(state);
Atomics.store(shared, 2, 1);
Atomics.notify(shared, 2);

async function answer({ file, size, position, length, id }: DataRequest): Promise<void> {
  try {
    const bytes = await readAhead.read(file, size, position, length);
    if (id !== undefined) {
      parentPort?.postMessage({ id, bytes } satisfies DataAnswer);
      return;
    }
    new Uint8Array(data).set(bytes);
    settle(1, bytes.length);
  } catch (error) {
    const failure = failureOf(error);
    if (id !== undefined) {
      parentPort?.postMessage({ id, failure } satisfies DataAnswer);
      return;
    }
    const text = Buffer.from(JSON.stringify(failure)).subarray(0, data.byteLength);
    new Uint8Array(data).set(text);
    settle(2, text.length);
  }
}

function settle(result: number, bytes: number): void {
  shared[1] = bytes;
  Atomics.store(shared, 0, result);
  Atomics.notify(shared, 0);
}

parentPort?.on('message', (request: DataRequest) => void answer(request));
