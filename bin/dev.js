#!/usr/bin/env node
// Runs the sources as they are, without a build: `npm run dev -- validate FILE`.
import { register } from 'tsx/esm/api';

process.env.NODE_ENV = 'development';
register();
const { main } = await import('../src/cli/main.ts');
await main(process.argv.slice(2), new URL('..', import.meta.url));
