import type { StoredDtype } from '../../tensor/dtype.js';

/**
 * The dtypes of the format, in the order in which its own library writes tensors: wide ones first, so
 * that each tensor of a file is aligned for its dtype when its data begin at a multiple of 8.
 */
export const DTYPES: readonly StoredDtype[] = [
  'U64',
  'I64',
  'F64',
  'C64',
  'F32',
  'U32',
  'I32',
  'BF16',
  'F16',
  'U16',
  'I16',
  'F8_E5M2FNUZ',
  'F8_E4M3FNUZ',
  'F8_E8M0',
  'F8_E4M3',
  'F8_E5M2',
  'I8',
  'U8',
  'F6_E3M2',
  'F6_E2M3',
  'F4',
  'BOOL',
];
