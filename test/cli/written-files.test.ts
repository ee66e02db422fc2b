/** Names of files that a command writes: an ending of another kind is refused before any work. */
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { inPackage } from '../fixtures.js';
import { runHere } from '../run-here.js';

/** A line for each command, whose models do not exist: opening one would be another error. */
const LINES: Readonly<Record<string, string>> = {
  attention: 'missing',
  compare: 'missing missing2',
  'compare-srte': 'missing',
  completion: 'bash',
  'convert-checkpoint': 'missing out.safetensors',
  data: 'missing',
  diff: 'missing missing2',
  doctor: '',
  draw: 'missing',
  evaluate: 'missing --ids 1,2',
  explore: 'missing',
  export: 'missing --save x.onnx',
  fit: 'missing',
  generate: 'missing --ids 1',
  init: 'missing',
  inspect: 'missing',
  'kv-projector convert': 'missing x.pt',
  'kv-projector init': 'x.pt --teacher missing --student 8',
  'kv-projector params': '--teacher missing --student 8',
  'kv-projector project': 'missing missing2 --save x.safetensors',
  'kv-projector verify': '',
  list: 'missing',
  modules: 'missing',
  plan: '--max-params 26M',
  profile: 'missing',
  'quick-test': 'missing',
  rope: 'missing',
  schema: 'hybrid',
  'train-plan': 'missing',
  validate: 'missing',
  verify: 'missing missing2',
};

/** All but the server, which has no answer of its own. */
const COMMANDS = readdirSync(inPackage('src/commands'), { recursive: true })
  .map(String)
  .filter((file) => file.endsWith('.ts'))
  .map((file) => file.replace(/\.ts$/, '').replaceAll(path.sep, ' '))
  .filter((command) => command !== 'mcp');

const refusal = async (line: string) => {
  const { code, stdout, stderr } = await runHere(line.split(' ').filter(Boolean));
  return { code, stdout, message: stderr.split('\n')[0] ?? '', suggestion: stderr.split('\n')[1] };
};

describe('the file of --output', () => {
  it('is tested for every command', () => {
    expect(Object.keys(LINES).toSorted()).toEqual(COMMANDS.toSorted());
  });

  it.each(COMMANDS)('has an ending that minimind %s writes', async (command) => {
    for (const file of ['x.xlsx', 'x.docx', 'answer.json.gz']) {
      const line = `${command} ${LINES[command]} -o ${file}`;
      const { code, stdout, message, suggestion } = await refusal(line);
      expect({ line, code, stdout }).toEqual({ line, code: 2, stdout: '' });
      expect(message).toMatch(/^error: --output: expected a \.\w+,? .*file, found /);
      // The ending that is suggested is one of those that are listed.
      const ending = path.extname(suggestion ?? '').trim();
      expect(message).toContain(ending);
    }
  });

  it.each(COMMANDS)('has what minimind %s writes in place of pixels', async (command) => {
    for (const file of ['deep/x.PNG', 'x.jpg', 'x.pdf']) {
      const line = `${command} ${LINES[command]} -o ${file}`;
      const { code, stdout, message, suggestion = '' } = await refusal(line);
      expect({ line, code, stdout }).toEqual({ line, code: 2, stdout: '' });
      expect(message).toMatch(/^error: --output: /);
      expect(suggestion).toMatch(
        /^ {2}→ write .*--output (?:deep\/)?x\.(?:svg|html|json|txt|bash)/,
      );
    }
  });

  it('may have the ending of a job only with --launch', async () => {
    const { message } = await refusal('convert-checkpoint missing out.safetensors -o job.sh');
    expect(message).toMatch(/--output: expected/);
    const launched = await refusal(
      'convert-checkpoint --plan missing.json --launch slurm -o job.sh',
    );
    expect(launched.message).toContain('missing.json');
  });
});

describe('an artifact', () => {
  it.each([
    ['quick-test missing --save x.pt', '--save: expected a .safetensors file, found x.pt'],
    ['quick-test missing --save x.7z', '--save: expected a .safetensors file, found x.7z'],
    ['quick-test missing --save x.onnx', '--save: expected a .safetensors file, found x.onnx'],
    ['export missing --save x.pt', '--save: expected a .onnx file, found x.pt'],
    ['export missing --save x.safetensors', '--save: expected a .onnx file, found x.safetensors'],
    ['plan --max-params 26M --save x.txt', '--save: expected a .yaml or .yml file, found x.txt'],
    ['init missing --save x.json', '--save: expected a .yaml or .yml file, found x.json'],
    [
      'kv-projector project missing missing2 --save x.pt',
      '--save: expected a .safetensors file, found x.pt',
    ],
    [
      'kv-projector init x.onnx --teacher missing --student 8',
      'OUT: expected a .safetensors, .pt, .pth, .bin or .ckpt file, found x.onnx',
    ],
    [
      'kv-projector convert missing x.gguf',
      'OUT: expected a .safetensors, .pt, .pth, .bin or .ckpt file, found x.gguf',
    ],
    [
      'compare missing missing2 --parts 2 --plan x.txt',
      '--plan: expected a .json file, found x.txt',
    ],
    [
      'convert-checkpoint missing out.onnx',
      'expected OUT to end in .safetensors, .pt or .gguf, found .onnx',
    ],
  ])('has its ending: %s', async (line, message) => {
    const answer = await refusal(line);
    expect(answer).toMatchObject({ code: 2, stdout: '', message: `error: ${message}` });
    expect(answer.suggestion).toMatch(/^ {2}→ write /);
  });

  it('may have a name with a version, which is no ending', async () => {
    const { message } = await refusal('export missing --save model-0.5b');
    expect(message).not.toContain('--save');
  });
});
