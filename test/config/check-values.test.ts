import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { checkDocument } from '../../src/config/check-document.js';
import { parseDocument } from '../../src/config/document.js';
import { model, problemsOf } from './model-schema.js';
import { line } from './support.js';

describe('wrong values', () => {
  it.each([
    [
      'vocab_size: abc',
      'error model.vocab_size: must be an integer ≥ 1 and ≤ 1000000, but is "abc"',
    ],
    [
      'vocab_size: "32"',
      'error model.vocab_size: must be an integer ≥ 1 and ≤ 1000000, but is "32" → remove the quotes: 32',
    ],
    [
      'vocab_size: 32_000',
      'error model.vocab_size: must be an integer ≥ 1 and ≤ 1000000, but is "32_000" → write 32000',
    ],
    [
      'vocab_size: "32,000"',
      'error model.vocab_size: must be an integer ≥ 1 and ≤ 1000000, but is "32,000" → write 32000',
    ],
    [
      'vocab_size: "1000,6400"',
      'error model.vocab_size: must be an integer ≥ 1 and ≤ 1000000, but is "1000,6400" → write one value; minimind compare takes several, and makes a model of each',
    ],
    [
      'vocab_size: 32k',
      'error model.vocab_size: must be an integer ≥ 1 and ≤ 1000000, but is "32k" → write 32000',
    ],
    [
      'vocab_size: 0.1M',
      'error model.vocab_size: must be an integer ≥ 1 and ≤ 1000000, but is "0.1M" → write 100000',
    ],
    ['vocab_size: 1.5', 'error model.vocab_size: must be an integer ≥ 1 and ≤ 1000000, but is 1.5'],
    ['vocab_size: 0', 'error model.vocab_size: must be an integer ≥ 1 and ≤ 1000000, but is 0'],
    [
      'vocab_size: 2e6',
      'error model.vocab_size: must be an integer ≥ 1 and ≤ 1000000, but is 2000000',
    ],
    [
      'vocab_size: .inf',
      'error model.vocab_size: must be an integer ≥ 1 and ≤ 1000000, but is Infinity',
    ],
    [
      'vocab_size: ',
      'error model.vocab_size: must be an integer ≥ 1 and ≤ 1000000, but is null → leave the key out, or give it a value',
    ],
    [
      'vocab_size: [1]',
      'error model.vocab_size: must be an integer ≥ 1 and ≤ 1000000, but is a list → write 1, without a list around it',
    ],
    [
      'vocab_size: [1, 2]',
      'error model.vocab_size: must be an integer ≥ 1 and ≤ 1000000, but is a list → write one value, not a list',
    ],
    [
      'rope: [none]',
      'error model.rope: must be one of "none", "linear", "yarn", but is a list → write "none", without a list around it',
    ],
    [
      'hidden_size: 100',
      'error model.hidden_size: must be a multiple of 8, but is 100 → the nearest are 96 and 104',
    ],
    ['dropout: .nan', 'error model.dropout: must be a finite number ≥ 0 and < 1, but is NaN'],
    ['dropout: 1', 'error model.dropout: must be a number ≥ 0 and < 1, but is 1'],
    ['tie: yes', 'error model.tie: must be true or false, but is "yes" → write true'],
    ['tie: off', 'error model.tie: must be true or false, but is "off" → write false'],
    [
      'rope: yran',
      'error model.rope: must be one of "none", "linear", "yarn", but is "yran" → did you mean "yarn"?',
    ],
    ['rope: 3', 'error model.rope: must be one of "none", "linear", "yarn", but is 3'],
    [
      'window: autp',
      'error model.window: must be an integer ≥ 1 or "auto" or null, but is "autp" → did you mean "auto"?',
    ],
    [
      'window: None',
      'error model.window: must be an integer ≥ 1 or "auto" or null, but is "None" → write null',
    ],
    [
      'window: {}',
      'error model.window: must be an integer ≥ 1 or "auto" or null, but is a mapping',
    ],
    [
      'name: 3',
      'error model.name: must be a text with at least 1 character and with at most 5 characters, but is 3 → put it in quotes: "3"',
    ],
    ['pattern: b', 'error model.pattern: must be a text that matches /^a+$/, but is "b"'],
    ['even: 3', 'error model.even: must be even'],
    ['pair: [1]', 'error model.pair: must be a list of 2 items, but is a list'],
    ['layers: []', 'error model.layers: must be a list with at least 1 item, but is an empty list'],
    [
      'layers: 3',
      'error model.layers: must be a list with at least 1 item, but is 3 → write a list: [3]',
    ],
    [
      'layers: [3]',
      'error model.layers.0: must be a mapping, but is 3 → give its keys values instead, such as model.layers.0.kind',
    ],
    [
      'layers: [{}]',
      'error model.layers.0.kind: the key "kind" is missing → add kind: it must be one of "attention", "mamba", "mamba2"',
    ],
    [
      'layers: [{kind: atention}]',
      'error model.layers.0.kind: must be one of "attention", "mamba", "mamba2", but is "atention" → did you mean "attention"?',
    ],
    [
      'layers: [{kind: attention, heads: 0}]',
      'error model.layers.0.heads: must be an integer ≥ 1, but is 0',
    ],
    [
      'rope: "\u202e\\e"',
      'error model.rope: must be one of "none", "linear", "yarn", but is "\\u202e\\u001b"',
    ],
  ])('are reported: %s', (text, problem) => {
    expect(model(text)).toStrictEqual([problem]);
  });

  it.each([
    [
      'model:',
      [],
      'f:1:7 error model: must be a mapping, but is null → write keys below it, or {}',
    ],
    [
      'model: {num_layers: 1}',
      ['model=3'],
      '--set error model: must be a mapping, but is 3 → give its keys values instead, such as model.num_layers',
    ],
    [
      'model: {num_layers: 1}\ntags: [a]',
      [],
      'f:2:7 error tags: must be a mapping, but is a list → write {key: value}',
    ],
  ])('are reported in place of keys: %j %j', (text, sets, problem) => {
    expect(problemsOf(text, sets)).toStrictEqual([problem]);
  });

  it('are truncated if they are long', () => {
    const [problem] = model(`name: ${'x'.repeat(500)}`);
    expect(problem).toMatch(/but is "x{59}…"$/);
  });

  it('in a union are those of the option that fits best', () => {
    const schema = z.strictObject({
      u: z.union([
        z.int(),
        z.strictObject({ type: z.literal('a'), x: z.int() }),
        z.strictObject({ type: z.literal('b'), y: z.int(), z: z.int() }),
      ]),
    });
    const problemsIn = (text: string) =>
      checkDocument(parseDocument(text, 'f'), { schema }).problems.map(line);
    expect(problemsIn('u: {type: a, x: q}')).toStrictEqual([
      'f:1:17 error u.x: must be an integer, but is "q"',
    ]);
    expect(problemsIn('u: {type: b, y: 1}')).toStrictEqual([
      'f:1:1 error u.z: the key "z" is missing → add z: it must be an integer',
    ]);
    expect(problemsIn('u: q')).toStrictEqual([
      'f:1:4 error u: must be an integer or a mapping, but is "q"',
    ]);
  });

  it('have the message of the schema if it defines one', () => {
    const schema = z.strictObject({
      a: z.int({ error: 'is no good' }),
      b: z.record(z.string().regex(/^x/, 'begins with x'), z.int()),
    });
    const { problems } = checkDocument(parseDocument('a: x\nb: {y: 1}', 'f'), { schema });
    expect(problems.map(line)).toStrictEqual([
      'f:1:4 error a: is no good',
      'f:2:5 error b.y: "y" cannot be a key here: begins with x → rename it or remove it',
    ]);
  });
});
