/** Bandwidth of the system memory, from threads that search buffers larger than the caches. */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { median } from '../base/values.js';
import type { MeasurementSpread } from '../estimate/hardware/machine-profile.js';

/** Bytes of all buffers: more than the caches of most processors. */
const BUFFER_BYTES = 256 * 2 ** 20;
/** Share of the usable bytes. */
const MOST_SHARE = 0.25;
/** Threads that read at a time: more do not read faster. */
const MOST_THREADS = 16;
const ROUNDS = 7;
const ROUND_MS = 80;

/**
 * A thread that looks for a byte that its buffer lacks: the C library reads it at the speed of the memory. The buffer is
 * filled first, because pages that were never written are all the same one.
 */
const READER = `
const { parentPort, workerData } = require('node:worker_threads');
const buffer = Buffer.alloc(workerData.bytes, 1);
parentPort.on('message', (milliseconds) => {
  let bytes = 0;
  const start = performance.now();
  do {
    if (buffer.indexOf(2) !== -1) throw new Error('a byte that was not written');
    bytes += buffer.length;
  } while (performance.now() - start < milliseconds);
  parentPort.postMessage(bytes / (performance.now() - start) * 1000);
});
parentPort.postMessage(0);
`;

/**
 * Bytes per second that all threads together read from the system memory. Takes about a second.
 * @param threads Threads of the engine.
 * @param usableBytes Bytes that may be used.
 */
export async function measureMemory(
  threads: number,
  usableBytes: number,
): Promise<MeasurementSpread> {
  const count = Math.min(threads, MOST_THREADS);
  const bytes = Math.floor(Math.min(BUFFER_BYTES, MOST_SHARE * usableBytes) / count);
  const readers = Array.from(
    { length: count },
    () => new Worker(READER, { eval: true, workerData: { bytes }, env: {}, execArgv: [] }),
  );
  try {
    await Promise.all(readers.map((reader) => once(reader, 'message')));
    const rounds: number[] = [];
    while (rounds.length < ROUNDS) {
      const answers = readers.map(async (reader): Promise<number> => {
        const answer = once(reader, 'message');
        reader.postMessage(ROUND_MS);
        return Number((await answer)[0]);
      });
      rounds.push((await Promise.all(answers)).reduce((sum, each) => sum + each, 0));
    }
    return { least: Math.min(...rounds), median: median(rounds), most: Math.max(...rounds) };
  } finally {
    await Promise.all(readers.map((reader) => reader.terminate()));
  }
}
