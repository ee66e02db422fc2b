/** Metadata of GGUF files: typed values by key. */
import type { ScalarType } from './gguf-scanner.js';

/** A value with its type in the file. An array that is too long to keep has the value null. */
export type GgufValue =
  | { readonly type: ScalarType; readonly value: number | bigint | boolean }
  | { readonly type: 'string'; readonly value: string }
  | {
      readonly type: 'array';
      readonly element: ScalarType | 'string';
      readonly length: number;
      readonly value: readonly (number | bigint | boolean | string)[] | null;
    };

export type GgufKeyValues = ReadonlyMap<string, GgufValue>;
