import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { checkDocument } from '../../src/config/check-document.js';
import { parseDocument } from '../../src/config/document.js';
import type { Config } from './model-schema.js';
import { check, model, problemsOf } from './model-schema.js';
import { line } from './support.js';

describe('a valid document', () => {
  it('has the value with its defaults', () => {
    const { value, problems } = check('model: {num_layers: 2}', ['model.dropout=0.1']);
    expect(problems).toStrictEqual([]);
    expect(value?.model).toStrictEqual({
      num_layers: 2,
      hidden_size: 64,
      vocab_size: 100,
      tie: true,
      rope: 'none',
      dropout: 0.1,
      window: null,
    });
  });
});

describe('unknown keys', () => {
  it.each([
    ['num_layer: 1', 'error model.num_layer: unknown key "num_layer" → did you mean "num_layers"?'],
    [
      'Hidden-Size: 8',
      'error model.Hidden-Size: unknown key "Hidden-Size" → did you mean "hidden_size"?',
    ],
    ['notes: {}', 'error model.notes: unknown key "notes" → it belongs at the top of the document'],
    [
      'tie:false',
      'error model["tie:false"]: unknown key "tie:false" → put a space after the colon: "tie: …"',
    ],
    [
      'colour: 1',
      'error model.colour: unknown key "colour" → valid keys here: num_layers, hidden_size, vocab_size, tie, rope, dropout, layers, window, … (12 total)',
    ],
    [
      '__proto__: {x: 1}',
      'error model.__proto__: unknown key "__proto__" → valid keys here: num_layers, hidden_size, vocab_size, tie, rope, dropout, layers, window, … (12 total)',
    ],
    [
      'layers: [{kind: mamba, staet: 1}]',
      'error model.layers.0.staet: unknown key "staet" → did you mean "state"?',
    ],
  ])('are reported with a suggestion: %s', (text, problem) => {
    expect(model(text)).toStrictEqual([problem]);
  });

  it('are reported at the key', () => {
    expect(check('model:\n  num_layers: 1\n  "foo": {a: 1}').problems).toMatchObject([
      { line: 3, column: 3, excerpt: '  "foo": {a: 1}', path: 'model.foo' },
    ]);
  });

  it('are reported with the section where they belong', () => {
    expect(problemsOf('model: {num_layers: 1}\nhidden_size: 8')).toStrictEqual([
      'f:2:1 error hidden_size: unknown key "hidden_size" → it belongs under model',
    ]);
  });

  it('are warnings in a loose object, and stay in the value', () => {
    const { value, problems } = check('model: {num_layers: 1}\nnotes: {authr: x, "\u202e": 1}');
    expect(problems.map(line)).toStrictEqual([
      'f:2:9 warning notes.authr: unknown key "authr" → did you mean "author"?',
      'f:2:19 warning notes["\\u202e"]: unknown key "\\u202e" → valid keys here: author',
    ]);
    expect(value?.notes).toStrictEqual({ authr: 'x', '\u202e': 1 });
  });

  it('are errors in a plain object, where zod reports nothing', () => {
    const schema = z.object({ a: z.object({ b: z.int().optional() }) });
    const { value, problems } = checkDocument(parseDocument('a: {c: 1}', 'f'), { schema });
    expect(value).toBeUndefined();
    expect(problems.map(line)).toStrictEqual([
      'f:1:5 error a.c: unknown key "c" → valid keys here: b',
    ]);
  });

  it('are also reported in records', () => {
    expect(
      problemsOf('model: {num_layers: 1}\ntags: {a: 1, __proto__: 2}\nweights: {q: 1, Q_: 2}'),
    ).toStrictEqual([
      'f:2:14 error tags.__proto__: unknown key "__proto__" → remove it',
      'f:3:17 error weights.Q_: unknown key "Q_" → valid keys here: q, k',
    ]);
  });

  it.each([
    ['optional', (inner: z.ZodObject) => inner.optional()],
    ['nullable', (inner: z.ZodObject) => inner.nullable()],
    ['default', (inner: z.ZodObject) => inner.default({})],
    ['prefault', (inner: z.ZodObject) => inner.prefault({})],
    ['readonly', (inner: z.ZodObject) => inner.readonly()],
    ['transform', (inner: z.ZodObject) => inner.transform((value) => value)],
    ['preprocess', (inner: z.ZodObject) => z.preprocess((value) => value, inner)],
    ['lazy', (inner: z.ZodObject) => z.lazy(() => inner)],
    ['union', (inner: z.ZodObject) => z.union([z.string(), inner])],
    ['list', (inner: z.ZodObject) => z.array(inner)],
    [
      'intersection',
      (inner: z.ZodObject) => z.intersection(inner, z.strictObject({ b: z.int().optional() })),
    ],
  ])('are reported once in a wrapped schema: %s', (name, wrap) => {
    const schema = z.strictObject({ x: wrap(z.strictObject({ a: z.int().optional() })) });
    const text = name === 'list' ? 'x: [{aa: 1}]' : 'x: {aa: 1}';
    const { problems } = checkDocument(parseDocument(text, 'f'), { schema });
    expect(problems.map(({ message }) => message)).toStrictEqual(['unknown key "aa"']);
  });
});

describe('missing keys', () => {
  it('are reported at the mapping that should have them', () => {
    expect(problemsOf('notes: {}\nmodel:\n  tie: true')).toStrictEqual([
      'f:2:1 error model.num_layers: the key "num_layers" is missing → add num_layers: it must be an integer ≥ 1',
    ]);
    expect(problemsOf('notes: {}')).toStrictEqual([
      'f:1:1 error model: the key "model" is missing → add model: it must be a mapping',
    ]);
  });

  it('are not reported if they are misspelt', () => {
    expect(problemsOf('model: {num_layer: 3}')).toStrictEqual([
      'f:1:9 error model.num_layer: unknown key "num_layer" → did you mean "num_layers"?',
    ]);
  });

  it('are reported if the misspelt key is only a warning', () => {
    const schema = z.looseObject({ author: z.string() });
    const { value, problems } = checkDocument(parseDocument('authr: x', 'f'), { schema });
    expect(value).toBeUndefined();
    expect(problems.map(({ severity }) => severity)).toStrictEqual(['error', 'warning']);
  });
});

describe('confusions', () => {
  const confusions = [
    { path: 'model.n_layer', message: 'is what GPT-2 calls it', suggestion: 'write num_layers' },
    { path: 'model.rope', value: 'rotary', message: 'is no scaling', suggestion: 'write none' },
    { path: 'model.tie', value: 'true', message: 'is never right', suggestion: 'write false' },
  ];

  it('replace the general message', () => {
    expect(problemsOf('model: {n_layer: 3, rope: rotary}', [], { confusions })).toStrictEqual([
      'f:1:9 error model.n_layer: is what GPT-2 calls it → write num_layers',
      'f:1:27 error model.rope: is no scaling → write none',
    ]);
  });

  it('do not hide problems of other values', () => {
    expect(problemsOf('model: {num_layers: 1, rope: rotari}', [], { confusions })).toStrictEqual([
      'f:1:30 error model.rope: must be one of "none", "linear", "yarn", but is "rotari"',
    ]);
  });

  it('are errors for values that the schema accepts', () => {
    const { value, problems } = check('model: {num_layers: 1, tie: true}', [], { confusions });
    expect(value).toBeUndefined();
    expect(problems.map(line)).toStrictEqual([
      'f:1:29 error model.tie: is never right → write false',
    ]);
  });
});

describe('confusions that are only warnings', () => {
  const confusions = [
    { path: 'vocab_size', message: 'stands at the top', suggestion: 'move it under model:' },
  ];

  it('do not hide the missing key that they name', () => {
    const schema = z.looseObject({ model: z.strictObject({}) });
    const checked = checkDocument(parseDocument('vocab_size: 3', 'f'), { schema, confusions });
    expect(checked).toMatchObject({ value: undefined, errors: 1, warnings: 1 });
    expect(checked.problems.map(line)).toStrictEqual([
      'f:1:1 error model: the key "model" is missing → add model: it must be a mapping',
      'f:1:1 warning vocab_size: stands at the top → move it under model:',
    ]);
  });
});

describe('mistakes of reading', () => {
  it('are reported with all others, in order', () => {
    const text = [
      'model:',
      '  num_layers: 99999999999999999999',
      '  hidden_size: 9',
      '  tie: true',
      '  tie: 3',
      '  rope: *nothing',
      '  dropout: !foo 0.1',
      '  colour: 1',
      'tags: {a: x}',
    ].join('\n');
    const sets = ['model.vocab_size=[1', 'model.tie.x=1', 'oops', 'model.foo=1'];
    expect(problemsOf(text, sets).map((each) => each.split(' → ', 1)[0])).toStrictEqual([
      'f:2:15 error: 99999999999999999999 is beyond 2^53 − 1',
      'f:3:16 error model.hidden_size: must be a multiple of 8, but is 9',
      'f:5:3 error: the key "tie" occurs twice in this mapping; the first is at 4:3',
      'f:6:9 error: no anchor "&nothing" precedes this alias',
      'f:7:12 error: the tag "!foo" does not fit or is not known here',
      'f:8:3 error model.colour: unknown key "colour"',
      'f:9:11 error tags.a: must be an integer, but is "x"',
      '--set error: a [ is not closed',
      '--set error: model.tie is 3, so it has no key "x"',
      '--set error: "oops" has no =',
      '--set error model.foo: unknown key "foo"',
    ]);
  });

  it.each([
    ['of a value', 'model: {num_layers: 1e400}'],
    ['of a list item', 'model: {num_layers: 1, layers: [*x]}'],
    ['of a key', 'model: {num_layers: 1, 99999999999999999999: 1}'],
    ['of an unknown key', 'model: {num_layers: 1, colour: 1, colour: 2}'],
    ['of a missing key', 'model: {num_layers: *x}'],
    ['of a key in a failed merge', 'model: {<<: *x}'],
    ['of a key in a merge of an invalid mapping', 'notes: &n {<<: *x}\nmodel: {<<: *n}'],
    ['of a key that the other of two mappings may have', 'model: {num_layers: 1}\nmodel: {}'],
    ['of a key that may be an unreadable one', 'model: {[a]: 1}'],
    ['of a key that may be an alias', 'model: {*x : 1}'],
    ['of a missing mapping', 'model: *x'],
    ['of a key of an invalid override', 'model: {}', 'model.num_layers=[1'],
    ['of a key below an invalid value', 'model: *x', 'model.num_layers=1'],
  ])('are reported once: %s', (_, text, ...sets) => {
    const { value, problems } = check(text, sets);
    expect(value).toBeUndefined();
    expect(problems).toHaveLength(1);
  });

  it('leave the last value of a repeated key, which is checked', () => {
    const text = 'model: {num_layers: 1, tie: 3}\nmodel: {num_layers: 1, tie: 4}';
    expect(problemsOf(text).map((each) => each.split(' → ', 1)[0])).toStrictEqual([
      'f:2:1 error: the key "model" occurs twice in this mapping; the first is at 1:1',
      'f:2:29 error model.tie: must be true or false, but is 4',
    ]);
  });

  it.each([
    ['of a wrong value', 'model: {num_layers: 1, dropout: 1e400}', false],
    ['of a repeated value', 'model: {num_layers: 1, dropout: 0.1, dropout: 0}', false],
    ['of a default that a merge may have set', 'model: {num_layers: 1, <<: *x}', false],
    ['inside the value', 'model: {num_layers: 1, dropout: {a: *x}}', false],
    ['of another value', 'model: {num_layers: 1, tie: *x, dropout: 0.5}', true],
  ])('prevent rules only for affected values: %s', (_, text, runs) => {
    const check = () => ({ message: 'ran' });
    const rule = { severity: 'error', reads: ['model.dropout'], check } as const;
    expect(
      problemsOf(text, [], { rules: [rule] })
        .join()
        .includes('ran'),
    ).toBe(runs);
  });

  it('are reported even if an override replaces the value', () => {
    expect(check('model: {num_layers: 1e400}', ['model.num_layers=1'])).toMatchObject({
      errors: 1,
      problems: [{ line: 1, message: '1e400 is too large for a number' }],
    });
  });
});

describe('rules', () => {
  const severity = 'error';
  const big = {
    severity,
    reads: ['model.hidden_size', 'model.num_layers'],
    check: ({ model }: Config) =>
      model.hidden_size > 10 * model.num_layers
        ? {
            message: `${model.hidden_size} is wide for ${model.num_layers}`,
            suggestion: 'add layers',
          }
        : undefined,
  } as const;

  it('are reported at the first value that they read', () => {
    expect(
      problemsOf('model:\n  num_layers: 1\n  hidden_size: 16', [], { rules: [big] }),
    ).toStrictEqual(['f:3:16 error model.hidden_size: 16 is wide for 1 → add layers']);
  });

  it('are reported at another value if the first is a default', () => {
    expect(problemsOf('model:\n  num_layers: 1', [], { rules: [big] })).toStrictEqual([
      'f:2:15 error model.num_layers: 64 is wide for 1 → add layers',
    ]);
  });

  it('are reported at the mapping if all are defaults', () => {
    const rule = { severity, reads: ['model.tie'], check: () => ({ message: 'no' }) } as const;
    expect(problemsOf('model: {num_layers: 1}', [], { rules: [rule] })).toStrictEqual([
      'f:1:1 error model.tie: no',
    ]);
  });

  it('run if the document is invalid only elsewhere', () => {
    const text = 'model: {num_layers: 1, tie: 3, layers: [{kind: x}], foo: 1}\ntags: {a: x, b: 1}';
    const rule = {
      severity: 'warning',
      reads: ['tags.b'],
      check: ({ tags }: Config) => ({ message: JSON.stringify(tags) }),
    } as const;
    const problems = problemsOf(text, [], { rules: [big, rule] });
    expect(problems).toContain('f:1:21 error model.num_layers: 64 is wide for 1 → add layers');
    expect(problems).toContain('f:2:17 warning tags.b: {"b":1}');
  });

  it.each([
    ['the value itself', 'model: {num_layers: 1, hidden_size: 9}'],
    ['a value above', 'model: [1]'],
    ['a misspelt key', 'model: {num_layers: 1, hiden_size: 8}'],
    ['a missing key', 'model: {hidden_size: 8}'],
  ])('do not run on invalid values: %s', (_, text) => {
    const rule = { ...big, check: () => ({ message: 'ran' }) };
    expect(problemsOf(text, [], { rules: [rule] }).join()).not.toContain('ran');
  });

  it('do not run if a nested value is invalid', () => {
    const rule = { severity, reads: ['model'], check: () => ({ message: 'ran' }) } as const;
    expect(problemsOf('model: {num_layers: x}', [], { rules: [rule] }).join()).not.toContain('ran');
    expect(problemsOf('model: {num_layers: 1}', [], { rules: [rule] }).join()).toContain('ran');
  });

  it('leave the value unchanged if they are warnings', () => {
    const { value, problems } = check('model: {num_layers: 1}', [], {
      rules: [{ ...big, severity: 'warning' }],
    });
    expect(problems).toMatchObject([{ severity: 'warning' }]);
    expect(value?.model.num_layers).toBe(1);
  });
});

describe('the order of problems', () => {
  it('is the order of the file, then of the overrides', () => {
    const text = 'tags: {a: x}\nmodel:\n  foo: 1\n  num_layers: 0\n';
    const sets = ['zzz=1', 'model.tie=3', 'aaa=1'];
    expect(problemsOf(text, sets).map((problem) => problem.split(': ', 1)[0])).toStrictEqual([
      'f:1:11 error tags.a',
      'f:3:3 error model.foo',
      'f:4:15 error model.num_layers',
      '--set error zzz',
      '--set error model.tie',
      '--set error aaa',
    ]);
  });
});
