/**
 * Interface of an engine: it loads a subtree of the description and runs it. It hides the library behind it. Shapes: B
 * batch, T tokens of a call, H hidden, V vocabulary.
 */

import { UserError } from '../base/errors.js';
import type { CacheType, Shape } from '../base/tensor/dtype.js';
import type { WeightForm } from '../base/tensor/group-quantization.js';
import { isRecord } from '../base/values.js';
import type { LanguageModel, Layer } from '../model/architecture/layer.js';
import type { WeightSource } from './weights/weights.js';

export const ENGINES = {
  onnx: 'ONNX Runtime',
  tfjs: 'TensorFlow.js',
} as const satisfies Record<string, string>;

export type EngineName = keyof typeof ENGINES;

/** Devices: the processor, or a graphics card by its API. */
export const DEVICES = {
  cpu: 'the CPU',
  cuda: 'CUDA',
  webgpu: 'WebGPU',
  directml: 'DirectML',
  coreml: 'Core ML',
} as const satisfies Record<string, string>;

export type DeviceName = keyof typeof DEVICES;

/**
 * Number type of matrix products; everything else is float32. `f16` works like PyTorch's autocast: operands and results
 * of products are rounded to float16.
 */
export type Compute = 'f32' | 'f16';

/** Engine and device, as reported in every output. */
export interface EngineInfo {
  /** Library: ONNX Runtime or TensorFlow.js. */
  readonly name: EngineName;
  /** Version of the library. */
  readonly version: string;
  /** Name in the library: `cpu`, `webgpu`, `cuda`, `dml`, `coreml`, `wasm`, `tensorflow`. */
  readonly provider: string;
  /** `cpu`, or the name of a graphics card, generic when unknown. */
  readonly device: string;
  /** Device: the processor, or a graphics card by the interface that reaches it. */
  readonly deviceKind: DeviceName;
  /** Whether it is a graphics adapter that computes on the processor. */
  readonly isSoftware: boolean;
  /** Memory of the graphics card; null without one or when unknown. @integer */
  readonly memoryBytes: number | null;
  /** Threads of a run. @integer @minimum 1 */
  readonly threads: number;
  readonly compute: Compute;
  /** Form of quantized matrices; absent in float32. */
  readonly weightForm?: WeightForm;
}

/** Whether a value out of a file describes an engine. */
export function isEngineInfo(value: unknown): value is EngineInfo {
  if (!isRecord(value)) return false;
  const { name, version, provider, device, deviceKind, compute, threads } = value;
  const texts = [name, version, provider, device, deviceKind, compute];
  return texts.every((each) => typeof each === 'string') && typeof threads === 'number';
}

export interface ProgramOptions {
  /**
   * Whether to keep the output of every block of a language model; true by default. A run on a graphics card copies
   * each to the memory of the process, which takes time.
   */
  readonly blocks?: boolean;
  /**
   * Whether to keep the output of every layer of the subtree. They are the `taps` of a result, by the layer's path:
   * `layers.0.mamba.conv1d`. Costs time and memory.
   */
  readonly taps?: boolean;
  /** Whether to count the tokens that each router sends to its experts: the `sent` of a result. */
  readonly sent?: boolean;
  /**
   * Whether a run continues from the state of the previous one: keys and values, the convolution's last inputs, the
   * state of the scan. Only for a language model and its blocks. `totalTokens` is the final number, on which the local
   * heads' rule depends (see `model/architecture/masks.ts`).
   */
  readonly decoding?: { readonly totalTokens: number; readonly cacheType?: CacheType | undefined };
  /**
   * Form of the matrices that `quantizedMatrices` selects; float32 by default. ONNX Runtime keeps them packed and
   * rounds the inputs of their products to 8 bits. TensorFlow.js computes with the rounded values in float32.
   */
  readonly weightForm?: WeightForm | undefined;
}

/** Size of a call: B sequences of T tokens. */
export interface CallSize {
  readonly batch: number;
  readonly tokens: number;
}

export interface Engine {
  readonly info: EngineInfo;
  /**
   * Prepares a subtree of a model for running. Layers take the inputs that their docstrings name: a language model
   * token ids, an alignment two branches, an SRTE nothing, all others one value [B, T, in].
   * @param weights Read once, here.
   */
  load(layer: Layer, weights: WeightSource, options?: ProgramOptions): Promise<Program>;
  /**
   * Error if the engine cannot run a language model on this number of tokens, when known in advance; absent when only
   * memory limits it.
   */
  obstacleTo?(model: LanguageModel, size: CallSize): UserError | undefined;
  /** Frees the engine's resources. Release its programs first. */
  close(): Promise<void>;
}

export interface RunInput {
  /** Input of a language model or an embedding. */
  readonly ids?: TokenIds;
  /** Input of all other layers: one value, or for an alignment Mamba's and attention's. */
  readonly inputs?: readonly Values[];
  /** Number of rows of an SRTE. */
  readonly tokens?: number;
  /** `RunOutput.state` of the previous call, when decoding; undefined for the first. */
  readonly state?: StateHandle | undefined;
  /** Number of last tokens whose logits a language model returns, [B, n, V]; all when absent. */
  readonly lastTokens?: number | undefined;
}

export interface RunOutput {
  /** Output of the layer: logits [B, T, V], or a value [B, T, …]; an SRTE's rows are [1, T, H]. */
  readonly output: Values;
  /** Output of every block of a language model, [B, T, H], by its path: `layers.0`. Empty when not kept. */
  readonly blocks: ReadonlyMap<string, Values>;
  /** Empty unless requested. */
  readonly taps: ReadonlyMap<string, Values>;
  /** Tokens of this call that each expert computed, [E], by the path of the router. Absent unless requested. */
  readonly sent?: ReadonlyMap<string, Values>;
  /** State for the next call, when decoding. */
  readonly state?: StateHandle;
}

/** State of a program, opaque outside its engine. */
export interface StateHandle {
  /** Number of earlier tokens. */
  readonly position: number;
}

/** A subtree ready to run. */
export interface Program {
  /** Elements of the weights it created: a copy counts, another form of the same does not. */
  readonly elements: number;
  /** Bytes of its weights on the device. */
  readonly weightBytes: number;
  run(input: RunInput): Promise<RunOutput>;
  /**
   * State after the first `position` tokens of `state`, without computing anything; undefined when the engine does not
   * keep it, as for recurrent layers. Absent when it never does.
   */
  rewind?(state: StateHandle, position: number): StateHandle | undefined;
  /** Frees a state that no call will use again, before the garbage collector would. Absent when it does not. */
  discard?(state: StateHandle): void;
  release(): Promise<void>;
}

/** Floats of an engine's input or output, row-major. */
export interface Values {
  readonly shape: Shape;
  readonly data: Float32Array;
}

/** Token ids, [B, T], row-major. */
export interface TokenIds {
  readonly batch: number;
  readonly tokens: number;
  readonly data: Int32Array;
}

/** Error of a device that was lost during use: neither this call nor a later one can run on it. */
export class DeviceLostError extends UserError {}
