import { UserError } from '../../base/errors.js';
import { setting } from '../../base/text/setting.js';
import type { Layer } from '../../model/architecture/layer.js';
import { MOST_LOGITS } from '../block-size.js';
import type { CheckedCall } from '../calls.js';
import { Calls, ofLastTokens } from '../calls.js';
import type {
  Program,
  ProgramOptions,
  RunInput,
  RunOutput,
  StateHandle,
  Values,
} from '../engine.js';
import { DeviceLostError } from '../engine.js';
import { type CompiledGraph, graphParts, type LogitsGraph } from './compile.js';
import type { Target } from './context.js';
import { type CacheMark, type Call, KeyCache, tensorFor } from './feeds.js';
import type { GraphValue } from './graph.js';
import { checkFits } from './largest-tensor.js';
import type { Library, OrtTensor, Session } from './library.js';
import type { PlacedWeights } from './placed-weights.js';
import { heldBytes, outputName } from './quantized-products.js';

// Known errors of ONNX Runtime, and messages with a fix.

export interface Failure {
  readonly pattern: RegExp;
  readonly message: string;
  readonly suggestion: string;
  /** Whether the device can no longer be used. */
  readonly isDeviceLost?: boolean;
}

/** Known failures that are not bugs, matched by ONNX Runtime's messages. */
const FAILURES: readonly Failure[] = [
  {
    // From Dawn; from CUDA, errors that break its context; from Direct3D.
    pattern:
      /[Dd]evice (is |was |has been )?(lost|removed|hung)|DXGI_ERROR_DEVICE|CUDA failure (46|700|702|709|710|715|719|999)\b|CUDNN_STATUS_EXECUTION_FAILED/,
    message: 'the graphics card went away',
    get suggestion() {
      return `run again; ${setting('device', 'cpu')} needs none`;
    },
    isDeviceLost: true,
  },
  {
    pattern: /bad_alloc|bad allocation|[Ff]ailed to allocate|out of memory|Array buffer allocation/,
    message: 'there is not enough memory',
    suggestion: 'take a smaller batch or context, or a smaller model',
  },
  {
    pattern: /[Ee]xternal data|external initializer|file_size|file_length/,
    message: 'a file of weights cannot be read, or changed while it was read',
    suggestion: 'look whether the file is whole, and run again',
  },
];

/** Converts an error to a `UserError` where the user can act on it, else to an internal error. */
export function engineError(error: unknown, doing: string): Error {
  if (error instanceof UserError) return error;
  const reason = error instanceof Error ? error.message : String(error);
  const known = FAILURES.find(({ pattern }) => pattern.test(reason));
  if (known === undefined) {
    return new Error(`ONNX Runtime failed to ${doing}: ${reason}`, { cause: error });
  }
  const { message, suggestion, isDeviceLost } = known;
  const Kind = isDeviceLost ? DeviceLostError : UserError;
  return new Kind('system', `cannot ${doing}: ${message}`, { suggestion, cause: error });
}

/** State that a call leaves for the next one. */
interface Kept {
  /** Tensors by the name of the input that takes them. */
  readonly tensors: ReadonlyMap<string, OrtTensor>;
  /** Keys and values of the sequence. */
  readonly cache: KeyCache;
  /** Rows of the cache that belong to this state. */
  readonly mark: CacheMark;
}

interface ProgramParts {
  readonly library: Library;
  readonly layer: Layer;
  readonly compiled: CompiledGraph;
  readonly session: Session;
  readonly logits: (LogitsGraph & { readonly session: Session }) | undefined;
  readonly weights: PlacedWeights;
  readonly options: ProgramOptions;
  readonly target: Target;
}

/** One session, for any batch and any number of tokens. */
export class OnnxProgram implements Program {
  readonly elements: number;
  readonly weightBytes: number;
  readonly #parts: ProgramParts;
  readonly #calls: Calls<Kept>;
  #session: Session | undefined;
  #isLost = false;

  constructor(parts: ProgramParts) {
    this.#parts = parts;
    this.#calls = new Calls(this, parts.layer, parts.options);
    this.#session = parts.session;
    const { compiled, target } = parts;
    this.elements = compiled.weightElements;
    this.weightBytes = heldBytes(graphParts(compiled), compiled.weights, target.provider !== 'cpu');
  }

  async run(input: RunInput): Promise<RunOutput> {
    const { library, layer, compiled, target } = this.#parts;
    if (!this.#session) throw new Error('the program has been released');
    const checked = this.#calls.check(input);
    checkFits(layer, checked, target, compiled.output.length > 1);
    const { kept, start, tokens } = checked;
    if (kept) checkMark(kept);
    const cache = kept?.cache ?? new KeyCache(library, checked.total ?? 0);
    if (compiled.newRows.size > 0) cache.reserve(start + tokens);
    const { ids, inputs = [], lastTokens } = input;
    const states = kept?.tensors ?? new Map();
    const call = { ...checked, ids, inputs, states, cache, lastTokens };
    const feeds = [...compiled.feeds].map(
      ([name, feed]) => [name, tensorFor(library, name, feed, call)] as const,
    );
    try {
      const results = await this.#session.run(Object.fromEntries(feeds), this.#fetches(call));
      return await this.#outputOf(call, new Map(Object.entries(results)));
    } catch (error) {
      const known = engineError(error, 'run the model');
      this.#isLost ||= known instanceof DeviceLostError;
      throw known;
    }
  }

  rewind(state: StateHandle, position: number): StateHandle | undefined {
    return this.#calls.rewound(state, position, (kept) => {
      checkMark(kept);
      const { tensors, cache } = kept;
      return tensors.size > 0 ? undefined : { tensors, cache, mark: cache.markAt(position) };
    });
  }

  discard(state: StateHandle): void {
    const { tensors } = this.#calls.discarded(state);
    free([...tensors.values()]);
  }

  async release(): Promise<void> {
    const sessions = this.#session ? [this.#session, this.#parts.logits?.session] : [];
    this.#session = undefined;
    for (const session of sessions) {
      await session?.release().catch((error) => {
        // A lost device has nothing to free, and its loss was already reported.
        if (!this.#isLost) throw error;
      });
    }
    this.#parts.weights.release();
  }

  /** All outputs, with the rows of the cache that are written to; null for a new tensor. */
  #fetches(call: Call): Record<string, OrtTensor | null> {
    const { start, tokens, batch, cache } = call;
    const { graph, feeds, newRows } = this.#parts.compiled;
    const fetches = Object.fromEntries<OrtTensor | null>(
      graph.outputs.map((output) => [outputName(output), null]),
    );
    const span = { from: start, to: start + tokens };
    if (newRows.size > 0) cache.beginWriting(span);
    for (const [name, value] of newRows) {
      const feed = feeds.get(name);
      if (feed?.kind !== 'pastRows') throw new Error(`no cache ${name}`);
      fetches[value] = cache.rows(name, span, [batch, feed.groups, feed.width]);
    }
    return fetches;
  }

  /** Logits [B, n, V] of outputs of the last block [B, n, C], where they are computed apart. */
  async #logitsOf(hidden: Values): Promise<Values> {
    const { library, logits: apart } = this.#parts;
    if (!apart) return hidden;
    const [batch = 0, tokens = 0, width = 0] = hidden.shape;
    const { session, rows, logits, vocabulary } = apart;
    const shape = [batch, tokens, vocabulary];
    const part = async (from: number, to: number) => {
      const some = hidden.data.subarray(from * width, to * width);
      const feeds = { [rows]: new library.Tensor('float32', some, [to - from, width]) };
      const results = await session.run(feeds, { [logits]: null });
      return present(results[logits], logits);
    };
    const count = batch * tokens;
    const atOnce = Math.max(1, Math.floor(MOST_LOGITS / vocabulary));
    if (count <= atOnce) return { shape, data: ortValues(await part(0, count)).data };
    const data = new Float32Array(count * vocabulary);
    for (let from = 0; from < count; from += atOnce) {
      const own = await part(from, Math.min(count, from + atOnce));
      data.set(ortValues(own).data, from * vocabulary);
      free([own]);
    }
    return { shape, data };
  }

  async #outputOf(
    call: CheckedCall<Kept> & Call,
    results: ReadonlyMap<string, OrtTensor>,
  ): Promise<RunOutput> {
    const { output, isInRows, blocks, taps, sent, states } = this.#parts.compiled;
    const tensor = (value: GraphValue) => present(results.get(value), value);
    const all = (values: ReadonlyMap<string, GraphValue> = new Map()) =>
      new Map([...values].map(([path, value]) => [path, ortValues(tensor(value))]));
    const joined = joinedColumns(output.map((part) => ortValues(tensor(part))));
    const last = ofLastTokens(isInRows ? bySequence(joined, call) : joined, call.lastTokens);
    return {
      output: await this.#logitsOf(last),
      blocks: all(blocks),
      // Excludes taps of experts without tokens.
      taps: new Map([...all(taps)].filter(([, { data }]) => data.length > 0)),
      ...(sent && { sent: all(sent) }),
      ...(states && {
        state: this.#calls.stateAfter(call, {
          tensors: new Map([...states].map(([input, value]) => [input, tensor(value)])),
          cache: call.cache,
          mark: call.cache.markAt(call.start + call.tokens),
        }),
      }),
    };
  }
}

/**
 * Frees the memory of tensors at once, by sending their buffers to a closed port. Left to the garbage collector, a
 * state of 9 MB per token would trigger a collection every third token, which takes as long as the token.
 */
function free(tensors: readonly OrtTensor[]): void {
  const buffers = tensors
    .filter(({ location }) => location === 'cpu')
    .flatMap(({ data }) => (data instanceof Float32Array ? [data.buffer as ArrayBuffer] : []));
  if (buffers.length === 0) return;
  const { port1: closed } = new MessageChannel();
  closed.close();
  closed.postMessage(null, buffers);
}

function checkMark({ cache, mark }: Kept): void {
  if (!cache.has(mark)) throw new Error('the state is outdated: other tokens replaced its own');
}

function present(tensor: OrtTensor | undefined, name: string): OrtTensor {
  if (tensor === undefined) throw new Error(`no output ${name}`);
  return tensor;
}

function ortValues({ data, dims }: OrtTensor): Values {
  if (!(data instanceof Float32Array)) throw new Error('an output is not float32');
  return { shape: dims, data };
}

/** Rows [B · n, C] → [B, n, C]. */
const bySequence = ({ shape, data }: Values, { batch }: Call): Values => {
  const [rows = 0, width = 0] = shape;
  return { shape: [batch, rows / batch, width], data };
};

/** Joins parts of a value along the columns. */
function joinedColumns(parts: readonly Values[]): Values {
  const [first, ...others] = parts;
  if (first && others.length === 0) return first;
  const widths = parts.map(({ shape }) => shape.at(-1) ?? 0);
  const width = widths.reduce((sum, each) => sum + each, 0);
  const shape = first?.shape.with(-1, width) ?? [];
  const data = new Float32Array(shape.reduce((product, size) => product * size, 1));
  let column = 0;
  for (const [index, part] of parts.entries()) {
    const own = widths[index] ?? 0;
    for (let from = 0, to = column; from < part.data.length; from += own, to += width) {
      data.set(part.data.subarray(from, from + own), to);
    }
    column += own;
  }
  return { shape, data };
}
