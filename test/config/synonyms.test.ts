import { expect, it } from 'vitest';
import { checkDocument } from '../../src/config/check-document.js';
import { parseDocument } from '../../src/config/document.js';
import { applyOverrides } from '../../src/config/overrides.js';
import { type FamilyName, loadFamily } from '../../src/model/architecture/families.js';

async function suggestionFor(family: FamilyName, set: string): Promise<string | undefined> {
  const { schema } = await loadFamily(family);
  const document = applyOverrides(parseDocument(`model: {family: ${family}}`, 'f'), [set]);
  return checkDocument(document, { schema }).problems.find(({ file }) => file === '--set')
    ?.suggestion;
}

it.each([
  ['minimind', 'num_layers=12', 'did you mean "model.num_hidden_layers"?'],
  ['minimind', 'num_layerz=12', 'did you mean "model.num_hidden_layers"?'],
  ['minimind', 'model.num_layers=12', 'did you mean "num_hidden_layers"?'],
  ['minimind', 'model.num_layerz=12', 'did you mean "num_hidden_layers"?'],
  ['llama', 'depth=12', 'did you mean "model.num_hidden_layers"?'],
  ['llama', 'd_model=12', 'did you mean "model.hidden_size"?'],
  ['llama', 'dim=12', 'did you mean "model.hidden_size"?'],
  ['llama', 'model.n_kv_heads=2', 'did you mean "num_key_value_heads"?'],
  ['llama', 'vocab=12', 'did you mean "model.vocab_size"?'],
  ['llama', 'context_length=12', 'did you mean "model.max_position_embeddings"?'],
  ['gpt2', 'model.num_hidden_layers=2', 'did you mean "n_layer"?'],
  ['hybrid', 'model.num_hidden_layers=2', 'did you mean "num_layers"?'],
  ['hybrid', 'model.sliding_window=2', 'did you mean "window_size"?'],
  ['hybrid', 'model.max_seq_len=2', 'did you mean "max_position_embeddings"?'],
] as const)('for %s a synonym gets a suggestion: --set %s', async (family, set, suggestion) => {
  expect(await suggestionFor(family, set)).toBe(suggestion);
});

it('the suggestion lists the keys of the model if none is similar', async () => {
  expect(await suggestionFor('llama', 'colour=1')).toMatch(
    /^valid keys here: model, training, .*; keys of model: .*num_hidden_layers, /,
  );
});
