/** Functions of described models give the JSON of their commands. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { inPackage } from '../fixtures.js';
import { expectAnswer, library } from './support.js';

const {
  compare,
  compareSrte,
  describeModel,
  explainPublished,

  loadModel,
  plan,
  profile,
  UserError,
  validate,
  validateFiles,
} = library;

const TINY = 'configs/hybrid/tiny.yaml';
const BLOOM = 'fixtures/alibi/bloom';
/** A config, a preset, a folder with weights, and a published model. */
const MODELS = [TINY, 'minimind2-small', BLOOM, 'qwen3:8b'];

const textOf = (file: string) => fs.readFileSync(inPackage(file), 'utf8');

describe('a model', () => {
  test.each(MODELS)('from a reference: %s', async (reference) => {
    await expectAnswer(profile(await loadModel(reference)), 'profile', reference);
  });

  test('from a text in YAML', async () => {
    const model = await describeModel(textOf(TINY), { file: TINY });
    await expectAnswer(profile(model), 'profile', TINY);
  });

  test('from a value', async () => {
    const model = await describeModel(parse(textOf(TINY)), { file: TINY });
    await expectAnswer(profile(model), 'profile', TINY);
  });

  test('from the value of a config.json', async () => {
    const file = `${BLOOM}/config.json`;
    const model = await describeModel(JSON.parse(textOf(file)), { file });
    await expectAnswer(profile(model), 'profile', file);
  });

  test('with other values', async () => {
    const model = await loadModel(TINY, {
      set: { 'model.num_layers': 3, 'model.tie_word_embeddings': true },
    });
    const words = ['--set', 'model.num_layers=3', '--set', 'model.tie_word_embeddings=true'];
    await expectAnswer(profile(model), 'profile', TINY, ...words);
  });
});

describe('validate', () => {
  test.each([TINY, 'configs/hybrid/original.yaml', `${BLOOM}/config.json`])('%s', async (file) => {
    await expectAnswer(validate(textOf(file), { file }), 'validate', file);
  });

  test('warns of a training', async () => {
    const file = 'configs/hybrid/tiny.yaml';
    const set = { 'training.learning_rate': 3 };
    const answer = await validate(textOf(file), { file, set });
    expect(answer.warnings).toContainEqual(
      expect.objectContaining({ path: 'training.learning_rate' }),
    );
    await expectAnswer(answer, 'validate', file, '--set', 'training.learning_rate=3');
  });

  test('several files', async () => {
    const files = [TINY, 'hybrid/original', `${BLOOM}/config.json`];
    await expectAnswer(validateFiles(files), 'validate', ...files);
  });

  test('several files, of which two are wrong', async () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
    onTestFinished(() => fs.rmSync(folder, { recursive: true }));
    const wrong = ['a.yaml', 'b.yaml'].map((name) => path.join(folder, name));
    for (const file of wrong) fs.writeFileSync(file, 'model:\n  num_layers: -1\n');
    const error = await validateFiles([TINY, ...wrong]).catch((each) => each);
    expect(error).toBeInstanceOf(UserError);
    expect(error.problems).toEqual(
      wrong.map((file) => expect.objectContaining({ file, line: 2, path: 'model.num_layers' })),
    );
  });

  test('throws every mistake with its place', async () => {
    const text = 'model:\n  num_layers: -1\n  hidden_sise: 64\n';
    const error = await validate(text, { file: 'mine.yaml' }).catch((each) => each);
    expect(error).toBeInstanceOf(UserError);
    expect(error.problems).toEqual([
      expect.objectContaining({ file: 'mine.yaml', line: 2, column: 15 }),
      expect.objectContaining({ file: 'mine.yaml', line: 3, column: 3 }),
    ]);
  });
});

describe('profile', () => {
  test('of a setting', async () => {
    const options = { context: 64, batch: 4, dtype: 'i8', optimizer: 'sgd', causal: true } as const;
    const words = [
      '--context',
      '64',
      '--batch',
      '4',
      '--dtype',
      'int8',
      '--optimizer',
      'sgd',
      '--causal',
    ];
    for (const each of [TINY, BLOOM]) {
      await expectAnswer(profile(await loadModel(each), options), 'profile', each, ...words);
    }
  });

  test('with layers, tensors and limits', async () => {
    const options = { layers: true, tensors: true, maxParameters: 1000, maxMemoryBytes: 1e9 };
    const words = ['--layers', '--tensors', '--max-params', '1000', '--max-memory', '1GB'];
    await expectAnswer(profile(await loadModel(TINY), options), 'profile', TINY, ...words);
  });

  test('with a published number', async () => {
    const model = await loadModel('hybrid/aggressive');
    const published = explainPublished(model, '7B');
    const words = ['profile', 'hybrid/aggressive', '--published', '7B'];
    await expectAnswer(profile(model, { published }), ...words);
  });
});

describe('fit', () => {
  test.each(MODELS)('%s on a GPU', async (reference) => {
    const answer = library.fit(await loadModel(reference), { gpu: 'h100-80gb' });
    await expectAnswer(answer, 'fit', reference, '--gpu', 'h100-80gb');
  });

  test.each(MODELS)('%s on common hardware', async (reference) => {
    await expectAnswer(library.fit(await loadModel(reference)), 'fit', reference);
  });

  test('of a training on a part of a machine', async () => {
    const options = {
      gpu: 'h100',
      gpus: 8,
      reserveBytes: 2e9,
      for: 'training',
      microBatch: 4,
      zero: '2',
    } as const;
    const words = '--gpu h100 --gpus 8 --reserve 2GB --for training --micro-batch 4 --zero 2'.split(
      ' ',
    );
    const name = 'hybrid/recommended';
    await expectAnswer(library.fit(await loadModel(name), options), 'fit', name, ...words);
  });

  test('of many users, with a warning', async () => {
    const options = { gpu: 'l4', gpus: 2, users: 50, context: 1024 } as const;
    const words = '--gpu l4 --gpus 2 --users 50 --context 1024'.split(' ');
    await expectAnswer(
      library.fit(await loadModel('minimind2'), options),
      'fit',
      'minimind2',
      ...words,
    );
  });
});

describe('plan', () => {
  test('of a budget', async () => {
    const options = { maxParameters: 26e6, vocabulary: 6400 };
    await expectAnswer(plan(options), 'plan', '--max-params', '26M', '--vocab', '6400');
  });

  test('of a family on a GPU', async () => {
    const options = {
      maxParameters: 135e6,
      family: 'llama',
      vocabulary: 49_152,
      gpu: 'l4',
      top: 3,
      depth: { least: 8, most: 16 },
      set: { 'model.tie_word_embeddings': true },
    } as const;
    const words =
      '--max-params 135M --family llama --vocab 49152 --gpu l4 --top 3 --depth 8..16 --set model.tie_word_embeddings=true';
    await expectAnswer(plan(options), 'plan', ...words.split(' '));
  });
});

describe('compare', () => {
  const load = (names: readonly string[]) => Promise.all(names.map((name) => loadModel(name)));

  test.each([[[TINY, 'hybrid/original']], [['minimind/minimind2-small', BLOOM]]])(
    '%j',
    async (names) => {
      await expectAnswer(compare(await load(names)), 'compare', ...names);
    },
  );

  test('sorted, with columns and a baseline', async () => {
    const names = ['minimind2-small', 'minimind2', 'minimind2-moe'].map(
      (name) => `minimind/${name}`,
    );
    const options = {
      context: 1024,
      columns: ['parameters', 'model.hidden_size'],
      sort: '-parameters',
      baseline: '2',
    };
    const words = [
      '--context',
      '1024',
      '--columns',
      'parameters,model.hidden_size',
      '--sort=-parameters',
      '--baseline',
      '2',
    ];
    await expectAnswer(compare(await load(names), options), 'compare', ...names, ...words);
  });
});

test.each([TINY, 'hybrid/original'])('compareSrte %s', async (name) => {
  await expectAnswer(compareSrte(await loadModel(name)), 'compare-srte', name);
  const options = { ranks: [8, 16], maxPositions: [1024], tie: true, presets: true };
  const words = '--ranks 8,16 --max-positions 1024 --tie --presets'.split(' ');
  await expectAnswer(compareSrte(await loadModel(name), options), 'compare-srte', name, ...words);
});
