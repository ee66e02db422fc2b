import type { Layer } from '../../architecture/layer.js';
import type { LoadOptions, Program, RunInput, RunOutput, State } from '../engine.js';
import type { Values } from '../values.js';
import { sizesOf } from './call-sizes.js';
import type { CompiledGraph } from './compile.js';
import { explained } from './failures.js';
import { type Call, tensorFor } from './feeds.js';
import type { Value } from './graph.js';
import type { Library, Session, Tensor } from './library.js';
import type { PlacedWeights } from './placed-weights.js';

/** What the next call of a program continues from. */
class OnnxState implements State {
  readonly program: OnnxProgram;
  readonly position: number;
  readonly batch: number;
  /** By the name of the input that gets it. */
  readonly tensors: ReadonlyMap<string, Tensor>;

  constructor(
    program: OnnxProgram,
    position: number,
    batch: number,
    tensors: ReadonlyMap<string, Tensor>,
  ) {
    this.program = program;
    this.position = position;
    this.batch = batch;
    this.tensors = tensors;
  }
}

interface Parts {
  readonly library: Library;
  readonly layer: Layer;
  readonly compiled: CompiledGraph;
  readonly session: Session;
  readonly weights: PlacedWeights;
  readonly options: LoadOptions;
}

/** One session, for any batch and any number of tokens. */
export class OnnxProgram implements Program {
  readonly elements: number;
  readonly #parts: Parts;
  #session: Session | undefined;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#session = parts.session;
    this.elements = parts.weights.elements;
  }

  async run(input: RunInput): Promise<RunOutput> {
    const { library, compiled } = this.#parts;
    if (!this.#session) throw new Error('the program has been released');
    const call = this.#callOf(input);
    const feeds = [...compiled.feeds].map(
      ([name, feed]) => [name, tensorFor(library, name, feed, call)] as const,
    );
    try {
      const results = await this.#session.run(Object.fromEntries(feeds));
      return this.#outputOf(call, new Map(Object.entries(results)));
    } catch (error) {
      throw explained(error, 'run the model');
    }
  }

  async release(): Promise<void> {
    const session = this.#session;
    this.#session = undefined;
    await session?.release();
    this.#parts.weights.release();
  }

  #callOf(input: RunInput): Call {
    const { layer, options } = this.#parts;
    const sizes = sizesOf(layer, input);
    const before = this.#before(input.state, sizes.batch);
    const start = before?.position ?? 0;
    const total = options.decoding?.totalTokens;
    if (total !== undefined && start + sizes.tokens > total) {
      throw new RangeError(`${start + sizes.tokens} tokens where ${total} were announced`);
    }
    return {
      ...sizes,
      start,
      total,
      ids: input.ids,
      inputs: input.inputs ?? [],
      states: before?.tensors ?? new Map(),
    };
  }

  #before(state: State | undefined, batch: number): OnnxState | undefined {
    if (state === undefined) return undefined;
    if (!(state instanceof OnnxState) || state.program !== this) {
      throw new Error('the state is that of another program');
    }
    if (state.batch !== batch) {
      throw new RangeError(`a batch of ${batch} after one of ${state.batch}`);
    }
    return state;
  }

  #outputOf(call: Call, results: ReadonlyMap<string, Tensor>): RunOutput {
    const { output, blocks, taps, states } = this.#parts.compiled;
    const tensor = (value: Value) => present(results.get(value), value);
    const all = (values: ReadonlyMap<string, Value> = new Map()) =>
      new Map([...values].map(([path, value]) => [path, valuesOf(tensor(value))]));
    return {
      output: valuesOf(tensor(output)),
      blocks: all(blocks),
      taps: all(taps),
      ...(states && {
        state: new OnnxState(
          this,
          call.start + call.tokens,
          call.batch,
          new Map([...states].map(([input, value]) => [input, tensor(value)])),
        ),
      }),
    };
  }
}

function present(tensor: Tensor | undefined, name: string): Tensor {
  if (tensor === undefined) throw new Error(`there is no output ${name}`);
  return tensor;
}

function valuesOf({ data, dims }: Tensor): Values {
  if (!(data instanceof Float32Array)) throw new Error('an output is not float32');
  return { shape: dims, data };
}
