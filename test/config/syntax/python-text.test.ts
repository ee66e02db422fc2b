import { describe, expect, it } from 'vitest';
import type { Problem } from '../../../src/base/errors.js';
import { parseDocument } from '../../../src/config/document.js';
import { modelOf } from '../../../src/input/model-input/model-file.js';
import { countParameters } from '../../../src/model/budget/parameters.js';

const valuesOf = (text: string) => parseDocument(text, 'm.yaml').value;

describe('settings in Python', () => {
  it.each<[string, string, unknown]>([
    [
      'a dictionary',
      "tiny = {\n    'hidden_size': 128,  # width\n    'num_layers': 8,\n    'use_rope': True,\n    'kv': None,\n}\n",
      { hidden_size: 128, num_layers: 8, use_rope: true, kv: null },
    ],
    [
      'a call with an argument that is no setting',
      'optimizer = torch.optim.AdamW(\n    model.parameters(),\n    lr=1e-4,\n    betas=(0.9, 0.95),      # second\n    weight_decay=0.1,\n)\n',
      { lr: 1e-4, betas: [0.9, 0.95], weight_decay: 0.1 },
    ],
    [
      'two calls, each under its name',
      'optimizer = AdamW(lr=1e-4)\nscaler = GradScaler(init_scale=2**16, growth_interval=2000)\n',
      { optimizer: { lr: 1e-4 }, scaler: { init_scale: 65_536, growth_interval: 2000 } },
    ],
    [
      'assignments',
      '# sizes\nnum_layers = 8\nhead_dim = 64  # width\ndtype = torch.float16\n',
      { num_layers: 8, head_dim: 64, dtype: 'torch.float16' },
    ],
    [
      'a returned call',
      "return Config(vocab_size=10_000, name='a, b=(c', act='swiglu')",
      { vocab_size: 10_000, name: 'a, b=(c', act: 'swiglu' },
    ],
  ])('are read from %s', (_, text, value) => {
    expect(valuesOf(text)).toEqual(value);
  });

  it('keep their lines in problems', async () => {
    const text =
      "c = {\n  'hidden_size': 64,\n  'num_layers': 2,\n  'num_heads': 2,\n  'num_kv_heads': 0,\n}\n";
    await expect(
      modelOf(parseDocument(text, 'm.yaml'), { family: 'minigpt' }),
    ).rejects.toMatchObject({
      problems: [{ path: 'model.num_key_value_heads', line: 5 }],
    });
  });

  it.each(['\n', '\r\n'])(
    'show the lines of the file in problems, with line breaks %j',
    async (end) => {
      const lines = ['c = Config(', "  hidden_size=64, name='é',", '  num_layers=0,', ')', ''];
      const refused = await modelOf(parseDocument(lines.join(end), 'm.yaml'), {
        family: 'minigpt',
      }).catch(({ problems }) => problems as Problem[]);
      const [problem] = [refused].flat().filter((each) => 'line' in each && each.line === 3);
      expect(problem).toMatchObject({ excerpt: '  num_layers=0,' });
      // A column in YAML would mark another character.
      expect(problem).not.toHaveProperty('column');
    },
  );

  it('are those of the dictionary, with a word on the statements beside it', async () => {
    const text =
      "config = {\n  'vocab_size': 20000, 'hidden_size': 640, 'num_layers': 20,\n  'num_heads': 16, 'num_kv_heads': 4,\n  'intermediate_size': 2048,\n}\n\nembedding_params = 20000 * 640\n";
    const { model, warnings } = await modelOf(parseDocument(text, 'm.yaml'), { family: 'minigpt' });
    // As PyTorch counts the class of cklxx/mini-llm.
    expect(countParameters(model).parameters).toBe(111_949_440);
    expect(warnings).toMatchObject([
      {
        message: 'Python that is not read: line 7',
        line: 7,
        excerpt: 'embedding_params = 20000 * 640',
      },
    ]);
  });

  it('are none in YAML and JSON', () => {
    expect(valuesOf('a: b = {c}\n')).toEqual({ a: 'b = {c}' });
    expect(valuesOf("{'a': 1,}")).toEqual({ a: 1 });
    expect(parseDocument('a = {"b": 1}', 'm.json').value).not.toEqual({ b: 1 });
  });

  it('take no longer than their length', () => {
    const many = Array.from({ length: 60_000 }, (_, at) => `a${at}=None,`).join('\n');
    expect(Object.keys(valuesOf(`c(\n${many})`))).toHaveLength(60_000);
    for (const text of [
      'c('.repeat(100_000),
      `c = ${'('.repeat(100_000)}`,
      `c(${"'".repeat(99_999)}`,
    ]) {
      expect(() => parseDocument(text, 'm.yaml')).toThrow();
    }
  });
});
