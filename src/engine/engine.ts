/**
 * Interface of an engine: it loads a subtree of the description and runs it. It hides the library behind it. Shapes: B
 * batch, T tokens of a call, H hidden, V vocabulary.
 */

import { UserError } from '../base/errors.js';
import type { Shape } from '../base/tensor/dtype.js';
import type { WeightForm } from '../base/tensor/group-quantization.js';
import { isRecord } from '../base/text/words.js';
import type { LanguageModel, Layer } from '../model/architecture/layer.js';
import type { Param } from '../model/architecture/param.js';
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
  /**
   * Whether a run continues from the state of the previous one: keys and values, the convolution's last inputs, the
   * state of the scan. Only for a language model and its blocks. `totalTokens` is the final number, on which the local
   * heads' rule depends (see `model/architecture/masks.ts`).
   */
  readonly decoding?: { readonly totalTokens: number };
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

/** The device was lost during use: neither this call nor a later one can run on it. */
export class DeviceLostError extends UserError {}

// A model as standalone files: the files to write and their summary.

/** A file to be written. */
export interface ExportFile {
  readonly name: string;
  /** Bytes. */
  readonly length: number;
  /** Content in pieces that may reuse their memory. */
  readonly pieces: () => Iterable<Uint8Array>;
}

export interface OnnxOperator {
  /** Domain of the operator set: `ai.onnx`, `com.microsoft`. */
  readonly domain: string;
  /** Type of the operator. */
  readonly operator: string;
  /** Number of nodes in the graph, including the bodies of loops. @integer @minimum 1 */
  readonly count: number;
}

/** Element type of a value in an ONNX graph. */
export type OnnxElementType =
  | 'int64'
  | 'int32'
  | 'uint8'
  | 'bool'
  | 'float64'
  | 'float32'
  | 'float16'
  | 'bfloat16';

/** An input or output. */
export interface OnnxValue {
  /** Name of the value. */
  readonly name: string;
  /** Element type. */
  readonly type: OnnxElementType;
  /** Sizes of the dimensions; a name is a size that each run chooses. @count */
  readonly shape: readonly (number | string)[];
}

export interface OnnxExport {
  /** The graph, and the weights when they are in a separate file. */
  readonly files: readonly ExportFile[];
  /** Version of the format. @integer @minimum 1 */
  readonly irVersion: number;
  /** Operator sets that the graph uses. */
  readonly operatorSets: readonly {
    /** Domain of the operators; `ai.onnx` for ONNX's own. */
    readonly domain: string;
    /** Version of the operator set. @integer @minimum 1 */
    readonly version: number;
  }[];
  /** Inputs of the graph. */
  readonly inputs: readonly OnnxValue[];
  /** Outputs of the graph. */
  readonly outputs: readonly OnnxValue[];
  /** Sorted by domain and name. */
  readonly operators: readonly OnnxOperator[];
  /** Tensors of the weights, each once, however many layers share it. */
  readonly weights: {
    /** Number of tensors. @count */
    readonly tensors: number;
    /** Their elements. @count */
    readonly elements: number;
    /** Their bytes. @count */
    readonly bytes: number;
    /** Type of the weights that are not quantized. */
    readonly dtype: 'F32';
    /** Quantized matrices; null without any. */
    readonly quantized:
      | (WeightForm & {
          /** Quantized tensors. @count */
          readonly tensors: number;
          /** Their values. @count */
          readonly elements: number;
        })
      | null;
  };
}

// Interface for training chains of layers, and whole models.

/** Activations with a gradient. */
export type TrainedActivation = 'silu' | 'relu' | 'gelu';

/** Layers of a chain, applied in sequence, with their initial parameters. */
export type ChainLayer =
  /** Only as the first layer: it passes on no gradient. weight [H], bias [H] */
  | {
      readonly kind: 'layerNorm';
      readonly epsilon: number;
      readonly weight: Values;
      readonly bias: Values;
    }
  /** weight [out, in], bias [out] */
  | { readonly kind: 'linear'; readonly weight: Values; readonly bias: Values }
  | { readonly kind: TrainedActivation }
  /** `maskOf` returns the factors of `count` values, new in each step. */
  | { readonly kind: 'dropout'; readonly maskOf: (count: number) => Float32Array };

/** Settings with the names of PyTorch (torch.optim.AdamW). */
export interface AdamWSettings {
  /** Learning rate. */
  readonly learningRate: number;
  /** Decay rates of the moments. */
  readonly betas: readonly [number, number];
  /** Term of the denominator. */
  readonly epsilon: number;
  /** Weight decay. */
  readonly weightDecay: number;
}

/** Training data: each row of x [N, in] and its target row of y [N, out]. */
export interface Task {
  readonly x: Values;
  readonly y: Values;
}

/** A chain in training, with all rows in each step. */
export interface TrainingRun {
  /** Updates the parameters. Returns the mean squared error before the update. */
  step(): Promise<number>;
  /** Current parameters, in the order of the layers, weight before bias. */
  parameters(): Promise<Values[]>;
  release(): Promise<void>;
}

/** Size of chains of one or two layers with the same rows. */
export interface TrainingSize {
  /** Total parameters of all chains. */
  readonly parameters: number;
  readonly rows: number;
  /** Widths of x, y, and the hidden layer. */
  readonly input: number;
  readonly output: number;
  readonly hidden: number;
}

/** A model that learns one batch: each token from those before it. */
export interface TrainedModel {
  readonly model: LanguageModel;
  /** Initial weights. */
  readonly weights: WeightSource;
  /** Two tokens or more in a sequence. */
  readonly ids: TokenIds;
  readonly optimizer: AdamWSettings;
  /** Limit of the norm of all gradients together; undefined for none. */
  readonly maxGradientNorm: number | undefined;
}

/** A value that is infinite or not a number. */
export interface NonFinite {
  /** The output of a layer, the gradient of a tensor, or a tensor after the update. */
  readonly what: 'output' | 'gradient' | 'parameter';
  /** Name of the layer or tensor; `loss` for the loss of finite logits. */
  readonly name: string;
}

export interface TrainingStep {
  /** Mean cross-entropy in nats before the update. */
  readonly loss: number;
  /** Norm of all gradients together, before clipping. */
  readonly gradientNorm: number;
  readonly clipped: boolean;
  /** Tensors whose gradient is zero or does not exist; an expert of a packed one as `name[expert]`. */
  readonly withoutGradient: readonly string[];
  /** The first value of this step that is not finite. */
  readonly nonFinite: NonFinite | null;
}

/** A model in training. */
export interface ModelTraining {
  /** Trained tensors, tied ones once. */
  readonly trained: readonly Param[];
  /** Computes the loss, and updates the parameters. */
  step(learningRate?: number): Promise<TrainingStep>;
  /** Loss of the current parameters. */
  loss(): Promise<number>;
  /** Gradients of the current parameters, without tensors that have none. */
  gradients(): Promise<ReadonlyMap<Param, Float32Array>>;
  parameters(): Promise<ReadonlyMap<Param, Float32Array>>;
  release(): Promise<void>;
}

export interface Trainer {
  readonly info: EngineInfo;
  /** x [N, in] · weightᵀ, of weight [out, in] → [N, out] */
  product(x: Values, weight: Values): Promise<Values>;
  /** @throws UserError when memory is insufficient for chains of this size, or their data. */
  refuseTooMany(size: TrainingSize): void;
  train(chain: readonly ChainLayer[], task: Task, optimizer: AdamWSettings): Promise<TrainingRun>;
  trainModel(request: TrainedModel): Promise<ModelTraining>;
}
