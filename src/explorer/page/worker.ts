/** The answers that take long, computed by the same program in a worker. */
import type { ErrorJson } from '../../report/kit/error-json.js';
import type { Fact, Verdict } from '../../report/kit/report.js';
import { bugAnswer, fitAnswers, type MemoryPoint } from '../answers.js';
import type { ExploredModel, ExplorerSetting } from '../explorer-state.js';
import { factsOf, fitTiles, type Tile } from '../figures.js';

export interface FitRequestMessage {
  readonly id: number;
  readonly model: ExploredModel;
  readonly setting: ExplorerSetting;
}

/** Answers of `fit` as plain data: a report has functions, which no message carries. */
export interface FitData {
  /** Why there is no answer. */
  readonly error?: ErrorJson;
  /** Undefined for an error. */
  readonly verdict: Verdict | undefined;
  readonly facts: readonly Fact[];
  readonly tiles: readonly Tile[];
  readonly memory: readonly MemoryPoint[];
  /** Usable memory of a GPU in bytes; undefined for an error. */
  readonly capacity: number | undefined;
}

interface FitReply {
  readonly id: number;
  /** Undefined for an invalid model. */
  readonly data: FitData | undefined;
}

/** The part of a worker's global scope that is used here: its types are not those of a page. */
interface WorkerScope {
  onmessage: ((event: MessageEvent<FitRequestMessage>) => void) | null;
  postMessage(reply: FitReply): void;
}

/** Answers the requests that a page sends, in their order. */
export function answerRequests(): void {
  const scope = globalThis as unknown as WorkerScope;
  scope.onmessage = async ({ data: { id, model, setting } }) => {
    scope.postMessage({ id, data: await fitData(model, setting).catch(failedData) });
  };
}

async function fitData(
  model: ExploredModel,
  setting: ExplorerSetting,
): Promise<FitData | undefined> {
  const answers = await fitAnswers(model, setting);
  if (answers === undefined) return undefined;
  const { fit, report, memory } = answers;
  const said = { verdict: report?.verdict, facts: factsOf(report) };
  if (!('serving' in fit)) {
    return { error: fit, ...said, tiles: [], memory, capacity: undefined };
  }
  return { ...said, tiles: fitTiles(fit), memory, capacity: fit.memory.usableBytes };
}

const failedData = (error: unknown): FitData => ({
  error: bugAnswer(error),
  ...{ verdict: undefined, facts: [], tiles: [], memory: [], capacity: undefined },
});

/** A worker with a request at a time. Of the requests that wait, only the last one for each name is sent. */
export class FitWorker {
  readonly #worker: Worker;
  readonly #waiting = new Map<string, FitRequestMessage>();
  readonly #answer: (key: string, data: FitData | undefined) => void;
  #running: { readonly id: number; readonly key: string } | undefined;
  #next = 0;

  /** @param program Source text of the page's script. */
  constructor(program: string, answer: (key: string, data: FitData | undefined) => void) {
    const url = URL.createObjectURL(new Blob([program], { type: 'text/javascript' }));
    this.#worker = new Worker(url);
    this.#answer = answer;
    this.#worker.onmessage = ({ data }: MessageEvent<FitReply>) => this.#receive(data);
    // An error that no request caught, or a program that did not start.
    this.#worker.onerror = ({ message }) => {
      if (this.#running) this.#receive({ id: this.#running.id, data: failedData(message) });
    };
  }

  /** Asks for answers. Those of an earlier question of the same name that still waits are dropped. */
  ask(key: string, model: ExploredModel, setting: ExplorerSetting): void {
    this.#waiting.set(key, { id: this.#next++, model, setting });
    this.#send();
  }

  #send(): void {
    if (this.#running !== undefined) return;
    const [first] = this.#waiting;
    if (first === undefined) return;
    const [key, message] = first;
    this.#waiting.delete(key);
    this.#running = { id: message.id, key };
    this.#worker.postMessage(message);
  }

  #receive({ id, data }: FitReply): void {
    const running = this.#running;
    if (running?.id !== id) return;
    this.#running = undefined;
    // A newer question of this name makes the answer old.
    if (!this.#waiting.has(running.key)) this.#answer(running.key, data);
    this.#send();
  }
}
