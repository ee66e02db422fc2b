#!/usr/bin/env node
import module from 'node:module';
import os from 'node:os';
import path from 'node:path';

const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  process.stderr.write(`minimind needs Node 20.19 or newer; this is ${process.version}\n`);
  process.exit(3);
}
prepareCommandLibrary();
await keepCompiledCode();
const { main } = await import('../dist/cli/main.js');
await main(process.argv.slice(2), new URL('..', import.meta.url));

/** Takes from the command library what it would ask of the user's environment, before it is loaded. */
function prepareCommandLibrary() {
  // Otherwise NODE_ENV=development sends it looking for TypeScript sources.
  globalThis.oclif = { ...globalThis.oclif, enableAutoTranspile: false };
  // It asks the list of users for a shell and a home, and fails for a user who is not in it.
  process.env.SHELL ??= 'unknown';
  try {
    os.homedir();
  } catch {
    process.env.HOME = '/nonexistent';
  }
}

/**
 * From Node 22 on, compiled code can be kept for the next start. It is kept in a folder of the user's
 * own: in a temporary folder that is shared, others could leave code there to be run.
 */
async function keepCompiledCode() {
  if (!module.enableCompileCache) return;
  const { cacheFolder, makeCacheFolder } = await import('../dist/base/files/cache-folder.js');
  try {
    const own = cacheFolder(process.env, process.platform, os.homedir());
    if (!path.isAbsolute(own)) return;
    makeCacheFolder(own);
    module.enableCompileCache(own);
  } catch {
    // Who has no place for it starts a little slower.
  }
}
