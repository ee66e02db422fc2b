/** Inputs of softmax attention. Shapes: B batch, T queries, S keys. */
import type { GraphValue } from '../../graph.js';
import type { HeadRange, PositionBias } from './masks.js';

export interface ScoreHeads {
  readonly heads: number;
  readonly keyValueHeads: number;
  /** Width of a query and key. */
  readonly keyDim: number;
  readonly valueDim: number;
  readonly scale: number;
  readonly softcap: number | undefined;
}

export interface QueriesAndKeys {
  /** [B, T, heads · keyDim] */
  readonly queries: GraphValue;
  /** [B, S, keyValueHeads · keyDim] */
  readonly keys: GraphValue;
  /** [B, S, keyValueHeads · valueDim] */
  readonly values: GraphValue;
}

export interface Attended extends QueriesAndKeys {
  /** Addend of the scores: from positions, or a value for some heads, [1 or B, 1 or heads, T, S]. */
  readonly bias: PositionBias | ((heads: HeadRange) => GraphValue);
  /** Scores of some heads for a key without values, [1, heads, 1, 1]. */
  readonly sinks?: ((heads: HeadRange) => GraphValue) | undefined;
}

/** One group of heads with its own bias. */
export interface AttendedAtOnce extends QueriesAndKeys {
  /** [1 or B, 1 or heads, T, S] */
  readonly bias: GraphValue;
  /** [1, heads, 1, 1] */
  readonly sinks?: GraphValue | undefined;
}
