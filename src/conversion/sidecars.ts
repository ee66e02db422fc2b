/** Files of a model folder that a conversion copies as they are: tokenizer, chat template, generation config. */
import fs from 'node:fs';
import path from 'node:path';
import type { Checkpoint } from '../checkpoint/checkpoint.js';
import { isIndexName, isWeightsName } from '../checkpoint/formats.js';
import { listed } from '../checkpoint/wording.js';
import { UserError } from '../errors.js';
import { CONFIG_NAMES, isSidecarName } from '../files/config-names.js';
import { readFileAtMost } from '../files/read-file.js';
import type { OutputFile } from './outputs.js';

export interface Sidecar {
  readonly name: string;
  readonly path: string;
  readonly bytes: number;
  /** When it was last changed, in milliseconds since 1970. */
  readonly changedAt: number;
}

/** The largest tokenizers have 35 MB. */
const MOST_BYTES = 100e6;

/** The sidecars in the folder of a checkpoint, by name. Links are followed, as in the hub's cache. */
export function sidecarsOf(checkpoint: Pick<Checkpoint, 'path' | 'files'>): Sidecar[] {
  const folder = folderOf(checkpoint);
  return namesIn(folder)
    .filter(isSidecarName)
    .flatMap((name): Sidecar[] => {
      const file = path.join(folder, name);
      const stat = fs.statSync(file, { throwIfNoEntry: false });
      if (!stat?.isFile()) return [];
      return [{ name, path: file, bytes: stat.size, changedAt: stat.mtimeMs }];
    });
}

/** The output's copies. @throws UserError, when they are written, for one that is too large or has changed. */
export const copiesOf = (sidecars: readonly Sidecar[]): OutputFile[] =>
  sidecars.map(({ name, path: file, bytes }) => ({
    name,
    bytes,
    fill: async (sink) => {
      const content = await readFileAtMost(file, { most: MOST_BYTES, isFound: true });
      if (content?.length !== bytes) {
        const why =
          content === undefined ? 'is larger than 100 MB' : 'was changed while it was read';
        throw new UserError('refused-file', `${file} ${why}`, {
          suggestion: 'move it out of the folder, and copy it to the output by hand',
        });
      }
      await sink.write(content);
    },
  }));

/** What a user is told about files beside the input that the output does not have. */
export function sidecarNotes(
  checkpoint: Pick<Checkpoint, 'path' | 'files'>,
  kind: 'file' | 'folder',
): string[] {
  const sidecars = sidecarsOf(checkpoint).map(({ name }) => name);
  if (kind === 'file') {
    return sidecars.length > 0
      ? [`Not copied, because OUT is a file: ${listed(sidecars)}; name a folder to have them in it`]
      : [];
  }
  if (!isFolderInput(checkpoint)) return [];
  const others = namesIn(folderOf(checkpoint)).filter(
    (name) =>
      !name.startsWith('.') &&
      !isWeightsName(name) &&
      !isIndexName(name) &&
      !CONFIG_NAMES.includes(name) &&
      !sidecars.includes(name),
  );
  return others.length > 0 ? [`Not copied from the folder of the input: ${listed(others)}`] : [];
}

/** @throws UserError when a folder that would be replaced holds sidecars that the new one would lack. */
export function refuseLostSidecars(out: string, written: readonly Sidecar[]): void {
  const kept = new Set(written.map(({ name }) => name));
  const lost = namesIn(out).filter((name) => isSidecarName(name) && !kept.has(name));
  if (lost.length === 0) return;
  throw new UserError(
    'usage',
    `${out} is not replaced: it holds ${lost.join(', ')}, which the new folder would not have`,
    {
      suggestion: 'move them away, put them beside the input, or choose another name',
    },
  );
}

const isFolderInput = ({ path: input }: Pick<Checkpoint, 'path'>): boolean =>
  fs.statSync(input, { throwIfNoEntry: false })?.isDirectory() ?? false;

const folderOf = ({ path: input, files }: Pick<Checkpoint, 'path' | 'files'>): string =>
  isFolderInput({ path: input }) ? input : path.dirname(files[0]?.path ?? input);

/** Names in a folder, sorted; none where it cannot be read. */
function namesIn(folder: string): string[] {
  try {
    return fs.readdirSync(folder).sort();
  } catch {
    return [];
  }
}
