import type { Refuse } from '../../checkpoint-rules.js';
import type { StoredTensor } from '../../stored-tensor.js';
import { buildTensor, checkGradient } from '../state-dict/tensors.js';
import type { GlobalMeaning } from './globals.js';
import { globalMeaning } from './globals.js';
import { isKey } from './pickle-machine.js';
import type { Global, PickleValue, Tuple } from './values.js';
import { globalName, isKind, Members, opaque, Table } from './values.js';

type RefuseArguments = (message: string) => never;

/** Result of calling an allowed function or class; undefined if it cannot be called. Nothing is run. */
export function callGlobal(callee: Global, args: Tuple, refuse: Refuse): PickleValue | undefined {
  const meaning = globalMeaning(callee);
  const refuseArguments: RefuseArguments = (message) => {
    throw refuse('pickle-arguments', `${callee.module}.${callee.name}: ${message}`);
  };
  switch (meaning?.is) {
    case 'dict':
      return dictFrom(meaning, args, refuseArguments);
    case 'set':
      return setFrom(meaning.type, args, refuseArguments);
    case 'bytes':
      return bytesFrom(args, refuseArguments);
    case 'encode':
      return encoded(args, refuseArguments);
    case 'opaque':
      return opaque(callee, args, 'reduce');
    case 'rebuild':
      return buildTensor(args, meaning.what === 'typed-tensor', refuse);
    case 'parameter':
      return parameterData(args, meaning.hasState, refuse);
    default:
      return undefined;
  }
}

/** Tensor of `_rebuild_parameter(data, requires_grad, hooks[, state])`. */
function parameterData({ items }: Tuple, hasState: boolean, refuse: Refuse): StoredTensor {
  const [data = null, requiresGrad = null, , state = null] = items;
  const expected = hasState ? 4 : 3;
  if (!isKind(data, 'tensor') || items.length !== expected) {
    throw refuse(
      'parameter-data',
      `makes a parameter of ${items.length} arguments, the first ${globalName(data)}; expected ${expected}, the first a tensor`,
    );
  }
  if (!isEmptyState(state)) {
    throw refuse(
      'parameter-state',
      'sets attributes of a parameter, which could replace its values',
      'save model.state_dict(), which holds tensors without attributes',
    );
  }
  checkGradient(requiresGrad, data.dtype, refuse);
  return data;
}

/**
 * Whether PyTorch reads a state and sets nothing (`_set_obj_state` in torch/_utils.py): a value that is false in Python,
 * or a pair of them. It fails on other tuples.
 */
function isEmptyState(state: PickleValue): boolean {
  if (!isKind(state, 'tuple')) return isFalse(state);
  return state.items.length === 2 && state.items.every(isFalse);
}

/** Whether a value is false in Python: None, False, zero, or an empty text or container. */
function isFalse(value: PickleValue): boolean {
  if (value instanceof Uint8Array) return value.length === 0;
  if (isKind(value, 'float')) return value.value === 0;
  if (isKind(value, 'dict')) return value.entries.size === 0;
  if (isKind(value, 'set')) return value.items.size === 0;
  if (isKind(value, 'list') || isKind(value, 'tuple')) return value.items.length === 0;
  return !value;
}

function dictFrom(
  { from, type }: Extract<GlobalMeaning, { is: 'dict' }>,
  args: Tuple,
  refuseArguments: RefuseArguments,
): PickleValue {
  const [source] = args.items;
  const entries = new Table();
  const dict = { kind: 'dict', type, entries } as const;
  if (args.items.length > 1) refuseArguments(`called with ${args.items.length} arguments`);
  if (source === undefined) return dict;
  if (from === 'factory') {
    if (source !== null && !isKind(source, 'global')) {
      return refuseArguments(`called with ${globalName(source)}`);
    }
    return source === null ? dict : { ...dict, factory: source };
  }
  if (from === 'dict') {
    if (!isKind(source, 'dict'))
      return refuseArguments(`called with ${globalName(source)}, not a dict`);
    return { ...dict, entries: new Table(source.entries) };
  }
  if (!isKind(source, 'list'))
    return refuseArguments(`called with ${globalName(source)}, not a list`);
  for (const pair of source.items) {
    const items = isKind(pair, 'tuple') || isKind(pair, 'list') ? pair.items : [];
    const [key, value] = items;
    // Only text keys: this is how Python 2 wrote state dicts.
    if (typeof key !== 'string' || value === undefined || items.length !== 2) {
      return refuseArguments(`called with ${globalName(pair)} where a name and a value should be`);
    }
    entries.set(key, value);
  }
  return dict;
}

function setFrom(
  type: 'set' | 'frozenset',
  args: Tuple,
  refuseArguments: RefuseArguments,
): PickleValue {
  const [source = null] = args.items;
  if (args.items.length === 0) return { kind: 'set', type, items: new Members() };
  if (args.items.length !== 1 || !isKind(source, 'list') || !source.items.every(isKey)) {
    return refuseArguments('called with something else than one list of what can be a member');
  }
  return { kind: 'set', type, items: new Members(source.items) };
}

/**
 * bytes() or bytearray() without arguments, of bytes, or of Latin-1 text. Never of a number, which would be a length.
 */
function bytesFrom(args: Tuple, refuseArguments: RefuseArguments): PickleValue {
  const [source, encoding] = args.items;
  if (source === undefined) return new Uint8Array(0);
  if (source instanceof Uint8Array && args.items.length === 1) return source;
  if (typeof source === 'string' && encoding !== undefined) return encoded(args, refuseArguments);
  return refuseArguments(`called with ${globalName(source)}`);
}

const LATIN_1: ReadonlySet<unknown> = new Set(['latin1', 'latin-1']);

/** Text with one character per byte, as protocol 2 writes bytes. */
function encoded(args: Tuple, refuseArguments: RefuseArguments): PickleValue {
  const [text, encoding] = args.items;
  if (typeof text !== 'string' || !LATIN_1.has(encoding) || args.items.length !== 2) {
    return refuseArguments('called with something else than a text and latin1');
  }
  // biome-ignore lint/suspicious/noControlCharactersInRegex: every byte is a character of Latin-1.
  if (!/^[\u0000-\u00ff]*$/.test(text))
    return refuseArguments('called with a text that is not Latin-1');
  return new Uint8Array(Buffer.from(text, 'latin1'));
}
