/** Norms: layer norm, RMSNorm, RMSNorm with a gate, and norms of each head. */
import type { Param } from '../param.js';
import type { ActivationName } from './activation-kinds.js';
import type { Node } from './layer-node.js';

/**
 * Normalises every `size` values: (x − mean) / sqrt(variance + eps) · (offset + weight) + bias. The weight is [size], or
 * [parts, size] with a row for each part of the last dimension; without a weight, the factor is 1.
 */
export interface LayerNorm extends Node<'layerNorm'> {
  readonly weight: Param | undefined;
  /** [size] */
  readonly bias: Param | undefined;
  readonly eps: number;
  /** Added to the weight: 1 in Nemotron, 0 elsewhere. */
  readonly offset: number;
  readonly size: number;
}

/**
 * x / sqrt(mean(x²) + eps) · (offset + weight) over every `size` values (arXiv 1910.07467); weight [size]. Without a
 * weight, the factor is 1.
 */
export interface RmsNorm extends Node<'rmsNorm'> {
  readonly weight: Param | undefined;
  readonly eps: number;
  readonly size: number;
  /** Added to the weight: 1 in Gemma, 0 elsewhere. */
  readonly offset: number;
}

export type NormLayer = LayerNorm | RmsNorm;

/**
 * RMSNorm of x with a gate of the same width: norm(x · f(gate)), or norm(x) · f(gate). The values are normalised in
 * groups of equal width. A weight of a group's width serves every group; otherwise it has the whole width.
 */
export interface GatedRmsNorm extends Node<'gatedRmsNorm'> {
  readonly weight: Param;
  readonly eps: number;
  readonly width: number;
  readonly groups: number;
  readonly activation: ActivationName;
  /** Whether the gate multiplies what is normalised, or the result. */
  readonly gated: 'before' | 'after';
}

/** A norm of its own for each head, as consecutive parts of the last dimension. */
export interface HeadNorms extends Node<'headNorms'> {
  readonly norms: readonly NormLayer[];
}
