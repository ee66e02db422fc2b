/** Files with the values of an ONNX model, next to it. */

import { dirname, join } from 'node:path';
import { UserError } from '../../base/errors.js';
import { allowedFolders, goesDown, isAllowed } from '../../base/files/linked-files.js';
import { mountedPath, pathExists } from '../../base/files/mounted.js';
import { groupBy } from '../../base/values.js';
import { ByteFile, realPath } from '../byte-file.js';
import { exactBytesText, quoted, refusal, tensorPlace } from '../checkpoint-rules.js';
import type { OnnxTensor } from './tensor-proto.js';

/** A file that the model names. */
export interface ExternalFile {
  /** As the model writes it, relative to its folder. */
  readonly location: string;
  /** Tensors in the file. @count */
  readonly tensors: number;
  /** Bytes of the tensors in it; shared ones once for each. @count */
  readonly bytes: number;
  /** Bytes of the file; null where it is missing. @count */
  readonly size: number | null;
}

interface ExternalTensor {
  readonly name: string;
  readonly offset: number;
  readonly bytes: number;
}

export interface ExternalFiles {
  readonly described: readonly ExternalFile[];
  /** Open files by location; missing ones are absent. */
  readonly open: ReadonlyMap<string, ByteFile>;
}

/**
 * Opens the files that tensors name. A missing file is an error only when values are read.
 * @throws UserError when a name leads out of the folder, or a tensor does not lie in its file.
 */
export function openExternalFiles(file: ByteFile, tensors: readonly OnnxTensor[]): ExternalFiles {
  const external = tensors.flatMap(({ name, data }) =>
    data.kind === 'external' ? [{ ...data, name }] : [],
  );
  const byLocation = groupBy(external, ({ location }) => location);
  const open = new Map<string, ByteFile>();
  try {
    const described = Array.from(byLocation, ([location, some]): ExternalFile => {
      const opened = openBeside(file, location, some);
      if (opened) open.set(location, opened);
      checkPlaces(file, location, some, opened?.size);
      const bytes = some.reduce((sum, each) => sum + each.bytes, 0);
      return { location, tensors: some.length, bytes, size: opened?.size ?? null };
    });
    return { described, open };
  } catch (error) {
    for (const each of open.values()) each.close();
    throw error;
  }
}

/** Undefined for a missing file. */
function openBeside(
  file: ByteFile,
  location: string,
  [first]: readonly ExternalTensor[],
): ByteFile | undefined {
  const place = tensorPlace(first?.name ?? '');
  if (!goesDown(location)) {
    throw refusal(file.path, {
      rule: 'onnx-external-path',
      place,
      message: `names the file ${quoted(location)}; expected a path below the folder of the model, without a drive, a root, "." or ".."`,
      suggestion: 'do not use this model unless you know who made it',
    });
  }
  const path = join(dirname(file.path), location);
  if (mountedPath(path)) return pathExists(path) ? ByteFile.open(path) : undefined;
  if (realPath(path) === undefined) return undefined;
  const opened = ByteFile.open(path);
  const target = opened.locate();
  if (isAllowed(target, allowedFolders(dirname(file.path)))) return opened;
  opened.close();
  throw refusal(file.path, {
    rule: 'onnx-external-folder',
    place,
    message: `${location} is a link to ${quoted(target)}, which is outside of the folder`,
    suggestion: 'put the file itself into the folder',
  });
}

/** Tensors lie in their file, and are the same bytes, one in the other, or disjoint. */
function checkPlaces(
  file: ByteFile,
  location: string,
  tensors: readonly ExternalTensor[],
  size = Number.POSITIVE_INFINITY,
): void {
  const sorted = tensors
    .filter(({ bytes }) => bytes > 0)
    .sort((a, b) => a.offset - b.offset || b.bytes - a.bytes);
  /** Tensors around the current one, the innermost last. */
  const around: ExternalTensor[] = [];
  for (const tensor of sorted) {
    const end = tensor.offset + tensor.bytes;
    if (end > size) {
      throw refusal(file.path, {
        rule: 'onnx-external-range',
        place: tensorPlace(tensor.name),
        message: `takes ${exactBytesText(tensor.bytes)} from byte ${tensor.offset} of ${location} on, which has ${size}`,
        suggestion: `copy or download ${location} again`,
      });
    }
    while (around.length > 0 && endOf(around.at(-1)) <= tensor.offset) around.pop();
    const outer = around.at(-1);
    if (outer && endOf(outer) < end) {
      throw refusal(file.path, {
        rule: 'onnx-external-overlap',
        place: tensorPlace(tensor.name),
        message: `overlaps ${tensorPlace(outer.name)} in ${location}`,
      });
    }
    around.push(tensor);
  }
}

const endOf = (tensor: ExternalTensor | undefined): number =>
  tensor ? tensor.offset + tensor.bytes : 0;

/** Error for values in a file that is not there. */
export const missingExternal = (file: ByteFile, location: string) =>
  new UserError('refused-file', `${file.path} has values in ${location}, which is missing`, {
    suggestion: `put ${location} next to the model; names, shapes and sizes can be shown without it`,
  });
