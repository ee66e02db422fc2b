import { ByteFile } from '../../src/checkpoint/byte-file.js';
import { ruleOf } from '../../src/checkpoint/checkpoint-rules.js';
import { onFileEnd } from '../cleanup.js';
import { fileIn } from './temp-folder.js';

/** File with these bytes. It is closed after the last test of the calling file. */
export function fileOf(bytes: Uint8Array): ByteFile {
  const file = ByteFile.open(fileIn('file.bin', bytes));
  onFileEnd(() => file.close());
  return file;
}

/** Rule by which `act` refuses a file; the text of any other error; undefined without an error. */
export function ruleBrokenBy(act: () => unknown): string | undefined {
  try {
    act();
  } catch (error) {
    return ruleOf(error) ?? String(error);
  }
  return undefined;
}
