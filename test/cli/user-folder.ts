/** The folder in which a user types, and the words of a line. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { onTestEnd } from '../cleanup.js';
import { inPackage } from '../fixtures.js';

/** Files of a user: configs, a checkpoint, a model, data. */
const FILES = {
  'my.yaml': 'configs/hybrid/tiny.yaml',
  'other.yaml': 'configs/minimind/minimind2-small.yaml',
  'folder/a.yaml': 'configs/hybrid/tiny.yaml',
  'folder/b.yaml': 'configs/hybrid/shared.yaml',
  'old.pt': 'fixtures/checkpoints/valid/zip_proto5.pt',
  'hf/config.json': 'fixtures/hf/llama/config.json',
  'hf/model.safetensors': 'fixtures/hf/llama/model.safetensors',
  'data.jsonl': 'fixtures/data/pretrain.jsonl',
  'tokenizer/tokenizer.json': 'fixtures/data/tokenizer/tokenizer.json',
  'tokenizer/tokenizer_config.json': 'fixtures/data/tokenizer/tokenizer_config.json',
  'kvp.safetensors': 'fixtures/kv-projector/two-teachers/model.safetensors',
} as const;

/** A folder with these files, or with those of another one. */
export function userFolder(from?: string, onEnd = onTestEnd): string {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
  onEnd(() => fs.rmSync(folder, { recursive: true }));
  if (from !== undefined) {
    fs.cpSync(from, folder, { recursive: true });
    return folder;
  }
  for (const [name, file] of Object.entries(FILES)) {
    fs.mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
    fs.copyFileSync(inPackage(file), path.join(folder, name));
  }
  fs.mkdirSync(path.join(folder, 'empty'));
  fs.writeFileSync(path.join(folder, 'text.txt'), 'Once upon a time.\n');
  const typo = fs.readFileSync(path.join(folder, 'my.yaml'), 'utf8').replace('num_layers', 'num_l');
  fs.writeFileSync(path.join(folder, 'typo.yaml'), typo);
  return folder;
}

/** Words of a command line of a shell. */
export const wordsOf = (line: string): string[] =>
  [...line.matchAll(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g)].map(([word]) =>
    word.replaceAll(/'([^']*)'|"([^"]*)"/g, '$1$2'),
  );
