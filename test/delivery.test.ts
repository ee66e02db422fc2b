/** Files that publish and run the package elsewhere: workflows, the image, notes of releases. */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
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

describe('the tests on other systems', () => {
  it('are run with each Node that package.json promises', () => {
    const { matrix } = parse(read('.github/workflows/ci.yml')).jobs.check.strategy;
    expect(matrix).toEqual({
      os: ['ubuntu-latest', 'macos-latest', 'windows-latest'],
      node: ['20.19', '22', '24', '26'],
    });
  });
});

describe('a prerelease', () => {
  const { jobs } = parse(read('.github/workflows/release.yml'));
  const bin = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-bin-'));
  afterAll(() => fs.rmSync(bin, { recursive: true }));
  for (const name of ['npm', 'gh', 'docker', 'node']) {
    const script = `#!/bin/sh\necho ${name} "$@" >> "${bin}/calls"\n`;
    fs.writeFileSync(path.join(bin, name), script, { mode: 0o755 });
  }

  /** The programs that the steps of a job call for a tag. */
  const callsOf = (job: string, tag: string): string => {
    fs.rmSync(path.join(bin, 'calls'), { force: true });
    for (const { run } of jobs[job].steps as { run?: string }[]) {
      if (run === undefined || run.startsWith('npm ci')) continue;
      const { status, stderr } = spawnSync(
        'bash',
        ['--noprofile', '--norc', '-eo', 'pipefail', '-c', run],
        {
          cwd: bin,
          encoding: 'utf8',
          env: {
            PATH: `${bin}:${process.env.PATH}`,
            GITHUB_REF_NAME: tag,
            GITHUB_REPOSITORY: 'Owner/minimind',
            GITHUB_SHA: 'abc',
          },
        },
      );
      expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    }
    return fs.readFileSync(path.join(bin, 'calls'), 'utf8');
  };

  it('is not what npm installs by default, nor the latest release or image', () => {
    const published = callsOf('npm', 'v1.2.3-rc.1');
    expect(published).toContain('npm publish --provenance --access public --tag next\n');
    expect(published).toMatch(/gh release create v1\.2\.3-rc\.1 .*--prerelease/);
    expect(callsOf('image', 'v1.2.3-rc.1')).not.toContain('latest');
    expect(jobs.major.if).toMatch(/!contains\(github\.ref_name, '-'\)/);
  });

  it('differs from a release, which moves the tag of its major version', () => {
    const published = callsOf('npm', 'v1.2.3');
    expect(published).toContain('npm publish --provenance --access public\n');
    expect(published).not.toContain('--prerelease');
    const image = callsOf('image', 'v1.2.3');
    expect(image).toContain(
      'docker tag ghcr.io/owner/minimind:1.2.3 ghcr.io/owner/minimind:latest',
    );
    expect(callsOf('major', 'v1.2.3')).toContain(
      'repos/Owner/minimind/git/refs/tags/v1 --field sha=abc --field force=true',
    );
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

  it('is built once, and has the binaries of its own platform only', () => {
    expect(dockerfile).toMatch(/^RUN npm ci --ignore-scripts && npm pack /m);
    expect(dockerfile).not.toContain('npm run build');
    const [line = ''] = /^find .*$/m.exec(read('docs/installation.md')) ?? [];
    const own = line
      .replace('node_modules/', '"$(npm root --global)/')
      .replace('napi-v6', 'napi-v6"');
    expect(dockerfile.replaceAll(/\\\n\s*/g, '')).toContain(own);
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

describe('the form for a mistake', () => {
  it('asks for the version, as the advice for contributors does', () => {
    const { body } = parse(read('.github/ISSUE_TEMPLATE/bug.yml'));
    const labels = (body as { attributes: { label: string } }[]).map(
      (each) => each.attributes.label,
    );
    expect(labels).toContain('minimind --version');
    expect(read('CONTRIBUTING.md')).toContain('`minimind --version`');
  });
});

describe('the page of the library', () => {
  it('names each command that has no function', () => {
    const commands = Object.keys(JSON.parse(read('oclif.manifest.json')).commands);
    const exported = [...read('src/index.ts').matchAll(/\{([^}]*)\} from '\.\/library\//g)];
    const names = exported
      .flatMap(([, list = '']) => list.match(/\w+/g) ?? [])
      .map((name) => name.replace(/[A-Z]/g, (each) => `-${each.toLowerCase()}`));
    const topics = new Set(commands.map((each) => each.split(':')[0] ?? ''));
    const has = (command: string) =>
      names.includes(command.replace('convert-checkpoint', 'convert'));
    const [, text = ''] =
      /These commands have no function: (.*?)\.\n/s.exec(read('docs/library.md')) ?? [];
    const named = [...text.replaceAll(/\(.*?\)/gs, '').matchAll(/`([\w-]+)`/g)].map(
      ([, name]) => name,
    );
    expect(named).toEqual([...topics].filter((topic) => !has(topic)).sort());
  });
});
