/**
 * Files of types that are described, with the names that `save_pretrained` of transformers 5.18 writes: those of published
 * files (fixtures/described/make.py, configs of the seed 3).
 */
import fs from 'node:fs';
import { describe, expect, test } from 'vitest';
import { openCheckpointModel } from '../../../src/input/model-input/checkpoint/checkpoint-model.js';
import { stateDictOf } from '../../../src/model/architecture/walk.js';
import { inPackage } from '../../fixtures.js';

const FOLDER = inPackage('fixtures', 'described', 'saved');

const read = async (name: string) =>
  (await openCheckpointModel({ path: `${FOLDER}/${name}` }, {})).model(undefined);

describe('published names of described types', () => {
  test.each(fs.readdirSync(FOLDER))('%s: the file is that of its config', async (name) => {
    const { checkpoint } = await read(name);
    expect(checkpoint?.faults).toEqual([]);
    expect(checkpoint?.matches).toBe(true);
  });

  test('are those of the description, so that other answers find the tensors', async () => {
    const { model, typeOf } = await read('deepseek_v4-3-1');
    const names = stateDictOf(model).map(({ name }) => name);
    expect(names).toContain('model.layers.0.attn.wq_a.weight');
    expect(names).not.toContain('model.layers.0.self_attn.q_a_proj.weight');
    const { tensor } =
      stateDictOf(model).find(({ name }) => name.endsWith('.attn.wq_a.weight')) ?? {};
    expect(tensor && typeOf?.(tensor)).toBe('f32');
  });
});
