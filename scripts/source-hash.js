// The state of what the build reads. The build writes it into dist, and the tests build again when it differs.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Files and folders that the build reads. */
const SOURCES = [
  'src',
  'configs',
  'package.json',
  'package-lock.json',
  'tsconfig.json',
  'tsconfig.build.json',
  'scripts/build.js',
  'scripts/bundled',
  'scripts/licences.js',
  'scripts/man-pages.js',
  'scripts/manifest.js',
  'scripts/presets.js',
  'scripts/sbom.js',
];

const HASH_FILE = path.join(root, 'dist/sources.sha256');

function filesOf(name) {
  const entry = path.join(root, name);
  const names = readdirSync(entry, { withFileTypes: true, recursive: true })
    .filter((each) => each.isFile())
    .map((each) => path.relative(root, path.join(each.parentPath, each.name)));
  return names.map((each) => each.replaceAll(path.sep, '/')).sort();
}

/** Hash of the names and bytes of all sources. Times are not part of it: a checkout changes them. */
export function sourceHash() {
  const hash = createHash('sha256');
  const files = SOURCES.flatMap((name) => (/\.\w+$/.test(name) ? [name] : filesOf(name)));
  for (const name of files) {
    const bytes = readFileSync(path.join(root, name));
    hash.update(`${name} ${bytes.length}\n`).update(bytes);
  }
  return hash.digest('hex');
}

/** Hash of the sources that dist was built from; undefined when there is no complete build. */
export function builtHash() {
  try {
    readFileSync(path.join(root, 'oclif.manifest.json'));
    return readFileSync(HASH_FILE, 'utf8');
  } catch (error) {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Marks the build as complete. */
export function writeBuiltHash(hash) {
  writeFileSync(HASH_FILE, hash);
}
