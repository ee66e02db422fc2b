import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { folderOf } from './checkpoint/temp-folder.js';
import { commandNames, inPackage, readJson } from './fixtures.js';
import { runCli } from './run-cli.js';
import { runHere } from './run-here.js';

/** A folder with the files that the commands for tasks name: a model with weights and tokenizer, an adapter and a text. */
function folderWithCheckpoint(): string {
  const letters = Array.from({ length: 97 }, (_, id) => [
    id === 0 ? '?' : String.fromCharCode(31 + id),
    id,
  ]);
  const model = { type: 'BPE', merges: [], unk_token: '?', vocab: Object.fromEntries(letters) };
  const split = { type: 'Split', pattern: { Regex: '' }, behavior: 'Isolated', invert: false };
  const folder = folderOf({
    'checkpoint/tokenizer.json': JSON.stringify({
      ...{ version: '1.0', added_tokens: [], normalizer: null, post_processor: null },
      ...{ pre_tokenizer: split, decoder: { type: 'Fuse' }, model },
    }),
    'chats.jsonl': '{"conversations": [{"role": "user", "content": "Hi"}]}\n',
    'book.txt': 'It was the best of times, it was the worst of times.\n',
  });
  for (const name of ['config.json', 'model.safetensors']) {
    fs.cpSync(inPackage(`fixtures/hf/llama/${name}`), path.join(folder, 'checkpoint', name));
  }
  fs.cpSync(inPackage('fixtures/lora/llama-patterns'), path.join(folder, 'adapter'), {
    recursive: true,
  });
  return folder;
}

/** Checks both languages in the same way. */
describe.each(['README.md', 'README.zh-CN.md'])('%s', (name) => {
  const readme = fs.readFileSync(inPackage(name), 'utf8');

  /** Contents of all fenced blocks of a language. */
  const blocks = (language: string) =>
    [...readme.matchAll(new RegExp(`^\`\`\`${language}\n([^]*?)^\`\`\`$`, 'gm'))].map(
      ([, text = '']) => text,
    );

  it('shows the answer of its first line', async () => {
    const [line = ''] = blocks('console');
    const { stdout } = await runHere(line.trim().split(' npx minimind ')[1]?.split(' ') ?? []);
    expect(blocks('text')).toEqual([stdout]);
  });

  it('shows commands that work as described', async () => {
    const [, list = ''] = blocks('console');
    const runs = [];
    for (const line of list.trim().split('\n')) runs.push(await runHere(line.split(' ').slice(1)));
    const [limits, published, load, check] = runs;
    expect(limits?.code).toBe(0);
    expect(limits?.stdout).toMatch(/^--max-memory .* kept$/m);
    expect(published?.stdout).toMatch(/^the tied head counted a second time /m);
    expect(load?.stdout).toMatch(/^ {2}load +100 requests\/s need 1 GPU: /m);
    expect(check?.stdout).toMatch(/^Does not fit on 8 × NVIDIA H100 /m);
    expect(check?.code).toBe(1);
  });

  it('shows a config that is valid', () => {
    const [config = ''] = blocks('yaml');
    expect(runCli(['validate', '-', '--strict'], { input: config }).code).toBe(0);
  });

  it('has the two lines of the whole set-up', () => {
    const console = blocks('console');
    expect([console[0], console.at(-1)]).toEqual([
      'npm ci && npx minimind fit fixtures/hf-configs/qwen3-8b --gpu 4090\n',
      'npm ci && npm test\n',
    ]);
  });

  it('names every command', () => {
    for (const name of commandNames()) expect(readme).toContain(`| \`minimind ${name}`);
  });

  it('lists only existing commands', () => {
    const named = [...readme.matchAll(/^\| `minimind ([a-z-]+(?: [a-z][a-z-]*)?)/gm)];
    expect(named.map(([, name]) => name).sort()).toEqual(commandNames());
  });
});

it('README.md describes each command with its summary', () => {
  const readme = fs.readFileSync(inPackage('README.md'), 'utf8');
  const { commands } = readJson<{ commands: Record<string, { summary: string }> }>(
    'oclif.manifest.json',
  );
  for (const [id, { summary }] of Object.entries(commands)) {
    expect(readme).toContain(`| \`minimind ${id.replace(':', ' ')}\` | ${summary} |`);
  }
});

/** Commands of the table of tasks. */
const tasksIn = (name: string): string[] =>
  [...fs.readFileSync(inPackage(name), 'utf8').matchAll(/^\| [^`|]+ \| `minimind (.+)` \|$/gm)].map(
    ([, line = '']) => line,
  );

describe('the commands for tasks', () => {
  it('work in their order', { timeout: 300_000 }, async () => {
    const cwd = folderWithCheckpoint();
    const lines = tasksIn('README.md');
    expect(lines.length).toBeGreaterThan(20);
    for (const line of lines) {
      const words = (line.match(/"[^"]*"|\S+/g) ?? []).map((word) => word.replaceAll('"', ''));
      const { code, stderr } = await runHere(words, { cwd });
      const complaint = /error|warning|reading this/.test(stderr) ? stderr : '';
      expect({ line, code, complaint }).toEqual({ line, code: 0, complaint: '' });
    }
  });

  it('are the same in Chinese', () => {
    expect(tasksIn('README.zh-CN.md')).toEqual(tasksIn('README.md'));
  });
});
