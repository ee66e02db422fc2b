/** Tokenizes batches of texts, on several threads once there is enough text for them. */
import os from 'node:os';
import { Worker } from 'node:worker_threads';
import { builtThread } from '../../base/files/file-system.js';
import { errorOf } from '../../base/thread-failure.js';
import { sumOf } from '../../base/values.js';
import type { EncoderThreadOptions, EncodingAnswer, EncodingRequest } from './encoder-thread.js';
import type { TextTokenizer } from './tokenizer.js';

/** Characters that are tokenized before threads start: they take a tenth of the time that these take. */
const FEW_CHARACTERS = 8_000_000;

/** Each thread has a copy of the tokenizer, and the caller becomes the slowest of them. */
const MOST_THREADS = 8;

/** Batches that a thread is given before its first answer, so that it never waits. */
const BATCHES_AHEAD = 2;

type Encoded = readonly (readonly number[])[];

export interface EncoderOptions {
  /** Threads that tokenize; 1 is the thread of the caller. Default: one for each processor, at most 8. */
  readonly threads?: number | undefined;
  /** Characters that the thread of the caller tokenizes before others start. */
  readonly alone?: number;
}

/** Batches of texts to token ids, without tokens for the beginning and the end of a text. */
export class BatchEncoder {
  readonly #tokenizer: TextTokenizer;
  readonly #threads: number;
  #workers: EncoderThread[] = [];
  /** Characters until threads start. */
  #left: number;

  constructor(
    tokenizer: TextTokenizer,
    {
      threads = Math.min(os.availableParallelism(), MOST_THREADS),
      alone = FEW_CHARACTERS,
    }: EncoderOptions = {},
  ) {
    this.#tokenizer = tokenizer;
    this.#threads = threads;
    this.#left = alone;
  }

  /** Batches to ask for before the first of them is awaited. */
  get batchesAhead(): number {
    return Math.max(1, BATCHES_AHEAD * this.#workers.length);
  }

  /** Token ids of each text. @throws UserError as `encodeAll` of the tokenizer. */
  async encode(texts: readonly string[]): Promise<Encoded> {
    if (this.#threads === 1 || texts.length === 0) return this.#tokenizer.encodeAll(texts);
    if (this.#workers.length === 0) {
      if (this.#left > 0) {
        this.#left -= sumOf(texts, ({ length }) => length);
        return this.#tokenizer.encodeAll(texts);
      }
      const { file, config } = this.#tokenizer;
      this.#workers = Array.from(
        { length: this.#threads },
        () => new EncoderThread({ file, config }),
      );
    }
    const idlest = this.#workers.reduce((best, each) => (each.size < best.size ? each : best));
    return idlest.encode(texts);
  }

  close(): void {
    for (const each of this.#workers) each.close();
    this.#workers = [];
  }
}

class EncoderThread {
  readonly #worker: Worker;
  readonly #waiting = new Map<
    number,
    { resolve(encoded: Encoded): void; reject(error: Error): void }
  >();
  #next = 0;

  constructor(workerData: EncoderThreadOptions) {
    // Options of this process, such as those of an inline script, need not suit a file.
    this.#worker = new Worker(builtThread('dist/language/tokenizer/encoder-thread.js'), {
      workerData,
      execArgv: [],
      env: {},
    });
    this.#worker.on('message', (answer: EncodingAnswer) => {
      const waiting = this.#waiting.get(answer.id);
      this.#waiting.delete(answer.id);
      if ('failure' in answer) waiting?.reject(errorOf(answer.failure));
      else waiting?.resolve(listsOf(answer));
    });
    // A thread that ends by itself, as one without memory, answers nothing.
    this.#worker.on('error', (error) => {
      for (const { reject } of this.#waiting.values()) reject(error);
      this.#waiting.clear();
    });
  }

  /** Batches that it has not answered. */
  get size(): number {
    return this.#waiting.size;
  }

  encode(texts: readonly string[]): Promise<Encoded> {
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#worker.postMessage({ id, texts } satisfies EncodingRequest);
    });
  }

  close(): void {
    void this.#worker.terminate();
  }
}

function listsOf({ ids, ends }: { readonly ids: Float64Array; readonly ends: Float64Array }) {
  let from = 0;
  return Array.from(ends, (end) => {
    const own = Array.from(ids.subarray(from, end));
    from = end;
    return own;
  });
}
