/** Results that a command puts together from several use cases. Those of one use case are next to it. */

import type { Problem } from '../base/errors.js';
import type { AdapterDescription } from '../checkpoint/adapter/adapter.js';
import type { OnnxDescription } from '../checkpoint/onnx/describe-onnx.js';
import type { CheckpointSummary, TensorGroup } from '../checkpoint/summary.js';
import type { SrteSurvey } from '../convert/conversion/srte/survey-srte.js';
import type { MemoryOnGpu } from '../estimate/fit/memory-on-gpu.js';
import type { WeightFormat } from '../estimate/fit/serving/weight-types.js';
import type { StoredModel } from '../input/model-input/checkpoint/checkpoint-config.js';
import type { CheckpointFacts } from '../input/model-input/checkpoint/checkpoint-model.js';
import type { OnnxView } from '../input/model-input/onnx/onnx-tensors.js';
import type { RopeSettings } from '../input/model-input/rope-settings.js';
import type { RopeAnalysis } from '../model/budget/analyse-rope.js';
import type { Exact, Figure } from '../model/budget/figure.js';
import type { GenerationFlops } from '../model/budget/flops.js';
import type {
  BlockBudget,
  LimitCheck,
  ModelProfile,
  ResolvedSetting,
  TensorEntry,
} from '../model/budget/profile-model.js';
import type { PublishedReport } from '../model/budget/published/explanations.js';
import type { DiagramFacts, DiagramLink, DiagramNode } from '../model/diagram/diagram.js';
import type { StoredWeights } from '../model/quantization/stored-weights.js';

/**
 * A new config, and the JSON Schema that it names for editors.
 * @title minimind init --json
 */
export interface InitResult {
  readonly schema: 'minimind/init@1';
  /** Preset of the config: `hybrid/tiny`. */
  readonly preset: string;
  /** Family of the model. */
  readonly family: string;
  /** The written file; `-` for standard output. */
  readonly file: string;
  /** The JSON Schema that the config names; null for `-`, and where a different file of its name was kept. */
  readonly schemaFile: string | null;
  /** The config itself, where the file is `-`. */
  readonly text?: string;
}

/**
 * A page to explore a model in a browser.
 * @answer minimind explore --json
 */
export interface ExploreResult {
  readonly schema: 'minimind/explore@1';
  /** Name of the model's config. */
  readonly model: string;
  /** Name of the second model's config; null for one model. */
  readonly against: string | null;
  /** The written page; null for a page that is served. */
  readonly file: string | null;
  /** Address of a served page; null for a page that is written. */
  readonly url: string | null;
  /** Size of the page. @count */
  readonly bytes: number;
}

/** A config without errors. */
export interface ValidFile {
  /** Path as the user wrote it. */
  readonly file: string;
  /** Always true: a config with errors ends with an error instead. */
  readonly valid: true;
  /** Family of the model; null for the config of a training whose model is not described here. */
  readonly family: string | null;
  /** Parameters of the model, shared tensors once; null where the family is. */
  readonly parameters: number | null;
  /** Program of the config of a training; absent for the config of a model. */
  readonly program?: string;
  /** Warnings about the config. */
  readonly warnings: readonly Problem[];
}

/**
 * Configs without errors. With an invalid one, the answer is an error.
 * @answer minimind validate --json, when every file is valid
 */
export interface ValidationResult {
  readonly schema: 'minimind/validate@1';
  /** The valid configs, in the order of the command line. */
  readonly files: readonly ValidFile[];
}

/** A node of a diagram, in the order of computation. */
export interface DrawnNode extends DiagramFacts, Pick<DiagramNode, 'id' | 'change' | 'before'> {
  /** Node that it is in; null at the top. */
  readonly parent: string | null;
  /** Whether it is outside of the stream from ids to logits, because several blocks use it. */
  readonly isShared: boolean;
}

/** Boxes of another model that differ. */
export interface DrawnDifference {
  /** The other model, as the user wrote it. */
  readonly file: string;
  /** Boxes that only the drawn model has. @count */
  readonly added: number;
  /** Boxes that only the other model has. @count */
  readonly removed: number;
  /** Boxes with other sizes. @count */
  readonly changed: number;
}

/**
 * A model as a block diagram.
 * @answer minimind draw --json
 */
export interface DrawResult {
  readonly schema: 'minimind/draw@1';
  /** Path of the model as the user wrote it. */
  readonly file: string;
  /** Family of the model. */
  readonly family: string;
  /** Parameters of the model, shared tensors once. @count */
  readonly parameters: number;
  /** FLOPs of a forward pass. @exact */
  readonly flops: Exact;
  /** Sequences of the forward pass. @count */
  readonly batch: number;
  /** Tokens per sequence. @count */
  readonly context: number;
  /** Blocks of the model. @count */
  readonly blocks: number;
  /** Block that is drawn alone; null for the whole model, or another part. */
  readonly block: number | null;
  /** Beginning of the names of the tensors of the part that is drawn alone; null for the whole model, or a block. */
  readonly part: string | null;
  /** Nodes, parents before their children. */
  readonly nodes: readonly DrawnNode[];
  /** Boxes that use tensors of other boxes. */
  readonly links: readonly DiagramLink[];
  /** Differences from another model; null without one. */
  readonly against: DrawnDifference | null;
}

/**
 * Rotations of a model under every published scaling method.
 * @answer minimind rope --json
 */
export interface RopeResult extends RopeAnalysis {
  readonly schema: 'minimind/rope@1';
  /** Path of the model as the user wrote it. */
  readonly file: string;
  /** Family of the model. */
  readonly family: string;
  /** YaRN for the config; null where it is not needed, or the family has no settings for it. */
  readonly settings: RopeSettings | null;
}

/** The graph of an ONNX file, and the tensors of its model. */
export interface OnnxInspection extends OnnxDescription, OnnxView {
  /** Groups of the tensors under the names of the model. */
  readonly components: readonly TensorGroup[];
}

/**
 * Tensors, content and model of a checkpoint.
 * @answer minimind inspect --json
 */
export interface InspectResult extends CheckpointSummary {
  readonly schema: 'minimind/inspect@1';
  /** The glob that the names in `tensors` match; absent without `--filter`. */
  readonly filter?: string;
  /** Comparison of the SRTE tables; absent without `--srte`. */
  readonly srte?: SrteSurvey;
  /** The LoRA adapter; absent for a whole model. */
  readonly adapter?: AdapterDescription;
  /** Null when neither a config nor a name shows it. */
  readonly model: Pick<StoredModel, 'family' | 'config' | 'srte' | 'ignored'> | null;
  /** Preset or published model with the same tensors, for weights without a config; absent without one. */
  readonly like?: string;
  /** The graph of an ONNX file, and the tensors of its model; absent in other formats. */
  readonly onnx?: OnnxInspection;
  /**
   * Elements of the distinct weights without buffers; absent without a config, or with words of an unknown packing.
   * @count
   */
  readonly parameters?: number;
}

/** Size of the weights in a type that `fit` serves. @closed */
interface ServedWeights {
  /** Type of the served weights. */
  readonly dtype: 'int8' | 'int4';
  /** Bytes of the weights, with scales. */
  readonly bytes: Figure;
}

/** Parts that the figures of a model with an encoder leave out. */
export interface EncoderFacts {
  /** Whether the model is an encoder alone, which has no cache and generates no tokens. */
  readonly isAlone: boolean;
  /** Part whose FLOPs are not counted: `audio encoder`; null if all are. */
  readonly uncounted: string | null;
}

/**
 * Parameters, memory and FLOPs of a model.
 * @answer minimind profile --json
 */
export interface ProfileResult extends ModelProfile {
  readonly schema: 'minimind/profile@1';
  /** Path of the model as the user wrote it. */
  readonly file: string;
  /** Family of the model. */
  readonly family: string;
  /** Sizes and types that the figures are counted for. */
  readonly setting: ResolvedSetting;
  /** Limits of `--max-…`, each with its figure. */
  readonly checks: readonly LimitCheck[];
  /** Explanations of a published number; absent without `--published`. */
  readonly published?: PublishedReport;
  /** Budget of each block; absent without `--layers`. */
  readonly layers?: readonly BlockBudget[];
  /** All tensors; absent without `--tensors`. */
  readonly tensors?: readonly TensorEntry[];
  /** Set when the model is from a checkpoint. */
  readonly checkpoint?: CheckpointFacts;
  /** Set for a model with a LoRA adapter. */
  readonly adapter?: AdapterDescription;
  /** Set when a config has quantized weights. */
  readonly stored?: StoredWeights;
  /** Number of blocks. @count */
  readonly layerCount: number;
  /** Generating the last tokens of the context; absent for a single token. */
  readonly generation?: GenerationFlops;
  /** Set for a model with an encoder. */
  readonly encoder?: EncoderFacts;
  /** Format of the weights in inference; absent for a type that nothing serves. */
  readonly weights?: WeightFormat;
  /** Memory on one GPU, workspace included; absent for a type that nothing serves. */
  readonly onGpu?: MemoryOnGpu;
  /** Weights quantized as `fit` serves them, with scales. */
  readonly served: readonly ServedWeights[];
}
