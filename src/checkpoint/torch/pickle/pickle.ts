/**
 * Reads Python pickles, protocols 2 to 5, as data. Implements the part of the pickle machine that data needs.
 * Classes and functions are names from an allow-list; their effect is implemented here or rejected. Opcodes
 * follow Python's Lib/pickletools.py.
 */

import type { Storages } from '../state-dict/storages.js';
import { callGlobal } from './call-global.js';
import { allowedGlobal, explainGlobal, globalMeaning } from './globals.js';
import type { PickleSource } from './pickle-machine.js';
import {
  checkStructure,
  ENTRY_BYTES,
  keyBytes,
  PickleMachine,
  TABLE_BYTES,
} from './pickle-machine.js';
import type { PickleValue, Tuple } from './values.js';
import { isKind, Members, opaque, Table } from './values.js';

/**
 * Reads one pickle and advances `source` past it.
 * @param storages Absent for a pickle without tensors.
 * @throws UserError that names the violated rule and the position of the opcode.
 */
export function readPickle(source: PickleSource, storages?: Storages): PickleValue {
  checkProtocol(source);
  const machine = new PickleMachine(source, storages);
  for (let opcode = source.opcode(); opcode !== STOP; opcode = source.opcode()) {
    const run = OPCODES.get(opcode);
    if (run === undefined) {
      throw source.refusal(
        'pickle-opcode',
        `uses opcode 0x${opcode.toString(16).padStart(2, '0')}, which data does not need`,
        'save it again with torch.save(model.state_dict(), …)',
      );
    }
    run(machine, source);
  }
  const result = machine.result();
  checkStructure(result, source);
  return result;
}

const PROTO = 0x80;
const STOP = 0x2e;

function checkProtocol(source: PickleSource): void {
  const first = source.opcode();
  const version = first === PROTO ? source.byte() : undefined;
  if (version === undefined || version < 2 || version > 5) {
    throw source.refusal(
      'pickle-protocol',
      version === undefined
        ? 'does not begin with a protocol: it is of protocol 0 or 1, or no pickle'
        : `is of protocol ${version}`,
      'save it again with a current PyTorch',
    );
  }
}

type OpcodeHandler = (machine: PickleMachine, source: PickleSource) => void;

const constant =
  (value: PickleValue): OpcodeHandler =>
  (machine) =>
    machine.push(value);
const pushedInteger =
  (read: (source: PickleSource) => number): OpcodeHandler =>
  (machine, source) =>
    machine.push(read(source));
const pushedText =
  (read: (source: PickleSource) => number): OpcodeHandler =>
  (machine, source) => {
    const value = machine.text(read(source));
    machine.pushNew(value, value.length * 2);
  };
const byteString =
  (read: (source: PickleSource) => number): OpcodeHandler =>
  (machine, source) => {
    const value = machine.byteString(read(source));
    machine.pushNew(value, value.length * 2);
  };
const bytes =
  (read: (source: PickleSource) => number): OpcodeHandler =>
  (machine, source) => {
    const length = read(source);
    machine.pushNew(new Uint8Array(source.take(length)), length);
  };

const u8 = (source: PickleSource) => source.byte();
const u16 = (source: PickleSource) => source.u16();
const u32 = (source: PickleSource) => source.u32();
const i32 = (source: PickleSource) => source.i32();
/** A length. Beyond 2^53 it is rounded, but far beyond the end of any file. */
const u64 = (source: PickleSource) => Number(source.take(8).readBigUInt64LE());

/** Two's complement, little-endian. Python has no limit; counts and sizes fit in 16 bytes. */
function long(machine: PickleMachine, source: PickleSource, length: number): void {
  if (length < 0 || length > 16) {
    throw source.refusal('pickle-integer', `holds an integer of ${length} bytes`);
  }
  const digits = source.take(length);
  if (length <= 6) {
    machine.push(length === 0 ? 0 : digits.readIntLE(0, length));
    return;
  }
  let value = 0n;
  for (let index = length - 1; index >= 0; index--)
    value = (value << 8n) | BigInt(digits[index] ?? 0);
  value = BigInt.asIntN(8 * length, value);
  const small = Number(value);
  machine.push(Number.isSafeInteger(small) ? small : value);
}

const tupleOf =
  (length: number): OpcodeHandler =>
  (machine) => {
    // An array that grows takes five times the memory, and a large pickle has millions of tuples.
    const items = new Array<PickleValue>(length);
    for (let index = length - 1; index >= 0; index--) items[index] = machine.pop();
    machine.tuple(items);
  };

function findGlobal(machine: PickleMachine, module: string, name: string): void {
  const global = allowedGlobal(module, name);
  if (global === undefined) {
    const { message, suggestion } = explainGlobal(module, name);
    throw machine.source.refusal('pickle-global', message, suggestion);
  }
  machine.push(global);
}

function stackGlobal(machine: PickleMachine): void {
  const name = machine.pop();
  const module = machine.pop();
  if (typeof name !== 'string' || typeof module !== 'string') {
    throw machine.source.refusal('pickle-name', 'names a global by a value that is not text');
  }
  findGlobal(machine, module, name);
}

/** Pops the argument tuple and the callee below it. */
function callOperands(machine: PickleMachine): { callee: PickleValue; args: Tuple } {
  const args = machine.pop();
  const callee = machine.pop();
  if (!isKind(args, 'tuple')) {
    throw machine.source.refusal(
      'pickle-call-arguments',
      'calls with arguments that are not a tuple',
    );
  }
  return { callee, args };
}

function reduce(machine: PickleMachine, source: PickleSource): void {
  const { callee, args } = callOperands(machine);
  // Reading costs as much as creating: the same argument can be passed many times.
  for (const argument of args.items) {
    for (const key of keysIn(argument)) machine.spend(ENTRY_BYTES + keyBytes(key));
  }
  const result = isKind(callee, 'global') ? callGlobal(callee, args, source.refusal) : undefined;
  if (result === undefined) {
    throw source.refusal('pickle-call', 'calls something that is not a function of the allow-list');
  }
  machine.pushNew(result, heldBytes(result));
}

/** Members of a container that a call may use as keys. */
function keysIn(value: PickleValue): Iterable<PickleValue> {
  if (isKind(value, 'dict')) return value.entries.keys();
  return isKind(value, 'set') || isKind(value, 'list') ? value.items : [];
}

/** Approximate bytes of the result of a call, so that repeated calls have a cost. */
function heldBytes(value: PickleValue): number {
  if (isKind(value, 'dict')) return TABLE_BYTES + ENTRY_BYTES * value.entries.size;
  if (isKind(value, 'set')) return TABLE_BYTES + ENTRY_BYTES * value.items.size;
  return value instanceof Uint8Array ? value.length : 0;
}

function newObject(machine: PickleMachine, source: PickleSource): void {
  const { callee, args } = callOperands(machine);
  if (!isKind(callee, 'global') || globalMeaning(callee)?.is !== 'opaque') {
    throw source.refusal(
      'pickle-new',
      'makes an object of something that is not a class of the allow-list',
    );
  }
  machine.pushNew(opaque(callee, args, 'newobj'));
}

function persistentId(machine: PickleMachine, source: PickleSource): void {
  const { storages } = machine;
  const id = machine.pop();
  if (!storages) throw source.refusal('pickle-no-storage', 'names a storage where none can be');
  machine.pushNew(storages.find(id));
}

function build(machine: PickleMachine, source: PickleSource): void {
  const state = machine.pop();
  const target = machine.top();
  if (isKind(target, 'opaque')) {
    target.state = state;
    return;
  }
  if (isKind(target, 'dict') && target.type !== 'dict') {
    checkAttributes(state, source);
    return;
  }
  throw source.refusal('pickle-state', 'sets the state of an object that has none');
}

/**
 * Checks attributes of a dict: only PyTorch's `_metadata`, module versions that are not needed. Others could
 * replace its methods: `keys`, `items`.
 */
function checkAttributes(state: PickleValue, source: PickleSource): void {
  if (isKind(state, 'dict')) {
    const { entries } = state;
    if (entries.size === 0 || (entries.size === 1 && entries.has('_metadata'))) return;
  }
  throw source.refusal(
    'pickle-attributes',
    'sets attributes of a dict, other than the _metadata of a state dict',
    'save model.state_dict(), or a plain dict',
  );
}

function setFrom(
  machine: PickleMachine,
  type: 'set' | 'frozenset',
  items: readonly PickleValue[],
): void {
  const set = { kind: 'set', type, items: new Members() } as const;
  machine.addTo(set, items);
  machine.pushNew(set, TABLE_BYTES);
}

const OPCODES: ReadonlyMap<number, OpcodeHandler> = new Map<number, OpcodeHandler>([
  [0x28, (machine) => machine.mark()], // MARK
  [0x4e, constant(null)], // NONE
  [0x88, constant(true)], // NEWTRUE
  [0x89, constant(false)], // NEWFALSE
  [0x4a, pushedInteger(i32)], // BININT
  [0x4b, pushedInteger(u8)], // BININT1
  [0x4d, pushedInteger(u16)], // BININT2
  [0x8a, (machine, source) => long(machine, source, u8(source))], // LONG1
  [0x8b, (machine, source) => long(machine, source, i32(source))], // LONG4
  [
    0x47, // BINFLOAT
    (machine, source) => machine.pushNew({ kind: 'float', value: source.take(8).readDoubleBE() }),
  ],
  [0x58, pushedText(u32)], // BINUNICODE
  [0x8c, pushedText(u8)], // SHORT_BINUNICODE
  [0x8d, pushedText(u64)], // BINUNICODE8
  [0x54, byteString(u32)], // BINSTRING
  [0x55, byteString(u8)], // SHORT_BINSTRING
  [0x42, bytes(u32)], // BINBYTES
  [0x43, bytes(u8)], // SHORT_BINBYTES
  [0x8e, bytes(u64)], // BINBYTES8
  [0x96, bytes(u64)], // BYTEARRAY8
  [0x5d, (machine) => machine.pushNew({ kind: 'list', items: [] })], // EMPTY_LIST
  [
    0x7d,
    (machine) => machine.pushNew({ kind: 'dict', type: 'dict', entries: new Table() }, TABLE_BYTES),
  ], // EMPTY_DICT
  [0x29, (machine) => machine.tuple([])], // EMPTY_TUPLE
  [0x8f, (machine) => setFrom(machine, 'set', [])], // EMPTY_SET
  [0x74, (machine) => machine.tuple(machine.popMark())], // TUPLE
  [0x85, tupleOf(1)], // TUPLE1
  [0x86, tupleOf(2)], // TUPLE2
  [0x87, tupleOf(3)], // TUPLE3
  [
    0x61, // APPEND
    (machine) => {
      const item = machine.pop();
      machine.append([item]);
    },
  ],
  [0x65, (machine) => machine.append(machine.popMark())], // APPENDS
  [
    0x73, // SETITEM
    (machine) => {
      const value = machine.pop();
      const key = machine.pop();
      machine.setItems([key, value]);
    },
  ],
  [0x75, (machine) => machine.setItems(machine.popMark())], // SETITEMS
  [0x90, (machine) => machine.addItems(machine.popMark())], // ADDITEMS
  [0x91, (machine) => setFrom(machine, 'frozenset', machine.popMark())], // FROZENSET
  [0x71, (machine, source) => machine.put(u8(source))], // BINPUT
  [0x72, (machine, source) => machine.put(u32(source))], // LONG_BINPUT
  [0x68, (machine, source) => machine.get(u8(source))], // BINGET
  [0x6a, (machine, source) => machine.get(u32(source))], // LONG_BINGET
  [0x94, (machine) => machine.memoize()], // MEMOIZE
  [0x95, (_machine, source) => source.frame(u64(source))], // FRAME
  [0x63, (machine, source) => findGlobal(machine, source.line(), source.line())], // GLOBAL
  [0x93, stackGlobal], // STACK_GLOBAL
  [0x52, reduce], // REDUCE
  [0x62, build], // BUILD
  [0x81, newObject], // NEWOBJ
  [0x51, persistentId], // BINPERSID
]);
