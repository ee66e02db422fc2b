import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { inPackage } from './fixtures.js';
import { runHere } from './run-here.js';

const skill = fs.readFileSync(inPackage('skills/minimind/SKILL.md'), 'utf8');
const lines = [...skill.matchAll(/^minimind (.+)$/gm)].map(([, line = '']) => line);

let folder: string;
beforeAll(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
  fs.cpSync(inPackage('fixtures/alibi/bloom'), path.join(folder, 'my-model'), { recursive: true });
});
afterAll(() => fs.rmSync(folder, { recursive: true }));

describe('the skill for agents', () => {
  it('says what it is for, within the limits of the format', () => {
    const { name, description } = parse(skill.split('---\n')[1] ?? '');
    expect(name).toBe('minimind');
    expect(description.length).toBeGreaterThan(100);
    // agentskills.io/specification: at most 1024 characters.
    expect(description.length).toBeLessThanOrEqual(1024);
  });

  it('has many lines, and names only flags that exist', () => {
    expect(lines.length).toBeGreaterThan(12);
    for (const [, flag = ''] of skill.matchAll(/`--([a-z-]+)/g)) {
      const { commands } = JSON.parse(fs.readFileSync(inPackage('oclif.manifest.json'), 'utf8'));
      const all = Object.values<{ flags: object }>(commands).flatMap((each) =>
        Object.keys(each.flags),
      );
      expect(['help', ...all]).toContain(flag);
    }
  });

  it.each(lines)('minimind %s', async (line) => {
    // The words of a jq expression have no spaces here.
    const { code, stderr } = await runHere(line.split(' '), { cwd: folder });
    expect({ code, stderr: stderr.includes('error') ? stderr : '' }).toEqual({
      code: 0,
      stderr: '',
    });
  });
});
