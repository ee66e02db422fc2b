/**
 * Follows docs/adding-a-model.md to the letter in a copy of the sources without that family: its file and its line make
 * a family that matches PyTorch.
 */
import fs from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openCheckpoint } from '../src/checkpoint/open.js';
import { onnxVersion } from '../src/engine/onnx/library.js';
import { differenceAt, valuesOf } from './engine/fixture-models.js';
import {
  applySteps,
  buildCopy,
  copyOfSource,
  DOCUMENTATION,
  readPage,
  runIn,
  writeTables,
} from './executed-pages.js';
import { inPackage, readJson } from './fixtures.js';
import { isWhole } from './sampled.js';

const FAMILY_FILE = 'src/model/architecture/models/persimmon.ts';
const CASE = inPackage('fixtures/adding-a-model');

let copy: string;
let touched: Set<string>;

beforeAll(async () => {
  copy = copyOfSource(...DOCUMENTATION);
  removeFamily(copy);
  touched = applySteps(readPage('docs/adding-a-model.md'), copy);
  await buildCopy(copy);
}, 60_000);

afterAll(() => fs.rmSync(copy, { recursive: true, force: true }), 60_000);

/** Takes the family of the page out of a copy, so that the page can add it. */
function removeFamily(from: string): void {
  fs.rmSync(path.join(from, FAMILY_FILE));
  const list = path.join(from, 'src/model/architecture/families.ts');
  const text = fs.readFileSync(list, 'utf8');
  fs.writeFileSync(list, text.replace(/^ {2}persimmon: .*\n/m, ''));
}

const run = (...args: string[]) => runIn(copy, args);

describe('a family made by docs/adding-a-model.md', () => {
  const { parameters, input_ids } = readJson<{ parameters: number; input_ids: number[][] }>(
    'fixtures/adding-a-model/case.json',
  );

  it('is one file and one line, from which the tables of the documentation follow', () => {
    expect([...touched].sort()).toEqual(['src/model/architecture/families.ts', FAMILY_FILE]);
    const written = fs.readFileSync(path.join(copy, FAMILY_FILE), 'utf8');
    expect(written).toBe(fs.readFileSync(inPackage(FAMILY_FILE), 'utf8'));
    writeTables(copy);
    for (const page of ['docs/models.md', 'docs/config-keys.md']) {
      expect(fs.readFileSync(path.join(copy, page), 'utf8'), page).toContain('`persimmon`');
    }
  });

  it('has the number of parameters that transformers counts', () => {
    const args = ['profile', `${CASE}/config.json`, '--json'];
    // From its sources it starts ten times as slowly.
    const launcher = isWhole ? 'bin/dev.js' : 'bin/run.js';
    const { status, stdout, stderr } = runIn(copy, args, launcher);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(JSON.parse(stdout)).toMatchObject({
      family: 'persimmon',
      parameters: { total: { value: parameters } },
    });
  });

  it('has the names and shapes of its checkpoint', () => {
    const { status, stdout } = run(
      'verify',
      `${CASE}/config.json`,
      `${CASE}/model.safetensors`,
      '--json',
    );
    expect({ status, ...JSON.parse(stdout) }).toMatchObject({ status: 0, matches: true });
  });

  it.skipIf(onnxVersion() === undefined)('computes the logits of PyTorch', () => {
    const ids = path.join(copy, 'ids.json');
    const saved = path.join(copy, 'out.safetensors');
    fs.writeFileSync(ids, JSON.stringify(input_ids));
    const flags = ['--checkpoint', CASE, '--ids', ids, '--save', saved, '--quiet'];
    const { status, stdout } = run('quick-test', `${CASE}/config.json`, ...flags);
    expect(status, stdout).toBe(0);
    const [ours, theirs] = [saved, `${CASE}/expected.safetensors`].map((file) =>
      valuesOf(openCheckpoint(file).tensors.get('logits') ?? expect.unreachable()),
    );
    expect(
      differenceAt(ours ?? expect.unreachable(), theirs ?? expect.unreachable(), 1),
    ).toBeLessThan(2e-5);
  });
});
