/** Tensors that transformers ignores are no part of the model, and conversions keep them as they are. */
import fs from 'node:fs';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { Shape } from '../../../src/base/tensor/dtype.js';
import { openCheckpoint } from '../../../src/checkpoint/open.js';
import { safetensorsFile } from '../../checkpoint/reconcile/files.js';
import { Workshop } from '../../checkpoint/reconcile/support.js';
import { folderOf } from '../../checkpoint/temp-folder.js';
import { inPackage } from '../../fixtures.js';
import { convertTo, digests, refused, textOf } from './convert.js';

const workshop = new Workshop();
afterAll(() => workshop.close());

/** A copy of a case of fixtures/hf with further tensors, in float32. */
async function withExtra(name: string, extra: Readonly<Record<string, Shape>>): Promise<string> {
  const folder = folderOf({});
  const original = openCheckpoint(inPackage('fixtures/hf', name));
  const tensors = new Map(original.tensors);
  for (const [each, shape] of Object.entries(extra)) tensors.set(each, workshop.tensor(shape));
  await safetensorsFile(path.join(folder, 'model.safetensors'), tensors);
  original.close();
  fs.copyFileSync(inPackage('fixtures/hf', name, 'config.json'), path.join(folder, 'config.json'));
  return folder;
}

/** The layers that predict further tokens of Qwen3-Next, its rotary buffers, and one that only a real model has. */
const QWEN = {
  'mtp.fc.weight': [20, 40],
  'mtp.layers.0.mlp.gate.weight': [4, 20],
  'mtp.layers.1.mlp.gate.weight': [4, 20],
  'mtp.norm.weight': [20],
  'mtp.pre_fc_norm_embedding.weight': [20],
  'mtp.pre_fc_norm_hidden.weight': [20],
} as const;
const NOTE = 'Ignored by transformers: 6 tensors mtp.*, 4.1 kB';

const of = (all: Readonly<Record<string, string>>, names: readonly string[]) =>
  names.map((name) => all[name]);

describe('tensors that transformers ignores', () => {
  it.each([
    ['bf16', { dtype: 'BF16' }],
    ['shards', { shardSize: 20_000 }],
  ] as const)('are kept as they are, and not counted: %s', async (_, flags) => {
    const input = await withExtra('qwen3-next-7-12', QWEN);
    const { file, notes, leftOut, ...result } = await convertTo('out', input, flags);
    const names = Object.keys(QWEN);
    expect(of(digests(file), names)).toEqual(of(digests(input), names));
    expect(notes).toContain(`${NOTE}: kept as they are`);
    expect(leftOut).toEqual([]);
    expect([result.input.parameters, result.output.parameters]).toEqual([10_364, 10_364]);
    expect(result.run?.checked).toBe(true);
  });

  it('are left out of a GGUF file, with a remark', async () => {
    const names = [0, 1].map((layer) => `model.layers.${layer}.self_attn.rotary_emb.inv_freq`);
    const input = await withExtra('llama', Object.fromEntries(names.map((name) => [name, [4]])));
    const { notes, leftOut } = await convertTo('out.gguf', input, {});
    const text =
      'Ignored by transformers: 2 tensors model.layers.{0–1}.self_attn.rotary_emb.inv_freq, 32 B';
    expect(notes.filter((note) => note.startsWith('Ignored'))).toEqual([
      `${text}: a GGUF file has no place for them`,
    ]);
    expect(leftOut.flatMap((each) => each.names)).toEqual(names);
  });

  it('are not those that it reports', async () => {
    const input = await withExtra('qwen3-next-7-12', { 'model.mtp.fc.weight': [20, 40] });
    expect(textOf(await refused(input, { dtype: 'BF16' }))).toContain('model.mtp.fc.weight');
  });
});
