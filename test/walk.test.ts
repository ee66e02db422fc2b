import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { expect, it } from 'vitest';
import { inPackage } from './fixtures.js';
import { runHere } from './run-here.js';

const PAGE = inPackage('docs/walk.md');

/** A file with its content, a copy of a fixture, or a command with the answer below it. */
const STEP =
  /^`([\w.]+)`:\n\n```yaml\n([\s\S]*?)^```$|^cp (\S+) (\S+)$|^```console\nminimind (.+)\n```(?:\n\n```text\n([\s\S]*?)^```)?$/gm;

/** An answer without durations, rates and memory, which differ between machines. */
const steady = (text: string) =>
  text.replace(/memory {4,}about \S+|[\d.,]+ (ms|s|tokens\/s)\b/g, '#');

/** `vitest run test/walk.test.ts -u` writes the current output of the program. */
it('docs/walk.md shows every command with its current answer', async () => {
  const page = fs.readFileSync(PAGE, 'utf8');
  const cwd = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-walk-'));
  let now = page;
  let commands = 0;
  for (const [step, file, content = '', source, copy = '', line, shown] of page.matchAll(STEP)) {
    if (file) fs.writeFileSync(path.join(cwd, file), content);
    else if (source) fs.copyFileSync(inPackage(source), path.join(cwd, copy));
    else if (line) {
      commands += 1;
      const { code, stdout, stderr } = await runHere(line.split(' '), { cwd });
      const isMistake = shown?.startsWith('error: ') ?? false;
      expect({ line, code, stderr: code === 0 ? '' : stderr }).toEqual({
        line,
        code: isMistake ? 1 : 0,
        stderr: isMistake ? stderr : '',
      });
      const answer = isMistake ? stderr : stdout;
      if (shown === undefined || steady(answer) === steady(shown)) continue;
      const printed = `\`\`\`console\nminimind ${line}\n\`\`\`\n\n\`\`\`text\n${answer}\`\`\``;
      now = now.replace(step, () => printed);
    }
  }
  fs.rmSync(cwd, { recursive: true });
  expect(commands).toBe(page.match(/^minimind /gm)?.length);
  await expect(now).toMatchFileSnapshot(PAGE);
});
