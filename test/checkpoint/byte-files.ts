import { ByteFile } from '../../src/checkpoint/byte-file.js';
import { ruleOf } from '../../src/checkpoint/checkpoint-rules.js';
import { onFileEnd } from '../cleanup.js';
import { fileIn } from './temp-folder.js';

/** A file with these bytes, until the tests of the calling module are done. */
export function fileOf(bytes: Uint8Array): ByteFile {
  const file = ByteFile.open(fileIn('file.bin', bytes));
  onFileEnd(() => file.close());
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
