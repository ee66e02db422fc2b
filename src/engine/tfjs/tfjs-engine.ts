import type { Layer, Router } from '../../model/architecture/layer.js';
import { Calls } from '../calls.js';
import type {
  Engine,
  EngineInfo,
  Program,
  ProgramOptions,
  RunInput,
  RunOutput,
  Values,
} from '../engine.js';
import { dequantizedSource } from '../weights/quantized-weights.js';
import type { BackendName } from './backends.js';
import { openBackend } from './backends.js';
import { startRun } from './interpret.js';
import type { Backend, Packages, Tensor, Tensor3D } from './packages.js';
import { onBackend, scoped } from './packages.js';
import type { LayerStates } from './run.js';
import { emptyMemory, readValues } from './run.js';
import { planWeights, Weights } from './weight-plan.js';

/** A subtree of a description with its weights on a backend, interpreted at each run. */
export class TfjsProgram implements Program {
  readonly #backend: Backend;
  readonly #layer: Layer;
  readonly #weights: Weights;
  readonly #options: ProgramOptions;
  readonly #calls: Calls<LayerStates>;
  #isReleased = false;

  constructor(backend: Backend, layer: Layer, weights: Weights, options: ProgramOptions) {
    this.#backend = backend;
    this.#layer = layer;
    this.#weights = weights;
    this.#options = options;
    this.#calls = new Calls(this, layer, options);
  }

  get elements(): number {
    return this.#weights.elements;
  }

  get weightBytes(): number {
    return this.elements * Float32Array.BYTES_PER_ELEMENT;
  }

  run(input: RunInput): Promise<RunOutput> {
    return onBackend(this.#backend, () => scoped(this.#backend.tf, () => this.#compute(input)));
  }

  async release(): Promise<void> {
    this.#isReleased = true;
    this.#weights.dispose();
  }

  #compute(input: RunInput): RunOutput {
    if (this.#isReleased) throw new Error('the program has been released');
    const { tf } = this.#backend;
    const call = this.#calls.check(input);
    const decoding =
      call.total === undefined
        ? undefined
        : {
            totalTokens: call.total,
            cacheType: this.#options.decoding?.cacheType,
            before: call.kept ?? emptyMemory(),
            after: emptyMemory(),
          };
    const recorder = new Recorder(this.#layer, this.#options);
    const { run, release } = startRun(
      {
        tf,
        weights: this.#weights,
        batch: call.batch,
        tokens: call.tokens,
        start: call.start,
        ids: input.ids,
        lastTokens: input.lastTokens,
        decoding,
        ...(recorder.sent && {
          noteSent: (router: Router, counts: readonly number[]) =>
            recorder.noteSent(router, counts),
        }),
      },
      (layer, value) => recorder.note(layer, value),
    );
    try {
      const inputs = (input.inputs ?? []).map(({ data, shape }) => tf.tensor(data, [...shape]));
      const output = hostValues(run.apply(this.#layer, ...(inputs as Tensor3D[])));
      const { blocks, taps, sent } = recorder;
      const state = decoding && this.#calls.stateAfter(call, decoding.after);
      return { output, blocks, taps, ...(sent && { sent }), ...(state && { state }) };
    } finally {
      release();
    }
  }
}

const hostValues = (tensor: Tensor): Values => ({ shape: tensor.shape, data: readValues(tensor) });

/** Copies the values that a run reports as they are computed. */
class Recorder {
  readonly blocks = new Map<string, Values>();
  readonly taps = new Map<string, Values>();
  readonly sent: Map<string, Values> | undefined;
  readonly #blocks: ReadonlySet<Layer>;
  readonly #wantsTaps: boolean;

  constructor(layer: Layer, { blocks = true, taps = false, sent = false }: ProgramOptions) {
    this.#blocks = new Set(blocks && layer.kind === 'languageModel' ? layer.blocks : []);
    this.#wantsTaps = taps;
    this.sent = sent ? new Map() : undefined;
  }

  note(layer: Layer, value: Tensor): void {
    const isBlock = this.#blocks.has(layer);
    if (!isBlock && !this.#wantsTaps) return;
    const values = hostValues(value);
    if (isBlock) this.blocks.set(layer.name, values);
    if (this.#wantsTaps) this.taps.set(layer.name, values);
  }

  /** A router that is used again adds to its own. */
  noteSent({ name }: Router, counts: readonly number[]): void {
    const before = this.sent?.get(name)?.data;
    const data = Float32Array.from(counts, (count, expert) => count + (before?.[expert] ?? 0));
    this.sent?.set(name, { shape: [counts.length], data });
  }
}

interface TfjsOptions {
  /** Threads; wasm and cpu ignore the number, as they have one thread in Node. */
  readonly threads: number;
  readonly backend: BackendName;
}

/**
 * TensorFlow.js, which interprets the description, in float32 only. Loads the library, so import this lazily.
 * @throws UserError when the backend cannot be used here.
 */
export async function openTfjs(
  { threads, backend: name }: TfjsOptions,
  packages?: Packages,
): Promise<Engine> {
  const backend = await openBackend(name, threads, packages);
  return {
    info: infoOf(backend),
    load: (layer, source, loadOptions = {}) =>
      onBackend(backend, () => {
        const { weightForm } = loadOptions;
        const values = weightForm ? dequantizedSource(source, layer, weightForm) : source;
        const weights = new Weights(backend, planWeights(layer), values);
        return new TfjsProgram(backend, layer, weights, loadOptions);
      }),
    // A backend belongs to the process; an engine owns only its programs.
    close: async () => {},
  };
}

export const infoOf = ({ version, provider, device, threads }: Backend): EngineInfo => ({
  name: 'tfjs',
  version,
  provider,
  device,
  deviceKind: device === 'cpu' ? 'cpu' : 'cuda',
  isSoftware: false,
  memoryBytes: null,
  threads,
  compute: 'f32',
});
