import type { SystemCalls } from '../../../src/engine/adapters/graphics-adapter.js';

interface Given {
  readonly platform?: NodeJS.Platform;
  readonly memoryBytes?: number;
  readonly processor?: string;
  readonly env?: SystemCalls['env'];
  /** Texts by path. */
  readonly files?: Readonly<Record<string, string>>;
  /** Files that may not be opened. */
  readonly closed?: readonly string[];
  /** Output of programs, by name without folder. */
  readonly programs?: Readonly<Record<string, string>>;
  /** URL of the package webgpu, where it is installed. */
  readonly webgpu?: string;
}

export interface FakeMachine extends SystemCalls {
  /** Programs that were run, with their arguments. */
  readonly runs: string[][];
}

/** A simulated machine with only the given files and programs. */
export function machine(given: Given = {}): FakeMachine {
  const { files = {}, closed = [], programs = {}, webgpu } = given;
  const runs: string[][] = [];
  return {
    runs,
    platform: given.platform ?? 'linux',
    memoryBytes: given.memoryBytes ?? 16 * 2 ** 30,
    processor: given.processor ?? '',
    env: given.env ?? {},
    list: async (folder) => {
      const within = Object.keys(files).filter((file) => file.startsWith(`${folder}/`));
      const names = within.map((file) => file.slice(folder.length + 1).split('/', 1)[0] ?? '');
      return [...new Set(names)].sort();
    },
    read: async (file) => files[file] ?? '',
    mayOpen: async (file) => file in files && !closed.includes(file),
    ask: async (program, words) => {
      runs.push([program, ...words]);
      const name = program.split(/[/\\]/).at(-1) ?? '';
      return program === process.execPath ? (programs.webgpu ?? '') : (programs[name] ?? '');
    },
    locate: (name) => (name === 'webgpu' && webgpu !== undefined ? webgpu : null),
  };
}
