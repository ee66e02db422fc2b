/** Interface for training chains of layers. */
import type { EngineInfo, Values } from './engine.js';

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
  readonly learningRate: number;
  readonly betas: readonly [number, number];
  readonly epsilon: number;
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

export interface Trainer {
  readonly info: EngineInfo;
  /** x [N, in] · weightᵀ, of weight [out, in] → [N, out] */
  product(x: Values, weight: Values): Promise<Values>;
  /** @throws UserError when memory is insufficient for chains of this size, or their data. */
  refuseTooMany(size: TrainingSize): void;
  train(chain: readonly ChainLayer[], task: Task, optimizer: AdamWSettings): Promise<TrainingRun>;
}
