/** The section "Who may import whom" of docs/architecture.md, read and turned into rules for dependency-cruiser. */
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

/** How a row restricts or extends what the order allows. */
const MANNERS = ['also', 'only', 'types only', 'lazily'] as const;

/** A row of the table of exceptions. */
export interface Exception {
  /** A room, folder or file below `src`. */
  readonly who: string;
  /** Rooms, folders or files. */
  readonly imports: readonly string[];
  /**
   * `also`: in addition to the order. `only`: instead of it. `types only` and `lazily`: what the order allows, but only as
   * types or by `import()`.
   */
  readonly how: (typeof MANNERS)[number];
  /** Rooms, folders or files to which the row does not apply. */
  readonly except: readonly string[];
}

export interface Boundaries {
  /** Levels of rooms; those of one level do not import each other. */
  readonly order: readonly (readonly string[])[];
  readonly exceptions: readonly Exception[];
  /** Folders that may name a package. */
  readonly packages: ReadonlyMap<string, readonly string[]>;
  /** Rooms, folders and files without `node:` modules. */
  readonly withoutNode: readonly string[];
}

const HEADING = /^## Who may import whom$/m;
const ORDER = /^```\n([\w-]+(?:(?: >|,)\s[\w-]+)*)\n```$/m;
const WITHOUT_NODE = /^No `node:` modules in ((?:[^\n]+\n)+)/m;
const EXCEPTION_COLUMNS = ['who', 'imports', 'how', 'except', 'why'];
const PACKAGE_COLUMNS = ['package', 'named only by'];

/** Reads the section. Throws at anything it does not understand: a rule misread is a rule lost. */
export function parseBoundaries(markdown: string): Boundaries {
  const section = markdown.split(HEADING)[1]?.split(/^## /m)[0];
  if (section === undefined) throw new Error('no heading "Who may import whom"');
  const [, listed] = ORDER.exec(section) ?? [];
  if (listed === undefined) throw new Error('no order of rooms');
  const order = listed.split(/\s*>\s*/).map((level) => level.split(/,\s*/));
  const rooms = order.flat();
  for (const room of rooms) {
    if (rooms.indexOf(room) !== rooms.lastIndexOf(room))
      throw new Error(`${room} twice in the order`);
  }
  const [, nodeless] = WITHOUT_NODE.exec(section) ?? [];
  if (nodeless === undefined) throw new Error('no line about `node:` modules');
  const packages = rowsOf(section, PACKAGE_COLUMNS).map(
    ([name = '', folders = '']) => [only(namesIn(name), name), namesIn(folders)] as const,
  );
  return {
    order,
    exceptions: rowsOf(section, EXCEPTION_COLUMNS).map((row) => parseException(row, rooms)),
    packages: new Map(packages),
    withoutNode: [...nodeless.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name),
  };
}

function parseException(row: readonly string[], rooms: readonly string[]): Exception {
  const [who = '', imports = '', how = '', except = '', why = ''] = row;
  const manner = MANNERS.find((each) => each === how);
  if (manner === undefined) throw new Error(`expected ${MANNERS.join(', ')}, found ${how}`);
  if (why === '' || why === '—') throw new Error(`no reason for the row of ${who}`);
  const all = imports === 'all rooms';
  return {
    who: only(namesIn(who), who),
    imports: all ? rooms : namesIn(imports),
    how: manner,
    except: except === '—' ? [] : namesIn(except),
  };
}

/** Rows of the table with these columns. */
function rowsOf(section: string, columns: readonly string[]): string[][] {
  const lines = section.split('\n');
  const start = lines.findIndex(
    (line) => line.startsWith('|') && cells(line).join('|') === columns.join('|'),
  );
  if (start === -1) throw new Error(`no table with the columns ${columns.join(' | ')}`);
  const end = lines.findIndex((line, at) => at > start && !line.startsWith('|'));
  const rows = lines.slice(start + 2, end === -1 ? undefined : end).map(cells);
  for (const row of rows) {
    if (row.length !== columns.length)
      throw new Error(`not ${columns.length} cells: ${row.join('|')}`);
  }
  return rows;
}

const cells = (line: string): string[] =>
  line
    .replace(/^\||\|\s*$/g, '')
    .split('|')
    .map((cell) => cell.trim());

/** Names in code marks, separated by commas. */
function namesIn(cell: string): string[] {
  return cell.split(/,\s*/).map((item) => {
    const [, name] = /^`([\w@./-]+)`$/.exec(item) ?? [];
    if (name === undefined) throw new Error(`expected names in code marks, found ${item}`);
    return name;
  });
}

function only(names: readonly string[], cell: string): string {
  const [name, ...others] = names;
  if (name === undefined || others.length > 0) throw new Error(`expected one name, found ${cell}`);
  return name;
}

/** Rooms that a room may import, without itself. */
export function allowedBelow({ order }: Pick<Boundaries, 'order'>, room: string): string[] {
  const level = order.findIndex((rooms) => rooms.includes(room));
  if (level === -1) throw new Error(`${room} is not in the order`);
  return order.slice(level + 1).flat();
}

/** The rules of the section and the general rules. */
export function boundaryRules(boundaries: Boundaries): IFlattenedRuleSet {
  const { order, exceptions, packages, withoutNode } = boundaries;
  const named = [...packages.keys()];
  const extending = exceptions.filter(({ how }) => how === 'also' || how === 'only');
  return {
    forbidden: [
      ...order.flat().map((room) =>
        forbid(
          `${room}-imports`,
          {
            path: pathOf(room),
            pathNot: extending.filter(({ who }) => who !== room).map(({ who }) => pathOf(who)),
          },
          {
            path: '^src/',
            pathNot: [
              room,
              ...allowedBelow(boundaries, room),
              ...extending.filter(({ who }) => who === room).flatMap(({ imports }) => imports),
            ].map(pathOf),
          },
        ),
      ),
      ...exceptions.flatMap((exception) => rulesOf(exception, boundaries)),
      ...withoutNode.map((name) =>
        forbid(`${name}-node-modules`, { path: pathOf(name) }, { dependencyTypes: ['core'] }),
      ),
      ...Array.from(packages, ([name, folders]) =>
        forbid(
          `package-${name}`,
          { path: '^src/', pathNot: folders.map(pathOf) },
          { path: packagePath(name) },
        ),
      ),
      forbid(
        'packages-in-the-table',
        { path: '^src/' },
        { path: '(^|/)node_modules/', pathNot: named.map(packagePath) },
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

/** Rules of a row; a room with `also` has them in the rule of the order. */
function rulesOf(
  { who, imports, how, except }: Exception,
  boundaries: Boundaries,
): IForbiddenRuleType[] {
  const room = who.split('/')[0] ?? who;
  if (how === 'also' || how === 'only') {
    const isRoom = boundaries.order.flat().includes(who);
    if (isRoom && how === 'also') return [];
    const below = how === 'also' ? [room, ...allowedBelow(boundaries, room)] : [who];
    const allowed = [...below, ...imports].map(pathOf);
    return [forbid(`${who}-imports`, { path: pathOf(who) }, { path: '^src/', pathNot: allowed })];
  }
  const targets = imports.filter((name) => name !== who).map(pathOf);
  // A folder that is loaded lazily from the rest of its room may import itself.
  const inside = imports.filter((name) => name.startsWith(`${who}/`));
  const from = { path: pathOf(who), pathNot: inside.map(pathOf) };
  const to = {
    path: targets,
    pathNot: except.map(pathOf),
    dependencyTypesNot: ['type-only' as const],
  };
  return how === 'types only'
    ? [forbid(`${who}-types-only`, from, to)]
    : [forbid(`${who}-lazily`, from, { ...to, dynamic: false })];
}

function forbid(
  name: string,
  from: { path?: string; pathNot?: string[] },
  to: ToRestriction,
): IForbiddenRuleType {
  return { name, severity: 'error', from: withoutEmpty(from), to: withoutEmpty(to) };
}

/** An empty list of patterns would match every path. */
const withoutEmpty = <Part extends { pathNot?: string | string[] }>({ pathNot, ...part }: Part) =>
  pathNot === undefined || pathNot.length === 0 ? part : { ...part, pathNot };

/** The pattern of the files of a room or folder, or of a file. */
const pathOf = (name: string): string =>
  name.endsWith('.ts') ? `^src/${escaped(name)}$` : `^src/${escaped(name)}/`;

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
        extensions: ['.ts', '.tsx', '.js'],
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
