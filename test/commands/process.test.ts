import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { onnxVersion } from '../../src/engine/onnx/library.js';
import { inPackage } from '../fixtures.js';
import { type Run, runCli } from '../run-cli.js';
import { runHere } from '../run-here.js';
import { isWhole, sampled } from '../sampled.js';

const ORIGINAL = inPackage('configs/hybrid/original.yaml');
const RUN = inPackage('bin/run.js');

/** The only example that runs in `npm test`, of commands with examples that search, run or train models for seconds. */
const QUICK_EXAMPLE: Readonly<Record<string, number>> = {
  compare: 0,
  // The first one tries every engine, as test/commands/doctor.test.ts does.
  doctor: 1,
  'kv-projector verify': 0,
  plan: 0,
  'quick-test': 0,
};

/** Lines that serve until they are stopped; they have tests of their own. */
const SERVES = /^minimind (?:mcp|explore(?!.* (?:--save|-o) ))\b/;

/** Names such as `compare` and `kv-projector params`. */
const COMMANDS = fs
  .readdirSync(inPackage('src/commands'), { recursive: true })
  .map(String)
  .filter((file) => file.endsWith('.ts'))
  .map((file) => file.replace(/\.ts$/, '').replaceAll(path.sep, ' '));

/** A safetensors file with keys and values of the teacher A: one token of width 64. */
const KV = (() => {
  const tensor = (from: number) => ({
    dtype: 'F32',
    shape: [1, 64],
    data_offsets: [from, from + 256],
  });
  const header = Buffer.from(JSON.stringify({ 'A.K': tensor(0), 'A.V': tensor(256) }));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  return Buffer.concat([length, header, Buffer.alloc(512)]);
})();

let folder = '';
beforeAll(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
});
afterAll(() => fs.rmSync(folder, { recursive: true, force: true }), 60_000);

const shell = (line: string) =>
  spawnSync('bash', ['-c', `set -o pipefail; ${line}`], { encoding: 'utf8', cwd: folder });

describe('the command line', () => {
  it('works on a terminal', () => {
    const terminal =
      'data:text/javascript,for(const s of[process.stdout,process.stderr])Object.assign(s,{isTTY:true,getWindowSize:()=>[80,24],getColorDepth:()=>1})';
    const node = `node --import '${terminal}'`;
    const { status, stdout, stderr } = shell(`${node} ${RUN} profile minimind2-small --no-color`);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toContain('25.8M parameters');
  });

  it('ends quietly if the pipe closes', () => {
    const { status, stderr } = shell(`node ${RUN} compare-srte ${ORIGINAL} | true`);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  });

  it('writes to a pipe that -o names by a link without a path', () => {
    const { status, stdout } = shell(`node ${RUN} list --json -q -o /dev/stdout | cat`);
    expect({ status, schema: JSON.parse(stdout).schema }).toEqual({
      status: 0,
      schema: 'minimind/list@1',
    });
  });

  it('reports a full disk, and exits with 3', () => {
    const { status, stderr } = shell(`node ${RUN} compare-srte ${ORIGINAL} > /dev/full`);
    expect(status).toBe(3);
    expect(stderr).toMatch(/^error: cannot write the answer: .*ENOSPC/);
    expect(stderr).not.toMatch(/^\s+at /m);
  });

  it('writes complete files, and replaces none without --force', async () => {
    const args = ['compare-srte', ORIGINAL, '--json', '-o', 'out.json'];
    expect(await runHere(args, { cwd: folder })).toEqual({
      code: 0,
      stdout: '',
      stderr: 'wrote out.json\n',
    });
    expect(JSON.parse(fs.readFileSync(path.join(folder, 'out.json'), 'utf8')).rows).toHaveLength(6);
    expect(await runHere(args, { cwd: folder })).toMatchObject({
      code: 2,
      stderr:
        'error: out.json exists already\n  → choose another name, or replace it with --force\n',
    });
    expect(await runHere([...args, '--force', '--quiet'], { cwd: folder })).toMatchObject({
      code: 0,
      stderr: '',
    });
  });

  it('uses colours with FORCE_COLOR, and none in a pipe', async () => {
    const { stdout: plain } = await runHere(['compare-srte', ORIGINAL]);
    const coloured = runCli(['compare-srte', ORIGINAL], { env: { FORCE_COLOR: '1' } }).stdout;
    const escapes = new RegExp(`${String.fromCharCode(27)}\\[\\d+m`, 'g');
    expect(plain).not.toMatch(escapes);
    expect(coloured).toMatch(escapes);
    expect(coloured.replace(escapes, '')).toBe(plain);
    const off = runCli(['compare-srte', ORIGINAL, '--no-color'], { env: { FORCE_COLOR: '1' } });
    expect(off.stdout).toBe(plain);
  });
});

describe('Ctrl-C', () => {
  it('ends with exit code 130, or of the signal when it has nothing to say yet', async () => {
    const child = spawn(process.execPath, [RUN, 'validate', '-'], {
      stdio: ['pipe', 'ignore', 'pipe'],
    });
    let errors = '';
    child.stderr.on('data', (chunk) => {
      errors += chunk;
    });
    // The command has a handler once it has run for a second. A busy machine can take longer to start it.
    await new Promise((resolve) => setTimeout(resolve, 2500));
    child.kill('SIGINT');
    const end = await new Promise((resolve) =>
      child.on('close', (code, signal) => resolve({ end: code ?? signal, errors })),
    );
    expect([
      { end: 130, errors: 'stopped; nothing was written\n' },
      { end: 'SIGINT', errors: '' },
    ]).toContainEqual(end);
  });
});

describe('a bug', () => {
  it('has exit code 70, its stack and the place to report it', () => {
    const planted = `
      import { main } from ${JSON.stringify(pathToFileURL(inPackage('dist/cli/main.js')).href)};
      const root = new URL(${JSON.stringify(pathToFileURL(inPackage('/')).href)});
      await main(['list', '--json'], root, { get plugins() { throw new TypeError('planted \\u001b[31m'); } });
    `;
    const args = ['--input-type=module', '-e', planted];
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
    expect(status).toBe(70);
    expect(stderr).toMatch(/^TypeError: planted \\u001b\[31m\n {4}at /);
    expect(stderr).toContain('see "Reporting a bug" in CONTRIBUTING.md');
    expect(JSON.parse(stdout)).toMatchObject({ schema: 'minimind/error@1', code: 'bug' });
  });
});

describe('minimind', () => {
  const answerTo = async (...words: readonly string[]) => (await runHere(words)).stdout;

  it('shows help without arguments, for help and for --help', async () => {
    const help = runCli(['--help']).stdout;
    expect(help).toMatch(/compare-srte +Compare /);
    expect(await answerTo('help')).toBe(help);
    expect(await runHere([])).toMatchObject({ code: 0, stdout: await answerTo('-h') });
    expect(await answerTo('help', 'validate')).toBe(await answerTo('validate', '--help'));
  });

  it.each([
    ['validte', 'did you mean validate? write minimind validate'],
    ['nonsense', 'minimind --help lists the commands'],
  ])('refuses the command %s', async (word, suggestion) => {
    expect(await runHere([word])).toEqual({
      code: 2,
      stdout: '',
      stderr: `error: expected a command, found "${word}"\n  → ${suggestion}\n`,
    });
  });

  it.each([
    [['validate', ORIGINAL, '--set'], '--set: expected a value, found none'],
    [['compare-srte', ORIGINAL, '--ranks'], '--ranks: expected a value, found none'],
    [['--bogus'], 'expected a command, found "--bogus"'],
    [['--json'], 'expected a command, found "--json"'],
    [['validate', ORIGINAL, '--bogus'], 'unknown flag "--bogus" of minimind validate'],
    [['schema', '--format', 'csv'], '--format: expected json, found "csv"'],
    [['validate', '-', '-'], 'standard input can be read only once'],
    [['list', '-o', ''], 'the name of the file to write is empty'],
  ])('refuses %j', async (args, message) => {
    const { code, stderr } = await runHere(args);
    expect(stderr).toContain(`error: ${message}`);
    expect(stderr).not.toMatch(/^\s+at |See more help/m);
    expect(code).toBe(2);
  });

  it('accepts short flags', async () => {
    expect(await answerTo('-h')).toContain('Help: COMMAND -h, --help');
    expect(runCli(['-v']).stdout).toBe(runCli(['--version']).stdout);
  });

  it('escapes control characters in a name', async () => {
    const name = path.join(folder, 'w\u001b[31m\u202e');
    const { stderr } = await runHere(['list', '-o', name]);
    expect(stderr).toContain('\\x1b[31m');
    expect(stderr).not.toContain('\u001b');
  });

  it('reports a missing argument', async () => {
    const { code, stderr } = await runHere(['compare-srte']);
    expect(code).toBe(2);
    expect(stderr).toMatch(/^error: expected /);
    expect(stderr).not.toMatch(/^\s+at /m);
  });

  it.each(COMMANDS)(
    'runs the examples of %s --help in an empty folder',
    async (command) => {
      const { stdout } = await runHere([...command.split(' '), '--help']);
      const text = stdout.slice(stdout.indexOf('\nExamples\n'), stdout.indexOf('\nUsage\n'));
      const examples = [...text.matchAll(/^ {2}\$ (.+)$/gm)].map(([, line = '']) => line);
      expect(examples.length).toBeGreaterThan(0);
      const cwd = path.join(folder, command);
      fs.mkdirSync(cwd);
      // Keys and values of a teacher, which no command writes.
      if (command === 'kv-projector project')
        fs.writeFileSync(path.join(cwd, 'kv.safetensors'), KV);
      const only = isWhole ? undefined : QUICK_EXAMPLE[command];
      const run = only === undefined ? examples : examples.slice(only, only + 1);
      for (const example of run.filter((each) => !SERVES.test(each))) {
        const { code, stderr } = await asInShell(example, cwd);
        expect({ example, code, stderr: code === 0 ? '' : stderr }).toEqual({
          example,
          code: 0,
          stderr: '',
        });
        // An example is a model of how to do it.
        if (command === 'train-plan') expect(stderr).not.toContain('warning');
      }
      // The examples of kv-projector verify train several projectors.
    },
    300_000,
  );

  it('has no mistake in the first example of train-plan', async () => {
    const { stdout } = await runHere(['train-plan', '-h']);
    const [, example = ''] = /^ {2}minimind (train-plan .+)$/m.exec(stdout) ?? [];
    const { stdout: answer } = await runHere([...example.split(' '), '--json']);
    expect(JSON.parse(answer).mistakes).toEqual([]);
  });
});

/** Runs an example: here, or in a shell if it is more than a command line of minimind. */
function asInShell(line: string, cwd: string): Promise<Run> | Run {
  const words = line.match(/'[^']*'|[^\s|<>'"$*\\]+/g) ?? [];
  if (words[0] === 'minimind' && words.join(' ') === line) {
    return runHere(
      words.slice(1).map((word) => word.replaceAll("'", '')),
      { cwd },
    );
  }
  const { status, stdout, stderr } = spawnSync(
    'bash',
    ['-c', `minimind() { node ${RUN} "$@"; }; ${line}`],
    { cwd, encoding: 'utf8' },
  );
  return { code: status, stdout, stderr };
}

describe('a topic', () => {
  it.each([[[]], [['--help']]])('lists its commands: kv-projector %j', async (flags) => {
    const { code, stdout } = await runHere(['kv-projector', ...flags]);
    expect(code).toBe(0);
    for (const name of ['convert', 'init', 'params', 'project']) {
      expect(stdout).toContain(`kv-projector ${name} `);
    }
  });

  it.each([
    [['kv-projector', 'parms'], 'a command of kv-projector, found "parms"', 'kv-projector params'],
    [['kv-projectr'], 'a command, found "kv-projectr"', 'kv-projector'],
  ])('suggests a command for %j', async (words, found, near) => {
    const { code, stderr } = await runHere(words);
    expect(code).toBe(2);
    expect(stderr).toContain(`expected ${found}`);
    expect(stderr).toContain(near);
  });
});

describe('init and list', () => {
  it('write each preset as a valid file', async () => {
    const list = await runHere(['list', '--json']);
    for (const { name, presets } of JSON.parse(list.stdout).families) {
      for (const preset of sampled<(typeof presets)[number]>(presets, 3)) {
        const written = path.join(folder, `${name}-${preset.name}.yaml`);
        await runHere(['init', `${name}/${preset.name}`, '--save', written]);
        const { stdout } = await runHere(['validate', written, '--strict', '--json']);
        expect(JSON.parse(stdout).files[0].parameters).toBe(preset.parameters);
      }
    }
  });

  it('write a preset to a pipe for another command', () => {
    const { status, stdout } = shell(
      `node ${RUN} init tiny --save - | node ${RUN} validate - --strict --json`,
    );
    expect(status).toBe(0);
    expect(JSON.parse(stdout).files[0].file).toBe('<stdin>');
  });

  it('write a modeline with a schema next to the file', async () => {
    const [first] = (await runHere(['init', 'tiny', '--save', '-'])).stdout.split('\n');
    expect(first).toBe('# yaml-language-server: $schema=./hybrid.schema.json');
  });

  it('refuse an unknown preset', async () => {
    expect(await runHere(['init', 'orignal'])).toMatchObject({
      code: 2,
      stderr:
        'error: unknown preset "orignal"\n  → did you mean original? write minimind init original\n',
    });
  });
});

describe.skipIf(onnxVersion() === undefined)('temporary weights for ONNX Runtime', () => {
  const temporary = () => fs.mkdtempSync(path.join(folder, 'tmp-'));
  const tiny = inPackage('configs/hybrid/tiny.yaml');

  it('are removed after Ctrl-C', async () => {
    const TMPDIR = temporary();
    const args = ['quick-test', tiny, '--set', 'model.vocab_size=500000', '--repeat', '100000'];
    const child = spawn(process.execPath, [RUN, ...args, '--engine', 'onnx'], {
      stdio: 'ignore',
      env: { ...process.env, TMPDIR },
    });
    const closed = new Promise((resolve) =>
      child.on('close', (code, signal) => resolve(code ?? signal)),
    );
    // Waits for the weights of the model, or of the earlier check of the engine.
    while (fs.readdirSync(TMPDIR).length === 0 && child.exitCode === null) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    child.kill('SIGINT');
    // The thread ends it where it is busy.
    expect([130, 'SIGINT']).toContain(await closed);
    expect(fs.readdirSync(TMPDIR)).toEqual([]);
  });

  it('require a folder, or else the other engine runs with the reason', () => {
    const env = { TMPDIR: path.join(folder, 'no-such-folder') };
    const { code, stdout } = runCli(['quick-test', tiny, '--only', 'forward'], { env });
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^ {2}faster +ONNX Runtime \(cpu\): cannot keep weights in .*no-such-folder/m,
    );
    expect(stdout).toMatch(/^ {2}engine +TensorFlow\.js /m);
  });

  it('are removed after the test', () => {
    const TMPDIR = temporary();
    const { code } = runCli(['quick-test', tiny, '--only', 'forward'], { env: { TMPDIR } });
    expect([code, fs.readdirSync(TMPDIR)]).toEqual([0, []]);
  });
});
