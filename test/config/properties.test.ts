import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { checkDocument } from '../../src/config/check-document.js';
import { type ConfigDocument, parseDocument } from '../../src/config/document.js';
import { applyOverrides } from '../../src/config/overrides.js';
import { formatPath } from '../../src/config/quote.js';
import { isWhole } from '../sampled.js';
import { line, userError } from './support.js';

/** JSON of safe integers, with any names. */
const json = fc.letrec<{ value: unknown; object: Record<string, unknown> }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.string({ unit: 'binary' }),
    fc.maxSafeInteger(),
    fc.double({ noNaN: true, noDefaultInfinity: true }).filter((x) => Math.abs(x) < 2 ** 53),
    fc.boolean(),
    fc.constant(null),
    fc.array(tie('value'), { maxLength: 4 }),
    tie('object'),
  ),
  object: fc.dictionary(
    fc.oneof(fc.string({ unit: 'binary' }), fc.constant('__proto__')),
    tie('value'),
    {
      maxKeys: 5,
    },
  ),
})).object;

/** Text that is nearly YAML, and so gets further into the parser than random characters. */
const nearlyYaml = fc
  .array(
    fc.constantFrom(
      ...[
        'a',
        'b: ',
        ': ',
        '\n',
        '\n  ',
        '\n\t',
        '- ',
        '? ',
        '[',
        ']',
        '{',
        '}',
        ',',
        '"',
        "'",
        '#',
        ' #',
      ],
      ...[
        '&a ',
        '*a',
        '<<: ',
        '!t ',
        '!!str ',
        '|',
        '>',
        '\n---\n',
        '\n...\n',
        '%YAML 1.1\n',
        '@',
        '\\',
        '1',
      ],
      ...[
        '1e9',
        '99999999999999999999',
        '\r',
        '\u0007',
        '\u2028',
        '\ud800',
        '__proto__',
        'null',
        '~',
      ],
    ),
    { maxLength: 25 },
  )
  .map((pieces) => pieces.join(''));

const bytes = fc.uint8Array({ maxLength: 60 });

const schema = z.looseObject({
  a: z.strictObject({ b: z.int(), c: z.array(z.string()).default([]) }),
  b: z.union([z.int(), z.looseObject({ c: z.int() })]).optional(),
  c: z.record(z.string(), z.boolean()).optional(),
});
const key = fc.constantFrom('a', 'b', 'c', 'bb', 'd');
const advice = fc.array(key, { maxLength: 4 }).map((keys) => keys.join(' '));
const confusions = fc.array(
  fc.record({
    path: fc.array(key, { minLength: 1, maxLength: 2 }).map((keys) => keys.join('.')),
    message: advice,
    suggestion: advice,
  }),
  { maxLength: 3 },
);
/** Documents in flow style that nearly fit the schema, some with mistakes of reading. */
const nearlyRight = fc.letrec<{ value: string; mapping: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom('1', 'true', 'x', '', '[x]', '1e999', '*z', '!t 1', '[{c: *y}]'),
    tie('mapping'),
  ),
  mapping: fc
    .array(fc.tuple(fc.oneof(key, fc.constantFrom('<<', '[q]', '"<<"')), tie('value')), {
      maxLength: 4,
    })
    .map((pairs) => `{${pairs.map(([name, value]) => `${name}: ${value}`).join(', ')}}`),
})).mapping;

describe('checkDocument', () => {
  it('returns either a value or an error', () => {
    const sets = fc.array(fc.tuple(key, fc.constantFrom('=1', '=[', '.b=1', '', '={b: *x}')), {
      maxLength: 2,
    });
    fc.assert(
      fc.property(nearlyRight, sets, confusions, (text, overrides, known) => {
        const written = overrides.map((parts) => parts.join(''));
        const document = applyOverrides(parseDocument(text, 'f'), written);
        const checked = checkDocument(document, { schema, confusions: known });
        const { value, problems, errors, warnings } = checked;
        expect(problems.some(({ severity }) => severity === 'error')).toBe(value === undefined);
        expect(errors > 0).toBe(value === undefined);
        expect(errors + warnings).toBe(problems.length);
      }),
      { numRuns: isWhole ? 3000 : 1000 },
    );
  });
});

const strict = z.strictObject({ a: z.int(), b: z.array(z.string()).optional() });

/** All texts about a document that a user can see. */
function outcome(read: () => ConfigDocument): string {
  try {
    const document = read();
    document.locate(['a', 0, 'b'], 'key');
    return checkDocument(document, { schema: strict })
      .problems.map((each) => line(each) + each.excerpt)
      .join('');
  } catch (error) {
    const { message, problems } = userError(() => {
      throw error;
    });
    return message + problems.map((each) => line(each) + each.excerpt).join('');
  }
}

describe('parseDocument', () => {
  it('reads any JSON, compact or indented', () => {
    fc.assert(
      fc.property(json, fc.constantFrom('', '  ', '\t'), (value, indentation) => {
        const text = JSON.stringify(value, null, indentation);
        expect(parseDocument(text, 'f').value).toStrictEqual(JSON.parse(text));
      }),
    );
  });

  it('locates every value at its text', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.maxSafeInteger(), { minKeys: 1 }), (value) => {
        const text = JSON.stringify(value, null, 1);
        const document = parseDocument(text, 'f');
        for (const [key, number] of Object.entries(value)) {
          const { line: at = 0, column = 0 } = document.locate([key]);
          const located = [...(text.split('\n')[at - 1] ?? '')].slice(column - 1).join('');
          expect(located.replace(/,$/, '')).toBe(String(number));
        }
      }),
    );
  });

  it.each([
    ['text', fc.string({ unit: 'binary', maxLength: 60 })],
    ['nearly YAML', nearlyYaml],
    ['bytes', bytes],
  ] as [string, fc.Arbitrary<string | Uint8Array>][])(
    'escapes any %s in its messages',
    (_, arbitrary) => {
      fc.assert(
        fc.property(arbitrary, (text) => {
          expect(outcome(() => parseDocument(text, 'f'))).not.toMatch(
            /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u,
          );
        }),
        { numRuns: isWhole ? 2000 : 700 },
      );
    },
  );
});

describe('applyOverrides', () => {
  const key = fc.oneof(fc.string({ minLength: 1, maxLength: 5 }), fc.constant('__proto__'));

  it('sets one value without other changes', () => {
    fc.assert(
      fc.property(
        json,
        fc.array(key, { minLength: 1, maxLength: 4 }),
        fc.jsonValue(),
        (value, path, set) => {
          fc.pre(!JSON.stringify(set).match(/\d{16}/));
          const document = parseDocument(JSON.stringify({ base: value }), 'f');
          const before = structuredClone(document.value);
          const segments = path.map((each) => `["${each.replace(/["\\]/g, '\\$&')}"]`).join('');
          const changed = applyOverrides(document, [`new${segments}=${JSON.stringify(set)}`]);
          let at: unknown = changed.value.new;
          for (const each of path) at = Object.getOwnPropertyDescriptor(at, each)?.value;
          expect(JSON.stringify(at)).toBe(JSON.stringify(set));
          expect(changed.value.base).toBe(document.value.base);
          expect(document.value).toStrictEqual(before);
        },
      ),
    );
  });

  it('accepts the paths of problems', () => {
    const printable = fc.string({ minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(fc.array(printable, { minLength: 1, maxLength: 4 }), (path) => {
        const changed = applyOverrides(parseDocument('{}', 'f'), [`${formatPath(path)}=1`]);
        expect(changed.has(path)).toBe(true);
      }),
    );
  });

  it('escapes any text in its messages', () => {
    const anything = fc.oneof(fc.string({ unit: 'binary' }), nearlyYaml);
    fc.assert(
      fc.property(anything, nearlyYaml, fc.boolean(), (path, value, hasValue) => {
        const set = hasValue ? `${path}=${value}` : path;
        const document = parseDocument('a: 1\nb: [x, {c: 2}]\n', 'f');
        const messages = outcome(() => applyOverrides(document, [set, `b.1.${set}`]));
        expect(messages).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u);
      }),
      { numRuns: isWhole ? 1000 : 300 },
    );
  });
});
