import { createRequire } from 'node:module';

/** Where packages come from. */
export interface Packages {
  /** Loads a package, or a JSON file by its path. */
  load(name: string): unknown;
  /** Absolute path of a file of a package. */
  locate(name: string, file: string): string;
}

const require = createRequire(import.meta.url);

/**
 * The packages installed beside this one, by `require`: to import TensorFlow.js as ES modules takes twice
 * as long.
 */
export const INSTALLED: Packages = {
  load: (name) => require(name),
  locate: (name, file) => require.resolve(`${name}/${file}`),
};

/** Version of an installed package, without loading it; undefined when it is not installed. */
export function versionOf(packages: Packages, name: string): string | undefined {
  let manifest: string;
  try {
    manifest = packages.locate(name, 'package.json');
  } catch {
    return undefined;
  }
  return (packages.load(manifest) as { version: string }).version;
}
