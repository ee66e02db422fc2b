#!/usr/bin/env node
const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  process.stderr.write(`minimind needs Node 20.19 or newer; this is ${process.version}\n`);
  process.exit(3);
}
const { main } = await import('../dist/cli/main.js');
await main(process.argv.slice(2), new URL('..', import.meta.url));
