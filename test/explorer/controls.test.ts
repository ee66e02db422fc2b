import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { modelAnswers } from '../../src/explorer/answers.js';
import { dialsOf } from '../../src/explorer/dials.js';
import { fieldsOf, fieldValue } from '../../src/explorer/fields.js';
import { inPackage } from '../fixtures.js';

async function described(name: string, text = readFileSync(inPackage('configs', name), 'utf8')) {
  const { described } = await modelAnswers({ name, text }, {});
  if (described === undefined) throw new Error(`${name} is not valid`);
  return described;
}

describe('dials', () => {
  test('are the sizes of the family', async () => {
    const dials = dialsOf(await described('hybrid/tiny.yaml'));
    expect(dials.map(({ label, value }) => `${label} ${value}`)).toEqual([
      'Depth 2',
      'Width 64',
      'Heads 4',
      'SRTE rank 8',
      'Gate rank 16',
      'Vocabulary 256',
      'Positions 256',
      'Share the SRTE true',
      'Tie embedding and head true',
    ]);
    const heads = dials.find(({ label }) => label === 'Heads');
    expect(heads?.stops).toEqual([1, 2, 4, 8, 16, 32, 64]);
  });

  test('have experts, ranks, and heads that follow others', async () => {
    const text =
      'model: { family: deepseek_v3, num_hidden_layers: 4, n_routed_experts: 48, num_experts_per_tok: 4, n_group: 4, topk_group: 2 }';
    const labels = dialsOf(await described('x.yaml', text)).map(({ label }) => label);
    expect(labels).toEqual(expect.arrayContaining(['Experts', 'Experts per token', 'KV rank']));
    const llama = await described('y.yaml', 'model: { family: llama, num_attention_heads: 16 }');
    const kv = dialsOf(llama).find(({ label }) => label === 'KV heads');
    expect(kv).toMatchObject({ value: 16, stops: [1, 2, 4, 8, 16] });
  });
});

describe('fields', () => {
  test('follow the JSON Schema', async () => {
    const { schema } = await described('hybrid/tiny.yaml');
    const fields = new Map(fieldsOf(schema, 'model').map((field) => [field.key, field]));
    expect(fields.has('family')).toBe(false);
    expect(fields.get('num_layers')).toMatchObject({
      input: { kind: 'number', isWhole: true, least: 1 },
      usual: 32,
    });
    expect(fields.get('dropout')?.input).toMatchObject({ kind: 'number', isWhole: false });
    expect(fields.get('attention_type')?.input).toEqual({
      kind: 'choice',
      choices: ['local_global', 'pyramidal'],
    });
    expect(fields.get('tie_word_embeddings')?.input).toEqual({ kind: 'switch' });
    expect(fieldsOf(schema, 'training').length).toBeGreaterThan(10);
    expect(fieldsOf(schema, 'missing')).toEqual([]);
  });

  test('read the text of an input', async () => {
    const { schema } = await described('y.yaml', 'model: { family: llama }');
    const fields = fieldsOf(schema, 'model');
    const field = (key: string) => fields.find((each) => each.key === key) ?? expect.unreachable();
    expect(fieldValue(field('head_dim'), '64')).toBe(64);
    expect(fieldValue(field('head_dim'), '')).toBeNull();
    expect(fieldValue(field('hidden_size'), '')).toBeUndefined();
    expect(fieldValue(field('hidden_size'), 'x')).toBeUndefined();
    expect(fieldValue(field('tie_word_embeddings'), 'true')).toBe(true);
    expect(fieldValue(field('hidden_act'), 'relu')).toBe('relu');
    expect(field('rope_scaling').input.kind).toBe('none');
  });
});
