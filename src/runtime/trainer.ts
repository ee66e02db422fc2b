/** Chains of layers that learn: what one is, and what trains it. */
import type { EngineInfo, Values } from './engine.js';

/** What a chain applies to its rows, one after the other; with what its parameters begin with. */
export type ChainLayer =
  /** Only as the first: it passes no gradient on. weight [H], bias [H] */
  | {
      readonly kind: 'layerNorm';
      readonly epsilon: number;
      readonly weight: Values;
      readonly bias: Values;
    }
  /** weight [out, in], bias [out] */
  | { readonly kind: 'linear'; readonly weight: Values; readonly bias: Values }
  | { readonly kind: 'silu' }
  /** `maskOf` gives what so many values are multiplied with, anew in each step. */
  | { readonly kind: 'dropout'; readonly maskOf: (count: number) => Float32Array };

/** As PyTorch has it (torch.optim.AdamW). */
export interface AdamWSettings {
  readonly learningRate: number;
  readonly betas: readonly [number, number];
  readonly epsilon: number;
  readonly weightDecay: number;
}

/** What a chain is to learn: from each row of x [N, in] that of y [N, out]. */
export interface Task {
  readonly x: Values;
  readonly y: Values;
}

/** A chain that learns, by all rows in each step. */
export interface Training {
  /** Changes the parameters. Gives the mean squared error before that. */
  step(): Promise<number>;
  /** As they are now, in the order of the layers, weight before bias. */
  parameters(): Promise<Values[]>;
  release(): Promise<void>;
}

/** Of chains of one or two layers that learn the same rows. */
export interface TrainingSize {
  /** Of all chains. */
  readonly parameters: number;
  readonly rows: number;
  /** Widths: of x, of y, and between two layers. */
  readonly input: number;
  readonly output: number;
  readonly hidden: number;
}

export interface Trainer {
  readonly info: EngineInfo;
  /** x [N, in] · weightᵀ, of weight [out, in] → [N, out] */
  product(x: Values, weight: Values): Promise<Values>;
  /** @throws UserError when there is no room for chains of so many parameters, or their data. */
  refuseTooMany(size: TrainingSize): void;
  train(chain: readonly ChainLayer[], task: Task, optimizer: AdamWSettings): Promise<Training>;
}
