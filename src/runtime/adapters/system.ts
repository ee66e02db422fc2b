/** What the operating system tells of graphics cards. */
import type { Finding } from '../../errors.js';
import type { Adapter } from './adapter.js';

export interface SystemCards {
  /** All that are there, the likely fastest first. */
  readonly cards: readonly Adapter[];
  /** Those of them that have what WebGPU needs: a driver, and leave to use it. */
  readonly forWebgpu: readonly Adapter[];
  /** What stands in the way of the others; where there is none, where was looked. */
  readonly findings: readonly Finding[];
}
