import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { checksFor } from '../src/check/checks.js';
import { parseBoundaries } from './boundaries/rules.js';
import { safetensorsFile } from './checkpoint/reconcile/files.js';
import { describeModel, SMALL, Workshop } from './checkpoint/reconcile/support.js';
import { commandNames, inPackage, ROOT } from './fixtures.js';
import { isWhole, sampled } from './sampled.js';

/** Installs the published package in an empty folder and uses it from there. */
const work = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), 'minimind-package-'));
const installed = (...parts: string[]) => path.join(work, 'node_modules/minimind', ...parts);
const COMMANDS = commandNames();
/** Checks of a quick test without flags that have a verdict: all but the time. */
const USUAL_CHECKS =
  checksFor({ isCrossChecked: false, isReduced: false, isQuantized: false }).length - 1;

interface RunOptions {
  readonly cwd?: string;
  readonly env?: Record<string, string>;
}

function run(
  program: string,
  args: readonly string[],
  { cwd = work, env = {} }: RunOptions = {},
): SpawnSyncReturns<string> {
  const own = Object.entries(process.env).filter(
    ([name]) => !/^(npm_(lifecycle|package|command|execpath|node_execpath)|NODE_ENV$)/.test(name),
  );
  return spawnSync(program, args, {
    cwd,
    encoding: 'utf8',
    env: { ...Object.fromEntries(own), XDG_CACHE_HOME: work, ...env },
    shell: process.platform === 'win32',
  });
}

function succeed(program: string, args: readonly string[], options?: RunOptions): string {
  const { status, stdout, stderr } = run(program, args, options);
  expect({ program, args, status, stderr: status === 0 ? '' : stderr }).toEqual({
    program,
    args,
    status: 0,
    stderr: '',
  });
  return stdout;
}

type Answer = Pick<SpawnSyncReturns<string>, 'status' | 'stdout' | 'stderr'>;

/** Runs several command lines of the installed program in one process, as if each were alone. */
function runInOneProcess(lines: readonly (readonly string[])[]): readonly Answer[] {
  const code = `
    import { pathToFileURL } from 'node:url';
    const root = pathToFileURL(${JSON.stringify(`${installed()}${path.sep}`)});
    const { runCommandLine } = await import(new URL('dist/cli/main.js', root).href);
    const { stdout, stderr } = process;
    const write = stdout.write.bind(stdout);
    const complain = stderr.write.bind(stderr);
    let running = '';
    process.on('exit', (code) => code !== 0 && complain('while it ran: ' + running));
    const answers = [];
    for (const line of ${JSON.stringify(lines)}) {
      const answer = { stdout: '', stderr: '' };
      for (const name of ['stdout', 'stderr']) {
        process[name].write = (text, ...rest) => {
          answer[name] += Buffer.from(text).toString();
          for (const callback of rest) if (typeof callback === 'function') callback();
          return true;
        };
      }
      process.exitCode = undefined;
      running = line.join(' ');
      await runCommandLine(line, root);
      answers.push({ ...answer, status: Number(process.exitCode ?? 0) });
    }
    process.exitCode = 0;
    write(JSON.stringify(answers));
  `;
  fs.writeFileSync(path.join(work, 'several.mjs'), code);
  return JSON.parse(succeed(process.execPath, ['several.mjs']));
}

const minimind = (args: readonly string[], env: Record<string, string> = {}) =>
  run(path.join('node_modules', '.bin', 'minimind'), args, { env });

const QUIETLY = ['--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error'];

let packed: readonly string[] = [];
let packedName = '';
let unpackedBytes = 0;

beforeAll(() => {
  // Without scripts: a build would remove dist while other tests use it.
  const pack = ['pack', '--json', '--ignore-scripts', '--pack-destination', work];
  const [{ filename, files, unpackedSize }] = JSON.parse(succeed('npm', pack, { cwd: ROOT }));
  packedName = filename;
  unpackedBytes = unpackedSize;
  packed = files.map((file: { path: string }) => file.path).sort();
  fs.writeFileSync(path.join(work, 'package.json'), '{"name":"empty","private":true}\n');
  succeed('npm', ['install', ...QUIETLY, `./${filename}`]);
}, 300_000);

afterAll(() => {
  fs.rmSync(work, { recursive: true, force: true });
}, 120_000);

describe('the package', () => {
  it('has the files that a user needs', () => {
    const presets = fs.readdirSync(inPackage('configs/hybrid'));
    const schemas = fs.readdirSync(inPackage('docs/schemas'));
    expect(packed).toEqual(
      expect.arrayContaining([
        'CHANGELOG.md',
        'LICENSE',
        'README.md',
        'bin/run.js',
        'dist/THIRD-PARTY-LICENSES.txt',
        'dist/sbom.cdx.json',
        'dist/cli/main.js',
        'dist/families.json',
        'dist/published.json',
        'dist/tfjs-backend-wasm-simd.wasm',
        'dist/index.d.ts',
        'dist/index.js',
        'dist/model/modules/index.d.ts',
        'dist/model/modules/index.js',
        'dist/base/random/index.d.ts',
        'dist/base/random/index.js',
        'oclif.manifest.json',
        'package.json',
        ...presets.map((file) => `configs/hybrid/${file}`),
        ...schemas.map((file) => `docs/schemas/${file}`),
        ...COMMANDS.map((name) => `dist/commands/${name.replace(' ', '/')}.js`),
      ]),
    );
  });

  it('has no other files', () => {
    // npm always includes READMEs in other languages.
    const expected = /^(configs\/|docs\/schemas\/|dist\/|README\.[\w-]+\.md$)/;
    const rest = packed.filter((file) => !expected.test(file));
    expect(rest).toEqual([
      'CHANGELOG.md',
      'LICENSE',
      'README.md',
      'bin/run.js',
      'oclif.manifest.json',
      'package.json',
    ]);
    expect(packed.filter((file) => /\.(map|test\.\w+|spec\.\w+)$|(^|\/)test\//.test(file))).toEqual(
      [],
    );
    // Only files that the build makes.
    const built = packed.filter((file) => file.startsWith('dist/'));
    expect(
      built.filter(
        (file) =>
          !/(\.js|\.d\.ts|LICENSES\.txt|sbom\.cdx\.json|^dist\/(?:families|published)\.json|man\/[\w-]+\.1|^dist\/(?:tfjs-backend-wasm-simd|jq)\.wasm|^dist\/explorer\.html)$/.test(
            file,
          ),
      ),
    ).toEqual([]);
    expect(built.filter((file) => /^dist\/(cli|commands|explorer)\/.*\.d\.ts$/.test(file))).toEqual(
      [],
    );
  });

  const text = (...parts: string[]) => fs.readFileSync(installed(...parts), 'utf8');

  it('names the licences of bundled packages', () => {
    const { dependencies, devDependencies } = JSON.parse(text('package.json'));
    const versions = { ...devDependencies, ...dependencies };
    const { packages } = parseBoundaries(
      fs.readFileSync(inPackage('docs/architecture.md'), 'utf8'),
    );
    // Packages with native code stay apart, with their licences.
    const bundled = [...packages.keys()].filter(
      (name) => !/^(@tensorflow\/tfjs-node.*|onnxruntime-node|webgpu)$/.test(name),
    );
    expect(bundled.length).toBeGreaterThan(12);
    const licences = text('dist/THIRD-PARTY-LICENSES.txt');
    const parts = licences.split(`\n\n${'='.repeat(80)}\n\n`);
    for (const name of bundled) {
      const part = parts.find((each) => each.startsWith(`${name} ${versions[name]} (`)) ?? '';
      // The conditions, and who made it.
      expect({ name, part }).toEqual({ name, part: expect.stringMatching(/copyright|\(c\)/i) });
      expect(part.length).toBeGreaterThan(500);
    }
    const tensorflow = parts.find((each) => each.startsWith('@tensorflow/tfjs-core '));
    expect(tensorflow).toMatch(/Copyright \d+ Google .*Apache License/s);
  });

  it('is small, and brings one other package', () => {
    expect(unpackedBytes).toBeLessThan(20e6);
    const folder = path.join(work, 'node_modules');
    const entries = fs.readdirSync(folder, { recursive: true, withFileTypes: true });
    const bytes = entries
      .filter((each) => each.isFile())
      .reduce((sum, each) => sum + fs.statSync(path.join(each.parentPath, each.name)).size, 0);
    expect(bytes).toBeLessThan(27e6);
    const tree = JSON.parse(succeed('npm', ['query', '*', '--loglevel=error']));
    const names = tree.map(({ name }: { name: string }) => name);
    expect(names.toSorted()).toEqual(['empty', 'minimind', 'zod']);
  });

  it('has a bill of materials of installed and bundled packages', () => {
    interface Component {
      readonly 'bom-ref': string;
      readonly scope: string;
      readonly properties: readonly { readonly name: string }[];
    }
    const components: readonly Component[] = JSON.parse(text('dist/sbom.cdx.json')).components;
    const refs = (isIncluded: (component: Component) => boolean) =>
      components.filter(isIncluded).map((component) => component['bom-ref']);
    const licences = text('dist/THIRD-PARTY-LICENSES.txt');
    const bundled = [...licences.matchAll(/^={80}\n\n(\S+) (\S+) \(/gm)].map(
      ([, name, version]) => `${name}@${version}`,
    );
    const tree = JSON.parse(succeed('npm', ['query', '*', '--loglevel=error']));
    const present: string[] = tree
      .filter(({ name }: { name: string }) => name !== 'minimind' && name !== 'empty')
      .map(({ name, version }: { name: string; version: string }) => `${name}@${version}`);
    expect(refs(({ properties }) => properties.length > 0).sort()).toEqual(bundled.sort());
    // The registry may have a later version of a package than the one that was tested and is in the bill.
    const names = (packages: readonly string[]) =>
      [...new Set(packages.map((each) => each.replace(/@[^@]*$/, '')))].sort();
    expect(names(refs(({ scope }) => scope === 'required'))).toEqual(
      names([...present, ...bundled]),
    );
  });
});

describe('the installed program', () => {
  it('has help for each command', () => {
    const helps = runInOneProcess(COMMANDS.map((name) => [...name.split(' '), '--help']));
    for (const [index, name] of COMMANDS.entries()) {
      const { status, stdout, stderr } = helps[index] ?? expect.unreachable();
      expect({ name, status, stderr }).toEqual({ name, status: 0, stderr: '' });
      expect(stdout).toContain(`minimind ${name}`);
    }
  });

  beforeAll(async () => {
    const workshop = new Workshop();
    const tensors = workshop.stateDict(describeModel().model, false);
    await safetensorsFile(path.join(work, 'small.safetensors'), tensors);
    workshop.close();
    const projector = inPackage('fixtures/kv-projector/two-teachers');
    fs.copyFileSync(path.join(projector, 'model.safetensors'), path.join(work, 'kv.safetensors'));
    fs.writeFileSync(path.join(work, 'ids.json'), '[[1, 2, 3, 4, 5]]');
    fs.writeFileSync(
      path.join(work, 'chats.jsonl'),
      '{"messages":[{"role":"user","content":"hi"}]}',
    );
    fs.copyFileSync(
      path.join(projector, 'expected.safetensors'),
      path.join(work, 'kv-input.safetensors'),
    );
    fs.writeFileSync(path.join(work, 'small.yaml'), JSON.stringify({ model: SMALL }));
  });

  /** An invocation of each command, and a part of its output. */
  const INVOCATIONS: Record<string, { args: string[]; prints: string }> = {
    compare: {
      args: ['original.yaml', '--set', 'model.srte_factorized_rank=64,128'],
      prints: 'srte_factorized_rank',
    },
    'compare-srte': { args: ['original.yaml'], prints: '8.321B' },
    completion: { args: ['bash'], prints: 'compare-srte' },
    'convert-checkpoint': {
      args: ['small.safetensors', 'shared', '--to', 'shared', '--config', 'small.yaml'],
      prints: 'Converted to shared: ',
    },
    data: { args: ['chats.jsonl'], prints: 'chats.jsonl: 1 sample' },
    doctor: { args: ['--only', 'tfjs:cpu'], prints: 'TensorFlow.js' },
    evaluate: {
      args: [
        'small.yaml',
        '--checkpoint',
        'small.safetensors',
        '--ids',
        'ids.json',
        '--device',
        'cpu',
      ],
      prints: 'small: perplexity',
    },
    draw: { args: ['original.yaml'], prints: '32 × block 0–31' },
    explore: {
      args: ['original.yaml', '--save', 'page.html'],
      prints: 'Wrote page.html',
    },
    export: {
      args: ['small.yaml', '--checkpoint', 'small.safetensors', '--save', 'small.onnx'],
      prints: 'Wrote small.onnx: ',
    },
    fit: {
      args: ['original.yaml', '--gpu', 'h100-80gb'],
      prints: 'Fits on 1 × NVIDIA H100 SXM5 80 GB: serves',
    },
    generate: {
      args: [
        'small.yaml',
        '--random',
        '--ids',
        '1,2',
        '--max-tokens',
        '2',
        '--engine',
        'tfjs',
        '--json',
        '-q',
      ],
      prints: 'minimind/generate@1',
    },
    init: { args: ['tiny', '--save', 'mine.yaml'], prints: 'mine.yaml' },
    inspect: { args: ['small.safetensors'], prints: 'safetensors · 94.9 kB' },
    'kv-projector convert': { args: ['kv.safetensors', 'kv.pt'], prints: 'Converted to kv.pt' },
    'kv-projector init': {
      args: ['new.pt', '--teacher', 'A:64x2', '--student', '16'],
      prints: 'Wrote new.pt: elastic',
    },
    'kv-projector params': {
      args: ['--teacher', 'Qwen2-14B:5120x40', '--student', '1536'],
      prints: '34,095,616',
    },
    'kv-projector verify': {
      args: ['--teacher-width', '64', '--student', '16', '--steps', '3'],
      prints: 'elastic',
    },
    'kv-projector project': {
      args: ['kv.safetensors', 'kv-input.safetensors', '--save', 'projected.safetensors'],
      prints: 'Wrote projected.safetensors',
    },
    list: { args: [], prints: 'minimind profile minimind/minimind2-small' },
    // Its input is empty, so it has nothing to answer.
    mcp: { args: [], prints: '' },
    modules: { args: ['online-softmax'], prints: '3 checks passed' },
    plan: {
      args: ['--max-params', '26M', '--vocab', '6400'],
      prints: 'Best minimind model by balance',
    },
    profile: { args: ['original.yaml'], prints: '22,143,967,232' },
    'quick-test': {
      args: ['small.yaml', '--engine', 'tfjs'],
      prints: `small: ${USUAL_CHECKS} checks passed`,
    },
    attention: { args: ['original.yaml'], prints: 'hierarchical' },
    rope: { args: ['original.yaml', '--context', '32768'], prints: 'NTK-aware' },
    schema: { args: ['hybrid'], prints: '"srte_encoding"' },
    'train-plan': { args: ['small.yaml', '--tokens', '1M'], prints: 'tokens' },
    validate: { args: ['original.yaml'], prints: 'valid: 1 file' },
    verify: { args: ['small.yaml', 'small.safetensors'], prints: 'matches: 144 tensors' },
    diff: { args: ['hybrid/original', 'hybrid/shared'], prints: '1 config key' },
  };

  it('runs each command', () => {
    fs.copyFileSync(installed('configs/hybrid/original.yaml'), path.join(work, 'original.yaml'));
    expect(Object.keys(INVOCATIONS).sort(), 'each has an invocation above').toEqual(
      [...COMMANDS].sort(),
    );
    const invocations = Object.entries(INVOCATIONS);
    const answers = runInOneProcess(
      invocations.map(([name, { args }]) => [...name.split(' '), ...args]),
    );
    for (const [index, [name, { prints }]] of invocations.entries()) {
      const { status, stdout, stderr } = answers[index] ?? expect.unreachable();
      expect({ name, status, stderr }).toEqual({ name, status: 0, stderr: '' });
      expect(stdout).toContain(prints);
    }
  });

  it.each(sampled(['development', 'test', 'production'], 3))(
    'is quiet with NODE_ENV=%s',
    (value) => {
      const { status, stderr } = minimind(['schema', 'hybrid'], { NODE_ENV: value });
      expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    },
  );

  it('prints its version', () => {
    const { version } = JSON.parse(fs.readFileSync(inPackage('package.json'), 'utf8'));
    expect(minimind(['--version']).stdout).toContain(`minimind/${version} `);
  });
});

/** Commands that need no engine. */
const ENGINELESS = ['validate', 'profile', 'compare-srte'] as const;
const answers = () => runInOneProcess(ENGINELESS.map((name) => [name, 'original.yaml', '--json']));
const quickTest = () => minimind(['quick-test', 'small.yaml', '--only', 'created,forward']);
const doctor = () =>
  JSON.parse(minimind(['doctor', '--only', 'onnx:cpu', '--json']).stdout).engines;

const COMMAND = 'npm install --ignore-scripts onnxruntime-node@1.30.0';

describe('the installed program without ONNX Runtime', () => {
  it('tests on TensorFlow.js, and reports the command that installs ONNX Runtime', () => {
    const { status, stdout } = quickTest();
    expect(status).toBe(0);
    expect(stdout).toMatch(/^ {2}engine +TensorFlow\.js 4\.22\.0 \(wasm on cpu\), 1 thread, /m);
    const facts = stdout.slice(0, stdout.indexOf('\n\n'));
    expect(facts).toMatch(/^ {2}faster +ONNX Runtime \(cpu\): it is not installed; /m);
    expect(facts).toContain(`to fix it: ${COMMAND}\n`);
  });

  it('lists ONNX Runtime as missing in doctor, with the command that installs it', () => {
    const missing = { version: null, problem: 'it is not installed', remedy: COMMAND };
    expect(doctor()).toEqual([expect.objectContaining(missing)]);
  });

  it('fails with the command when ONNX Runtime is requested', () => {
    const { status, stderr } = minimind(['quick-test', 'small.yaml', '--engine', 'onnx']);
    expect(status).toBe(3);
    expect(stderr).toContain(`→ ${COMMAND}\n`);
  });
});

describe('the installed program without WebAssembly', () => {
  const wasm = installed('dist/tfjs-backend-wasm-simd.wasm');
  const away = path.join(work, 'away');

  beforeAll(() => fs.renameSync(wasm, away));
  afterAll(() => fs.renameSync(away, wasm));

  it('tests in plain JavaScript', () => {
    const { status, stdout } = quickTest();
    expect(status).toBe(0);
    expect(stdout).toMatch(/^ {2}engine +TensorFlow\.js 4\.22\.0 \(cpu\), 1 thread, /m);
    expect(stdout).toContain('TensorFlow.js (wasm): its WebAssembly module did not start\n');
  });
});

describe.runIf(isWhole)('the installed program without any engine', () => {
  const chunks = installed('dist/chunks');
  const away = path.join(work, 'away');
  let engine: string;
  let whole: readonly Answer[];

  beforeAll(() => {
    whole = answers();
    const names = fs.readdirSync(chunks).filter((name) => name.startsWith('portable-'));
    expect(names).toHaveLength(1);
    engine = path.join(chunks, ...names);
    fs.renameSync(engine, away);
  });
  afterAll(() => fs.renameSync(away, engine));

  it.each(ENGINELESS)('gives the same answer of %s', (name) => {
    const before = whole[ENGINELESS.indexOf(name)];
    const now = minimind([name, 'original.yaml', '--json']);
    expect([now.status, now.stdout, now.stderr]).toEqual([0, before?.stdout, '']);
  });
  it('checks a checkpoint before it looks for an engine', () => {
    const args = ['small.yaml', '--checkpoint', 'small.safetensors', '--engine', 'onnx'];
    expect(minimind(['quick-test', ...args]).status).toBe(3);
    const other = minimind(['quick-test', ...args, '--set', 'model.vocab_size=18']);
    expect(other.status).toBe(2);
    expect(other.stderr).toContain('lm_head.weight: wrong shape: expected [18, 8]');
  });
});

describe('the installed program after the command that installs ONNX Runtime', () => {
  const runtime = 'node_modules/onnxruntime-node';
  beforeAll(() => {
    if (!isWhole && fs.existsSync(inPackage(runtime))) {
      // Unpacking 270 MB takes as long as the rest of this file.
      fs.symlinkSync(inPackage(runtime), path.join(work, runtime), 'junction');
      return;
    }
    const [program = '', ...words] = COMMAND.split(' ');
    succeed(program, [...words, ...QUIETLY]);
  }, 300_000);

  it('tests on ONNX Runtime', () => {
    const { status, stdout } = quickTest();
    expect(status).toBe(0);
    expect(stdout).toMatch(/^ {2}engine +ONNX Runtime 1\.30\.0 \(cpu\), \d+ threads?, /m);
    expect(stdout).not.toMatch(/^Not /m);
  });

  it('lists ONNX Runtime as usable in doctor', () => {
    expect(doctor()).toEqual([expect.objectContaining({ version: '1.30.0', problem: null })]);
  });
});

describe.runIf(isWhole)('the globally installed program', () => {
  // Outside the project, whose packages it would find.
  const prefix = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), 'minimind-global-'));
  afterAll(() => fs.rmSync(prefix, { recursive: true, force: true }), 120_000);
  const bin = path.join(prefix, process.platform === 'win32' ? 'minimind' : 'bin/minimind');
  const engine = () => {
    const { stdout } = run(bin, ['doctor', '--only', 'onnx:cpu', '--json']);
    return JSON.parse(stdout).engines[0];
  };

  beforeAll(() => {
    const words = ['install', '--global', '--prefix', prefix, ...QUIETLY];
    succeed('npm', [...words, path.join(work, packedName)]);
  }, 300_000);

  it('reports in doctor a command that installs ONNX Runtime for it', () => {
    const remedy = COMMAND.replace('install', `install --global --prefix ${prefix}`);
    expect(engine()).toMatchObject({ problem: 'it is not installed', remedy });
    const [program = '', ...words] = remedy.split(' ');
    succeed(program, [...words, ...QUIETLY]);
    expect(engine()).toMatchObject({ version: '1.30.0', problem: null });
  }, 300_000);
});

describe('the installed library', () => {
  const code = [
    "import { countParameters, loadFamily } from 'minimind';",
    "const family = await loadFamily('hybrid');",
    'const model = family.build(family.schema.parse({ model: {} }));',
  ];

  it('can be imported', () => {
    const program = [...code, 'console.log(countParameters(model).parameters);'].join('\n');
    fs.writeFileSync(path.join(work, 'use.mjs'), program);
    expect(succeed(process.execPath, ['use.mjs'])).toBe('13822468096\n');
  });

  it('has building blocks and random numbers', () => {
    const program = [
      "import { rmsNorm, tensor } from 'minimind/modules';",
      "import { manualSeed } from 'minimind/random';",
      'const x = tensor([1, 5], manualSeed(0).rand(5));',
      'console.log(x.data[0].toFixed(8), rmsNorm(x, tensor([5], [1, 1, 1, 1, 1]), 0).shape);',
    ].join('\n');
    fs.writeFileSync(path.join(work, 'blocks.mjs'), program);
    expect(succeed(process.execPath, ['blocks.mjs'])).toBe('0.49625659 [ 1, 5 ]\n');
  });

  it('has types that compile', () => {
    const right = [...code, 'export const counted: number = countParameters(model).parameters;'];
    const wrong = [...code, 'export const counted: string = countParameters(model).parameters;'];
    fs.writeFileSync(path.join(work, 'right.mts'), right.join('\n'));
    fs.writeFileSync(path.join(work, 'wrong.mts'), wrong.join('\n'));
    const inBrowser = code[0]?.replace("'minimind'", "'minimind/browser'") ?? '';
    fs.writeFileSync(path.join(work, 'browser.mts'), [inBrowser, ...right.slice(1)].join('\n'));
    const blocks = [
      "import { rmsNorm, type Tensor, tensor } from 'minimind/modules';",
      "import { manualSeed } from 'minimind/random';",
      'const x: Tensor = tensor([1, 2], manualSeed(0).rand(2));',
      'export const size: number = rmsNorm(x, x).data.length;',
    ];
    const wrongBlocks = blocks.map((line) => line.replace('number', 'string'));
    fs.writeFileSync(path.join(work, 'blocks.mts'), blocks.join('\n'));
    fs.writeFileSync(path.join(work, 'wrong-blocks.mts'), wrongBlocks.join('\n'));
    // The compiler of most users takes several times as long.
    const compiler = isWhole ? 'typescript' : 'typescript-7';
    const tsc = inPackage('node_modules', compiler, 'bin/tsc');
    // This checks the types of packages, but not those of TypeScript itself.
    const checks = ['--noEmit', '--strict', '--skipDefaultLibCheck'];
    const options = [...checks, '--module', 'NodeNext', '--target', 'ES2023'];
    const files = ['blocks.mts', 'browser.mts', 'right.mts', 'wrong-blocks.mts', 'wrong.mts'];
    const { stdout } = run(process.execPath, [tsc, ...options, ...files]);
    expect(stdout.trim().split('\n')).toEqual([
      expect.stringMatching(/^wrong-blocks\.mts\(4,14\): error/),
      expect.stringMatching(/^wrong\.mts\(4,14\): error/),
    ]);
  });
});
