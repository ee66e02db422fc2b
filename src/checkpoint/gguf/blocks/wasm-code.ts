/**
 * WebAssembly instructions as bytes, for kernels on four float32 numbers at a time. Opcodes: WebAssembly core
 * specification, and proposals/simd/BinarySIMD.md of WebAssembly/spec.
 */

/** Instructions that leave one value, or none. */
export type Code = readonly number[];

/** Types of values. */
export const VALUE = { i32: 0x7f, f32: 0x7d, v128: 0x7b } as const;

/** An unsigned number of variable length. */
function unsigned(value: number): number[] {
  const bytes: number[] = [];
  let left = value;
  do {
    const low = left & 0x7f;
    left >>>= 7;
    bytes.push(left === 0 ? low : low | 0x80);
  } while (left !== 0);
  return bytes;
}

const simd = (opcode: number): number[] => [0xfd, ...unsigned(opcode)];

type Binary = (a: Code, b: Code) => Code;

const binary =
  (...opcode: number[]): Binary =>
  (a, b) => [...a, ...b, ...opcode];

const unary =
  (...opcode: number[]) =>
  (a: Code): Code => [...a, ...opcode];

/** Instructions on four float32 numbers; comparisons give masks. */
export const vector = {
  splat: unary(...simd(0x13)),
  add: binary(...simd(0xe4)),
  sub: binary(...simd(0xe5)),
  mul: binary(...simd(0xe6)),
  div: binary(...simd(0xe7)),
  /** b < a ? b : a */
  smaller: binary(...simd(0xea)),
  /** a < b ? b : a */
  larger: binary(...simd(0xeb)),
  abs: unary(...simd(0xe0)),
  neg: unary(...simd(0xe1)),
  /** Nearest integer, halves to even. */
  nearest: unary(...simd(0x6a)),
  notEqual: binary(...simd(0x42)),
  less: binary(...simd(0x43)),
  greater: binary(...simd(0x44)),
  lessOrEqual: binary(...simd(0x45)),
  and: binary(...simd(0x4e)),
  /** Bits of `a` where the mask is set, else of `b`. */
  select: (a: Code, b: Code, mask: Code): Code => [...a, ...b, ...mask, ...simd(0x52)],
  anyTrue: unary(...simd(0x53)),
} as const;

const ALIGNED_16 = 4;
const ALIGNED_4 = 2;

/** Sixteen bytes at an address and a constant offset. */
export const vectorLoad = (address: Code, offset: number): Code => [
  ...[...address, ...simd(0x00)],
  ...[ALIGNED_16, ...unsigned(offset)],
];

/** One float32 number in all four lanes. */
export const loadSplat = (address: Code, offset: number): Code => [
  ...[...address, ...simd(0x09)],
  ...[ALIGNED_4, ...unsigned(offset)],
];

export const store = (address: Code, offset: number, value: Code): Code => [
  ...[...address, ...value, ...simd(0x0b)],
  ...[ALIGNED_16, ...unsigned(offset)],
];

/** A constant below 64. */
export const smallConstant = (value: number): Code => [0x41, value];

/** A float32 constant in all lanes. */
export const constant = (value: number): Code =>
  vector.splat([0x43, ...new Uint8Array(Float32Array.of(value).buffer)]);

export const addIntegers = binary(0x6a);
export const multiplyIntegers = binary(0x6c);

export const when = (condition: Code, body: Code): Code => [
  ...[...condition, 0x04, 0x40],
  ...[...body, 0x0b],
];

/** A function: its parameters, and a body of instructions that leave nothing. */
export interface WasmFunction {
  readonly name: string;
  readonly parameters: readonly number[];
  readonly locals: readonly number[];
  readonly body: Code;
}

/** Names parameters and locals of a function while its body is written. */
export class FunctionWriter {
  readonly #types: number[] = [];

  /** A new parameter, before all locals, or a local. */
  local(type: number): Local {
    return new Local(this.#types.push(type) - 1);
  }

  /** @param parameters Number of the first locals that are parameters. */
  finished(name: string, parameters: number, body: readonly Code[]): WasmFunction {
    return {
      name,
      parameters: this.#types.slice(0, parameters),
      locals: this.#types.slice(parameters),
      body: body.flat(),
    };
  }
}

/** A variable of a function. */
export class Local {
  readonly get: Code;
  readonly #index: number[];

  constructor(index: number) {
    this.#index = unsigned(index);
    this.get = [0x20, ...this.#index];
  }

  set(value: Code): Code {
    return [...value, 0x21, ...this.#index];
  }

  /** Runs `body` with this as 0, `step`, … below `end`: at least once. */
  upTo(end: Code, step: number, body: readonly Code[]): Code {
    return [
      ...this.set(smallConstant(0)),
      ...[0x03, 0x40],
      ...body.flat(),
      ...this.set(addIntegers(this.get, smallConstant(step))),
      ...[...this.get, ...end, 0x49, 0x0d, 0x00],
      0x0b,
    ];
  }
}

const section = (id: number, content: Code): Code => [id, ...unsigned(content.length), ...content];

const list = (items: readonly Code[]): Code => [...unsigned(items.length), ...items.flat()];

const textCode = (text: string): Code => [...unsigned(text.length), ...Buffer.from(text)];

/** A module of functions that share 64 KiB of memory. */
export function moduleOf(functions: readonly WasmFunction[]): Uint8Array {
  const types = functions.map(({ parameters }) => [
    ...[0x60, ...unsigned(parameters.length), ...parameters],
    0,
  ]);
  const bodies = functions.map(({ locals, body }) => {
    const code = [...list(locals.map((type) => [1, type])), ...body, 0x0b];
    return [...unsigned(code.length), ...code];
  });
  const exported = functions.map(({ name }, index) => [...textCode(name), 0, ...unsigned(index)]);
  return Uint8Array.from([
    ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, list(types)),
    ...section(3, list(functions.map((_, index) => unsigned(index)))),
    ...section(5, list([[0, 1]])),
    ...section(7, list([[...textCode('memory'), 2, 0], ...exported])),
    ...section(10, list(bodies)),
  ]);
}
