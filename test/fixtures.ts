import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/** Folder of the package. */
export const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** Absolute path of a file or folder of the package. */
export const inPackage = (...parts: string[]) => path.join(ROOT, ...parts);

/** Names of all commands as users type them: `compare`, `kv-projector params`. */
export const commandNames = (): string[] =>
  fs
    .readdirSync(inPackage('src/commands'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => file.slice(0, -'.ts'.length).split(path.sep).join(' '))
    .sort();

export function readJson<T>(...parts: string[]): T {
  return JSON.parse(fs.readFileSync(inPackage(...parts), 'utf8')) as T;
}

/** One configuration, with the names and counts of the original implementation. */
export interface HybridCase {
  readonly name: string;
  readonly config: Record<string, unknown>;
  readonly aliases: Record<string, string>;
  readonly parameters: number;
  /** Name → shape of the tensors in its safetensors file. */
  readonly layout: Record<string, number[]>;
}

export function hybridCases(): HybridCase[] {
  return fs.readdirSync(inPackage('fixtures/hybrid')).map((name) => ({
    ...readJson<Omit<HybridCase, 'name' | 'layout'>>('fixtures/hybrid', name, 'case.json'),
    layout: readJson('fixtures/hybrid', name, 'layout.json'),
    name,
  }));
}
