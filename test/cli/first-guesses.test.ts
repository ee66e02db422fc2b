import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { inPackage } from '../fixtures.js';
import { runHere } from '../run-here.js';
import { isWhole } from '../sampled.js';

/** Folder of a user, with one model and one checkpoint. */
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
const CHECKPOINT = 'old.pt';
beforeAll(() => {
  fs.mkdirSync(path.join(folder, 'saved'));
  fs.copyFileSync(inPackage('configs/hybrid/tiny.yaml'), path.join(folder, 'my.yaml'));
  fs.copyFileSync(
    inPackage('fixtures/checkpoints/valid/zip_proto5.pt'),
    path.join(folder, CHECKPOINT),
  );
});
afterAll(() => fs.rmSync(folder, { recursive: true }));

const run = (words: readonly string[]) => runHere(words, { cwd: folder });

/** Words of a command line of a shell. */
const wordsOf = (line: string) =>
  [...line.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map((m) => m[1] ?? m[2] ?? m[3] ?? '');

/**
 * Command line after the suggestion of an error: a whole line, a flag with its value, or a replacement of the word that
 * the message quotes.
 */
function corrected(words: readonly string[], stderr: string): string[] {
  const [, message = '', suggestion = ''] = /error: (.*)\n\s*→ (.*)/.exec(stderr) ?? [];
  const [, line] = /\bminimind (.*?)(?:, or .*)?$/.exec(suggestion) ?? [];
  if (line !== undefined) return wordsOf(line);
  const [, flags] = /((?:--[a-z-]+ [^\s,;-][^\s,;]* ?)+)/.exec(suggestion) ?? [];
  if (flags !== undefined) return withFlags(words, wordsOf(flags));
  const [, meant] = /did you mean "?([^"?]+)"?\?/.exec(suggestion) ?? [];
  const [, wrong = ''] = /"([^"]+)"/.exec(message) ?? [];
  if (meant === undefined) throw new Error(`no suggestion in ${stderr}`);
  return words.map((word) => word.replace(wrong, meant));
}

function withFlags(words: readonly string[], flags: readonly string[]): string[] {
  const changed = [...words];
  for (let at = 0; at < flags.length; at += 2) {
    const [flag = '', value = ''] = flags.slice(at, at + 2);
    const place = changed.indexOf(flag);
    if (place < 0) changed.push(flag, value);
    else changed[place + 1] = value;
  }
  return changed;
}

const FIT = 'fit my.yaml --for serving';

describe('a first guess', () => {
  it.each([
    // Models by name, in any case, and the model of the folder.
    'profile minimind2-small',
    'profile MiniMind2-Small',
    'profile minimind2_small',
    'profile hybrid/original',
    'profile',
    'validate',
    'validate minimind2',
    'compare-srte',
    'compare-srte original --ranks 128 --ranks 64',
    "compare-srte original --ranks '128, 64'",
    'compare minimind2 minimind2-small',
    'fit --gpu h100 --for serving',
    // Types of elements.
    'profile my.yaml --dtype fp16',
    'profile my.yaml --dtype half',
    'profile my.yaml --dtype Float16',
    'profile my.yaml --dtype torch.bfloat16',
    'profile my.yaml --dtype int4',
    'profile my.yaml --dtype 8bit',
    'profile my.yaml --dtype fp8 --cache-dtype fp8',
    `${FIT} --gpu l4 --dtype Q4_K_M`,
    `${FIT} --gpu l4 --dtype q4km`,
    `${FIT} --gpu l4 --dtype awq`,
    // Sizes and counts.
    'profile my.yaml --max-memory 30G',
    'profile my.yaml --max-memory 30GiB',
    "profile my.yaml --max-memory '30 gb'",
    'profile my.yaml --max-params 26M',
    'profile my.yaml --max-params 1,000,000',
    'profile minimind2 --context 32k',
    'profile minimind2 --context 32_768',
    'profile minimind2 --context 32,768',
    'profile minimind2 --context 1e4',
    'rope minimind2',
    'rope minimind2 --context 128K',
    'list all',
    'plan --max-params 1M --vocab 1k --depth 2-4 --top 1 --width 64..128',
    'plan --max-params 1M --vocab 1k --depth 2:4 --top 1 --width 64..128 --family MiniMind',
    // GPUs.
    `${FIT} --gpu 'RTX 4090'`,
    `${FIT} --gpu rtx4090`,
    `${FIT} --gpu 4090`,
    `${FIT} --gpu H100`,
    `${FIT} --gpu 8xA100`,
    `${FIT} --gpu '8 x a100'`,
    `${FIT} --gpu 'A100 80GB'`,
    `${FIT} --gpu 'NVIDIA H100 PCIe'`,
    `${FIT} --gpu 2x4090 --gpus 2`,
    `${FIT} --gpu l4 --users 50 --prompt-tokens 100 --output-tokens 50`,
    'fit --list-gpus 4090',
    // Choices in any case and by their common names.
    'profile my.yaml --optimizer AdamW',
    'profile my.yaml --precision fp32',
    'profile my.yaml --format JSON',
    'profile my.yaml --format md',
    'profile my.yaml --Context 128',
    'profile my.yaml --max_params 26M',
    'fit my.yaml --gpu l4 --for inference',
    'fit my.yaml --gpu l4 --for train --zero zero-3',
    'profile my.yaml -qo -',
    // Flags of other tools that differ in spelling only.
    'profile my.yaml --ctx 128',
    'profile my.yaml --seq-len=128',
    'profile my.yaml --batch-size 2 --seq_len 64',
    'profile my.yaml --explain=yes',
    'profile my.yaml --details true',
    'inspect old.pt --rank 2 --srte',
    'schema Qwen3-MoE',
    'completion PowerShell',
    '-V',
    // Conversions.
    'convert-checkpoint old.pt new.pt --dry-run',
    'convert-checkpoint new.pt --dry-run',
    'convert-checkpoint old.pt new.pt --dry-run --rank 2',
    'convert-checkpoint old.pt new.pt --dry-run --to shared --rank 2',
    'convert-checkpoint old.pt new.pt --dry-run --to lowrank --rank 2',
    'convert-checkpoint old.pt new.pt --dry-run --to low_rank --rank 2',
    'convert-checkpoint old.pt new.pt --dry-run --tie embedding',
    'convert-checkpoint old.pt new.pt --dry-run --dtype BFloat16',
    'convert-checkpoint old.pt new.pt --dry-run --merge layer1',
  ])('is accepted: minimind %s', async (line) => {
    const { code, stderr } = await run(wordsOf(line));
    expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
  });

  it.each([
    // Commands.
    'prof my.yaml',
    'profil my.yaml',
    'convert old.pt new.pt --dry-run',
    'quicktest my.yaml --trace',
    'gpus',
    'version',
    '--verison',
    'my.yaml',
    'minimind2',
    // Flags.
    'profile my.yaml --bs 2 --fp16',
    'profile my.yaml --parms 26M',
    'profile my.yaml --params',
    'profile my.yaml --csv',
    'profile my.yaml --batch',
    'profile my.yaml extra',
    'plan --params 1M --vocab-size 1k --depth 2..3 --width 64..128',
    'fit my.yaml --gpu l4 --prompt 100 --output-tokens 20',
    'fit my.yaml --gpu l4 --output 20',
    'fit my.yaml --gpu l4 --qps fast',
    'fit my.yaml --gpu l4 --users 50 --batch 3',
    // Measuring this machine takes seconds.
    ...(isWhole ? ['fit my.yaml --gpu l4 --threads 1 --remeasure --this-machin'] : []),
    'fit --list-gpus=4090',
    'inspect old.pt --ranks 2',
    // Values.
    'profile my.yaml --max-memory 30',
    'profile my.yaml --max-params many',
    'profile my.yaml --optimizer adamx',
    'profile my.yaml --dtype bfloat',
    'profile my.yaml --format jsn',
    'profile my.yaml --context 32k',
    'plan --max-params 1M --vocab 1k --depth 4..2 --width 64..128',
    'convert-checkpoint old.pt new.pt --dry-run --to sharde',
    'convert-checkpoint old.pt new.pt --dry-run --to low-rank',
    'convert-checkpoint old.pt --dry-run',
    'schema lama',
    // Names.
    'profile minimind2-smal',
    'profile my.yml',
    'init tinny --save -',
    // Files for answers, and files for artifacts.
    'plan --max-params 1M --vocab 1k --depth 2..3 --width 64..128 -o saved/best.yaml',
    'plan --max-params 1M --vocab 1k --depth 2..3 --width 64..128 --write 1 --output=saved/second.yaml',
    'plan --max-params 1M --vocab 1k --depth 2..3 --width 64..128 --save saved/both.yaml -o again.yaml',
    'init tiny -o saved/mine.yaml',
    'init tiny --save saved/mine2.yaml -omine3.yml',
    'export my.yaml --random -o saved/model.onnx',
    'export my.yaml --random --save - --force',
    // Nothing given is ignored.
    'profile my.yaml --force',
    'profile my.yaml -o - --force',
    'init tiny --save - --force',
    'export my.yaml --save saved/seeded.onnx --seed 3',
    'convert-checkpoint old.pt new.pt --dry-run --check',
    'convert-checkpoint old.pt new.pt --dry-run --resume',
    'profile my.yaml --dtype q4_k_m',
    'fit my.yaml --gpu h1000 --for serving',
    'fit my.yaml --gpu 8xA100 --gpus 4 --for serving',
  ])('gets suggestions that work: minimind %s', async (line) => {
    let words = wordsOf(line);
    const first = await run(words);
    expect(first.code).toBe(2);
    expect(first.stderr).not.toMatch(/see --help|Nonexistent|following error|oclif|Missing \d/);
    // A line with two mistakes gets one suggestion after the other.
    let { code, stderr } = first;
    for (let turn = 0; turn < 3 && code !== 0; turn++) {
      words = corrected(words, stderr);
      ({ code, stderr } = await run(words));
    }
    expect({ words, code, stderr: code === 0 ? '' : stderr }).toEqual({
      words,
      code: 0,
      stderr: '',
    });
  });
});

describe('the command line', () => {
  it.each([
    ['profile my.yaml --foo 3', /unknown flag "--foo" of minimind profile/],
    [
      'profile my.yaml --qps 3',
      /fit has this flag: write minimind fit my\.yaml --qps 3 --gpu h100-80gb$/m,
    ],
    ['profile my.yaml --context 8 --context 16', /--context: expected one value, found .* twice/],
    ['profile my.yaml --json --format csv', /--json and --format csv contradict/],
    ['profile my.yaml --json -o answer.csv', /answer.csv is csv, and the format is json/],
    [
      'profile my.yaml --format yaml',
      /expected one of table, json, csv, markdown, html, svg, found "yaml"/,
    ],
    ['fit my.yaml --gpu nothing-known', /unknown GPU or machine "nothing-known"/],
    ['plan --max-params 1M --gpu 8xH100', /expected one GPU, found "8xH100"/],
    ['compare-srte minimind2', /this command is for hybrid/],
    ['inspect', /expected PATH, found no arguments/],
    ['profile nothing-known', /expected a config, a checkpoint or a preset/],
    ['convert-checkpoint old.pt new.pt --max-kl 0.1', /--max-kl requires --prove/],
    [
      'plan --max-params 1M -o best.yaml',
      /--output: expected a file for the answer .*, found "best.yaml"\n.*--save best.yaml/,
    ],
    [
      'generate my.yaml --random --ids 1 --n-cpu-moe 10',
      /--n-cpu-moe 10 has no counterpart here: write minimind/,
    ],
    ['fit my.yaml --gpu l4 -ngl 99', /-ngl 99 is not needed: write minimind/],
    [
      'serve my.yaml --port 80 --gpu-memory-utilization=0.9 --gpu l4',
      /did you mean fit\? --port 80 is not needed: write minimind fit my\.yaml --gpu-memory-utilization=0\.9 --gpu l4$/m,
    ],
    ['profile my.yaml --force', /--force: expected a file to replace, found none/],
    [
      'profile my.yaml --dtype q4_k_m',
      /expected an element type, found "q4_k_m", .*\n.*minimind fit my.yaml --dtype q4_k_m/,
    ],
    [
      'convert-checkpoint old.pt new.pt --dtype bf16 --merge first',
      /--merge: expected tables of several layers to share, found none/,
    ],
    [
      'convert-checkpoint old.pt new.pt --seed 1',
      /--seed: expected --prove or a new low-rank pair, found neither/,
    ],
    [
      'convert-checkpoint old.pt new.onnx',
      /expected OUT to end in \.safetensors, \.pt or \.gguf, found \.onnx/,
    ],
  ])('refuses minimind %s', async (line, message) => {
    const { code, stderr } = await run(wordsOf(line));
    expect(code).toBe(2);
    expect(stderr).toMatch(message);
  });
});

describe('a choice that the user did not make', () => {
  it.each([
    ['fit --gpu h100 --for serving', /^using my\.yaml$/m],
    [`${FIT} --gpu h100`, /--gpu h100: using h100-80gb \(.*\); also h100-pcie-80gb, h100-nvl-94gb/],
    [`${FIT} --gpu 8xA100`, /using a100-80gb .* also a100-40gb/],
    ['profile minimind2 --context 32k', /^--context 32k: 32,768 tokens$/m],
    ['convert-checkpoint old.pt new.pt --dry-run', /converting to --to shared/],
    ['convert-checkpoint new.pt --dry-run', /^using old\.pt$/m],
  ])('is noted on stderr: minimind %s', async (line, note) => {
    const { code, stderr } = await run(wordsOf(line));
    expect(code).toBe(0);
    expect(stderr).toMatch(note);
    expect((await run([...wordsOf(line), '--quiet'])).stderr).not.toMatch(note);
  });

  it('sets the number of GPUs', async () => {
    const { stdout } = await run(wordsOf(`${FIT} --gpu 8xA100 --json`));
    expect(JSON.parse(stdout).cluster).toMatchObject({ gpus: 8, gpu: { name: 'a100-80gb' } });
  });

  it('sets the format by the ending of -o', async () => {
    for (const [name, start] of [
      ['answer.json', '{'],
      ['answer.md', '#'],
      ['answer.csv', /^[a-z_]+,/],
    ] as const) {
      expect((await run(['profile', 'my.yaml', '-o', name])).code).toBe(0);
      expect(fs.readFileSync(path.join(folder, name), 'utf8')).toMatch(start);
    }
  });

  it('sets the number of users per replica', async () => {
    const { stdout } = await run(wordsOf(`${FIT} --gpu 4xl4 --users 50 --json`));
    expect(JSON.parse(stdout).serving.setting.batch).toBe(13);
  });
});

describe('a folder with several models', () => {
  const several = path.join(folder, 'several');
  beforeAll(() => {
    fs.mkdirSync(several);
    for (const name of ['tiny', 'shared']) {
      fs.copyFileSync(
        inPackage('configs/hybrid', `${name}.yaml`),
        path.join(several, `${name}.yaml`),
      );
    }
  });

  it('requires a name, or a file called minimind.yaml', async () => {
    const { code, stderr } = await runHere(['profile'], { cwd: several });
    expect(code).toBe(2);
    expect(stderr).toContain('found 2 in this folder: shared.yaml, tiny.yaml');
    fs.renameSync(path.join(several, 'tiny.yaml'), path.join(several, 'minimind.yaml'));
    expect((await runHere(['profile'], { cwd: several })).stderr).toBe('using minimind.yaml\n');
  });

  it('may have a file with priority over the preset of its name', async () => {
    fs.copyFileSync(path.join(several, 'minimind.yaml'), path.join(several, 'original'));
    const { stdout } = await runHere(['profile', 'original', '--json'], { cwd: several });
    expect(JSON.parse(stdout).file).toBe('original');
  });
});

describe('an exceeded threshold', () => {
  it.each([
    ['profile my.yaml --max-params 20k', /^error: parameters 275\.2K exceed --max-params 20K$/m],
    ['profile my.yaml --max-memory 1MB', /^error: memory .* exceeds --max-memory 1\.0 MB$/m],
    ['profile my.yaml --max-kv-cache 1kB -q', /^error: KV cache .* exceeds --max-kv-cache/m],
  ])('gives exit code 1 and a line on stderr: %s', async (line, message) => {
    const { code, stderr } = await run(wordsOf(line));
    expect(code).toBe(1);
    expect(stderr).toMatch(message);
  });

  it('has a line for each figure of the logits', async () => {
    const other = ['--set', 'model.window_size=8', '--context', '64', '--engine', 'tfjs'];
    const limits = ['--max-kl', '0', '--min-top-match', '100%', '--max-logit-error', '0'];
    const line = ['quick-test', 'my.yaml', '--against', 'tiny', ...other];
    const { code, stderr } = await run([...line, ...limits]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^error: KL divergence .* nats exceeds --max-kl 0$/m);
    expect(stderr).toMatch(/^error: logit error .* exceeds --max-logit-error 0%$/m);
    expect((await run([...line, '--max-kl', '10', '--min-top-match', '0'])).code).toBe(0);
  }, 60_000);

  it('has exit code 1 like an invalid file, while a missing file has 2', async () => {
    fs.writeFileSync(path.join(folder, 'wrong.yml'), 'model: {num_layers: -1}\n');
    expect((await run(['validate', 'wrong.yml'])).code).toBe(1);
    expect((await run(['validate', 'my.yaml', 'no-such.yaml'])).code).toBe(2);
    expect((await run(['profile', 'wrong.yml'])).code).toBe(2);
    fs.rmSync(path.join(folder, 'wrong.yml'));
  });
});
