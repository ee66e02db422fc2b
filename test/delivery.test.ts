/** Files that publish and run the package elsewhere: workflows, the image, notes of releases. */
import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { inPackage } from './fixtures.js';

const read = (name: string) => fs.readFileSync(inPackage(name), 'utf8');
const manifest = JSON.parse(read('package.json'));
const { releaseNotes } = await import(inPackage('scripts/release-notes.js'));

describe('release notes', () => {
  const CHANGELOG =
    '# Changelog\n\n## [Unreleased]\n\n- next\n\n## [1.2.0] - 2026-11-28\n\n### Running\n\n- new\n\n## [1.1.0]\n\n- old\n';

  it('are the section of the version', () => {
    expect(releaseNotes('v1.2.0', CHANGELOG, '1.2.0')).toBe('### Running\n\n- new');
  });

  it.each([
    ['v1.2.1', '1.2.0', 'the tag is v1.2.1, and package.json has 1.2.0'],
    ['v1.3.0', '1.3.0', 'has no section [1.3.0]'],
    ['v1.1.0', '1.1.0', 'has no date'],
  ])('refuse %s for a package of %s', (tag, version, message) => {
    expect(() => releaseNotes(tag, CHANGELOG, version)).toThrow(message);
  });
});

describe('workflows', () => {
  const files = fs.readdirSync(inPackage('.github/workflows'));

  it.each(files)('%s runs scripts that exist', (name) => {
    const { jobs, permissions } = parse(read(`.github/workflows/${name}`));
    expect(permissions).toEqual({ contents: 'read' });
    const steps: { run?: string }[] = Object.values<{ steps: [] }>(jobs).flatMap(
      (job) => job.steps,
    );
    const lines = steps.flatMap(({ run }) => run?.split('\n') ?? []);
    expect(lines.length).toBeGreaterThan(0);
    for (const line of lines) {
      const script = /\bnpm run ([\w:]+)/.exec(line)?.[1];
      if (script !== undefined) expect(Object.keys(manifest.scripts)).toContain(script);
      const file = /\bnode (scripts\/\S+)/.exec(line)?.[1];
      if (file !== undefined) expect(fs.existsSync(inPackage(file)), file).toBe(true);
      // An expression in a script would run what a pull request or a tag has written.
      expect(line).not.toContain('${{');
    }
  });
});

describe('the image', () => {
  const dockerfile = read('Dockerfile');

  it('has the engine that the package names, and does not run as root', () => {
    const version =
      manifest.devDependencies['onnxruntime-node'] ??
      manifest.optionalDependencies['onnxruntime-node'];
    expect(dockerfile).toContain(`ARG ENGINE=onnxruntime-node@${version}\n`);
    expect(dockerfile).toMatch(/^USER node$/m);
    expect(dockerfile.indexOf('USER node')).toBeLessThan(dockerfile.indexOf('ENTRYPOINT'));
  });

  it('is built without files that the build does not read', () => {
    const ignored = read('.dockerignore').trimEnd().split('\n');
    expect(ignored).toContain('node_modules');
    for (const name of ignored) {
      expect(
        manifest.files.some((each: string) => each.split('/')[0] === name && name !== 'dist'),
      ).toBe(false);
    }
  });
});
