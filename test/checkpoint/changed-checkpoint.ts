import fs from 'node:fs';
import path from 'node:path';
import { inPackage } from '../fixtures.js';
import { folderOf } from './temp-folder.js';

/** Tensors of zeros by name: type, shape and bytes. */
export type Zeros = Readonly<Record<string, readonly [string, readonly number[], number]>>;

interface Entry {
  readonly data_offsets?: readonly [number, number];
}

/** Folder with the model of a fixture, and with further or changed tensors of zeros in its safetensors file. */
export function changedCheckpoint(fixture: string, changes: Zeros): string {
  const source = inPackage(fixture);
  const file = fs.readFileSync(path.join(source, 'model.safetensors'));
  const start = 8 + Number(file.readBigUInt64LE());
  const entries: Record<string, Entry> = JSON.parse(file.toString('utf8', 8, start));
  const parts: Buffer[] = [];
  let end = 0;
  const place = (name: string, entry: object, data: Buffer) => {
    entries[name] = { ...entry, data_offsets: [end, end + data.length] };
    end += data.length;
    parts.push(data);
  };
  for (const [name, entry] of Object.entries(entries)) {
    if (entry.data_offsets === undefined || changes[name] !== undefined) continue;
    const [from, to] = entry.data_offsets;
    place(name, entry, file.subarray(start + from, start + to));
  }
  for (const [name, [dtype, shape, bytes]] of Object.entries(changes)) {
    place(name, { dtype, shape }, Buffer.alloc(bytes));
  }
  const header = Buffer.from(JSON.stringify(entries));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  return folderOf({
    'config.json': fs.readFileSync(path.join(source, 'config.json')),
    'model.safetensors': Buffer.concat([length, header, ...parts]),
  });
}
