/** Valid folders with shards, and files that replace theirs. */
import fs from 'node:fs';
import path from 'node:path';
import { fileIn, folderOf, safetensors } from '../temp-folder.js';
import * as a from '../torch/assemble.js';

export const INDEX = 'model.safetensors.index.json';
export const FIRST = 'model-00001-of-00002.safetensors';
export const SECOND = 'model-00002-of-00002.safetensors';

type Files = Readonly<Record<string, string | Uint8Array>>;
type Tensors = Parameters<typeof safetensors>[0];

export const first: Tensors = { 'a.w': [1, 2], 'b.w': [3] };
export const second: Tensors = { 'c.w': [4] };
export const shards: Files = { [FIRST]: safetensors(first), [SECOND]: safetensors(second) };
export const weightMap = { 'a.w': FIRST, 'b.w': FIRST, 'c.w': SECOND };

/** Valid folder, with some files replaced. */
export const folderWith = (index: unknown, files: Files = {}) =>
  folderOf({ ...shards, [INDEX]: JSON.stringify(index), ...files });
export const withMap = (map: unknown, files?: Files) => folderWith({ weight_map: map }, files);
export const withText = (text: string | Uint8Array) => folderOf({ ...shards, [INDEX]: text });
/** Folder with a valid index that has an extra key. */
export const withExtra = (extra: string) =>
  withText(`{"extra": ${extra}, "weight_map": ${JSON.stringify(weightMap)}}`);
export const withName = (name: unknown) => withMap({ ...weightMap, 'c.w': name });

/** Legacy PyTorch file of one tensor, under these keys. */
export function legacy(name: string, ...keys: string[]): Buffer {
  const dict = keys.reduceRight(
    (value, key) => a.dict(a.text(key), value),
    a.dict(a.text(name), a.tensor()),
  );
  return a.legacy(a.pickle(dict), ['0'], [a.legacyData(4n, 16)]);
}

/** Folder of two `.bin` files with the tensors a.w and b.w. */
export const binFolder = (one: Uint8Array, two: Uint8Array) =>
  folderOf({
    '1.bin': one,
    '2.bin': two,
    'm.bin.index.json': JSON.stringify({ weight_map: { 'a.w': '1.bin', 'b.w': '2.bin' } }),
  });

/** Valid folder with a link to `target` as its second shard. */
export function withLink(target: string, folder = folderWith({ weight_map: weightMap })): string {
  fs.rmSync(path.join(folder, SECOND), { force: true });
  fs.symlinkSync(target, path.join(folder, SECOND));
  return folder;
}

/** Repository in a cache of the Hugging Face hub: files are links to blobs. */
export function hubCache(blobs: string, repository = 'models--org--name'): string {
  const revision = `${repository}/snapshots/0123abc`;
  const root = folderOf({
    [`${blobs}/1111`]: safetensors(first),
    [`${blobs}/2222`]: safetensors(second),
    [`${blobs}/3333`]: JSON.stringify({ weight_map: weightMap }),
    [`${revision}/config.json`]: '{}',
  });
  for (const [name, blob] of Object.entries({
    [FIRST]: '1111',
    [SECOND]: '2222',
    [INDEX]: '3333',
  })) {
    const target = path.join(root, blobs, blob);
    const folder = path.join(root, revision);
    fs.symlinkSync(path.relative(folder, target), path.join(folder, name));
  }
  return path.join(root, revision);
}

export const outside = () => fileIn(SECOND, safetensors(second));
