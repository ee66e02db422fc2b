import fs from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FAMILY_NAMES, loadFamily } from '../../src/architecture/families.js';
import { changedHuggingFace } from '../../src/cli/hugging-face.js';
import { modelOf } from '../../src/cli/model-file.js';
import { parseDocument } from '../../src/config/document.js';
import { type Problem, UserError } from '../../src/errors.js';
import { inPackage, readJson } from '../fixtures.js';

const LLAMA = {
  architectures: ['LlamaForCausalLM'],
  model_type: 'llama',
  vocab_size: 97,
  hidden_size: 32,
  num_attention_heads: 4,
  rope_parameters: { rope_type: 'linear', factor: 2, rope_theta: 500 },
};

/** A config.json with one key in each line. */
const load = (config: object, set: string[] = []) =>
  modelOf(parseDocument(JSON.stringify(config, null, 1), 'config.json'), { set });

async function problemsOf(config: object, set: string[] = []): Promise<readonly Problem[]> {
  try {
    await load(config, set);
  } catch (error) {
    if (error instanceof UserError) return error.problems;
    throw error;
  }
  throw new Error('nothing is wrong with it');
}

describe('a config.json of Hugging Face', () => {
  it('is a document of its family', async () => {
    const { family, document } = await load(LLAMA);
    expect(family.name).toBe('llama');
    expect(document).toMatchObject({
      model: {
        family: 'llama',
        hidden_size: 32,
        num_hidden_layers: 32,
        rope_theta: 500,
        rope_scaling: { rope_type: 'linear', factor: 2 },
      },
    });
  });

  it('takes overrides by the paths of a document', async () => {
    const { document } = await load(LLAMA, ['model.num_hidden_layers=3', 'training.batch_size=2']);
    expect(document).toMatchObject({ model: { num_hidden_layers: 3, hidden_size: 32 } });
  });

  it.each([
    ['a value of its own', { hidden_size: '32' }, 'model.hidden_size', 5],
    [
      'a value in rope_parameters',
      { rope_parameters: { rope_type: 'linear', factor: 2, rope_theta: 'x' } },
      'model.rope_theta',
      10,
    ],
    [
      'a value in what rope_scaling is made from',
      { rope_parameters: { rope_type: 'linear', factor: -1, rope_theta: 1 } },
      'model.rope_scaling.factor',
      9,
    ],
    ['a list for a number', { vocab_size: [1, 2] }, 'model.vocab_size', 4],
    ['heads that do not fit', { num_attention_heads: 5 }, 'model.num_attention_heads', 6],
  ])('has its mistakes located: %s', async (_, wrong, path, line) => {
    const problems = await problemsOf({ ...LLAMA, ...wrong, architectures: 1 });
    expect(problems).toEqual([expect.objectContaining({ file: 'config.json', path, line })]);
  });

  it('has mistakes of an override told as such', async () => {
    const problems = await problemsOf(LLAMA, ['model.hidden_size=no']);
    expect(problems).toEqual([
      expect.objectContaining({ file: '--set', path: 'model.hidden_size' }),
    ]);
  });

  it('tells a key that stands twice', async () => {
    const text = '{"model_type": "llama",\n"hidden_size": 32,\n"hidden_size": 64}';
    await expect(modelOf(parseDocument(text, 'config.json'))).rejects.toMatchObject({
      problems: [{ line: 3, message: expect.stringContaining('stands twice') }],
    });
  });

  it('keeps a document of ours that has a model_type beside its model', async () => {
    const { family, warnings } = await load({ model: {}, model_type: 'llama' });
    expect(family.name).toBe('hybrid');
    expect(warnings[0]?.message).toContain('looks like a config.json');
  });
});

describe('a changed config.json', () => {
  const TEXT = `{
  "model_type": "llama",
  "rope_parameters": { "rope_theta": 10000.0, "rope_type": "linear", "factor": 2.0 },
  "dtype": "float32", "rms_norm_eps": 1e-05
}
`;
  const change = async (...sets: string[]) =>
    (await changedHuggingFace(parseDocument(TEXT, 'config.json'), sets))?.text;

  it.each([
    [[], ''],
    [['model.rope_theta=500'], ['10000.0', '500']],
    [['model.torch_dtype=bfloat16'], ['float32', 'bfloat16']],
    [['model.rope_scaling.factor=4'], ['"factor": 2.0', '"factor": 4']],
    [['model.rms_norm_eps=1.0e-6'], ['1e-05', '0.000001']],
    [['model.tie_word_embeddings=true'], ['{\n', '{\n  "tie_word_embeddings": true,\n']],
  ] as [string[], [string, string]][])('is else as it was: %j', async (sets, [from, to]) => {
    expect(await change(...sets)).toBe(from === undefined ? TEXT : TEXT.replace(from, to ?? ''));
  });

  it('is none where it cannot say so', async () => {
    expect(await change('model.family=gpt2')).toBe(undefined);
    expect(await change('training.batch_size=2')).toBe(undefined);
  });

  it('is written anew where whole parts change', async () => {
    const text = await change('model.rope_scaling={rope_type: linear, factor: 3}');
    expect(text === undefined || JSON.parse(text)).toBeTruthy();
  });
});

describe('a kind of model that is not known', () => {
  it('is told with the nearest, all that are known, and how to add one', async () => {
    const [problem] = await problemsOf({ architectures: [], model_type: 'lama' });
    expect(problem).toMatchObject({ line: 3, path: 'model_type' });
    expect(problem?.message).toBe('no family for model_type "lama" is known here');
    expect(problem?.suggestion).toMatch(/did you mean llama\?.* minigpt, minimind.*adding-a-model/);
  });

  it.each([
    ['text_config', 'llama'],
    ['llm_config', 'minimind'],
  ])('has its text part, %s, told where that is known', async (key, kind) => {
    const [problem] = await problemsOf({ model_type: 'llava', [key]: { model_type: kind } });
    expect(problem?.suggestion).toContain(`its ${key} is of the kind ${kind}, which is known`);
  });

  it.each([[3], [null], [['llama']], [{}], ['hybrid'], ['__proto__'], ['toString'], ['']])(
    'is %j',
    async (kind) => {
      const problems = await problemsOf({ model_type: kind, text_config: { model_type: 'no' } });
      expect(problems).toEqual([expect.objectContaining({ path: 'model_type' })]);
    },
  );

  it('is asked for where there is none', async () => {
    const { config } = readJson<{ config: object }>('fixtures/minigpt/tiny-gqa/case.json');
    const [problem] = await problemsOf(config);
    expect(problem?.message).toContain('has no model_type');
    expect(problem?.suggestion).toContain('are those of minigpt: add "model_type": "minigpt"');
    const [unclear] = await problemsOf({ architectures: ['X'] });
    expect(unclear?.suggestion).toMatch(/add "model_type": with one of .*llama, minigpt/);
    const { model } = await load({ model_type: 'minigpt', ...config });
    expect(model.blocks).toHaveLength(2);
  });
});

describe.each(FAMILY_NAMES)('whatever stands in a config.json of %s', (name) => {
  const KEYS = [
    ...['rope_theta', 'rope_scaling', 'rope_parameters', 'rope_type', 'type', 'factor'],
    ...['full_attention', 'sliding_attention', 'sliding_window_pattern', 'layer_types'],
    ...['rotary_pct', 'n_embd', 'n_embed', 'n_layer', 'no_rope_layers', 'mlp_only_layers'],
    ...['partial_rotary_factor', 'quantization_config', '__proto__', 'constructor'],
  ];

  const anything = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      fc.constantFrom(null, true, 0, -1, 1, 2, 2 ** 53, 1e308, -0, '', 'default', 'yarn', 'su'),
      fc.constantFrom('full_attention', 'silu', [], {}, [[]], '__proto__', '\u0000'),
      fc.integer({ min: 0, max: 64 }),
      fc.array(tie('value'), { maxLength: 3 }),
      tie('mapping'),
    ),
    mapping: fc.dictionary(fc.constantFrom(...KEYS), tie('value'), { maxKeys: 4 }),
  })).value;

  it('is read, or told as a mistake', async () => {
    const family = await loadFamily(name);
    if (!family.fromHuggingFace) return;
    const shape = Object.keys(
      (family.schema as unknown as { shape: { model: { shape: object } } }).shape.model.shape,
    );
    const configs = fc.dictionary(fc.constantFrom(...new Set([...KEYS, ...shape])), anything, {
      maxKeys: 12,
    });
    await fc.assert(
      fc.asyncProperty(configs, async (config) => {
        // Sizes that are left to their defaults would make models of billions.
        const small = { num_hidden_layers: 1, n_layer: 1, num_experts: 2, n_routed_experts: 2 };
        const text = JSON.stringify({ ...small, ...config, model_type: name });
        await modelOf(parseDocument(text, 'config.json')).catch((error: unknown) => {
          if (!(error instanceof UserError)) throw error;
        });
      }),
      { numRuns: 300 },
    );
  });
});

it('every case of Hugging Face is read, where its family is known', async () => {
  const cases = fs.readdirSync(inPackage('fixtures/hf'), { withFileTypes: true });
  for (const { name } of cases.filter((each) => each.isDirectory())) {
    const file = inPackage('fixtures/hf', name, 'config.json');
    const document = parseDocument(fs.readFileSync(file), file);
    const kind = document.value.model_type;
    if (!FAMILY_NAMES.some((family) => family === kind)) continue;
    await expect(modelOf(document), name).resolves.toMatchObject({ family: { name: kind } });
  }
});
