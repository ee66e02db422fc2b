import type { Layer } from '../../architecture/layer.js';
import type { LoadOptions, Program, RunInput, RunOutput, State } from '../engine.js';
import type { Values } from '../values.js';
import { interpret } from './interpret.js';
import { type Backend, onBackend, scoped, type Tensor, type Tensor3D } from './library.js';
import { type Decoding, emptyMemory, type Memory, type Run, valuesOf } from './run.js';
import type { Weights } from './weights.js';

/** What a decoding program hands from one run to the next. */
class DecodingState implements State {
  readonly position: number;
  readonly memory: Memory;

  constructor(position: number, memory: Memory) {
    this.position = position;
    this.memory = memory;
  }
}

/** A subtree of a description with its weights on a backend, interpreted at each run. */
export class TfjsProgram implements Program {
  readonly #backend: Backend;
  readonly #layer: Layer;
  readonly #weights: Weights;
  readonly #options: LoadOptions;

  constructor(backend: Backend, layer: Layer, weights: Weights, options: LoadOptions) {
    this.#backend = backend;
    this.#layer = layer;
    this.#weights = weights;
    this.#options = options;
  }

  get elements(): number {
    return this.#weights.elements;
  }

  run(input: RunInput): Promise<RunOutput> {
    return onBackend(this.#backend, () => scoped(this.#backend.tf, () => this.#compute(input)));
  }

  async release(): Promise<void> {
    this.#weights.dispose();
  }

  #compute(input: RunInput): RunOutput {
    const { tf } = this.#backend;
    const recorder = new Recorder(this.#layer, this.#options.taps ?? false);
    const kept = new Map<unknown, Tensor>();
    const run: Run = {
      tf,
      weights: this.#weights,
      ...extentOf(input),
      start: input.state?.position ?? 0,
      ids: input.ids,
      decoding: this.#decoding(input.state),
      apply(layer, ...inputs) {
        const value = tf.tidy(() => interpret(run, layer, inputs));
        recorder.note(layer, value);
        return value;
      },
      once<T extends Tensor>(key: unknown, compute: () => T): T {
        const value = kept.get(key) ?? tf.keep(compute());
        kept.set(key, value);
        return value as T;
      },
    };
    try {
      const inputs = (input.inputs ?? []).map(({ data, shape }) => tf.tensor(data, [...shape]));
      const output = hostValues(run.apply(this.#layer, ...(inputs as Tensor3D[])));
      return { output, blocks: recorder.blocks, taps: recorder.taps, ...stateAfter(run) };
    } finally {
      for (const tensor of kept.values()) tensor.dispose();
    }
  }

  #decoding(state: State | undefined): Decoding | undefined {
    const { decoding } = this.#options;
    if (!decoding) {
      if (state) throw new TypeError('a program that was not loaded for decoding has no state');
      return undefined;
    }
    if (state && !(state instanceof DecodingState)) {
      throw new TypeError('the state of another engine');
    }
    return { ...decoding, before: state?.memory ?? emptyMemory(), after: emptyMemory() };
  }
}

/** Sequences of a run, and tokens of each. */
function extentOf({ ids, inputs, tokens = 0 }: RunInput): { batch: number; tokens: number } {
  if (ids) return { batch: ids.batch, tokens: ids.tokens };
  const [first] = inputs ?? [];
  if (!first) return { batch: 1, tokens };
  const [batch = 0, rows = 0] = first.shape;
  return { batch, tokens: rows };
}

function stateAfter({ decoding, start, tokens }: Run): Pick<RunOutput, 'state'> {
  return decoding ? { state: new DecodingState(start + tokens, decoding.after) } : {};
}

const hostValues = (tensor: Tensor): Values => ({ shape: tensor.shape, data: valuesOf(tensor) });

/** Copies the values that a run is to tell of, as they are computed. */
class Recorder {
  readonly blocks = new Map<string, Values>();
  readonly taps = new Map<string, Values>();
  readonly #blocks: ReadonlySet<Layer>;
  readonly #wantsTaps: boolean;

  constructor(layer: Layer, wantsTaps: boolean) {
    this.#blocks = new Set(layer.kind === 'languageModel' ? layer.blocks : []);
    this.#wantsTaps = wantsTaps;
  }

  note(layer: Layer, value: Tensor): void {
    const isBlock = this.#blocks.has(layer);
    if (!isBlock && !this.#wantsTaps) return;
    const values = hostValues(value);
    if (isBlock) this.blocks.set(layer.name, values);
    if (this.#wantsTaps) this.taps.set(layer.name, values);
  }
}
