/** Where an output goes, and as what. */
import path from 'node:path';
import type { Checkpoint } from '../checkpoint/checkpoint.js';
import { UserError } from '../errors.js';
import { CONFIG_FILES, ownConfigNames } from '../files/config-names.js';
import { overlap } from '../files/location.js';

export const CONTAINERS = {
  safetensors: ['.safetensors'],
  pt: ['.pt', '.pth', '.bin', '.ckpt'],
} as const satisfies Record<string, readonly string[]>;

export type Container = keyof typeof CONTAINERS;

/** Endings of files, such as `.gguf`, `.txt` or a mistyped `.safetensor`; not those of versions: `llama-3.2-1b`. */
const FILE_ENDING = /^\.(?:[a-z]{3,}\d?|gz|h5|7z)$/;

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
  if (byName === undefined && !/[/\\]$/.test(name) && FILE_ENDING.test(ending)) {
    throw new UserError('usage', `${name}: ${ending} files cannot be written`, {
      suggestion: `end the name in .safetensors or .pt, or write ${name}/ for a folder`,
    });
  }
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

/** What a conversion reads beside its input, and writes beside its output. */
export interface Surroundings {
  /** Configs. */
  readonly read: readonly string[];
  /** The file for the report; undefined when that is printed. */
  readonly report: string | undefined;
}

/**
 * What is read is never written to, and the report takes the place of nothing else: neither its files nor,
 * when one is a folder, anything in it.
 * @throws UserError when two of them are in one place.
 */
export function refuseOverlap(
  { path: input, files }: Pick<Checkpoint, 'path' | 'files'>,
  output: OutputPlace,
  { read, report }: Surroundings,
): void {
  const inputs = [input, ...files.map((file) => file.path), ...read];
  const inPlace = inputs.find((each) => overlap(each, output.path));
  if (inPlace !== undefined) {
    throw new UserError('usage', `${output.path} is in the place of ${inPlace}, which is read`, {
      suggestion: 'choose an output somewhere else: the input is never changed',
    });
  }
  const [, taken] =
    report === undefined
      ? []
      : ([...inputs, output.path, ...configsBeside(output)]
          .map((each) => [overlap(report, each), each] as const)
          .find(([isTaken]) => isTaken) ?? []);
  if (taken === undefined) return;
  throw new UserError('usage', `the report would be in the place of ${taken}`, {
    suggestion: 'give another file with --output',
  });
}

/** Names that the config beside a file may have. */
const configsBeside = ({ path: output, kind }: OutputPlace): string[] =>
  kind === 'folder'
    ? []
    : [...Object.values(CONFIG_FILES), ...ownConfigNames(output)].map((name) =>
        path.join(path.dirname(output), name),
      );
