import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseJson } from '../../../src/base/text/json.js';
import { editedJson } from '../../../src/config/syntax/json-edits.js';

const TEXT = `{
    "time_step_limit": [0.0, Infinity],
    "eps": 1e-05, "theta": 10000.0,
    "text_config": {
        "dtype": "float32",
        "é\\u00e9\\/": -0.0
    },
    "none": {}
}
`;

const edited = (path: string[], value: unknown) => editedJson(TEXT, [{ path, value }]);

describe('an edited JSON text', () => {
  it.each([
    [['theta'], 500, '10000.0', '500'],
    [['theta'], 10_000, '', ''],
    [['time_step_limit'], [0, Number.POSITIVE_INFINITY], '', ''],
    [['time_step_limit'], [0, 5], 'Infinity', '5'],
    [['time_step_limit'], null, '[0.0, Infinity]', 'null'],
    [['eps'], Number.NaN, '1e-05', 'NaN'],
    [['text_config', 'dtype'], 'bfloat16', 'float32', 'bfloat16'],
    [['text_config', 'tie'], true, '{\n        "d', '{\n        "tie": true,\n        "d'],
    [['none', 'a'], [1], '{}', '{"a": [1]}'],
    [['none', 'a', 'b'], 1, '{}', '{"a": {"b":1}}'],
    [['eps'], undefined, '"eps": 1e-05, ', ''],
    [['none'], undefined, ',\n    "none": {}', ''],
    [['text_config', 'missing', 'deep'], undefined, '', ''],
  ] as const)('%j: %j', (path, value, from, to) => {
    expect(edited([...path], value)).toBe(TEXT.replace(from, to));
  });

  it('keeps its line breaks', () => {
    const text = '{\r\n  "a": 1,\r\n  "b": {"c": 2}\r\n}\r\n';
    const value = { c: 2, d: 3 };
    expect(editedJson(text, [{ path: ['b'], value }])).toBe(
      '{\r\n  "a": 1,\r\n  "b": {\r\n    "c": 2,\r\n    "d": 3\r\n  }\r\n}\r\n',
    );
  });

  it('adds a key last where this is asked for, on one line too', () => {
    const edits = [{ path: ['q'], value: { bits: 4 } }];
    expect(editedJson('{"a": 1}', edits, 'last')).toBe('{"a": 1, "q": {"bits":4}}');
    expect(editedJson('{}', edits, 'last')).toBe('{"q": {"bits":4}}');
  });

  it('has the value that is written, and every other value', () => {
    const keys = fc.constantFrom('a', 'b', '"', '\\', '__proto__');
    const data = fc.dictionary(keys, fc.oneof(fc.integer(), fc.string(), fc.object()));
    fc.assert(
      fc.property(
        data,
        keys,
        fc.jsonValue(),
        fc.constantFrom(0, 2),
        (before, key, value, indent) => {
          const text = editedJson(JSON.stringify(before, null, indent), [{ path: [key], value }]);
          const wanted = Object.entries(before).filter(([name]) => name !== key);
          const { [key]: own, ...others } = parseJson(text) as Record<string, unknown>;
          expect(JSON.stringify(own)).toBe(JSON.stringify(value));
          expect(JSON.stringify(others)).toBe(JSON.stringify(Object.fromEntries(wanted)));
        },
      ),
    );
  });
});
