import { describe, expect, it } from 'vitest';
import { UserError } from '../../../../src/base/errors.js';
import { parseDocument } from '../../../../src/config/document.js';
import {
  OWN_KEYS,
  RENAMING,
} from '../../../../src/input/model-input/hugging-face/family-of-keys.js';
import {
  modelKeys,
  settingOf,
} from '../../../../src/input/model-input/hugging-face/setting-names.js';
import { modelOf } from '../../../../src/input/model-input/model-file.js';
import {
  DEFAULT_FAMILY,
  FAMILY_NAMES,
  loadFamily,
} from '../../../../src/model/architecture/families.js';
import { countParameters } from '../../../../src/model/budget/parameters.js';

/**
 * Sizes as the projects' own programs count them: MiniMind2-Small has 25,829,888 parameters (README of
 * jingyaogong/minimind: 26M), and the configs tiny, small and medium of cklxx/mini-llm 2,789,504, 29,506,944 and
 * 111,949,440, counted with PyTorch.
 */
const MINIMIND = 25_829_888;
const TINY = 2_789_504;
const SMALL = 29_506_944;
const MEDIUM = 111_949_440;

const load = (text: string, options = {}) => modelOf(parseDocument(text, 'm.yaml'), options);

const indented = (lines: string) => `model:\n${lines.replaceAll(/^(?=.)/gm, '  ')}`;

const HF_MINIMIND = `vocab_size: 6400
hidden_size: 512
num_hidden_layers: 8
num_attention_heads: 8
num_key_value_heads: 2
`;
const COURSE_MINIMIND = `vocab_size: 6400
hidden_size: 512
num_layers: 8
num_q_heads: 8
num_kv_heads: 2
max_seq_len: 512
rope_base: 1e6
flash: true
`;
const DICT_TINY = `vocab_size: 10000
hidden_size: 128
num_layers: 8
num_heads: 4
num_kv_heads: 1
intermediate_size: 384
use_rope: True
hidden_act: 'swiglu'
tie_word_embeddings: True
`;
const CLASS_SMALL = `vocab_size: 10000
hidden_size: 384
num_hidden_layers: 12
num_attention_heads: 12
num_key_value_heads: 3
intermediate_size: 1536
max_position_embeddings: 1024
dropout: 0.1
use_rope: true
use_gqa: true
tie_word_embeddings: true
`;
const DICT_MEDIUM = `vocab_size: 20000
hidden_size: 640
num_layers: 20
num_heads: 16
num_kv_heads: 4
intermediate_size: 2048
flash_attn: True
`;

const CASES: readonly [what: string, lines: string, family: string, parameters: number][] = [
  ['MiniMind by the keys of its config.json', HF_MINIMIND, 'minimind', MINIMIND],
  ['MiniMind by the names of its code', COURSE_MINIMIND, 'minimind', MINIMIND],
  ['a dictionary of MiniGPT tiny', DICT_TINY, 'minigpt', TINY],
  ['MiniGPT small by the names of its class', CLASS_SMALL, 'minigpt', SMALL],
  ['a dictionary of MiniGPT medium', DICT_MEDIUM, 'minigpt', MEDIUM],
];

describe('a YAML file without a family', () => {
  it.each(CASES)('is %s, by its keys', async (_, lines, family, parameters) => {
    for (const text of [indented(lines), lines]) {
      const { model, family: chosen, warnings } = await load(text);
      expect({ family: chosen.name, parameters: countParameters(model).parameters }).toEqual({
        family,
        parameters,
      });
      expect(warnings).toMatchObject([
        {
          path: 'model.family',
          line: 1,
          message: expect.stringMatching(new RegExp(`^no family: read as ${family}, because .*`)),
          suggestion: `write family: ${family} beside these keys, or --family ${family}`,
        },
      ]);
    }
  });

  it.each(CASES)(
    'is %s, without a word, after what the warning says',
    async (_, lines, family, parameters) => {
      const written = `family: ${family}\n${lines}`;
      for (const [text, options] of [
        [indented(written), {}],
        [written, {}],
        [indented(lines), { family }],
        [lines, { family }],
        [indented(lines), { set: [`model.family=${family}`] }],
      ] as const) {
        const { model, warnings } = await load(text, options);
        expect(countParameters(model).parameters).toBe(parameters);
        expect(warnings).toEqual([]);
      }
    },
  );

  it('asks where several families read its keys, and each of them does', async () => {
    const text = indented(HF_MINIMIND.replace('6400', '32000'));
    const error = await load(text).catch((caught) => caught);
    expect(error).toBeInstanceOf(UserError);
    const [{ message, suggestion }] = error.problems;
    expect(message).toMatch(/^no family, and \d+ families read its keys$/);
    const named = [...suggestion.matchAll(/--family (\w+) \(([\d,]+) parameters\)/g)];
    expect(named.map(([, family]) => family)).toEqual(
      expect.arrayContaining(['minimind', 'minigpt', 'llama']),
    );
    for (const [, family, parameters] of named) {
      const { model } = await load(text, { family });
      expect(countParameters(model).parameters.toLocaleString('en-US')).toBe(parameters);
    }
  });

  it('asks between a hybrid and MiniGPT, which call their sizes the same', async () => {
    const text = indented('vocab_size: 20000\nhidden_size: 640\nnum_layers: 20\nnum_heads: 16\n');
    await expect(load(text)).rejects.toMatchObject({
      problems: [
        {
          suggestion: expect.stringMatching(
            /--family hybrid .* or --family minimind .* or --family minigpt/,
          ),
        },
      ],
    });
  });

  it('says which size is missing', async () => {
    await expect(
      load(indented('num_hidden_layers: 8\nnum_key_value_heads: 2\n')),
    ).rejects.toMatchObject({
      problems: [
        {
          message: 'no family and no hidden_size: several families read its keys',
          suggestion: expect.stringMatching(/^add hidden_size, and write --family minimind or /),
        },
      ],
    });
  });

  it('never advises to remove a key that another family reads', async () => {
    for (const lines of [
      'num_key_value_heads: 2\n',
      'hidden_size: 512\nrope_theta: 1e6\nhead_dim: 64\n',
    ]) {
      const error = await load(indented(lines)).catch((caught) => caught);
      expect(JSON.stringify(error.problems)).not.toMatch(/remove/);
    }
  });

  it('is a hybrid with the keys of one', async () => {
    const text = indented('hidden_size: 2048\nnum_layers: 24\nsrte_factorized_rank: 64\n');
    expect(await load(text)).toMatchObject({ family: { name: 'hybrid' }, warnings: [] });
  });

  it('is the one of its model_type', async () => {
    const { family, warnings } = await load(indented(`model_type: minimind\n${HF_MINIMIND}`));
    expect({ family: family.name, warnings }).toEqual({ family: 'minimind', warnings: [] });
  });

  it('of MiniMind with head_dim can be of two versions', async () => {
    const text = indented(`${COURSE_MINIMIND}head_dim: 64\n`);
    const { warnings } = await load(text);
    expect(warnings).toContainEqual(
      expect.objectContaining({ suggestion: 'for MiniMind 2, write version: 2' }),
    );
    const { model } = await load(text, { set: ['model.version=2'] });
    expect(countParameters(model).parameters).toBe(MINIMIND);
  });

  it('has its keys by --set too', async () => {
    const { model, family } = await load('model: {}\n', {
      set: [
        'num_q_heads=8',
        'model.hidden_size=512',
        'model.num_layers=8',
        'model.vocab_size=6400',
      ].map((each) => (each.startsWith('model.') ? each : `model.${each}`)),
    });
    expect(family.name).toBe('minimind');
    expect(countParameters(model).parameters).toBe(MINIMIND);
  });
});

describe('MiniGPT without key and value heads', () => {
  it('has a quarter of the query heads, as its class', async () => {
    const { model } = await load(indented(CLASS_SMALL.replace(/num_key_value_heads.*\n/, '')));
    expect(countParameters(model).parameters).toBe(SMALL);
  });
});

describe('--family for a YAML file', () => {
  it('is read in place of another family in the file, with a warning', async () => {
    const { family, warnings } = await load(
      indented(`family: minigpt\n${CLASS_SMALL.replace(/use_\w+: true\n/g, '')}`),
      {
        family: 'minimind',
      },
    );
    expect(family.name).toBe('minimind');
    expect(warnings).toMatchObject([
      { message: 'the file says "minigpt": read as minimind, by --family' },
    ]);
  });
});

it('only the families that rename keys are compared with the default one', async () => {
  const families = await Promise.all(FAMILY_NAMES.map(loadFamily));
  const renaming = families.filter(({ settingNames }) => settingNames).map(({ name }) => name);
  expect(renaming).toEqual(RENAMING);
  const [standard, ...others] = await Promise.all([DEFAULT_FAMILY, ...RENAMING].map(loadFamily));
  const own = [...modelKeys(standard ?? expect.fail())].filter(
    (key) => !others.some((family) => settingOf(family, key) !== undefined),
  );
  expect(own.sort()).toEqual([...OWN_KEYS].sort());
});
