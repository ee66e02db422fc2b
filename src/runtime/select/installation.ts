/** npm commands that add packages to this installation, wherever they are pasted. */
import { existsSync, realpathSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/** How npm got minimind onto this machine. */
export interface Installation {
  readonly kind: 'global' | 'project' | 'clone';
  /** The folder that npm calls its prefix. */
  readonly prefix: string;
}

/** Installed packages at the end of a path, the last of them in the folders of those before. */
const INSTALLED = /(?:[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+)+$/;

/** Kind of the installation whose package lies in the folder `root`. */
export function installationOf(root: string): Installation {
  const owner = root.replace(INSTALLED, '');
  if (owner === root) return { kind: 'clone', prefix: root };
  // npm writes one of the two into each project, and neither beside global packages.
  const marks = ['package.json', path.join('node_modules', '.package-lock.json')];
  if (marks.some((mark) => existsSync(path.join(owner, mark)))) {
    return { kind: 'project', prefix: owner };
  }
  return { kind: 'global', prefix: path.basename(owner) === 'lib' ? path.dirname(owner) : owner };
}

/**
 * The command that installs a package where minimind finds it. A clone keeps its package.json.
 * @param cwd Folder in which it will be pasted; null when that is unknown.
 */
export function installCommand(
  words: string,
  { kind, prefix } = thisInstallation(),
  cwd = currentFolder(),
): string {
  const unsaved = kind === 'clone' ? ['--no-save'] : [];
  return ['npm', 'install', ...place(kind, prefix, cwd), ...unsaved, words].join(' ');
}

/** Options without which npm would work in another folder. */
function place(kind: Installation['kind'], prefix: string, cwd: string | null): string[] {
  if (kind === 'global') return ['--global', '--prefix', shellWord(prefix)];
  return cwd !== null && npmFolder(cwd) === prefix ? [] : ['--prefix', shellWord(prefix)];
}

/** The folder in which npm works when it is started in `cwd`. */
function npmFolder(cwd: string): string {
  for (let folder = cwd; ; folder = path.dirname(folder)) {
    const marks = ['package.json', 'node_modules'].map((name) => path.join(folder, name));
    if (marks.some((mark) => existsSync(mark))) return folder;
    if (folder === path.dirname(folder)) return cwd;
  }
}

/** A path as a shell takes it for one word. */
export function shellWord(text: string): string {
  if (/^[\w@%+=:,./\\-]+$/.test(text)) return text;
  return process.platform === 'win32' ? `"${text}"` : `'${text.replaceAll("'", "'\\''")}'`;
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
    // It is gone.
    return null;
  }
}
