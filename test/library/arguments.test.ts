/** What a program in JavaScript gives by mistake, where a type would have refused it. */
import { describe, expect, it } from 'vitest';
import * as minimind from '../../src/index.js';

type Call = (...args: readonly unknown[]) => unknown;
const { loadModel, UserError, ...calls } = minimind;
const {
  profile,
  fit: fitModel,
  compare,
  compareSrte,
  plan,
  explainPublished,
} = calls as unknown as Record<string, Call>;
const model = await loadModel('hybrid/tiny');

async function mistakeOf(call: () => unknown) {
  try {
    await call();
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    return `${error.message}\n${error.suggestion}`;
  }
  throw new Error('no error');
}

const NAMED = 'found the text "minimind2-small"\nwrite';

describe('a model', () => {
  it.each([
    ['profile', () => profile?.('minimind2-small')],
    ['fit', () => fitModel?.('minimind2-small', { gpu: '4090' })],
    ['compareSrte', () => compareSrte?.('minimind2-small')],
    ['compare', () => compare?.(['minimind2-small'])],
    ['explainPublished', () => explainPublished?.('minimind2-small', '26M')],
  ])('of %s is loaded first', async (name, call) => {
    expect(await mistakeOf(call)).toBe(
      `${name}: expected a model of loadModel or describeModel, ${NAMED} ${name}(await loadModel('minimind2-small'))`,
    );
  });

  it('is awaited', async () => {
    const text = await mistakeOf(() => profile?.(loadModel('hybrid/tiny')));
    expect(text).toContain('found a promise\nawait the model');
  });

  it('is one of a list to compare', async () => {
    expect(await mistakeOf(() => compare?.(model))).toContain('expected a list of models');
  });
});

describe('an option', () => {
  it.each([
    [
      () => fitModel?.(model, { gpu: '4090', contxt: 4 }),
      'fit: unknown option "contxt"\ndid you mean context?',
    ],
    [
      () => fitModel?.(model, { gpu: '4090', reserve: '2GB' }),
      'unknown option "reserve"\ndid you mean reserveBytes?',
    ],
    [
      () => fitModel?.(model, { users: 5, zebra: 1 }),
      'unknown option "zebra"\nits options are gpu, gpus,',
    ],
    [
      () => profile?.(model, { maxParams: 3 }),
      'unknown option "maxParams"\ndid you mean maxParameters?',
    ],
    [
      () => profile?.(model, { context: '8k' }),
      'profile: context: expected an integer from 1, found the text "8k"',
    ],
    [() => profile?.(model, { context: -1 }), 'expected an integer from 1, found -1'],
    [() => profile?.(model, { batch: 1.5 }), 'batch: expected an integer from 1, found 1.5'],
    [() => profile?.(model, { dtype: 'int9' }), 'dtype: expected one of f64, f32, f16, bf16'],
    [() => fitModel?.(model, { gpu: '4090', dtype: 'int9' }), 'fit: dtype: expected one of'],
    [
      () => fitModel?.(model, { gpu: '4090', for: 'Lora' }),
      'for: expected one of serving, training, lora, qlora, found the text "Lora"\ndid you mean "lora"?',
    ],
    [() => fitModel?.(model, { gpu: 4090 }), 'gpu: expected a text, found 4090'],
    [
      () => compare?.([model], { columns: 'layers' }),
      'columns: expected a list, found the text "layers"',
    ],
    [() => compare?.([model], { causal: 'yes' }), 'causal: expected true or false'],
    [() => plan?.(), 'plan: expected an object of options, found undefined'],
    [() => plan?.({}), 'plan: maxParameters is missing\nwrite plan({ maxParameters: 26e6 })'],
    [() => plan?.({ maxParams: 26e6 }), 'unknown option "maxParams"\ndid you mean maxParameters?'],
    [() => plan?.(model, { maxParameters: 26e6 }), 'plan: unknown option "file"'],
    [() => profile?.(model, 4096), 'profile: expected an object of options, found 4096'],
  ])('that a function does not have, or of another kind, is refused: %s', async (call, message) => {
    expect(await mistakeOf(call)).toContain(message);
  });

  it('that is undefined is left out', () => {
    expect(profile?.(model, { context: undefined, another: undefined })).toMatchObject({
      schema: 'minimind/profile@1',
    });
  });
});
