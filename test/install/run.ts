/**
 * Installs the package as users do, each time with another Node and npm and an empty cache: for all projects, in a
 * project, and by npx. Runs the four commands of a new user without a network, then installs ONNX Runtime with the
 * command that `doctor` prints, and runs a quick test on it. Prints a table, and exits with 1 when something fails or npm
 * warns. Needs the registry of npm:
 *   npm run test:install [-- NODE:NPM…]
 */
import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { formatBytes } from '../../src/base/text/units.js';
import { inPackage, ROOT } from '../fixtures.js';

/** Versions of Node with the npm that comes with them, or a later one. */
const PAIRS = ['20.19:10', '22:10', '22:12', '24:11', '26:12'];

/** Commands of a new user, and a part of their first line. */
const COMMANDS: readonly (readonly [words: readonly string[], prints: RegExp])[] = [
  [['profile', 'minimind2-small'], /^minimind2-small .* 25\.8M parameters/],
  [['compare-srte', 'hybrid/original'], /^\S+/],
  [['convert-checkpoint', 'old.pt', 'new', '--to', 'shared'], /^Converted to new: /],
  [['quick-test', 'hybrid/tiny'], /^tiny: \d+ checks passed/],
];

/** Settings of npm by which this machine reaches the registry. */
const NETWORK = /^npm_config_(registry|cafile|(https?_)?proxy|noproxy)$/i;

const work = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), 'minimind-install-'));
const isWindows = process.platform === 'win32';
const problems: string[] = [];

interface Tools {
  readonly name: string;
  /** Folder of the program `node`. */
  readonly bin: string;
  /** Folder of npm's command line. */
  readonly npm: string;
}

/** Folder for one pair, removed after it. */
class Desk {
  readonly folder: string;
  readonly #tools: Tools;

  constructor(tools: Tools) {
    this.#tools = tools;
    this.folder = path.join(work, tools.name.replace(':', '-'));
    for (const name of ['project', 'elsewhere', 'prefix'])
      fs.mkdirSync(this.path(name), { recursive: true });
    fs.writeFileSync(this.path('project/package.json'), '{"name":"project","private":true}\n');
    fs.writeFileSync(this.path('npmrc'), '');
    const old = 'fixtures/old-checkpoint/trained-same-start';
    fs.copyFileSync(inPackage(old, 'checkpoint_step_30.pt'), this.path('elsewhere/old.pt'));
    fs.copyFileSync(inPackage(old, 'config.yaml'), this.path('elsewhere/config.yaml'));
  }

  path(name: string): string {
    return path.join(this.folder, name);
  }

  /** Runs a program as a user with nothing set would. */
  run(words: readonly string[], cwd: string, withNetwork = true): SpawnSyncReturns<string> {
    const own = Object.entries(process.env).filter(
      ([name]) => NETWORK.test(name) || !/^(npm_|NODE_(ENV|OPTIONS)$)/i.test(name),
    );
    const isolated = withNetwork || process.platform !== 'linux' ? [] : ['unshare', '-rn'];
    const [program = '', ...rest] = [...isolated, ...words];
    return spawnSync(program, rest, {
      cwd: this.path(cwd),
      encoding: 'utf8',
      maxBuffer: 1 << 28,
      shell: isWindows,
      env: {
        ...Object.fromEntries(own),
        PATH: `${this.#tools.bin}${path.delimiter}${process.env.PATH}`,
        XDG_CACHE_HOME: this.path('user-cache'),
        npm_config_cache: this.path('npm-cache'),
        npm_config_userconfig: this.path('npmrc'),
      },
    });
  }

  /** Runs npm or npx, and reports what it warns of. */
  npm(program: 'npm' | 'npx', words: readonly string[], cwd: string): SpawnSyncReturns<string> {
    const cli = path.join(this.#tools.npm, `${program}-cli.js`);
    const result = this.run(['node', cli, ...words], cwd);
    const what = `${program} ${words[0]} of npm ${this.#tools.name.split(':')[1]}`;
    const warnings = result.stderr.match(/^npm (warn|error).*$/gim) ?? [];
    expectThat(result.status === 0, `${what} ended with ${result.status}: ${result.stderr}`);
    expectThat(warnings.length === 0, `${what} warns: ${warnings.join(' · ')}`);
    return result;
  }

  /** Runs the command that minimind printed, with this npm. */
  typed(command: string, cwd: string): void {
    const [program, ...words] = command.split(' ');
    expectThat(program === 'npm', `expected a command of npm, found ${command}`);
    this.npm('npm', words, cwd);
  }
}

function expectThat(holds: boolean, problem: string): void {
  if (!holds) problems.push(problem);
}

/** Packages and bytes below a folder. */
function sizeOf(folder: string): { packages: number; bytes: number } {
  const entries = fs.readdirSync(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((each) => each.isFile());
  const bytes = files.reduce(
    (sum, each) => sum + fs.statSync(path.join(each.parentPath, each.name)).size,
    0,
  );
  const manifest = /node_modules[\\/](@[^\\/]+[\\/])?[^\\/]+$/;
  const packages = files.filter(
    (each) => each.name === 'package.json' && manifest.test(each.parentPath),
  ).length;
  return { packages, bytes };
}

const seconds = (since: number) => `${((performance.now() - since) / 1000).toFixed(1)} s`;

/** One row of the table. */
async function tryPair(tools: Tools, tarball: string): Promise<Record<string, string>> {
  const desk = new Desk(tools);
  const start = performance.now();
  const global = ['install', '--global', '--prefix', desk.path('prefix'), tarball];
  if (desk.npm('npm', global, 'elsewhere').status !== 0)
    return { 'Node, npm': exactVersions(tools) };
  const installed = seconds(start);
  const modules = desk.path(isWindows ? 'prefix/node_modules' : 'prefix/lib/node_modules');
  const { packages, bytes } = sizeOf(modules);
  const program = desk.path(isWindows ? 'prefix/minimind.cmd' : 'prefix/bin/minimind');

  const first = performance.now();
  const [profile, prints] = COMMANDS[0] ?? [[]];
  const answer = desk.run([program, ...profile], 'elsewhere', false);
  const firstAnswer = seconds(first);
  for (const [words, expected] of COMMANDS) {
    const { status, stdout, stderr } = desk.run([program, ...words], 'elsewhere', false);
    const isRight = status === 0 && expected.test(stdout);
    expectThat(isRight, `${tools.name}: ${words.join(' ')}: ${status} ${stdout}${stderr}`);
  }

  // From an empty cache to the first answer, byte for byte.
  fs.rmSync(desk.path('npm-cache'), { recursive: true, force: true });
  const npx = performance.now();
  const words = ['--yes', `--package=${tarball}`, 'minimind', ...profile];
  const once = desk.npm('npx', words, 'elsewhere');
  const npxAnswer = seconds(npx);
  expectThat(prints?.test(answer.stdout) === true, `${tools.name}: no profile`);
  expectThat(once.stdout === answer.stdout, `${tools.name}: npx changes the answer`);
  const others = once.stderr.replace(/^npm notice.*\n/gm, '');
  expectThat(others === '', `${tools.name}: npx prints ${others}`);

  desk.npm('npm', ['install', tarball], 'project');
  const kinds: readonly [name: string, words: readonly string[], cwd: string][] = [
    ['global', [program], 'elsewhere'],
    ['project', ['node', 'node_modules/minimind/bin/run.js'], 'project'],
    ['npx', ['node', path.join(npxFolder(desk), 'minimind/bin/run.js')], 'elsewhere'],
  ];
  for (const [kind, minimind, cwd] of kinds) {
    const [engine] = doctor(desk, minimind, cwd);
    expectThat(engine?.version === null, `${tools.name}: ${kind} finds an ONNX Runtime`);
    desk.typed(engine?.remedy ?? '', cwd);
    const [after] = doctor(desk, minimind, cwd);
    expectThat(after?.problem === null, `${tools.name}: ${kind}: ${after?.problem}`);
    const { status, stdout } = desk.run([...minimind, 'quick-test', 'hybrid/tiny'], cwd, false);
    const isFast = status === 0 && /^ +engine +ONNX Runtime /m.test(stdout);
    expectThat(
      isFast,
      `${tools.name}: ${kind}: quick-test does not run on ONNX Runtime: ${stdout}`,
    );
  }
  const withRuntime = sizeOf(modules);
  // npx still starts the same installation.
  const again = desk.npm('npx', words, 'elsewhere');
  expectThat(again.stdout === answer.stdout, `${tools.name}: npx changes its answer`);
  expectThat(
    fs.existsSync(path.join(npxFolder(desk), 'onnxruntime-node')),
    `${tools.name}: npx removes ONNX Runtime`,
  );
  fs.rmSync(desk.folder, { recursive: true, force: true });
  return {
    'Node, npm': exactVersions(tools),
    packages: String(packages),
    size: formatBytes(bytes),
    'npm install --global': installed,
    'first answer': firstAnswer,
    'npx, to the answer': npxAnswer,
    'with ONNX Runtime': `${withRuntime.packages} packages, ${formatBytes(withRuntime.bytes)}`,
  };
}

/** `node_modules` of the only installation by npx. */
function npxFolder(desk: Desk): string {
  const [name = ''] = fs.readdirSync(desk.path('npm-cache/_npx'));
  return path.join(desk.path('npm-cache/_npx'), name, 'node_modules');
}

interface EngineAnswer {
  readonly version: string | null;
  readonly problem: string | null;
  readonly remedy: string | null;
}

function doctor(desk: Desk, minimind: readonly string[], cwd: string): readonly EngineAnswer[] {
  const { stdout } = desk.run([...minimind, 'doctor', '--only', 'onnx:cpu', '--json'], cwd, false);
  return JSON.parse(stdout).engines;
}

function exactVersions({ bin, npm }: Tools): string {
  const { version } = JSON.parse(fs.readFileSync(path.join(npm, '../package.json'), 'utf8'));
  const { stdout } = spawnSync(path.join(bin, 'node'), ['--version'], { encoding: 'utf8' });
  return `${stdout.trim().slice(1)}, ${version}`;
}

/** Installs Node and npm with the npm of this machine. */
async function toolsOf(pair: string): Promise<Tools> {
  const { installNode, run } = await import(inPackage('scripts/node-binaries.js'));
  const [node, version] = pair.split(':');
  const home = path.join(work, `npm-${version}`);
  const words = ['install', '--no-audit', '--no-fund', '--loglevel=error', '--prefix', home];
  await run('npm', [...words, `npm@${version}`], { cwd: work, capture: true });
  return {
    name: pair,
    bin: await installNode(node, work),
    npm: path.join(home, 'node_modules/npm/bin'),
  };
}

function packed(): string {
  const words = ['pack', '--json', '--pack-destination', work];
  const { stdout, status, stderr } = spawnSync('npm', words, {
    cwd: ROOT,
    encoding: 'utf8',
    shell: isWindows,
  });
  if (status !== 0) throw new Error(stderr);
  const json = stdout.slice(stdout.search(/^\[$/m));
  return path.join(work, JSON.parse(json)[0].filename);
}

try {
  const tarball = packed();
  const asked = process.argv.slice(2);
  const rows: Record<string, string>[] = [];
  for (const pair of asked.length > 0 ? asked : PAIRS) {
    rows.push(await tryPair(await toolsOf(pair), tarball));
  }
  const names = Object.keys(rows[0] ?? {});
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  const table = [names, names.map(() => '---'), ...rows.map(Object.values)].map(line);
  process.stdout.write(`${table.join('\n')}\n`);
  process.stderr.write(problems.map((problem) => `${problem}\n`).join(''));
  process.exitCode = Number(problems.length > 0);
} finally {
  fs.rmSync(work, { recursive: true, force: true });
}
