import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll } from 'vitest';
import { ByteFile } from '../../src/checkpoint/byte-file.js';
import { ruleOf } from '../../src/checkpoint/checkpoint-rules.js';

let folder: string | undefined;
const files: ByteFile[] = [];
// Test files that share a process share this module, and the first to end must not remove what the others need.
afterAll(() => {
  for (const file of files.splice(0)) file.close();
  if (folder !== undefined) fs.rmSync(folder, { recursive: true });
  folder = undefined;
});

/** A file with these bytes, until the tests of the calling module are done. */
export function fileOf(bytes: Uint8Array): ByteFile {
  folder ??= fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
  const name = path.join(folder, `${files.length}.bin`);
  fs.writeFileSync(name, bytes);
  const file = ByteFile.open(name);
  files.push(file);
  return file;
}

/** The rule by which `act` refuses a file; undefined when it does not, the error when it is another. */
export function ruleBrokenBy(act: () => unknown): string | undefined {
  try {
    act();
  } catch (error) {
    return ruleOf(error) ?? String(error);
  }
  return undefined;
}
