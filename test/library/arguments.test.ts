/** Wrong arguments of a program in JavaScript, which a type would have refused. */
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

/** Arguments before the options of each function. */
const BEFORE_OPTIONS: Readonly<Record<string, readonly unknown[]>> = {
  compare: [[model]],
  compareSrte: [model],
  convert: ['hybrid/tiny', 'out.safetensors'],
  describeModel: [{}],
  diff: ['hybrid/tiny', 'hybrid/tiny'],
  evaluate: ['hybrid/tiny'],
  explainPublished: [model, '26M'],
  fit: [model],
  generate: ['hybrid/tiny'],
  inspect: ['hybrid/tiny'],
  loadModel: ['hybrid/tiny'],
  plan: [],
  profile: [model],
  quickTest: ['hybrid/tiny'],
  validate: [{}],
  validateFiles: [['hybrid/tiny']],
  verify: ['hybrid/tiny'],
};

/** Functions of values alone. */
const WITHOUT_OPTIONS: readonly string[] = [
  ...['bytesIn', 'countParameters', 'isFamilyName', 'jsonSchemaOf', 'loadFamily', 'LimitError'],
  ...['ownedTensors', 'parseDtype', 'presetsOf', 'problemsOf', 'tensorsOf', 'UserError', 'walk'],
];

/** Functions that read a model by its path or name, and the arguments before it. */
const READERS: readonly string[] = [
  ...['convert', 'diff', 'evaluate', 'generate', 'inspect', 'loadModel', 'quickTest', 'verify'],
];

describe('the options of every function', () => {
  it('are checked below, or it has none', () => {
    const functions = Object.entries(minimind).filter(([, value]) => typeof value === 'function');
    expect(functions.map(([name]) => name).sort()).toEqual(
      [...Object.keys(BEFORE_OPTIONS), ...WITHOUT_OPTIONS].sort(),
    );
  });

  it.each(Object.entries(BEFORE_OPTIONS))(
    'are not those of another one: %s',
    async (name, before) => {
      const call = (minimind as unknown as Record<string, Call>)[name];
      expect(await mistakeOf(() => call?.(...before, { zebra: 1 }))).toContain(
        `${name}: unknown option "zebra"`,
      );
      expect(await mistakeOf(() => call?.(...before, 'zebra'))).toContain(
        `${name}: expected an object of options, found the text "zebra"`,
      );
    },
  );

  it.each(READERS)('are not a loaded model: %s', async (name) => {
    const call = (minimind as unknown as Record<string, Call>)[name];
    const [, ...others] = BEFORE_OPTIONS[name] ?? [];
    expect(await mistakeOf(() => call?.(model, ...others))).toContain(
      `${name}: expected the path or name of a model, found another object`,
    );
  });

  it.each([
    ['convert', { dtype: 'int9' }, 'dtype: expected one of keep, f32, f16, bf16'],
    ['convert', { quantize: 'int3' }, 'quantize: expected one of int8, int4'],
    ['convert', { group: 48 }, 'group: expected one of 32, 64, 128, found 48'],
    ['convert', { layout: 'lowrank' }, 'did you mean "low-rank"?'],
    ['convert', { merge: 'median' }, 'merge: expected mean, first or { layer: 3 }'],
    ['convert', { maxMemory: '2GB' }, 'unknown option "maxMemory"\ndid you mean maxMemoryBytes?'],
    ['inspect', { ranks: 8 }, 'ranks: expected a list, found 8'],
    ['diff', { values: 'yes' }, 'values: expected true or false'],
    ['verify', { strict: 1 }, 'strict: expected true or false'],
    ['generate', { maxToken: 5 }, 'did you mean maxTokens?'],
    ['generate', { seed: -1 }, 'seed: expected an integer from 0, found -1'],
    ['generate', { onText: 'yes' }, 'onText: expected a function, found the text "yes"'],
    ['evaluate', { engine: 'onxx' }, 'did you mean "onnx"?'],
    ['quickTest', { weights: 'int8' }, 'weights: expected { bits: 8, group: 32 }'],
    ['quickTest', { device: 'rocm' }, 'device: expected one of auto, gpu, cpu'],
    ['loadModel', { set: 'model.num_layers=4' }, 'set: expected values by dotted key'],
    ['loadModel', { family: 'hybird' }, 'did you mean "hybrid"?'],
  ])('have the values of their kind: %s %j', async (name, options, message) => {
    const call = (minimind as unknown as Record<string, Call>)[name];
    expect(await mistakeOf(() => call?.(...(BEFORE_OPTIONS[name] ?? []), options))).toContain(
      message,
    );
  });
});
