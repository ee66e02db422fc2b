// Writes oclif.manifest.json, the flags of all commands, from the built commands.
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Plugin } from '@oclif/core/config';

const root = fileURLToPath(new URL('..', import.meta.url));
const plugin = new Plugin({
  root,
  type: 'core',
  ignoreManifest: true,
  errorOnManifestCreate: true,
  respectNoCacheDefault: true,
});
await plugin.load();
writeFileSync(path.join(root, 'oclif.manifest.json'), `${JSON.stringify(plugin.manifest)}\n`);
