// Runs the tests of the last commit under several versions of Node, each in a clean clone:
//   node scripts/test-node-versions.js [VERSION…]
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { installNode, NODE_VERSIONS, run } from './node-binaries.js';

const root = fileURLToPath(new URL('..', import.meta.url));

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

/** Installs Node `version`, clones the last commit and runs its tests; gives the exact version. */
async function testUnder(version, work) {
  const clone = path.join(work, 'clone');
  const bin = await installNode(version, work);
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
for (const version of asked.length > 0 ? asked : NODE_VERSIONS) {
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
