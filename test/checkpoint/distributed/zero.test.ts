import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { isSameView } from '../../../src/checkpoint/stored-tensor.js';
import { inPackage } from '../../fixtures.js';
import { opened } from '../temp-folder.js';
import { expectSameValues } from './same-values.js';

const FOLDER = inPackage('fixtures/distributed');
const CASES = fs
  .readdirSync(FOLDER)
  .filter((name) => /^zero\d/.test(name) && !name.endsWith('.safetensors'));

it('the fixtures have stages 1 to 3 of 1, 2, 3, 4 and 8 processes', () => {
  expect(CASES.length).toBe(12);
});

it.each(CASES)('%s has the values of zero_to_fp32.py', async (name) => {
  const read = opened(path.join(FOLDER, name));
  const saved = opened(path.join(FOLDER, `${name}.safetensors`));
  expect(read.format).toBe('zero');
  await expectSameValues(read, saved, 48);
  const [head, embed] = ['head.weight', 'embed.weight'].map((key) => read.tensors.get(key));
  expect(head && embed && isSameView(head, embed)).toBe(true);
});

it('a checkpoint is opened by the folder of a step, and by a file of a process', () => {
  const step = path.join(FOLDER, 'zero3-world2', 'global_step5');
  expect(opened(step).tensors.size).toBe(9);
  const file = path.join(step, 'zero_pp_rank_1_mp_rank_00_optim_states.pt');
  expect(opened(file).tensors.size).toBe(9);
});

it('a warning lists frozen parameters read from the model states', () => {
  const { warnings } = opened(path.join(FOLDER, 'zero1-world2-frozen'));
  expect(warnings).toEqual([
    'read from the model states, because no process trains them: "vision.weight", "vision.bias"',
  ]);
});
