import type { StoredDtype } from '../../tensor/dtype.js';

/** What PyTorch calls an element type, and the class of storages that hold only it, where there is one. */
interface TorchType {
  readonly name: string;
  readonly storage?: string;
}

/**
 * PyTorch's names for element types: torch/storage.py for the storages, and
 * https://docs.pytorch.org/docs/stable/tensor_attributes.html. It has none for several values in a byte.
 */
export const TORCH_TYPES: Readonly<Record<StoredDtype, TorchType | undefined>> = {
  BOOL: { name: 'bool', storage: 'BoolStorage' },
  U8: { name: 'uint8', storage: 'ByteStorage' },
  I8: { name: 'int8', storage: 'CharStorage' },
  U16: { name: 'uint16' },
  I16: { name: 'int16', storage: 'ShortStorage' },
  U32: { name: 'uint32' },
  I32: { name: 'int32', storage: 'IntStorage' },
  U64: { name: 'uint64' },
  I64: { name: 'int64', storage: 'LongStorage' },
  F4: undefined,
  F6_E2M3: undefined,
  F6_E3M2: undefined,
  F8_E4M3: { name: 'float8_e4m3fn' },
  F8_E5M2: { name: 'float8_e5m2' },
  F8_E8M0: { name: 'float8_e8m0fnu' },
  F8_E4M3FNUZ: { name: 'float8_e4m3fnuz' },
  F8_E5M2FNUZ: { name: 'float8_e5m2fnuz' },
  F16: { name: 'float16', storage: 'HalfStorage' },
  BF16: { name: 'bfloat16', storage: 'BFloat16Storage' },
  F32: { name: 'float32', storage: 'FloatStorage' },
  F64: { name: 'float64', storage: 'DoubleStorage' },
  C64: { name: 'complex64', storage: 'ComplexFloatStorage' },
  C128: { name: 'complex128', storage: 'ComplexDoubleStorage' },
};
