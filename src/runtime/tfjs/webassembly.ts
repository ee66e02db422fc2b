/**
 * A small writer of WebAssembly: an expression is the bytes that leave its value on the stack, so a function of
 * expressions reads like a formula. Opcodes and the binary format are those of the WebAssembly core specification 2.0,
 * chapter 5.
 */

/** Instructions in their binary form. */
export type Code = readonly number[];

/** LEB128, for indices, sizes and offsets. */
function unsigned(value: number): Code {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...unsigned(value >>> 7)];
}

/** LEB128, for constants. */
function signed(value: number): Code {
  const rest = value >> 7;
  const isLast = value >= -0x40 && value < 0x40;
  return isLast ? [value & 0x7f] : [(value & 0x7f) | 0x80, ...signed(rest)];
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

export const i32 = {
  constant: (value: number): Code => [0x41, ...signed(value)],
  add: binary([0x6a]),
  sub: binary([0x6b]),
  lessThan: binary([0x49]),
};

export const f32 = {
  add: binary([0x92]),
  /** Alignment 2^2, offset 0. */
  store: (address: Code, value: Code): Code => [...address, ...value, 0x38, 2, 0],
};

/** Four floats side by side. Loads and stores assume only the alignment of one float. */
export const f32x4 = {
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
export const i32x4 = {
  constant(value: number): Code {
    return [...simd(0x0c), ...new Uint8Array(Int32Array.of(value, value, value, value).buffer)];
  },
  add: binary(simd(0xae)),
  shiftLeft: (a: Code, bits: number): Code => [...a, ...i32.constant(bits), ...simd(0xab)],
};

/** Runs `body` once, and again as long as `condition` holds after it. */
export const repeatWhile = (condition: Code, body: readonly Code[]): Code => [
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
export function moduleOf<
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
