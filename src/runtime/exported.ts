/** A model as files that run without us: what there is to write, and to tell of it. */

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
