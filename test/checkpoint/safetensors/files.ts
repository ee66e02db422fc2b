import fs from 'node:fs';
import path from 'node:path';
import { ByteFile } from '../../../src/checkpoint/byte-file.js';
import type { FileIndex } from '../../../src/checkpoint/checkpoint.js';
import { ruleOf } from '../../../src/checkpoint/checkpoint-rules.js';
import { readSafetensors } from '../../../src/checkpoint/safetensors/read-safetensors.js';
import { fileIn } from '../temp-folder.js';

/** Calls `use` with a temporary file of these bytes. */
export function withFile<T>(bytes: Uint8Array, use: (file: ByteFile) => T): T {
  const name = fileIn('model.safetensors', bytes);
  const file = ByteFile.open(name);
  try {
    return use(file);
  } finally {
    file.close();
    fs.rmSync(path.dirname(name), { recursive: true });
  }
}

/** Index of a file with these bytes. The file is closed, so its tensors cannot be read. */
export const indexOf = (bytes: Uint8Array): FileIndex => withFile(bytes, readSafetensors);

/** Rule that refuses these bytes, if any. */
export function ruleBrokenBy(bytes: Uint8Array): string | undefined {
  try {
    indexOf(bytes);
  } catch (error) {
    const rule = ruleOf(error);
    if (rule === undefined) throw error;
    return rule;
  }
  return undefined;
}

export function lengthField(length: bigint): Buffer {
  const field = Buffer.alloc(8);
  field.writeBigUInt64LE(length);
  return field;
}

/** File of this header, with `dataBytes` zeros as data. */
export function fileBytes(header: string | Uint8Array, dataBytes = 0): Buffer {
  const json = Buffer.from(header);
  return Buffer.concat([lengthField(BigInt(json.length)), json, Buffer.alloc(dataBytes)]);
}

/** One member of a header. The values are written unchanged, so they can be nonsense. */
export function member(
  name: string,
  {
    dtype = '"U8"',
    shape = '[2]',
    offsets = '[0,2]',
  }: { dtype?: string; shape?: string; offsets?: string } = {},
): string {
  return `${JSON.stringify(name)}:{"dtype":${dtype},"shape":${shape},"data_offsets":${offsets}}`;
}

export const header = (...members: readonly string[]) => `{${members.join()}}`;
