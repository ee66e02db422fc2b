import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { Shape } from '../../../src/base/tensor/dtype.js';
import { openCheckpoint } from '../../../src/checkpoint/open.js';
import { reconcile } from '../../../src/checkpoint/reconcile/reconcile.js';
import type { StoredTensor } from '../../../src/checkpoint/stored-tensor.js';
import {
  adjustedToCheckpoint,
  descriptionOf,
} from '../../../src/input/model-input/checkpoint/checkpoint-config.js';
import { loadModelFile } from '../../../src/input/model-input/read-model-file.js';
import { safetensorsFile } from '../../checkpoint/reconcile/files.js';
import { Workshop } from '../../checkpoint/reconcile/support.js';
import { inPackage } from '../../fixtures.js';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
const workshop = new Workshop();
afterAll(() => {
  workshop.close();
  fs.rmSync(folder, { recursive: true });
});

const hf = (name: string) => inPackage('fixtures/hf', name);
const CASES = fs
  .readdirSync(inPackage('fixtures/hf'), { withFileTypes: true })
  .flatMap((each) => (each.isDirectory() ? [each.name] : []));

/** Faults of a checkpoint compared with the config of a case. */
async function reconciled(config: string, weights: string, set: string[] = []) {
  const described = await loadModelFile(hf(config), { set });
  const checkpoint = openCheckpoint(weights);
  try {
    return await reconcile(descriptionOf(adjustedToCheckpoint(described, checkpoint)), checkpoint);
  } finally {
    checkpoint.close();
  }
}

type Tensors = Map<string, StoredTensor>;

/** A file with changed weights of a case. */
async function changed(name: string, change: (tensors: Tensors) => Tensors): Promise<string> {
  const checkpoint = openCheckpoint(hf(name));
  try {
    const file = path.join(folder, `${name}-${fs.readdirSync(folder).length}.safetensors`);
    return await safetensorsFile(file, change(new Map(checkpoint.tensors)));
  } finally {
    checkpoint.close();
  }
}

const without = (prefix: string) => (tensors: Tensors) =>
  new Map([...tensors].map(([name, tensor]) => [name.replace(prefix, ''), tensor]));

const withExtra = (extra: Record<string, Shape>) => (tensors: Tensors) => {
  for (const [name, shape] of Object.entries(extra)) tensors.set(name, workshop.tensor(shape));
  return tensors;
};

describe('a checkpoint of transformers matches its config.json:', () => {
  it.each(CASES)('%s', async (name) => {
    expect(await reconciled(name, hf(name))).toMatchObject({ faults: [], matches: true });
  });
});

describe('a config.json matches a model in another layout:', () => {
  it.each([
    ['mixtral-saved', 'model.experts_stored=packed'],
    ['mixtral', 'model.experts_stored=separate'],
    ['qwen2-moe-saved', 'model.experts_stored=packed'],
    ['qwen3-moe', 'model.experts_stored=separate'],
    ['deepseek-v2-saved', 'model.experts_stored=packed'],
    ['deepseek-v3', 'model.experts_stored=separate'],
    ['gpt-neox-saved', 'model.stored_head=lm_head'],
    ['gpt-neox', 'model.stored_head=embed_out'],
  ])('%s compared with %s', async (name, setting) => {
    expect((await reconciled(name, hf(name), [setting])).faults).toEqual([]);
  });

  it.each([
    ...['gpt2', 'bloom'].map((name) => [name, 'transformer.']),
    ['gpt-neox-saved', 'gpt_neox.'],
    ['opt-7-12', 'model.'],
    ['olmo-hybrid-saved', 'model.'],
    ...['llama', 'mistral', 'mixtral-saved', 'qwen2', 'qwen2-moe', 'qwen3', 'qwen3-moe-saved'].map(
      (name) => [name, 'model.'],
    ),
    ...['gemma', 'gemma2', 'gemma3', 'phi3', 'olmo2', 'smollm3', 'deepseek-v2', 'deepseek-v3'].map(
      (name) => [name, 'model.'],
    ),
  ] as [string, string][])('without the prefix of the whole model: %s', async (name, prefix) => {
    const bare = await changed(name, without(prefix));
    expect((await reconciled(name, bare)).faults).toEqual([]);
  });

  it('faults are still reported', async () => {
    const file = await changed('mixtral', (tensors) => {
      tensors.delete('model.layers.0.mlp.experts.down_proj');
      return tensors;
    });
    expect((await reconciled('mixtral', file)).faults).toEqual([
      expect.objectContaining({
        kind: 'missing',
        pattern: 'model.layers.0.mlp.experts.down_proj',
      }),
    ]);
  });
});

describe('tensors of other tools give a note:', () => {
  it.each([
    ['gpt2', { 'transformer.h.1.attn.masked_bias': [] }],
    ['deepseek-v3-saved', { 'model.layers.2.eh_proj.weight': [3, 3], 'model.layers.2.a.b.c': [2] }],
  ] as [string, Record<string, Shape>][])('%s', async (name, extra) => {
    const { faults, notes, matches } = await reconciled(
      name,
      await changed(name, withExtra(extra)),
    );
    expect({ faults, matches }).toEqual({ faults: [], matches: true });
    expect({ ...notes[0], names: notes[0]?.names.toSorted() }).toMatchObject({
      kind: 'kept-by-others',
      severity: 'note',
      names: Object.keys(extra).sort(),
    });
  });

  it('but not tensors with only similar names', async () => {
    const extra = {
      'transformer.h.1.attn.masked_biases': [4],
      'transformer.h.x.attn.masked_bias': [4],
      'transformer.h.1.0.attn.masked_bias': [4],
    };
    const { faults } = await reconciled('gpt2', await changed('gpt2', withExtra(extra)));
    expect(faults.flatMap(({ names }) => names)).toHaveLength(3);
  });
});
