/** The bounds that SECURITY.md states are those of the code. */
import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import { MAX_DOCUMENT_BYTES } from '../src/config/source.js';
import { GZIP_BOUNDS } from '../src/data/lines.js';
import { MAX_LISTING_BYTES } from '../src/hub/hub-client.js';
import { JSON_BOUNDS } from '../src/text/json.js';
import { MAX_GROWTH, PART_BOUNDS } from '../src/tokenizer/parts.js';
import { MOST_NODES, USUAL_LENGTHS } from '../src/tokenizer/token-trie.js';
import { inPackage } from './fixtures.js';

const section = /^## Bounds\n(.*?)^## /ms.exec(
  fs.readFileSync(inPackage('SECURITY.md'), 'utf8'),
)?.[1];
const ROWS = (section ?? '')
  .split('\n')
  .filter((line) => line.startsWith('| '))
  .slice(1)
  .map((line) => line.split('|').map((cell) => cell.trim()));

const BOUNDS: readonly (readonly [bound: string, value: number])[] = [
  ['levels', JSON_BOUNDS.depth],
  ['lists and objects', JSON_BOUNDS.lists],
  ['keys', JSON_BOUNDS.keys],
  ['words `NaN` and `Infinity`', JSON_BOUNDS.words],
  ['bytes', MAX_DOCUMENT_BYTES],
  ['levels', PART_BOUNDS.depth],
  ['parts', PART_BOUNDS.parts],
  ['characters', PART_BOUNDS.patternCharacters],
  ['times', MAX_GROWTH],
  ['characters, or a twelfth of the file', MOST_NODES.small],
  ['lengths', USUAL_LENGTHS],
  ['times the packed bytes', GZIP_BOUNDS.ratio],
  ['bytes', MAX_LISTING_BYTES],
];

describe('SECURITY.md', () => {
  it('states each bound of the code, and no other', () => {
    expect(ROWS.map((row) => row[2])).toEqual(
      BOUNDS.map(([what, value]) => `${value.toLocaleString('en-US')} ${what}`),
    );
    expect(MOST_NODES.perByte).toBe(1 / 12);
    expect(ROWS.find((row) => row[1]?.startsWith('gzip'))?.[1]).toContain(
      GZIP_BOUNDS.first.toLocaleString('en-US'),
    );
  });
});
