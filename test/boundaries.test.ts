import { mkdir, mkdtemp, readdir, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { boundaryRules, findViolations, parseBoundaries } from './boundaries/rules.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const tsConfig = path.join(root, 'tsconfig.json');
const document = await readFile(path.join(root, 'docs/architecture.md'), 'utf8');
const rows = parseBoundaries(document);
const rules = boundaryRules(rows);

describe('src', () => {
  test('follows the table "Who may import whom"', { timeout: 300_000 }, async () => {
    const { modules, violations } = await findViolations(root, rules, tsConfig);
    // With an unsupported TypeScript, dependency-cruiser reads no module and finds nothing.
    expect(modules.length).toBeGreaterThan(10);
    expect(violations).toEqual([]);
  });

  test('has a row for each of its folders and files', async () => {
    const present = await readdir(path.join(root, 'src'));
    const named = rows.filter(({ name, planned }) => !name.includes('/') && !planned);
    expect(present.sort()).toEqual(named.map(({ name }) => name).sort());
  });

  test('has a row for each described folder, and a description for each row', () => {
    const [described = ''] = document.split('## Who may import whom');
    const inProse = [...described.matchAll(/^\*\*`([^`]+?)\/?`\*\*/gm)].map(([, name]) => name);
    const present = rows.filter(({ planned }) => !planned).map(({ name }) => name);
    expect(inProse.sort()).toEqual(present.sort());
  });

  test('has a row for each dependency of package.json, and otherwise only bundled packages', async () => {
    const manifest = JSON.parse(await readFile(path.join(root, 'package.json'), 'utf8'));
    const named = new Set(rows.flatMap(({ packages }) => packages));
    const { dependencies, devDependencies, optionalDependencies, peerDependencies } = manifest;
    const installed = { ...dependencies, ...optionalDependencies, ...peerDependencies };
    const bundled = [...named].filter((name) => name in devDependencies);
    expect([...named].sort()).toEqual([...Object.keys(installed), ...bundled].sort());
  });
});

describe('findViolations', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(path.join(await realpath(tmpdir()), 'minimind-boundaries-'));
  });
  afterEach(async () => {
    await rm(folder, { recursive: true, force: true });
  });

  /** Files of a package that follows the table. */
  const validFiles = {
    'src/base/errors.ts': 'export const code = 1;',
    'src/base/tensor/dtype.ts': "import { code } from '../errors.js'; export const bytes = code;",
    'src/model/architecture/param.ts':
      "import { bytes } from '../tensor/dtype.js'; export const param = bytes; export type Param = 1;",
    'src/report/table.ts':
      "import Table from 'cli-table3'; import type { Param } from '../architecture/param.js'; export const text = (p: Param) => [Table, p];",
    'src/engine/devices.ts': 'export const device = 1; export type Device = 1;',
    'src/commands/count.ts':
      "import { param } from '../architecture/param.js'; import type { Device } from '../runtime/devices.js'; export const run = async (d: Device) => [(await import('../runtime/devices.js')).device, param, d];",
    'node_modules/cli-table3/package.json': '{"name":"cli-table3","main":"index.js"}',
    'node_modules/cli-table3/index.js': 'module.exports = 1;',
    'node_modules/left-pad/package.json': '{"name":"left-pad","main":"index.js"}',
    'node_modules/left-pad/index.js': 'module.exports = 1;',
    'package.json': '{"name":"planted","type":"module"}',
    'outside.ts': 'export const outside = 1;',
  };

  const violationsWith = async (planted: Record<string, string>) => {
    for (const [file, text] of Object.entries({ ...validFiles, ...planted })) {
      await mkdir(path.dirname(path.join(folder, file)), { recursive: true });
      await writeFile(path.join(folder, file), `${text}\n`);
    }
    return findViolations(folder, rules, tsConfig);
  };

  test('finds nothing in a package that follows the table', async () => {
    const { modules, violations } = await violationsWith({});
    expect(modules).toHaveLength(6);
    expect(violations).toEqual([]);
  });

  const plants: Record<string, { rule: string; file: string; text: string; to: string }> = {
    'of a folder that the row does not name': {
      rule: 'tensor-imports',
      file: 'src/base/tensor/shape.ts',
      text: "import { param } from '../architecture/param.js'; export const shape = param;",
      to: 'src/model/architecture/param.ts',
    },
    'of a type from a folder that the row does not name': {
      rule: 'tensor-imports',
      file: 'src/base/tensor/shape.ts',
      text: "import type { Param } from '../architecture/param.js'; export type Shape = Param;",
      to: 'src/model/architecture/param.ts',
    },
    'by export … from': {
      rule: 'tensor-imports',
      file: 'src/base/tensor/shape.ts',
      text: "export * from '../architecture/param.js';",
      to: 'src/model/architecture/param.ts',
    },
    'by import() of a folder that the row does not name': {
      rule: 'tensor-imports',
      file: 'src/base/tensor/shape.ts',
      text: "export const shape = () => import('../architecture/param.js');",
      to: 'src/model/architecture/param.ts',
    },
    'from errors.ts, which imports nothing': {
      rule: 'errors.ts-imports',
      file: 'src/base/errors.ts',
      text: "import type { Device } from './runtime/devices.js'; export const code: Device = 1;",
      to: 'src/engine/devices.ts',
    },
    "of another row's package": {
      rule: 'package-cli-table3',
      file: 'src/commands/show.ts',
      text: "import Table from 'cli-table3'; export const show = Table;",
      to: 'node_modules/cli-table3/index.js',
    },
    'of a package that no row names': {
      rule: 'packages-in-the-table',
      file: 'src/commands/show.ts',
      text: "import pad from 'left-pad'; export const show = pad;",
      to: 'node_modules/left-pad/index.js',
    },
    'of a node: module in a folder without Node': {
      rule: 'tensor-node-modules',
      file: 'src/base/tensor/shape.ts',
      text: "import fs from 'node:fs'; export const shape = fs;",
      to: 'fs',
    },
    'of a node: module without the prefix in a folder without Node': {
      rule: 'architecture-node-modules',
      file: 'src/model/architecture/layer.ts',
      text: "import { join } from 'path'; export const layer = join;",
      to: 'path',
    },
    'that is static instead of import()': {
      rule: 'commands-lazily',
      file: 'src/commands/verify.ts',
      text: "import { device } from '../runtime/devices.js'; export const verify = device;",
      to: 'src/engine/devices.ts',
    },
    'of a value instead of a type': {
      rule: 'report-types-only',
      file: 'src/report/json.ts',
      text: "import { param } from '../architecture/param.js'; export const json = param;",
      to: 'src/model/architecture/param.ts',
    },
    'of a type that still loads the module': {
      rule: 'loaded-for-types',
      file: 'src/report/json.ts',
      text: "import { type Param } from '../architecture/param.js'; export type Json = Param;",
      to: 'src/model/architecture/param.ts',
    },
    'of a value next to an import of a type': {
      rule: 'report-types-only',
      file: 'src/report/json.ts',
      text: "import type { Param } from '../architecture/param.js'; import { param } from '../architecture/param.js'; export const json: Param = param;",
      to: 'src/model/architecture/param.ts',
    },
    'of a type and a value together, where only types are allowed': {
      rule: 'report-types-only',
      file: 'src/report/json.ts',
      text: "import { type Param, param } from '../architecture/param.js'; export const json: Param = param;",
      to: 'src/model/architecture/param.ts',
    },
    'that is static next to an import of a type, where only import() is allowed': {
      rule: 'commands-lazily',
      file: 'src/commands/verify.ts',
      text: "import type { Device } from '../runtime/devices.js'; import { device } from '../runtime/devices.js'; export const verify: Device = device;",
      to: 'src/engine/devices.ts',
    },
    'of an engine from the devices': {
      rule: 'runtime-lazily',
      file: 'src/engine/devices.ts',
      text: "import { run } from './onnx/engine.js'; export const device = run; export type Device = 1;",
      to: 'src/engine/onnx/engine.ts',
    },
    'of a missing file': {
      rule: 'resolvable',
      file: 'src/base/tensor/shape.ts',
      text: "import { gone } from './gone.js'; export const shape = gone;",
      to: './gone.js',
    },
    'of a file outside src': {
      rule: 'stays-in-src',
      file: 'src/base/tensor/shape.ts',
      text: "import { outside } from '../../outside.js'; export const shape = outside;",
      to: 'outside.ts',
    },
  };

  const engine = { 'src/engine/onnx/engine.ts': 'export const run = 1;' };
  const isChange = ({ file }: { file: string }) => file in validFiles;

  test.each(Object.entries(plants).filter(([, plant]) => isChange(plant)))(
    'finds an import %s',
    async (_, { rule, file, text, to }) => {
      const { violations } = await violationsWith({ ...engine, [file]: text });
      expect(violations).toEqual([{ rule, from: file, to }]);
    },
  );

  // In one package, because each reading of a package takes as long as that of all these files.
  test('finds each of the other imports', async () => {
    const planted = Object.entries(plants)
      .filter(([, plant]) => !isChange(plant))
      .map(([title, plant], index) => ({
        ...plant,
        file: plant.file.replace('.ts', `-${index}.ts`),
        text: `${plant.text} // an import ${title}`,
      }));
    const files = planted.map(({ file, text }) => [file, text]);
    const { violations } = await violationsWith({ ...engine, ...Object.fromEntries(files) });
    const inOrder = (found: readonly { from: string }[]) =>
      found.toSorted((a, b) => a.from.localeCompare(b.from));
    expect(inOrder(violations)).toEqual(
      inOrder(planted.map(({ rule, file, to }) => ({ rule, from: file, to }))),
    );
  });

  test('finds a cycle', async () => {
    const { violations } = await violationsWith({
      'src/base/tensor/a.ts': "import { b } from './b.js'; export const a = () => b;",
      'src/base/tensor/b.ts': "import { a } from './a.js'; export const b = () => a;",
    });
    expect(new Set(violations.map(({ rule }) => rule))).toEqual(new Set(['no-cycles']));
    expect(violations[0]?.from).toMatch(/^src\/tensor\/[ab]\.ts$/);
  });

  test('finds a cycle of types', async () => {
    const { violations } = await violationsWith({
      'src/base/tensor/a.ts': "import type { B } from './b.js'; export type A = B[];",
      'src/base/tensor/b.ts': "import type { A } from './a.js'; export type B = { a: A };",
    });
    expect(new Set(violations.map(({ rule }) => rule))).toEqual(new Set(['no-cycles']));
  });
});

describe('parseBoundaries', () => {
  const table = (...lines: string[]) =>
    [
      '## Who may import whom',
      '| folder | may import | may import lazily | packages that only it may name | `node:` modules |',
      '|---|---|---|---|---|',
      ...lines,
    ].join('\n');

  test.each([
    ['a folder without a row', ['| `a` | `b` | — | — | no |'], 'a names `b`, which has no row'],
    [
      'two rows for one folder',
      ['| `a` | — | — | — | no |', '| `a` | — | — | — | no |'],
      'two rows for a',
    ],
    [
      'one row named twice',
      ['| `a` | `b` | `b` | — | no |', '| `b` | — | — | — | no |'],
      'one row twice',
    ],
    ['a cell too few', ['| `a` | — | — | no |'], 'not 5 cells'],
    ['a cell that is neither yes nor no', ['| `a` | — | — | — | maybe |'], 'neither yes nor no'],
    ['a package without code marks', ['| `a` | — | — | zod | no |'], 'names no package by zod'],
    ['an unknown mark', ['| `a` (soon) | — | — | — | no |'], 'not the name of a folder'],
  ])('refuses %s', (_, lines, message) => {
    expect(() => parseBoundaries(table(...lines))).toThrow(message);
  });

  test('refuses other columns', () => {
    expect(() => parseBoundaries('## Who may import whom\n| a |\n|---|\n')).toThrow('columns');
  });
  test('refuses a page without the table or the heading', () => {
    expect(() => parseBoundaries('## Who may import whom\nanyone')).toThrow('no table');
    expect(() => parseBoundaries('# Something else')).toThrow('no heading');
  });
});
