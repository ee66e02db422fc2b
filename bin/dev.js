#!/usr/bin/env node
// Runs the sources as they are, without a build: `npm run dev -- validate FILE`.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Plugin } from '@oclif/core/config';
import { register } from 'tsx/esm/api';

register();
const root = new URL('..', import.meta.url);
const pjson = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'));
pjson.oclif.commands = { strategy: 'pattern', target: './src/commands', globPatterns: ['**/*.ts'] };
// The manifest, where there is one, names the built commands.
const options = { isRoot: true, ignoreManifest: true, pjson, root: fileURLToPath(root) };
const sources = new Plugin(options);
await sources.load();
const { main } = await import('../src/cli/main.ts');
await main(process.argv.slice(2), root, { plugins: new Map([[sources.name, sources]]) });
