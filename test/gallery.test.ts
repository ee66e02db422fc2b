import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { inPackage } from './fixtures.js';

const FOLDER = inPackage('docs/gallery');

describe('the gallery', () => {
  it('shows what the program draws', () => {
    const args = [inPackage('scripts/gallery/gallery.js'), '--check'];
    const { status, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  }, 120_000);

  it('is small, and GitHub can show it', () => {
    const pictures = fs
      .readdirSync(FOLDER)
      .map((name) => fs.readFileSync(path.join(FOLDER, name), 'utf8'));
    expect(pictures.length).toBeGreaterThan(15);
    expect(Buffer.byteLength(pictures.join(''))).toBeLessThan(600_000);
    for (const picture of pictures) {
      // GitHub shows pictures under a policy without scripts and requests.
      expect(picture).not.toMatch(/<script|foreignObject|href|@import|url\(/i);
    }
  });
});
