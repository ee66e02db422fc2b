import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import { inPackage } from './fixtures.js';
import { runHere } from './run-here.js';

/** A command as a reader sees it, and what is shown below it. */
const SHOWN = /^```console\nminimind (.+)\n```\n\n```text\n[\s\S]*?^```$/gm;

const files = fs.readdirSync(inPackage('docs/recipes'));

/** `vitest run test/recipes.test.ts -u` writes what the program prints now. */
describe.each(files)('docs/recipes/%s', (name) => {
  const recipe = fs.readFileSync(inPackage('docs/recipes', name), 'utf8');

  it('shows every answer as it is printed', async () => {
    const blocks = [...recipe.matchAll(SHOWN)];
    expect(blocks).toHaveLength(recipe.match(/^minimind /gm)?.length ?? 0);
    expect(blocks.length).toBeGreaterThan(0);
    let now = recipe;
    for (const [shown, line = ''] of blocks) {
      const { code, stdout } = await runHere(line.split(' '));
      expect({ line, code }).toEqual({ line, code: 0 });
      const told = `\`\`\`console\nminimind ${line}\n\`\`\`\n\n\`\`\`text\n${stdout}\`\`\``;
      now = now.replace(shown, () => told);
    }
    await expect(now).toMatchFileSnapshot(inPackage('docs/recipes', name));
  });
});
