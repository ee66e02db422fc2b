import fs from 'node:fs';
import path from 'node:path';

/** Hostile files of one shape, and the commands that read them. */
export interface Shape {
  readonly name: string;
  /** Bytes of the files to make; the default sizes when left out. */
  readonly sizes?: readonly number[];
  /** Writes files of about this size into a folder. Returns the path that replaces FILE. */
  readonly make: (folder: string, size: number) => string;
  /** Arguments, in which FILE and FOLDER are placeholders for the written paths. */
  readonly commands: readonly (readonly string[])[];
}

/** A file of this name and content. */
export const oneFile =
  (name: string, content: (size: number) => string | Uint8Array): Shape['make'] =>
  (folder, size) => {
    const file = path.join(folder, name);
    fs.writeFileSync(file, content(size));
    return file;
  };

export const commands = (...lines: readonly string[]) => lines.map((line) => line.split(' '));
