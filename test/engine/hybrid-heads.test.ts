/** A hybrid whose 3 heads do not divide its width 20, as the original runs it: heads of 6 dimensions. */
import { expect, it } from 'vitest';
import { openCheckpoint } from '../../src/checkpoint/open.js';
import type { StoredTensor } from '../../src/checkpoint/stored-tensor.js';
import { documentOfData } from '../../src/config/document.js';
import { checkpointWeights } from '../../src/engine/weights/weights.js';
import { modelOf } from '../../src/input/model-input/model-file.js';
import { tensorsOf } from '../../src/model/architecture/walk.js';
import { countParameters } from '../../src/model/budget/parameters.js';
import { inPackage, readJson } from '../fixtures.js';
import { withEachEngine } from './both-engines.js';
import { differenceAt, idsOf, valuesOf } from './fixture-models.js';

const FOLDER = 'fixtures/hybrid-heads';
const given = readJson<{
  readonly config: Record<string, unknown>;
  readonly input_ids: number[][];
  readonly parameters: number;
}>(FOLDER, 'case.json');
const load = () => modelOf(documentOfData({ model: given.config }, 'case.json'));
const checkpointAt = (file: string) => openCheckpoint(inPackage(FOLDER, file));

it('has the tensors of the original, with a warning', async () => {
  const { model, warnings } = await load();
  expect(countParameters(model).parameters).toBe(given.parameters);
  const stored = checkpointAt('model.safetensors').tensors;
  for (const { name, shape, role } of tensorsOf(model)) {
    if (role === 'parameter') expect(stored.get(name)?.shape, name).toEqual(shape);
  }
  expect(warnings.map(({ message }) => message)).toEqual([
    '3 heads do not divide hidden_size 20: a head has 6 dimensions',
  ]);
});

withEachEngine('heads that do not divide the width', (loadProgram) => {
  it('give the logits of the original', async () => {
    const { model } = await load();
    const weights = checkpointWeights(model, checkpointAt('model.safetensors'));
    const program = await loadProgram(model, weights);
    const { output } = await program.run({ ids: idsOf(given.input_ids) });
    await program.release();
    const logits = checkpointAt('expected.safetensors').tensors.get('logits') as StoredTensor;
    expect(differenceAt(output, valuesOf(logits), 1)).toBeLessThan(1e-5);
  });
});
