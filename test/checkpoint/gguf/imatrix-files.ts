/** Importance matrices of llama.cpp made by hand, with any field replaced. */
import { gguf, tensor } from './files.js';

export const i32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32LE(value);
  return bytes;
};

const floats = (values: readonly number[]) => Buffer.from(Float32Array.from(values).buffer);

/** Entry of a .dat file: its name, calls and sums. */
export const entry = (
  name: string | Uint8Array,
  calls: number,
  sums: readonly number[],
  length = sums.length,
): Buffer => {
  const bytes = Buffer.from(name);
  return Buffer.concat([i32(bytes.length), bytes, i32(calls), i32(length), floats(sums)]);
};

/** A .dat file. */
export const older = (entries: readonly Uint8Array[]): Buffer =>
  Buffer.concat([i32(entries.length), ...entries]);

/** A GGUF file with sums and counts by the name of the matrix. */
export function imatrix(
  entries: Readonly<
    Record<string, { readonly sums: readonly number[]; readonly counts?: readonly number[] }>
  >,
): Buffer {
  const tensors: Buffer[] = [];
  const data: Buffer[] = [];
  let offset = 0;
  const put = (name: string, values: readonly number[]) => {
    tensors.push(tensor({ name, sizes: [values.length], offset }));
    const bytes = floats(values);
    const padded = Buffer.alloc(Math.ceil(bytes.length / 32) * 32);
    bytes.copy(padded);
    data.push(padded);
    offset += padded.length;
  };
  for (const [name, { sums, counts }] of Object.entries(entries)) {
    put(`${name}.in_sum2`, sums);
    if (counts) put(`${name}.counts`, counts);
  }
  return gguf({ tensors, data: Buffer.concat(data) });
}
