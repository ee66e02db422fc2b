/** Interface of a trainer: it trains chains of layers, and whole models. Shapes: N rows, H hidden. */

import type { LanguageModel } from '../model/architecture/layer.js';
import type { Param } from '../model/architecture/param.js';
import type { EngineInfo, TokenIds, Values } from './engine.js';
import type { WeightSource } from './weights/weights.js';

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
