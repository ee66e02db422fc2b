/** Where an output goes, and as what. */
import fs from 'node:fs';
import path from 'node:path';
import type { Checkpoint } from '../checkpoint/checkpoint.js';
import { UserError } from '../errors.js';

export const CONTAINERS = {
  safetensors: ['.safetensors'],
  pt: ['.pt', '.pth', '.bin', '.ckpt'],
} as const satisfies Record<string, readonly string[]>;

export type Container = keyof typeof CONTAINERS;

export interface OutputPlace {
  /** As the user wrote it. */
  readonly path: string;
  readonly container: Container;
  readonly kind: 'file' | 'folder';
}

/**
 * A name that ends like a file of a container is such a file; any other is a folder of safetensors, or
 * what the user says it is.
 * @throws UserError when the name and the container contradict each other.
 */
export function outputPlace(name: string, container: Container | undefined): OutputPlace {
  if (name === '') throw new UserError('usage', 'the name of the output is empty');
  const ending = path.extname(name).toLowerCase();
  const byName = (Object.keys(CONTAINERS) as Container[]).find((each) =>
    (CONTAINERS[each] as readonly string[]).includes(ending),
  );
  if (byName !== undefined && container !== undefined && byName !== container) {
    throw new UserError(
      'usage',
      `${name} is named like a ${byName} file, and --container says ${container}`,
      {
        suggestion: 'give the output another name, or leave --container out',
      },
    );
  }
  const chosen = container ?? byName ?? 'safetensors';
  const kind = byName === undefined && chosen === 'safetensors' ? 'folder' : 'file';
  return { path: name, container: chosen, kind };
}

/**
 * The input is never written to: neither its files nor, when it is a folder, anything in it.
 * @throws UserError when the output is in the place of the input.
 */
export function refuseOverlap({ path: input, files }: Checkpoint, output: OutputPlace): void {
  const out = realPath(output.path);
  const inputs = [input, ...files.map((file) => file.path)].map(realPath);
  const isFolder = fs.statSync(input, { throwIfNoEntry: false })?.isDirectory() ?? false;
  const overlaps = inputs.some(
    (each) => each === out || (output.kind === 'folder' && isWithin(each, out)),
  );
  if (overlaps || (isFolder && isWithin(out, realPath(input)))) {
    throw new UserError('usage', `${output.path} is in the place of the input ${input}`, {
      suggestion: 'choose an output somewhere else: the input is never changed',
    });
  }
}

function isWithin(inner: string, outer: string): boolean {
  const relative = path.relative(outer, inner);
  return relative !== '' && !relative.startsWith('..') && !path.isAbsolute(relative);
}

/** The real path of what exists; for what does not, that of the nearest folder above that does. */
function realPath(name: string): string {
  const whole = path.resolve(name);
  try {
    return fs.realpathSync(whole);
  } catch {
    const parent = path.dirname(whole);
    return parent === whole ? whole : path.join(realPath(parent), path.basename(whole));
  }
}
