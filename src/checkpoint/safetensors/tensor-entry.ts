import type { UserError } from '../../errors.js';
import type { StoredDtype } from '../../tensor/dtype.js';
import { STORED_DTYPES, shapeText, storedBytes } from '../../tensor/dtype.js';
import type { ByteFile } from '../byte-file.js';
import type { JsonScanner } from '../json-scanner.js';
import { ARRAY, OBJECT } from '../json-scanner.js';
import type { SAFETENSORS_RULES } from '../rules.js';
import { bytesText, quoted, refusal, SAVE_SAFETENSORS_AGAIN, tensorPlace } from '../rules.js';
import type { StoredTensor } from '../stored-tensor.js';
import { contiguousStrides } from '../stored-tensor.js';

/**
 * Dtypes of the format, in the order in which its library writes tensors: wide ones first. Tensors are then
 * aligned for their dtype when the data begin at a multiple of 8.
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

/** Maximum dimensions of a tensor, as in NumPy. The format itself has no limit. */
export const MAX_RANK = 64;

const DTYPES_BY_TEXT: ReadonlyMap<string, StoredDtype> = new Map(
  DTYPES.map((dtype) => [dtype, dtype]),
);

/** Header entry of a tensor, before validation. */
interface Entry {
  readonly dtype: StoredDtype;
  readonly shape: readonly number[];
  /** Start and end of the tensor, in bytes from the start of the data. */
  readonly data_offsets: readonly [begin: number, end: number];
}

type PartialEntry = { -readonly [Field in keyof Entry]: Entry[Field] | undefined };

const FIELDS = ['dtype', 'shape', 'data_offsets'] as const satisfies (keyof Entry)[];

/** Field names as interned strings, which makes property look-ups fast. */
const FIELDS_BY_TEXT: ReadonlyMap<string, keyof Entry> = new Map(
  FIELDS.map((field) => [field, field]),
);

/** Reads and validates the header entries of tensors. */
export class TensorEntryReader {
  readonly #scanner: JsonScanner;
  readonly #file: ByteFile;
  readonly #dataPosition: number;
  /** Buffer for arrays, which are then copied at their exact length: growing arrays reserve extra memory. */
  readonly #scratch: number[] = [];

  /** @param dataPosition Position of the first byte after the header; offsets are relative to it. */
  constructor(scanner: JsonScanner, file: ByteFile, dataPosition: number) {
    this.#scanner = scanner;
    this.#file = file;
    this.#dataPosition = dataPosition;
  }

  /** Reads the tensor whose name was just read. */
  read(name: string): StoredTensor {
    const entry = this.#entry(name);
    const { dtype, shape } = entry;
    const [begin, end] = entry.data_offsets;
    const strides = contiguousStrides(shape);
    const elements = this.#elements(name, shape, strides);
    const bytes = storedBytes(elements, dtype);
    if (bytes === undefined) {
      const { bits } = STORED_DTYPES[dtype];
      throw this.#refusal(
        name,
        'st-bytes',
        `${elements} elements of ${bits} bits take no whole number of bytes, or more than 2^53 − 1`,
      );
    }
    if (end - begin !== bytes) {
      throw this.#refusal(
        name,
        'st-span',
        `${dtype} ${shapeText(shape)} takes ${bytesText(bytes)}, but the offsets ${begin} to ${end} span ${end - begin}`,
      );
    }
    return {
      kind: 'tensor',
      dtype,
      shape,
      elements,
      strides,
      offset: 0,
      storage: {
        file: this.#file,
        position: this.#dataPosition + begin,
        bytes,
        isBigEndian: false,
      },
      bytes,
    };
  }

  #elements(name: string, shape: readonly number[], strides: readonly number[]): number {
    // Zeros count as ones, so that the strides of a tensor without elements are exact too. All factors are at
    // least 1, so a product beyond the exact integers stays there.
    const extent = (strides[0] ?? 1) * Math.max(1, shape[0] ?? 1);
    if (!Number.isSafeInteger(extent)) {
      throw this.#refusal(
        name,
        'st-elements',
        `the sizes of the shape ${shapeText(shape)} multiply to more than 2^53 − 1`,
      );
    }
    return shape.includes(0) ? 0 : extent;
  }

  #entry(name: string): Entry {
    const scanner = this.#scanner;
    const entry: PartialEntry = { dtype: undefined, shape: undefined, data_offsets: undefined };
    for (let more = scanner.open(OBJECT); more; more = scanner.next(OBJECT)) {
      const field = this.#field(name);
      if (entry[field] !== undefined) {
        throw this.#refusal(name, 'st-field-twice', `the field ${field} stands twice`);
      }
      if (field === 'dtype') entry.dtype = this.#dtype(name);
      else if (field === 'shape') entry.shape = this.#shape(name);
      else entry.data_offsets = this.#offsets(name);
    }
    if (!isWhole(entry)) {
      const missing = FIELDS.filter((field) => entry[field] === undefined);
      throw this.#refusal(name, 'st-field-missing', `lacks ${missing.join(' and ')}`);
    }
    return entry;
  }

  #field(name: string): keyof Entry {
    const text = this.#scanner.key();
    const field = FIELDS_BY_TEXT.get(text);
    if (field === undefined) {
      throw this.#refusal(
        name,
        'st-field-unknown',
        `has a field ${quoted(text)}, expected only ${FIELDS.join(', ')}`,
      );
    }
    return field;
  }

  #dtype(name: string): StoredDtype {
    const text = this.#scanner.string();
    const dtype = DTYPES_BY_TEXT.get(text);
    if (dtype === undefined) {
      throw this.#refusal(
        name,
        'st-dtype',
        `the dtype is ${quoted(text)}, expected one of ${DTYPES.join(', ')}`,
      );
    }
    return dtype;
  }

  #shape(name: string): readonly number[] {
    const shape = this.#integers(MAX_RANK);
    if (shape.length > MAX_RANK) {
      throw this.#refusal(
        name,
        'st-rank',
        `the shape has more than ${MAX_RANK} dimensions: ${shapeText(shape.slice(0, 8))} …`,
      );
    }
    return shape;
  }

  #offsets(name: string): readonly [number, number] {
    const offsets = this.#integers(2);
    if (!isPair(offsets)) {
      throw this.#refusal(
        name,
        'st-offsets',
        `expected 2 numbers in data_offsets, found ${offsets.length > 2 ? 'more' : offsets.length}`,
      );
    }
    return offsets;
  }

  /** Reads an array of integers; stops after `most` + 1 of them. */
  #integers(most: number): readonly number[] {
    const scanner = this.#scanner;
    const scratch = this.#scratch;
    let count = 0;
    for (let more = scanner.open(ARRAY); more && count <= most; more = scanner.next(ARRAY)) {
      scratch[count++] = scanner.integer();
    }
    return scratch.slice(0, count);
  }

  #refusal(name: string, rule: keyof typeof SAFETENSORS_RULES, message: string): UserError {
    return refusal(this.#file.path, {
      rule,
      place: tensorPlace(name),
      message,
      suggestion: SAVE_SAFETENSORS_AGAIN,
    });
  }
}

const isWhole = (entry: PartialEntry): entry is Entry =>
  entry.dtype !== undefined && entry.shape !== undefined && entry.data_offsets !== undefined;

const isPair = (numbers: readonly number[]): numbers is readonly [number, number] =>
  numbers.length === 2;
