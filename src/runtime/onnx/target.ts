import type { Compute } from '../engine.js';

/** What a graph is made for. */
export interface Target {
  /** Of ONNX Runtime, which computes it. */
  readonly provider: 'cpu' | 'webgpu' | 'cuda' | 'dml' | 'coreml';
  /** Bytes of one tensor that an operation can see. */
  readonly maxBindingBytes: number;
  /** What products will be computed in; the graph is made in float32 first, see float16.ts. */
  readonly compute: Compute;
}

/** What an operation sees at least, where a provider limits it: WebGPU guarantees it. */
export const GUARANTEED_BYTES = {
  cpu: Number.POSITIVE_INFINITY,
  webgpu: 2 ** 27,
  cuda: Number.POSITIVE_INFINITY,
  dml: Number.POSITIVE_INFINITY,
  coreml: Number.POSITIVE_INFINITY,
} as const satisfies Record<Target['provider'], number>;

/** The processor, which sees all of its memory. */
export const ON_CPU: Target = {
  provider: 'cpu',
  maxBindingBytes: GUARANTEED_BYTES.cpu,
  compute: 'f32',
};

/** Elements of float32 that an operation can see of one tensor. */
export const mostElements = ({ maxBindingBytes }: Target): number =>
  Math.floor(maxBindingBytes / Float32Array.BYTES_PER_ELEMENT);

/** Tokens for which scores are to be small enough for one operation, if those of one head are. */
const TOKENS = 4096;

/** Heads whose scores one operation may compute. */
export const headsAtATime = (target: Target, heads: number): number =>
  Math.min(heads, Math.max(1, Math.floor(mostElements(target) / TOKENS ** 2)));

/** A number as a sum of ones that are at most so large. */
export function parts(whole: number, largest: number): number[] {
  const size = Math.min(whole, largest);
  return Array.from({ length: Math.ceil(whole / size) }, (_, index) =>
    Math.min(size, whole - index * size),
  );
}
