/** The files of an exported model, written all or none. */
import path from 'node:path';
import { refuseFullDisk } from '../conversion/resources.js';
import { Staging } from '../files/staging.js';
import type { OnnxExport } from '../runtime/engine.js';
import { progress } from './progress.js';

interface ExportFlags {
  /** Where the graph goes. */
  readonly output: string;
  readonly force: boolean;
  readonly quiet: boolean;
}

/** A file that was written. */
export interface WrittenFile {
  readonly path: string;
  readonly bytes: number;
}

export interface WrittenExport extends Omit<OnnxExport, 'files'> {
  readonly files: readonly WrittenFile[];
}

/**
 * Plans an export and writes it.
 * @param plan Given what the file of the graph is called.
 * @throws UserError when something exists and `force` is off, is one that is read, or the system refuses.
 */
export async function writeExport(
  { output, force, quiet }: ExportFlags,
  plan: (name: string) => OnnxExport,
): Promise<WrittenExport> {
  const options = { kind: 'file', force, resume: false, identity: 'export' } as const;
  const staging = await Staging.open(output, options);
  // A graph whose weights are not finished is of no use, nor the other way round.
  const discard = () => void staging.discard();
  process.prependOnceListener('exit', discard);
  try {
    const { files, ...facts } = plan(staging.mainName);
    const written = files.map(({ name, length }) => ({
      path: name === staging.mainName ? output : path.join(path.dirname(output), name),
      bytes: length,
    }));
    refuseFullDisk(output, written);
    await writeFiles(staging, files, { quiet });
    await staging.commit();
    return { ...facts, files: written };
  } catch (error) {
    await staging.discard();
    throw error;
  } finally {
    process.removeListener('exit', discard);
  }
}

async function writeFiles(
  staging: Staging,
  files: OnnxExport['files'],
  flags: { readonly quiet: boolean },
): Promise<void> {
  const total = files.reduce((sum, { length }) => sum + length, 0);
  const shown = progress(flags, 'exporting', total);
  try {
    for (const { name, pieces } of files) {
      await staging.write(name, async (sink) => {
        for (const piece of pieces()) {
          await sink.write(piece);
          shown.add(piece.length);
        }
      });
    }
  } finally {
    shown.end();
  }
}
