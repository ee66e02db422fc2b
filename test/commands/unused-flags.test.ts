import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FAMILY_NAMES } from '../../src/model/architecture/families.js';
import { runHere } from '../run-here.js';

/** Flags without an effect for their input: each is refused with a reason. */
const REFUSED: readonly (readonly [line: string, message: string])[] = [
  ['verify fixtures/hf/llama/config.json fixtures/hf/llama --state-dict x', 'has no state dicts'],
  ['inspect fixtures/hf/llama --state-dict x', 'its format is safetensors'],
  ['profile fixtures/hf/llama --state-dict x', 'has no state dicts'],
  ['quick-test hybrid/tiny --state-dict x', '--state-dict requires a checkpoint'],
  [
    'quick-test hybrid/tiny --only created --repeat 2',
    '--repeat requires the check timing or float16',
  ],
  [
    'quick-test hybrid/tiny --only created --output-tokens 2',
    'write --only created,timing, or leave --output-tokens out',
  ],
  ['evaluate fixtures/hf/llama --ids 1,2,3 --seed 3', '--seed requires --random'],
  ['generate fixtures/hf/llama --ids 1 --temperature 0 --top-k 4', '--top-k has no effect'],
  ['generate fixtures/hf/llama --ids 1 --temperature 0 --min-p 0.1', '--min-p has no effect'],
  ['generate fixtures/hf/llama --ids 1 --seed 3', '--seed has no effect at --temperature 0'],
  ['generate fixtures/hf/llama --ids 1 --greedy --seed 3', '--seed has no effect'],
  [
    'generate fixtures/hf/llama --ids 1 --against fixtures/hf/llama --seed 3',
    '--seed has no effect',
  ],
  [
    'convert-checkpoint fixtures/checkpoints/valid/st_all_dtypes.safetensors x.safetensors --dry-run --family llama',
    '--family requires a config',
  ],
  [
    'fit minimind2-small --gpu h100 --dtype int4 --group-size 1409',
    '--group-size: expected at most 1,408, the longest row of a matrix, found 1,409',
  ],
  [
    'diff minimind2-small minimind2 --max-error 0.1',
    '--max-error: expected two checkpoints, found two configs',
  ],
  ['attention minimind2-small --gpu h100 --on-chip 64KiB', 'cannot be used together'],
  ['fit minimind2-small --compute f16', '--compute requires --this-machine'],
  ['plan --max-params 26M --compute f16', '--compute requires --this-machine'],
  ['fit minimind2-small --prompt-tokens 16', '--prompt-tokens requires hardware'],
  ['fit minimind2-small --output-tokens 16', '--output-tokens requires hardware'],
  ['train-plan minimind2-small --loss-scale 4', '--loss-scale requires fp16'],
  [
    'data fixtures/data/pretrain.jsonl --tokenizer fixtures/data/tokenizer --answer-start x',
    '--answer-start and --answer-end require chats',
  ],
  // A limit that is never checked would let every build pass.
  ['data fixtures/data/pretrain.jsonl --max-padding 1%', '--max-padding requires a tokenizer'],
  ['data fixtures/data/pretrain.jsonl --max-cut 1%', '--max-cut requires a tokenizer'],
  ['data fixtures/data/pretrain.jsonl --tokens 1B', '--tokens requires a tokenizer'],
  ['data fixtures/data/pretrain.jsonl --vocab 5', '--vocab requires a tokenizer'],
  ['generate fixtures/hf/llama --ids 1 --stop x', '--stop requires a tokenizer'],
  [
    'attention minimind2-small --global-heads 9',
    '--global-heads: expected at most 8, the heads of the model, found 9',
  ],
  ['init minimind2-small --save x.json', '--save: expected a .yaml or .yml file, found x.json'],
  ['plan --max-params 26M --save x.json', 'plan --max-params 26M --save x.yaml'],
  [
    'fit minimind2-small --gpu h100 --gpus 2 --for training --sequence-parallel',
    '--sequence-parallel --tensor-parallel 2',
  ],
  ['export fixtures/hf/llama --save no-folder.txt', 'expected a .onnx file, found no-folder.txt'],
  ['export fixtures/hf/llama --save model.pt', 'convert-checkpoint fixtures/hf/llama model.pt'],
  ['quick-test hybrid/tiny --save logits.pt', 'quick-test hybrid/tiny --save logits.safetensors'],
  ['quick-test hybrid/tiny --output-tokens 600', 'write --context 256 --output-tokens 128'],
  ['quick-test fixtures/onnx/llama.onnx', 'and --checkpoint fixtures/onnx/llama.onnx'],
  ['generate fixtures/onnx/llama.onnx --ids 1', 'and --checkpoint fixtures/onnx/llama.onnx'],
  ['compare hybrid/tiny --image x', 'write --plan plan.json --launch kubernetes --image IMAGE'],
  ['compare hybrid/tiny --wait', 'write --plan plan.json --finish'],
  ['compare hybrid/tiny --submit', 'write --plan plan.json --launch slurm'],
  ['plan --max-params 26M --heads 8', 'convert-checkpoint and modules have a flag of this name'],
  ['modules layernorm', 'unknown block "layernorm"'],
  ['modules layernorm', 'write minimind modules layer-norm'],
];

describe('a flag without an effect', () => {
  it.each(REFUSED)('is refused: %s', async (line, message) => {
    const { code, stdout, stderr } = await runHere(line.split(' '));
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(message);
    expect(stderr).toMatch(/^ {2}→ /m);
  });

  it('is none for the family of a file: it is read as that one', async () => {
    const { code, stderr } = await runHere(['profile', 'hybrid/tiny', '--family', 'llama']);
    expect(code).toBe(2);
    expect(stderr).toContain('model.window_size: unknown key "window_size"');
    const small = await runHere(['profile', 'minigpt/minigpt-small', '--family', 'minimind']);
    expect({ code: small.code, parameters: small.stdout.slice(0, 60) }).toEqual({
      code: 0,
      parameters: expect.stringContaining('minimind · 29.5M parameters'),
    });
    expect(small.stderr).toContain('the file says "minigpt": read as minimind, by --family');
    const same = await runHere(['profile', 'hybrid/tiny', '--family', 'hybrid']);
    expect({ code: same.code, stderr: same.stderr }).toEqual({ code: 0, stderr: '' });
  });

  it('is a warning for --no-config without a config', async () => {
    const file = 'fixtures/checkpoints/valid/st_all_dtypes.safetensors';
    const line = ['convert-checkpoint', file, 'x.safetensors', '--dry-run', '--no-config'];
    const { code, stderr } = await runHere(line);
    expect(code).toBe(0);
    expect(stderr).toContain('--no-config is not used: no config is in the checkpoint');
  });

  const CAST = 'convert-checkpoint fixtures/hf/llama x.safetensors --dry-run --dtype bf16';
  const IDS = ['--checkpoint', 'fixtures/hf/llama/model.safetensors', '--ids', '1,2,3'];
  const TRAINED = 'fit minimind2-small --for training --gpu h100';
  const RUN = [
    'quick-test',
    'fixtures/hf/llama/config.json',
    '--device',
    'cpu',
    '--engine',
    'onnx',
  ];
  const FLAGS: readonly (readonly [words: string, flags: string, warning: string])[] = [
    [CAST, '--engine tfjs', '--engine is not used: this conversion has no large matrix products'],
    [CAST, '--engine onnx --threads 1', '--engine and --threads are not used'],
    [`${TRAINED}`, '--zero 2', '--zero 2 is not used: the training has 1 replica'],
    [`${TRAINED} --gpus 2 --tensor-parallel 2`, '--zero 1', '--zero 1 is not used'],
    [
      'fit minimind2-small --for serving --gpu h100 --gpus 8',
      '--tensor-parallel 3',
      '2 of 8 GPUs serve nothing: 3 share each layer of a replica',
    ],
    ['train-plan minimind2-small --tokens 1B', '--zero 3', '--zero 3 is not used'],
    [
      `${TRAINED} --gpus 2`,
      '--global-batch 4095',
      'at least 4,096 tokens (1 × 2,048 × 2 replicas)',
    ],
    [[...RUN, '--only', 'created,forward', ...IDS].join(' '), '--seed 3', '--seed is not used'],
    [
      [...RUN, '--against', 'fixtures/hf/llama', ...IDS].join(' '),
      '--seed 3',
      '--seed is not used',
    ],
  ];

  it.each(FLAGS)(
    'is a warning for flags that scripts may always set: %s %s',
    async (words, flags, warning) => {
      const { code, stderr } = await runHere([...words.split(' '), ...flags.split(' ')]);
      expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining(warning) });
      expect((await runHere(words.split(' '))).stderr).not.toContain('not used');
    },
  );

  it.each([
    `${TRAINED} --zero 0`,
    `${TRAINED} --gpus 2 --zero 1 --global-batch 4096`,
    'train-plan minimind2-small --tokens 1B --gpu h100 --gpus 2 --zero 3',
    'fit minimind2-small --for serving --gpu h100 --gpus 8 --tensor-parallel 4',
    `${CAST} --engine auto`,
    [...RUN, '--only', 'created,batch', ...IDS, '--seed', '3'].join(' '),
  ])('is distinguished from one with an effect: %s', async (line) => {
    const { code, stderr } = await runHere(line.split(' '));
    expect(code).toBe(0);
    expect(stderr).not.toMatch(/not used|at least|nothing/);
  });

  it('is never a default', async () => {
    for (const line of ['evaluate fixtures/hf/llama --ids 1,2,3', 'fit minimind2-small']) {
      expect((await runHere(line.split(' '))).code, line).toBe(0);
    }
  });
});

/** Huge numbers: each is refused with a bound, and none causes a bug. */
describe('a huge number', () => {
  it.each([
    ['generate fixtures/hf/llama --ids 1 --temperature 1e400', 'from 0 to 1000000'],
    ['generate fixtures/hf/llama --ids 1 --repetition-penalty 1e300', 'from 0.01 to 1000000'],
    ['fit minimind2-small --gpu h100 --tensor-parallel 1e15', 'at most 1,000,000 GPUs'],
    ['fit minimind2-small --gpu h100 --pipeline-parallel 1e15', 'at most 1,000,000 GPUs'],
    ['fit minimind2-small --gpu h100 --gpus 1e15', 'at most 1,000,000 GPUs'],
    ['attention minimind2-small --context 1e15', 'at most 1,099,511,627,776 tokens'],
    ['rope minimind2-small --trained 1e15', 'at most 1,099,511,627,776 tokens'],
    ['plan --max-params 26M --context 1e15', 'at most 1,099,511,627,776 tokens'],
    ['evaluate fixtures/hf/llama --ids 1,2 --stride 1e15', 'at most 1,099,511,627,776 tokens'],
    ['fit minimind2-small --gpu h100 --dtype int4 --group-size 1e15', 'at most 1,408'],
    ['fit minimind2-small --gpu h100 --train-tokens 1e30', 'at most 9,010,000B tokens'],
  ])('is refused: %s', async (line, message) => {
    const { code, stdout, stderr } = await runHere(line.split(' '));
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(message);
  });

  it('is exact in counts', async () => {
    const words = ['profile', 'minimind2-small', '--batch', '9007199254740991'];
    const { code, stdout } = await runHere([...words, '--json']);
    expect(code).toBe(0);
    // 2^53 − 1 sequences of 2,048 tokens, with 4,096 bytes of keys and values each.
    const bytes = (2n ** 53n - 1n) * 2048n * 4096n;
    expect(JSON.parse(stdout).inference.state.keyValueCache.value).toBe(String(bytes));
    expect((await runHere(words)).stdout).not.toMatch(/NaN|Infinity|e\+\d/);
  });
});

describe('a fraction of a token', () => {
  it.each([
    'fit minimind2-small --gpu h100 --global-batch 3.5',
    'fit minimind2-small --gpu h100 --train-tokens 0.1',
    'train-plan minimind2-small --tokens 3.5',
    'train-plan minimind2-small --data-tokens 1.0001k',
    'data fixtures/data/pretrain.jsonl --tokenizer fixtures/data/tokenizer --tokens 2.5',
  ])('is refused: %s', async (line) => {
    const { code, stderr } = await runHere(line.split(' '));
    expect(code).toBe(2);
    expect(stderr).toContain('expected a whole number of tokens, found ');
  });
});

describe('an unknown name', () => {
  it('is refused with the nearest one, and the command that lists them', async () => {
    const { stderr: near } = await runHere(['schema', 'hybird']);
    expect(near).toContain(`expected one of ${FAMILY_NAMES.length} values, found "hybird"`);
    expect(near).toContain('write minimind schema hybrid, or see minimind list --details');
    const { stderr: far } = await runHere(['profile', 'minimind2-small', '--family', 'UNKNOWN']);
    expect(far).toContain(
      `--family: expected one of ${FAMILY_NAMES.length} values, found "UNKNOWN"`,
    );
    expect(far).toContain('→ see minimind list --details');
  });

  it('is refused with a hint if it is a family instead of a preset', async () => {
    for (const command of ['profile', 'init', 'validate', 'fit']) {
      const { code, stderr } = await runHere([command, 'hybrid']);
      expect(code, command).toBe(2);
      expect(stderr, command).toContain('hybrid is a family: write one of its presets, hybrid/');
    }
  });
});

describe('two wrong inputs', () => {
  it.each(['verify no-config.yaml no-weights.pt', 'diff no-config.yaml no-weights.pt'])(
    'are both reported: %s',
    async (line) => {
      const { code, stderr, stdout } = await runHere([...line.split(' '), '--json']);
      expect(code).toBe(2);
      for (const name of line.split(' ').slice(1)) expect(stderr).toContain(name);
      expect(JSON.parse(stdout).problems).toHaveLength(2);
    },
  );
});

describe('a path without a file', () => {
  let folder = '';
  beforeAll(() => {
    folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
    fs.writeFileSync(path.join(folder, 'one.yaml'), 'model: {}\n');
    fs.symlinkSync('nowhere', path.join(folder, 'broken.yaml'));
    fs.symlinkSync('loop.yaml', path.join(folder, 'loop.yaml'));
  });
  afterAll(() => fs.rmSync(folder, { recursive: true, force: true }));

  const TOKENIZER = path.resolve('fixtures/data/tokenizer');
  const COMMANDS = [
    ['profile'],
    ['inspect'],
    ['data', '--tokenizer', TOKENIZER],
    ['data', path.resolve('fixtures/data/pretrain.jsonl'), '--tokenizer'],
    ['convert-checkpoint', '--to', 'shared', '--dry-run', 'out.safetensors'],
    ['compare-srte'],
  ];

  it.each([
    ['broken.yaml', 'it is a link to nowhere, which does not exist'],
    ['one.yaml/x', 'one.yaml is a file'],
    ['~/one.yaml', 'write $HOME/one.yaml'],
  ])('is refused with the reason: %s', async (name, advice) => {
    for (const [command = '', ...words] of COMMANDS) {
      const line = command === 'convert-checkpoint' ? [name, ...words] : [...words, name];
      const { code, stderr } = await runHere([command, ...line], { cwd: folder });
      expect({ code, stderr }, command).toEqual({ code: 2, stderr: expect.any(String) });
      expect(stderr, command).toContain(advice);
    }
  });

  it('is a system error for a link to itself', async () => {
    for (const [command = '', ...words] of COMMANDS) {
      const line =
        command === 'convert-checkpoint' ? ['loop.yaml', ...words] : [...words, 'loop.yaml'];
      const { code, stderr } = await runHere([command, ...line], { cwd: folder });
      expect(code, command).toBe(3);
      expect(stderr, command).toMatch(/^error: .*ELOOP/m);
      expect(stderr, command).toContain('the link leads back to itself');
    }
  });

  it('is refused with the files of the same extension in its folder', async () => {
    const { stderr } = await runHere(['inspect', 'fixtures/hf/llama/mode.safetensors']);
    expect(stderr).toContain('fixtures/hf/llama/model.safetensors');
    const { stderr: above } = await runHere(['inspect', 'fixtures/no-such/model.safetensors']);
    expect(above).toContain('there is no folder fixtures/no-such');
  });
});

describe('a missing file of a flag', () => {
  it('is refused with the expected content', async () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
    try {
      const gpus = ['fit', 'minimind2-small', '--gpu', 'mine', '--hardware', 'x.yaml'];
      const hardware = await runHere(gpus, { cwd: folder });
      expect(hardware).toMatchObject({ code: 2, stderr: expect.stringContaining('"x.yaml"') });
      expect(hardware.stderr).toContain('→ write a YAML file as in gpus: { mine: { extends: h100');
      const texts = path.resolve('fixtures/tokenizers/text.txt');
      const text = ['plan', '--max-params', '26M', '--tokenizer', 'x.json', '--text', texts];
      const tokenizer = await runHere(text, { cwd: folder });
      expect(tokenizer).toMatchObject({ code: 2, stderr: expect.stringContaining('x.json') });
      expect(tokenizer.stderr).toContain('→ give the tokenizer.json of a model, or its folder');
    } finally {
      fs.rmSync(folder, { recursive: true });
    }
  });
});

describe('a folder with a tokenizer.json', () => {
  it.each([
    ['evaluate fixtures/hf/llama --text fixtures/tokenizers/text.txt'],
    ['generate fixtures/hf/llama --ids 1,2 --max-tokens 1'],
    ['plan --max-params 26M --text fixtures/tokenizers/text.txt'],
    ['train-plan minimind2-small'],
  ])('is accepted by %s', async (line) => {
    const words = [...line.split(' '), '--tokenizer', 'fixtures/data/tokenizer'];
    const { stderr } = await runHere(words);
    expect(stderr).not.toContain('is a folder');
  });
});

describe('--zero on one replica', () => {
  it('is a note, which the JSON has among its warnings', async () => {
    const line = 'fit minimind2-small --for training --gpu h100 --zero 3'.split(' ');
    const shown = await runHere(line);
    expect(shown.stderr).toMatch(/^--zero 3 is not used: the training has 1 replica/m);
    expect(shown.stderr).not.toContain('warning:');
    const { warnings } = JSON.parse((await runHere([...line, '--json'])).stdout);
    expect(warnings).toMatchObject([{ message: expect.stringContaining('--zero 3 is not used') }]);
  });
});

describe('fit --accumulation', () => {
  const TRAINING = 'fit minimind2-small --for training --gpu h100 --gpus 2 --micro-batch 2 --json';
  const run = (flags: string) => runHere([...TRAINING.split(' '), ...flags.split(' ')]);

  it('is the global batch of as many micro-batches on each replica', async () => {
    // 4 micro-batches of 2 sequences of 2,048 tokens on 2 replicas.
    const own = await run('--accumulation 4');
    const same = await run('--global-batch 32768');
    const other = await run('--accumulation 8');
    expect(own.code).toBe(0);
    expect(own.stdout).toBe(same.stdout);
    expect(other.stdout).not.toBe(same.stdout);
  });

  it('is refused without hardware, for serving and beside --global-batch', async () => {
    for (const line of [
      'fit minimind2-small --accumulation 4',
      'fit minimind2-small --gpu h100 --for serving --accumulation 4',
      'fit minimind2-small --gpu h100 --accumulation 4 --global-batch 4M',
    ]) {
      expect((await runHere(line.split(' '))).code, line).toBe(2);
    }
  });
});
