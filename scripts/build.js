// Compiles src to dist and writes oclif.manifest.json, with which a command starts without loading the others.
import { execFileSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const require = createRequire(import.meta.url);

rmSync(new URL('../dist', import.meta.url), { recursive: true, force: true });
rmSync(new URL('../oclif.manifest.json', import.meta.url), { force: true });
execFileSync(
  process.execPath,
  [require.resolve('typescript/bin/tsc'), '-p', 'tsconfig.build.json'],
  {
    cwd: root,
    stdio: 'inherit',
  },
);

const { Plugin } = await import('@oclif/core/config');
const plugin = new Plugin({
  root,
  type: 'core',
  ignoreManifest: true,
  errorOnManifestCreate: true,
  respectNoCacheDefault: true,
});
await plugin.load();
const manifest = plugin.manifest;
writeFileSync(
  new URL('../oclif.manifest.json', import.meta.url),
  `${JSON.stringify(manifest, null, 1)}\n`,
);
