/**
 * The scan of a selective state space (Mamba, arXiv 2312.00752), outside the library: as its operations, T
 * steps of eight small ones each take many times as long. It has no gradient; what wants one needs those
 * operations here, or a scan backwards as a custom gradient (`tf.customGrad`).
 */
import { UserError } from '../../errors.js';
import { LANES, scanModule } from './scan-kernel.js';

const PAGE_BYTES = 65_536;
const FLOAT_BYTES = Float32Array.BYTES_PER_ELEMENT;
/** Inputs and outputs that are in the kernel's memory at a time. */
const CHUNK_BYTES = 16 * 2 ** 20;

export interface ScanSizes {
  readonly batch: number;
  /** T */
  readonly tokens: number;
  /** D */
  readonly inner: number;
  /** N */
  readonly state: number;
}

export interface ScanInput {
  readonly sizes: ScanSizes;
  /** Δ, [B, T, D], not negative. */
  readonly step: Float32Array;
  /** [B, T, D] */
  readonly x: Float32Array;
  /** B and C, [B, T, N]. */
  readonly b: Float32Array;
  readonly c: Float32Array;
  /** A · log2(e), [D, N], negative. */
  readonly rates: Float32Array;
  /** h, [B, D, N]: what the scan starts from, and afterwards what it ended with. */
  readonly state: Float32Array;
}

/** The rates of states whose log(−A) is stored: exp(Δ · A) = 2^(Δ · A · log2(e)). */
export function ratesOf(stateLog: Float32Array): Float32Array {
  return stateLog.map((value) => -Math.exp(value) * Math.LOG2E);
}

/** h = h · exp(Δ ⊗ A) + (Δ · x) ⊗ B and y = h · C, token by token. Gives y, [B, T, D]. */
export function selectiveScan(input: ScanInput): Float32Array {
  const { batch, tokens, inner, state } = input.sizes;
  const output = new Float32Array(batch * tokens * inner);
  const rowBytes = (3 * inner + 2 * padded(state)) * FLOAT_BYTES;
  const atOnce = Math.max(1, Math.floor(CHUNK_BYTES / rowBytes));
  for (let sequence = 0; sequence < batch; sequence++) {
    const end = (sequence + 1) * tokens;
    for (let from = sequence * tokens; from < end; from += atOnce) {
      scanChunk(input, sequence, from, Math.min(from + atOnce, end), output);
    }
  }
  return output;
}

const padded = (state: number) => Math.ceil(state / LANES) * LANES;

/** Tokens `from` to `to`, counted over all sequences, of one of them. */
function scanChunk(
  { sizes, step, x, b, c, rates, state }: ScanInput,
  sequence: number,
  from: number,
  to: number,
  output: Float32Array,
): void {
  const { inner, state: size } = sizes;
  const [tokens, width] = [to - from, padded(size)];
  const { run, floats } = kernel({
    step: tokens * inner,
    x: tokens * inner,
    y: tokens * inner,
    b: tokens * width,
    c: tokens * width,
    rates: inner * width,
    state: inner * width,
  });
  const own = state.subarray(sequence * inner * size, (sequence + 1) * inner * size);
  floats.step.set(step.subarray(from * inner, to * inner));
  floats.x.set(x.subarray(from * inner, to * inner));
  copyRows(b.subarray(from * size, to * size), size, floats.b, width);
  copyRows(c.subarray(from * size, to * size), size, floats.c, width);
  copyRows(rates, size, floats.rates, width);
  copyRows(own, size, floats.state, width);
  for (let channel = 0; channel < inner; channel++) {
    const column = channel * FLOAT_BYTES;
    const row = channel * width * FLOAT_BYTES;
    run(
      tokens,
      inner * FLOAT_BYTES,
      width * FLOAT_BYTES,
      floats.step.byteOffset + column,
      floats.x.byteOffset + column,
      floats.b.byteOffset,
      floats.c.byteOffset,
      floats.rates.byteOffset + row,
      floats.state.byteOffset + row,
      floats.y.byteOffset + column,
    );
  }
  output.set(floats.y, from * inner);
  copyRows(floats.state, width, own, size);
}

/** Copies rows of one width to rows of another, as far as they go; a wider target keeps zeros behind them. */
function copyRows(
  source: Float32Array,
  sourceWidth: number,
  target: Float32Array,
  targetWidth: number,
): void {
  if (sourceWidth === targetWidth) {
    target.set(source);
    return;
  }
  const width = Math.min(sourceWidth, targetWidth);
  if (width < targetWidth) target.fill(0);
  for (let from = 0, to = 0; from < source.length; from += sourceWidth, to += targetWidth) {
    target.set(source.subarray(from, from + width), to);
  }
}

/** What is used of the global of this name, which Node's types leave out. */
declare const WebAssembly: {
  readonly Memory: new (limits: { initial: number }) => Memory;
  readonly Module: new (bytes: Uint8Array<ArrayBuffer>) => object;
  readonly Instance: new (
    module: object,
    imports: { env: { memory: Memory } },
  ) => { readonly exports: { readonly run: (...parameters: number[]) => void } };
};

interface Memory {
  readonly buffer: ArrayBuffer;
  grow(pages: number): void;
}

/** A process may have too little address space left, however little is asked for. */
function withMemory<T>(allocate: () => T): T {
  try {
    return allocate();
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new UserError('system', 'WebAssembly got no memory for the scan of a Mamba layer', {
      suggestion:
        'raise the limit of address space (ulimit -v), use --engine onnx, or a smaller batch or context',
      cause: error,
    });
  }
}

let instance: ReturnType<typeof instantiate> | undefined;

function instantiate() {
  return withMemory(() => {
    const memory = new WebAssembly.Memory({ initial: 1 });
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(scanModule()), {
      env: { memory },
    });
    return { memory, run: exports.run };
  });
}

/** The kernel, and arrays of these lengths in its memory, which hold what was left there. */
function kernel<Name extends string>(lengths: Readonly<Record<Name, number>>) {
  instance ??= instantiate();
  const { memory, run } = instance;
  const named = Object.entries<number>(lengths);
  const bytes = named.reduce((sum, [, length]) => sum + length * FLOAT_BYTES, 0);
  const missing = bytes - memory.buffer.byteLength;
  if (missing > 0) withMemory(() => memory.grow(Math.ceil(missing / PAGE_BYTES)));
  let offset = 0;
  const arrays = named.map(([name, length]) => {
    const array = new Float32Array(memory.buffer, offset, length);
    offset += array.byteLength;
    return [name, array];
  });
  return { run, floats: Object.fromEntries(arrays) as Record<Name, Float32Array> };
}
