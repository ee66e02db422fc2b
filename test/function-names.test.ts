/** Checks the names of functions at file level: each says what its own function gives, so few files share one. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import ts from 'typescript';
import { expect, test } from 'vitest';
import { inPackage } from './fixtures.js';

/** As many files can share a name, for functions of the same meaning, such as the two of both engines. */
const MOST_FILES = 3;

/** Functions at the level of a file, exported or not: declarations, and constants that are functions. */
const functionNames = (file: string, text: string): string[] =>
  ts
    .createSourceFile(file, text, ts.ScriptTarget.Latest)
    .statements.flatMap((statement): (ts.Node | undefined)[] => {
      if (ts.isFunctionDeclaration(statement)) return [statement.name];
      if (!ts.isVariableStatement(statement)) return [];
      return statement.declarationList.declarations
        .filter(({ initializer }) => initializer && isFunction(initializer))
        .map(({ name }) => name);
    })
    .flatMap((name) => (name && ts.isIdentifier(name) ? name.text : []));

const isFunction = (value: ts.Expression): boolean =>
  ts.isAsExpression(value) || ts.isSatisfiesExpression(value) || ts.isParenthesizedExpression(value)
    ? isFunction(value.expression)
    : ts.isArrowFunction(value) || ts.isFunctionExpression(value);

test('finds the functions at the level of a file', () => {
  const text = `
    export function shown(text: string): string;
    export function shown(text: string) { const inner = () => text; return inner(); }
    export async function* read() {}
    const [pair] = [() => 1], count = 3, total = sum(1), twice = <T>(each: T) => [each, each];
    export const sorted = ((a) => a) satisfies Sort;
    class Reader { next() {} }`;
  expect(functionNames('a.ts', text)).toEqual(['shown', 'shown', 'read', 'twice', 'sorted']);
});

test(`names functions at file level so that at most ${MOST_FILES} files share a name`, () => {
  const files = new Map<string, string[]>();
  for (const name of readdirSync(inPackage('src'), { recursive: true, encoding: 'utf8' })) {
    if (!/\.tsx?$/.test(name)) continue;
    const text = readFileSync(inPackage('src', name), 'utf8');
    for (const each of new Set(functionNames(name, text))) {
      files.set(each, [...(files.get(each) ?? []), name.replaceAll(path.sep, '/')]);
    }
  }
  expect(files.size).toBeGreaterThan(1000);
  expect([...files].filter(([, of]) => of.length > MOST_FILES)).toEqual([]);
});
