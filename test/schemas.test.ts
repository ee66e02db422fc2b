import fs from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { inPackage } from './fixtures.js';

interface Docstring {
  readonly description: string;
  readonly tags: Readonly<Record<string, string>>;
}

/** scripts/schemas.js, which has no types. */
interface Script {
  readonly Generator: new () => { schemas(): Map<string, Record<string, unknown>> };
  readonly outdated: (schemas: Map<string, unknown>) => string[];
  readonly parseDocstring: (comment: string) => Docstring;
}

let script: Script;
beforeAll(async () => {
  script = await import(inPackage('scripts/schemas.js'));
}, 120_000);

describe('the JSON Schemas of answers', { timeout: 240_000 }, () => {
  it('are those of the types of the results, every field with its description', () => {
    const schemas = new script.Generator().schemas();
    expect(schemas.size).toBeGreaterThan(30);
    // npm run docs:schemas writes the files.
    expect(script.outdated(schemas)).toEqual([]);
    const edited = new Map(schemas).set('rope.schema.json', { title: 'another' });
    expect(script.outdated(edited)).toEqual(['rope.schema.json']);
    edited.delete('init.schema.json');
    expect(script.outdated(edited)).toEqual(['init.schema.json', 'rope.schema.json']);
  });

  it('have an id with the name of their file, also those of files of the user', () => {
    for (const name of fs.readdirSync(inPackage('docs/schemas'))) {
      const { $id } = JSON.parse(fs.readFileSync(inPackage('docs/schemas', name), 'utf8'));
      expect(String($id).split('/').at(-1)).toBe(name);
    }
  });

  it('have a name of the version in their first field', () => {
    const names = fs.readdirSync(inPackage('docs/schemas'));
    for (const name of names.filter((each) => !/^(config[-.]|hardware\.)/.test(each))) {
      const text = fs.readFileSync(inPackage('docs/schemas', name), 'utf8');
      expect(text).toContain(`"const": "minimind/${name.replace('.schema.json', '')}@1"`);
    }
  });
});

describe('a docstring', () => {
  it.each<[string, Docstring]>([
    ['/** Tokens. */', { description: 'Tokens.', tags: {} }],
    ['/** Tokens. @count */', { description: 'Tokens.', tags: { count: '' } }],
    [
      '/**\n * Tokens of a\n * text.\n * @integer @minimum 1\n */',
      { description: 'Tokens of a text.', tags: { integer: '', minimum: '1' } },
    ],
    [
      '/** Hash. @pattern ^[0-9a-f]{64}$ */',
      { description: 'Hash.', tags: { pattern: '^[0-9a-f]{64}$' } },
    ],
    ['/** Mail a@b.c. @returns It. */', { description: 'Mail a@b.c.', tags: {} }],
  ])('%j', (comment, expected) => expect(script.parseDocstring(comment)).toEqual(expected));
});
