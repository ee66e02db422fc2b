/** npm commands that add packages to this installation, from any working directory. */
import { existsSync, realpathSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { shellWord } from '../../base/text/shell-words.js';

/** Type and location of minimind's npm installation. */
export interface Installation {
  readonly kind: 'global' | 'project' | 'clone';
  /** The folder that npm calls its prefix. */
  readonly prefix: string;
}

/** Installed packages at the end of a path, including nested ones. */
const INSTALLED = /(?:[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+)+$/;

/** Kind of the installation of the package in the folder `root`. */
export function installationOf(root: string): Installation {
  const owner = root.replace(INSTALLED, '');
  if (owner === root) return { kind: 'clone', prefix: root };
  // npm writes one of the two into each project, and none for global packages.
  const marks = ['package.json', path.join('node_modules', '.package-lock.json')];
  if (marks.some((mark) => existsSync(path.join(owner, mark)))) {
    return { kind: 'project', prefix: owner };
  }
  return { kind: 'global', prefix: path.basename(owner) === 'lib' ? path.dirname(owner) : owner };
}

/**
 * The command that installs a package where minimind finds it. It leaves a clone's package.json unchanged.
 * @param cwd Working directory of the command; null when unknown.
 */
export function installCommand(
  words: string,
  { kind, prefix } = thisInstallation(),
  cwd = currentFolder(),
): string {
  const unsaved = kind === 'clone' ? ['--no-save'] : [];
  return ['npm', 'install', ...place(kind, prefix, cwd), ...unsaved, words].join(' ');
}

/** Options that make npm use the right folder. */
function place(kind: Installation['kind'], prefix: string, cwd: string | null): string[] {
  if (kind === 'global') return ['--global', '--prefix', shellWord(prefix)];
  return cwd !== null && npmFolder(cwd) === prefix ? [] : ['--prefix', shellWord(prefix)];
}

/** The folder in which npm works when started in `cwd`. */
function npmFolder(cwd: string): string {
  for (let folder = cwd; ; folder = path.dirname(folder)) {
    const marks = ['package.json', 'node_modules'].map((name) => path.join(folder, name));
    if (marks.some((mark) => existsSync(mark))) return folder;
    if (folder === path.dirname(folder)) return cwd;
  }
}

function thisInstallation(): Installation {
  let folder = path.dirname(fileURLToPath(import.meta.url));
  while (!existsSync(path.join(folder, 'package.json')) && folder !== path.dirname(folder)) {
    folder = path.dirname(folder);
  }
  return installationOf(folder);
}

function currentFolder(): string | null {
  try {
    return realpathSync(process.cwd());
  } catch {
    // The folder no longer exists.
    return null;
  }
}
