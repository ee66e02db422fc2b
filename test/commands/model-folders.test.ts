/** Files under the names that a model folder can hold, which are links out of it, pipes or devices. */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { inPackage } from '../fixtures.js';
import { runHere } from '../run-here.js';

const root = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), 'minimind-'));
afterAll(() => fs.rmSync(root, { recursive: true }));

const SECRET = path.join(root, 'secret');
fs.writeFileSync(SECRET, 'my secret: "words"\n');

const NAMES = [
  ...['config.json', 'generation_config.json', 'tokenizer.json', 'tokenizer_config.json'],
  ...['chat_template.jinja', 'special_tokens_map.json', 'vocab.json', 'merges.txt'],
  'model.safetensors.index.json',
];

const KINDS = {
  'a link out of the folder': (file: string) => fs.symlinkSync(SECRET, file),
  'a pipe': (file: string) => execFileSync('mkfifo', [file]),
  'a device': (file: string) => fs.symlinkSync('/dev/zero', file),
} as const;

let number = 0;

/** A copy of a small model with another file in place of one of its own. */
function folderWith(name: string, kind: keyof typeof KINDS): string {
  const folder = path.join(root, `model-${number++}`);
  fs.cpSync(inPackage('fixtures/hf/llama'), folder, { recursive: true });
  fs.copyFileSync(
    inPackage('fixtures/tokenizers/bpe-512.json'),
    path.join(folder, 'tokenizer.json'),
  );
  const file = path.join(folder, name);
  fs.rmSync(file, { force: true });
  KINDS[kind](file);
  return folder;
}

/** Contents of all files in a folder. */
const contentsOf = (folder: string): string =>
  fs.existsSync(folder)
    ? fs
        .readdirSync(folder)
        .map((name) => fs.readFileSync(path.join(folder, name), 'latin1'))
        .join()
    : '';

describe.skipIf(process.platform === 'win32').each(Object.keys(KINDS) as (keyof typeof KINDS)[])(
  '%s in a model folder',
  (kind) => {
    it.each(NAMES)('is never read, shown or copied: %s', async (name) => {
      const folder = folderWith(name, kind);
      const out = `${folder}-out`;
      for (const words of [
        ['profile', folder],
        ['verify', folder],
        ['generate', folder, '--ids', '1,2,3', '--max-tokens', '1'],
        ['generate', folder, 'hello', '--chat', '--max-tokens', '1'],
        ['convert-checkpoint', folder, out, '--dtype', 'bf16'],
      ]) {
        const { code, stdout, stderr } = await runHere(words);
        expect([0, 1, 2], `${words.join(' ')}\n${stderr}`).toContain(code);
        expect(stdout + stderr).not.toContain('my secret');
      }
      expect(contentsOf(out)).not.toContain('my secret');
    });
  },
);

describe.skipIf(process.platform === 'win32')('links', () => {
  it('in the layout of the cache of the hub are followed', async () => {
    const home = path.join(root, 'models--org--name');
    const snapshot = path.join(home, 'snapshots', 'f'.repeat(40));
    fs.mkdirSync(path.join(home, 'blobs'), { recursive: true });
    fs.mkdirSync(snapshot, { recursive: true });
    for (const name of fs.readdirSync(inPackage('fixtures/hf/llama'))) {
      fs.copyFileSync(inPackage('fixtures/hf/llama', name), path.join(home, 'blobs', name));
      fs.symlinkSync(`../../blobs/${name}`, path.join(snapshot, name));
    }
    expect((await runHere(['profile', snapshot])).code).toBe(0);
  });

  it('name a file that is refused with its target', async () => {
    const folder = folderWith('tokenizer_config.json', 'a link out of the folder');
    const { code, stderr } = await runHere([
      'convert-checkpoint',
      folder,
      `${folder}-x`,
      '--dtype',
      'bf16',
    ]);
    expect(code).toBe(2);
    expect(stderr).toContain(`tokenizer_config.json is a link out of its folder, to ${SECRET}`);
    expect(fs.existsSync(`${folder}-x`)).toBe(false);
  });
});

describe('the base of an adapter', () => {
  it.each(['/etc/passwd', '../secret', '//server/share/model', 'C:\\model', '\\\\server\\x'])(
    'is not opened by itself: %s',
    async (base) => {
      const folder = path.join(root, `adapter-${number++}`);
      fs.cpSync(inPackage('fixtures/lora/llama-bf16'), folder, { recursive: true });
      const file = path.join(folder, 'adapter_config.json');
      const config = JSON.parse(fs.readFileSync(file, 'utf8'));
      fs.writeFileSync(file, JSON.stringify({ ...config, base_model_name_or_path: base }));
      const { code, stderr } = await runHere(['verify', folder]);
      expect(code).toBe(2);
      expect(stderr).toContain('which was not found');
      expect(stderr).not.toContain('my secret');
    },
  );
});
