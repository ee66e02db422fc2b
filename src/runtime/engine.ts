/**
 * What an engine is: it loads a subtree of the description and runs it. Nothing of the libraries behind it
 * shows here. Shapes: B batch, T tokens of a call, H hidden, V vocabulary.
 */
import type { LanguageModel, Layer } from '../architecture/layer.js';
import { UserError } from '../errors.js';
import type { Shape } from '../tensor/dtype.js';
import type { WeightSource } from './weights.js';

export const ENGINES = {
  onnx: 'ONNX Runtime',
  tfjs: 'TensorFlow.js',
} as const satisfies Record<string, string>;

export type EngineName = keyof typeof ENGINES;

/** What computes: the processor, or a graphics card by the interface that reaches it. */
export const DEVICES = {
  cpu: 'the CPU',
  cuda: 'CUDA',
  webgpu: 'WebGPU',
  directml: 'DirectML',
  coreml: 'Core ML',
} as const satisfies Record<string, string>;

export type DeviceName = keyof typeof DEVICES;

/**
 * What matrix products are computed in; all between them is float32. With `f16` it is what PyTorch's autocast
 * does: operands are rounded to float16, and so is the product.
 */
export type Compute = 'f32' | 'f16';

/** What computes, as every output says. */
export interface EngineInfo {
  readonly name: EngineName;
  /** Of the library. */
  readonly version: string;
  /** The library's own word: `cpu`, `webgpu`, `cuda`, `dml`, `coreml`, `wasm`, `tensorflow`. */
  readonly provider: string;
  /** `cpu`, the name of a graphics card, or that it is one where nobody tells its name. */
  readonly device: string;
  readonly deviceKind: DeviceName;
  /** Whether it passes for a graphics card, and computes on the processor. */
  readonly isSoftware: boolean;
  /** Of the graphics card; null without one, and where nobody tells. */
  readonly memoryBytes: number | null;
  readonly threads: number;
  readonly compute: Compute;
}

export interface LoadOptions {
  /**
   * Whether to keep the output of every block of a language model; true when nothing is said. A run on a
   * graphics card copies each of them to the memory of the process, which takes time.
   */
  readonly blocks?: boolean;
  /**
   * Whether to keep the value that every layer of the subtree computes. They are the `taps` of a result, by
   * the layer's path: `layers.0.mamba.conv1d`. Costs time and memory.
   */
  readonly taps?: boolean;
  /**
   * Whether a run continues from the state of the one before: keys and values, the convolution's last
   * inputs, the state of the scan. Only for a language model and its blocks. `totalTokens` is what there
   * will be in the end, on which the local heads' rule depends (see attention-rules.ts).
   */
  readonly decoding?: { readonly totalTokens: number };
}

/** Of a call: B sequences of T tokens. */
export interface CallSize {
  readonly batch: number;
  readonly tokens: number;
}

export interface Engine {
  readonly info: EngineInfo;
  /**
   * Makes a subtree of a model ready to run. Layers take what their docstrings say: a language model
   * token ids, an alignment two branches, an SRTE nothing, all others one value [B, T, in].
   * @param weights Read once, here.
   */
  load(layer: Layer, weights: WeightSource, options?: LoadOptions): Promise<Program>;
  /**
   * What keeps it from running a language model on so many tokens, where it can tell before it tries; absent where
   * nothing but memory does.
   */
  obstacleTo?(model: LanguageModel, size: CallSize): UserError | undefined;
  /** Frees what the engine holds. Programs are released before. */
  close(): Promise<void>;
}

export interface RunInput {
  /** For a language model or an embedding. */
  readonly ids?: Ids;
  /** For all other layers: one value, or for an alignment Mamba's and attention's. */
  readonly inputs?: readonly Values[];
  /** How many tokens an SRTE gives rows for. */
  readonly tokens?: number;
  /** What `RunOutput.state` was after the tokens before, when decoding; undefined for the first. */
  readonly state?: State | undefined;
}

export interface RunOutput {
  /** What the layer computes: logits [B, T, V], or a value [B, T, …]; an SRTE's rows are [1, T, H]. */
  readonly output: Values;
  /** Output of every block of a language model, [B, T, H], by its path: `layers.0`. Empty when not kept. */
  readonly blocks: ReadonlyMap<string, Values>;
  /** Empty unless asked for. */
  readonly taps: ReadonlyMap<string, Values>;
  /** When decoding: what the next run continues from. */
  readonly state?: State;
}

/** Opaque to all but the engine that made it. */
export interface State {
  /** Tokens that came before. */
  readonly position: number;
}

/** A subtree that is ready to run. */
export interface Program {
  /** Of the weights that it has made of those it was given: a copy counts, another form of the same does not. */
  readonly elements: number;
  /** That its weights take, where they are computed with. */
  readonly weightBytes: number;
  run(input: RunInput): Promise<RunOutput>;
  release(): Promise<void>;
}

/** Floats of an engine's input or output, row-major. */
export interface Values {
  readonly shape: Shape;
  readonly data: Float32Array;
}

/** Token ids, [B, T], row-major. */
export interface Ids {
  readonly batch: number;
  readonly tokens: number;
  readonly data: Int32Array;
}

/** The device went away while it was used: nothing runs on it any more, and what is asked next cannot either. */
export class DeviceLostError extends UserError {}

// A model as files that run without us: what there is to write, and to tell of it.

/** A file that is yet to be written. */
export interface PlannedFile {
  readonly name: string;
  /** Bytes. */
  readonly length: number;
  /** Its content, in pieces that may reuse their memory. */
  readonly pieces: () => Iterable<Uint8Array>;
}

export interface OnnxOperator {
  /** Of the operator set: `ai.onnx`, `com.microsoft`. */
  readonly domain: string;
  readonly operator: string;
  /** How often it stands in the graph, the bodies of loops included. */
  readonly count: number;
}

/** An input or output. */
export interface OnnxValue {
  readonly name: string;
  readonly type: string;
  /** A name stands for a size that each run chooses. */
  readonly shape: readonly (number | string)[];
}

export interface OnnxExport {
  /** The graph, and where they stand beside it the weights. */
  readonly files: readonly PlannedFile[];
  readonly irVersion: number;
  readonly operatorSets: readonly { readonly domain: string; readonly version: number }[];
  readonly inputs: readonly OnnxValue[];
  readonly outputs: readonly OnnxValue[];
  /** By domain and name. */
  readonly operators: readonly OnnxOperator[];
  readonly weights: {
    readonly tensors: number;
    readonly elements: number;
    readonly bytes: number;
    readonly dtype: 'F32';
  };
}
