import { decode } from '../tensor/decode.js';
import { STORED_DTYPES, type StoredDtype } from '../tensor/dtype.js';
import { isKind } from './torch/pickle/pickle-machine.js';
import type { Opaque, Value } from './torch/pickle/values.js';

/** By numpy's codes: a kind, and a number of bytes. */
const NUMPY_DTYPES: ReadonlyMap<Value | undefined, StoredDtype> = new Map([
  ['b1', 'BOOL'],
  ['i1', 'I8'],
  ['i2', 'I16'],
  ['i4', 'I32'],
  ['i8', 'I64'],
  ['u1', 'U8'],
  ['u2', 'U16'],
  ['u4', 'U32'],
  ['u8', 'U64'],
  ['f2', 'F16'],
  ['f4', 'F32'],
  ['f8', 'F64'],
]);

/** What a training loop saves of a loss or a step: `numpy.float64(0.25)`. */
const SCALAR = /^numpy\._?core\.multiarray\.scalar$/;

/**
 * The value of a numpy scalar, integers beyond ±2^53 rounded; undefined when it is none, or none of a usual
 * little-endian type.
 */
export function numpyScalar({ type, args }: Opaque): number | undefined {
  const [dtype = null, bytes] = args.items;
  if (!SCALAR.test(type) || !(bytes instanceof Uint8Array)) return undefined;
  const stored = isKind(dtype, 'opaque') ? littleEndianDtype(dtype) : undefined;
  if (stored === undefined || bytes.length * 8 !== STORED_DTYPES[stored].bits) return undefined;
  const target = new Float64Array(1);
  decode(stored, bytes, target);
  return target[0];
}

/** `numpy.dtype('f8', False, True)`, whose state has the order of bytes in its second place. */
function littleEndianDtype({ args, state = null }: Opaque): StoredDtype | undefined {
  const order = isKind(state, 'tuple') ? state.items[1] : undefined;
  return order === '<' || order === '|' ? NUMPY_DTYPES.get(args.items[0]) : undefined;
}
