/** A model exported to ONNX: the files to write, and a summary of the graph. */

import type { WeightForm } from '../base/tensor/group-quantization.js';

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
