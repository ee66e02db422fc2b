import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  allowedBelow,
  boundaryRules,
  findViolations,
  parseBoundaries,
} from './boundaries/rules.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const tsConfig = path.join(root, 'tsconfig.json');
const document = await readFile(path.join(root, 'docs/architecture.md'), 'utf8');
const contributing = await readFile(path.join(root, 'CONTRIBUTING.md'), 'utf8');
const boundaries = parseBoundaries(document);
const rooms = boundaries.order.flat();
const rules = boundaryRules(boundaries);

describe('src', () => {
  test('follows the table "Who may import whom"', { timeout: 300_000 }, async () => {
    const { modules, violations } = await findViolations(root, rules, tsConfig);
    // With an unsupported TypeScript, dependency-cruiser reads no module and finds nothing.
    expect(modules.length).toBeGreaterThan(10);
    expect(violations).toEqual([]);
  });

  test('has the rooms of the order, and the two entries of the library', async () => {
    const present = await readdir(path.join(root, 'src'));
    expect(present.sort()).toEqual([...rooms, 'browser.ts', 'index.ts'].sort());
  });

  test('has a README.md of one line in each folder', async () => {
    const entries = await readdir(path.join(root, 'src'), { recursive: true, withFileTypes: true });
    const folders = entries.filter((entry) => entry.isDirectory());
    const lines = await Promise.all(
      folders.map(async (folder) => {
        const name = path.join(folder.parentPath, folder.name);
        const text = await readFile(path.join(name, 'README.md'), 'utf8').catch(() => 'missing');
        return [path.relative(root, name), /^[A-Z`][^\n]+\.\n$/.test(text) ? 'one line' : text];
      }),
    );
    expect(folders.length).toBeGreaterThan(rooms.length);
    expect(lines.filter(([, found]) => found !== 'one line')).toEqual([]);
  });

  test('has docstrings that begin with a noun or a verb, not with a fragment', async () => {
    const names = await readdir(path.join(root, 'src'), { recursive: true });
    const found = await Promise.all(
      names
        .filter((name) => /\.tsx?$/.test(name))
        .map(async (name) => {
          const text = await readFile(path.join(root, 'src', name), 'utf8');
          const beginnings = text.matchAll(/\/\*\*[\s*]*(?:Of|That|What)\b[^\n]*/g);
          return [...beginnings].map(([beginning]) => `${name}: ${beginning}`);
        }),
    );
    expect(found.length).toBeGreaterThan(100);
    expect(found.flat()).toEqual([]);
  });

  test('has a description of each room, in the order', () => {
    const [described = ''] = document.split('## Who may import whom');
    const inProse = [...described.matchAll(/^\*\*`([^`]+?)\/`\*\*/gm)].map(([, name]) => name);
    expect(inProse).toEqual(rooms);
    // A new room changes the number in both texts.
    expect(rooms).toHaveLength(16);
    expect(described).toContain('Sixteen rooms');
    expect(contributing).toContain('sixteen rooms');
  });

  test('has each folder and file that the rules name', async () => {
    const { exceptions, packages, withoutNode } = boundaries;
    const named = [
      ...exceptions.flatMap(({ who, imports, except }) => [who, ...imports, ...except]),
      ...[...packages.values()].flat(),
      ...withoutNode,
    ];
    const missing = [...new Set(named)].filter((name) => !existsSync(path.join(root, 'src', name)));
    expect(missing).toEqual([]);
  });

  test('names each dependency of package.json, and otherwise only bundled packages', async () => {
    const manifest = JSON.parse(await readFile(path.join(root, 'package.json'), 'utf8'));
    const named = [...boundaries.packages.keys()];
    const { dependencies, devDependencies, peerDependencies } = manifest;
    const installed = { ...dependencies, ...peerDependencies };
    const bundled = named.filter((name) => name in devDependencies && !(name in installed));
    expect(named.sort()).toEqual([...Object.keys(installed), ...bundled].sort());
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
      "import { bytes } from '../../base/tensor/dtype.js'; export const param = bytes; export type Param = 1;",
    'src/report/table.ts':
      "import Table from 'cli-table3'; import type { Param } from '../model/architecture/param.js'; export const text = (p: Param) => [Table, p];",
    'src/engine/devices.ts': 'export const device = 1; export type Device = 1;',
    'src/commands/count.ts':
      "import { param } from '../model/architecture/param.js'; import type { Device } from '../engine/devices.js'; export const run = async (d: Device) => [(await import('../engine/devices.js')).device, param, d];",
    'src/checkpoint/open.ts': "import { code } from '../base/errors.js'; export const open = code;",
    'src/checkpoint/reconcile/reconcile.ts':
      "import { param } from '../../model/architecture/param.js'; import { open } from '../open.js'; export const faults = [param, open];",
    'src/index.ts': "export { param } from './model/architecture/param.js';",
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
    expect(modules).toHaveLength(9);
    expect(violations).toEqual([]);
  });

  const plants: Record<string, { rule: string; file: string; text: string; to: string }> = {
    'of a room above': {
      rule: 'base-imports',
      file: 'src/base/tensor/shape.ts',
      text: "import { param } from '../../model/architecture/param.js'; export const shape = param;",
      to: 'src/model/architecture/param.ts',
    },
    'of a type from a room above': {
      rule: 'base-imports',
      file: 'src/base/tensor/shape.ts',
      text: "import type { Param } from '../../model/architecture/param.js'; export type Shape = Param;",
      to: 'src/model/architecture/param.ts',
    },
    'by export … from': {
      rule: 'base-imports',
      file: 'src/base/tensor/shape.ts',
      text: "export * from '../../model/architecture/param.js';",
      to: 'src/model/architecture/param.ts',
    },
    'by import() of a room above': {
      rule: 'base-imports',
      file: 'src/base/tensor/shape.ts',
      text: "export const shape = () => import('../../model/architecture/param.js');",
      to: 'src/model/architecture/param.ts',
    },
    'from base/errors.ts, which is below all rooms': {
      rule: 'base-imports',
      file: 'src/base/errors.ts',
      text: "import type { Device } from '../engine/devices.js'; export const code: Device = 1;",
      to: 'src/engine/devices.ts',
    },
    'of a package of another folder': {
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
      rule: 'base/tensor-node-modules',
      file: 'src/base/tensor/shape.ts',
      text: "import fs from 'node:fs'; export const shape = fs;",
      to: 'fs',
    },
    'of a node: module without the prefix in a folder without Node': {
      rule: 'model-node-modules',
      file: 'src/model/architecture/layer.ts',
      text: "import { join } from 'path'; export const layer = join;",
      to: 'path',
    },
    'that is static instead of import()': {
      rule: 'commands-lazily',
      file: 'src/commands/verify.ts',
      text: "import { device } from '../engine/devices.js'; export const verify = device;",
      to: 'src/engine/devices.ts',
    },
    'of a value instead of a type': {
      rule: 'report-types-only',
      file: 'src/report/json.ts',
      text: "import { param } from '../model/architecture/param.js'; export const json = param;",
      to: 'src/model/architecture/param.ts',
    },
    'of a type that still loads the module': {
      rule: 'loaded-for-types',
      file: 'src/report/json.ts',
      text: "import { type Param } from '../model/architecture/param.js'; export type Json = Param;",
      to: 'src/model/architecture/param.ts',
    },
    'of a value next to an import of a type': {
      rule: 'report-types-only',
      file: 'src/report/json.ts',
      text: "import type { Param } from '../model/architecture/param.js'; import { param } from '../model/architecture/param.js'; export const json: Param = param;",
      to: 'src/model/architecture/param.ts',
    },
    'of a type and a value together, where only types are allowed': {
      rule: 'report-types-only',
      file: 'src/report/json.ts',
      text: "import { type Param, param } from '../model/architecture/param.js'; export const json: Param = param;",
      to: 'src/model/architecture/param.ts',
    },
    'that is static next to an import of a type, where only import() is allowed': {
      rule: 'commands-lazily',
      file: 'src/commands/verify.ts',
      text: "import type { Device } from '../engine/devices.js'; import { device } from '../engine/devices.js'; export const verify: Device = device;",
      to: 'src/engine/devices.ts',
    },
    'of an engine from the devices': {
      rule: 'engine-lazily',
      file: 'src/engine/devices.ts',
      text: "import { run } from './onnx/engine.js'; export const device = run; export type Device = 1;",
      to: 'src/engine/onnx/engine.ts',
    },
    'of a room on the same level': {
      rule: 'model-imports',
      file: 'src/model/architecture/walk.ts',
      text: "import { open } from '../../checkpoint/open.js'; export const walk = open;",
      to: 'src/checkpoint/open.ts',
    },
    'of a description from the bytes of checkpoints': {
      rule: 'checkpoint-imports',
      file: 'src/checkpoint/view.ts',
      text: "import { param } from '../model/architecture/param.js'; export const view = param;",
      to: 'src/model/architecture/param.ts',
    },
    'from the library of a room that it may not know': {
      rule: 'index.ts-imports',
      file: 'src/index.ts',
      text: "export { open } from './checkpoint/open.js';",
      to: 'src/checkpoint/open.ts',
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
      text: "import { outside } from '../../../outside.js'; export const shape = outside;",
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
    expect(violations[0]?.from).toMatch(/^src\/base\/tensor\/[ab]\.ts$/);
  });

  test('finds a cycle of types', async () => {
    const { violations } = await violationsWith({
      'src/base/tensor/a.ts': "import type { B } from './b.js'; export type A = B[];",
      'src/base/tensor/b.ts': "import type { A } from './a.js'; export type B = { a: A };",
    });
    expect(new Set(violations.map(({ rule }) => rule))).toEqual(new Set(['no-cycles']));
  });
});

describe('allowedBelow', () => {
  test('is what comes after a level', () => {
    const order = [['a'], ['b', 'c'], ['d']];
    expect(allowedBelow({ order }, 'a')).toEqual(['b', 'c', 'd']);
    expect(allowedBelow({ order }, 'c')).toEqual(['d']);
    expect(() => allowedBelow({ order }, 'e')).toThrow('e is not in the order');
  });
});

describe('parseBoundaries', () => {
  const page = ({
    heading = '## Who may import whom',
    order = 'a > b, c > d',
    columns = '| who | imports | how | except | why |',
    rows = ['| `a` | `b` | lazily | — | it is heavy |'],
    packages = ['| `zod` | `a`, `b/c` |'],
    node = 'No `node:` modules in `b`,\n`c/d.ts`',
  } = {}) =>
    [
      ...[heading, '', '```', order, '```', ''],
      ...[columns, '|---|---|---|---|---|', ...rows, ''],
      ...['| package | named only by |', '|---|---|', ...packages, '', node, '', '## Next', ''],
    ].join('\n');

  test('reads the order, the rows, the packages and the rooms without Node', () => {
    expect(parseBoundaries(page())).toEqual({
      order: [['a'], ['b', 'c'], ['d']],
      exceptions: [{ who: 'a', imports: ['b'], how: 'lazily', except: [] }],
      packages: new Map([['zod', ['a', 'b/c']]]),
      withoutNode: ['b', 'c/d.ts'],
    });
  });

  test.each([
    ['another heading', { heading: '## Imports' }, 'no heading'],
    ['no order', { order: 'a, > b' }, 'no order of rooms'],
    ['a room twice', { order: 'a > b > a' }, 'a twice in the order'],
    ['other columns', { columns: '| who | imports | how | except |' }, 'no table with the columns'],
    ['a cell too few', { rows: ['| `a` | `b` | lazily | — |'] }, 'not 5 cells'],
    ['an unknown manner', { rows: ['| `a` | `b` | often | — | why |'] }, 'found often'],
    ['a row without a reason', { rows: ['| `a` | `b` | also | — | — |'] }, 'no reason'],
    ['names without code marks', { rows: ['| `a` | b | also | — | why |'] }, 'found b'],
    ['two names of who', { rows: ['| `a`, `b` | `c` | also | — | why |'] }, 'expected one name'],
    ['two packages in a row', { packages: ['| `zod`, `yaml` | `a` |'] }, 'expected one name'],
    ['no line about Node', { node: 'All may use `node:` modules' }, 'no line about'],
  ])('refuses %s', (_, change, message) => {
    expect(() => parseBoundaries(page(change))).toThrow(message);
  });
});
