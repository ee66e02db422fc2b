import type { Shape } from '../tensor/shape.js';

/** Floats of an engine's input or output, row-major. */
export interface Values {
  readonly shape: Shape;
  readonly data: Float32Array;
}

/** Token ids, [B, T], row-major. */
export interface Ids {
  readonly batch: number;
  readonly tokens: number;
  readonly data: Int32Array;
}
