/** Files of a converted folder other than weights and config. */
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { folderOf } from '../../../checkpoint/temp-folder.js';
import { inPackage } from '../../../fixtures.js';
import { convert, refused, textOf } from '../convert.js';

const TOKENIZER = '{"model": {"vocab": {"a": 0}}}';

/** Folder of a model of the hub. */
function modelFolder(more: Readonly<Record<string, string>> = {}): string {
  const folder = folderOf({ 'tokenizer.json': TOKENIZER, 'generation_config.json': '{}', ...more });
  for (const name of ['config.json', 'model.safetensors']) {
    fs.copyFileSync(inPackage(`fixtures/hf/llama/${name}`), path.join(folder, name));
  }
  return folder;
}

const HALF = { dtype: 'F16' } as const;

describe('a converted folder', () => {
  it('has the tokenizer and the generation config of the input', async () => {
    const out = path.join(folderOf({}), 'out');
    const { notes } = await convert(modelFolder({ 'README.md': '' }), out, HALF);
    expect(fs.readdirSync(out).sort()).toEqual([
      'config.json',
      'generation_config.json',
      'model.safetensors',
      'tokenizer.json',
    ]);
    expect(fs.readFileSync(path.join(out, 'tokenizer.json'), 'utf8')).toBe(TOKENIZER);
    expect(notes).toContain('Not copied: "README.md"');
  });

  it('has files instead of the links in the cache of the hub', async () => {
    const home = path.join(folderOf({}), 'models--org--name');
    const folder = path.join(home, 'snapshots', 'a'.repeat(40));
    fs.mkdirSync(path.dirname(folder), { recursive: true });
    fs.renameSync(modelFolder(), folder);
    fs.mkdirSync(path.join(home, 'blobs'));
    fs.renameSync(path.join(folder, 'tokenizer.json'), path.join(home, 'blobs', 'b'));
    fs.symlinkSync('../../blobs/b', path.join(folder, 'tokenizer.json'));
    const out = path.join(folderOf({}), 'out');
    await convert(folder, out, HALF);
    expect(fs.lstatSync(path.join(out, 'tokenizer.json')).isSymbolicLink()).toBe(false);
    expect(fs.readFileSync(path.join(out, 'tokenizer.json'), 'utf8')).toBe(TOKENIZER);
  });

  it('is not made of links out of the folder', async () => {
    const folder = modelFolder();
    const other = path.join(folderOf({ other: TOKENIZER }), 'other');
    fs.rmSync(path.join(folder, 'tokenizer.json'));
    fs.symlinkSync(other, path.join(folder, 'tokenizer.json'));
    const out = path.join(folderOf({}), 'out');
    await expect(convert(folder, out, HALF)).rejects.toThrow('is a link out of its folder');
    expect(fs.existsSync(out)).toBe(false);
  });

  it('is replaced with --force, including config.json and sidecars', async () => {
    const [folder, out] = [modelFolder(), path.join(folderOf({}), 'out')];
    await convert(folder, out, HALF);
    await convert(folder, out, { ...HALF, force: true });
    expect(fs.readdirSync(out)).toHaveLength(4);
  });

  it('is not replaced if a tokenizer would be lost', async () => {
    const out = path.join(folderOf({}), 'out');
    await convert(modelFolder(), out, HALF);
    fs.writeFileSync(path.join(out, 'vocab.json'), '{}');
    const again = convert(modelFolder(), out, { ...HALF, force: true });
    await expect(again).rejects.toThrow(/it has vocab\.json, which the new folder would lack/);
    expect(fs.readFileSync(path.join(out, 'vocab.json'), 'utf8')).toBe('{}');
  });
});

describe('a single file as output', () => {
  it('has a note with the files that are not copied', async () => {
    const out = path.join(folderOf({}), 'out.safetensors');
    const { notes } = await convert(modelFolder(), out, HALF);
    expect(notes).toContainEqual(
      expect.stringMatching(/^Not copied, because OUT is a file: "generation_config\.json", "tok/),
    );
  });

  it.each(['x.onnx', 'x.ONNX', 'x.safetensor', 'x.txt'])(
    'is refused with an unknown ending: %s',
    async (name) => {
      const error = await refused(modelFolder(), HALF, name);
      expect(textOf(error)).toMatch(/expected OUT to end in \.safetensors, \.pt or \.gguf, found /);
    },
  );

  it.each(['llama-3.2-1b', 'v1.5', 'model.d/'])('is a folder if it is called %s', async (name) => {
    const out = path.join(folderOf({}), name);
    await convert(modelFolder(), name.endsWith('/') ? `${out}/` : out, HALF);
    expect(fs.statSync(out).isDirectory()).toBe(true);
  });
});
