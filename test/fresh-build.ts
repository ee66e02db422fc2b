/** Builds `dist/`, which the tests of commands run, when its sources have changed since the last build. */
import { spawnSync } from 'node:child_process';
import type { TestProject } from 'vitest/node';
import { inPackage, ROOT } from './fixtures.js';

interface SourceHash {
  readonly sourceHash: () => string;
  readonly builtHash: () => string | undefined;
}

/** Runs once before the workers start, and again before each run of the watch mode. */
export async function setup(project: TestProject): Promise<void> {
  await buildWhenStale();
  project.onTestsRerun(buildWhenStale);
}

async function buildWhenStale(): Promise<void> {
  const { sourceHash, builtHash }: SourceHash = await import(inPackage('scripts/source-hash.js'));
  if (sourceHash() === builtHash()) return;
  process.stderr.write('building dist: its sources have changed\n');
  const { status } = spawnSync(process.execPath, [inPackage('scripts/build.js')], {
    cwd: ROOT,
    stdio: 'inherit',
  });
  // An error thrown here would be reported as missing tests.
  if (status !== 0) process.exit(1);
}
