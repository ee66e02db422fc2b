// Runs the tests of the last commit under several versions of Node, each in a clean clone:
//   node scripts/test-node-versions.js [VERSION…]
// The binaries come from npm. The package `node` fetches one in an install script, which npm may block;
// so the package that it would fetch, which is nothing but the binary, is installed by itself.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
/** The oldest that package.json promises, and the release lines after it. */
const VERSIONS = ['20.19', '22', '24'];

/** npm's package with the Node binary of this system. */
function binaryPackage() {
  const system = process.platform === 'win32' ? 'win' : process.platform;
  const prefix = system === 'darwin' && process.arch === 'arm64' ? 'node-bin' : 'node';
  return `${prefix}-${system}-${process.arch}`;
}

/** Environment in which the Node of `folder` is found first, free of what an outer npm has set. */
function environment(folder) {
  const own = Object.entries(process.env).filter(
    ([name]) => !/^(npm_(lifecycle|package|node_execpath|execpath|command)|NODE$)/.test(name),
  );
  return {
    ...Object.fromEntries(own),
    PATH: `${folder}${path.delimiter}${process.env.PATH}`,
    CI: 'true',
  };
}

let interrupted = false;
process.on('SIGINT', () => {
  interrupted = true;
});

/** Runs a command to its end and gives what it printed, if asked for. Throws when it fails. */
function run(command, args, { capture = false, ...options }) {
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

/** Installs Node `version`, clones the last commit and runs its tests; gives the exact version. */
async function testUnder(version, work) {
  const home = path.join(work, 'node');
  const clone = path.join(work, 'clone');
  const name = binaryPackage();
  const quietly = ['--no-save', '--no-audit', '--no-fund', '--ignore-scripts'];
  await run('npm', ['install', ...quietly, '--prefix', home, `${name}@${version}`], { cwd: work });
  const bin = path.join(home, 'node_modules', name, 'bin');
  if (!existsSync(bin)) throw new Error(`${name}@${version} has no bin folder`);

  const env = environment(bin);
  const exact = await run('node', ['--version'], { cwd: work, env, capture: true });
  console.log(`\n=== Node ${exact} ===`);
  await run('git', ['clone', '--quiet', root, clone], { cwd: work });
  await run('npm', ['ci'], { cwd: clone, env });
  await run('npm', ['test'], { cwd: clone, env });
  return exact;
}

const asked = process.argv.slice(2);
const results = [];
for (const version of asked.length > 0 ? asked : VERSIONS) {
  if (interrupted) break;
  const work = mkdtempSync(path.join(tmpdir(), 'minimind-node-'));
  try {
    const exact = await testUnder(version, work);
    results.push({ version, result: `passed with ${exact}`, passed: true });
  } catch (error) {
    results.push({ version, result: `FAILED: ${error.message}`, passed: false });
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

console.log(`\n${'Node'.padEnd(8)}result`);
for (const { version, result } of results) console.log(`${version.padEnd(8)}${result}`);
process.exitCode = interrupted ? 130 : Number(results.some(({ passed }) => !passed));
