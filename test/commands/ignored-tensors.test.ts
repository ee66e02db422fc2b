/** Each command names the tensors that transformers ignores in one line, and does its work without them. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openCheckpoint } from '../../src/checkpoint/open.js';
import { safetensorsFile } from '../checkpoint/reconcile/files.js';
import { Workshop } from '../checkpoint/reconcile/support.js';
import { inPackage, readJson } from '../fixtures.js';
import { runHere } from '../run-here.js';

const CASE = 'fixtures/hf/gemma3n-text-7-8';
const LINE =
  /ignored by transformers: 4 tensors model\.layers\.\{2–3\}\.self_attn\.k_norm\.weight, model\.layers\.\{2–3\}\.self_attn\.k_proj\.weight, 240 B/i;

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
const workshop = new Workshop();
afterAll(() => {
  workshop.close();
  fs.rmSync(folder, { recursive: true });
});

beforeAll(async () => {
  const original = openCheckpoint(inPackage(CASE));
  const tensors = new Map(original.tensors);
  // As published: its last two layers read keys and values of layers before them, and have unused ones of their own.
  for (const leaf of ['k_proj.weight', 'k_norm.weight']) {
    for (const layer of [2, 3]) {
      tensors.set(
        `model.layers.${layer}.self_attn.${leaf}`,
        workshop.tensor([leaf[2] === 'p' ? 26 : 4]),
      );
    }
  }
  await safetensorsFile(path.join(folder, 'model.safetensors'), tensors);
  original.close();
  fs.copyFileSync(inPackage(CASE, 'config.json'), path.join(folder, 'config.json'));
});

const ids = readJson<{ input_ids: number[][] }>(CASE, 'case.json').input_ids[0] ?? [];

describe('a checkpoint with tensors that transformers ignores:', () => {
  it.each([
    ['verify', []],
    ['inspect', []],
    ['profile', []],
    ['verify', ['--values', CASE]],
    ['diff', [CASE]],
    ['quick-test', ['--only', 'forward']],
    ['generate', ['--ids', ids.join(','), '--max-tokens', '4', '--temperature', '0']],
    ['evaluate', ['--ids', ids.join(',')]],
    ['export', ['--save', path.join(folder, 'model.onnx')]],
  ] as const)('%s %j', async (command, more) => {
    const { code, stdout, stderr } = await runHere([command, folder, ...more]);
    expect({ code, stderr }).toMatchObject({ code: 0 });
    const lines = (stdout + stderr).split('\n').filter((line) => /ignored by/i.test(line));
    expect(lines).toEqual([expect.stringMatching(LINE)]);
  });

  it('gives the same tokens and the same count as without them', async () => {
    const json = async (...args: string[]) =>
      JSON.parse((await runHere([...args, '--json'])).stdout);
    const flags = ['--ids', ids.join(','), '--max-tokens', '4', '--temperature', '0'];
    const [here, there] = [
      await json('generate', folder, ...flags),
      await json('generate', CASE, ...flags),
    ];
    expect(here.answers[0].ids).toEqual(there.answers[0].ids);
    expect((await json('inspect', folder)).parameters).toBe(
      readJson<{ parameters: number }>(CASE, 'case.json').parameters,
    );
  });
});
