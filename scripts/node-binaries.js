// Other versions of Node, to run things with. The binaries come from npm. The package `node` fetches one
// in an install script, which npm may block; so the package that it would fetch, which is nothing but the
// binary, is installed by itself.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';

/** The oldest that package.json promises, and the release lines after it. */
export const NODE_VERSIONS = ['20.19', '22', '24', '26'];

/** npm's package with the Node binary of this system. */
function binaryPackage() {
  const system = process.platform === 'win32' ? 'win' : process.platform;
  const prefix = system === 'darwin' && process.arch === 'arm64' ? 'node-bin' : 'node';
  return `${prefix}-${system}-${process.arch}`;
}

/** Runs a command to its end and gives what it printed, if asked for. Throws when it fails. */
export function run(command, args, { capture = false, ...options }) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      ...options,
      stdio: ['ignore', capture ? 'pipe' : 'inherit', 'inherit'],
      shell: process.platform === 'win32',
    });
    let text = '';
    child.stdout?.on('data', (chunk) => {
      text += chunk;
    });
    child.on('error', reject);
    child.on('close', (code, signal) => {
      if (code === 0) resolve(text.trim());
      else reject(new Error(`${command} ${args[0]} ended with ${signal ?? code}`));
    });
  });
}

/** Installs Node `version` below the folder `work`; gives the folder that holds the program `node`. */
export async function installNode(version, work) {
  const home = path.join(work, `node-${version}`);
  const name = binaryPackage();
  const quietly = ['--no-save', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error'];
  await run('npm', ['install', ...quietly, '--prefix', home, `${name}@${version}`], {
    cwd: work,
    capture: true,
  });
  const bin = path.join(home, 'node_modules', name, 'bin');
  if (!existsSync(bin)) throw new Error(`${name}@${version} has no bin folder`);
  return bin;
}
