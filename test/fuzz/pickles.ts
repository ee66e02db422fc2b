/** Pickles with changed opcodes, mostly still valid. Layouts follow Python's Lib/pickletools.py. */
import * as a from '../checkpoint/torch/assemble.js';
import { type Dice, mutateBytes } from './dice.js';
import { flags, rebuilt, state } from './rebuilt.js';

/** Bytes of the argument of each opcode with a fixed length. */
const FIXED: ReadonlyMap<number, number> = new Map([
  ...[0x80, 0x4b, 0x71, 0x68].map((opcode) => [opcode, 1] as const),
  [0x4d, 2],
  ...[0x4a, 0x72, 0x6a].map((opcode) => [opcode, 4] as const),
  ...[0x47, 0x95].map((opcode) => [opcode, 8] as const),
]);
/** Bytes of the length field of each opcode with an argument of variable length. */
const COUNTED: ReadonlyMap<number, 1 | 4> = new Map([
  ...[0x8a, 0x8c, 0x55, 0x43].map((opcode) => [opcode, 1] as const),
  ...[0x8b, 0x58, 0x54, 0x42].map((opcode) => [opcode, 4] as const),
]);
const GLOBAL = 0x63;
const NEWLINE = 0x0a;

/** The opcodes of the pickle that begins at `from`, each with its argument, up to STOP. */
function opcodesOf(bytes: Buffer, from = 0): Buffer[] {
  const opcodes: Buffer[] = [];
  let at = from;
  while (at < bytes.length) {
    const end = endOf(bytes, at);
    const opcode = bytes.subarray(at, end);
    opcodes.push(opcode);
    at = end;
    if (opcode[0] === a.STOP) break;
  }
  return opcodes;
}

/** End of an opcode. In a mutated pickle, an argument without an end takes all remaining bytes. */
function endOf(bytes: Buffer, at: number): number {
  const opcode = bytes.readUInt8(at);
  const counted = COUNTED.get(opcode);
  if (counted !== undefined) {
    const start = at + 1 + counted;
    return start > bytes.length ? bytes.length : start + bytes.readUIntLE(at + 1, counted);
  }
  if (opcode === GLOBAL) {
    const middle = bytes.indexOf(NEWLINE, at);
    const end = middle < 0 ? middle : bytes.indexOf(NEWLINE, middle + 1);
    return end < 0 ? bytes.length : end + 1;
  }
  return at + 1 + (FIXED.get(opcode) ?? 0);
}

const COUNTS = [0, 1, 2, 3, 4, 5, 8, 16, 255, 256, 65_535, 2 ** 31 - 1, -1] as const;
const CONSTANTS = [a.TRUE, a.FALSE, a.NONE, a.EMPTY_TUPLE, a.EMPTY_DICT, a.EMPTY_LIST] as const;
const NAMES = [
  'data.pkl',
  'data',
  '0',
  '1',
  '2',
  'neg',
  'conj',
  'cpu',
  'cuda:0',
  'meta',
  'storage',
  'layers.0.w',
] as const;
const GLOBALS = [
  ['collections', 'OrderedDict'],
  ['collections', 'Counter'],
  ['collections', 'defaultdict'],
  ['builtins', 'set'],
  ['builtins', 'bytearray'],
  ['torch', 'Size'],
  ['torch', 'float32'],
  ['torch', 'int32'],
  ['torch', 'bfloat16'],
  ['torch', 'FloatStorage'],
  ['torch', 'IntStorage'],
  ['torch', 'HalfStorage'],
  ['torch', 'ByteStorage'],
  ['torch', 'ComplexFloatStorage'],
  ['torch.storage', 'UntypedStorage'],
  ['torch._utils', '_rebuild_tensor_v2'],
  ['torch._utils', '_rebuild_tensor_v3'],
  ['torch._utils', '_rebuild_parameter'],
  ['torch._utils', '_rebuild_parameter_with_state'],
  ['os', 'system'],
] as const;

function anyGlobal(dice: Dice): Buffer {
  const [module, name] = dice.pick(GLOBALS);
  return a.global(module, name);
}

/** Whether an opcode pushes a value that another value can replace. */
const isValue = ([opcode = 0]: Uint8Array) =>
  [0x4b, 0x4d, 0x4a, 0x8a, 0x58, 0x8c, 0x88, 0x89, 0x4e, GLOBAL, 0x29, 0x7d, 0x5d].includes(opcode);

/** Replacement of a value opcode, of the same kind or of another. */
function otherValue(opcode: Buffer, dice: Dice): Buffer {
  const [kind] = opcode;
  if (dice.happens(0.15)) return anyValue(dice);
  if (kind === 0x4b) return a.join(0x4b, (opcode.readUInt8(1) + dice.pick([1, 2, 255])) % 256);
  if (kind === GLOBAL) return anyGlobal(dice);
  if (kind === 0x58) {
    const name = opcode.subarray(5).toString('latin1');
    return a.text(
      dice.pick([
        name.toUpperCase(),
        `${name}0`,
        name.slice(1),
        `${dice.below(6)}`,
        dice.pick(NAMES),
      ]),
    );
  }
  return anyValue(dice);
}

const anyValue = (dice: Dice): Buffer =>
  dice.pick([
    () => a.int(dice.pick(COUNTS)),
    () => a.join(0x4b, dice.below(9)),
    () => a.join(dice.pick(CONSTANTS)),
    () => a.text(dice.pick(NAMES)),
    () => anyGlobal(dice),
    () => a.get(dice.below(12)),
    () => a.float(dice.below(3)),
  ])();

/** Opcodes that act on the top of the stack and keep its depth. */
const steps = (dice: Dice): Buffer =>
  dice.pick([
    () => a.join(a.EMPTY_DICT, a.BUILD),
    () => a.join(a.dict(a.text(dice.pick(NAMES)), anyValue(dice)), a.BUILD),
    () => a.join(anyValue(dice), anyValue(dice), a.SETITEM),
    () => a.join(a.put(dice.below(12))),
  ])();

const isPut = (opcode: Uint8Array | undefined) => opcode?.[0] === 0x71 || opcode?.[0] === 0x72;

/** The next opcode in a direction, except those that only put a value into the memo. */
function neighbour(opcodes: readonly Buffer[], index: number, step: 1 | -1): number | undefined {
  let at = index + step;
  while (isPut(opcodes[at])) at += step;
  return opcodes[at]?.[0];
}

const CLOSES_MARK: ReadonlySet<number | undefined> = new Set([
  a.TUPLE,
  a.SETITEMS,
  a.APPENDS,
  a.ADDITEMS,
  a.FROZENSET,
]);

/** Index of the callee of a call whose arguments are between a mark and the TUPLE at an index. */
function calleeOf(opcodes: readonly Buffer[], tuple: number): number {
  let at = tuple;
  let marks = 0;
  do {
    const opcode = opcodes[at]?.[0];
    if (CLOSES_MARK.has(opcode)) marks++;
    else if (opcode === a.MARK) marks--;
    at--;
  } while (marks > 0 && at >= 0);
  while (isPut(opcodes[at])) at--;
  return Math.max(0, at);
}

/** A call around a value: the opcodes before and after it. */
const wrappers = (dice: Dice, isLegacy: boolean): readonly [Buffer, Buffer] => {
  const more = [dice.pick([a.TRUE, a.FALSE]), a.EMPTY_DICT];
  const around = (name: string, rest: readonly (number | Buffer)[], module = 'torch._utils') =>
    [a.join(a.global(module, name), a.MARK), a.join(...rest, a.TUPLE, a.REDUCE)] as const;
  return dice.pick([
    () => around('_rebuild_parameter', more),
    () => around('_rebuild_parameter_with_state', [...more, state(dice, isLegacy)]),
    () => around(dice.pick(['Counter', 'OrderedDict']), [], 'collections'),
  ])();
};

/** Opcodes with one call made the argument of another. */
function wrapped(opcodes: readonly Buffer[], dice: Dice, isLegacy: boolean): Buffer[] {
  const calls = [...opcodes.keys()].filter(
    (index) => opcodes[index]?.[0] === a.TUPLE && neighbour(opcodes, index, 1) === a.REDUCE,
  );
  if (calls.length === 0) return [...opcodes];
  const tuple = dice.pick(calls);
  const start = calleeOf(opcodes, tuple);
  const end = opcodes.findIndex((opcode, index) => index > tuple && opcode[0] === a.REDUCE) + 1;
  const [before, behind] = wrappers(dice, isLegacy);
  return [
    ...opcodes.slice(0, start),
    before,
    ...opcodes.slice(start, end),
    behind,
    ...opcodes.slice(end),
  ];
}

/** Opcodes with one addition: an argument of a call, the state of its result, or an item of such a dict. */
function addition(opcodes: readonly Buffer[], dice: Dice, isLegacy: boolean): Buffer[] {
  const places = (is: (opcode: number | undefined, index: number) => boolean) =>
    [...opcodes.keys()].filter((index) => is(opcodes[index]?.[0], index));
  const [from, added] = dice.pick([
    () => [
      places((opcode, at) => opcode === a.TUPLE && neighbour(opcodes, at, 1) === a.REDUCE),
      dice.happens(0.7) ? flags(dice) : state(dice, isLegacy),
    ],
    () => [
      places((_, at) => neighbour(opcodes, at, -1) === a.REDUCE && !isPut(opcodes[at])),
      a.join(state(dice, isLegacy), a.BUILD),
    ],
    ...Array<() => [number[], Buffer]>(6).fill(() => [
      places((opcode, at) => opcode === a.SETITEMS && neighbour(opcodes, at, -1) === a.REDUCE),
      a.join(a.text(`layers.${dice.below(4)}.w`), rebuilt(dice, isLegacy)),
    ]),
  ] satisfies (() => [number[], Buffer])[])();
  return from.length === 0 ? [...opcodes] : [...opcodes].toSpliced(dice.pick(from), 0, added);
}

/** A pickle with one change of its opcodes, or of its bytes. Only legacy pickles can have views of storages. */
export function mutatePickle(bytes: Buffer, dice: Dice, isLegacy = false): Buffer {
  if (dice.happens(0.1)) return mutateBytes(bytes, dice);
  const opcodes = opcodesOf(bytes);
  if (dice.happens(0.4)) return Buffer.concat(addition(opcodes, dice, isLegacy));
  if (dice.happens(0.1)) return Buffer.concat(wrapped(opcodes, dice, isLegacy));
  const values = [...opcodes.keys()].filter((index) => isValue(opcodes[index] ?? bytes));
  const index = dice.below(opcodes.length);
  if (dice.happens(0.6) && values.length > 0) {
    const place = dice.pick(values);
    opcodes.splice(place, 1, otherValue(opcodes[place] ?? bytes, dice));
  } else {
    const from = dice.below(opcodes.length);
    const length = 1 + dice.below(6);
    dice.pick([
      () => opcodes.splice(index, 1),
      () => opcodes.splice(index, 0, ...opcodes.slice(index, index + length)),
      () => opcodes.splice(index, 0, ...opcodes.slice(from, from + length)),
      () => opcodes.splice(index, 0, steps(dice)),
      () => opcodes.splice(index, 0, steps(dice)),
      () => opcodes.splice(index, 2, ...opcodes.slice(index, index + 2).reverse()),
    ])();
  }
  return Buffer.concat(opcodes);
}

/** The first `count` pickles of bytes, and the rest. */
export function splitPickles(bytes: Buffer, count: number): { pickles: Buffer[]; rest: Buffer } {
  const pickles: Buffer[] = [];
  let at = 0;
  for (let index = 0; index < count; index++) {
    const pickle = Buffer.concat(opcodesOf(bytes, at));
    pickles.push(pickle);
    at += pickle.length;
  }
  return { pickles, rest: bytes.subarray(at) };
}
