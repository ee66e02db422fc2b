import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import { inPackage } from './fixtures.js';
import { runHere } from './run-here.js';

/** A command of a recipe, and its answer below it. */
const SHOWN = /^```console\nminimind (.+)\n```\n\n```text\n[\s\S]*?^```$/gm;

const files = fs.readdirSync(inPackage('docs/recipes'));

/** `vitest run test/recipes.test.ts -u` writes the current output of the program. */
describe.each(files)('docs/recipes/%s', (name) => {
  const recipe = fs.readFileSync(inPackage('docs/recipes', name), 'utf8');

  it('shows every command with its current answer', async () => {
    const blocks = [...recipe.matchAll(SHOWN)];
    expect(blocks).toHaveLength(recipe.match(/^minimind /gm)?.length ?? 0);
    expect(blocks.length).toBeGreaterThan(0);
    let now = recipe;
    for (const [shown, line = ''] of blocks) {
      const { code, stdout } = await runHere(line.split(' '));
      expect({ line, code }).toEqual({ line, code: 0 });
      const answer = `\`\`\`console\nminimind ${line}\n\`\`\`\n\n\`\`\`text\n${stdout}\`\`\``;
      now = now.replace(shown, () => answer);
    }
    await expect(now).toMatchFileSnapshot(inPackage('docs/recipes', name));
  });
});
