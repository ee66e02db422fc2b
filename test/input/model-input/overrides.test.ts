import { describe, expect, it } from 'vitest';
import type { Problem } from '../../../src/base/errors.js';
import { UserError } from '../../../src/base/errors.js';
import { parseDocument } from '../../../src/config/document.js';
import { modelOf } from '../../../src/input/model-input/model-file.js';

const HYBRID = 'model:\n  vocab_size: 97\n  num_layers: 2\n';
const LLAMA = '{"model_type": "llama", "hidden_size": 32, "num_attention_heads": 4}';

const load = (set: string[], text = HYBRID, strict = false) =>
  modelOf(parseDocument(text, text === LLAMA ? 'config.json' : 'm.yaml'), { set, strict });

async function problemsOf(...args: Parameters<typeof load>): Promise<readonly Problem[]> {
  try {
    await load(...args);
  } catch (error) {
    if (error instanceof UserError) return error.problems;
    throw error;
  }
  return [];
}

describe('an override without its section', () => {
  it.each([
    [HYBRID, 'num_layers=3'],
    [LLAMA, 'num_hidden_layers=3'],
  ])('changes the model where only the model has the key: %j, %s', async (text, set) => {
    const { model, warnings } = await load([set], text);
    expect(model.blocks).toHaveLength(3);
    expect(warnings).toEqual([]);
  });

  it('is read in the family that other overrides name', async () => {
    const { model } = await load([
      'model={family: llama, hidden_size: 32, num_attention_heads: 4}',
      'num_hidden_layers=3',
    ]);
    expect(model.blocks).toHaveLength(3);
  });
});

it.each([
  [['model.num_attention_heads=4'], 'llama'],
  [['model.family=hybrid', 'model.num_heads=4', 'model.window_size=8'], 'hybrid'],
  [
    ['model={family: minigpt, hidden_size: 32, num_hidden_layers: 1, num_attention_heads: 4}'],
    'minigpt',
  ],
])('a file of the family llama, with %j, is of the family %s', async (set, family) => {
  const text = 'model:\n  family: llama\n  hidden_size: 32\n';
  expect((await load(set, text)).family.name).toBe(family);
});

describe('an unread override is an error:', () => {
  it.each([
    ['num_layer=3', 'num_layer', 'did you mean "model.num_layers"?'],
    ['num_hidden_layers=3', 'num_hidden_layers', 'did you mean "model.num_layers"?'],
    ['batch_size=3', 'batch_size', 'it belongs under training'],
    ['training.batch=3', 'training.batch', 'did you mean "batch_size"?'],
    ['nothing.at.all=3', 'nothing', /valid keys here/],
    ['model.num_layer=3', 'model.num_layer', 'did you mean "num_layers"?'],
  ])('%s', async (set, path, suggestion) => {
    const problems = await problemsOf([set]);
    expect(problems).toEqual([expect.objectContaining({ severity: 'error', file: '--set', path })]);
    expect(problems[0]?.suggestion).toEqual(
      typeof suggestion === 'string' ? suggestion : expect.stringMatching(suggestion),
    );
  });

  it('but an unread key of a file, which other programs may read, gives a warning', async () => {
    const { warnings } = await load(['num_layers=3'], `${HYBRID}other: 1\n`);
    expect(warnings).toMatchObject([{ severity: 'warning', path: 'other' }]);
  });
});
