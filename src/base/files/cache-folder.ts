/** Place of the caches of this program. `bin/run.js` loads this file before all others, so it imports nothing else. */
import fs from 'node:fs';
import path from 'node:path';

/**
 * The platform's folder for caches of this program.
 * @param env Relative paths in it do not count, as the XDG specification says.
 */
export function cacheFolder(
  env: Readonly<Record<string, string | undefined>>,
  platform: NodeJS.Platform,
  home: string,
): string {
  const { join, isAbsolute } = platform === 'win32' ? path.win32 : path.posix;
  const given = (name: string) => {
    const value = env[name];
    return value !== undefined && isAbsolute(value) ? value : undefined;
  };
  const caches =
    platform === 'win32'
      ? (given('LOCALAPPDATA') ?? join(home, 'AppData', 'Local'))
      : (given('XDG_CACHE_HOME') ??
        (platform === 'darwin' ? join(home, 'Library', 'Caches') : join(home, '.cache')));
  return join(caches, 'minimind');
}

/** Makes a folder of a cache and all folders above it, for the user alone. Throws as `mkdirSync`. */
export function makeCacheFolder(folder: string): void {
  if (fs.existsSync(folder)) return;
  // One by one: where no folder can be made, as in /proc, the recursive call of Node never ends.
  const parent = path.dirname(folder);
  if (parent !== folder) makeCacheFolder(parent);
  try {
    fs.mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    // Another process may have made it meanwhile.
    if (!fs.existsSync(folder)) throw error;
  }
}
