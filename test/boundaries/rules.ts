/**
 * The table "Who may import whom" of docs/architecture.md, read and turned into rules for
 * dependency-cruiser.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  cruise,
  type IFlattenedRuleSet,
  type IForbiddenRuleType,
  type IModule,
  type IRegularForbiddenRuleType,
} from 'dependency-cruiser';
import extractTsConfig from 'dependency-cruiser/config-utl/extract-ts-config';

type ToRestriction = IRegularForbiddenRuleType['to'];

/** A row of the table: a folder or file of `src`, and what it may name. */
export interface Row {
  /** `config`, `runtime/onnx`, `errors.ts`. */
  readonly name: string;
  /** It has a rule but no code yet. */
  readonly planned: boolean;
  /** Every row may import it. */
  readonly openToAll: boolean;
  /** Rows that it may import in any way. */
  readonly imports: readonly string[];
  /** Rows of which it may import the types only. */
  readonly types: readonly string[];
  /** Rows that it may load by `import()` only. */
  readonly lazy: readonly string[];
  /** Packages that only the rows that list them may name. */
  readonly packages: readonly string[];
  readonly nodeModules: boolean;
}

const HEADING = /^## Who may import whom$/m;
const COLUMNS = [
  'folder',
  'may import',
  'may import lazily',
  'packages that only it may name',
  '`node:` modules',
];

/** Reads the table. Throws at anything it does not understand: a rule misread is a rule lost. */
export function parseBoundaries(markdown: string): Row[] {
  const section = markdown.split(HEADING)[1];
  if (section === undefined) throw new Error('no heading "Who may import whom"');
  const [header, , ...body] = tableLines(section).map(cells);
  if (header?.join('|') !== COLUMNS.join('|')) {
    throw new Error(`expected the columns ${COLUMNS.join(' | ')}; got ${header?.join(' | ')}`);
  }
  const names = body.map(([first = '']) => nameOf(first).name);
  for (const name of names) {
    if (names.indexOf(name) !== names.lastIndexOf(name)) throw new Error(`two rows for ${name}`);
  }
  return body.map((row) => parseRow(row, names));
}

/** The lines of the first table in `text`. */
function tableLines(text: string): string[] {
  const lines = text.split('\n');
  const start = lines.findIndex((line) => line.startsWith('|'));
  if (start === -1) throw new Error('no table under "Who may import whom"');
  const end = lines.findIndex((line, i) => i > start && !line.startsWith('|'));
  return lines.slice(start, end === -1 ? undefined : end);
}

function cells(line: string): string[] {
  return line
    .replace(/^\||\|\s*$/g, '')
    .split('|')
    .map((cell) => cell.trim());
}

function nameOf(cell: string): { name: string; mark: string | undefined } {
  const match = /^`([\w./-]+)`(?: \((planned|open to all)\))?$/.exec(cell);
  if (match?.[1] === undefined) throw new Error(`not the name of a folder or file: ${cell}`);
  return { name: match[1], mark: match[2] };
}

function parseRow(row: readonly string[], names: readonly string[]): Row {
  if (row.length !== COLUMNS.length)
    throw new Error(`not ${COLUMNS.length} cells: ${row.join('|')}`);
  const [first = '', mayImport = '', lazily = '', packages = '', nodeModules = ''] = row;
  const { name, mark } = nameOf(first);
  const folders = names.filter((other) => !other.includes('/') && !other.includes('.'));

  /** The rows that an item of a cell means; "all folders" leaves out folders listed in another way. */
  const rowsMeant = (item: string, except: readonly string[]): string[] => {
    if (item === 'all folders') {
      return folders.filter((folder) => folder !== name && !except.includes(folder));
    }
    const [, meant] = /^`([^`]+)`$/.exec(item) ?? [];
    if (meant === undefined || !names.includes(meant)) {
      throw new Error(`the row of ${name} names ${item}, which has no row`);
    }
    return [meant];
  };

  const lazy = items(lazily).flatMap((item) => rowsMeant(item, []));
  const [ofTypes, ofValues] = partition(items(mayImport), (item) => item.startsWith('types of '));
  const imports = ofValues.flatMap((item) => rowsMeant(item, lazy));
  const types = ofTypes.flatMap((item) =>
    rowsMeant(item.slice('types of '.length), [...lazy, ...imports]),
  );
  const all = [...imports, ...types, ...lazy];
  if (new Set(all).size !== all.length) throw new Error(`the row of ${name} names one row twice`);
  if (nodeModules !== 'yes' && nodeModules !== 'no') {
    throw new Error(`the row of ${name} says neither yes nor no to node: modules`);
  }
  return {
    name,
    planned: mark === 'planned',
    openToAll: mark === 'open to all',
    imports,
    types,
    lazy,
    packages: items(packages).map((item) => {
      const [, named] = /^`([^`]+)`$/.exec(item) ?? [];
      if (named === undefined) throw new Error(`the row of ${name} names no package by ${item}`);
      return named;
    }),
    nodeModules: nodeModules === 'yes',
  };
}

function items(cell: string): string[] {
  return cell === '—' ? [] : cell.split(',').map((item) => item.trim());
}

function partition<T>(values: readonly T[], test: (value: T) => boolean): [T[], T[]] {
  return [values.filter(test), values.filter((value) => !test(value))];
}

/** The rules of the table and the general rules. */
export function boundaryRules(rows: readonly Row[]): IFlattenedRuleSet {
  const packages = [...new Set(rows.flatMap((row) => row.packages))];
  return {
    forbidden: [
      ...rows.flatMap((row) => rulesOfRow(row, rows)),
      ...packages.map((name) =>
        forbid(
          `package-${name}`,
          {
            path: '^src/',
            pathNot: rows.filter((row) => row.packages.includes(name)).map(pathOf(rows)),
          },
          { path: packagePath(name) },
        ),
      ),
      forbid(
        'packages-in-the-table',
        { path: '^src/' },
        { path: '(^|/)node_modules/', pathNot: packages.map(packagePath) },
      ),
      forbid('no-cycles', {}, { circular: true }),
      forbid('resolvable', {}, { couldNotResolve: true }),
      forbid(
        'stays-in-src',
        { path: '^src/' },
        { dependencyTypes: ['local'], pathNot: ['^src/', '(^|/)node_modules/'] },
      ),
    ],
  };
}

function rulesOfRow(row: Row, rows: readonly Row[]): IForbiddenRuleType[] {
  const path = pathOf(rows);
  const named = (names: readonly string[]): string[] =>
    rows.filter((other) => names.includes(other.name)).map(path);
  const open = rows.filter((other) => other.openToAll).map((other) => other.name);
  const allowed = [row.name, ...open, ...row.imports, ...row.types, ...row.lazy];

  const rule = (kind: string, to: ToRestriction): IForbiddenRuleType =>
    forbid(`${row.name}-${kind}`, { path: path(row) }, to);
  const rules = [rule('imports', { path: '^src/', pathNot: named(allowed) })];
  if (row.types.length > 0) {
    rules.push(rule('types-only', { path: named(row.types), dependencyTypesNot: ['type-only'] }));
  }
  if (row.lazy.length > 0) {
    rules.push(
      rule('lazily', {
        path: named(row.lazy),
        dependencyTypesNot: ['type-only'],
        dynamic: false,
      }),
    );
  }
  if (!row.nodeModules) rules.push(rule('node-modules', { dependencyTypes: ['core'] }));
  return rules;
}

function forbid(
  name: string,
  from: { path?: string; pathNot?: string[] },
  to: ToRestriction,
): IForbiddenRuleType {
  return { name, severity: 'error', from, to };
}

/** The pattern of a row's files: those of its folder, without the folders and files that have their own row. */
function pathOf(rows: readonly Row[]): (row: Row) => string {
  return ({ name }) => {
    if (name.includes('.')) return `^src/${escaped(name)}$`;
    const within = rows
      .filter((other) => other.name.startsWith(`${name}/`))
      .map(
        (other) =>
          `${escaped(other.name.slice(name.length + 1))}${other.name.includes('.') ? '$' : '/'}`,
      );
    return `^src/${escaped(name)}/${within.length > 0 ? `(?!${within.join('|')})` : ''}`;
  };
}

function packagePath(name: string): string {
  return `(^|/)node_modules/${escaped(name)}/`;
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}

/** An import that breaks a rule. */
export interface Violation {
  readonly rule: string;
  readonly from: string;
  readonly to: string;
}

/**
 * Imports and exports whose braces have only types. dependency-cruiser takes them for `import type`, but the compiled
 * module still loads the other one.
 */
const LOADED_FOR_TYPES =
  /^[ \t]*(?:import|export)\s*\{(?:\s*type\s+[\w$]+(?:\s+as\s+[\w$]+)?\s*,?)*\s*\}\s*from\s*['"]([^'"]+)/gm;

/** Checks all of `src` in `folder`. Returns the modules it saw and the imports that break the rules. */
export async function findViolations(
  folder: string,
  ruleSet: IFlattenedRuleSet,
  tsConfigFile: string,
): Promise<{ modules: string[]; violations: Violation[] }> {
  const { output } = await cruise(
    ['src'],
    {
      baseDir: folder,
      validate: true,
      ruleSet,
      // With 'specify', it compiles each module to see which imports remain, which takes four times as long.
      tsPreCompilationDeps: true,
      detectProcessBuiltinModuleCalls: true,
      doNotFollow: { path: '(^|/)node_modules/' },
      enhancedResolveOptions: {
        exportsFields: ['exports'],
        conditionNames: ['import', 'types', 'node', 'default'],
        // It tries each of them on every import before it looks for the `.ts` of a `.js`: by default, over ten.
        extensions: ['.ts', '.js'],
        // Milliseconds: longer than a run, or it asks for the same folders again.
        cachedInputFileSystem: { cacheDuration: 60_000 },
      },
    },
    {},
    { tsConfig: extractTsConfig(tsConfigFile) },
  );
  if (typeof output === 'string') throw new Error('dependency-cruiser gave text, not a result');
  const modules = output.modules.filter(({ source }) => source.startsWith('src/'));
  return {
    modules: modules.map(({ source }) => source),
    violations: [
      ...output.summary.violations.map(({ rule, from, to }) => ({ rule: rule.name, from, to })),
      ...modules.flatMap((module) => loadedForTypes(folder, module)),
    ],
  };
}

function loadedForTypes(folder: string, { source, dependencies }: IModule): Violation[] {
  const text = readFileSync(join(folder, source), 'utf8');
  const named = new Set([...text.matchAll(LOADED_FOR_TYPES)].map(([, module]) => module));
  return dependencies
    .filter(
      ({ module, dependencyTypes }) => dependencyTypes.includes('type-only') && named.has(module),
    )
    .map(({ resolved }) => ({ rule: 'loaded-for-types', from: source, to: resolved }));
}
