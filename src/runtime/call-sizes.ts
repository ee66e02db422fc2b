import type { Layer } from '../architecture/layer.js';
import { UserError } from '../errors.js';
import type { RunInput } from './engine.js';
import { inputsOf } from './inputs.js';
import type { Ids } from './values.js';

interface Sizes {
  readonly batch: number;
  readonly tokens: number;
}

/**
 * How much a layer is given to work on.
 * @throws UserError when there are no tokens, or one is not in the vocabulary; Error when the layer takes
 * something else.
 */
export function sizesOf(layer: Layer, input: RunInput): Sizes {
  const sizes = givenSizes(layer, input);
  if (sizes.batch < 1 || sizes.tokens < 1) {
    throw new UserError('usage', 'there are no tokens to run the model on');
  }
  return sizes;
}

function givenSizes(layer: Layer, { ids, inputs = [], tokens }: RunInput): Sizes {
  switch (inputsOf(layer)) {
    case 'ids':
      if (ids === undefined) throw takes(layer, 'token ids');
      checkIds(layer, ids);
      return ids;
    case 'nothing':
      if (tokens === undefined) throw takes(layer, 'a number of tokens');
      return { batch: 1, tokens };
    case 'a value':
      return valueSizes(layer, inputs, 1);
    case 'two values':
      return valueSizes(layer, inputs, 2);
  }
}

function valueSizes(layer: Layer, inputs: NonNullable<RunInput['inputs']>, count: number): Sizes {
  const [batch, tokens, width] = inputs[0]?.shape ?? [];
  const fits = inputs.every(
    ({ shape, data }) =>
      shape.join() === `${batch},${tokens},${width}` &&
      data.length === shape.reduce((product, size) => product * size, 1),
  );
  if (inputs.length !== count || !fits || batch === undefined || tokens === undefined) {
    throw takes(layer, `${count === 1 ? 'one value' : `${count} values`} [B, T, C]`);
  }
  return { batch, tokens };
}

function checkIds(layer: Layer, { batch, tokens, data }: Ids): void {
  if (data.length !== batch * tokens) {
    throw new RangeError(`${data.length} token ids for ${batch} × ${tokens}`);
  }
  const vocabulary = vocabularyOf(layer);
  const wrong = data.findIndex((id) => id < 0 || id >= vocabulary);
  if (wrong >= 0) {
    const place = `row ${Math.floor(wrong / tokens)}, position ${wrong % tokens}`;
    throw new UserError(
      'usage',
      `token ${data[wrong]} (${place}) is not in a vocabulary of ${vocabulary}`,
      {
        suggestion: `token ids go from 0 to ${vocabulary - 1}`,
      },
    );
  }
}

function vocabularyOf(layer: Layer): number {
  const embedding = layer.kind === 'languageModel' ? layer.embedding : layer;
  return embedding.kind === 'embedding' ? (embedding.weight.shape[0] ?? 0) : 0;
}

const takes = ({ kind, name }: Layer, what: string) =>
  new Error(`the layer ${JSON.stringify(name)} (${kind}) takes ${what}`);
