/** package.json and package-lock.json: what npm does with them on the machine of a user. */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import { RELEASES } from '../src/engine/package-releases.js';
import { inPackage } from './fixtures.js';

const read = (name: string) => JSON.parse(fs.readFileSync(inPackage(name), 'utf8'));
const manifest = read('package.json');

describe('package.json', () => {
  it('has the releases that the program names', () => {
    const { devDependencies, peerDependencies } = manifest;
    expect(RELEASES).toMatchObject(peerDependencies);
    const inClone = Object.entries({ ...devDependencies, ...peerDependencies });
    const known: Record<string, string> = RELEASES;
    const named = inClone.filter(([name]) => name in known);
    expect(named.map(([name, version]) => [name, version])).toEqual(
      named.map(([name]) => [name, known[name]]),
    );
    expect(named.length).toBe(Object.keys(known).length);
    expect(devDependencies['@tensorflow/tfjs-core']).toBe(
      devDependencies['@tensorflow/tfjs-backend-wasm'],
    );
  });

  it('requires no package with native code', () => {
    expect(Object.keys(manifest.dependencies)).toEqual(['zod']);
    expect(manifest.optionalDependencies).toBeUndefined();
    expect(Object.keys(manifest.peerDependenciesMeta).sort()).toEqual(
      Object.keys(manifest.peerDependencies).sort(),
    );
    for (const meta of Object.values(manifest.peerDependenciesMeta)) {
      expect(meta).toEqual({ optional: true });
    }
  });

  // npm 11 and 12 warn of them in each installation, or block them.
  it('has no script that npm runs in an installation of the package', () => {
    const installing = /^(pre|post)?(install|prepare|prepublish|shrinkwrap)$/;
    expect(Object.keys(manifest.scripts).filter((name) => installing.test(name))).toEqual([]);
    expect(manifest.gypfile).toBeUndefined();
  });
});

/**
 * npm marks packages with an install script in the lock file, and `npm ci` runs only the scripts of marked packages. The
 * one of onnxruntime-node would download CUDA, and fail without a network; that of esbuild only saves its start a few
 * milliseconds. `npm install` writes the mark again for a new version: remove it.
 */
it('package-lock.json marks no package with an install script', () => {
  const packages: Record<string, { hasInstallScript?: boolean }> =
    read('package-lock.json').packages;
  const marked = Object.keys(packages).filter((name) => packages[name]?.hasInstallScript);
  expect(marked).toEqual([]);
  expect(Object.keys(packages)).toContain('node_modules/onnxruntime-node');
});

describe('scripts/publisher.js', () => {
  const load = () => import(inPackage('scripts/publisher.js'));

  it.each([
    'https://example.com/owner/name',
    'git+https://example.com/owner/name.git',
    'https://example.com/owner/name/',
  ])('fills in the fields from %s', async (url) => {
    const { withPublisher, missingFields } = await load();
    const filled = withPublisher({ name: 'x', license: 'MIT', type: 'module' }, url, 'A');
    expect(Object.entries(filled)).toEqual([
      ['name', 'x'],
      ['license', 'MIT'],
      ['author', 'A'],
      ['homepage', 'https://example.com/owner/name#readme'],
      ['repository', { type: 'git', url: 'git+https://example.com/owner/name.git' }],
      ['bugs', 'https://example.com/owner/name/issues'],
      ['type', 'module'],
    ]);
    expect(missingFields(filled)).toEqual([]);
    expect(withPublisher(filled, url, 'A')).toEqual(filled);
  });

  it.each(['owner/name', 'http://example.com/a/b', 'https://example.com/a', 'git@x:a/b.git'])(
    'refuses %s',
    async (url) => {
      const { withPublisher } = await load();
      expect(() => withPublisher({}, url, 'A')).toThrow(
        `expected https://HOST/OWNER/NAME, found ${url}`,
      );
    },
  );

  it('names the repository in the lines to paste of the documentation', async () => {
    const { withRepository } = await load();
    const page = 'git clone https://github.com/OWNER/minimind && x\n- uses: OWNER/minimind@v1\n';
    expect(withRepository(page, 'https://github.com/a/b.git')).toBe(
      'git clone https://github.com/a/b && x\n- uses: a/b@v1\n',
    );
  });

  it('gives the JSON Schemas an address in the repository', async () => {
    const { schemaFolder, withPublisher, withSchemaId } = await load();
    const of = (url: string) => schemaFolder(withPublisher({}, url, 'A'));
    const text = '{\n  "$id": "profile.schema.json",\n  "title": "x.schema.json"\n}\n';
    const first = withSchemaId(text, of('https://example.com/a/b'));
    expect(JSON.parse(first)).toEqual({
      $id: 'https://example.com/a/b/raw/HEAD/docs/schemas/profile.schema.json',
      title: 'x.schema.json',
    });
    expect(withSchemaId(first, of('https://example.com/a/b'))).toBe(first);
    expect(withSchemaId(first, schemaFolder({}))).toBe(text);
  });

  it('refuses to publish as long as a field is missing', async () => {
    const { missingFields } = await load();
    const missing = missingFields(manifest);
    const { status, stderr } = spawnSync(
      process.execPath,
      [inPackage('scripts/publisher.js'), '--check'],
      { encoding: 'utf8' },
    );
    expect({ status, stderr }).toEqual(
      missing.length === 0
        ? { status: 0, stderr: '' }
        : {
            status: 2,
            stderr: `package.json has no ${missing.join(', ')}. Fill them in: npm run publisher -- https://github.com/OWNER/NAME 'Name of the author'\n`,
          },
    );
    expect(manifest.scripts.prepublishOnly).toBe('node scripts/publisher.js --check');
  });
});
