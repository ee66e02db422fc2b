/** Writes all files of an exported model, or none. */

import path from 'node:path';
import { refuseOtherEnding } from '../base/files/file-endings.js';
import { Staging } from '../base/files/staging.js';
import { refuseFullDisk } from '../base/files/write-whole.js';
import type { ProgressDisplay } from '../base/progress-display.js';
import { setting } from '../base/text/setting.js';
import type { OnnxExport } from './onnx-export.js';

interface ExportRequest {
  /** The file of the graph. */
  readonly save: string;
  readonly force: boolean;
  readonly display: ProgressDisplay;
}

export interface WrittenFile {
  /** Path of the file. */
  readonly path: string;
  /** Size of the file. @count */
  readonly bytes: number;
}

export interface WrittenExport extends Omit<OnnxExport, 'files'> {
  /** Written files: the graph, and the file of the weights if there is one. @minItems 1 */
  readonly files: readonly WrittenFile[];
}

/**
 * A model as an ONNX graph.
 * @answer minimind export --json
 */
export interface ExportResult extends WrittenExport {
  readonly schema: 'minimind/export@1';
  /** Path of the model as the user wrote it. */
  readonly config: string;
  /** Family of the model. */
  readonly family: string;
  /** Checkpoint of the weights; null when they are random. */
  readonly checkpoint: string | null;
  /** Seed of random weights; null for those of a checkpoint. @count */
  readonly seed: number | null;
  /** Longest input of the model. @integer @minimum 1 */
  readonly positions: number;
}

/**
 * Plans an export and writes it.
 * @param plan Receives the name of the graph's file.
 * @throws UserError when a file exists without `force`, is also an input, or cannot be written.
 */
export async function writeExport(
  { save, force, display }: ExportRequest,
  plan: (name: string) => OnnxExport,
): Promise<WrittenExport> {
  const options = { kind: 'file', force, resume: false, identity: 'export' } as const;
  const staging = await Staging.open(save, options);
  // A graph without its weights is useless, and so are weights without their graph.
  const discard = () => void staging.discard();
  process.prependOnceListener('exit', discard);
  try {
    refuseOtherEnding(setting('save'), save, ['.onnx']);
    const { files, ...facts } = plan(staging.mainName);
    const written = files.map(({ name, length }) => ({
      path: name === staging.mainName ? save : path.join(path.dirname(save), name),
      bytes: length,
    }));
    refuseFullDisk(save, written);
    await writeFiles(staging, files, display);
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
  display: ProgressDisplay,
): Promise<void> {
  const total = files.reduce((sum, { length }) => sum + length, 0);
  const shown = display.bytes('exporting', total);
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
