import { basename, extname } from 'node:path';
import { SHARD_EXTENSIONS } from '../formats.js';
import { refusal } from '../rules.js';
import { quoted } from '../wording.js';

/**
 * Checks the name that an index gives to a shard, by its text alone.
 * @param path Of the index, as the user wrote it.
 * @throws UserError when it could lead out of the folder, or is no file of weights.
 */
export function checkShardName(path: string, name: string): void {
  if (!goesDown(name)) {
    throw refusal(path, {
      rule: 'shard-name-path',
      place: 'weight_map',
      message: `names the file ${quoted(name)}; expected a path below the folder of the index, without a drive, a root, "." or ".."`,
      suggestion: 'do not use this index unless you know who made it',
    });
  }
  const expected = extensionsFor(path);
  if (!expected.includes(extname(name))) {
    throw refusal(path, {
      rule: 'shard-name-extension',
      place: 'weight_map',
      message: `names the file ${quoted(name)}; expected the extension ${expected.join(' or ')}`,
      suggestion: 'check that the index belongs to these files',
    });
  }
}

/** What is special to some system: drives, schemes and streams; separators; the end of a text in C. */
const SPECIAL = /[:\\\0]/;

function goesDown(name: string): boolean {
  const isPlain = (segment: string) => segment !== '' && segment !== '.' && segment !== '..';
  return !SPECIAL.test(name) && name.split('/').every(isPlain);
}

/** `model.safetensors.index.json` is for `.safetensors`; `index.json` does not say. */
function extensionsFor(index: string): readonly string[] {
  const stated = extname(basename(index, '.index.json'));
  return SHARD_EXTENSIONS.includes(stated) ? [stated] : SHARD_EXTENSIONS;
}
