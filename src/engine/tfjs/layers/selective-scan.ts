/**
 * The scan of a selective state space (Mamba, arXiv 2312.00752), outside the library: T steps of eight small operations
 * each would take many times as long. Its gradient is in training/host-operations.ts.
 */
import { UserError } from '../../../base/errors.js';
import { setting } from '../../../base/text/setting.js';

// The scan of one channel as WebAssembly, four states at a time: several times as fast as the same loop in JavaScript,
// which spends its time on exponentials.

/** States computed together. */
const LANES = 4;
const LANES_BYTES = LANES * Float32Array.BYTES_PER_ELEMENT;

/**
 * Decays below 2^−64 are raised to this: float32 cannot represent the difference. Smaller ones lead to subnormal
 * products, which take a processor four times as long.
 */
const LEAST_EXPONENT = -64;
const EXPONENT_BIAS = 127;
const MANTISSA_BITS = 23;
/** Terms of the series of 2^f; the first omitted one is below 1e−8. */
const TERMS = 8;

/** Parameters of the kernel. Addresses and lengths are in bytes. */
const PARAMETERS = [
  /** Minimum 1. */
  'tokens',
  /** Bytes between tokens in `step`, `x` and `y`. */
  'stride',
  /** Bytes of a channel's states, and between tokens in `b` and `c`. */
  'width',
  'step',
  'x',
  'b',
  'c',
  /** A · log2(e) */
  'rates',
  'state',
  'y',
] as const;

const LOCALS = {
  delta: 'v128',
  input: 'v128',
  sum: 'v128',
  at: 'i32',
  exponent: 'v128',
  whole: 'v128',
  fraction: 'v128',
  next: 'v128',
} as const;

/** A module that computes, for every token, state = state · 2^(Δ · rates) + Δ · x · B and y = Σ state · C. */
function scanModule(): Uint8Array<ArrayBuffer> {
  const { add, sub, mul, max, nearest, constant, load, loadSplat, store } = f32x4;
  return scanWasm(PARAMETERS, LOCALS, (v) => {
    const advance = (variable: Local, by: Code) => variable.set(i32.add(variable.get, by));
    const current = (base: Local) => load(i32.add(base.get, v.at.get));
    return [
      repeatWhile(v.tokens.get, [
        v.delta.set(loadSplat(v.step.get)),
        v.input.set(mul(v.delta.get, loadSplat(v.x.get))),
        v.sum.set(constant(0)),
        v.at.set(i32.constant(0)),
        repeatWhile(i32.lessThan(v.at.get, v.width.get), [
          v.exponent.set(max(mul(v.delta.get, current(v.rates)), constant(LEAST_EXPONENT))),
          v.whole.set(nearest(v.exponent.get)),
          v.fraction.set(sub(v.exponent.get, v.whole.get)),
          v.next.set(
            add(
              mul(current(v.state), powerOfTwo(v.whole, v.fraction)),
              mul(v.input.get, current(v.b)),
            ),
          ),
          store(i32.add(v.state.get, v.at.get), v.next.get),
          v.sum.set(add(v.sum.get, mul(v.next.get, current(v.c)))),
          advance(v.at, i32.constant(LANES_BYTES)),
        ]),
        f32.store(v.y.get, total(v.sum)),
        ...[v.step, v.x, v.y].map((address) => advance(address, v.stride.get)),
        ...[v.b, v.c].map((address) => advance(address, v.width.get)),
        advance(v.tokens, i32.constant(-1)),
      ]),
    ];
  });
}

/** 2^whole · 2^fraction, for an integer from −126 to 127, and a fraction from −½ to ½. */
function powerOfTwo(whole: Local, fraction: Local): Code {
  const { mul, add, constant, truncate } = f32x4;
  // 2^whole is written as the exponent of a float.
  const exponent = i32x4.add(truncate(whole.get), i32x4.constant(EXPONENT_BIAS));
  const scale = i32x4.shiftLeft(exponent, MANTISSA_BITS);
  // 2^fraction = Σ (ln 2)^i / i! · fraction^i, by Horner's rule.
  const coefficients = [1];
  for (let i = 1; i < TERMS; i++) coefficients.push(((coefficients[i - 1] ?? 0) * Math.LN2) / i);
  const series = coefficients
    .map(constant)
    .reduceRight((sum, coefficient) => add(mul(sum, fraction.get), coefficient));
  return mul(series, scale);
}

/** The sum of the lanes. */
function total(value: Local): Code {
  const [a, b, c, d] = [0, 1, 2, 3].map((index) => f32x4.lane(value.get, index)) as [
    Code,
    Code,
    Code,
    Code,
  ];
  return f32.add(f32.add(a, b), f32.add(c, d));
}

const PAGE_BYTES = 65_536;
const FLOAT_BYTES = Float32Array.BYTES_PER_ELEMENT;
/** Inputs and outputs in the kernel's memory at a time. */
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
  /** h, [B, D, N]: the initial state, overwritten by the final one. */
  readonly state: Float32Array;
}

/** Rates of states whose log(−A) is stored: exp(Δ · A) = 2^(Δ · A · log2(e)). */
export function decayRates(stateLog: Float32Array): Float32Array {
  return stateLog.map((value) => -Math.exp(value) * Math.LOG2E);
}

/** h = h · exp(Δ ⊗ A) + (Δ · x) ⊗ B and y = h · C, token by token. Returns y, [B, T, D]. */
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

/** Scans tokens `from` to `to` of one sequence, counted over all sequences. */
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

/** Copies rows to rows of another width; a wider target keeps zeros after them. */
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

/** Used part of the global of this name, which Node's types do not declare. */
declare const WebAssembly: {
  readonly Memory: new (limits: { initial: number }) => WasmMemory;
  readonly Module: new (bytes: Uint8Array<ArrayBuffer>) => object;
  readonly Instance: new (
    module: object,
    imports: { env: { memory: WasmMemory } },
  ) => { readonly exports: { readonly run: (...parameters: number[]) => void } };
};

interface WasmMemory {
  readonly buffer: ArrayBuffer;
  grow(pages: number): void;
}

/** Runs an allocation; a process may lack address space even for a small one. */
function withMemory<T>(allocate: () => T): T {
  try {
    return allocate();
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new UserError('system', 'WebAssembly got no memory for the scan of a Mamba layer', {
      suggestion: `raise the limit of address space (ulimit -v), use ${setting('engine', 'onnx')}, or a smaller batch or context`,
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

/** The kernel, and uninitialised arrays of these lengths in its memory. */
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

// A small writer of WebAssembly: an expression is the bytes that leave its value on the stack, so a function of
// expressions reads like a formula. Opcodes and the binary format are those of the WebAssembly core specification 2.0,
// chapter 5.

/** Instructions in their binary form. */
export type Code = readonly number[];

/** LEB128, for indices, sizes and offsets. */
function unsigned(value: number): Code {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...unsigned(value >>> 7)];
}

/** LEB128, for constants. */
function signedConstant(value: number): Code {
  const rest = value >> 7;
  const isLast = value >= -0x40 && value < 0x40;
  return isLast ? [value & 0x7f] : [(value & 0x7f) | 0x80, ...signedConstant(rest)];
}

const simd = (opcode: number): Code => [0xfd, ...unsigned(opcode)];
const unary = (opcode: Code) => (a: Code) => [...a, ...opcode];
const binary = (opcode: Code) => (a: Code, b: Code) => [...a, ...b, ...opcode];

/** A variable of a function, by its index: parameters first. */
export interface Local {
  readonly get: Code;
  set(value: Code): Code;
}

const local = (index: number): Local => ({
  get: [0x20, ...unsigned(index)],
  set: (value) => [...value, 0x21, ...unsigned(index)],
});

const i32 = {
  constant: (value: number): Code => [0x41, ...signedConstant(value)],
  add: binary([0x6a]),
  sub: binary([0x6b]),
  lessThan: binary([0x49]),
};

const f32 = {
  add: binary([0x92]),
  /** Alignment 2^2, offset 0. */
  store: (address: Code, value: Code): Code => [...address, ...value, 0x38, 2, 0],
};

/** Four floats side by side. Loads and stores assume only the alignment of one float. */
const f32x4 = {
  constant(value: number): Code {
    const bytes = new Uint8Array(Float32Array.of(value, value, value, value).buffer);
    return [...simd(0x0c), ...bytes];
  },
  load: (address: Code): Code => [...address, ...simd(0x00), 2, 0],
  /** One float, four times. */
  loadSplat: (address: Code): Code => [...address, ...simd(0x09), 2, 0],
  store: (address: Code, value: Code): Code => [...address, ...value, ...simd(0x0b), 2, 0],
  lane: (value: Code, index: number): Code => [...value, ...simd(0x1f), index],
  add: binary(simd(0xe4)),
  sub: binary(simd(0xe5)),
  mul: binary(simd(0xe6)),
  max: binary(simd(0xe9)),
  nearest: unary(simd(0x6a)),
  /** To integers; NaN gives 0. */
  truncate: unary(simd(0xf8)),
};

/** Four integers side by side. */
const i32x4 = {
  constant(value: number): Code {
    return [...simd(0x0c), ...new Uint8Array(Int32Array.of(value, value, value, value).buffer)];
  },
  add: binary(simd(0xae)),
  shiftLeft: (a: Code, bits: number): Code => [...a, ...i32.constant(bits), ...simd(0xab)],
};

/** Runs `body` once, and again as long as `condition` holds after it. */
const repeatWhile = (condition: Code, body: readonly Code[]): Code => [
  ...[0x03, 0x40], // loop, without a result
  ...body.flat(),
  ...condition,
  ...[0x0d, 0], // br_if
  0x0b, // end
];

const TYPES = { i32: 0x7f, v128: 0x7b };

/**
 * A module that imports the memory `env.memory` and exports one function, `run`, of integers.
 * @param build Receives the variables of the function and returns its instructions.
 */
function scanWasm<
  const Parameters extends readonly string[],
  const Locals extends Readonly<Record<string, keyof typeof TYPES>>,
>(
  parameters: Parameters,
  locals: Locals,
  build: (
    variables: Record<Parameters[number] | (keyof Locals & string), Local>,
  ) => readonly Code[],
): Uint8Array<ArrayBuffer> {
  const names = [...parameters, ...Object.keys(locals)];
  const variables = Object.fromEntries(names.map((name, index) => [name, local(index)]));
  const body = build(variables as Record<Parameters[number] | (keyof Locals & string), Local>);
  const declared = Object.values(locals).map((type) => [1, TYPES[type]]);
  const code = [...vector(declared), ...body.flat(), 0x0b];
  return Uint8Array.from([
    ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0], // "\0asm", version 1
    ...section(1, [[0x60, ...vector(parameters.map(() => [TYPES.i32])), 0]]),
    ...section(2, [[...name('env'), ...name('memory'), 0x02, 0x00, 1]]), // at least 1 page
    ...section(3, [[0]]),
    ...section(7, [[...name('run'), 0x00, 0]]),
    ...section(10, [[...unsigned(code.length), ...code]]),
  ]);
}

const vector = (items: readonly Code[]): Code => [...unsigned(items.length), ...items.flat()];
const name = (text: string): Code => vector([...Buffer.from(text)].map((byte) => [byte]));

function section(id: number, items: readonly Code[]): Code {
  const content = vector(items);
  return [id, ...unsigned(content.length), ...content];
}
