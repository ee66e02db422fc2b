/** A thread that tokenizes batches of texts for the encoder of encoder.ts. */
import { parentPort, workerData } from 'node:worker_threads';
import { failureOf, type ThreadFailure } from '../../base/thread-failure.js';
import { TextTokenizer } from './tokenizer.js';

export interface EncoderThreadOptions {
  /** Path of the tokenizer.json. */
  readonly file: string;
  /** Parsed tokenizer_config.json. */
  readonly config: Readonly<Record<string, unknown>>;
}

export interface EncodingRequest {
  readonly id: number;
  readonly texts: readonly string[];
}

export type EncodingAnswer = { readonly id: number } & (
  | {
      /** Token ids of all texts, one after another. */
      readonly ids: Float64Array<ArrayBuffer>;
      /** End of each text in `ids`. */
      readonly ends: Float64Array<ArrayBuffer>;
    }
  | { readonly failure: ThreadFailure }
);

const { file, config } = workerData as EncoderThreadOptions;
const opened = TextTokenizer.open(file, { config });
// Reported with the first batch.
opened.catch(() => {});

async function answer({ id, texts }: EncodingRequest): Promise<void> {
  try {
    const encoded = (await opened).encodeAll(texts);
    const ends = new Float64Array(encoded.length);
    let total = 0;
    for (const [at, { length }] of encoded.entries()) {
      total += length;
      ends[at] = total;
    }
    const ids = new Float64Array(total);
    for (const [at, each] of encoded.entries()) ids.set(each, (ends[at] ?? 0) - each.length);
    const found: EncodingAnswer = { id, ids, ends };
    parentPort?.postMessage(found, [ids.buffer, ends.buffer]);
  } catch (error) {
    parentPort?.postMessage({ id, failure: failureOf(error) } satisfies EncodingAnswer);
  }
}

parentPort?.on('message', (request: EncodingRequest) => void answer(request));
